//! HTTP exchanges of 2026-07-28 at the engine: heads and messages in, responses out.

use super::*;
use crate::exchange::{BadRequest, Headers, RequestHead};

fn head(method: &str, name: Option<&str>) -> RequestHead {
    let headers = Headers::new()
        .with("content-type", "application/json; charset=utf-8")
        .with("accept", "application/json, text/event-stream")
        .with("mcp-protocol-version", "2026-07-28")
        .with("mcp-method", method);
    let headers = name.into_iter().fold(headers, |headers, name| headers.with("mcp-name", name));
    RequestHead { method: "POST".into(), target: "/mcp".into(), headers }
}

fn without(mut head: RequestHead, name: &str) -> RequestHead {
    let kept = head.headers.iter().filter(|(n, _)| *n != name).fold(Headers::new(), |all, (n, v)| all.with(n, v));
    head.headers = kept;
    head
}

/// Posts a body and returns the outputs of its exchange.
fn post(bench: &mut Bench, head: RequestHead, body: &str) -> Vec<String> {
    bench.item(A, Inbound::Request(head));
    bench.item(A, read(body));
    bench.item(A, Inbound::End);
    bench.heard(A)
}

/// The revisions that exist over HTTP.
const NAMED: [&str; 4] = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"];

/// A server without the older revisions.
fn modern_only() -> Bench {
    Bench::with(|config| config.versions = Versions::new([ProtocolVersion::V2026_07_28]))
}

fn status(said: &[String]) -> (u16, &str) {
    let (status, body) = said[0].split_once(' ').unwrap();
    (status.parse().unwrap(), body)
}

fn called(bench: &mut Bench) -> Handed {
    bench.item(A, Inbound::Request(head("tools/call", Some("t"))));
    bench.item(A, read(&modern("1", "tools/call", r#","name":"t""#)));
    let handed = bench.handed();
    bench.item(A, Inbound::End);
    handed
}

// covers: HTTP-S-001, HTTP-S-015, DISC-S-001, HTTP-S-035, HTTP-S-036, HTTP-B-026
#[test]
fn response_is_one_json_object() {
    let mut bench = Bench::new();
    let mut with_session = head("server/discover", None);
    with_session.headers.push("Mcp-Session-Id", "s");
    with_session.headers.push("Last-Event-ID", "5");
    bench.item(A, Inbound::Request(with_session));
    bench.item(A, read(&modern("1", "server/discover", "")));
    let outputs = bench.outputs();
    let [Output::Send(A, Outbound::Response { head, body: Body::Full(body) })] = &outputs[..] else {
        panic!("{outputs:?}")
    };
    assert_eq!(
        (head.status, head.headers.get("Content-Type"), head.headers.iter().count()),
        (200, Some("application/json"), 1)
    );
    let result = result(core::str::from_utf8(body).unwrap());
    assert_eq!(result.required::<Vec<String>>("supportedVersions").unwrap(), NAMED);
    assert!(bench.server.wire.env.exchanges.is_empty());

    let (responder, _) = called(&mut bench);
    bench.complete(responder, r#"{"content":[]}"#);
    assert_eq!(status(&bench.heard(A)).0, 200);
    assert!(bench.at_rest() && bench.server.wire.env.exchanges.is_empty());
}

// covers: HTTP-S-015
#[test]
fn error_is_one_json_object_whatever_its_status_is() {
    for (named, method, status) in [("ping", "ping", 404), ("x/y", "ping", 400)] {
        let mut bench = Bench::new();
        bench.item(A, Inbound::Request(head(named, None)));
        bench.item(A, read(&modern("1", method, "")));
        let sent = bench.outputs().into_iter().find_map(|output| match output {
            Output::Send(A, Outbound::Response { head, body: Body::Full(body) }) => Some((head, body)),
            _ => None,
        });
        let (head, body) = sent.unwrap();
        assert_eq!((head.status, head.headers.get("Content-Type")), (status, Some("application/json")));
        error(core::str::from_utf8(&body).unwrap());
    }
}

// covers: HTTP-S-018, HTTP-S-019, HTTP-S-021, HTTP-S-023, HTTP-S-015, B-168, HTTP-S-020, B-078
#[test]
fn notification_before_the_response_makes_it_a_stream() {
    let mut bench = Bench::new();
    let (responder, _) = called(&mut bench);
    let note = Note::Custom("x/y".into(), Object::new());
    bench.server.notify(bench.now, responder.key(), note.clone()).unwrap();
    let outputs = bench.outputs();
    let Output::Send(A, Outbound::Response { head, body: Body::Stream }) = &outputs[0] else { panic!("{outputs:?}") };
    assert_eq!(head.status, 200);
    for (name, value) in [
        ("Content-Type", "text/event-stream"),
        ("Cache-Control", "no-cache, no-transform"),
        ("X-Accel-Buffering", "no"),
    ] {
        assert_eq!(head.headers.get(name), Some(value));
    }
    let data = Bytes::from_static(br#"{"jsonrpc":"2.0","method":"x/y","params":{}}"#);
    assert_eq!(outputs[1..], [Output::Send(A, Outbound::Event { event: None, id: None, retry: None, data })]);
    bench.server.notify(bench.now, responder.key(), note).unwrap();
    bench.answer(responder, Outcome::Error(ErrorObject::new(-32601, "late")));
    let said = bench.heard(A);
    assert!(said.len() == 3 && said[1].contains("-32601") && said[2] == "end", "{said:?}");
    assert!(bench.at_rest() && bench.server.wire.env.exchanges.is_empty());
}

// covers: HTTP-S-028, HTTP-S-029, HTTP-S-030, CANC-S-003, X-02, B-167, B-222
#[test]
fn disconnect_before_the_response_cancels_the_request() {
    for streams in [false, true] {
        let mut bench = Bench::new();
        let (responder, _) = called(&mut bench);
        if streams {
            bench.server.notify(bench.now, responder.key(), Note::Custom("x".into(), Object::new())).unwrap();
            bench.outputs();
        }
        bench.handle_event(A, failed());
        assert_eq!(bench.outputs(), [Output::Event(Event::Cancelled(responder.key()))]);
        bench.complete(responder, "{}");
        assert!(bench.outputs().is_empty() && bench.at_rest() && bench.server.wire.env.exchanges.is_empty());
    }
    // A disconnect after the response changes nothing.
    let mut bench = Bench::new();
    let (responder, _) = called(&mut bench);
    bench.complete(responder, "{}");
    bench.outputs();
    bench.handle_event(A, failed());
    assert!(bench.outputs().is_empty());
}

// covers: HTTP-S-012, X-44, B-150
#[test]
fn notification_gets_202_without_a_body() {
    let mut bench = Bench::new();
    let note = r#"{"jsonrpc":"2.0","method":"x/y","params":{"a":1}}"#;
    bench.item(A, Inbound::Request(head("x/y", None)));
    bench.item(A, read(note));
    let outputs = bench.outputs();
    assert!(matches!(&outputs[0], Output::Event(Event::Notification { method, .. }) if method == "x/y"));
    assert_eq!(on(A, &outputs[1]).unwrap(), "202 ");
    let bare = without(without(head("x", None), "mcp-method"), "mcp-protocol-version");
    assert_eq!(status(&post(&mut bench, bare, note)).0, 202);
    // It names no request of this exchange and cannot reach a request of another one.
    let (responder, _) = {
        bench.item(B, Inbound::Request(head("tools/list", None)));
        bench.request(B, &modern("1", "tools/list", ""))
    };
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(status(&post(&mut bench, head("notifications/cancelled", None), cancel)).0, 202);
    bench.complete(responder, "{}");
    assert_eq!(bench.heard(B).len(), 1);
}

// covers: HTTP-S-034, X-09, X-10, HTTP-S-001
#[test]
fn only_post_is_served() {
    for method in ["GET", "DELETE", "PUT", "post"] {
        let mut bench = modern_only();
        bench.item(A, Inbound::Request(RequestHead { method: method.into(), ..head("x", None) }));
        bench.item(A, Inbound::End);
        let outputs = bench.outputs();
        let Some(Output::Send(A, Outbound::Response { head, .. })) = outputs.last() else { panic!("{outputs:?}") };
        assert_eq!((head.status, head.headers.get("Allow")), (405, Some("POST")));
        assert!(bench.server.wire.env.exchanges.is_empty());
    }
}

// covers: HTTP-S-013, HTTP-S-014, RPC-B-041, X-45, X-05, X-06
#[test]
fn other_bodies_than_request_or_notification_get_400() {
    let mut bench = Bench::new();
    for (body, code) in [
        ("nonsense", -32700),
        ("[]", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"x"}]"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":3}"#, -32602),
    ] {
        let said = post(&mut bench, head("x", None), body);
        let (status, text) = status(&said);
        assert_eq!((status, error(text).code), (400, code), "{body}");
        assert_eq!(text.contains("\"id\":1"), body.contains("params"));
    }
    bench.item(A, Inbound::Request(head("x", None)));
    bench.item(A, Inbound::End);
    assert_eq!(status(&bench.heard(A)).0, 400);
    let mut text = without(head("x", None), "content-type");
    assert_eq!(status(&post(&mut bench, text.clone(), &modern("1", "x", ""))).0, 415);
    text.headers.push("Content-Type", "text/plain");
    bench.item(A, Inbound::Request(text));
    bench.item(A, Inbound::Body(Bytes::from_static(b"x")));
    bench.item(A, Inbound::Body(Bytes::from_static(b"y")));
    bench.item(A, Inbound::End);
    let said = bench.heard(A);
    assert_eq!((status(&said).0, error(status(&said).1).code), (415, -32600));
    assert!(bench.outputs().is_empty() && bench.server.wire.env.exchanges.is_empty());
}

// covers: META-S-012, META-S-011, HTTP-S-033, VER-S-002, VER-S-021, X-14, X-40, HTTP-S-031,
// PING-S-006
#[test]
fn order_of_the_checks_decides_the_error() {
    let full = modern("1", "tools/list", "");
    let no_capabilities = full.replace("clientCapabilities", "other");
    let no_version = full.replace("protocolVersion", "other");
    let no_meta = legacy("1", "tools/list", "{}");
    let good = || head("tools/list", None);
    let no_header = || without(good(), "mcp-protocol-version");
    let old_header = || {
        let mut head = no_header();
        head.headers.push("MCP-Protocol-Version", "2025-11-25");
        head
    };
    let cases: [(RequestHead, String, u16, i64); 12] = [
        (good(), no_capabilities.clone(), 400, -32602),
        (no_header(), no_capabilities, 400, -32602),
        (no_header(), no_version.clone(), 400, -32602),
        (good(), no_version, 400, -32602),
        (good(), no_meta.clone(), 400, -32602),
        (no_header(), no_meta.clone(), 400, -32020),
        (old_header(), no_meta, 400, -32022),
        (no_header(), initialize("2025-11-25", "{}"), 400, -32022),
        (old_header(), full.replace("2026-07-28", "2099-01-01"), 400, -32020),
        (old_header(), full.replace("2026-07-28", "2025-11-25"), 400, -32022),
        (head("ping", None), modern("1", "ping", ""), 404, -32601),
        (head("initialize", None), modern("1", "initialize", ""), 404, -32601),
    ];
    for (head, body, status_code, code) in cases {
        let mut bench = modern_only();
        let said = post(&mut bench, head, &body);
        let (status, text) = status(&said);
        assert_eq!((status, error(text).code), (status_code, code), "{body}");
        if code == -32022 {
            let data = Object::read(&error(text).data.unwrap()).unwrap();
            assert_eq!(data.required::<Vec<String>>("supported").unwrap(), ["2026-07-28"]);
        }
        assert!(bench.server.wire.env.exchanges.is_empty());
    }
}

// covers: HDR-S-003, HDR-B-007, HDR-B-008, HDR-S-009, HDR-S-010, HDR-S-011, HDR-S-012, HDR-S-013,
// HDR-B-037, HDR-S-038, B-211, B-215, B-216
#[test]
fn headers_are_required_and_must_match_the_body() {
    let wrapped = "=?base64?SGVsbG8sIOS4lueVjA==?=";
    let cases: [(&str, Option<&str>, &str, bool); 14] = [
        ("tools/call", Some("us-west1"), "us-west1", true),
        ("tools/call", Some(" us-west1\t"), "us-west1", true),
        ("tools/call", Some(wrapped), "Hello, 世界", true),
        ("tools/call", Some("=?base64?IHBhZGRlZCA=?="), " padded ", true),
        ("tools/call", Some("=?base64?bGluZTEKbGluZTI=?="), "line1\\nline2", true),
        ("tools/call", Some("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="), "=?base64?literal?=", true),
        ("tools/call", Some(""), "", true),
        ("tools/call", None, "t", false),
        ("tools/call", Some("T"), "t", false),
        ("tools/call", Some("Hello, 世界"), "Hello, 世界", false),
        ("tools/call", Some("=?base64?!!?="), "x", false),
        ("tools/call", Some("=?BASE64?eA==?="), "x", false),
        ("Tools/Call", Some("t"), "t", false),
        ("tools/list", Some("t"), "t", false),
    ];
    for (method, header, name, good) in cases {
        let mut bench = Bench::new();
        bench.item(A, Inbound::Request(head(method, header)));
        bench.item(A, read(&modern("1", "tools/call", &format!(r#","name":"{name}""#))));
        let outputs = bench.outputs();
        let handed = outputs.iter().any(|output| matches!(output, Output::Event(Event::Request(..))));
        assert_eq!(handed, good, "{method} {header:?} {name}");
        if !good {
            let said: Vec<_> = outputs.iter().filter_map(|output| on(A, output)).collect();
            let (status, text) = status(&said);
            assert_eq!((status, error(text).code), (400, -32020));
            assert!(
                matches!(&outputs[0], Output::Event(Event::Diagnostic(d)) if d.kind == DiagnosticKind::HeaderMismatch)
            );
        }
    }
    let mut bench = Bench::new();
    let body = modern("1", "resources/read", r#","uri":"file:///x","name":"y""#);
    let said = post(&mut bench, head("resources/read", Some("y")), &body);
    assert_eq!(status(&said).0, 400);
    bench.item(A, Inbound::Request(head("resources/read", Some("file:///x"))));
    bench.runs(A, &body);
    let mut twice = head("tools/list", None);
    twice.headers.push("MCP-METHOD", "tools/call");
    bench.handle_event(A, failed());
    assert_eq!(status(&post(&mut bench, twice, &modern("1", "tools/list", ""))).0, 400);
    let mut bench = Bench::new();
    let said = post(&mut bench, without(head("tools/list", None), "mcp-method"), &modern("1", "tools/list", ""));
    assert_eq!(error(status(&said).1).code, -32020);
}

// covers: HTTP-S-031, META-S-016, VER-S-002, X-45
#[test]
fn error_code_decides_the_status() {
    for (code, expected) in
        [(-32601, 404), (-32020, 400), (-32021, 400), (-32022, 400), (-32602, 200), (-32603, 200), (5, 200)]
    {
        let mut bench = Bench::new();
        let (responder, _) = called(&mut bench);
        bench.answer(responder, Outcome::Error(ErrorObject::new(code, "m")));
        assert_eq!(status(&bench.heard(A)).0, expected);
    }
    let mut bench = Bench::new();
    let (responder, _) = called(&mut bench);
    bench.answer(responder, ask("q"));
    let said = bench.heard(A);
    assert_eq!((status(&said).0, error(status(&said).1).code), (400, -32021));
}

// covers: MRTR-S-001, HTTP-S-020, RPC-S-026
#[test]
fn input_request_is_a_result_over_http() {
    let mut bench = Bench::new();
    bench.item(A, Inbound::Request(head("tools/call", Some("t"))));
    let line = modern_with("1", "tools/call", r#"{"elicitation":{}}"#, r#","name":"t""#);
    let (responder, _) = bench.request(A, &line);
    bench.answer(responder, ask("q"));
    let said = bench.heard(A);
    let state: String = result(status(&said).1).required("requestState").unwrap();
    bench.item(B, Inbound::Request(head("tools/call", Some("t"))));
    let retry = line.replace(r#","name":"t""#, &format!(r#","name":"t","requestState":"{state}""#));
    let (mut responder, mut incoming) = bench.request(B, &retry);
    responder.open(&mut incoming).unwrap();
}

// covers: HTTP-S-013, SEPX-B-002, B-066
#[test]
fn invalid_http_request_gets_its_status() {
    let defect = BadRequest { status: 431, why: "the head is too large" };
    let mut bench = Bench::new();
    bench.item(A, Inbound::Reject(defect.clone()));
    let said = bench.heard(A);
    assert_eq!((status(&said).0, error(status(&said).1).message.as_str()), (431, "the head is too large"));
    bench.item(A, Inbound::Request(head("x", None)));
    bench.item(A, Inbound::Reject(BadRequest { status: 413, why: "too large" }));
    assert_eq!(status(&bench.heard(A)).0, 413);
    assert!(bench.server.wire.env.exchanges.is_empty());
}

// covers: B-172, B-173
#[test]
fn shutdown_answers_running_requests_and_refuses_new_ones() {
    let mut bench = Bench::new();
    let _ = called(&mut bench);
    bench.item(B, Inbound::Request(head("x", None)));
    bench.server.shutdown(bench.now, Duration::ZERO);
    let outputs = bench.outputs();
    assert!(matches!(outputs[0], Output::Event(Event::Cancelled(_))));
    assert!(on(A, &outputs[1]).unwrap().starts_with("200 "));
    assert!(on(B, &outputs[2]).unwrap().starts_with("503 "));
    assert_eq!(outputs[3..], [Output::Event(Event::Terminated)]);
}

// covers: B-167, HTTP-S-030
#[test]
fn exchange_with_invalid_rest_of_body_is_answered_once() {
    let refused = || Inbound::Reject(BadRequest { status: 413, why: "too large" });
    // During a streamed response the status is already sent, so the stream is aborted.
    let mut bench = Bench::new();
    let (responder, _) = called(&mut bench);
    bench.server.notify(bench.now, responder.key(), Note::Custom("x".into(), Object::new())).unwrap();
    assert_eq!(bench.heard(A).len(), 2);
    bench.item(A, refused());
    assert_eq!(bench.heard(A), ["abort"]);
    bench.complete(responder, "{}");
    assert!(bench.outputs().is_empty() && bench.at_rest());
}

// covers: X-40, META-S-012, X-14
#[test]
fn modern_version_header_requires_metadata() {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for version in ["2026-07-28", "2027-01-01"] {
        let mut head = without(head("tools/list", None), "mcp-protocol-version");
        head.headers.push("MCP-Protocol-Version", version);
        let mut bench = Bench::new();
        let said = post(&mut bench, head, body);
        let (status, body) = status(&said);
        assert_eq!((status, error(body).code), (400, -32602), "{version}");
    }
}

// covers: X-45, MRTR-S-022, HTTP-S-031
#[test]
fn malformed_input_responses_are_invalid_params() {
    let mut bench = Bench::new();
    let body = modern("1", "tools/call", r#","name":"t","inputResponses":7"#);
    // The application knows whether the method exists, and that error comes first.
    let cases: [(Outcome, u16, i64); 3] = [
        (Outcome::Complete(Object::new()), 200, -32602),
        (Outcome::NeedInput { requests: Vec::new(), state: None }, 200, -32602),
        (Outcome::Error(ErrorObject::new(-32601, "Method not found")), 404, -32601),
    ];
    for (outcome, status_code, code) in cases {
        bench.item(A, Inbound::Request(head("tools/call", Some("t"))));
        let (mut responder, mut incoming) = bench.request(A, &body);
        bench.item(A, Inbound::End);
        assert_eq!(responder.open(&mut incoming).unwrap_err().code, -32602);
        assert!(incoming.inputs.is_empty());
        bench.answer(responder, outcome);
        let said = bench.heard(A);
        let (status, body) = status(&said);
        assert_eq!((status, error(body).code), (status_code, code));
    }
}

// covers: HTTP-S-002, HTTP-S-003, B-180, B-181, B-182, B-183
#[test]
fn ambiguous_host_or_origin_is_refused() {
    let answer = |hosts: &Hosts, name: &str, values: &[&str]| {
        let mut bench = Bench::with(|config| config.hosts = hosts.clone());
        let mut head = head("server/discover", None);
        values.iter().for_each(|value| head.headers.push(name, *value));
        let said = post(&mut bench, head, &modern("1", "server/discover", ""));
        let (status, body) = status(&said);
        let why =
            format!("Forbidden: {} not allowed", if name.eq_ignore_ascii_case("host") { "Host" } else { "Origin" });
        assert!(status != 403 || error(body).message == why, "{body}");
        status
    };
    let (local, any) = (Hosts::Loopback, Hosts::Any);
    for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8000", "127.9.9.9", "[::1]", "[::1]:80", "localhost:"] {
        assert_eq!(answer(&local, "hOST", &[host]), 200, "{host}");
        assert_eq!(answer(&local, "oRIGIN", &[&format!("https://{host}")]), 200, "{host}");
    }
    for host in [
        "evil.example",
        "localhost.evil.example",
        "localhost:80@evil.example",
        "localhost:x",
        "[::1].evil.example",
        "[::1]80",
        "[::1",
        "x@localhost",
        "0.0.0.0",
        "[::]",
        "",
        "localhost/",
        "localhost, evil.example",
    ] {
        assert_eq!(answer(&local, "Host", &[host]), 403, "{host}");
        assert_eq!(answer(&local, "Origin", &[&format!("http://{host}")]), 403, "{host}");
        assert_eq!(answer(&local, "Host", &["localhost", host]), 403, "{host}");
        assert_eq!(answer(&local, "Origin", &["http://localhost", &format!("http://{host}")]), 403, "{host}");
        assert_eq!(answer(&any, "Origin", &[host]), 200, "{host}");
    }
    assert_eq!(answer(&local, "Origin", &["null"]), 403);
    assert_eq!(answer(&any, "Origin", &["null"]), 200);
}
