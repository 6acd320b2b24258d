//! The codecs. Each case is read whole, at every split, byte by byte, and with bytes after it.

mod bounds;
mod coded;
mod http;
mod lines;
mod request;
mod response;
mod sse;

use super::{Conn, Kind};
use crate::exchange::{Inbound, Outbound};
use crate::limits::FrameLimits;
use crate::rpc::{Message, Notification};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;

/// One case: a codec, what it has sent before, and what it reads.
struct Case<'a> {
    kind: Kind,
    limits: FrameLimits,
    /// The request that a client has sent.
    sent: Option<Outbound>,
    /// Whether the connection ends after the bytes.
    eof: bool,
    bytes: &'a [u8],
}

/// The result.
#[derive(Debug, PartialEq)]
struct Seen {
    items: Vec<Inbound>,
    broken: Option<String>,
    at_boundary: bool,
    keep_alive: bool,
}

impl Case<'_> {
    /// Reads the pieces. Polls after each of them, or only at the end.
    fn feed<'p>(&self, pieces: impl IntoIterator<Item = &'p [u8]>, polls_late: bool) -> Seen {
        let mut conn = Conn::new(self.kind, &self.limits);
        if let Some(sent) = self.sent.clone() {
            conn.encode(sent);
        }
        let mut items = Vec::new();
        for piece in pieces {
            conn.bytes(Bytes::copy_from_slice(piece));
            if !polls_late {
                poll(&mut conn, &mut items);
            }
        }
        if self.eof {
            conn.eof();
        }
        poll(&mut conn, &mut items);
        assert_eq!(conn.poll_item(), None);
        Seen { items, broken: conn.broken().cloned(), at_boundary: conn.at_boundary(), keep_alive: conn.keep_alive() }
    }

    /// Returns the parts, which must not depend on how the bytes are split and when the codec is
    /// polled.
    fn seen(&self) -> Seen {
        let bytes = self.bytes;
        let seen = self.feed([bytes], false);
        // With debug assertions, long input is cut at some thousand places.
        let step = if cfg!(debug_assertions) { 1 + bytes.len() / 4096 } else { 1 };
        for at in (0..=bytes.len()).step_by(step) {
            let (a, b) = bytes.split_at(at);
            assert_eq!(self.feed([a, b], false), seen, "cut at {at}: {:?}", bytes.escape_ascii().to_string());
        }
        assert_eq!(self.feed(bytes.chunks(1), false), seen, "byte by byte");
        assert_eq!(self.feed(bytes.chunks(1), true), seen, "polled late");
        seen
    }
}

/// Polls all parts. Joins adjacent pieces of a body, whose boundaries do not matter.
fn poll(conn: &mut Conn, items: &mut Vec<Inbound>) {
    while let Some(item) = conn.poll_item() {
        match (items.last_mut(), item) {
            (Some(Inbound::Body(last)), Inbound::Body(next)) => *last = [&last[..], &next[..]].concat().into(),
            (_, item) => items.push(item),
        }
    }
}

fn note(method: &str) -> Message {
    Message::Notification(Notification { method: method.to_string().into(), params: None })
}

fn note_text(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#)
}

fn written(conn: &mut Conn) -> String {
    let mut all = Vec::new();
    while let Some(bytes) = conn.poll_write() {
        assert!(!bytes.is_empty());
        all.extend_from_slice(&bytes);
    }
    String::from_utf8(all).unwrap()
}
