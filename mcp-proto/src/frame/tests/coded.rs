//! Bodies with a content coding: what their limits count, when their parts come, and which
//! responses a server compresses.

use super::http::{get, limits};
use super::response::response;
use super::*;
use crate::exchange::{BadRequest, Body, Data, Headers, ResponseHead, SseEvent};
use crate::sizes::scaled;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::{GzEncoder, ZlibEncoder};
use std::io::{Read, Write};

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zlib(text: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Returns a message whose text has this length.
fn padded(len: usize) -> String {
    let text = note_text("m");
    let pad = " ".repeat(len - text.len());
    text + &pad
}

fn message(first: &str, fields: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let fields: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    [format!("{first}\r\n{fields}Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

fn chunked(first: &str, fields: &[(&str, &str)], parts: &[&[u8]]) -> Vec<u8> {
    let fields: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let mut bytes = format!("{first}\r\n{fields}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
    for part in parts {
        bytes.extend([format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat());
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

const OK: &str = "HTTP/1.1 200 OK";
const POST: &str = "POST / HTTP/1.1\r\nHost: h";
const JSON: (&str, &str) = ("Content-Type", "application/json");
const GZIP: (&str, &str) = ("Content-Encoding", "gzip");

fn client(bytes: &[u8]) -> Seen {
    Case { kind: Kind::HttpClient, limits: limits(), sent: Some(get()), eof: false, bytes }.seen()
}

fn server(bytes: &[u8]) -> Seen {
    Case { kind: Kind::HttpServer, limits: limits(), sent: None, eof: false, bytes }.seen()
}

fn rest(seen: Seen) -> (Vec<Inbound>, Option<String>) {
    (seen.items.into_iter().skip(1).collect(), seen.broken)
}

fn good() -> (Vec<Inbound>, Option<String>) {
    (vec![Inbound::Message(note("m")), Inbound::End], None)
}

fn reject(status: u16, why: &'static str) -> (Vec<Inbound>, Option<String>) {
    (vec![Inbound::Reject(BadRequest { status, why })], None)
}

use alloc::vec;

// covers: B-166
#[test]
fn coded_bodies_are_decoded_on_both_sides() {
    let text = note_text("m");
    let (gzip, zlib) = (gzip(text.as_bytes()), zlib(text.as_bytes()));
    for (name, coded) in [("gzip", &gzip), ("X-GZip", &gzip), ("deflate", &zlib), ("identity, gzip", &gzip)] {
        let fields = [JSON, ("Content-Encoding", name)];
        for bytes in [message(OK, &fields, coded), chunked(OK, &fields, &[&coded[..5], &coded[5..]])] {
            assert_eq!(rest(client(&bytes)), good(), "{name}");
        }
        for bytes in [message(POST, &fields, coded), chunked(POST, &fields, &[coded])] {
            assert_eq!(rest(server(&bytes)), good(), "{name}");
        }
    }
    // An error page, and a body without a byte.
    let page = message("HTTP/1.1 502 Bad", &[("Content-Type", "text/html"), GZIP], &self::gzip(b"<p>no"));
    assert_eq!(rest(client(&page)).0, [Inbound::Body("<p>no".into()), Inbound::End]);
    assert_eq!(rest(client(&chunked(OK, &[JSON, GZIP], &[]))).0, [Inbound::End]);
    // Nothing of it is left for the next message.
    let twice = [message(POST, &[JSON, GZIP], &gzip), message(POST, &[JSON], text.as_bytes())].concat();
    assert_eq!(server(&twice).items.iter().filter(|item| **item == Inbound::Message(note("m"))).count(), 2);
}

// covers: B-166
#[test]
fn limits_count_decoded_bytes() {
    let body = |len: usize| gzip(padded(len).as_bytes());
    assert!(body(101).len() < 80);
    assert_eq!(rest(client(&message(OK, &[JSON, GZIP], &body(100)))), good());
    assert_eq!(rest(server(&message(POST, &[JSON, GZIP], &body(100)))), good());
    let large = (vec![], Some("the body is larger than the limit".into()));
    for len in [101, 10_000] {
        assert_eq!(rest(client(&message(OK, &[JSON, GZIP], &body(len)))), large);
        assert_eq!(rest(client(&chunked(OK, &[JSON, GZIP], &[&body(len)]))), large);
        let refused = reject(413, "the body is larger than the limit");
        assert_eq!(rest(server(&message(POST, &[JSON, GZIP], &body(len)))), refused);
    }
    let event = |len: usize| zlib(format!("data: {}\n\n", "x".repeat(len)).as_bytes());
    let fields = [("Content-Type", "text/event-stream"), ("Content-Encoding", "deflate")];
    assert_eq!(client(&chunked(OK, &fields, &[&event(200)])).broken, None);
    let seen = client(&chunked(OK, &fields, &[&event(201)]));
    assert_eq!(seen.broken, Some("an event is larger than 200 bytes".into()));
}

#[test]
fn bomb_stops_at_the_limit() {
    const LEN: usize = scaled(5 << 20);
    let max = 128 << 10;
    let limits =
        FrameLimits { max_response_body: max, max_request_body: max, max_event: max, ..FrameLimits::default() };
    let bomb = gzip(&vec![b' '; LEN]);
    let line = gzip(&[b"data: ".to_vec(), vec![b'x'; LEN]].concat());
    let events = ("Content-Type", "text/event-stream");
    for (kind, bytes) in [
        (Kind::HttpClient, message(OK, &[JSON, GZIP], &bomb)),
        (Kind::HttpClient, chunked(OK, &[JSON, GZIP], &[&bomb])),
        (Kind::HttpClient, chunked(OK, &[("Content-Type", "text/plain"), GZIP], &[&bomb])),
        (Kind::HttpClient, chunked(OK, &[events, GZIP], &[&line])),
        (Kind::HttpServer, message(POST, &[JSON, GZIP], &bomb)),
    ] {
        let mut conn = Conn::new(kind, &limits);
        if kind == Kind::HttpClient {
            conn.encode(get());
        }
        let most = bytes.len() + max + max / 8 + (200 << 10);
        conn.bytes(bytes.into());
        let mut size = 0;
        let mut is_refused = false;
        while let Some(item) = conn.poll_item() {
            match item {
                Inbound::Body(bytes) => size += bytes.len(),
                Inbound::Reject(why) => is_refused = why.status == 413,
                _ => {}
            }
            assert!(conn.buffered() <= most, "{kind:?}: {}", conn.buffered());
        }
        assert!(size <= max, "{size}");
        let is_broken = conn.broken().is_some_and(|why| why.contains("larger than"));
        assert!(is_broken || is_refused, "{kind:?}: {:?}", conn.broken());
        assert_eq!(conn.buffered(), 0);
    }
}

#[test]
fn invalid_coded_body_fails() {
    let text = note_text("m");
    let whole = gzip(text.as_bytes());
    for cut in 1..whole.len() {
        let seen = client(&message(OK, &[JSON, GZIP], &whole[..cut]));
        assert_eq!(rest(seen), (vec![], Some("the coded body is cut short".into())), "{cut}");
        let seen = server(&message(POST, &[JSON, GZIP], &whole[..cut]));
        assert_eq!(rest(seen), reject(400, "the coded body is cut short"), "{cut}");
    }
    let mut wrong = whole.clone();
    *wrong.last_mut().unwrap() ^= 1;
    let why = "the checksum of the coded body is wrong";
    assert_eq!(rest(client(&message(OK, &[JSON, GZIP], &wrong))), (vec![], Some(why.into())));
    assert_eq!(rest(server(&message(POST, &[JSON, GZIP], &wrong))), reject(400, why));
    // As long as the body lasts, it may go on.
    let mut conn = Conn::new(Kind::HttpClient, &limits());
    conn.encode(get());
    conn.bytes(message(OK, &[JSON, GZIP], &whole)[..60].to_vec().into());
    conn.eof();
    while conn.poll_item().is_some() {}
    assert!(conn.broken().is_some_and(|why| why.contains("cut short")));
}

fn event(data: &str) -> Inbound {
    let data = Data::Other { event: "x".into(), data: data.to_owned().into() };
    Inbound::Event(SseEvent { id: None, retry: None, data })
}

#[test]
fn events_come_as_they_are_flushed() {
    let mut stream = GzEncoder::new(Vec::new(), Compression::best());
    let mut conn = Conn::new(Kind::HttpClient, &limits());
    conn.encode(get());
    conn.bytes(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\
         Transfer-Encoding: chunked\r\n\r\n"
            .into(),
    );
    assert!(matches!(conn.poll_item(), Some(Inbound::Response(_))));
    let mut before = 0;
    let mut send = |conn: &mut Conn, coded: &[u8]| {
        let part = &coded[before..];
        conn.bytes([format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat().into());
        before = coded.len();
    };
    for n in 0..50 {
        let data = n.to_string();
        write!(stream, "event: x\ndata: {data}\n\n: \n\n").unwrap();
        stream.flush().unwrap();
        send(&mut conn, stream.get_ref());
        let mut items = Vec::new();
        poll(&mut conn, &mut items);
        assert_eq!(items, [event(&data), Inbound::Comment]);
        assert!(conn.take_content() > 0);
    }
    // A stream that ends before its checksum is cut short. What came before it counts.
    let mut last = Vec::new();
    write!(stream, "event: x\ndata: last\n\nretry: 7\n").unwrap();
    stream.flush().unwrap();
    send(&mut conn, stream.get_ref());
    conn.bytes("0\r\n\r\n".into());
    poll(&mut conn, &mut last);
    let retry = SseEvent { id: None, retry: Some(core::time::Duration::from_millis(7)), data: Data::None };
    assert_eq!(last, [event("last"), Inbound::Event(retry)]);
    assert_eq!(conn.broken().map(|why| &**why), Some("the coded body is cut short"));
}

// covers: B-166
#[test]
fn false_codings_mean_that_there_is_none() {
    for name in ["none", "utf-8", "UTF-8", "None", "identity, none", ""] {
        let field = ("Content-Encoding", name);
        let body = note_text("m");
        assert_eq!(rest(client(&message(OK, &[JSON, field], body.as_bytes()))), good(), "{name:?}");
        assert_eq!(rest(server(&message(POST, &[JSON, field], body.as_bytes()))), good(), "{name:?}");
    }
    let both = ("Content-Encoding", "none, gzip");
    assert_eq!(rest(client(&message(OK, &[JSON, both], &gzip(note_text("m").as_bytes())))), good());
    let unknown = ("Content-Encoding", "utf-16");
    let why = "the body has a content-encoding";
    let refused = server(&message(POST, &[JSON, unknown], b"{}"));
    assert_eq!(refused.items, [Inbound::Reject(BadRequest { status: 415, why })]);
}

#[test]
fn codings_are_refused_where_they_are_off() {
    let coded = gzip(note_text("m").as_bytes());
    let mut conn = Conn::new(Kind::HttpClient, &limits());
    conn.set_coding(false);
    conn.encode(get());
    assert!(written(&mut conn).contains("accept-encoding: identity\r\n"));
    conn.bytes(message(OK, &[JSON, GZIP], &coded).into());
    assert_eq!(conn.poll_item(), None);
    assert!(conn.broken().is_some_and(|why| why.contains("\"gzip\", which was not asked for")));
    let mut conn = Conn::new(Kind::HttpServer, &limits());
    conn.set_coding(false);
    conn.bytes(message(POST, &[JSON, GZIP], &coded).into());
    let why = "the body has a content-encoding";
    assert_eq!(conn.poll_item(), Some(Inbound::Reject(BadRequest { status: 415, why })));
    let (head, body) = answered("GET / HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n", &json(5000), false);
    assert!(!head.contains("content-encoding") && body == json(5000), "{head}");
}

/// JSON of this length, which is easy to compress.
fn json(len: usize) -> String {
    format!("\"{}\"", "a tool, ".repeat(len / 8 + 1).split_at(len - 2).0)
}

/// Returns the head and the body of the response to a request.
fn answered(request: &str, body: &str, coding: bool) -> (String, String) {
    respond(request, coding, &[("Content-Type", "application/json")], Body::Full(body.to_owned().into()))
}

fn respond(request: &str, coding: bool, fields: &[(&str, &str)], body: Body) -> (String, String) {
    let mut conn = Conn::new(Kind::HttpServer, &FrameLimits::default());
    conn.set_coding(coding);
    conn.bytes(request.to_owned().into());
    while conn.poll_item().is_some() {}
    let headers = fields.iter().fold(Headers::new(), |all, (name, value)| all.with(name, *value));
    let is_stream = body == Body::Stream;
    conn.encode(Outbound::Response { head: ResponseHead { status: 200, headers }, body });
    if is_stream {
        conn.encode(Outbound::Event { event: None, id: None, retry: None, data: json(5000).into() });
    }
    let mut bytes = Vec::new();
    while let Some(part) = conn.poll_write() {
        bytes.extend_from_slice(&part);
    }
    let end = bytes.windows(4).position(|part| part == b"\r\n\r\n").unwrap() + 4;
    let (head, body) = bytes.split_at(end);
    let head = String::from_utf8(head.to_vec()).unwrap();
    let length = format!("content-length: {}\r\n", body.len());
    assert!(is_stream || request.starts_with("HEAD") || head.contains(&length), "{head}");
    if !head.contains("content-encoding: gzip\r\n") {
        return (head, String::from_utf8(body.to_vec()).unwrap());
    }
    assert!(head.contains("vary: accept-encoding\r\n"), "{head}");
    let mut text = String::new();
    GzDecoder::new(body).read_to_string(&mut text).unwrap();
    assert!(body.len() < text.len());
    (head, text)
}

#[test]
fn large_json_is_compressed_on_request() {
    let ask = |method: &str, accept: &str| format!("{method} / HTTP/1.1\r\nHost: h\r\n{accept}\r\n");
    let is_coded = |head: &str| head.contains("content-encoding");
    for accept in
        ["Accept-Encoding: gzip\r\n", "Accept-Encoding: gzip, deflate, br\r\n", "accept-encoding: *;q=0.1\r\n"]
    {
        for len in [1025, 5000, scaled(1 << 20)] {
            let (head, text) = answered(&ask("GET", accept), &json(len), true);
            assert!(is_coded(&head) && text == json(len), "{head}");
        }
        let (head, text) = answered(&ask("GET", accept), &json(1024), true);
        assert!(!is_coded(&head) && text == json(1024), "{head}");
    }
    for accept in ["", "Accept-Encoding: identity\r\n", "Accept-Encoding: gzip;q=0, *\r\n", "Accept-Encoding: br\r\n"] {
        let (head, text) = answered(&ask("GET", accept), &json(5000), true);
        assert!(!is_coded(&head) && text == json(5000), "{head}");
    }
    let asks = ask("GET", "Accept-Encoding: gzip\r\n");
    let full = || Body::Full(json(5000).into());
    for fields in [
        &[("Content-Type", "text/plain")][..],
        &[JSON, ("Content-Encoding", "br")],
        &[JSON, ("Cache-Control", "private, no-transform")],
    ] {
        let (head, text) = respond(&asks, true, fields, full());
        assert!(!head.contains("gzip") && text == json(5000), "{head}");
    }
    // The response to HEAD has the length of the one to GET without a coding.
    let (head, text) = respond(&ask("HEAD", "Accept-Encoding: gzip\r\n"), true, &[JSON], full());
    assert!(!is_coded(&head) && head.contains("content-length: 5000\r\n") && text.is_empty(), "{head}");
}

// covers: B-168
#[test]
fn event_stream_is_never_compressed() {
    let asks = "GET / HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n";
    for fields in [[("Content-Type", "text/event-stream")], [JSON]] {
        let (head, text) = respond(asks, true, &fields, Body::Stream);
        assert!(!head.contains("gzip") && text.contains(&format!("data: {}\n\n", json(5000))), "{head}");
    }
}

#[test]
fn each_request_asks_for_itself() {
    let mut conn = Conn::new(Kind::HttpServer, &FrameLimits::default());
    for (accept, is_coded) in [("gzip", true), ("identity", false), ("gzip", true), ("", false)] {
        conn.bytes(format!("GET / HTTP/1.1\r\nHost: h\r\nAccept-Encoding: {accept}\r\n\r\n").into());
        while conn.poll_item().is_some() {}
        let head = ResponseHead { status: 200, headers: Headers::new().with(JSON.0, JSON.1) };
        conn.encode(Outbound::Response { head, body: Body::Full(json(5000).into()) });
        let mut bytes = Vec::new();
        while let Some(part) = conn.poll_write() {
            bytes.extend_from_slice(&part);
        }
        assert_eq!(bytes.len() < 5000, is_coded, "{accept}");
    }
}

#[test]
fn own_client_reads_what_own_server_compresses() {
    let mut client = Conn::new(Kind::HttpClient, &FrameLimits::default());
    let mut server = Conn::new(Kind::HttpServer, &FrameLimits::default());
    for _ in 0..3 {
        client.encode(get());
        server.bytes(written(&mut client).into());
        while server.poll_item().is_some() {}
        let text = padded(3000);
        let head = ResponseHead { status: 200, headers: Headers::new().with(JSON.0, JSON.1) };
        server.encode(Outbound::Response { head, body: Body::Full(text.into()) });
        let mut sent = 0;
        while let Some(part) = server.poll_write() {
            sent += part.len();
            client.bytes(part);
        }
        assert!(sent < 500, "{sent}");
        let mut items = Vec::new();
        poll(&mut client, &mut items);
        let length = |item: &Inbound| match item {
            Inbound::Response(head) => head.headers.get("content-length").map(str::to_owned),
            _ => None,
        };
        let fields = [
            (JSON.0, JSON.1),
            ("content-length", &*length(&items[0]).unwrap()),
            ("content-encoding", "gzip"),
            ("vary", "accept-encoding"),
        ];
        assert_eq!(items, [response(200, &fields), Inbound::Message(note("m")), Inbound::End]);
        assert!(client.keep_alive() && server.keep_alive());
    }
}
