//! HTTP+SSE of 2024-11-05: the stream and the messages carry the token, wait for the login, and end
//! with its error.

use super::*;
use crate::client::{EndpointOrigin, HttpMode};
use crate::error::{Stage, StreamEnd};

impl Guarded {
    fn sse(set: impl FnOnce(&mut ClientConfig), record: Option<Box<Record>>) -> Self {
        let set = |config: &mut ClientConfig| {
            config.http_mode = HttpMode::Sse;
            set(config);
        };
        Self::of(set, record)
    }

    /// A client with a stored login, after negotiation.
    fn sse_ready(set: impl FnOnce(&mut ClientConfig)) -> Self {
        let mut guarded = Self::sse(set, Guarded::ready().record);
        guarded.tokens = 1;
        guarded.run();
        guarded.open();
        guarded.negotiate();
        guarded.http.rig.clear();
        guarded.events = 0;
        guarded
    }

    /// Returns the requests of MCP, as method, target, method of the message, and credentials.
    fn lines(&self) -> Vec<String> {
        let line = |(_, head, body): &(ExchangeId, RequestHead, Bytes)| {
            let body: Value = serde_json::from_slice(body).unwrap_or_default();
            let method = body["method"].as_str().unwrap_or("-");
            let token = head.headers.get("authorization").unwrap_or("-");
            format!("{} {} {method} {token}", head.method, head.target)
        };
        self.mcp().iter().map(line).collect()
    }

    fn streams(&self) -> Vec<ExchangeId> {
        self.mcp().iter().filter(|(_, head, _)| &*head.method == "GET").map(|(exchange, ..)| *exchange).collect()
    }

    fn stream(&self) -> ExchangeId {
        self.streams().pop().unwrap()
    }

    /// The server opens the stream and names its endpoint.
    fn open(&mut self) {
        self.open_at("/m?s=1");
    }

    fn open_at(&mut self, endpoint: &'static str) {
        let stream = self.stream();
        self.http.stream(stream);
        let data = Data::Other { event: "endpoint".into(), data: Bytes::from_static(endpoint.as_bytes()) };
        self.http.item(stream, Inbound::Event(SseEvent { id: None, retry: None, data }));
    }

    /// The server takes the latest message, and answers it on the stream.
    fn answer(&mut self, result: &Value) {
        let (exchange, id) = self.last();
        self.http.refuse(exchange, 202);
        self.http.event(self.stream(), &json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    /// The server accepts `initialize`, which was posted last, and `notifications/initialized`.
    fn negotiate(&mut self) {
        self.answer(&initialized("2024-11-05"));
        assert_eq!(self.http.rig.client.state(), State::Ready);
        let note = self.mcp().pop().unwrap().0;
        self.http.refuse(note, 202);
    }

    /// The stream breaks, and the client tries to open it again.
    fn reconnect(&mut self) {
        let failed = ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset };
        self.http.rig.handle_event(self.stream(), failed);
        self.wait();
    }

    /// Waits for the next timer.
    fn wait(&mut self) {
        let next = self.http.rig.client.poll_timeout().unwrap() - self.http.rig.now;
        self.http.rig.tick(next);
    }

    fn lost(&self) -> Vec<StreamEnd> {
        let lost = |event: &Event| match event {
            Event::ListenerLost { cause, .. } => Some(cause.clone()),
            _ => None,
        };
        self.http.rig.events.iter().filter_map(lost).collect()
    }
}

fn failure(guarded: &Guarded) -> &NegotiationError {
    match guarded.http.rig.termination() {
        Some(Termination::Negotiation(why)) => why,
        other => panic!("{other:?}"),
    }
}

// covers: AUTHT-C-001, AUTHT-C-002, S3-45
#[test]
fn stream_and_messages_carry_the_stored_token() {
    let mut guarded = Guarded::sse_ready(|_| {});
    guarded.http.rig.echo();
    assert_eq!(
        guarded.lines(),
        [
            "GET /mcp?x=1 - Bearer access-1",
            "POST /m?s=1 initialize Bearer access-1",
            "POST /m?s=1 notifications/initialized Bearer access-1",
            "POST /m?s=1 tools/call Bearer access-1",
        ]
    );
    assert_eq!((guarded.pages(), guarded.paths.len()), (0, 0));
}

#[test]
fn stream_waits_for_the_record_without_a_limit_of_its_own() {
    let mut guarded = Guarded::sse(|_| {}, None);
    assert!(guarded.mcp().is_empty());
    assert_eq!(guarded.http.rig.client.timeout_reason(), Some(Timer::Login));
    let login = guarded.http.rig.client.poll_timeout();
    guarded.http.rig.client.close(guarded.http.rig.now);
    guarded.http.rig.drain();
    assert!(login.is_some() && guarded.http.rig.client.poll_timeout().is_none());
    assert!(guarded.http.rig.aborted.is_empty() && guarded.mcp().is_empty(), "nothing has begun");
    assert_eq!(guarded.http.rig.events.last(), Some(&Event::Terminated(Termination::Requested)));
}

// covers: AUTHD-C-005, S0-45, B-214
#[test]
fn challenge_of_the_stream_leads_to_a_login() {
    let mut guarded = Guarded::sse(|config| config.connect_timeout = Duration::from_secs(10), None);
    let call = guarded.http.rig.echo();
    guarded.run();
    guarded.challenge(guarded.stream(), 401, "Bearer");
    assert_eq!(guarded.http.rig.client.timeout_reason(), Some(Timer::Login));
    guarded.http.rig.tick(Duration::from_secs(100));
    guarded.run();
    assert_eq!(guarded.lines(), ["GET /mcp?x=1 - -", "GET /mcp?x=1 - Bearer access-1"]);
    guarded.open();
    guarded.negotiate();
    guarded.answer(&json!({"content": []}));
    assert!(guarded.http.rig.outcome(call).is_ok());
    assert!(guarded.held.is_empty() && guarded.pages() == 1);
}

// covers: S0-45
#[test]
fn challenge_of_a_message_leads_to_a_login() {
    let mut guarded = Guarded::sse(|_| {}, None);
    guarded.run();
    guarded.open();
    let first = guarded.mcp().pop().unwrap();
    guarded.challenge(first.0, 401, "Bearer");
    guarded.run();
    let lines = ["GET /mcp?x=1 - -", "POST /m?s=1 initialize -", "POST /m?s=1 initialize Bearer access-1"];
    assert_eq!(guarded.lines(), lines);
    assert_eq!(guarded.mcp().pop().unwrap().2, first.2, "the same bytes");
    guarded.negotiate();
    assert_eq!(guarded.streams().len(), 1, "the stream stays open");
    assert!(guarded.http.rig.aborted.is_empty());
}

// covers: B-242
#[test]
fn refused_calls_share_one_refresh_and_the_stream_stays_open() {
    let mut guarded = Guarded::sse_ready(|_| {});
    let calls: Vec<CallId> = (0..3).map(|_| guarded.http.rig.echo()).collect();
    let sent = guarded.mcp()[3..].to_vec();
    for (exchange, ..) in &sent {
        guarded.challenge(*exchange, 401, "Bearer error=\"invalid_token\"");
    }
    guarded.run();
    let again = guarded.mcp()[6..].to_vec();
    assert_eq!((again.len(), guarded.tokens, guarded.pages()), (3, 2, 0));
    assert_eq!(guarded.credentials()[6..], [bearer("access-2"), bearer("access-2"), bearer("access-2")]);
    for (exchange, _, body) in &again {
        let body: Value = serde_json::from_slice(body).unwrap();
        guarded.http.refuse(*exchange, 202);
        guarded.http.event(guarded.stream(), &result(&body["id"]));
    }
    assert!(calls.iter().all(|call| guarded.http.rig.outcome(*call).is_ok()));
    assert_eq!(guarded.streams().len(), 1);
}

#[test]
fn response_on_the_stream_ends_a_call_that_waits_for_the_login() {
    let mut guarded = Guarded::sse_ready(|_| {});
    let call = guarded.http.rig.echo();
    let (exchange, id) = guarded.last();
    guarded.challenge(exchange, 401, "Bearer");
    guarded.http.event(guarded.stream(), &result(&id));
    assert!(guarded.http.rig.outcome(call).is_ok());
    guarded.run();
    assert_eq!(guarded.mcp().len(), 4, "it is not repeated");
}

// covers: B-250, B-261
#[test]
fn declined_login_ends_the_negotiation_and_its_calls() {
    for at_stream in [true, false] {
        let mut guarded = Guarded::sse(|_| {}, None);
        guarded.declines = true;
        let call = guarded.http.rig.echo();
        guarded.run();
        if !at_stream {
            guarded.open();
        }
        let count = guarded.mcp().len();
        guarded.challenge(guarded.mcp().pop().unwrap().0, 401, "Bearer");
        guarded.run();
        let why = failure(&guarded);
        assert_eq!(why.unauthorized(), Some(&AuthError::Declined), "{why}");
        assert_eq!(why.stage, if at_stream { Stage::Endpoint } else { Stage::Connect });
        let error = guarded.http.rig.outcome(call).clone().unwrap_err();
        assert_eq!(error.unauthorized(), Some(&AuthError::Declined));
        assert_eq!((guarded.mcp().len(), guarded.pages()), (count, 1));
        assert_eq!(guarded.http.rig.aborted.len(), usize::from(!at_stream), "the stream");
        guarded.http.assert_at_rest();
    }
}

// covers: B-250
#[test]
fn call_whose_login_fails_leaves_the_client_ready() {
    let mut guarded = Guarded::sse_ready(|_| {});
    guarded.declines = true;
    guarded.faults.insert("/token".into(), (400, "{\"error\":\"invalid_grant\"}"));
    let call = guarded.http.rig.echo();
    guarded.challenge(guarded.last().0, 401, "Bearer");
    guarded.run();
    let error = guarded.http.rig.outcome(call).clone().unwrap_err();
    assert_eq!((error.unauthorized(), error.sent()), (Some(&AuthError::Declined), Sent::No));
    assert_eq!(guarded.http.rig.client.state(), State::Ready);
    assert_eq!((guarded.streams().len(), guarded.http.rig.aborted.len()), (1, 0));
}

#[test]
fn stream_that_breaks_is_opened_again_with_a_new_token() {
    let mut guarded = Guarded::sse_ready(|_| {});
    guarded.http.rig.tick(Duration::from_secs(3590));
    guarded.reconnect();
    // It waits for the refresh, and only that has a limit.
    assert_eq!(guarded.streams().len(), 1);
    assert!(!matches!(guarded.http.rig.client.timeout_reason(), Some(Timer::Answer(_))));
    guarded.run();
    assert_eq!(guarded.lines().pop().unwrap(), "GET /mcp?x=1 - Bearer access-2");
    guarded.open();
    guarded.http.rig.echo();
    assert_eq!(guarded.lines().pop().unwrap(), "POST /m?s=1 tools/call Bearer access-2");
}

// covers: B-250
#[test]
fn declined_login_ends_the_attempts_to_open_the_stream() {
    for watches in [false, true] {
        let mut guarded = Guarded::sse_ready(|config| config.watch.tools = watches);
        guarded.declines = true;
        guarded.faults.insert("/token".into(), (400, "{\"error\":\"invalid_grant\"}"));
        guarded.reconnect();
        assert_eq!(guarded.streams().len(), 2);
        guarded.challenge(guarded.stream(), 401, "Bearer");
        guarded.run();
        let declined = Closed::Unauthorized(Box::new(AuthError::Declined));
        assert_eq!(guarded.lost(), [StreamEnd::Closed(declined)]);
        assert_eq!(guarded.http.rig.client.poll_timeout(), None, "{:?}", guarded.http.rig.client.timeout_reason());
        assert_eq!((guarded.streams().len(), guarded.pages()), (2, 1));
        guarded.http.assert_at_rest();
        // The next call tries once more, and opens no other page soon.
        let call = guarded.http.rig.echo();
        guarded.challenge(guarded.stream(), 401, "Bearer");
        guarded.run();
        let quiet = AuthError::Quiet(Box::new(AuthError::Declined));
        assert_eq!(guarded.http.rig.outcome(call).clone().unwrap_err().unauthorized(), Some(&quiet));
        assert_eq!(guarded.pages(), 1);
    }
}

#[test]
fn endpoint_at_another_origin_gets_no_token_and_no_login() {
    let any = |config: &mut ClientConfig| config.compat.endpoint_origin = EndpointOrigin::Any;
    let mut guarded = Guarded::sse(any, Guarded::ready().record);
    guarded.run();
    guarded.open_at("http://127.0.0.1:8001/m");
    assert_eq!(guarded.lines(), ["GET /mcp?x=1 - Bearer access-1", "POST /m initialize -"]);
    guarded.challenge(guarded.last().0, 401, "Bearer");
    guarded.run();
    assert_eq!((failure(&guarded).unauthorized(), guarded.paths.len()), (None, 0));
    assert!(failure(&guarded).to_string().contains("401"), "{}", failure(&guarded));
}
