//! The log: its form, and that equal tests have equal logs.

use super::{all_configs, link, over_http, over_sse, over_web_socket, router};
use crate::testing::log::LogRedactor;
use crate::testing::{Flow, Link, LinkOptions, Log, Time};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;
use mcp_proto::server::ServerCommands;
use mcp_proto::{ClientConfig, tools};

/// A test with everything that depends on time, bytes or random values.
fn run(config: ClientConfig) -> Log {
    let time = Time::new();
    let mut link = Link::with(router(&time), config, LinkOptions::new().time(&time));
    link.set_latency(Duration::from_millis(3));
    for tool in ["steps", "hello", "steps"] {
        drop(link.call(tools::call(tool).progress().timeout(Duration::from_secs(9))));
    }
    link.advance(Duration::from_secs(5));
    link.stall(Flow::ToClient);
    link.advance(Duration::from_secs(1));
    link.resume(Flow::Both);
    link.cut();
    drop(link.call(tools::call("hello")));
    link.advance(Duration::from_secs(60));
    link.log().clone()
}

#[test]
fn equal_tests_have_equal_logs() {
    for config in all_configs() {
        let (one, other) = (run(config.clone()), run(config.clone()));
        assert_eq!(one, other);
        assert!(one.lines().count() > 25, "{one}");
    }
}

#[test]
fn log_shows_a_timeout() {
    let mut link = link(ClientConfig::given());
    let call = link.call(tools::call("steps").timeout(Duration::from_millis(5000))).expect("it is accepted");
    link.stall(Flow::ToServer);
    link.wait(&call).expect_err("it times out");
    link.advance(Duration::from_micros(1500));
    link.resume(Flow::ToServer);
    let shown = link.log().to_string();
    let lines: Vec<&str> = shown.lines().collect();
    let expected = [
        "       0.000 ms  client            call 1 is made",
        "       0.000 ms  client            [1] open",
        "       0.000 ms  client -> server  [1] server/discover #1",
        "       0.000 ms  client            ready, revision 2026-07-28",
        r#"       0.000 ms  client -> server  [1] tools/call #2 {"name":"steps"}"#,
        "       0.000 ms  server            tools/call steps begins",
        "       0.000 ms  test              stalls ToServer",
        "    5000.000 ms  client            timer: Call(CallId(1))",
        r#"    5000.000 ms  client -> server  [1] notifications/cancelled {"requestId":2,"reason":"timed out"}"#,
        "    5000.000 ms  client            call 1 failed: no response within 5000 ms",
        "    5001.500 ms  test              resumes ToServer",
        r#"    5001.500 ms  server reads      [1] notifications/cancelled {"requestId":2,"reason":"timed out"}"#,
        "    5001.500 ms  server            tools/call steps is cancelled",
    ];
    // The result of the negotiation has many members.
    let without: Vec<&str> = lines.iter().copied().filter(|line| !line.contains("result of #1")).collect();
    assert_eq!((without, lines.len()), (expected.to_vec(), expected.len() + 1), "{shown}");
    assert!(link.log().lines().eq(lines));
}

#[test]
fn http_is_shown_with_its_heads() {
    let mut link = link(over_http());
    link.call(tools::call("hello")).expect("it is accepted");
    let log = link.log().to_string();
    for text in [
        r#"client -> server  [1] POST /mcp tools/call #2 {"name":"hello"}"#,
        r#"server -> client  [1] 200 OK result of #2 {"content":[{"type":"text","text":"hello"}]"#,
    ] {
        assert!(log.contains(text), "{log}");
    }
}

#[test]
fn messages_in_frames_are_shown() {
    let mut link = link(over_web_socket());
    link.call(tools::call("hello")).expect("it is accepted");
    link.advance(Duration::from_secs(60));
    link.with_server(|server, now| server.shutdown(now, Duration::ZERO));
    let log = link.log().to_string();
    for text in [
        "client -> server  [1] GET /mcp",
        "server -> client  [1] 101 Switching Protocols",
        r#"client -> server  [1] tools/call #2 {"name":"hello"}"#,
        r#"server -> client  [1] result of #2 {"content":[{"type":"text","text":"hello"}]"#,
        "server -> client  [1] close 1001",
        "client -> server  [1] close 1001",
    ] {
        assert!(log.contains(text), "{text}: {log}");
    }
}

#[test]
fn endpoint_of_http_sse_is_shown() {
    let mut link = link(over_sse());
    link.call(tools::call("hello")).expect("it is accepted");
    let log = link.log().to_string();
    for text in ["server -> client  [1] event endpoint", r#"[3] POST /messages?sessionId=x"#, "[1] result of #3"] {
        assert!(log.contains(text), "{text}: {log}");
    }
}

#[test]
fn secrets_and_long_messages_are_not_shown() {
    for config in all_configs() {
        let mut link = link(config);
        let arguments = mcp_proto::Object::new().with("api_key", "sk-123").with("text", "a".repeat(1000).as_str());
        link.call(tools::call("hello").arguments(&arguments)).expect("it is accepted");
        let log = link.log().to_string();
        assert!(log.contains(r#""api_key":"xxxxxx""#) && !log.contains("sk-123"), "{log}");
        assert!(!log.contains(&"a".repeat(101)), "{log}");
    }
}

fn shown(text: &str) -> Vec<String> {
    LogRedactor::default().lines(text.as_bytes())
}

#[test]
fn each_message_has_a_line() {
    let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert_eq!(shown(&format!("{response}\n{response}\n")), ["result of #1", "result of #1"]);
    let error = r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32603,"message":"no"}}"#;
    assert_eq!(shown(error), [r#"error of #"a": MCP error -32603: no"#]);
    let idless = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}"#;
    assert_eq!(shown(&format!("[{response},{response}]\n")), ["batch of 2"]);
    assert_eq!(shown(idless), ["error without an id: MCP error -32600: no"]);
    let stream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let event = format!("data: {response}\r\n\r\n");
    let chunk = format!("{:x}\r\n{event}\r\n", event.len());
    assert_eq!(shown(stream), ["200 OK"]);
    assert_eq!(shown(&format!("{stream}{chunk}{chunk}")), ["200 OK result of #1", "result of #1"]);
    let mut later = LogRedactor::default();
    drop(later.lines(stream.as_bytes()));
    assert_eq!(later.lines(b"3\r\n:\r\n\r\n"), ["comment"]);
    assert_eq!(later.lines(b"9\r\nid: 1\r\n\r\n\r\n"), ["empty event"]);
    assert_eq!(later.lines(b"0\r\n\r\n"), ["end of the stream"]);
    assert_eq!(shown("no JSON\n"), ["8 bytes"]);
}
