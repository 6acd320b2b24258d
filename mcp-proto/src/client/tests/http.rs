use super::*;
use crate::error::{HttpError, NegotiationCause, Stage};
use crate::exchange::{Data, Headers, Peer, RequestHead, ResponseHead, SseEvent};

mod auth;
mod cache;
mod listener;
mod login;
mod notifications;
mod redirects;
mod resume;
mod sessions;
mod sse;
mod streams;
mod subscription;
mod tool_stream;
mod whatever_happens;

/// A client of a URL, and the POST requests that it has started.
pub(super) struct Http {
    pub(super) rig: Rig,
}

impl Http {
    fn new() -> Self {
        Self::with(|_| {})
    }

    pub(super) fn with(set: impl FnOnce(&mut ClientConfig)) -> Self {
        let mut config = ClientConfig::url("http://127.0.0.1:8000/mcp?x=1").unwrap();
        set(&mut config);
        Self { rig: Rig::new(config) }
    }

    pub(super) fn ready() -> Self {
        let mut http = Self::new();
        let (exchange, id) = http.last();
        http.answer(exchange, 200, &discover_body(&id, &["2026-07-28"]));
        assert_eq!(http.rig.client.state(), State::Ready);
        http.rig.clear();
        http
    }

    pub(super) fn posts(&self) -> Vec<(ExchangeId, RequestHead, Value, bool)> {
        let post = |(exchange, start): &(ExchangeId, Start)| match start {
            Start::Http { head, body, repeatable, .. } => {
                // A GET has no body.
                let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(body).unwrap() };
                (*exchange, head.clone(), body, *repeatable)
            }
            Start::Duplex(_) | Start::WebSocket { .. } => panic!(),
        };
        self.rig.starts.iter().map(post).collect()
    }

    /// Returns the exchange and the id of the last POST.
    pub(super) fn last(&self) -> (ExchangeId, Value) {
        let (exchange, _, body, _) = self.posts().pop().unwrap();
        (exchange, body["id"].clone())
    }

    pub(super) fn item(&mut self, exchange: ExchangeId, item: Inbound) {
        self.rig.handle_event(exchange, ExchangeEvent::Inbound(item));
    }

    fn head(&mut self, exchange: ExchangeId, status: u16) {
        self.item(exchange, Inbound::Response(ResponseHead { status, headers: Headers::new() }));
    }

    /// A client with a session `s1` of a server of 2025-11-25. Only `initialize` was answered.
    fn initialized(set: impl FnOnce(&mut ClientConfig)) -> Self {
        let mut http = Self::with(|config| {
            config.policy = Policy::Legacy;
            set(config);
        });
        http.accept("s1");
        http
    }

    /// Like [`Self::initialized`], with everything open: `initialized` was accepted, and an enabled
    /// listener has its event stream.
    fn legacy(set: impl FnOnce(&mut ClientConfig)) -> Self {
        let mut http = Self::initialized(set);
        let note = http.last().0;
        http.refuse(note, 202);
        if http.last().0 != note {
            let listener = http.last().0;
            http.stream(listener);
        }
        assert_eq!(http.rig.client.state(), State::Ready);
        http.rig.clear();
        http
    }

    /// The server accepts `initialize` with this session.
    fn accept(&mut self, session: &str) {
        self.accept_with(session, &json!({"tools": {}}));
    }

    /// Like [`accept`](Self::accept), with these capabilities.
    pub(super) fn accept_with(&mut self, session: &str, capabilities: &Value) {
        let (exchange, id) = self.last();
        let headers = Headers::new().with("content-type", "application/json").with("mcp-session-id", session);
        self.item(exchange, Inbound::Response(ResponseHead { status: 200, headers }));
        let mut body = json!({"jsonrpc": "2.0", "id": id, "result": initialized("2025-11-25")});
        body["result"]["capabilities"] = capabilities.clone();
        self.item(exchange, Inbound::Message(parse(body.to_string().into(), 128).unwrap()));
        self.item(exchange, Inbound::End);
    }

    /// Sends a response without a body.
    pub(super) fn refuse(&mut self, exchange: ExchangeId, status: u16) {
        self.head(exchange, status);
        self.item(exchange, Inbound::End);
    }

    /// Refuses an exchange for this number of seconds.
    pub(super) fn put_off(&mut self, exchange: ExchangeId, seconds: u64) {
        let headers = Headers::new().with("retry-after", seconds.to_string());
        self.item(exchange, Inbound::Response(ResponseHead { status: 503, headers }));
        self.item(exchange, Inbound::End);
    }

    /// Returns the exchanges after the first `from`, as `METHOD detail`: the method of the message,
    /// or the last event id of a GET.
    pub(super) fn lines(&self, from: usize) -> Vec<String> {
        let line = |(_, head, body, _): &(ExchangeId, RequestHead, Value, bool)| {
            let what = match body["method"].as_str() {
                Some(method) => method,
                None if body.is_object() => "response",
                None => head.headers.get("last-event-id").unwrap_or("-"),
            };
            format!("{} {what}", head.method)
        };
        self.posts()[from..].iter().map(line).collect()
    }

    /// Sends an event with an id, and optionally a `retry` and a message.
    fn numbered(&mut self, exchange: ExchangeId, id: &str, retry: Option<u64>, body: Option<&Value>) {
        let data = body.map_or(Data::None, |body| Data::Message(parse(body.to_string().into(), 128).unwrap()));
        self.item(exchange, Inbound::Event(SseEvent { id: Some(id.into()), retry: retry.map(ms), data }));
    }

    /// Returns the waits of the reported attempts.
    fn waits(&self) -> Vec<u64> {
        let wait = |event: &Event| match event {
            Event::Reconnecting { wait, .. } => Some(wait.as_millis() as u64),
            _ => None,
        };
        self.rig.events.iter().filter_map(wait).collect()
    }

    /// Sends a complete JSON response.
    pub(super) fn answer(&mut self, exchange: ExchangeId, status: u16, body: &Value) {
        self.head(exchange, status);
        self.item(exchange, Inbound::Message(parse(body.to_string().into(), 128).unwrap()));
        self.item(exchange, Inbound::End);
    }

    /// Sends the head of an event stream.
    pub(super) fn stream(&mut self, exchange: ExchangeId) {
        let headers = Headers::new().with("content-type", "text/event-stream");
        self.item(exchange, Inbound::Response(ResponseHead { status: 200, headers }));
    }

    pub(super) fn event(&mut self, exchange: ExchangeId, body: &Value) {
        let data = Data::Message(parse(body.to_string().into(), 128).unwrap());
        self.item(exchange, Inbound::Event(SseEvent { id: None, retry: None, data }));
    }

    fn assert_at_rest(&self) {
        self.rig.assert_at_rest();
        assert!(self.rig.client.cx.link.is_empty());
    }
}

fn discover_body(id: &Value, versions: &[&str]) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": discover(versions)})
}

fn result(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": [], "resultType": "complete"}})
}

fn note(token: &Value, n: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": n}})
}

// covers: HTTP-C-007, HTTP-C-008, HTTP-C-009, HTTP-C-010, HDR-C-001, HDR-C-002, HDR-C-004,
// HDR-C-005, VER-C-028, S0-14, S3-04
#[test]
fn each_request_is_a_post_with_matching_headers() {
    let mut http = Http::ready();
    http.rig.call(tools::call("tool ü"));
    http.rig.call(tools::list());
    http.rig.call(custom::<Value>("resources/read", &json!({"uri": "file:///a"})));
    let posts = http.posts();
    assert_eq!(posts.len(), 4);
    for (_, head, body, _) in &posts {
        assert_eq!((&*head.method, &*head.target), ("POST", "/mcp?x=1"));
        assert_eq!(head.headers.get("host"), Some("127.0.0.1:8000"));
        assert_eq!(head.headers.get("content-type"), Some("application/json"));
        assert_eq!(head.headers.get("accept"), Some("application/json, text/event-stream"));
        let version = body.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion").unwrap();
        assert_eq!(head.headers.get("mcp-protocol-version"), version.as_str());
        assert_eq!(head.headers.get("mcp-method"), body["method"].as_str());
        assert!(body.is_object());
    }
    let names: Vec<_> = posts.iter().map(|(_, head, ..)| head.headers.get("mcp-name")).collect();
    assert_eq!(names, [None, Some("=?base64?dG9vbCDDvA==?="), None, Some("file:///a")]);
    assert_eq!(posts.iter().map(|p| p.3).collect::<Vec<_>>(), [true, false, true, false]);
}

// covers: HTTP-C-016, S0-15, S0-16, S0-17, B-078, B-016
#[test]
fn response_may_be_json_or_a_stream() {
    let mut http = Http::ready();
    let json_call = http.rig.echo();
    let (exchange, id) = http.last();
    http.answer(exchange, 200, &result(&id));
    assert!(http.rig.outcome(json_call).is_ok());
    let sse_call = http.rig.call(tools::call("x").progress());
    let (exchange, id) = http.last();
    http.head(exchange, 200);
    http.event(exchange, &note(&id, 1));
    http.item(exchange, Inbound::Event(SseEvent { id: None, retry: None, data: Data::None }));
    http.event(exchange, &result(&json!(999)));
    assert!(!http.rig.has_ended(sse_call));
    http.event(exchange, &result(&id));
    assert!(http.rig.outcome(sse_call).is_ok());
    assert!(http.rig.events.iter().any(|event| matches!(event, Event::Progress { .. })));
    http.item(exchange, Inbound::End);
    http.assert_at_rest();
}

// covers: S0-20, R-05
#[test]
fn data_after_the_response_is_read_for_a_limited_time() {
    let mut http = Http::ready();
    http.rig.echo();
    let (exchange, id) = http.last();
    http.head(exchange, 200);
    http.event(exchange, &result(&id));
    http.event(exchange, &json!({"jsonrpc": "2.0", "method": "acme/late"}));
    assert!(matches!(http.rig.events.last(), Some(Event::Notification { .. })));
    assert_eq!(http.rig.client.timeout_reason(), Some(Timer::Drain(exchange)));
    http.rig.tick(ms(5_000));
    assert_eq!(http.rig.aborted, [exchange]);
    http.assert_at_rest();

    http.rig.echo();
    let (exchange, id) = http.last();
    http.head(exchange, 200);
    http.event(exchange, &result(&id));
    for _ in 0..65 {
        http.event(exchange, &json!({"jsonrpc": "2.0", "method": "acme/late"}));
    }
    assert_eq!(http.rig.aborted.last(), Some(&exchange));
    http.assert_at_rest();

    // The same holds for too many bytes.
    http.rig.echo();
    let (exchange, id) = http.last();
    http.stream(exchange);
    http.event(exchange, &result(&id));
    let large = "x".repeat(33 << 10);
    for n in 0..2 {
        assert_eq!(http.rig.aborted.len(), 2, "{n}");
        http.event(exchange, &json!({"jsonrpc": "2.0", "method": "acme/late", "params": {"large": large}}));
    }
    assert_eq!(http.rig.aborted.last(), Some(&exchange));
    http.assert_at_rest();
    // The same holds for silence.
    let mut http = Http::with(|config| config.limits.client.drain_time = Duration::ZERO);
    let (exchange, id) = http.last();
    http.answer(exchange, 200, &discover_body(&id, &["2026-07-28"]));
    http.rig.echo();
    let (exchange, id) = http.last();
    http.stream(exchange);
    http.event(exchange, &result(&id));
    assert_eq!(http.rig.aborted.last(), Some(&exchange));
    http.assert_at_rest();
}

// covers: HTTP-C-011, HTTP-C-017, CANC-C-001, TIME-B-002, B-222
#[test]
fn cancellation_aborts_the_exchange_without_a_post() {
    let mut http = Http::ready();
    let (cancelled, timed_out) = (http.rig.echo(), http.rig.echo());
    let exchanges: Vec<ExchangeId> = http.posts()[1..].iter().map(|post| post.0).collect();
    http.rig.client.cancel(http.rig.now, cancelled, Some("x"));
    http.rig.drain();
    assert_eq!(http.rig.aborted, exchanges[..1]);
    http.rig.tick(ms(30_000));
    assert_eq!(http.rig.aborted, exchanges);
    assert!(matches!(http.rig.outcome(timed_out), Err(CallError::Timeout { .. })));
    assert_eq!(http.posts().len(), 3);
    http.answer(exchanges[0], 200, &json!({"jsonrpc": "2.0", "method": "late"}));
    http.assert_at_rest();
}

// covers: S0-19, S0-49, S2-17, B-014, B-017, HTTP-C-027, R-23
#[test]
fn exchange_that_ends_early_ends_its_call_with_the_cause() {
    let mut http = Http::ready();
    let mut ended = |steps: &dyn Fn(&mut Http, ExchangeId, &Value)| {
        let call = http.rig.echo();
        let (exchange, id) = http.last();
        steps(&mut http, exchange, &id);
        let error = http.rig.outcome(call).clone().unwrap_err();
        http.assert_at_rest();
        (error, id)
    };
    let (error, _) = ended(&|http, exchange, _| {
        http.head(exchange, 202);
        http.item(exchange, Inbound::End);
    });
    assert_eq!(error, CallError::ContentType { status: 202, content_type: None });
    let (error, _) = ended(&|http, exchange, _| {
        http.stream(exchange);
        http.item(exchange, Inbound::End);
    });
    assert_eq!(error.to_string(), "No valid JSON-RPC response found in SSE stream");
    let (error, id) = ended(&|http, exchange, id| {
        http.stream(exchange);
        http.event(exchange, &note(id, 1));
        http.item(exchange, Inbound::End);
    });
    assert_eq!(error.to_string(), format!("No response received for request ID {id}"));
    let (error, _) = ended(&|http, exchange, _| {
        http.head(exchange, 200);
        http.item(exchange, Inbound::Invalid(parse(Bytes::from_static(b"{"), 128).unwrap_err()));
        http.item(exchange, Inbound::End);
    });
    assert!(matches!(error, CallError::Decode(_)));
    let (error, _) = ended(&|http, exchange, _| {
        http.head(exchange, 503);
        http.item(exchange, Inbound::Body(Bytes::from_static(b"try later")));
        http.item(exchange, Inbound::End);
    });
    assert_eq!(error.to_string(), "HTTP 503: try later");
    let (error, _) = ended(&|http, exchange, id| {
        http.answer(exchange, 400, &json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "h"}}));
    });
    assert_eq!(error.to_string(), "MCP error -32602: h");
    let (error, _) = ended(&|http, exchange, _| {
        http.answer(exchange, 400, &json!({"jsonrpc": "2.0", "error": {"code": -32700, "message": "p"}}));
    });
    assert_eq!(error.to_string(), "MCP error -32700: p");
    let (error, _) = ended(&|http, exchange, _| {
        http.rig.handle_event(exchange, ExchangeEvent::Failed { sent: Sent::No, why: Closed::Refused });
    });
    assert_eq!(error, CallError::Closed { sent: Sent::No, why: Closed::Refused });
}

#[test]
fn text_id_matches_only_on_its_own_exchange() {
    let mut http = Http::ready();
    let calls = [http.rig.echo(), http.rig.echo()];
    let posts = http.posts();
    let [(first, a), (second, b)] = [1, 2].map(|n| (posts[n].0, posts[n].2["id"].clone()));
    http.stream(first);
    http.stream(second);
    let text = |id: &Value| result(&json!(id.to_string()));
    http.event(first, &text(&b));
    http.event(second, &text(&a));
    assert!(calls.iter().all(|call| !http.rig.has_ended(*call)));
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::UnknownId; 2]);
    http.event(first, &text(&a));
    assert!(http.rig.outcome(calls[0]).is_ok() && !http.rig.has_ended(calls[1]));
    http.event(second, &text(&b));
    assert!(http.rig.outcome(calls[1]).is_ok());
}

// covers: B-100
#[test]
fn call_lost_in_a_later_round_may_have_run() {
    let mut http = Http::ready();
    let call = http.rig.echo();
    let (exchange, id) = http.last();
    let again = json!({"resultType": "input_required", "requestState": "s"});
    http.answer(exchange, 200, &json!({"jsonrpc": "2.0", "id": id, "result": again}));
    http.rig.tick(ms(1000));
    let second = http.last().0;
    assert_ne!(second, exchange);
    http.rig.handle_event(second, ExchangeEvent::Failed { sent: Sent::No, why: Closed::Refused });
    assert_eq!(http.rig.outcome(call), &Err(CallError::Closed { sent: Sent::Maybe, why: Closed::Refused }));
}

#[test]
fn http_error_has_retry_after_in_seconds() {
    let mut http = Http::ready();
    let date = "Fri, 31 Dec 1999 23:59:59 GMT";
    for (value, taken) in
        [(Some("7"), Some(7)), (Some(" 0 "), Some(0)), (Some(date), None), (Some("-1"), None), (None, None)]
    {
        let call = http.rig.echo();
        let exchange = http.last().0;
        let headers = value.map_or_else(Headers::new, |value| Headers::new().with("retry-after", value));
        http.item(exchange, Inbound::Response(ResponseHead { status: 429, headers }));
        http.item(exchange, Inbound::End);
        let Err(CallError::Http(error)) = http.rig.outcome(call) else { panic!("{value:?}") };
        assert_eq!(error.retry_after, taken.map(Duration::from_secs), "{value:?}");
        let text = taken.map_or_else(|| "HTTP 429".to_string(), |after| format!("HTTP 429 [retry after {after} s]"));
        assert_eq!(error.to_string(), text);
    }
}

// covers: S0-46, S0-47, R-23
#[test]
fn status_text_is_one_line_of_bounded_length() {
    let text = |body: &str| HttpError { body_head: body.to_string().into(), ..HttpError::new(500) }.to_string();
    assert_eq!(text(""), "HTTP 500");
    assert_eq!(text("oh\r\n\u{1b}[2J no\n"), r"HTTP 500: oh\r\n\u{1b}[2J no");
    assert_eq!(text(&"x".repeat(9000)), format!("HTTP 500: {}", "x".repeat(200)));
}

// covers: VER-C-029, VER-C-030
#[test]
fn probe_over_http_reports_its_cause() {
    let probe = |status: u16, body: Option<Value>| {
        let mut http = Http::with(|config| config.policy = Policy::Modern);
        let (exchange, id) = http.last();
        match body {
            Some(mut body) => {
                body["id"] = id;
                http.answer(exchange, status, &body);
            }
            None => {
                http.head(exchange, status);
                http.item(exchange, Inbound::End);
            }
        }
        match http.rig.termination() {
            Some(Termination::Negotiation(e)) => (e.stage, e.cause.clone()),
            other => panic!("{other:?}"),
        }
    };
    for status in [400, 404, 405, 401, 403, 301, 429, 500] {
        assert!(matches!(probe(status, None), (Stage::Discover, NegotiationCause::Http(e)) if e.status == status));
    }
    let refused = |data: Value| json!({"jsonrpc": "2.0", "error": {"code": -32022, "message": "", "data": data}});
    let theirs = probe(400, Some(refused(json!({"supported": ["2099-01-01"], "requested": "2026-07-28"}))));
    assert!(matches!(theirs, (Stage::Discover, NegotiationCause::NoMutualVersion(list)) if list == ["2099-01-01"]));
    let unknown = json!({"jsonrpc": "2.0", "error": {"code": -32601, "message": ""}});
    assert!(matches!(probe(404, Some(unknown)), (Stage::Discover, NegotiationCause::Rpc(_))));
    let mut http = Http::with(|config| config.policy = Policy::Modern);
    http.rig.tick(ms(60_000));
    assert!(matches!(http.rig.termination(), Some(Termination::Negotiation(e)) if e.cause.is_timeout()));
    assert_eq!(http.rig.aborted.len(), 1);
}

// covers: B-198
#[test]
fn unanswered_probe_over_http_falls_back_to_initialize() {
    for with_stream in [false, true] {
        let mut http = Http::new();
        let (probe, id) = http.last();
        if with_stream {
            // The response has begun, and does not go on.
            http.stream(probe);
        }
        http.rig.tick(ms(9_999));
        assert_eq!(http.rig.client.state(), State::Probing);
        http.rig.tick(ms(1));
        assert_eq!(http.lines(0), ["POST server/discover", "POST initialize"]);
        assert_eq!(http.rig.aborted, [probe]);
        assert!(http.rig.diagnostics().contains(&DiagnosticKind::FellBackToLegacy));
        // A late answer changes nothing.
        let late = json!({"jsonrpc": "2.0", "id": id, "result": discover(&["2026-07-28"])});
        http.rig.client.handle_event(
            http.rig.now,
            probe,
            ExchangeEvent::Inbound(Inbound::Message(parse(late.to_string().into(), 128).unwrap())),
        );
        http.rig.drain();
        assert_eq!(http.rig.client.state(), State::Initializing);
        http.accept("s1");
        assert_eq!(http.rig.client.server_info().unwrap().version.as_str(), "2025-11-25");
    }
    // The probe has half of the time, and its error says what came before.
    let mut http = Http::with(|config| config.connect_timeout = ms(4_000));
    http.rig.tick(ms(2_000));
    http.rig.tick(ms(2_000));
    let Some(Termination::Negotiation(e)) = http.rig.termination() else { panic!("it has not ended") };
    let said = "initialize failed after 4000 ms: the start took longer than 4000 ms; \
                before that, server/discover: no response within 2000 ms";
    assert_eq!(e.to_string(), said);
}

// covers: B-198
#[test]
fn probe_that_was_not_sent_does_not_fall_back() {
    let mut http = Http::new();
    let probe = http.last().0;
    http.rig.handle_event(probe, ExchangeEvent::Waiting);
    http.rig.tick(ms(10_000));
    assert_eq!(http.lines(0), ["POST server/discover"]);
    http.rig.handle_event(probe, ExchangeEvent::Failed { sent: Sent::No, why: Closed::Timeout });
    let Some(Termination::Negotiation(e)) = http.rig.termination() else { panic!("it has not ended") };
    assert_eq!(e.to_string(), "connecting failed after 10000 ms: the connection timed out");
}

// covers: B-198
#[test]
fn probe_that_is_sent_late_falls_back_too() {
    let mut http = Http::with(|config| config.probe_timeout = ms(1_000));
    let probe = http.last().0;
    http.rig.handle_event(probe, ExchangeEvent::Waiting);
    http.rig.tick(ms(1_000));
    assert_eq!(http.lines(0), ["POST server/discover"]);
    http.rig.handle_event(probe, ExchangeEvent::Opened(Peer::default()));
    http.rig.tick(ms(1_000));
    assert_eq!(http.lines(0), ["POST server/discover", "POST initialize"]);
}

// covers: S0-22, S0-44
#[test]
fn failed_notification_is_only_reported() {
    let mut http = Http::ready();
    http.rig.client.notify(http.rig.now, "acme/note", Object::new().with("a", 1i64)).unwrap();
    http.rig.drain();
    let (exchange, head, body, repeatable) = http.posts().pop().unwrap();
    assert_eq!(body, json!({"jsonrpc": "2.0", "method": "acme/note", "params": {"a": 1}}));
    assert_eq!(head.headers.get("mcp-method"), Some("acme/note"));
    assert!(!repeatable);
    for status in [202, 204, 500] {
        let mut http = Http::ready();
        http.rig.client.notify(http.rig.now, "acme/note", Object::new()).unwrap();
        http.rig.drain();
        let (exchange, ..) = http.posts().pop().unwrap();
        http.head(exchange, status);
        http.item(exchange, Inbound::End);
        assert_eq!(http.rig.diagnostics().len(), usize::from(status == 500));
        http.assert_at_rest();
    }
    http.rig.tick(ms(30_000));
    assert_eq!(http.rig.aborted, [exchange]);
    http.assert_at_rest();
}

// covers: B-105, B-098
#[test]
fn close_aborts_all_exchanges_and_terminates() {
    let mut http = Http::ready();
    let calls = [http.rig.echo(), http.rig.echo()];
    http.rig.client.close(http.rig.now);
    http.rig.drain();
    assert_eq!(http.rig.aborted.len(), 2);
    for call in calls {
        assert!(matches!(http.rig.outcome(call), Err(CallError::Closed { why: Closed::Aborted, .. })));
    }
    assert_eq!(http.rig.events.last(), Some(&Event::Terminated(Termination::Requested)));
    http.assert_at_rest();
}

// covers: R-26
#[test]
fn modern_server_request_on_a_response_stream_is_ignored() {
    let mut http = Http::ready();
    let call = http.rig.echo();
    let (exchange, id) = http.last();
    http.head(exchange, 200);
    http.event(exchange, &json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::UnexpectedRequest]);
    assert!(!http.rig.has_ended(call));
    assert_eq!(http.posts().len(), 2);
}

#[test]
fn urls_are_parsed_and_invalid_ones_refused() {
    let parse = |url: &str| HttpTarget::parse(url).map(|t| (t.origin.tls, t.origin.host, t.origin.port, t.path));
    assert_eq!(parse("http://Example.com"), Ok((false, "example.com".into(), 80, "/".into())));
    assert_eq!(parse("https://[::1]:8443/a/b?c=d#e"), Ok((true, "::1".into(), 8443, "/a/b?c=d".into())));
    assert_eq!(parse("HTTP://h:/x"), Ok((false, "h".into(), 80, "/x".into())));
    for bad in [
        "",
        "x",
        "/mcp",
        "ftp://h/",
        "http://",
        "http:///x",
        "http://u:p@h/",
        "http://h:99999/",
        "http://h h/",
        "ws://h/",
    ] {
        assert_eq!(parse(bad), Err(BadUrl), "{bad}");
    }
    let rig = Rig::new(ClientConfig::url("https://[::1]/mcp").unwrap());
    let Start::Http { head, .. } = &rig.starts[0].1 else { panic!() };
    assert_eq!(head.headers.get("host"), Some("[::1]"));
}

// covers: B-066
#[test]
fn unanswered_notifications_are_bounded() {
    let mut config = ClientConfig::url("http://127.0.0.1:8000/mcp").unwrap();
    config.limits.client.max_calls = 3;
    config.timeout = None;
    let mut http = Http { rig: Rig::new(config) };
    let (exchange, id) = http.last();
    http.answer(exchange, 200, &discover_body(&id, &["2026-07-28"]));
    for _ in 0..3 {
        http.rig.client.notify(http.rig.now, "acme/note", Object::new()).unwrap();
    }
    let refused = http.rig.client.notify(http.rig.now, "acme/note", Object::new()).unwrap_err();
    assert_eq!(refused.why, Refusal::Full);
    http.rig.drain();
    let (exchange, ..) = http.posts().pop().unwrap();
    http.head(exchange, 202);
    http.item(exchange, Inbound::End);
    http.rig.client.notify(http.rig.now, "acme/note", Object::new()).unwrap();
}

// covers: HTTP-C-011, RPC-C-027
#[test]
fn server_request_in_the_probe_response_is_ignored() {
    let mut http = Http::new();
    let (exchange, id) = http.last();
    http.head(exchange, 200);
    for method in ["ping", "roots/list"] {
        http.event(exchange, &json!({"jsonrpc": "2.0", "id": 1, "method": method}));
    }
    assert_eq!(http.rig.diagnostics(), [DiagnosticKind::UnexpectedRequest; 2]);
    http.event(exchange, &discover_body(&id, &["2026-07-28"]));
    assert_eq!(http.rig.client.state(), State::Ready);
    assert_eq!(http.posts().len(), 1);
    assert!(http.rig.sent.is_empty());
}

// covers: PING-B-003
#[test]
fn http_ping_without_a_response_is_missed() {
    let missed = |http: &Http| {
        let waited = |event: &Event| match event {
            Event::PingMissed { waited, in_a_row } => Some((waited.as_secs(), *in_a_row)),
            _ => None,
        };
        http.rig.events.iter().filter_map(waited).collect::<Vec<_>>()
    };
    let (period, patience) = (Duration::from_secs(60), Duration::from_secs(5));
    let config = ClientConfig::url("http://127.0.0.1:8000/mcp").unwrap();
    let mut http = Http { rig: Rig::new(ClientConfig { ping: Some(period), ping_timeout: patience, ..config }) };
    let (exchange, id) = http.last();
    http.answer(exchange, 200, &discover_body(&id, &["2026-07-28"]));
    // Answered.
    http.rig.tick(period);
    let (exchange, id) = http.last();
    assert_eq!(http.posts().pop().unwrap().2["method"], "server/discover");
    http.answer(exchange, 200, &discover_body(&id, &["2026-07-28"]));
    assert_eq!(missed(&http), []);
    // Not answered in time.
    http.rig.tick(period);
    let (exchange, _) = http.last();
    http.rig.tick(patience);
    assert_eq!((missed(&http), http.rig.aborted.last()), (vec![(5, 1)], Some(&exchange)));
    // A proxy that cannot reach the server.
    http.rig.tick(period);
    let (exchange, _) = http.last();
    http.rig.tick(Duration::from_secs(1));
    http.head(exchange, 502);
    http.item(exchange, Inbound::End);
    assert_eq!(missed(&http), [(5, 1), (1, 2)]);
    // The connection is refused.
    http.rig.tick(period);
    let (exchange, _) = http.last();
    http.rig.handle_event(exchange, ExchangeEvent::Failed { sent: Sent::No, why: Closed::Refused });
    assert_eq!(missed(&http), [(5, 1), (1, 2), (0, 3)]);
    assert_eq!(http.rig.client.state(), State::Ready);
    // The server ends during a ping.
    http.rig.tick(period);
    http.rig.client.close(http.rig.now);
    http.rig.drain();
    http.assert_at_rest();
}
