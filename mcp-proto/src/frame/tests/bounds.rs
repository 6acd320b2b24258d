//! Input that never ends or exceeds a limit, on a client: the connection breaks with a reason, and
//! the codec holds no more than the limits allow.

use super::http::get;
use super::*;
use crate::exchange::{Data, SseEvent};
use crate::rpc::{InvalidKind, InvalidMessage};
use crate::sizes::scaled;

const HEAD: usize = 4000;
const BODY: usize = 6000;
const EVENT: usize = 3000;
/// The codec's own limits: for the line of a chunk's size, and for all trailers.
const SIZE: usize = (16 << 10) + 100;
const TRAILER: usize = 16 << 10;
/// Bytes per read, and what holding them costs.
const PIECE: usize = 1000;
const OVERHEAD: usize = 200;

fn limits() -> FrameLimits {
    FrameLimits {
        max_head: HEAD,
        max_headers: 1000,
        max_response_body: BODY,
        max_event: EVENT,
        ..FrameLimits::default()
    }
}

/// Reads `more` repeatedly, much more than any limit. Checks after each read that the codec holds
/// at most twice `most`, since buffers double, and at the end why it broke, if it did.
fn endless(begin: &str, more: &str, most: usize, why: Option<&str>) {
    let mut conn = Conn::new(Kind::HttpClient, &limits());
    conn.encode(get());
    conn.bytes(Bytes::copy_from_slice(begin.as_bytes()));
    let piece = Bytes::from(more.repeat(PIECE / more.len()));
    for _ in 0..scaled(1000) {
        while let Some(item) = conn.poll_item() {
            assert_ne!(item, Inbound::End, "{begin:?} {more:?}");
        }
        let held = conn.buffered();
        assert!(held <= 2 * most + OVERHEAD, "{begin:?} {more:?}: {held} bytes are held");
        conn.bytes(piece.clone());
        assert!(conn.buffered() <= held + piece.len() + OVERHEAD);
    }
    assert_eq!(conn.broken().map(String::as_str), why, "{begin:?} {more:?}");
    assert!(why.is_none() || conn.buffered() == 0, "what is broken holds nothing");
}

// covers: B-013, B-166
#[test]
fn endless_input_is_refused_and_not_held() {
    let large_head = Some("the head is too large");
    endless("HTTP/1.1 200 ", "x", HEAD, large_head);
    endless("HTTP/1.1 200 OK\r\na: ", "x", HEAD, large_head);
    endless("HTTP/1.1 200 OK\r\n", "x", HEAD, large_head);
    endless("HTTP/1.1 200 OK\r\n", "a: b\r\n", HEAD, large_head);
    endless("", "\r\n", 100, large_head);
    endless("HTTP/1.1 100 \r\n\r\nHTTP/1.1 103 \r\n", "a: b\r\n", HEAD, large_head);

    endless("", "HTTP/1.1 100 \r\n\r\n", HEAD, Some("too many interim responses"));

    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: ";
    let long_size = Some("the line of a chunk's size is too long");
    let long_extensions = Some("the chunk extensions are too long");
    let long_trailer = Some("the trailer is too long");
    for content in ["application/json", "text/event-stream", "text/html"] {
        endless(&format!("{chunked}{content}\r\n\r\n"), "0", SIZE, long_size);
        endless(&format!("{chunked}{content}\r\n\r\n1;"), "x", SIZE, long_extensions);
        endless(&format!("{chunked}{content}\r\n\r\n0\r\na: "), "x", TRAILER, long_trailer);
        endless(&format!("{chunked}{content}\r\n\r\n0\r\n"), "a: b\r\n", TRAILER, long_trailer);
    }

    let large_body = Some("the body is larger than the limit");
    for (content, most) in [("application/json", BODY), ("text/html", 0)] {
        endless(&format!("{chunked}{content}\r\n\r\nffffffffffffffff\r\n"), "x", most + PIECE, large_body);
        endless(&format!("{chunked}{content}\r\n\r\n"), "1\r\nx\r\n", most + PIECE, large_body);
        let close = format!("HTTP/1.1 200 OK\r\nContent-Type: {content}\r\n\r\n");
        endless(&close, "x", most + PIECE, large_body);
        let known =
            format!("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\nContent-Type: {content}\r\n\r\n");
        endless(&known, "x", 0, large_body);
    }
    let large_event = Some("an event is larger than 3000 bytes");
    endless(&format!("{chunked}text/event-stream\r\n\r\nffffffffffffffff\r\ndata: "), "x", EVENT, large_event);
    endless(&format!("{chunked}text/event-stream\r\n\r\n"), "8\r\ndata: x\n\r\n", EVENT, large_event);
}

/// Input that a timer ends uses no memory meanwhile.
#[test]
fn input_ended_by_a_timer_holds_no_memory() {
    let events = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    for more in [":", "\n", ":\n", "x", "data: 1\n\n", "id: 1\n"] {
        endless(&format!("{events}:\n"), more, 100, None);
    }
    let chunked = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    endless(chunked, "3\r\n:x\n\r\n", 100, None);
}

/// A message in chunks whose extensions have these lengths, and an event in each chunk. Returns the
/// number of events, and why it broke.
fn extended(kind: Kind, lengths: impl IntoIterator<Item = usize>) -> (usize, Option<String>) {
    const EVENT: &str = "data: x\n\n";
    let mut conn = Conn::new(kind, &FrameLimits::default());
    let head = match kind {
        Kind::HttpServer => "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: text/plain\r\n",
        _ => {
            conn.encode(get());
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        }
    };
    conn.bytes(format!("{head}Transfer-Encoding: chunked\r\n\r\n").into());
    let mut parts = 0;
    for length in lengths {
        // With the semicolon.
        let extension = if length == 0 { String::new() } else { format!(";{}", "x".repeat(length - 1)) };
        conn.bytes(format!("{:x}{extension}\r\n{EVENT}\r\n", EVENT.len()).into());
        while let Some(item) = conn.poll_item() {
            match item {
                Inbound::Event(_) | Inbound::Body(_) => parts += 1,
                Inbound::Reject(defect) => return (parts, Some(defect.why.to_string())),
                _ => {}
            }
        }
    }
    (parts, conn.broken().cloned())
}

// covers: B-166
#[test]
fn extensions_of_an_endless_response_are_ignored() {
    const ALL: usize = 16 << 10;
    let long = || Some("the chunk extensions are too long".into());
    let client = |lengths: &[usize]| extended(Kind::HttpClient, lengths.iter().copied());
    assert_eq!(extended(Kind::HttpClient, core::iter::repeat_n(256, 2000)), (2000, None));
    // A chunk without them gives as much as any other, up to all of it.
    let most = [&[ALL][..], &[0; 63], &[ALL]].concat();
    assert_eq!(client(&most), (65, None));
    assert_eq!(client(&[&[ALL][..], &[0; 62], &[ALL]].concat()), (63, long()));
    assert_eq!(client(&[&[0; 100][..], &[ALL]].concat()), (101, None));
    assert_eq!(client(&[&[0; 100][..], &[ALL + 1]].concat()), (100, long()));
    // One of the content that the chunk announces does not count before it is accepted.
    assert_eq!(client(&[ALL, 257]), (1, long()));
    // A request has all of it once.
    assert_eq!(extended(Kind::HttpServer, core::iter::repeat_n(256, 64)), (64, None));
    assert_eq!(extended(Kind::HttpServer, core::iter::repeat_n(256, 65)), (64, long()));
}

#[test]
fn hundred_thousand_fields_exceed_any_head_limit() {
    let head = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(100_000));
    for (max_head, why) in [(64 << 10, "the head is too large"), (64 << 20, "the head has too many fields")] {
        for size in [1000, head.len()] {
            let mut conn = Conn::new(Kind::HttpClient, &FrameLimits { max_head, ..FrameLimits::default() });
            conn.encode(get());
            for piece in head.as_bytes().chunks(size) {
                conn.bytes(Bytes::copy_from_slice(piece));
                assert_eq!(conn.poll_item(), None);
                assert!(conn.buffered() <= 2 * max_head.min(head.len()) + OVERHEAD);
            }
            assert_eq!((conn.broken().map(String::as_str), conn.buffered()), (Some(why), 0));
        }
    }
}

#[test]
fn response_limits_are_exact() {
    let body = "x".repeat(50);
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\na: b\r\nContent-Type: text/plain\r\n\r\n";
    let bytes = format!("{head}{body}");
    let why = |max_head, max_headers, max_response_body| {
        let limits = FrameLimits { max_head, max_headers, max_response_body, ..FrameLimits::default() };
        let case = Case { kind: Kind::HttpClient, limits, sent: Some(get()), eof: false, bytes: bytes.as_bytes() };
        let seen = case.seen();
        assert_eq!(seen.items.last() == Some(&Inbound::End), seen.broken.is_none());
        seen.broken
    };
    assert_eq!(why(head.len(), 3, 50), None);
    assert_eq!(why(head.len() - 1, 3, 50).unwrap(), "the head is too large");
    assert_eq!(why(head.len(), 2, 50).unwrap(), "the head has too many fields");
    assert_eq!(why(head.len(), 3, 49).unwrap(), "the body is larger than the limit");
}

// covers: B-003
#[test]
fn invalid_utf_8_affects_only_its_message() {
    let (json, events) = ("application/json", "text/event-stream");
    let text = |bytes: &[u8]| [br#"{"jsonrpc":"2.0","method":""#, bytes, br#""}"#].concat();
    let is_utf8 = |defect: &InvalidMessage| defect.kind == InvalidKind::Utf8;
    for bad in [&b"\xFF"[..], b"\xC3", b"\xED\xA0\x80", b"\xF0\x9F\x98"] {
        for (content, body) in [(json, text(bad)), (events, [b"data: ", &text(bad)[..], b"\n\ndata: 1\n\n"].concat())] {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {content}\r\nContent-Length: {}\r\n\r\n", body.len());
            let bytes = [head.as_bytes(), &body].concat();
            let seen =
                Case { kind: Kind::HttpClient, limits: limits(), sent: Some(get()), eof: false, bytes: &bytes }.seen();
            assert_eq!((seen.broken, seen.keep_alive), (None, true));
            match &seen.items[1..] {
                [Inbound::Invalid(defect), Inbound::End] => assert!(is_utf8(defect)),
                [Inbound::Event(SseEvent { data: Data::Invalid(defect), .. }), Inbound::Event(_), Inbound::End] => {
                    assert!(is_utf8(defect));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
