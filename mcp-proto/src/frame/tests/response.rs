use super::http::{fields, get, limits};
use super::*;
use crate::exchange::{Data, Headers, RequestHead, ResponseHead, SseEvent};
use crate::frame::BodyDecoder;
use alloc::vec;
use core::time::Duration;
use proptest::prelude::*;

/// Returns the request that a client has sent.
fn asked(method: &str) -> Outbound {
    let head =
        RequestHead { method: method.to_owned().into(), target: "/".into(), headers: Headers::new().with("host", "h") };
    Outbound::Request { head, body: Bytes::new() }
}

fn answer(method: &str, bytes: &[u8], eof: bool) -> Seen {
    Case { kind: Kind::HttpClient, limits: limits(), sent: Some(asked(method)), eof, bytes }.seen()
}

pub(super) fn client(bytes: &[u8], eof: bool) -> Seen {
    answer("GET", bytes, eof)
}

pub(super) fn response(status: u16, headers: &[(&str, &str)]) -> Inbound {
    Inbound::Response(ResponseHead { status, headers: fields(headers) })
}

fn check_response(bytes: &str, items: &[Inbound], keep_alive: bool) {
    check("GET", bytes, items, keep_alive);
}

/// Checks a response alone. A truncated one must break the connection, and bytes after it must end
/// its reuse.
fn check(method: &str, bytes: &str, items: &[Inbound], keep_alive: bool) {
    let seen = answer(method, bytes.as_bytes(), false);
    assert_eq!((&seen.items[..], &seen.broken), (items, &None), "{bytes}");
    assert_eq!((seen.at_boundary, seen.keep_alive), (true, keep_alive), "{bytes}");
    for cut in 1..bytes.len() {
        let case = Case { kind: Kind::HttpClient, limits: limits(), sent: Some(asked(method)), eof: true, bytes: &[] };
        let seen = case.feed([&bytes.as_bytes()[..cut]], false);
        assert!(seen.broken.is_some_and(|why| why.contains("cut short")), "{cut} of {bytes}");
        assert_ne!(seen.items.last(), Some(&Inbound::End));
    }
    let stray = answer(method, format!("{bytes}x").as_bytes(), false);
    assert_eq!((&stray.items[..], stray.keep_alive, stray.broken.is_some()), (items, false, true), "{bytes}");
}

#[test]
fn responses_are_parsed_by_type_and_length() {
    let m = note_text("m");
    check_response(
        &format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{m}", m.len()),
        &[
            response(200, &[("Content-Type", "application/json"), ("Content-Length", &m.len().to_string())]),
            Inbound::Message(note("m")),
            Inbound::End,
        ],
        true,
    );
    check_response(
        &format!(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 \r\na: b\r\n\r\nHTTP/1.1 200\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{:x}\r\n{m}\r\n0\r\n\r\n",
            m.len()
        ),
        &[
            response(
                200,
                &[("Transfer-Encoding", "chunked"), ("Content-Type", "application/json"), ("Connection", "close")],
            ),
            Inbound::Message(note("m")),
            Inbound::End,
        ],
        false,
    );
    check_response(
        "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{\"a\":1}",
        &[
            response(404, &[("Content-Type", "application/json"), ("Content-Length", "7")]),
            Inbound::Body("{\"a\":1}".into()),
            Inbound::End,
        ],
        true,
    );
    check_response(
        &format!("HTTP/1.1 400 Bad\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{m}", m.len()),
        &[
            response(400, &[("Content-Type", "application/json"), ("Content-Length", &m.len().to_string())]),
            Inbound::Message(note("m")),
            Inbound::End,
        ],
        true,
    );
    check_response(
        "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
        &[response(202, &[("Content-Length", "0")]), Inbound::End],
        true,
    );
    check_response(
        "HTTP/1.1 204 \r\nContent-Type: application/json\r\n\r\n",
        &[response(204, &[("Content-Type", "application/json")]), Inbound::End],
        true,
    );
    check_response(
        "HTTP/1.1 304 \r\nContent-Length: 9\r\n\r\n",
        &[response(304, &[("Content-Length", "9")]), Inbound::End],
        true,
    );
    check_response(
        "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        &[response(200, &[("Content-Length", "0")]), Inbound::End],
        false,
    );
}

// covers: B-166
#[test]
fn chunks_may_have_extensions_trailers_and_leading_zeros() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: CHUNKED\r\n";
    let seen = |body: &str| {
        let items =
            [response(200, &[("Transfer-Encoding", "CHUNKED")]), Inbound::Body(body.to_string().into()), Inbound::End];
        items.into_iter().filter(|item| *item != Inbound::Body(Bytes::new())).collect::<Vec<_>>()
    };
    let bodies = [
        ("5;a=b;c=\"d;\\\"e\"\r\nhello\r\n0;x\r\n\r\n", "hello"),
        ("1 \t; a = b\r\nh\r\n004\t \r\nello\r\n0\r\n\r\n", "hello"),
        ("0000000000000005\r\nhello\r\n0000000000000000\r\n\r\n", "hello"),
        ("5                \r\nhello\r\n0\t \t \t \t \t \t \t \t ;x\r\n\r\n", "hello"),
        ("A\r\n0123456789\r\na\r\n\r\n\r\n\r\n\r\n\r\n\r\n0\r\n\r\n", "0123456789\r\n\r\n\r\n\r\n\r\n"),
        ("0\r\n\r\n", ""),
        ("5\r\nhello\r\n0\r\nExpires: never\r\nContent-Length: 9\r\nX:\r\n\r\n", "hello"),
    ];
    for (chunks, body) in bodies {
        check_response(&format!("{head}\r\n{chunks}"), &seen(body), true);
    }
}

// covers: B-166
#[test]
fn interim_responses_are_skipped() {
    let last = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
    for interim in [
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 100\r\n\r\n",
        "HTTP/1.0 102 Processing\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
        "HTTP/1.1 199 \r\n\r\nHTTP/1.1 100 \r\n\r\nHTTP/1.1 100 \r\n\r\n",
    ] {
        check_response(&format!("{interim}{last}"), &[response(202, &[("Content-Length", "0")]), Inbound::End], true);
    }
    // As many as fit into one head.
    let one = "HTTP/1.1 100 \r\n\r\n";
    let most = limits().max_head / one.len();
    let seen = client((one.repeat(most) + last).as_bytes(), false);
    assert_eq!((seen.items.len(), seen.broken), (2, None));
    let seen = client(one.repeat(most + 1).as_bytes(), false);
    assert_eq!((seen.items, seen.broken), (vec![], Some("too many interim responses".into())));
}

// covers: B-166
#[test]
fn bodiless_response_ignores_its_length_fields() {
    for fields in [
        &[][..],
        &[("Content-Length", "5")],
        &[("Transfer-Encoding", "chunked")],
        &[("Transfer-Encoding", "gzip, chunked"), ("Content-Encoding", "gzip"), ("Content-Type", "application/json")],
    ] {
        let text: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        for (method, status) in [("HEAD", 200), ("HEAD", 404), ("GET", 204), ("POST", 204), ("GET", 304)] {
            let bytes = format!("HTTP/1.1 {status} \r\n{text}\r\n");
            check(method, &bytes, &[response(status, fields), Inbound::End], true);
        }
    }
    let coded = [("Content-Length", "0"), ("Content-Encoding", "gzip")];
    check_response(
        "HTTP/1.1 202 \r\nContent-Length: 0\r\nContent-Encoding: gzip\r\n\r\n",
        &[response(202, &coded), Inbound::End],
        true,
    );
    let more = answer("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false);
    assert_eq!((more.items.len(), more.keep_alive, more.broken.is_some()), (2, false, true));
}

#[test]
fn version_and_fields_decide_whether_connection_is_reused() {
    let cases: &[(&str, &[&str], bool)] = &[
        ("1.1", &[], true),
        ("1.1", &["close"], false),
        ("1.1", &["keep-alive"], true),
        ("1.1", &["x, CLOSE\t, y"], false),
        ("1.1", &["keep-alive", "close"], false),
        ("1.1", &["keep-alive, close"], false),
        ("1.1", &["closed", "x-close"], true),
        ("1.0", &[], false),
        ("1.0", &["Keep-Alive"], true),
        ("1.0", &["x", "keep-alive"], true),
        ("1.0", &["keep-alive, close"], false),
        ("1.0", &["close"], false),
    ];
    for (version, connection, keep_alive) in cases {
        let mut head = vec![("Content-Length", "2")];
        head.extend(connection.iter().map(|value| ("Connection", *value)));
        let text: String = head.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let trimmed: Vec<_> = head.iter().map(|(name, value)| (*name, value.trim())).collect();
        check_response(
            &format!("HTTP/{version} 200 OK\r\n{text}\r\nhi"),
            &[response(200, &trimmed), Inbound::Body("hi".into()), Inbound::End],
            *keep_alive,
        );
    }
}

#[test]
fn request_with_close_is_the_last_one() {
    let mut conn = Conn::new(Kind::HttpClient, &limits());
    let headers = Headers::new().with("Host", "h").with("Connection", "Close, x");
    let head = RequestHead { method: "DELETE".into(), target: "/".into(), headers };
    conn.encode(Outbound::Request { head, body: Bytes::new() });
    assert_eq!(
        written(&mut conn),
        "DELETE / HTTP/1.1\r\nHost: h\r\naccept-encoding: gzip, deflate\r\nconnection: close\r\n\r\n"
    );
    conn.bytes("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n".into());
    let mut items = Vec::new();
    poll(&mut conn, &mut items);
    assert_eq!((items.len(), conn.broken(), conn.keep_alive()), (2, None, false));
}

#[test]
fn equal_lengths_and_codings_count_once() {
    let hi = Inbound::Body("hi".into());
    let check = |head: &[(&str, &str)]| {
        let text: String = head.iter().map(|(name, value)| format!("{name}:{value} \t\r\n")).collect();
        check_response(
            &format!("HTTP/1.1 200 OK\r\n{text}\r\nhi"),
            &[response(200, head), hi.clone(), Inbound::End],
            true,
        );
    };
    check(&[("Content-Length", "2"), ("content-length", "2")]);
    check(&[("Content-Length", "2 ,\t2"), ("CONTENT-LENGTH", "2")]);
    check(&[("Content-Length", "2"), ("Content-Encoding", "Identity"), ("Content-Encoding", "")]);
    check(&[("Content-Length", "0000000000000000000000002"), ("x", "é\u{a0}")]);
    let seen = client(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nx: \xE9\t\xA0 \r\n\r\nhi", false);
    assert_eq!(seen.items[0], response(200, &[("Content-Length", "2"), ("x", "é\t\u{a0}")]));
}

// covers: B-001, B-005, B-006
#[test]
fn event_stream_is_parsed_across_chunks() {
    let event = format!(": hi\n\nid: 1\n\ndata: {}\r\n\r\n", note_text("m"));
    let (a, b) = event.split_at(20);
    check_response(
        &format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{a}\r\n{:x}\r\n{b}\r\n0\r\n\r\n",
            a.len(),
            b.len()
        ),
        &[
            response(200, &[("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")]),
            Inbound::Comment,
            Inbound::Event(SseEvent { id: Some("1".into()), retry: None, data: Data::None }),
            Inbound::Event(SseEvent { id: None, retry: None, data: Data::Message(note("m")) }),
            Inbound::End,
        ],
        true,
    );
}

/// A `retry` counts from its own line on, even if the stream is truncated inside a chunk.
#[test]
fn truncated_event_stream_keeps_its_reconnection_time() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
    let framed = ["", "Content-Length: 500\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\nff\r\n"];
    for framing in framed {
        let framing = if framing.is_empty() { "\r\n" } else { framing };
        let seen = client(format!("{head}{framing}id: 1\nretry: 7\ndata: 1\n").as_bytes(), true);
        let told = SseEvent { id: None, retry: Some(Duration::from_millis(7)), data: Data::None };
        assert_eq!(seen.items[1], Inbound::Event(told));
        let ends = framing == "\r\n";
        assert_eq!((seen.items.get(2), seen.broken.is_none()), (ends.then_some(&Inbound::End), ends));
    }
}

#[test]
fn body_without_length_ends_with_the_connection() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
    let seen = client(format!("{head}hello").as_bytes(), true);
    assert_eq!(
        seen.items,
        [response(200, &[("Content-Type", "text/plain")]), Inbound::Body("hello".into()), Inbound::End]
    );
    assert_eq!((seen.broken, seen.keep_alive), (None, false));
    let open = client(format!("{head}hello").as_bytes(), false);
    assert_eq!(
        (open.items.last(), open.at_boundary, open.keep_alive),
        (Some(&Inbound::Body("hello".into())), false, false)
    );
}

// covers: B-116
#[test]
fn fitting_part_of_a_large_body_is_returned_with_any_split() {
    let text = "x".repeat(101);
    let seen = client(format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n{text}").as_bytes(), false);
    let fits = Inbound::Body("x".repeat(100).into());
    assert_eq!(seen.items, [response(200, &[("Content-Type", "text/plain")]), fits]);
    assert_eq!(seen.broken.as_deref(), Some("the body is larger than the limit"));
}

#[test]
fn unparseable_response_breaks_the_connection() {
    let over = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n{}\r\n",
        "x".repeat(101)
    );
    let big_event = format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata:{}\n", "x".repeat(201));
    let cases: &[(&str, &str)] = &[
        ("hello\r\n\r\n", "not HTTP"),
        ("220 mail.example ESMTP\r\n", "not HTTP"),
        ("\r\n\r\nHELO", "not HTTP"),
        ("\u{15}\u{3}\u{1}", "speaks TLS"),
        ("\u{15}\u{3}\u{3}\r\n\r\n", "speaks TLS"),
        ("SSH-2.0-OpenSSH_9.9\n", "not HTTP"),
        ("http/1.1 200 OK\r\n", "not HTTP"),
        ("HTTP/1.1 200 OK\nContent-Length: 0\n\n", "CR LF"),
        ("HTTP/1.1 099 OK\r\n\r\n", "status"),
        ("HTTP/1.1 101 Switching\r\n\r\n", "protocols"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "both"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "differ"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "transfer-encoding"),
        ("HTTP/1.1 200 OK\r\nContent-Encoding: gzip, deflate\r\nContent-Length: 1\r\n\r\n", "\"gzip\""),
        ("HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Encoding: br\r\n\r\n", "\"br\""),
        ("HTTP/1.1 200 OK\r\nContent-Encoding: identity, zstd\r\n\r\n", "\"zstd\""),
        ("HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n", "larger"),
        (&over, "larger"),
        (&big_event, "larger than 200"),
    ];
    for (bytes, why) in cases {
        let seen = client(bytes.as_bytes(), false);
        assert!(seen.broken.as_ref().is_some_and(|text| text.contains(why)), "{bytes}: {seen:?}");
        assert!(!seen.keep_alive);
    }
    // Bytes after a response show at once, before they are polled.
    let mut conn = Conn::new(Kind::HttpClient, &limits());
    conn.encode(get());
    conn.bytes("HTTP/1.1 202 \r\nContent-Length: 0\r\n\r\nHTTP/1.1 200".into());
    assert!(conn.poll_item().is_some() && conn.keep_alive());
    assert_eq!((conn.poll_item(), conn.keep_alive(), conn.broken()), (Some(Inbound::End), false, None));
    let idle =
        Case { kind: Kind::HttpClient, limits: limits(), sent: None, eof: false, bytes: b"HTTP/1.1 408 \r\n\r\n" };
    let seen = idle.feed([idle.bytes], false);
    assert_eq!((seen.items, seen.broken.is_some(), seen.keep_alive), (vec![], true, false));
    // The connection was dead before the response began. The pool decides what follows.
    let seen = client(b"", true);
    assert_eq!((seen.items, seen.broken, seen.at_boundary, seen.keep_alive), (vec![], None, true, false));
}

// covers: B-166
#[test]
fn ambiguous_head_is_refused() {
    let cases: &[(&str, &[&str])] = &[
        ("differ", &["Content-Length: 1, 2", "Content-Length: 1\r\nContent-Length: 01", "Content-Length: 1,"]),
        (
            "content-length is not a number",
            &[
                "Content-Length:",
                "Content-Length: ,",
                "Content-Length: +1",
                "Content-Length: -1",
                "Content-Length: 1 1",
                "Content-Length: 1.0",
                "Content-Length: 0x1",
                "Content-Length: 18446744073709551616",
                "Content-Length: 1\u{a0}",
                "Content-Length: \u{85}1",
                "Content-Length: \u{661}",
            ],
        ),
        (
            "both a content-length",
            &[
                "Content-Length: 1\r\nTransfer-Encoding: chunked",
                "Transfer-Encoding: chunked\r\nContent-Length: 1",
                "Transfer-Encoding: gzip\r\nContent-Length: 1",
                "Transfer-Encoding:\r\nContent-Length: 1",
            ],
        ),
        (
            "transfer-encoding is not known",
            &[
                "Transfer-Encoding:",
                "Transfer-Encoding: identity",
                "Transfer-Encoding: gzip, chunked",
                "Transfer-Encoding: chunked, gzip",
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
                "Transfer-Encoding: chunked;q=1",
                "Transfer-Encoding: chunked\u{a0}",
                "Transfer-Encoding: xchunked",
            ],
        ),
        (
            "name of a field",
            &["a : b", " a: b", "a: b\r\n c", "a: b\r\n\tc", ": b", "a\0: b", "a", "a b: c", "\u{e9}: b"],
        ),
        ("value of a field", &["a: b\rc", "a: b\r", "a: b\0", "a: b\u{1}", "a: b\u{7f}"]),
    ];
    for (why, heads) in cases {
        for head in *heads {
            let bytes = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n");
            let seen = client(bytes.as_bytes(), false);
            assert!(seen.broken.as_ref().is_some_and(|text| text.contains(why)), "{head:?}: {seen:?}");
            assert!(seen.items.is_empty() && !seen.keep_alive);
        }
    }
    let old = client(b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false);
    assert_eq!(old.broken.as_deref(), Some("a transfer-encoding in HTTP/1.0"));
    for line in [
        "HTTP/2.0 200 OK",
        "HTTP/1.2 200 OK",
        "HTTP/0.9 200 OK",
        "http/1.1 200 OK",
        "HTTP/1.1 20 OK",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1  200 OK",
        "HTTP/1.1\t200 OK",
        "HTTP/1.1 +20 OK",
        "HTTP/1.1 200 O\rK",
        "HTTP/1.1 200 O\0K",
        "HTTP/1.1 200 OK\r",
        "HTTP/1.1 000 OK",
        "HTTP/1.1",
        "200 OK",
        " HTTP/1.1 200 OK",
        "GET / HTTP/1.1",
    ] {
        let seen = client(format!("{line}\r\nContent-Length: 0\r\n\r\n").as_bytes(), false);
        assert!(seen.broken.is_some() && seen.items.is_empty(), "{line:?}: {seen:?}");
    }
    for (bare, line) in
        [("HTTP/1.1 200 OK\n\r\n", 1), ("HTTP/1.1 200 OK\r\na: b\n\r\n", 2), ("HTTP/1.1 200 OK\r\n\n", 3)]
    {
        let seen = client(bare.as_bytes(), false);
        assert_eq!(seen.broken.as_deref(), Some("a line of the head does not end with CR LF"), "{line}");
    }
}

// covers: B-166
#[test]
fn malformed_chunks_break_the_connection() {
    let cases: &[(&str, &[&str])] = &[
        (
            "size of a chunk is not a number",
            &["x", "", " 1", "+1", "-1", "0x1", "1 1", "1g", ";a=b", "1\u{c}", "1\u{b}", "1\0", "\u{ff11}", "1_0"],
        ),
        (
            "size of a chunk has too many digits",
            &[
                "10000000000000000",
                "fffffffffffffffff",
                "00FFFFFFFFFFFFFFFFF",
                "00000000000000001",
                "00000000000000000",
            ],
        ),
        (
            "too many blanks",
            &[
                "1                 ",
                "1\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t",
                "0                 ;x",
                "1                 ;x",
            ],
        ),
        ("a string without an end", &["5;a=\"b", "5;a=\"b\\\"", "5;a=\"b\\", "5;a=\"b\";c=\"", "0;\""]),
        ("CR without LF", &["1\r", "1;a\rb", "\r"]),
    ];
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let check = |body: &str, why: &str| {
        let seen = client(format!("{head}{body}").as_bytes(), false);
        assert!(seen.broken.as_ref().is_some_and(|text| text.contains(why)), "{body:?}: {seen:?}");
        assert!(!seen.items.contains(&Inbound::End));
    };
    for (why, sizes) in cases {
        for size in *sizes {
            check(&format!("{size}\r\n"), why);
            check(&format!("2\r\nhi\r\n{size}\r\n"), why);
        }
    }
    let extension = format!("1;{}\r\na\r\n", "x".repeat(1023));
    // Each chunk with content gives 256 bytes more.
    check(&format!("{}0;\r\n\r\n", extension.repeat(22)), "extensions are too long");
    check(&format!("1;{}\r\na\r\n0\r\n\r\n", "x".repeat(16 << 10)), "extensions are too long");
    check("1\na\r\n", "does not end with CR LF");
    for end in ["b\r\n", "\n", "\r\r\n", "\rb", "0\r\n\r\n"] {
        check(&format!("1\r\na{end}"), "longer than its size");
    }
    for trailer in ["a: b\n", "\n"] {
        check(&format!("0\r\n{trailer}\r\n"), "trailer line does not end with CR LF");
    }
    for trailer in ["a", "a b: c", " a: b", "a: b\r\n c", "a: b\rc", "a: \0", ": b", "a : b"] {
        check(&format!("0\r\nx: y\r\n{trailer}\r\n\r\n"), "trailer is not legal");
    }
}

proptest! {
    /// The same body, with any framing and any split.
    // covers: S1-14, B-003, B-010
    #[test]
    fn framing_of_a_body_does_not_change_its_items(
        lines in proptest::collection::vec(prop::sample::select(LINES), 0..12),
        is_events in any::<bool>(),
        chunks in proptest::collection::vec(1..40_usize, 1..5),
        cut in 1..50_usize,
        polls_late in any::<bool>(),
    ) {
        let content = if is_events { "text/event-stream" } else { "application/json" };
        let body = if is_events { lines.concat() } else { format!(" [{}]", note_text(&lines.concat().escape_debug().to_string())) };
        let body = body.as_bytes();
        let mut chunked = Vec::new();
        let mut rest = body;
        for size in chunks.iter().cycle() {
            let (chunk, after) = rest.split_at(rest.len().min(*size));
            rest = after;
            chunked.extend_from_slice(format!("{:X};x=y\r\n", chunk.len()).as_bytes());
            chunked.extend_from_slice(chunk);
            chunked.extend_from_slice(if chunk.is_empty() { b"x: y\r\n\r\n" } else { b"\r\n" });
            if chunk.is_empty() {
                break;
            }
        }
        let framings = [
            (format!("Content-Length: {}\r\n", body.len()), body),
            ("Transfer-Encoding: chunked\r\n".into(), &chunked),
            (String::new(), body),
        ];
        let whole = {
            let head = ResponseHead { status: 200, headers: fields(&[("Content-Type", content)]) };
            let mut read = BodyDecoder::of_response(&head, &FrameLimits::default());
            read.bytes(Bytes::copy_from_slice(body));
            read.end();
            core::iter::from_fn(|| read.poll_item()).collect::<Vec<_>>()
        };
        for (framing, framed) in framings {
            let bytes = [format!("HTTP/1.1 200 OK\r\nContent-Type: {content}\r\n{framing}\r\n").as_bytes(), framed].concat();
            let case = Case { kind: Kind::HttpClient, limits: FrameLimits::default(), sent: Some(get()), eof: true, bytes: &[] };
            let seen = case.feed(bytes.chunks(cut), polls_late);
            prop_assert_eq!((&seen.items[1..], seen.broken), (&whole[..], None));
        }
    }
}

const LINES: &[&str] = &[
    "data: {\"jsonrpc\":\"2.0\",\"method\":\"é😀\"}\n\n",
    "data: {\"jsonrpc\":\"2.0\",\"id\":1,\ndata:\"result\":{}}\r\n\r\n",
    "id: 1\ndata:\n\n",
    "retry: 5\r",
    ": hello\n",
    "event: x\ndata: {}\r\r",
    "data: no\n",
    "\n",
];
