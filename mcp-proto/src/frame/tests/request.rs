//! Requests, written by a client and read by a server: which are rejected, and with which status.

use super::http::{answer, asked, check_request, get, limits, request, server};
use super::*;
use crate::exchange::{BadRequest, Body, Headers, RequestHead, ResponseHead};
use crate::rpc::Message;
use proptest::prelude::*;

#[test]
fn misplaced_part_is_refused_and_not_written() {
    let event = || Outbound::Event { event: None, id: None, retry: None, data: "{}".into() };
    let head = || ResponseHead { status: 200, headers: Headers::new() };
    let stream = || Outbound::Response { head: head(), body: Body::Stream };
    let full = || Outbound::Response { head: head(), body: Body::Full("{}".into()) };
    let message = || Outbound::Message("{}".into());
    let comment = || Outbound::Comment("c".into());
    let check = |kind: Kind, first: &[Outbound], part: Outbound, why: Option<&str>| {
        let mut conn = Conn::new(kind, &limits());
        for part in first {
            conn.encode(part.clone());
            assert_eq!(conn.take_refused(), None, "{kind:?} {first:?}");
        }
        while conn.poll_write().is_some() {}
        let shown = format!("{kind:?}, {part:?} after {first:?}");
        conn.encode(part);
        assert_eq!(conn.take_refused(), why, "{shown}");
        assert_eq!(conn.take_refused(), None, "{shown}");
        assert!(why.is_none() || conn.poll_write().is_none(), "{shown}");
    };
    let (no_stream, inside) = (Some("a part of a stream without its response"), Some("a response inside a stream"));
    for part in [event(), comment(), Outbound::End] {
        check(Kind::HttpServer, &[], part.clone(), no_stream);
        check(Kind::HttpServer, &[full()], part.clone(), no_stream);
        check(Kind::HttpServer, &[stream(), Outbound::End], part.clone(), no_stream);
        check(Kind::HttpServer, &[stream(), event()], part, None);
    }
    for part in [full(), stream()] {
        check(Kind::HttpServer, &[stream()], part.clone(), inside);
        check(Kind::HttpServer, &[stream(), Outbound::End], part.clone(), None);
        check(Kind::HttpClient, &[], part.clone(), Some("a part of a response on a client"));
        check(Kind::Lines, &[], part, Some("a part of http on a channel of lines"));
    }
    check(Kind::HttpServer, &[], message(), Some("a message outside a response"));
    check(Kind::HttpServer, &[], get(), Some("a request on a server"));
    check(Kind::HttpClient, &[], message(), Some("a message outside a request"));
    check(Kind::HttpClient, &[get()], Outbound::End, None);
    check(Kind::Lines, &[message()], Outbound::Message("{\n}".into()), Some("a message with a line feed"));
    check(Kind::Lines, &[message()], Outbound::End, None);

    // Events of a response to HEAD, or of one without a body, are accepted and not written.
    for (request, status) in [("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", 200), ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", 204)] {
        let mut conn = Conn::new(Kind::HttpServer, &limits());
        conn.bytes(request.into());
        while conn.poll_item().is_some() {}
        conn.encode(Outbound::Response { head: ResponseHead { status, headers: Headers::new() }, body: Body::Stream });
        while conn.poll_write().is_some() {}
        for part in [event(), Outbound::End] {
            conn.encode(part);
            assert_eq!((conn.take_refused(), conn.poll_write()), (None, None));
        }
    }
}

// covers: B-166
#[test]
fn requests_are_written_with_their_length() {
    let head = |method: &str, headers| RequestHead { method: method.to_owned().into(), target: "/mcp".into(), headers };
    let mut conn = Conn::new(Kind::HttpClient, &limits());
    let headers = Headers::new().with("host", "h:1").with("Content-Length", "9").with("a", "b\tc é");
    conn.encode(Outbound::Request { head: head("POST", headers), body: "{}".into() });
    assert_eq!(
        conn.poll_write().unwrap(),
        "POST /mcp HTTP/1.1\r\nhost: h:1\r\na: b\tc é\r\ncontent-length: 2\r\naccept-encoding: gzip, deflate\r\n\r\n{}"
            .as_bytes()
    );
    assert_eq!(conn.poll_write(), None);
    // Our own server reads what our client writes.
    let mut peer = Conn::new(Kind::HttpServer, &limits());
    peer.bytes("POST /mcp HTTP/1.1\r\nhost: h:1\r\na: b\tc é\r\ncontent-length: 2\r\n\r\n{}".into());
    let Some(Inbound::Request(read)) = peer.poll_item() else { panic!() };
    assert_eq!(read.headers.get("a"), Some("b\tc é"));
    // No other request may be sent while a body is in flight.
    conn.encode(get());
    assert!(conn.broken().is_some() && conn.poll_write().is_none());
}

/// Returns the status of the rejection, which must not depend on how the bytes are split. The codec
/// returns no complete request, and nothing after it.
fn refused(bytes: &[u8]) -> u16 {
    let shown = bytes.escape_ascii().to_string();
    let seen = server(bytes, false);
    assert!(!seen.items.contains(&Inbound::End), "{shown}: {seen:?}");
    assert_eq!((&seen.broken, seen.keep_alive, seen.at_boundary), (&None, false, true), "{shown}");
    let Some(Inbound::Reject(BadRequest { status, .. })) = seen.items.last() else { panic!("{shown}: {seen:?}") };
    // Nor is another one after it.
    let next = b"GET /next HTTP/1.1\r\nHost: h\r\n\r\n";
    let with_next = server(&[bytes, next].concat(), true);
    assert_eq!((&with_next.items, &with_next.broken), (&seen.items, &None), "{shown}");
    *status
}

/// A `POST` of two bytes with these lines in its head.
fn post(fields: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n{{}}")
}

#[test]
fn request_with_ambiguous_end_is_refused() {
    let cases: &[(u16, &[&str])] = &[
        (
            400,
            &[
                // Both lengths, in either order, and hidden in repetitions.
                "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
                "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n",
                "Transfer-Encoding: identity\r\nContent-Length: 2\r\n",
                "transfer-encoding:\r\ncontent-length: 2\r\n",
                // Lengths that differ, and invalid lengths.
                "Content-Length: 2\r\nContent-Length: 3\r\n",
                "Content-Length: 2\r\ncontent-length: 02\r\n",
                "Content-Length: 2, 3\r\n",
                "Content-Length: 2,\r\n",
                "Content-Length: ,\r\n",
                "Content-Length:\r\n",
                "Content-Length: +2\r\n",
                "Content-Length: -2\r\n",
                "Content-Length: 2 2\r\n",
                "Content-Length: 2;\r\n",
                "Content-Length: 0x2\r\n",
                "Content-Length: 2.0\r\n",
                "Content-Length: 2e0\r\n",
                "Content-Length: \"2\"\r\n",
                "Content-Length: \u{ff12}\r\n",
                "Content-Length: 2\u{a0}\r\n",
                "Content-Length: 18446744073709551618\r\n",
                // A field that one reader may take for another field, or for none.
                "Content-Length : 2\r\n",
                "Content-Length\t: 2\r\n",
                "Content-Length\u{b}: 2\r\n",
                "Content-Length\0: 2\r\n",
                "Content-Length\u{a0}: 2\r\n",
                "Content-Length\r: 2\r\n",
                "Content-Length\r\n: 2\r\n",
                "Content-Length\r\n",
                " Content-Length: 2\r\n",
                "Transfer-Encoding : chunked\r\n",
                "Transfer-Encoding: \u{b}chunked\r\n",
                ": 2\r\n",
                "(: 2\r\n",
                "a b: 2\r\n",
                // A folded line.
                "Content-Length:\r\n 2\r\n",
                "Content-Length: 2\r\n 3\r\n",
                "Content-Length: 2\r\n\t3\r\n",
                "Content-Length: 2\r\n \r\n",
                "Transfer-Encoding:\r\n chunked\r\n",
                // A line with another line end, at its end or inside.
                "Content-Length: 2\n",
                "Content-Length: 2\r\r\n",
                "a: b\nContent-Length: 2\r\n",
                "a: b\rContent-Length: 2\r\n",
                "a: b\n\r\nContent-Length: 2\r\n",
                "\nContent-Length: 2\r\n",
                "\rContent-Length: 2\r\n",
                // Characters that some readers take for the end of a line or a text.
                "a: b\0\r\nContent-Length: 2\r\n",
                "a: \u{1}\r\nContent-Length: 2\r\n",
                "a: \u{b}\r\nContent-Length: 2\r\n",
                "a: \u{c}\r\nContent-Length: 2\r\n",
                "a: \u{1b}[0m\r\nContent-Length: 2\r\n",
                "a: \u{7f}\r\nContent-Length: 2\r\n",
            ],
        ),
        (
            501,
            &[
                "Transfer-Encoding: gzip, chunked\r\n",
                "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
                "Transfer-Encoding: chunked, chunked\r\n",
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            ],
        ),
        (
            // Codings that leave the end of the body undefined (RFC 9112 section 6.3).
            400,
            &[
                "Transfer-Encoding: gzip\r\n",
                "Transfer-Encoding: identity\r\n",
                "Transfer-Encoding: chunked, gzip\r\n",
                "Transfer-Encoding: chunked, chunked, gzip\r\n",
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
                "Transfer-Encoding: xchunked\r\n",
                "Transfer-Encoding: chunked;q=1\r\n",
                "Transfer-Encoding: \"chunked\"\r\n",
                "Transfer-Encoding: chunked\u{a0}\r\n",
                "Transfer-Encoding: chunked,\r\n",
                "Transfer-Encoding:\r\n",
            ],
        ),
        (411, &["", "Content_Length: 2\r\n", "Transfer_Encoding: chunked\r\n", "X-Content-Length: 2\r\n"]),
    ];
    for (status, fields) in cases {
        for fields in *fields {
            assert_eq!(refused(post(fields).as_bytes()), *status, "{fields:?}");
        }
    }
    // A value that is not UTF-8.
    assert_eq!(refused(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\xff\r\n\r\n"), 400);
    assert_eq!(refused(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\xa0\r\n\r\n{}"), 400);
    // HTTP/1.0 has no codings, so an intermediary may not know where the body ends.
    assert_eq!(refused(b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400);
}

#[test]
fn ambiguous_first_line_or_host_is_refused() {
    let lines: &[(u16, &[&str])] = &[
        (
            400,
            &[
                "GET  / HTTP/1.1",
                "GET /  HTTP/1.1",
                "GET\t/\tHTTP/1.1",
                "GET / HTTP/1.1 ",
                " GET / HTTP/1.1",
                "GET / x HTTP/1.1",
                "GET / HTTP/1.1 HTTP/1.1",
                "GET /",
                "GET / ",
                "GET",
                "GET / HTTQ/1.1",
                "GET / http/1.1",
                "GET / HTTP/",
                "GET / HTTP/x.1",
                "GET / HTTP 1.1",
                "G(T / HTTP/1.1",
                "G\0T / HTTP/1.1",
                "GET /\0 HTTP/1.1",
                "GET /\u{1} HTTP/1.1",
                "GET /\u{7f} HTTP/1.1",
                "GET /a\rb HTTP/1.1",
                "GET /\u{e9} HTTP/1.1",
                "GET /#x HTTP/1.1",
                "GET mcp HTTP/1.1",
                "GET ?x HTTP/1.1",
                "GET * HTTP/1.1",
                "CONNECT h:80 HTTP/1.1",
                "GET http://x@h/ HTTP/1.1",
                "GET http:///h HTTP/1.1",
                "GET http://h\\/ HTTP/1.1",
                "GET ftp://h/ HTTP/1.1",
                "GET h://h/ HTTP/1.1",
                "\u{16}\u{3}\u{1}",
                "hello",
            ],
        ),
        (505, &["GET / HTTP/2", "GET / HTTP/0.9", "GET / HTTP/1.2", "PRI * HTTP/2.0", "GET / HTTP/11.1"]),
    ];
    for (status, lines) in lines {
        for line in *lines {
            assert_eq!(refused(format!("{line}\r\nHost: h\r\n\r\n").as_bytes()), *status, "{line:?}");
        }
    }
    for fields in [
        "",
        "Host: h\r\nHost: h\r\n",
        "Host: h\r\nhost: other\r\n",
        "Host: a b\r\n",
        "Host: a, b\r\n",
        "Host: a/b\r\n",
        "Host: a@b\r\n",
        "Host: a\\b\r\n",
        "Host: a?b\r\n",
        "Host: a#b\r\n",
        "Host: \"h\"\r\n",
        "Host: <h>\r\n",
        "Host: \u{e9}\r\n",
        "Host : h\r\n",
        "Host: h\r\n other\r\n",
    ] {
        assert_eq!(refused(format!("GET / HTTP/1.1\r\n{fields}\r\n").as_bytes()), 400, "{fields:?}");
    }
    assert_eq!(refused(b"GET / HTTP/1.0\r\nHost: h\r\nHost: h\r\n\r\n"), 400);
}

// covers: B-122
#[test]
fn one_byte_order_mark_before_a_json_body_is_ignored() {
    let read = |body: &str| {
        let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n";
        let seen = server(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes(), false);
        assert_eq!(seen.items.last(), Some(&Inbound::End));
        matches!(&seen.items[1], Inbound::Message(Message::Notification(note)) if note.method == "m")
    };
    let note = r#"{"jsonrpc":"2.0","method":"m"}"#;
    assert!(read(note) && read(&format!("\u{feff}{note}")) && read(&format!("\u{feff} {note}")));
    assert!(!read(&format!("\u{feff}\u{feff}{note}")) && !read(&format!(" \u{feff}{note}")) && !read("\u{feff}"));
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
    let answer = format!("{head}Content-Length: {}\r\n\r\n\u{feff}{note}", note.len() + 3);
    let sent = Some(get());
    let seen = Case { kind: Kind::HttpClient, limits: limits(), sent, eof: false, bytes: answer.as_bytes() }.seen();
    assert!(matches!(&seen.items[1], Inbound::Message(Message::Notification(_))), "{seen:?}");
}

#[test]
fn malformed_chunks_are_refused() {
    for body in [
        // Sizes.
        "\r\n",
        " 1\r\na\r\n",
        "\t1\r\na\r\n",
        "+1\r\na\r\n",
        "-1\r\na\r\n",
        "0x1\r\na\r\n",
        "g\r\n",
        "1 1\r\na\r\n",
        "1,1\r\na\r\n",
        "1_\r\na\r\n",
        "1\0\r\na\r\n",
        ";x\r\n",
        "\u{ff11}\r\na\r\n",
        "10000000000000000\r\n",
        "fffffffffffffffff\r\n",
        "00000000000000001\r\na\r\n0\r\n\r\n",
        "1\r\na\r\n00000000000000000\r\n\r\n",
        // Blanks, which only some servers are known to write.
        "1 \r\na\r\n0\r\n\r\n",
        "1\t\r\na\r\n0\r\n\r\n",
        "1 ;x\r\na\r\n0\r\n\r\n",
        "1\r\na\r\n0 \r\n\r\n",
        // Line ends and extensions.
        "1\na\r\n",
        "1\r\r\na\r\n",
        "1\ra\r\n",
        "1;x\na\r\n",
        "1;x\ry\r\na\r\n",
        "1;x\0\r\na\r\n",
        "1;x=\u{7}\r\na\r\n",
        "1;x=\u{7f}\r\na\r\n",
        "5;a=\"b\r\nhello\r\n0\r\n\r\n",
        "5;a=\"b\\\"\r\nhello\r\n0\r\n\r\n",
        "5;a=\"b\";\"\r\nhello\r\n0\r\n\r\n",
        "1\r\na\r\n0;\"\r\n\r\n",
        // Bytes after the data of a chunk.
        "1\r\nab\r\n",
        "1\r\na\n",
        "1\r\na\r0\r\n\r\n",
        "1\r\na0\r\n\r\n",
        "1\r\na\r\r\n",
        // Trailers.
        "0\r\na: b\n\r\n",
        "0\r\na : b\r\n\r\n",
        "0\r\n a: b\r\n\r\n",
        "0\r\na\r\n\r\n",
        "0\r\n: b\r\n\r\n",
        "0\r\na: b\r\n c\r\n\r\n",
        "0\r\na: \0\r\n\r\n",
        "0\r\na: b\rc\r\n\r\n",
        "0\r\n\n",
        "0\n\r\n",
    ] {
        let bytes = format!("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        assert_eq!(refused(bytes.as_bytes()), 400, "{body:?}");
    }
}

// covers: B-186
#[test]
fn chunk_framing_over_its_total_limit_is_refused() {
    let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    // In large pieces, since there are too many splits.
    let read = |bytes: &str| {
        let case = Case { kind: Kind::HttpServer, limits: limits(), sent: None, eof: false, bytes: &[] };
        case.feed(bytes.as_bytes().chunks(1000), false).items
    };
    let ends = |body: &str| match read(&format!("{head}{body}")).last() {
        Some(Inbound::Reject(BadRequest { status, .. })) => *status,
        Some(Inbound::End) => 200,
        other => panic!("{other:?}"),
    };
    let x = |count: usize| "x".repeat(count);
    let most = 16 << 10;
    // The semicolon counts, and so does the last chunk.
    let once = |length: usize| ends(&format!("1;{}\r\na\r\n0\r\n\r\n", x(length - 1)));
    assert_eq!((once(most), once(most + 1)), (200, 400));
    let last = |length: usize| ends(&format!("1\r\na\r\n0;{}\r\n\r\n", x(length - 1)));
    assert_eq!((last(most), last(most + 1)), (200, 400));
    let each = format!("1;{}\r\na\r\n", x(1023));
    let many = |count: usize, rest: &str| ends(&format!("{}0{rest}\r\n\r\n", each.repeat(count)));
    assert_eq!((many(16, ""), many(16, ";"), many(17, "")), (200, 400, 400));
    let trailer = |length: usize| ends(&format!("1\r\na\r\n0\r\na: {}\r\n\r\n", x(length - 5)));
    assert_eq!((trailer(most - 2), trailer(most)), (200, 400));
    assert_eq!(ends("0000000000000001\r\na\r\n0000000000000000\r\n\r\n"), 200, "16 digits");
    // Each message has the whole limit.
    let twice = format!("{head}1;{}\r\na\r\n0\r\n\r\n", x(most - 1)).repeat(2);
    assert_eq!(read(&twice).iter().filter(|item| **item == Inbound::End).count(), 2);
}

// covers: B-185, B-186
#[test]
fn each_limit_has_its_status_and_is_exact() {
    let limits = FrameLimits { max_head: 300, max_headers: 3, max_target: 50, max_request_body: 10, ..limits() };
    let status = |bytes: &str| {
        let case =
            Case { kind: Kind::HttpServer, limits: limits.clone(), sent: None, eof: false, bytes: bytes.as_bytes() };
        let seen = case.seen();
        match seen.items.last() {
            Some(Inbound::Reject(BadRequest { status, .. })) => *status,
            Some(Inbound::End) => 200,
            other => panic!("{bytes}: {other:?}"),
        }
    };
    let x = |count: usize| "x".repeat(count);
    let target = |length: usize| status(&format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", x(length - 1)));
    assert_eq!((target(50), target(51), target(290), target(2000)), (200, 414, 414, 414));
    assert_eq!(status(&format!("GET /{}", x(2000))), 414, "however long it still goes on");
    assert_eq!(status(&format!("GET http://h/{} HTTP/1.1\r\nHost: h\r\n\r\n", x(41))), 200);
    assert_eq!(status(&format!("GET http://h/{} HTTP/1.1\r\nHost: h\r\n\r\n", x(42))), 414);

    let head = |length: usize| {
        let before = "GET / HTTP/1.1\r\nHost: h\r\na: ";
        status(&format!("{before}{}\r\n\r\n", x(length - before.len() - 4)))
    };
    assert_eq!((head(300), head(301), head(2000)), (200, 431, 431));
    let fields = |count: usize| status(&format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "a: b\r\n".repeat(count - 1)));
    assert_eq!((fields(3), fields(4)), (200, 431));

    // A declared length is rejected before the body arrives, another one while it is counted.
    let declared =
        |length: usize| status(&format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{}", x(10)));
    assert_eq!((declared(10), declared(11)), (200, 413));
    assert_eq!(status("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551615\r\n\r\n"), 413);
    for content in ["application/json", "text/plain", "text/event-stream"] {
        let head =
            format!("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Type: {content}\r\n\r\n");
        let chunked = |length: usize| status(&format!("{head}{}0\r\n\r\n", "1\r\nx\r\n".repeat(length)));
        assert_eq!((chunked(10), chunked(11)), (200, 413), "{content}");
        assert_eq!(status(&format!("{head}b\r\n{}", x(11))), 413, "{content}");
        assert_eq!(status(&format!("{head}ffffffffffffffff\r\n{}", x(11))), 413, "{content}");
    }
}

#[test]
fn unsupported_requests_have_their_status() {
    for (status, fields) in [
        (415, "Content-Length: 2\r\nContent-Encoding: gzip, gzip\r\n"),
        (415, "Content-Length: 2\r\nContent-Encoding: identity, br\r\n"),
        (417, "Content-Length: 2\r\nExpect: more\r\n"),
        (417, "Content-Length: 2\r\nExpect: 100-continue, more\r\n"),
        (417, "Content-Length: 2\r\nExpect: 100-continue\r\nExpect: more\r\n"),
    ] {
        assert_eq!(refused(post(fields).as_bytes()), status, "{fields:?}");
    }
}

#[test]
fn unusual_but_unambiguous_requests_are_parsed() {
    let host = ("Host", "h");
    for (target, path) in [
        ("http://h", "/"),
        ("http://h?x=1", "/?x=1"),
        ("HTTPS://H/mcp?x=http://other/", "/mcp?x=http://other/"),
        ("//other/mcp", "//other/mcp"),
        ("/a;b?c=\"{}|\\^`<>", "/a;b?c=\"{}|\\^`<>"),
    ] {
        let bytes = format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n");
        check_request(&bytes, &[request("GET", path, &[host]), Inbound::End], true);
    }
    check_request("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", &[request("OPTIONS", "*", &[host]), Inbound::End], true);
    let host = ("Host", "[2001:db8::1]:8443");
    check_request(
        "\r\n\r\nX!#$%&'*+-.^_`|~9 / HTTP/1.1\r\nHost:\t [2001:db8::1]:8443 \t\r\nx:\r\ny: \t\u{e9}\r\n\r\n",
        &[request("X!#$%&'*+-.^_`|~9", "/", &[host, ("x", ""), ("y", "\u{e9}")]), Inbound::End],
        true,
    );
    let chunked = [("Host", "h"), ("Transfer-Encoding", "CHUNKED")];
    check_request(
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: CHUNKED\r\n\r\n\
         0001;a;b=\"c;\"\t;\u{e9}\r\na\r\n00\r\nContent-Length: 7\r\n\r\n",
        &[request("POST", "/", &chunked), Inbound::Body("a".into()), Inbound::End],
        true,
    );
    let repeated = [("Host", "h"), ("Content-Length", "2"), ("content-length", "2, 2")];
    check_request(
        &post("Content-Length: 2\r\ncontent-length: 2, 2\r\n"),
        &[request("POST", "/", &repeated), Inbound::Body("{}".into()), Inbound::End],
        true,
    );
}

// covers: PROXY-S-002
#[test]
fn host_of_an_absolute_target_replaces_the_field() {
    for (target, fields, host) in [
        ("http://other/", "Host: h\r\n", "other"),
        ("http://h:80/", "Host: h\r\n", "h:80"),
        ("https://[2001:db8::1]:8443/", "X: 1\r\nhost: h\r\n", "[2001:db8::1]:8443"),
        ("http://h/", "Host:\r\n", "h"),
    ] {
        let bytes = format!("GET {target} HTTP/1.1\r\n{fields}\r\n");
        let mut expected = vec![("Host", host)];
        expected.extend(fields.starts_with('X').then_some(("X", "1")));
        check_request(&bytes, &[request("GET", "/", &expected), Inbound::End], true);
    }
    let old = "GET http://h/ HTTP/1.0\r\n\r\n";
    check_request(old, &[request("GET", "/", &[("Host", "h")]), Inbound::End], false);
    for fields in ["", "Host: h\r\nHost: h\r\n", "Host: a b\r\n", "Host: x@h\r\n"] {
        assert_eq!(refused(format!("GET http://h/ HTTP/1.1\r\n{fields}\r\n").as_bytes()), 400, "{fields:?}");
    }
}

#[test]
fn body_is_held_back_until_continue() {
    let text = |expect: &str| format!("POST / HTTP/1.1\r\nHost: h\r\n{expect}Content-Length: 2\r\n\r\n{{}}");
    for (expect, asked) in [("", ""), ("Expect: 100-Continue\r\n", "HTTP/1.1 100 Continue\r\n\r\n")] {
        let mut conn = Conn::new(Kind::HttpServer, &limits());
        conn.set_holding(true);
        for _ in 0..2 {
            conn.bytes(Bytes::from(text(expect)));
            assert!(matches!(conn.poll_item(), Some(Inbound::Request(_))));
            assert_eq!((conn.poll_item(), conn.is_held(), conn.at_boundary()), (None, true, false));
            assert_eq!(written(&mut conn), "");
            conn.encode(Outbound::Continue);
            assert_eq!(written(&mut conn), asked);
            conn.encode(Outbound::Continue);
            assert_eq!(written(&mut conn), "", "once");
            let mut items = Vec::new();
            poll(&mut conn, &mut items);
            assert_eq!((items, conn.is_held()), ([Inbound::Body("{}".into()), Inbound::End].into(), false));
            answer(&mut conn, 200, &[], Body::Full("{}".into()));
            assert!(conn.keep_alive());
            written(&mut conn);
        }
    }
}

#[test]
fn body_of_a_rejected_request_is_never_read() {
    let rejected = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n";
    let kept = format!("{rejected}\r\n{{}}");
    let closed = format!("{rejected}connection: close\r\n\r\n{{}}");
    let reject = |arrived: &[&str]| {
        let mut conn = Conn::new(Kind::HttpServer, &limits());
        conn.set_holding(true);
        arrived.iter().for_each(|bytes| conn.bytes(Bytes::copy_from_slice(bytes.as_bytes())));
        assert!(matches!(conn.poll_item(), Some(Inbound::Request(_))));
        answer(&mut conn, 401, &[], Body::Full("{}".into()));
        (written(&mut conn), conn)
    };
    let next = |mut conn: Conn| {
        conn.bytes("POST /next HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n".into());
        matches!(conn.poll_item(), Some(Inbound::Request(head)) if &*head.target == "/next")
    };
    let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n";
    // It has arrived as a whole, and is dropped.
    let coded = "POST / HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\n";
    let empty = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let hasty = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n";
    let pieces: [&[&str]; 5] =
        [&[head, "GET / no\n"], &[head, "GE", "T / no\n"], &[coded, "no coding"], &[empty], &[hasty, "{\"a\":1.2}"]];
    for pieces in pieces {
        let (said, conn) = reject(pieces);
        assert_eq!((said, conn.keep_alive(), next(conn)), (kept.clone(), true, true), "{pieces:?}");
    }
    // What is still to come cannot be told from the next request.
    let chunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    let last = "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 9\r\n\r\n";
    let pieces: [&[&str]; 5] =
        [&[head, "12345678"], &[head], &[hasty], &[chunked, "2\r\n{}\r\n0\r\n\r\n"], &[last, "123456789"]];
    for pieces in pieces {
        let (said, conn) = reject(pieces);
        assert_eq!((said, conn.keep_alive()), (closed.clone(), false), "{pieces:?}");
    }
}

#[test]
fn abandoned_request_is_rejected_and_ends_parsing() {
    let whole = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}";
    for cut in 1..whole.len() {
        let mut conn = Conn::new(Kind::HttpServer, &limits());
        conn.bytes(Bytes::copy_from_slice(&whole.as_bytes()[..cut]));
        poll(&mut conn, &mut Vec::new());
        let defect = BadRequest { status: 408, why: "it took too long" };
        assert_eq!(conn.give_up(defect.clone()), Some(Inbound::Reject(defect)));
        conn.bytes(Bytes::from(&whole[cut..]));
        assert_eq!((conn.poll_item(), conn.buffered(), conn.at_boundary()), (None, 0, true));
        answer(&mut conn, 408, &[], Body::Full("{}".into()));
        assert_eq!(
            written(&mut conn),
            "HTTP/1.1 408 Request Timeout\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
        );
    }
    assert_eq!(Conn::new(Kind::Lines, &limits()).give_up(BadRequest { status: 408, why: "" }), None);
}

#[test]
fn previous_request_does_not_affect_a_rejection() {
    for before in ["HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"] {
        for bad in ["hello\r\n\r\n", "\n", "GET / HTTP/1.1\r\nHost : h\r\n\r\n"] {
            let mut conn = asked(before);
            answer(&mut conn, 200, &[], Body::Full("{}".into()));
            written(&mut conn);
            conn.bytes(Bytes::from(bad));
            assert!(matches!(conn.poll_item(), Some(Inbound::Reject(_))));
            answer(&mut conn, 400, &[], Body::Full("{}".into()));
            let expected = "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
            assert_eq!(written(&mut conn), expected);
        }
    }
}

proptest! {
    // covers: SEPX-S-003
    /// A server reads what the client meant, or nothing.
    #[test]
    fn no_text_in_a_head_can_inject_anything(
        method in prop::sample::select(&["GET", "POST", "A\r\nB", "G T", "", "DELETE\n"][..]),
        target in proptest::collection::vec(prop::sample::select(TEXT), 0..4),
        name in proptest::collection::vec(prop::sample::select(TEXT), 0..4),
        value in proptest::collection::vec(prop::sample::select(TEXT), 0..6),
        body in prop::sample::select(&["", "{}", "\r\n\r\nGET / HTTP/1.1\r\n"][..]),
    ) {
        let (target, name, value) = (format!("/{}", target.concat()), name.concat(), value.concat());
        let headers = Headers::new().with("host", "h").with(&name, value.clone());
        let head = RequestHead { method: method.into(), target: target.into(), headers };
        let mut conn = Conn::new(Kind::HttpClient, &FrameLimits::default());
        conn.encode(Outbound::Request { head: head.clone(), body: body.into() });
        let bytes = written(&mut conn);
        prop_assert_eq!(bytes.is_empty(), conn.broken().is_some());
        if !bytes.is_empty() {
            let mut peer = Conn::new(Kind::HttpServer, &FrameLimits::default());
            peer.bytes(bytes.into());
            let mut items = Vec::new();
            poll(&mut peer, &mut items);
            let Inbound::Request(read) = items.remove(0) else { panic!("{items:?}") };
            prop_assert_eq!((&read.method, &read.target), (&head.method, &head.target));
            let ours = ["content-length", "accept-encoding", "connection"];
            let fields: Vec<_> = read.headers.iter().filter(|(name, _)| !ours.contains(name)).collect();
            let expected = [("host", "h"), (&name, value.trim_matches([' ', '\t']))];
            prop_assert_eq!(fields, expected);
            let body = (!body.is_empty()).then(|| Inbound::Body(body.into()));
            prop_assert_eq!(items, body.into_iter().chain([Inbound::End]).collect::<Vec<_>>());
        }
    }
}

const TEXT: &[&str] = &[
    "a",
    "X-b",
    ":",
    " ",
    "\t",
    "\r\n",
    "\n",
    "\r",
    "\0",
    "\u{7f}",
    "é",
    "\u{85}",
    "/?x=%0D%0A",
    "\"",
    "(",
    "\u{1}",
    "#",
];
