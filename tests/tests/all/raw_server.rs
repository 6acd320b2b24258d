//! A server with scripted input: bytes as `curl -N` sends them, and checks of the whole output.

use bytes::Bytes;
use mcp_proto::error::DiagnosticKind;
use mcp_proto::exchange::{Action, Closed, ConnectionId, IoEvent, Peer, Shutdown};
use mcp_proto::input::{Note, RequestKey};
use mcp_proto::model::lifecycle::Implementation;
use mcp_proto::server::{Event, IncomingRequest, Responder, ServerCommands};
use mcp_proto::version::{ProtocolVersion, Versions};
use mcp_proto::wired::{Kind, WiredServer};
use mcp_proto::{CallToolResult, Instant, Outcome, Progress, ServerConfig};
use std::sync::Arc;
use std::time::Duration;

/// A server with one connection, and its actions on it.
struct Raw {
    server: WiredServer,
    channel: ConnectionId,
    now: Instant,
    /// The output since the last look.
    text: String,
    closes: Vec<Shutdown>,
    requests: Vec<(Responder, IncomingRequest)>,
    cancelled: Vec<RequestKey>,
    diagnostics: Vec<DiagnosticKind>,
}

impl Raw {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut ServerConfig)) -> Self {
        let mut config = ServerConfig::new(Implementation::new("raw", "1.0"));
        config.capabilities.tools = Some(Default::default());
        config.limits.frame.max_request_body = 1000;
        change(&mut config);
        let mut server = WiredServer::new(Arc::new(config), [7; 32], Instant::ZERO);
        let channel = server.accept(Instant::ZERO, Kind::HttpServer, Peer::default());
        let (closes, requests, cancelled, diagnostics) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { server, channel, now: Instant::ZERO, text: String::new(), closes, requests, cancelled, diagnostics }
    }

    /// Feeds bytes and returns the output.
    fn feed(&mut self, text: &str) -> String {
        self.server.handle_io(self.now, self.channel, IoEvent::Read(Bytes::copy_from_slice(text.as_bytes())));
        self.take()
    }

    /// Advances the time.
    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.server.handle_timeout(self.now);
        self.carry_out();
    }

    /// Answers the oldest request with a text.
    fn answer(&mut self, text: &str) -> String {
        let (responder, _) = self.requests.remove(0);
        let result = CallToolResult::text(text).write();
        self.server.respond(self.now, responder.write(Outcome::Complete(result)));
        self.take()
    }

    /// Sends progress on the oldest request.
    fn progress(&mut self, progress: f64) -> String {
        let key = self.requests[0].0.key();
        self.server.notify(self.now, key, Note::Progress(Progress::new(progress).total(2.0))).expect("it is wanted");
        self.take()
    }

    fn take(&mut self) -> String {
        self.carry_out();
        std::mem::take(&mut self.text)
    }

    fn carry_out(&mut self) {
        while let Some(action) = self.server.poll_output() {
            match action {
                Action::Write(_, bytes) => {
                    self.text += std::str::from_utf8(&bytes).expect("it is utf-8");
                    self.server.handle_io(self.now, self.channel, IoEvent::Written(bytes.len()));
                }
                Action::Close(_, how) => self.closes.push(how),
                Action::Event(Event::Request(responder, incoming)) => self.requests.push((responder, incoming)),
                Action::Event(Event::Cancelled(key)) => self.cancelled.push(key),
                Action::Event(Event::Diagnostic(diagnostic)) => self.diagnostics.push(diagnostic.kind),
                other => panic!("{other:?}"),
            }
        }
    }
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// A body of `tools/call`, with further metadata.
fn call(id: u32, more: &str) -> String {
    let meta = META.strip_suffix('}').expect("it is an object");
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"add",{meta}{more}}}}}}}"#)
}

/// The bytes of `curl -N -H 'Content-Type: application/json' -H 'Accept: …' -H 'Mcp-…: …' --data
/// BODY`.
fn post(method: &str, name: Option<&str>, body: &str) -> String {
    let name = name.map(|name| format!("Mcp-Name: {name}\r\n")).unwrap_or_default();
    let fields = format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}");
    post_with(&fields, body)
}

fn post_with(fields: &str, body: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost:8000\r\nUser-Agent: curl/8.5.0\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         {fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Returns a complete JSON response.
fn json_answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn error_answer(status: &str, id: u32, error: &str) -> String {
    json_answer(status, &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
}

/// Returns a response of HTTP itself, after which the connection ends.
fn refusal(status: &str, why: &str) -> String {
    let error = format!(r#"{{"jsonrpc":"2.0","error":{{"code":-32600,"message":"{why}"}}}}"#);
    json_answer(status, &error).replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n")
}

fn result(id: u32, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}],"resultType":"complete","#
    ) + r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"raw","version":"1.0"}}}}"#
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

// covers: HTTP-S-001, HTTP-S-015, RPC-S-020, RPC-S-021, META-S-017, RPC-B-009, S2-19
#[test]
fn call_gets_a_json_response_and_keeps_the_connection() {
    let mut raw = Raw::new();
    for id in [1, 2] {
        assert_eq!(raw.feed(&post("tools/call", Some("add"), &call(id, ""))), "");
        assert_eq!(raw.requests[0].1.method, "tools/call");
        assert_eq!(raw.answer("3"), json_answer("200 OK", &result(id, "3")));
    }
    assert!(raw.closes.is_empty() && raw.diagnostics.is_empty());
}

// covers: DISC-S-001, DISC-S-002, VER-S-004
#[test]
fn discovery_is_answered_without_the_application() {
    let mut raw = Raw::new();
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{{META}}}}}"#);
    let answer = concat!(
        r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26"],"#,
        r#""capabilities":{"tools":{}},"#,
        r#""ttlMs":0,"cacheScope":"private","resultType":"complete","#,
        r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"raw","version":"1.0"}}}}"#
    );
    assert_eq!(raw.feed(&post("server/discover", None, &body)), json_answer("200 OK", answer));
    assert_eq!(raw.server.running(), 0);
}

// covers: HTTP-S-015, HTTP-S-018, HTTP-S-019, HTTP-S-021, HTTP-S-023, HTTP-B-026, S2-22, S2-29
#[test]
fn progress_makes_the_response_a_stream() {
    let mut raw = Raw::new();
    assert_eq!(raw.feed(&post("tools/call", Some("add"), &call(1, r#","progressToken":"t""#))), "");
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache, no-transform\r\n\
                X-Accel-Buffering: no\r\ntransfer-encoding: chunked\r\nconnection: keep-alive\r\n\r\n";
    let note = |n: u32| {
        let params = format!(r#"{{"progressToken":"t","progress":{n},"total":2}}"#);
        format!("data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{params}}}\n\n")
    };
    assert_eq!(raw.progress(1.0), head.to_string() + &chunk(&note(1)));
    assert_eq!(raw.progress(2.0), chunk(&note(2)));
    let last = format!("data: {}\n\n", result(1, "3"));
    assert_eq!(raw.answer("3"), chunk(&last) + "0\r\n\r\n");
    // The stream is over, and the connection is still open.
    raw.feed(&post("tools/call", Some("add"), &call(2, "")));
    assert_eq!(raw.answer("4"), json_answer("200 OK", &result(2, "4")));
    assert!(raw.closes.is_empty());
}

// covers: HTTP-S-012
#[test]
fn notification_gets_202_and_no_body() {
    let mut raw = Raw::new();
    let body = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let answer = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(raw.feed(&post("notifications/cancelled", None, body)), answer);
}

#[test]
fn two_lengths_are_refused_and_end_the_connection() {
    let mut raw = Raw::new();
    let body = call(1, "");
    let twice = post("tools/call", Some("add"), &body).replace("\r\n\r\n", "\r\nContent-Length: 5\r\n\r\n");
    let smuggled = twice + &post("tools/call", Some("add"), &call(2, ""));
    let answer = raw.feed(&smuggled);
    assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    assert!(raw.requests.is_empty());
    assert_eq!(
        (raw.closes.as_slice(), raw.diagnostics.as_slice()),
        ([Shutdown::WriteHalf].as_slice(), [DiagnosticKind::BadRequest].as_slice())
    );
}

// covers: HTTP-S-034, S2-20
#[test]
fn other_methods_than_post_are_refused_with_allow() {
    for method in ["GET", "DELETE"] {
        let mut raw = Raw::with(|config| config.versions = Versions::new([ProtocolVersion::V2026_07_28]));
        let answer = raw.feed(&format!("{method} /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 405 Method Not Allowed\r\nAllow: POST\r\n"), "{answer}");
        // The request was understood, so the connection stays open.
        raw.feed(&post("tools/call", Some("add"), &call(1, "")));
        assert_eq!(raw.requests.len(), 1);
    }
}

#[test]
fn refused_body_is_read_on_so_that_the_response_arrives() {
    for chunked in [false, true] {
        let mut raw = Raw::new();
        let answer = if chunked {
            let head = post_with("", "").replace("Content-Length: 0", "Transfer-Encoding: chunked");
            assert_eq!(raw.feed(&head), "");
            assert_eq!(raw.feed(&chunk(&" ".repeat(900))), "");
            raw.feed(&chunk(&" ".repeat(101)))
        } else {
            raw.feed(&post_with("", "").replace("Content-Length: 0", "Content-Length: 1001"))
        };
        assert_eq!(answer, refusal("413 Content Too Large", "the body is larger than the limit"));
        assert_eq!(raw.closes, [Shutdown::WriteHalf]);
        // The client continues to send its request.
        assert_eq!(raw.feed(&"x".repeat(100_000)), "");
        // It continues for too long, so the connection is closed.
        assert_eq!(raw.server.poll_timeout(), Some(Instant::ZERO + Duration::from_secs(2)));
        raw.pass(Duration::from_millis(1999));
        assert_eq!(raw.closes, [Shutdown::WriteHalf]);
        raw.pass(Duration::from_millis(1));
        assert_eq!(raw.closes, [Shutdown::WriteHalf, Shutdown::Abort]);
        raw.server.handle_io(raw.now, raw.channel, IoEvent::Closed(Closed::Aborted));
        assert_eq!(raw.server.poll_timeout(), None);
        assert!(raw.requests.is_empty());
    }
}

// covers: HDR-S-003, HDR-S-009, HDR-S-010, HDR-S-011, HDR-S-012, HDR-S-013, HDR-B-007, HDR-B-008,
// HTTP-S-033
#[test]
fn metadata_headers_must_match_the_body() {
    let version = "MCP-Protocol-Version: 2026-07-28\r\n";
    let method = "Mcp-Method: tools/call\r\n";
    let name = "Mcp-Name: add\r\n";
    let missing = |header: &str| format!("the header {header} is missing");
    let differs = |header: &str| format!("the header {header} does not say what the body says");
    for (fields, why) in [
        (format!("{method}{name}"), missing("MCP-Protocol-Version")),
        (format!("{version}{name}"), missing("Mcp-Method")),
        (format!("{version}{method}"), missing("Mcp-Name")),
        (format!("MCP-Protocol-Version: 2025-11-25\r\n{method}{name}"), differs("MCP-Protocol-Version")),
        (format!("{version}Mcp-Method: tools/list\r\n{name}"), differs("Mcp-Method")),
        (format!("{version}Mcp-Method: Tools/Call\r\n{name}"), differs("Mcp-Method")),
        (format!("{version}{method}Mcp-Name: sub\r\n"), differs("Mcp-Name")),
        (format!("{version}{method}{name}Mcp-Name: sub\r\n"), differs("Mcp-Name")),
        (
            format!("{version}{method}Mcp-Name: ädd\r\n"),
            "the header Mcp-Name contains a character that a header field must not contain".into(),
        ),
        (format!("{version}{method}Mcp-Name: =?base64?c3Vi?=\r\n"), differs("Mcp-Name")),
    ] {
        let mut raw = Raw::new();
        let error = format!(r#"{{"code":-32020,"message":"{why}"}}"#);
        assert_eq!(raw.feed(&post_with(&fields, &call(1, ""))), error_answer("400 Bad Request", 1, &error), "{fields}");
        assert_eq!(raw.diagnostics, [DiagnosticKind::HeaderMismatch]);
        assert!(raw.requests.is_empty());
    }
    for fields in [
        "mcp-protocol-version: 2026-07-28\r\nMCP-METHOD: tools/call\r\nmcp-name:  add \r\n".to_string(),
        format!("{version}{method}Mcp-Name: =?base64?YWRk?=\r\n"),
    ] {
        let mut raw = Raw::new();
        assert_eq!(raw.feed(&post_with(&fields, &call(1, ""))), "", "{fields}");
        assert_eq!(raw.requests.len(), 1);
    }
}

// covers: META-S-011, META-S-012
#[test]
fn request_without_the_metadata_of_its_headers_is_refused() {
    let mut raw = Raw::new();
    let bare = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}"#;
    let half = call(2, "").replace(r#","io.modelcontextprotocol/clientCapabilities":{}"#, "");
    for (id, body) in [(1, bare), (2, half.as_str())] {
        let answer = raw.feed(&post("tools/call", Some("add"), body));
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
        assert!(answer.contains(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32602,"#)), "{answer}");
    }
    assert!(raw.requests.is_empty());
}

// covers: HTTP-S-031
#[test]
fn method_of_another_revision_is_not_found() {
    for method in ["initialize", "ping"] {
        let mut raw = Raw::new();
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{META}}}}}"#);
        let error = format!(r#"{{"code":-32601,"message":"Method not found: {method}"}}"#);
        assert_eq!(raw.feed(&post(method, None, &body)), error_answer("404 Not Found", 1, &error));
    }
    // A method that the application does not know is not found either.
    let mut raw = Raw::new();
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"custom/none","params":{{{META}}}}}"#);
    assert_eq!(raw.feed(&post("custom/none", None, &body)), "");
    let router = mcp_proto::Router::new("raw", "1.0");
    let (responder, incoming) = raw.requests.remove(0);
    let mcp_proto::route::RouteResult::Answer(answer) = router.route(responder, incoming) else {
        panic!("there is no handler")
    };
    raw.server.respond(raw.now, answer);
    let error = r#"{"code":-32601,"message":"Method not found"}"#;
    assert_eq!(raw.take(), error_answer("404 Not Found", 1, error));
}

// covers: VER-S-001, VER-S-002
#[test]
fn unsupported_revision_is_refused_with_the_supported() {
    let mut raw = Raw::new();
    let request = post("tools/call", Some("add"), &call(1, "")).replace("2026-07-28", "2099-01-01");
    let error = concat!(
        r#"{"code":-32022,"message":"Unsupported protocol version: 2099-01-01","#,
        r#""data":{"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26"],"requested":"2099-01-01"}}"#
    );
    assert_eq!(raw.feed(&request), error_answer("400 Bad Request", 1, error));
}

#[test]
fn pipelined_request_waits_for_the_response_before_it() {
    let mut raw = Raw::new();
    let two = post("tools/call", Some("add"), &call(1, "")) + &post("tools/call", Some("add"), &call(2, ""));
    assert_eq!(raw.feed(&two), "");
    assert_eq!(raw.requests.len(), 1, "the second is held back");
    assert_eq!(raw.answer("one"), json_answer("200 OK", &result(1, "one")));
    assert_eq!(raw.requests.len(), 1, "its turn has come");
    assert_eq!(raw.answer("two"), json_answer("200 OK", &result(2, "two")));
}

// covers: HTTP-S-028, HTTP-S-029, HTTP-S-030, CANC-S-003
#[test]
fn disconnect_cancels_the_request_and_pipelined_ones() {
    for closed in [false, true] {
        let mut raw = Raw::new();
        raw.feed(
            &(post("tools/call", Some("add"), &call(1, r#","progressToken":1"#))
                + &post("tools/call", Some("add"), &call(2, ""))),
        );
        assert!(raw.progress(1.0).starts_with("HTTP/1.1 200 OK\r\n"));
        if closed {
            raw.server.handle_io(raw.now, raw.channel, IoEvent::Closed(Closed::Reset));
        } else {
            raw.server.handle_io(raw.now, raw.channel, IoEvent::ReadClosed);
        }
        assert_eq!(raw.take(), "");
        assert_eq!(raw.cancelled, [raw.requests[0].0.key()]);
        assert_eq!(raw.server.running(), 0);
        let refused = raw.server.notify(raw.now, raw.cancelled[0], Note::Progress(Progress::new(2.0)));
        assert!(refused.is_err());
        assert_eq!(raw.answer("too late"), "", "nothing more is said of it");
        assert!(raw.requests.is_empty(), "the second was never begun");
        assert_eq!(raw.closes, if closed { vec![] } else { vec![Shutdown::Abort] });
    }
}

// covers: HTTP-S-002, HTTP-S-003
#[test]
fn foreign_host_or_origin_is_forbidden_first() {
    for (host, origin, served) in [
        ("localhost:8000", None, true),
        ("127.0.0.1:8000", Some("http://localhost:3000"), true),
        ("[::1]:8000", Some("https://[::1]"), true),
        ("127.8.9.1", None, true),
        ("evil.example:8000", None, false),
        ("localhost.evil.example", None, false),
        ("192.168.0.1", None, false),
        ("localhost", Some("http://evil.example"), false),
        ("localhost", Some("null"), false),
        ("localhost", Some("http://localhost.evil.example"), false),
    ] {
        let mut raw = Raw::new();
        let origin = origin.map_or_else(String::new, |origin| format!("Origin: {origin}\r\n"));
        let answer = raw.feed(&format!("GET /mcp HTTP/1.1\r\nHost: {host}\r\n{origin}\r\n"));
        if served {
            assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("session"), "{host} {origin} {answer}");
        } else {
            let what = if origin.is_empty() { "Host" } else { "Origin" };
            assert_eq!(answer, refusal("403 Forbidden", &format!("Forbidden: {what} not allowed")), "{host} {origin}");
        }
    }
}
