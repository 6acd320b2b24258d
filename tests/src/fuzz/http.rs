//! HTTP/1.1 and event streams: the first bytes choose the side, the limits, the sent request or
//! whether a server holds bodies back, and the cuts of the rest.

use super::script::{Script, pieces};
use bytes::Bytes;
use mcp_proto::exchange::{Body, Headers, Inbound, Outbound, RequestHead, ResponseHead};
use mcp_proto::frame::{Conn, Kind};
use mcp_proto::limits::FrameLimits;

/// Any cut of an HTTP stream gives the same items and answers as the whole stream, and holds no
/// more than the limits allow.
///
/// # Panics
/// If not.
pub fn check(data: &[u8]) {
    let mut script = Script::new(data);
    let kind = *script.pick(&[Kind::HttpClient, Kind::HttpServer]);
    let other = script.below(4) == 3;
    let mut case = Case { kind, limits: FrameLimits::default(), other };
    let limits = &mut case.limits;
    (limits.max_head, limits.max_headers) = *script.pick(&[(1000, 20), (100, 4), (64 << 10, 100)]);
    limits.max_request_body = *script.pick(&[500, 20, 4 << 20]);
    limits.max_response_body = limits.max_request_body;
    limits.max_event = *script.pick(&[200, 10, 4 << 20]);
    let cut = u64::from(script.byte());
    let bytes = script.rest();
    let whole = case.read([Bytes::copy_from_slice(bytes)], true);
    assert_eq!(case.read(pieces(bytes, cut), true), whole, "in pieces");
    assert_eq!(case.read(pieces(bytes, cut), false), whole, "in pieces, polled late");
}

struct Case {
    kind: Kind,
    limits: FrameLimits,
    /// A client sends `GET`. A server needs a body only after a decision about its head.
    other: bool,
}

/// The outcome.
#[derive(Debug, PartialEq)]
struct Read {
    items: Vec<Inbound>,
    broken: Option<String>,
    written: Vec<u8>,
    keep_alive: bool,
}

impl Case {
    fn read(&self, pieces: impl IntoIterator<Item = Bytes>, polls: bool) -> Read {
        let mut conn = Conn::new(self.kind, &self.limits);
        conn.set_holding(self.other);
        if self.kind == Kind::HttpClient {
            conn.encode(self.request());
            while conn.poll_write().is_some() {}
        }
        let (mut items, mut written) = (Vec::new(), Vec::new());
        let most = 2 * (self.limits.max_head + self.limits.max_request_body + self.limits.max_event);
        for piece in pieces {
            conn.bytes(piece);
            if polls {
                self.poll(&mut conn, &mut items, &mut written);
                assert!(conn.buffered() <= most + 4096, "{} bytes are held", conn.buffered());
            }
        }
        // The answer depends on the end of the input, so the end is reported only after the rest
        // was read.
        self.poll(&mut conn, &mut items, &mut written);
        conn.eof();
        self.poll(&mut conn, &mut items, &mut written);
        assert_eq!(conn.poll_item(), None);
        Read { items, broken: conn.broken().cloned(), written, keep_alive: conn.keep_alive() }
    }

    fn request(&self) -> Outbound {
        let method = if self.other { "GET" } else { "POST" };
        let head = RequestHead { method: method.into(), target: "/".into(), headers: Headers::new().with("Host", "a") };
        Outbound::Request { head, body: Bytes::new() }
    }

    /// Takes all items, and answers each request when it has ended. Joins the pieces of a body.
    fn poll(&self, conn: &mut Conn, items: &mut Vec<Inbound>, written: &mut Vec<u8>) {
        while let Some(item) = conn.poll_item() {
            if let Inbound::Request(_) = &item
                && conn.is_held()
            {
                assert_eq!(conn.poll_item(), None);
                conn.encode(Outbound::Continue);
            }
            if self.kind == Kind::HttpServer && item == Inbound::End {
                let head = ResponseHead { status: 200, headers: Headers::new() };
                conn.encode(Outbound::Response { head, body: Body::Full(Bytes::from_static(b"{}")) });
            }
            match (items.last_mut(), item) {
                (Some(Inbound::Body(last)), Inbound::Body(next)) => *last = [&last[..], &next[..]].concat().into(),
                (_, item) => items.push(item),
            }
        }
        written.extend(std::iter::from_fn(|| conn.poll_write()).flatten());
    }
}
