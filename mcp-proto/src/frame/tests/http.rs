use super::*;
use crate::exchange::{BadRequest, Body, Headers, Outbound, RequestHead, ResponseHead};
use alloc::vec;
use core::time::Duration;
use proptest::prelude::*;

pub(super) fn limits() -> FrameLimits {
    FrameLimits {
        max_head: 400,
        max_headers: 8,
        max_request_body: 100,
        max_response_body: 100,
        max_event: 200,
        ..FrameLimits::default()
    }
}

pub(super) fn server(bytes: &[u8], eof: bool) -> Seen {
    Case { kind: Kind::HttpServer, limits: limits(), sent: None, eof, bytes }.seen()
}

pub(super) fn get() -> Outbound {
    let headers = Headers::new().with("host", "h");
    Outbound::Request { head: RequestHead { method: "GET".into(), target: "/".into(), headers }, body: Bytes::new() }
}

pub(super) fn request(method: &str, target: &str, headers: &[(&str, &str)]) -> Inbound {
    Inbound::Request(RequestHead { method: method.to_owned().into(), target: target.into(), headers: fields(headers) })
}

pub(super) fn fields(headers: &[(&str, &str)]) -> Headers {
    headers.iter().fold(Headers::new(), |all, (name, value)| all.with(name, *value))
}

/// Checks a request alone, and with another one after it.
pub(super) fn check_request(bytes: &str, items: &[Inbound], keep_alive: bool) {
    let seen = server(bytes.as_bytes(), false);
    assert_eq!((&seen.items[..], &seen.broken), (items, &None), "{bytes}");
    assert_eq!((seen.at_boundary, seen.keep_alive), (true, keep_alive), "{bytes}");
    let mut items = items.to_vec();
    items.extend([request("GET", "/next", &[("Host", "h")]), Inbound::End]);
    let seen = server(format!("{bytes}GET /next HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes(), true);
    assert_eq!((seen.items, seen.broken), (items, None), "{bytes}");
}

#[test]
fn requests_are_parsed_with_their_bodies() {
    let m = note_text("m");
    let length = m.len().to_string();
    let json = [("Host", "h"), ("Content-Type", "application/json"), ("Content-Length", &length)];
    check_request(
        &format!(
            "POST /mcp?x=1 HTTP/1.1\r\nHost: h\r\nContent-Type:application/json\r\nContent-Length: {length} \r\n\r\n{m}"
        ),
        &[request("POST", "/mcp?x=1", &json), Inbound::Message(note("m")), Inbound::End],
        true,
    );
    check_request(
        &format!(
            "\r\nPOST / HTTP/1.1\r\nHost: h\r\nContent-Type: Application/JSON; a=b\r\nContent-Length: {0}, {0}\r\n\r\n[{m}]",
            m.len() + 2
        ),
        &[
            request(
                "POST",
                "/",
                &[
                    ("Host", "h"),
                    ("Content-Type", "Application/JSON; a=b"),
                    ("Content-Length", &format!("{0}, {0}", m.len() + 2)),
                ],
            ),
            Inbound::Batch(vec![Ok(note("m"))]),
            Inbound::End,
        ],
        true,
    );
    let (a, b) = m.split_at(10);
    check_request(
        &format!(
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\ntransfer-encoding: Chunked\r\n\r\n\
             A;x=\"y\"\r\n{a}\r\n{:X}\r\n{b}\r\n000\r\nTrailer: x\r\n\r\n",
            b.len()
        ),
        &[
            request(
                "POST",
                "/",
                &[("Host", "h"), ("Content-Type", "application/json"), ("transfer-encoding", "Chunked")],
            ),
            Inbound::Message(note("m")),
            Inbound::End,
        ],
        true,
    );
    check_request(
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nConnection: x, Close\r\n\r\nhello",
        &[
            request("POST", "/", &[("Host", "h"), ("Content-Length", "5"), ("Connection", "x, Close")]),
            Inbound::Body("hello".into()),
            Inbound::End,
        ],
        false,
    );
    check_request("GET / HTTP/1.0\r\n\r\n", &[request("GET", "/", &[]), Inbound::End], false);
    check_request(
        "DELETE / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        &[request("DELETE", "/", &[("Connection", "keep-alive")]), Inbound::End],
        true,
    );
    // HTTP/1.0 switches to no other protocol (RFC 9110 section 7.8).
    check_request(
        "GET / HTTP/1.0\r\nUpgrade: websocket\r\nConnection: upgrade\r\nA: b\r\nupgrade: c\r\n\r\n",
        &[request("GET", "/", &[("Connection", "upgrade"), ("A", "b")]), Inbound::End],
        false,
    );
    let empty = [("Host", "h"), ("Content-Type", "application/json"), ("Content-Length", "0")];
    check_request(
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n",
        &[
            request("POST", "/", &empty),
            Inbound::Invalid(crate::rpc::InvalidMessage::new(crate::rpc::InvalidKind::Truncated, b"")),
            Inbound::End,
        ],
        true,
    );
}

#[test]
fn invalid_request_is_rejected_once_and_ends_parsing() {
    let big = "x".repeat(400);
    let many = "a: b\r\n".repeat(9);
    let cases: &[(&str, u16)] = &[
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\nHost: a\n\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n", 400),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        ("G\"T / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("hello\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\n\r\n", 411),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 2\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n", 413),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", 501),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", 400),
        ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Encoding: br\r\n\r\n", 415),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: more\r\n\r\n", 417),
        (&format!("GET /{big} HTTP/1.1\r\n"), 414),
        (&format!("GET / HTTP/1.1\r\nHost: {big}\r\n"), 431),
        (&format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n"), 431),
    ];
    for (bytes, status) in cases {
        for bytes in [(*bytes).into(), format!("{bytes}GET / HTTP/1.1\r\nHost: h\r\n\r\n")] {
            let seen = server(bytes.as_bytes(), false);
            let [Inbound::Reject(BadRequest { status: seen_status, .. })] = seen.items[..] else { panic!("{seen:?}") };
            assert_eq!(seen_status, *status, "{bytes}");
            assert_eq!((seen.broken, seen.keep_alive, seen.at_boundary), (None, false, true));
        }
    }
    let mut conn = Conn::new(Kind::HttpServer, &limits());
    conn.bytes("x\n".into());
    assert!(matches!(conn.poll_item(), Some(Inbound::Reject(_))));
    conn.bytes("GET / HTTP/1.1\r\nHost: h\r\n\r\n".into());
    assert_eq!((conn.poll_item(), conn.buffered()), (None, 0));
    conn.eof();
    assert_eq!((conn.poll_item(), conn.broken()), (None, None));
}

#[test]
fn head_limits_are_exact() {
    let head = format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "a: b\r\n".repeat(7));
    let rejected = |max_head, max_headers| {
        let limits = FrameLimits { max_head, max_headers, ..FrameLimits::default() };
        let case = Case { kind: Kind::HttpServer, limits, sent: None, eof: false, bytes: head.as_bytes() };
        match &case.seen().items[..] {
            [Inbound::Reject(BadRequest { status: 431, .. })] => true,
            [Inbound::Request(_), Inbound::End] => false,
            other => panic!("{other:?}"),
        }
    };
    assert!(!rejected(head.len(), 8));
    assert!(rejected(head.len() - 1, 8));
    assert!(rejected(head.len(), 7));
    // The codec holds no more than the limit, however much it reads.
    let mut conn = Conn::new(Kind::HttpServer, &limits());
    conn.bytes("GET / HTTP/1.1\r\na: ".into());
    while conn.poll_item().is_none() {
        conn.bytes(vec![b'x'; 50].into());
        assert!(conn.buffered() <= 2 * 400 + 114);
    }
    assert_eq!(conn.buffered(), 0);
}

#[test]
fn chunked_body_is_parsed_strictly_within_its_limit() {
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunks = |body: &str| server(format!("{head}{body}").as_bytes(), false);
    let status = |seen: &Seen| match seen.items.last() {
        Some(Inbound::Reject(defect)) => defect.status,
        other => panic!("{other:?}"),
    };
    for body in [
        "x\r\n",
        "\r\n",
        " 1\r\na\r\n",
        "1\na\r\n",
        "1\r\nab\r\n",
        "1\r\na\n0\r\n\r\n",
        "11111111111111111\r\n",
        "1\r;\r\n",
        "0\r\na: b\n\r\n",
    ] {
        assert_eq!(status(&chunks(body)), 400, "{body:?}");
    }
    let long = [format!("1;{}", "x".repeat(17_000)), format!("0\r\n{}", "a: b\r\n".repeat(3000))];
    for (body, size) in long.iter().flat_map(|body| [1, 100, 100_000].map(|size| (body, size))) {
        let case = Case { kind: Kind::HttpServer, limits: limits(), sent: None, eof: false, bytes: &[] };
        assert_eq!(status(&case.feed(format!("{head}{body}").as_bytes().chunks(size), false)), 400);
    }
    let over = chunks(&format!("64\r\n{}\r\n1\r\nx\r\n0\r\n\r\n", "x".repeat(100)));
    assert_eq!((status(&over), &over.items[1]), (413, &Inbound::Body("x".repeat(100).into())));
    let fits = format!("64\r\n{}\r\n0\r\n\r\n", "x".repeat(100));
    assert_eq!(chunks(&fits).items[1..], [Inbound::Body("x".repeat(100).into()), Inbound::End]);
}

#[test]
fn truncated_request_is_broken_and_absent_one_is_not() {
    let whole = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
    for cut in 1..whole.len() {
        let case = Case { kind: Kind::HttpServer, limits: limits(), sent: None, eof: true, bytes: &[] };
        let seen = case.feed([&whole.as_bytes()[..cut]], false);
        assert!(seen.broken.is_some_and(|why| why.contains("cut short")), "{cut}");
        assert_ne!(seen.items.last(), Some(&Inbound::End));
    }
    let seen = server(b"", true);
    assert_eq!((seen.items, seen.broken, seen.at_boundary, seen.keep_alive), (vec![], None, true, false));
}

// covers: B-194
#[test]
fn heads_cannot_inject_anything() {
    let evil = ["a\r\nb", "a\nb", "a\rb", "a\0b", "a\u{7f}"];
    let good = || Headers::new().with("host", "h");
    let mut heads = vec![
        RequestHead { method: "GET".into(), target: "/".into(), headers: Headers::new() },
        RequestHead { method: "GET ".into(), target: "/".into(), headers: good() },
        RequestHead { method: "GET".into(), target: "/ x".into(), headers: good() },
        RequestHead { method: "GET".into(), target: "".into(), headers: good() },
        RequestHead { method: "GET".into(), target: "/".into(), headers: good().with("", "x") },
        RequestHead { method: "GET".into(), target: "/".into(), headers: good().with("a:b", "x") },
        // A server would refuse it.
        RequestHead { method: "GET".into(), target: "/".into(), headers: good().with("Host", "h") },
    ];
    for text in evil {
        heads.push(RequestHead { method: "GET".into(), target: "/".into(), headers: good().with("x", text) });
        heads.push(RequestHead { method: "GET".into(), target: "/".into(), headers: good().with(text, "x") });
        heads.push(RequestHead { method: "GET".into(), target: text.into(), headers: good() });
    }
    for head in heads {
        let mut conn = Conn::new(Kind::HttpClient, &limits());
        conn.encode(Outbound::Request { head: head.clone(), body: Bytes::new() });
        assert!(conn.broken().is_some() && conn.poll_write().is_none(), "{head:?}");
    }
    for text in evil {
        for body in [Body::Full("secret".into()), Body::Stream] {
            let mut conn = asked("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            let head = ResponseHead { status: 200, headers: Headers::new().with("x", text) };
            conn.encode(Outbound::Response { head, body });
            conn.encode(Outbound::Event { event: None, id: None, retry: None, data: "x".into() });
            conn.encode(Outbound::End);
            assert_eq!(
                written(&mut conn),
                "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
            assert!(!conn.keep_alive());
        }
    }
}

/// Returns a server that has read this request.
pub(super) fn asked(request: &str) -> Conn {
    let mut conn = Conn::new(Kind::HttpServer, &limits());
    conn.bytes(Bytes::copy_from_slice(request.as_bytes()));
    poll(&mut conn, &mut Vec::new());
    conn
}

pub(super) fn answer(conn: &mut Conn, status: u16, headers: &[(&str, &str)], body: Body) {
    conn.encode(Outbound::Response { head: ResponseHead { status, headers: fields(headers) }, body });
}

#[test]
fn responses_have_their_length_and_announce_the_last_one() {
    let full = || Body::Full("{}".into());
    let cases: &[(&str, &str, bool)] = &[
        ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", "", true),
        ("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "connection: close\r\n", false),
        ("GET / HTTP/1.0\r\n\r\n", "connection: close\r\n", false),
        ("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "connection: keep-alive\r\n", true),
        // The response precedes the end of the request.
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{", "connection: close\r\n", false),
        ("POST / HTTP/1.1\r\nHost: h\r\n\r\n", "connection: close\r\n", false),
    ];
    for (request, connection, keep_alive) in cases {
        let mut conn = asked(request);
        answer(&mut conn, 200, &[("a", "b"), ("Content-Length", "77")], full());
        assert_eq!(
            written(&mut conn),
            format!("HTTP/1.1 200 OK\r\na: b\r\ncontent-length: 2\r\n{connection}\r\n{{}}"),
            "{request}"
        );
        assert_eq!(conn.keep_alive(), *keep_alive, "{request}");
    }
    let mut conn = asked(cases[0].0);
    answer(&mut conn, 202, &[("Connection", "close")], Body::Full(Bytes::new()));
    assert_eq!(written(&mut conn), "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    assert!(!conn.keep_alive());
    let mut conn = asked(cases[0].0);
    answer(&mut conn, 204, &[], Body::Full(Bytes::new()));
    assert_eq!(written(&mut conn), "HTTP/1.1 204 No Content\r\n\r\n");
    let mut conn = asked("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
    answer(&mut conn, 200, &[], full());
    assert_eq!(written(&mut conn), "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n");
    // A large body is not copied.
    let mut conn = asked(cases[0].0);
    let large = Bytes::from(vec![b' '; 5000]);
    answer(&mut conn, 200, &[], Body::Full(large.clone()));
    conn.poll_write();
    assert_eq!(conn.poll_write().unwrap().as_ptr(), large.as_ptr());
}

#[test]
fn streamed_response_reads_back_as_its_events() {
    let mut conn = asked("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    answer(&mut conn, 200, &[("content-type", "text/event-stream")], Body::Stream);
    let event = |id: Option<&str>, retry, data: String| Outbound::Event {
        event: None,
        id: id.map(Into::into),
        retry,
        data: data.into(),
    };
    conn.encode(event(Some("1"), Some(Duration::from_millis(5)), String::new()));
    conn.encode(Outbound::Comment(String::new()));
    conn.encode(Outbound::Comment("heartbeat".into()));
    conn.encode(event(None, None, note_text("m")));
    assert_eq!(
        written(&mut conn),
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: keep-alive\r\n\r\n\
         17\r\nid: 1\nretry: 5\ndata: \n\n\r\n\
         3\r\n:\n\n\r\n\
         d\r\n: heartbeat\n\n\r\n\
         26\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n\n\r\n"
    );
    let large = note_text(&"m".repeat(5000));
    conn.encode(event(None, None, large.clone()));
    conn.encode(Outbound::End);
    conn.encode(Outbound::Comment(String::new()));
    assert_eq!(written(&mut conn), format!("{:x}\r\ndata: {large}\n\n\r\n0\r\n\r\n", large.len() + 8));
    assert!(conn.keep_alive());

    // The last response of a connection has `close` and no `keep-alive`.
    let mut conn = asked("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    answer(&mut conn, 200, &[], Body::Stream);
    assert_eq!(written(&mut conn), "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n");

    // HTTP/1.0 has no chunks: the stream ends with the connection.
    let mut conn = asked("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    answer(&mut conn, 200, &[], Body::Stream);
    conn.encode(event(None, None, "1".into()));
    conn.encode(Outbound::End);
    assert_eq!(written(&mut conn), "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\ndata: 1\n\n");
    assert!(!conn.keep_alive());
}

#[test]
fn client_that_expects_100_continue_receives_it() {
    let head = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: ";
    assert_eq!(written(&mut asked(&format!("{head}2\r\n\r\n"))), "HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(written(&mut asked(&format!("{head}0\r\n\r\n"))), "");
    assert_eq!(written(&mut asked(&format!("{head}101\r\n\r\n"))), "");
    assert_eq!(written(&mut asked("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n")), "");
    // No `100 Continue` if the server responds to the head.
    let mut conn = Conn::new(Kind::HttpServer, &limits());
    conn.bytes(Bytes::from(format!("{head}2\r\n\r\n")));
    assert!(matches!(conn.poll_item(), Some(Inbound::Request(_))));
    answer(&mut conn, 403, &[], Body::Full(Bytes::new()));
    assert_eq!(conn.poll_item(), None);
    assert_eq!(written(&mut conn), "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
}

#[test]
fn pipelined_requests_stay_unparsed_until_polled() {
    let mut conn = Conn::new(Kind::HttpServer, &limits());
    let one = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    conn.bytes(Bytes::from(one.repeat(3)));
    assert!(matches!(conn.poll_item(), Some(Inbound::Request(_))));
    assert_eq!(conn.poll_item(), Some(Inbound::End));
    assert!(conn.buffered() >= 2 * one.len() && !conn.at_boundary());
    answer(&mut conn, 202, &[], Body::Full(Bytes::new()));
    assert!(conn.keep_alive());
    let mut rest = Vec::new();
    poll(&mut conn, &mut rest);
    assert_eq!((rest.len(), conn.buffered(), conn.at_boundary()), (4, 0, true));
}

const PIECES: &[&str] = &[
    "\r\n",
    "\r\n\r\n",
    "\n",
    "\r",
    "GET / HTTP/1.1\r\n",
    "POST / HTTP/1.1\r\n",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 100 \r\n",
    "Host: h\r\n",
    "Content-Length: 3\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Content-Type: application/json\r\n",
    "Content-Type: text/event-stream\r\n",
    "Connection: close\r\n",
    "3\r\n",
    "{} ",
    "0\r\n\r\n",
    "data: 1\n\n",
    "\0",
    "x",
];

proptest! {
    // covers: B-010
    #[test]
    fn any_split_of_any_bytes_has_the_same_outcome(
        pieces in proptest::collection::vec(prop::sample::select(PIECES), 0..16),
        cut in 1..9_usize,
        eof in any::<bool>(),
    ) {
        let bytes = pieces.concat();
        for (kind, sent) in [(Kind::HttpServer, None), (Kind::HttpClient, Some(get()))] {
            let case = Case { kind, limits: FrameLimits::default(), sent, eof, bytes: &[] };
            let whole = case.feed([bytes.as_bytes()], false);
            prop_assert_eq!(&case.feed(bytes.as_bytes().chunks(cut), false), &whole);
            prop_assert_eq!(&case.feed(bytes.as_bytes().chunks(cut), true), &whole);
        }
    }
}

#[test]
fn client_that_begins_with_tls_gets_the_reason() {
    let why = BadRequest { status: 400, why: "the client speaks TLS, and this port plain HTTP" };
    for hello in ["\u{16}", "\u{16}\u{3}\u{1}\u{2}\0", "\u{16}\u{3}\u{1}\n", "\u{16}\r\nHost: h\r\n\r\n"] {
        let seen = server(hello.as_bytes(), false);
        assert_eq!(seen.items, [Inbound::Reject(why.clone())], "{hello:?}");
    }
}
