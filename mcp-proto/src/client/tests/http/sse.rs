//! HTTP+SSE of 2024-11-05: the last rung of the ladder, the endpoint, and streams that break.

use super::*;
use crate::Authorization;
use crate::InputAnswer;
use crate::client::{EndpointOrigin, EndpointRefresh, HttpMode, HttpTransport, StreamOf};
use crate::error::{RefusedAttempt, StreamEnd};
use crate::exchange::Origin;
use crate::sizes::scaled;

/// Whether the exchange is a GET.
fn is_get(http: &Http, exchange: ExchangeId) -> bool {
    http.posts().iter().any(|(x, head, ..)| *x == exchange && head.method == "GET")
}

/// The last GET.
fn stream_of(http: &Http) -> ExchangeId {
    http.posts().iter().rev().find(|(x, ..)| is_get(http, *x)).unwrap().0
}

impl Http {
    fn sse(set: impl FnOnce(&mut ClientConfig)) -> Self {
        Self::with(|config| {
            config.http_mode = HttpMode::Sse;
            set(config);
        })
    }

    /// A client over HTTP+SSE after negotiation, with the endpoint `/m?s=1`.
    fn sse_ready(set: impl FnOnce(&mut ClientConfig)) -> Self {
        let mut http = Self::sse(set);
        http.open_at("/m?s=1");
        http.negotiate();
        http.rig.clear();
        http
    }

    fn endpoint(&mut self, reference: &str) {
        let data = Data::Other { event: "endpoint".into(), data: Bytes::copy_from_slice(reference.as_bytes()) };
        self.item(stream_of(self), Inbound::Event(SseEvent { id: None, retry: None, data }));
    }

    /// The server opens the stream and names its endpoint.
    fn open_at(&mut self, reference: &str) {
        self.stream(stream_of(self));
        self.endpoint(reference);
    }

    /// The server says this on the stream.
    fn on_stream(&mut self, body: &Value) {
        self.event(stream_of(self), body);
    }

    /// The server accepts `initialize`, which was posted last, and `notifications/initialized`.
    fn negotiate(&mut self) {
        let (exchange, id) = self.last();
        self.refuse(exchange, 202);
        self.on_stream(&json!({"jsonrpc": "2.0", "id": id, "result": initialized("2024-11-05")}));
        assert_eq!(self.rig.client.state(), State::Ready);
        let note = self.posts().into_iter().rev().find(|post| post.2["method"] == "notifications/initialized").unwrap();
        self.refuse(note.0, 202);
    }

    /// The stream breaks.
    fn cut(&mut self) {
        let failed = ExchangeEvent::Failed { sent: Sent::Maybe, why: Closed::Reset };
        self.rig.handle_event(stream_of(self), failed);
    }

    fn wait_for_attempt(&mut self) {
        let wait = self.rig.client.poll_timeout().unwrap() - self.rig.now;
        self.rig.tick(wait);
    }

    /// The targets of the POSTs after the first `from`, with their methods.
    fn posted(&self, from: usize) -> Vec<String> {
        let line = |(_, head, body, _): &(ExchangeId, RequestHead, Value, bool)| {
            let what = body["method"].as_str().unwrap_or(if body.is_object() { "response" } else { "-" });
            format!("{} {} {what}", head.method, head.target)
        };
        self.posts()[from..].iter().map(line).collect()
    }
}

fn negotiation(http: &Http) -> NegotiationError {
    match http.rig.termination() {
        Some(Termination::Negotiation(e)) => e.clone(),
        other => panic!("{other:?}"),
    }
}

/// The body of a refusal.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    Html,
    Empty,
    /// A JSON-RPC error with this code, with or without the id of the request.
    Rpc(i64, bool),
}

const REFUSALS: [Refusal; 6] = [
    Refusal::Html,
    Refusal::Empty,
    Refusal::Rpc(-32000, false),
    Refusal::Rpc(-32600, true),
    Refusal::Rpc(-32601, true),
    Refusal::Rpc(-32020, true),
];

fn refuse(http: &mut Http, status: u16, with: Refusal) {
    let (exchange, id) = http.last();
    http.head(exchange, status);
    match with {
        Refusal::Html => http.item(exchange, Inbound::Body(Bytes::from_static(b"<html>"))),
        Refusal::Empty => {}
        Refusal::Rpc(code, named) => {
            let mut body = error(&id, code);
            if !named {
                body.as_object_mut().unwrap().remove("id");
            }
            http.item(exchange, Inbound::Message(parse(body.to_string().into(), 128).unwrap()));
        }
    }
    http.item(exchange, Inbound::End);
}

// covers: S3-47, S3-48, S3-49, SSE24-C-007, SSE24-C-008, SSE24-C-009, X-26, X-42, X-43, R-02
#[test]
fn ladder_goes_down_by_status_and_body_each_rung_once() {
    for status in [400, 401, 403, 404, 405, 406, 408, 415, 422, 429, 500, 501, 503, 307] {
        for with in REFUSALS {
            let is_modern = matches!(with, Refusal::Rpc(-32020, _));
            // From the first rung to the second: any status that a server of the other era may
            // send.
            let mut http = Http::new();
            refuse(&mut http, status, with);
            let goes_on = matches!(status, 400 | 404 | 405 | 406 | 415 | 422 | 501) && status < 500 && !is_modern;
            assert_eq!(http.posted(0).len(), if goes_on { 2 } else { 1 }, "{status} {with:?}");
            if !goes_on {
                assert!(http.rig.termination().is_some(), "{status} {with:?}");
                continue;
            }
            // From the second to the third: 400, 404 and 405 only.
            refuse(&mut http, status, with);
            let goes_on = matches!(status, 400 | 404 | 405);
            assert_eq!(http.posted(2), if goes_on { vec!["GET /mcp?x=1 -"] } else { vec![] }, "{status} {with:?}");
            if !goes_on {
                let e = negotiation(&http);
                assert_eq!((e.stage, e.earlier.len()), (Stage::Initialize, 1), "{status} {with:?}");
                continue;
            }
            // The last rung fails.
            let mut refused = http;
            refuse(&mut refused, status, with);
            let e = negotiation(&refused);
            assert_eq!(e.stage, Stage::Endpoint);
            let stages: Vec<Stage> = e.earlier.iter().map(|RefusedAttempt { stage, .. }| *stage).collect();
            assert_eq!(stages, [Stage::Discover, Stage::Initialize], "{status} {with:?}");
            let text = e.to_string();
            for rung in
                ["`endpoint` event of HTTP+SSE failed", "before that, server/discover: ", "before that, initialize: "]
            {
                assert!(text.contains(rung), "{text}");
            }
            assert_eq!(refused.posted(0).len(), 3, "each rung once");
            refused.assert_at_rest();
        }
    }
}

// covers: S3-47, S3-49, SSE24-C-005
#[test]
fn server_of_http_sse_is_found_without_a_word_about_it() {
    for status in [400, 404, 405] {
        let mut http = Http::new();
        let call = http.rig.echo();
        refuse(&mut http, status, Refusal::Html);
        refuse(&mut http, status, Refusal::Empty);
        http.open_at("/messages?sessionId=7");
        assert_eq!(http.posted(3), ["POST /messages?sessionId=7 initialize"]);
        http.negotiate();
        let verdict = http.rig.client.verdict().unwrap();
        assert_eq!((verdict.version, verdict.transport), (ProtocolVersion::V2024_11_05, HttpTransport::Sse));
        let (post, id) = http.last();
        http.refuse(post, 202);
        http.on_stream(&result(&id));
        assert!(http.rig.outcome(call).is_ok());
        assert_eq!(
            http.rig.diagnostics(),
            [DiagnosticKind::FellBackToLegacy, DiagnosticKind::FellBackToSse],
            "{status}"
        );
    }
}

//
#[test]
fn mode_of_the_application_limits_the_ladder() {
    let mut http = Http::with(|config| config.http_mode = HttpMode::Streamable);
    refuse(&mut http, 404, Refusal::Empty);
    refuse(&mut http, 404, Refusal::Empty);
    assert_eq!(negotiation(&http).stage, Stage::Initialize);
    let mut http = Http::sse(|_| {});
    assert_eq!(http.posted(0), ["GET /mcp?x=1 -"], "`initialize` waits for the endpoint");
    refuse(&mut http, 405, Refusal::Empty);
    let e = negotiation(&http);
    assert_eq!((e.stage, e.earlier.len()), (Stage::Endpoint, 0));
    assert!(matches!(e.cause, NegotiationCause::Http(e) if e.status == 405));
    let http = Http::with(|config| (config.http_mode, config.policy) = (HttpMode::Sse, Policy::Modern));
    assert_eq!(http.posted(0).len(), 1, "2026-07-28 does not exist over HTTP+SSE");
    assert_eq!(http.posts()[0].2["method"], "server/discover");
}

// covers: B-214
#[test]
fn challenge_stops_the_ladder_on_each_rung() {
    for rung in 0..3 {
        for status in [401, 403] {
            let mut http = Http::new();
            (0..rung).for_each(|_| refuse(&mut http, 404, Refusal::Empty));
            refuse(&mut http, status, Refusal::Empty);
            let e = negotiation(&http);
            assert!(matches!(e.cause, NegotiationCause::Http(e) if e.status == status), "{rung} {status}");
            assert_eq!(e.earlier.len(), rung);
            assert_eq!(http.posted(0).len(), rung + 1);
            http.assert_at_rest();
        }
    }
}

// covers: B-214, S0-45
#[test]
fn challenged_stream_opens_with_credentials() {
    let mut http = Http::sse(|config| config.authorize = true);
    let call = http.rig.echo();
    http.refuse(stream_of(&http), 401);
    let token = http.rig.events.iter().find_map(|event| match event {
        Event::AuthNeeded { token, .. } => Some(token.key()),
        _ => None,
    });
    // Only the total limits run meanwhile.
    http.rig.tick(Duration::from_secs(3600));
    let headers = Headers::new().with("Authorization", "Bearer 1");
    let input = Input::Command(ClientCommand::Authorize(token.unwrap(), Authorization::Headers(headers)));
    http.rig.client.apply(http.rig.now, input).unwrap();
    http.rig.drain();
    http.open_at("/m");
    http.negotiate();
    let posts = http.posts();
    assert!(posts.len() >= 5);
    assert!(posts[1..].iter().all(|post| post.1.headers.get("authorization").is_some()), "every request has them");
    let (_, id) = http.last();
    http.on_stream(&result(&id));
    assert!(http.rig.outcome(call).is_ok());
}

// covers: SSE24-C-005, S4-05, S4-06, S4-07, S4-08, S4-11, S4-12, B-264
#[test]
fn each_endpoint_event_replaces_the_target_of_later_messages() {
    let mut http = Http::sse_ready(|_| {});
    let first = http.rig.echo();
    let (in_flight, first_id) = http.last();
    let from = http.posts().len();
    for (reference, target) in [
        ("http://127.0.0.1:8000/abs?s=2", "/abs?s=2"),
        ("?s=3", "/mcp?s=3"),
        ("/root", "/root"),
        ("relative", "/relative"),
    ] {
        http.endpoint(reference);
        http.rig.echo();
        assert_eq!(http.posted(from).last().unwrap(), &format!("POST {target} tools/call"));
    }
    // The POST in flight stays where it was sent, and its response arrives.
    http.refuse(in_flight, 202);
    http.on_stream(&result(&first_id));
    assert!(http.rig.outcome(first).is_ok());
    assert_eq!(http.rig.diagnostics(), []);
}

// covers: S4-01, S4-02, S4-13, SSE24-S-006
#[test]
fn stream_carries_every_kind_of_message() {
    let mut http = Http::sse_ready(|config| config.capabilities.roots = Some(Default::default()));
    let call = http.rig.call(tools::call("x").progress());
    let (post, id) = http.last();
    // The response to the POST may come after the response on the stream.
    http.on_stream(&note(&id, 1));
    http.on_stream(&json!({"jsonrpc": "2.0", "id": 5, "method": "roots/list"}));
    http.on_stream(&json!({"jsonrpc": "2.0", "method": "acme/other"}));
    let key = http.rig.questions()[0].0;
    http.rig.reply(key, InputAnswer::roots(["file:///"]));
    let (answer, ..) = http.posts().pop().unwrap();
    assert_eq!(http.posted(http.posts().len() - 1), ["POST /m?s=1 response"]);
    http.refuse(answer, 202);
    http.on_stream(&result(&id));
    assert!(http.rig.outcome(call).is_ok());
    assert!(http.rig.events.iter().any(|event| matches!(event, Event::Progress { .. })));
    assert!(http.rig.events.iter().any(|event| matches!(event, Event::Notification { .. })));
    http.refuse(post, 202);
    // A text id is matched as on every transport, a foreign one is not.
    let call = http.rig.echo();
    let (post, id) = http.last();
    http.refuse(post, 202);
    http.on_stream(&result(&json!(999)));
    assert!(!http.rig.has_ended(call));
    http.on_stream(&result(&json!(id.to_string())));
    assert!(http.rig.outcome(call).is_ok());
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::UnknownId, DiagnosticKind::TextId]);
}

// covers: B-261, SSE24-C-005
#[test]
fn requests_before_the_endpoint_event_end_with_the_stream() {
    type Fail = fn(&mut Http);
    let fails: [(&str, Fail); 6] = [
        ("end", |http| http.item(stream_of(http), Inbound::End)),
        ("reset", Http::cut),
        ("status", |http| http.refuse(stream_of(http), 503)),
        ("type", |http| {
            let headers = Headers::new().with("content-type", "text/html");
            http.item(stream_of(http), Inbound::Response(ResponseHead { status: 200, headers }));
        }),
        ("origin", |http| {
            http.stream(stream_of(http));
            http.endpoint("https://elsewhere.example/m");
        }),
        ("silence", |http| {
            http.stream(stream_of(http));
            http.rig.tick(Duration::from_secs(30));
        }),
    ];
    for (name, fail) in fails {
        let mut http = Http::sse(|_| {});
        let call = http.rig.call(tools::call("x").timeout(None));
        fail(&mut http);
        assert!(
            matches!(http.rig.outcome(call), Err(CallError::Negotiation(e)) if e.stage == Stage::Endpoint),
            "{name}"
        );
        assert_eq!(http.posted(0), ["GET /mcp?x=1 -"], "{name}: nothing was posted");
        http.assert_at_rest();
    }
    // A call with a deadline of its own does not outlast it.
    let mut http = Http::sse(|_| {});
    let call = http.rig.call(tools::call("x").timeout(Some(ms(700))));
    http.rig.tick(ms(700));
    assert!(matches!(http.rig.outcome(call), Err(CallError::Timeout { .. })));
}

// covers: B-261
#[test]
fn refused_stream_names_no_endpoint() {
    let mut http = Http::sse(|_| {});
    let stream = stream_of(&http);
    let headers = Headers::new().with("content-type", "text/event-stream");
    http.item(stream, Inbound::Response(ResponseHead { status: 400, headers }));
    http.endpoint("/m?s=1");
    assert_eq!(http.posted(0), ["GET /mcp?x=1 -"], "nothing was posted");
    http.item(stream, Inbound::End);
    let e = negotiation(&http);
    assert!(matches!(e.cause, NegotiationCause::Http(e) if e.status == 400));
    http.assert_at_rest();
}

// covers: B-262, B-263, R-22
#[test]
fn other_origin_gets_neither_messages_nor_credentials() {
    let elsewhere = HttpTarget::parse("https://elsewhere.example/").unwrap().origin;
    let secret = |config: &mut ClientConfig| {
        config.headers = Headers::new().with("Authorization", "Bearer secret").with("X-Tenant", "a");
    };
    let mut http = Http::sse(secret);
    http.open_at("https://elsewhere.example/m");
    assert!(matches!(&negotiation(&http).cause, NegotiationCause::BadEndpoint(why) if why.contains("another origin")));
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::BadEndpoint]);
    for (allowed, has_secret) in
        [(EndpointOrigin::List([elsewhere.clone()].into()), true), (EndpointOrigin::Any, false)]
    {
        let mut http = Http::sse(|config| {
            config.headers = Headers::new().with("X-Tenant", "a");
            config.compat.endpoint_origin = allowed.clone();
            config.authorize = true;
        });
        http.refuse(stream_of(&http), 401);
        let Some(Event::AuthNeeded { token, .. }) = http.rig.events.first() else { panic!() };
        let with = Authorization::Headers(Headers::new().with("Authorization", "Bearer secret"));
        let input = Input::Command(ClientCommand::Authorize(token.key(), with));
        http.rig.client.apply(http.rig.now, input).unwrap();
        http.rig.drain();
        http.open_at("https://elsewhere.example/m");
        let Start::Http { origin, head, .. } = &http.rig.starts.last().unwrap().1 else { panic!() };
        let is_elsewhere = |origin: &Origin| *origin == elsewhere;
        assert!(is_elsewhere(origin));
        assert_eq!(head.headers.get("host"), Some("elsewhere.example"));
        for field in ["authorization", "x-tenant"] {
            assert_eq!(head.headers.get(field).is_some(), has_secret, "{allowed:?} {field}");
        }
    }
}

// covers: B-264, S4-05, S4-12
#[test]
fn other_endpoint_of_a_reopened_stream_is_a_new_session() {
    let mut http = Http::sse_ready(|_| {});
    let lost = http.rig.echo();
    let (post, _) = http.last();
    http.refuse(post, 202);
    let safe = http.rig.call(tools::call("y").repeatable());
    http.cut();
    let queued = http.rig.echo();
    assert!(!http.rig.has_ended(lost), "the server may send it on the next stream");
    http.wait_for_attempt();
    let from = http.posts().len();
    http.open_at("/m?s=2");
    let error = http.rig.outcome(lost).clone().unwrap_err();
    assert_eq!(error, CallError::Closed { sent: Sent::Maybe, why: Closed::Reset });
    assert_eq!(http.posted(from), ["POST /m?s=2 initialize"], "nothing goes out before the new session is open");
    let from = http.posts().len();
    http.negotiate();
    assert_eq!(
        http.posted(from),
        ["POST /m?s=2 notifications/initialized", "POST /m?s=2 tools/call", "POST /m?s=2 tools/call"]
    );
    for post in &http.posts()[from + 1..] {
        http.on_stream(&result(&post.2["id"]));
    }
    assert!(http.rig.outcome(safe).is_ok() && http.rig.outcome(queued).is_ok());
}

// covers: B-264, S4-05
#[test]
fn endpoint_of_a_reopened_stream_can_continue_the_session() {
    // Because it is the same, or because the application says so.
    for (reference, refresh) in [("/m?s=1", EndpointRefresh::NewSession), ("/m?s=2", EndpointRefresh::Continue)] {
        let mut http = Http::sse_ready(|config| {
            config.compat.endpoint_refresh = refresh;
            config.watch.tools = true;
        });
        let waiting = http.rig.echo();
        let (post, id) = http.last();
        http.refuse(post, 202);
        http.cut();
        let held = http.rig.echo();
        http.wait_for_attempt();
        let from = http.posts().len();
        http.open_at(reference);
        assert_eq!(http.posted(from), [format!("POST {reference} tools/call")]);
        let (_, held_id) = http.last();
        http.on_stream(&result(&id));
        http.on_stream(&result(&held_id));
        assert!(http.rig.outcome(waiting).is_ok() && http.rig.outcome(held).is_ok(), "{refresh:?}");
        let changes = http.rig.events.iter().filter(|event| matches!(event, Event::Changed(_))).count();
        assert_eq!(changes, 1, "a change may have been missed");
    }
}

// covers: B-265
#[test]
fn nothing_is_posted_while_the_stream_is_down() {
    let mut http = Http::sse_ready(|config| config.capabilities.roots = Some(Default::default()));
    http.on_stream(&json!({"jsonrpc": "2.0", "id": 5, "method": "roots/list"}));
    http.cut();
    let from = http.posts().len();
    let call = http.rig.echo();
    let key = http.rig.questions()[0].0;
    http.rig.reply(key, InputAnswer::roots(["file:///"]));
    http.rig.client.notify(http.rig.now, "acme/n", Object::new()).unwrap();
    http.rig.drain();
    assert_eq!(http.posted(from), Vec::<String>::new());
    http.wait_for_attempt();
    assert_eq!(http.posted(from), ["GET /mcp?x=1 -"]);
    http.stream(stream_of(&http));
    assert_eq!(http.posted(from).len(), 1, "the head is no endpoint");
    http.endpoint("/m?s=1");
    assert_eq!(
        http.posted(from + 1),
        ["POST /m?s=1 tools/call", "POST /m?s=1 response", "POST /m?s=1 acme/n"],
        "in the order of the application"
    );
    // A call that is cancelled meanwhile leaves nothing.
    http.cut();
    let from = http.posts().len();
    let cancelled = http.rig.echo();
    http.rig.client.cancel(http.rig.now, cancelled, None);
    http.rig.client.cancel(http.rig.now, call, None);
    http.wait_for_attempt();
    http.open_at("/m?s=1");
    assert_eq!(http.posted(from), ["GET /mcp?x=1 -", "POST /m?s=1 notifications/cancelled"], "of the one it knows");
}

// covers: S1-02, S1-06, B-025
#[test]
fn wait_for_the_next_stream_is_short_while_a_call_waits() {
    let wait = |calls: bool, rounds: usize| {
        let mut http = Http::sse_ready(|config| config.timeout = None);
        if calls {
            http.rig.echo();
        }
        for _ in 0..rounds {
            http.cut();
            http.wait_for_attempt();
            http.open_at("/m?s=1");
        }
        http.cut();
        http.rig.events.iter().rev().find_map(|event| match event {
            Event::Reconnecting { stream: StreamOf::Listener, wait, .. } => Some(wait.as_millis() as u64),
            _ => None,
        })
    };
    assert!((1_000..=1_100).contains(&wait(false, 0).unwrap()));
    assert!((30_000..=33_000).contains(&wait(false, 12).unwrap()));
    assert!((5_000..=5_500).contains(&wait(true, 12).unwrap()));
    // A call that is made while the client waits shortens the wait.
    let mut http = Http::sse_ready(|config| config.timeout = None);
    for _ in 0..12 {
        http.cut();
        http.wait_for_attempt();
        http.open_at("/m?s=1");
    }
    http.cut();
    http.rig.tick(ms(1_000));
    http.rig.echo();
    let left = http.rig.client.poll_timeout().unwrap() - http.rig.now;
    assert!((4_000..=4_500).contains(&(left.as_millis() as u64)), "{left:?}");
}

// covers: B-025, B-261, B-265
#[test]
fn lost_stream_ends_its_calls_and_the_next_call_opens_it() {
    for watches in [false, true] {
        let mut http = Http::sse_ready(|config| config.watch.tools = watches);
        let call = http.rig.call(tools::call("x").timeout(None));
        let (post, _) = http.last();
        http.refuse(post, 202);
        http.cut();
        for _ in 0..2 {
            http.wait_for_attempt();
            http.cut();
        }
        let error = http.rig.outcome(call).clone().unwrap_err();
        assert_eq!(error, CallError::Closed { sent: Sent::Maybe, why: Closed::Reset });
        let lost: Vec<_> = http.rig.events.iter().filter(|event| matches!(event, Event::ListenerLost { .. })).collect();
        let again = watches.then_some(Duration::from_secs(30));
        let cause = StreamEnd::Closed(Closed::Reset);
        assert_eq!(lost, [&Event::ListenerLost { cause, again, ends_session: true }]);
        assert_eq!(http.rig.client.state(), State::Lapsed);
        let from = http.posts().len();
        let next = http.rig.echo();
        assert_eq!(http.posted(from), ["GET /mcp?x=1 -"]);
        http.open_at("/m?s=9");
        http.negotiate();
        let (_, id) = http.last();
        http.on_stream(&result(&id));
        assert!(http.rig.outcome(next).is_ok());
        assert_eq!(http.rig.client.cx.env.ids.pending(), 0, "it asked for one session");
    }
}

/// Neither for the sake of a call that waits, which the server has not got, nor by a session that
/// is given up.
// covers: B-025, S0-61
#[test]
fn refused_stream_of_sse_is_not_opened_before_its_time() {
    for (watches, calls, strict) in
        [(false, false, false), (true, false, false), (false, true, false), (true, true, true)]
    {
        let mut http = Http::sse_ready(|config| {
            config.watch.tools = watches;
            config.resume = if strict { Resume::Strict(1) } else { Resume::Progress };
        });
        http.cut();
        let held = calls.then(|| http.rig.call(tools::call("x").timeout(None)));
        for attempt in 1..=if strict { 1 } else { 2 } {
            http.wait_for_attempt();
            http.put_off(stream_of(&http), 60);
            assert_eq!(http.rig.client.state() == State::Ready, attempt == 1 && !strict);
        }
        assert!(http.waits().iter().skip(1).all(|wait| (60_000..=66_000).contains(wait)), "{:?}", http.waits());
        let lost = http.rig.events.iter().find_map(|event| match event {
            Event::ListenerLost { cause, again, ends_session: true } => Some((cause.to_string(), *again)),
            _ => None,
        });
        let again = watches.then_some(Duration::from_secs(60));
        assert_eq!(lost, Some(("HTTP 503 [retry after 60 s]".to_string(), again)));
        if let Some(held) = held {
            let Err(CallError::Negotiation(why)) = http.rig.outcome(held) else {
                panic!("{:?}", http.rig.outcome(held))
            };
            assert_eq!(why.retry_after(), Some(Duration::from_secs(60)), "{why}");
        }
        let from = http.posts().len();
        http.rig.tick(ms(59_999));
        assert_eq!(http.posted(from), Vec::<String>::new());
        http.rig.tick(ms(1));
        assert_eq!(http.posted(from), if watches { vec!["GET /mcp?x=1 -"] } else { vec![] });
    }
}

// covers: B-025
#[test]
fn lost_stream_is_tried_again_while_changes_are_watched() {
    let mut http = Http::sse_ready(|config| config.watch.tools = true);
    http.cut();
    for _ in 0..2 {
        http.wait_for_attempt();
        http.cut();
    }
    let from = http.posts().len();
    http.rig.clear();
    http.rig.tick(Duration::from_secs(30));
    assert_eq!(http.posted(from), ["GET /mcp?x=1 -"]);
    http.open_at("/m?s=1");
    http.negotiate();
    assert!(http.rig.events.contains(&Event::Changed(Change::Tools)), "it may have changed meanwhile");
}

// covers: S0-48, B-264, HTTP-C-027
#[test]
fn refused_post_ends_its_call_or_its_session() {
    let mut http = Http::sse_ready(|_| {});
    let call = http.rig.echo();
    let (post, _) = http.last();
    http.head(post, 500);
    http.item(post, Inbound::Body(Bytes::from_static(b"no")));
    http.item(post, Inbound::End);
    assert_eq!(http.rig.outcome(call).clone().unwrap_err().to_string(), "HTTP 500: no");
    let call = http.rig.echo();
    let (post, id) = http.last();
    http.answer(post, 400, &error(&id, -32600));
    assert!(matches!(http.rig.outcome(call), Err(CallError::Rpc(e)) if e.code == -32600));
    let call = http.rig.echo();
    let (post, _) = http.last();
    http.rig.handle_event(post, ExchangeEvent::Failed { sent: Sent::No, why: Closed::Refused });
    assert_eq!(http.rig.outcome(call).clone().unwrap_err(), CallError::Closed { sent: Sent::No, why: Closed::Refused });
    // A session that the server does not know has ended, although the stream is open.
    let unknown = http.rig.echo();
    let (post, _) = http.last();
    let old = stream_of(&http);
    http.refuse(post, 404);
    assert!(http.rig.aborted.contains(&old));
    http.open_at("/m?s=2");
    http.negotiate();
    let (_, id) = http.last();
    http.on_stream(&result(&id));
    assert!(http.rig.outcome(unknown).is_ok(), "it has not run, so it was sent again");
}

// covers: B-265, PING-B-004
#[test]
fn silent_stream_is_checked_with_a_ping_before_it_is_given_up() {
    let mut http = Http::sse_ready(|_| {});
    let from = http.posts().len();
    http.rig.tick(Duration::from_secs(300));
    assert_eq!(http.posted(from), ["POST /m?s=1 ping"]);
    let (post, id) = http.last();
    http.refuse(post, 202);
    http.on_stream(&json!({"jsonrpc": "2.0", "id": id, "result": {}}));
    let old = stream_of(&http);
    http.rig.tick(Duration::from_secs(299));
    assert!(!http.rig.aborted.contains(&old));
    http.rig.tick(Duration::from_secs(1));
    assert_eq!(http.posted(from), ["POST /m?s=1 ping", "POST /m?s=1 ping"]);
    http.rig.tick(Duration::from_secs(10));
    assert!(http.rig.aborted.contains(&old), "it is dead");
    http.wait_for_attempt();
    assert_eq!(http.posted(from).last().unwrap(), "GET /mcp?x=1 -");
}

// covers: B-088, S0-38
#[test]
fn close_ends_the_stream_and_sends_no_delete() {
    let mut http = Http::sse_ready(|_| {});
    let call = http.rig.echo();
    let from = http.posts().len();
    http.rig.client.close(http.rig.now);
    http.rig.drain();
    assert!(matches!(http.rig.outcome(call), Err(CallError::Closed { .. })));
    assert!(http.rig.aborted.contains(&stream_of(&http)));
    assert_eq!(http.posted(from), Vec::<String>::new());
    assert!(http.rig.client.is_terminated());
    http.assert_at_rest();
}

//
#[test]
fn verdict_for_http_sse_is_tried_first_and_may_be_wrong() {
    let verdict = Verdict { version: ProtocolVersion::V2025_03_26, transport: HttpTransport::Sse };
    let mut http = Http::with(|config| config.verdict = Some(verdict));
    assert_eq!(http.posted(0), ["GET /mcp?x=1 -"]);
    http.open_at("/m");
    assert_eq!(http.posts().last().unwrap().2["params"]["protocolVersion"], "2025-03-26");
    http.negotiate();
    let mut http = Http::with(|config| config.verdict = Some(verdict));
    refuse(&mut http, 405, Refusal::Empty);
    assert_eq!(http.posted(1), ["POST /mcp?x=1 server/discover"]);
    let (exchange, id) = http.last();
    http.answer(exchange, 200, &discover_body(&id, &["2026-07-28"]));
    assert_eq!(http.rig.client.verdict(), Some(Verdict::new(ProtocolVersion::V2026_07_28)));
    // A server that offers nothing is asked for each transport once.
    let mut http = Http::with(|config| config.verdict = Some(verdict));
    (0..3).for_each(|_| refuse(&mut http, 405, Refusal::Empty));
    let e = negotiation(&http);
    assert_eq!((e.stage, e.earlier.len(), http.posts().len()), (Stage::Initialize, 2, 3));
    http.assert_at_rest();
}

// covers: S4-04, S4-09
#[test]
fn undecodable_event_ends_neither_the_stream_nor_a_call() {
    let mut http = Http::sse_ready(|_| {});
    let call = http.rig.echo();
    let (post, id) = http.last();
    http.refuse(post, 202);
    let stream = stream_of(&http);
    let data = Data::Invalid(parse(Bytes::from_static(b"{"), 128).unwrap_err());
    http.item(stream, Inbound::Event(SseEvent { id: Some("4".into()), retry: None, data }));
    let [Event::Diagnostic(diagnostic)] = &http.rig.events[..] else { panic!("{:?}", http.rig.events) };
    assert_eq!(diagnostic.kind, DiagnosticKind::BadMessage);
    let text = diagnostic.to_string();
    assert!(text.ends_with("; on the stream of http://127.0.0.1:8000/mcp?x=1 after the event 4"), "{text}");
    http.on_stream(&result(&id));
    assert!(http.rig.outcome(call).is_ok());
    assert!(!http.rig.aborted.contains(&stream));
}

// covers: S4-13
#[test]
fn broken_streams_cause_no_diagnostics() {
    let mut http = Http::sse_ready(|config| config.timeout = None);
    http.rig.echo();
    for _ in 0..20 {
        http.cut();
        http.wait_for_attempt();
        http.open_at("/m?s=1");
        http.item(stream_of(&http), Inbound::End);
        http.wait_for_attempt();
        http.open_at("/m?s=1");
    }
    assert_eq!(http.rig.diagnostics(), []);
}

// covers: B-264, S4-13
#[test]
fn storm_of_endpoint_events_costs_nothing_but_the_last() {
    let mut http = Http::sse_ready(|_| {});
    let from = http.posts().len();
    const MANY: usize = scaled(10_000);
    for n in 1..=MANY {
        http.endpoint(&format!("/m?s={n}"));
    }
    assert_eq!(http.posts().len(), from);
    http.rig.echo();
    assert_eq!(http.posted(from), [format!("POST /m?s={MANY} tools/call")]);
    assert_eq!(http.rig.events, []);
}

// covers: B-261, B-265
#[test]
fn held_notification_ends_at_its_timeout() {
    let mut http = Http::sse_ready(|_| {});
    http.cut();
    let from = http.posts().len();
    let id = http.rig.client.notify_tracked(http.rig.now, "acme/n", Object::new()).unwrap();
    http.rig.tick(Duration::from_secs(30));
    assert_eq!(http.rig.notified(), [(id.0, Err(CallError::Closed { sent: Sent::No, why: Closed::Timeout }))]);
    assert_eq!(http.posted(from), ["GET /mcp?x=1 -"], "the stream was tried again");
    http.open_at("/m?s=1");
    assert_eq!(http.posted(from).len(), 1, "the notification is gone");
}

// covers: B-261, S0-45
#[test]
fn response_to_a_challenged_request_ends_the_wait() {
    let mut http = Http::sse(|config| config.authorize = true);
    http.open_at("/m");
    let call = http.rig.echo();
    let (post, id) = http.last();
    http.refuse(post, 401);
    // The clock of the call is stopped until the server answers what it has refused.
    http.rig.tick(Duration::from_secs(40));
    http.on_stream(&json!({"jsonrpc": "2.0", "id": id, "result": initialized("2024-11-05")}));
    assert_eq!(http.rig.client.state(), State::Ready);
    http.rig.tick(Duration::from_secs(30));
    assert!(matches!(http.rig.outcome(call), Err(CallError::Timeout { .. })));
}

// covers: B-261
#[test]
fn call_after_a_silent_renewal_opens_the_stream_again() {
    let mut http = Http::sse_ready(|_| {});
    http.rig.echo();
    http.refuse(http.last().0, 404);
    // The new stream never names an endpoint.
    assert_eq!(http.rig.client.state(), State::Initializing);
    http.rig.tick(Duration::from_secs(30));
    assert_eq!(http.rig.client.state(), State::Lapsed);
    let streams = http.posts().iter().filter(|post| post.1.method == "GET").count();
    let call = http.rig.echo();
    assert_eq!(http.posts().iter().filter(|post| post.1.method == "GET").count(), streams + 1);
    http.open_at("/m?s=2");
    http.negotiate();
    let (posted, id) = http.last();
    http.refuse(posted, 202);
    http.on_stream(&json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}}));
    assert!(http.rig.outcome(call).is_ok());
}

/// Some servers write the response to a request into the body of its POST, although it belongs on
/// the stream.
// covers: SSE24-C-007
#[test]
fn response_in_the_body_of_a_post_is_taken() {
    for status in [200, 202] {
        let mut http = Http::sse(|_| {});
        http.open_at("/m?s=1");
        // Also that of the handshake.
        let (exchange, id) = http.last();
        http.answer(exchange, status, &json!({"jsonrpc": "2.0", "id": id, "result": initialized("2024-11-05")}));
        assert_eq!(http.rig.client.state(), State::Ready);
        let note = http.last().0;
        http.refuse(note, 202);
        http.rig.clear();
        let call = http.rig.echo();
        let (exchange, id) = http.last();
        http.answer(exchange, status, &result(&id));
        assert!(http.rig.outcome(call).is_ok());
        assert_eq!(http.rig.diagnostics(), [DiagnosticKind::MisplacedResponse]);
        // The stream may carry it too, and only there is it large.
        http.on_stream(&result(&id));
        assert_eq!(http.rig.diagnostics(), [DiagnosticKind::MisplacedResponse, DiagnosticKind::LateAnswer]);
        let call = http.rig.echo();
        let (exchange, id) = http.last();
        let text = "x".repeat(100_000);
        let body = json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}});
        http.answer(exchange, status, &body);
        assert!(http.rig.outcome(call).is_ok());
    }
    // Nothing else in the body of a POST counts: the response of another request, and a request.
    let mut http = Http::sse_ready(|_| {});
    let calls = [http.rig.echo(), http.rig.echo()];
    let (exchange, id) = http.last();
    let other = json!(id.as_i64().unwrap() - 1);
    for body in [result(&other), json!({"jsonrpc": "2.0", "id": 9, "method": "ping"})] {
        http.head(exchange, 200);
        http.item(exchange, Inbound::Message(parse(body.to_string().into(), 128).unwrap()));
    }
    http.item(exchange, Inbound::End);
    assert!(calls.iter().all(|call| !http.rig.has_ended(*call)));
    assert_eq!(http.rig.diagnostics(), []);
}
