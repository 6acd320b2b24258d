//! Compares the redactor with the codec: both find the same messages, and the redactor masks
//! everything after a byte that the codec rejects.

use super::super::{Redactor, Side};
use super::text;
use crate::exchange::{Headers, Inbound, Outbound, RequestHead};
use crate::frame::{Conn, Kind};
use crate::limits::FrameLimits;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use proptest::prelude::*;

/// What follows a response, and a request.
const NEXT: [(&str, &str); 2] = [
    (
        "HTTP/1.1 200 OK\r\nMcp-Session-Id: hunter2\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n{\"id\":7}",
        "HTTP/1.1 200 OK\r\nMcp-Session-Id: xxxxxxx\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n{\"id\":7}",
    ),
    (
        "POST /mcp HTTP/1.1\r\nHost: h\r\nX-Auth-Key: hunter2\r\nContent-Length: 8\r\n\r\n{\"id\":7}",
        "POST /mcp HTTP/1.1\r\nHost: h\r\nX-Auth-Key: xxxxxxx\r\nContent-Length: 8\r\n\r\n{\"id\":7}",
    ),
];

/// Returns whether the codec parses the bytes as exactly one message. `None` if it needs more.
fn accepts(side: Side, bytes: &[u8]) -> Option<bool> {
    let kind = if side == Side::Response { Kind::HttpClient } else { Kind::HttpServer };
    let mut conn = Conn::new(kind, &FrameLimits::default());
    // As in a recording: what a coded body holds cannot be masked.
    conn.set_coding(false);
    if side == Side::Response {
        let head = RequestHead { method: "GET".into(), target: "/".into(), headers: Headers::new().with("Host", "h") };
        conn.encode(Outbound::Request { head, body: Default::default() });
    }
    conn.bytes(bytes.to_vec().into());
    let mut ended = false;
    while let Some(item) = conn.poll_item() {
        match item {
            Inbound::Reject(_) => return Some(false),
            Inbound::End => ended = true,
            // A second message.
            Inbound::Response(_) | Inbound::Request(_) if ended => return None,
            _ => {}
        }
    }
    match conn.broken() {
        Some(_) if !ended => Some(false),
        None if ended && conn.at_boundary() => Some(true),
        _ => None,
    }
}

/// Redacts the message with another one after it, and compares with the codec. Returns whether the
/// codec accepts it.
#[track_caller]
fn compare(side: Side, message: &[u8]) -> Option<bool> {
    let (next, shown) = NEXT[usize::from(side == Side::Request)];
    let redacted = Redactor::of_http(side).redact(&[message, next.as_bytes()].concat());
    let (_, tail) = redacted.split_at(message.len());
    let accepted = accepts(side, message);
    match accepted {
        Some(true) => assert_eq!(text(tail), shown, "behind {:?}", text(message)),
        Some(false) => {
            let blank = |byte: &u8| matches!(byte, b'x' | b'\r' | b'\n');
            assert!(tail.iter().all(blank), "{:?} behind {:?}", text(tail), text(message));
        }
        // It belongs to the body.
        None => {}
    }
    // The codec gives the same result for the redacted bytes, so that a replay does not differ.
    assert_eq!(accepts(side, &redacted[..message.len()]), accepted, "{:?} of {:?}", text(&redacted), text(message));
    accepted
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";

// covers: S2-44
#[test]
fn response_lengths_match_the_codec() {
    for (fields, body) in [
        ("Content-Length: 2, 2\r\n", "{}"),
        ("Content-Length: 2\r\nContent-Length: 2\r\n", "{}"),
        ("Content-Length: 2 ,\t2\r\ncontent-length:2\r\n", "{}"),
        ("Content-Length: 002\r\n", "{}"),
        ("Content_Length: 9\r\nContent-Length: 2\r\nContentLength: 7\r\n", "{}"),
        ("Transfer-Encoding: Chunked\r\n", "2 \t\r\n{}\r\n0;a=\"b\\\";\"\r\nX: y\r\n\r\n"),
        ("Transfer_Encoding: chunked\r\nContent-Length: 2\r\n", "{}"),
        ("Content-Encoding: identity, \r\nContent-Length: 2\r\n", "{}"),
        ("Content-Encoding: none\r\nContent-Encoding: UTF-8 , identity\r\nContent-Length: 2\r\n", "{}"),
        ("Content-Encoding: gzip\r\nContent-Length: 0\r\n", ""),
    ] {
        assert_eq!(compare(Side::Response, format!("{OK}{fields}\r\n{body}").as_bytes()), Some(true), "{fields}");
    }
    for (fields, body) in [
        ("Content-Length: 2, 3\r\n", "{}"),
        ("Content-Length: 2\r\nContent-Length: 02\r\n", "{}"),
        ("Content-Length: 2,\r\n", "{}"),
        ("Content-Length: \r\n", "{}"),
        ("Content-Length: +2\r\n", "{}"),
        ("Content-Length: 2 2\r\n", "{}"),
        ("Content-Length: two\r\n", "{}"),
        ("Content-Length: 99999999999999999999\r\n", "{}"),
        ("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"),
        ("Transfer-Encoding: gzip, chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"),
        ("Transfer-Encoding: \r\n", "2\r\n{}\r\n0\r\n\r\n"),
        ("Content-Encoding: gzip\r\nContent-Length: 2\r\n", "{}"),
        ("Content-Encoding: none none\r\nContent-Length: 2\r\n", "{}"),
        ("Content-Encoding: utf-16\r\nContent-Length: 2\r\n", "{}"),
        ("Content-Length: 2\nX: y\r\n", "{}"),
        ("Content-Length: 2\rX: y\r\n", "{}"),
        ("Content-Length : 2\r\n", "{}"),
        (" Content-Length: 2\r\n", "{}"),
        ("Content-Length\r\n", "{}"),
        (": 2\r\nContent-Length: 2\r\n", "{}"),
        ("X: a\u{1}\r\nContent-Length: 2\r\n", "{}"),
        ("Set-Cookie: a\u{7f}b\r\nContent-Length: 2\r\n", "{}"),
        ("Content-Length: 2\r\n\nX: y", "{}"),
        ("Transfer-Encoding: chunked\r\n", "2\n{}\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\n", "2;a=\"b\r\n{}\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\n", "2\r\n{} \r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\n", "00000000000000002\r\n{}\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n: y\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\n", "g\r\n{}\r\n0\r\n\r\n"),
    ] {
        assert_eq!(
            compare(Side::Response, format!("{OK}{fields}\r\n{body}").as_bytes()),
            Some(false),
            "{fields}{body}"
        );
    }
    for head in ["HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked", "HTTP/1.1 101 no\r\nX: y", "HTTP/1.2 200 OK\r\nX: y"]
    {
        assert_eq!(compare(Side::Response, format!("{head}\r\n\r\n").as_bytes()), Some(false), "{head}");
    }
    for head in [
        "HTTP/1.1 204 \r\nContent-Length: 9",
        "HTTP/1.1 304\r\nTransfer-Encoding: x",
        "HTTP/1.0 200 \u{e9}\r\nContent-Length: 0",
    ] {
        let message = format!("HTTP/1.1 100 Continue\r\nContent-Length: x\r\n\r\n\r\n{head}\r\n\r\n");
        assert_eq!(compare(Side::Response, message.as_bytes()), Some(true), "{head}");
    }
}

// covers: S2-44
#[test]
fn request_lengths_match_the_codec() {
    let post = "POST / HTTP/1.1\r\nHost: h\r\n";
    for (head, body) in [
        (format!("{post}Content-Length: 2, 2\r\nContent-Length: 2\r\n"), "{}"),
        (format!("{post}Transfer-Encoding: chunked\r\n"), "2;a\r\n{}\r\n0\r\n\r\n"),
        ("\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n".into(), ""),
        ("GET /bearer HTTP/1.0\r\n".into(), ""),
        (String::from("M-SEARCH /?q=\"token\":\"a HTTP/1.1\r\nHost: h\r\n"), ""),
    ] {
        assert_eq!(compare(Side::Request, format!("{head}\r\n{body}").as_bytes()), Some(true), "{head}");
    }
    for (head, body) in [
        (String::from(post), "{}"),
        (format!("{post}Content-Length: 2, 3\r\n"), "{}"),
        (format!("{post}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n"), "2\r\n{}\r\n0\r\n\r\n"),
        (format!("{post}Content-Length: 2\r\nContent-Encoding: gzip\r\n"), "{}"),
        (format!("{post}Transfer-Encoding: chunked\r\n"), "2 \r\n{}\r\n0\r\n\r\n"),
        ("GET /  HTTP/1.1\r\nHost: h\r\n".into(), ""),
        ("GET  / HTTP/1.1\r\nHost: h\r\n".into(), ""),
        ("GET / HTTP/1.1 \r\nHost: h\r\n".into(), ""),
        ("GET / HTTP/2.0\r\nHost: h\r\n".into(), ""),
        ("GET /\u{e9} HTTP/1.1\r\nHost: h\r\n".into(), ""),
        ("\nGET / HTTP/1.1\r\nHost: h\r\n".into(), ""),
        ("{}\r\n".into(), ""),
    ] {
        assert_eq!(compare(Side::Request, format!("{head}\r\n{body}").as_bytes()), Some(false), "{head}");
    }
}

/// Bytes between two messages are masked, whatever they look like.
// covers: S2-44
#[test]
fn http_connection_never_becomes_one_of_lines() {
    for stray in
        ["Mcp-Session-Id: hunter2\r\n", "{\"a\":\"hunter2\"}\n", " HTTP/1.1 200 OK\r\nX: hunter2\r\n", "hunter2"]
    {
        for before in ["", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"] {
            let bytes = format!("{before}{stray}");
            assert!(!text(&Redactor::of_http(Side::Response).redact(bytes.as_bytes())).contains("hunter"), "{bytes:?}");
            assert!(
                before.is_empty() || !text(&Redactor::new().redact(bytes.as_bytes())).contains("hunter"),
                "{bytes:?}"
            );
        }
    }
    // A redactor that does not know the protocol treats a line as HTTP if it has the name of HTTP
    // where a first line has it.
    for first in
        ["HTTP/2 200 OK\r\n", "HTTP/1.1 OK\r\n", "GET / HTTP/1.1 \r\n", "get / HTTP/1.1\r\n", "GET / HTTP/1.1\n"]
    {
        let bytes = format!("{first}Mcp-Session-Id: hunter2\r\n\r\n");
        assert!(!text(&Redactor::new().redact(bytes.as_bytes())).contains("hunter2"), "{bytes:?}");
    }
    // A program that prints its address is not HTTP.
    let lines = "Serving HTTP/1.1 at port 1\nprogress 1%\rprogress 2%\n{\"id\":7,\"a\":\"b\"}\n";
    assert_eq!(text(&Redactor::new().redact(lines.as_bytes())), lines);
    let lines = "HTTP/1.1 200 OK\n\n{\"id\":7,\"token\":\"a\"}\n";
    assert_eq!(text(&Redactor::of_lines().redact(lines.as_bytes())), lines.replace("\"a\"", "\"x\""));
}

/// An HTTP message, usually valid, sometimes with mistakes.
fn message(side: Side) -> impl Strategy<Value = Vec<u8>> {
    let first = if side == Side::Response {
        prop_oneof![
            12 => Just("HTTP/1.1 200 OK\r\n"),
            4 => prop::sample::select(
                [
                    "HTTP/1.1 204 \r\n", "HTTP/1.1 404\r\n", "HTTP/1.0 200 OK\r\n", "HTTP/1.1 304 a=\"b\r\n", "HTTP/1.1 99 a\r\n",
                    "HTTP/1.1 103 a\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\n", "\r\nHTTP/1.1 200 token=a\r\n", "HTTP/1.1 200 OK\n",
                ]
                .to_vec(),
            ),
        ]
    } else {
        prop_oneof![
            12 => Just("POST /mcp HTTP/1.1\r\nHost: h\r\n"),
            4 => prop::sample::select(
                [
                    "GET / HTTP/1.1\r\nHost: h\r\n", "DELETE /?token=a HTTP/1.1\r\nhost:h\r\n", "PATCH / HTTP/1.0\r\n", "PUT /\r\n",
                    "POST / HTTP/1.1\r\nHost : h\r\n", "\r\nPUT / HTTP/1.1\r\nHost: h\r\n", "POST /x/bearer HTTP/1.1\r\nHost: h\r\n",
                ]
                .to_vec(),
            ),
        ]
    };
    let field = prop_oneof![
        4 => prop::sample::select(
            ["Content-Length: 2\r\n", "content-length: 2, 2\r\n", "Content-Length:2\r\n", "Content-Length: 2\t\r\n"].to_vec()
        ),
        3 => prop::sample::select(["Transfer-Encoding: chunked\r\n", "transfer-encoding:CHUNKED \r\n"].to_vec()),
        1 => prop::sample::select(["Transfer-Encoding: chunked, chunked\r\n", "Transfer-Encoding: token=chunked\r\n"].to_vec()),
        1 => prop::sample::select(
            ["Content-Encoding: gzip\r\n", "Content-Encoding: identity,\r\n", "Content-Type: text/event-stream; a\r\n"].to_vec()
        ),
        2 => prop::sample::select(["X-A: b\r\n", "Set-Cookie: a=b; c\r\n", "X-A:\r\n", "Content_Length: 7\r\n", "Server: a\tb\r\n"].to_vec()),
        1 => prop::sample::select(["X-A: b\n", " c\r\n", "X-A : b\r\n", "X-A: \u{1}\r\n", "X-A: a\rb\r\n", "X-A\r\n", "\u{e9}: a\r\n"].to_vec()),
    ];
    let field = prop_oneof![
        12 => field.prop_map(String::from),
        1 => "(C|c)ontent-(L|l)ength:[ 0-3,x+]{0,4}\r\n",
    ];
    let body = prop_oneof![
        4 => Just("{}"),
        4 => prop::sample::select(
            ["2\r\n{}\r\n0\r\n\r\n", "1\r\n{\r\n001;a=\"\\\"\"\r\n}\r\n0\r\nA: b\r\n\r\n", "2  \r\n{}\r\n0 ;a\r\n\r\n"].to_vec()
        ),
        1 => prop::sample::select(
            ["", "{}{}", "2\n{}\r\n0\r\n\r\n", "2;a=\"\r\n{}\r\n", "g\r\n", "1\r\n{}\r\n", "\r\n", "0\r\n a\r\n\r\n", ";\r\n"].to_vec()
        ),
    ];
    (first, prop::collection::vec(field, 0..4), body).prop_map(|(first, fields, body)| {
        [first.as_bytes(), fields.concat().as_bytes(), b"\r\n", body.as_bytes()].concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    // covers: S2-44
    #[test]
    fn any_response_matches_the_codec(message in message(Side::Response)) {
        compare(Side::Response, &message);
    }

    // covers: S2-44
    #[test]
    fn any_request_matches_the_codec(message in message(Side::Request)) {
        compare(Side::Request, &message);
    }
}
