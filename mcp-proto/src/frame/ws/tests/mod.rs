//! WebSocket. Each case is read whole, at every split, byte by byte, polled late, with bytes after
//! it, and at the end of the connection.

mod closing;
mod conn;
mod cost;
mod handshake;
mod messages;
mod oracle;
mod random;
mod writing;

use super::*;
use crate::seed::Seed;
use alloc::string::ToString;
use alloc::vec::Vec;

/// Maximum length of a message in most cases.
const MAX: usize = 1000;

/// The key of RFC 6455 section 5.7.
const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// The side that reads.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Reader {
    Client,
    Server,
}

const BOTH: [Reader; 2] = [Reader::Client, Reader::Server];

/// The result of a case.
#[derive(Debug, PartialEq)]
struct Seen {
    items: Vec<WsItem>,
    /// What was written in response.
    written: Vec<u8>,
    at_boundary: bool,
}

impl Reader {
    fn codec(self, max: usize) -> WsCodec {
        let role = match self {
            Self::Client => WsSide::Client(Masks::new(Seed::new([7; 32]))),
            Self::Server => WsSide::Server,
        };
        WsCodec::new(role, max, WsSupport::get().unwrap())
    }

    /// The key of the frames that it reads.
    fn key(self) -> Option<[u8; 4]> {
        (self == Self::Server).then_some(KEY)
    }

    /// Returns the frames that it reads, each with its first byte and its payload.
    fn wire(self, frames: &[(u8, &[u8])]) -> Vec<u8> {
        frames.iter().flat_map(|(first, payload)| frame(*first, self.key(), payload)).collect()
    }

    /// Reads the pieces. Polls after each of them, or only at the end.
    fn feed<'p>(self, max: usize, pieces: impl IntoIterator<Item = &'p [u8]>, late: bool, eof: bool) -> Seen {
        let (mut codec, mut out, mut items) = (self.codec(max), ShortQueue::new(), Vec::new());
        for piece in pieces {
            codec.bytes(Bytes::copy_from_slice(piece));
            while let Some(item) = (!late).then(|| codec.poll(&mut out)).flatten() {
                items.push(item);
            }
        }
        if eof {
            codec.eof();
        }
        items.extend(core::iter::from_fn(|| codec.poll(&mut out)));
        assert_eq!(codec.poll(&mut out), None);
        assert_eq!(codec.is_ended(), items.last().is_some_and(is_final), "{items:?}");
        out.extend(codec.poll_pong());
        Seen { items, written: drain(&mut out), at_boundary: codec.at_boundary() }
    }

    /// Returns the items, which must not depend on how the bytes are split and when the codec is
    /// polled.
    fn seen(self, max: usize, bytes: &[u8], eof: bool) -> Seen {
        let seen = self.feed(max, [bytes], false, eof);
        // The interesting splits of a long case are near its ends. Single bytes of one take long.
        let long = bytes.len() > 2000;
        let near = |at: &usize| bytes.len() < 700 || *at < 20 || bytes.len() - at < 8;
        for at in (0..=bytes.len()).filter(near) {
            let (a, b) = bytes.split_at(at);
            assert_eq!(self.feed(max, [a, b], false, eof), seen, "cut at {at}: {}", bytes.escape_ascii());
        }
        for size in if long { [97, 1000] } else { [1, 7] } {
            assert_eq!(self.feed(max, bytes.chunks(size), false, eof), seen, "pieces of {size}");
            assert_eq!(self.feed(max, bytes.chunks(size), true, eof), seen, "polled late");
        }
        seen
    }

    /// Checks the items of the bytes alone, with a message after them, and at the end of the
    /// connection.
    fn check(self, max: usize, bytes: &[u8], items: &[WsItem]) {
        let seen = self.seen(max, bytes, false);
        let ended = items.last().is_some_and(is_final);
        assert_eq!(seen.items, items, "{self:?}: {}", bytes.escape_ascii());
        let mut end = items.to_vec();
        end.extend((!ended).then_some(WsItem::End));
        assert_eq!(self.seen(max, bytes, true).items, end);
        if ended || seen.at_boundary {
            let followed = [bytes, &self.wire(&[(0x81, b"z")])].concat();
            let mut after = items.to_vec();
            after.extend((!ended).then(|| text("z")));
            assert_eq!(self.seen(max, &followed, false).items, after);
        }
    }
}

/// Checks the frames at both sides.
fn check(frames: &[(u8, &[u8])], items: &[WsItem]) {
    BOTH.iter().for_each(|reader| reader.check(MAX, &reader.wire(frames), items));
}

fn is_final(item: &WsItem) -> bool {
    matches!(item, WsItem::Close(_) | WsItem::Fail { .. } | WsItem::End)
}

/// Returns a frame with the shortest length. Independent of the codec.
fn frame(first: u8, key: Option<[u8; 4]>, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from([first]);
    let masked = if key.is_some() { 0x80 } else { 0 };
    if payload.len() < 126 {
        bytes.push(masked | payload.len() as u8);
    } else if payload.len() < 65536 {
        bytes.extend([masked | 126, (payload.len() >> 8) as u8, payload.len() as u8]);
    } else {
        bytes.push(masked | 127);
        bytes.extend((payload.len() as u64).to_be_bytes());
    }
    bytes.extend(key.iter().flatten());
    bytes.extend(payload.iter().enumerate().map(|(at, byte)| byte ^ key.map_or(0, |key| key[at % 4])));
    bytes
}

fn text(text: &str) -> WsItem {
    WsItem::Text(Bytes::copy_from_slice(text.as_bytes()))
}

fn close(code: impl Into<Option<u16>>, reason: &str) -> WsItem {
    WsItem::Close(CloseFrame { code: code.into(), reason: reason.to_string() })
}

fn fail(code: CloseCode, why: &'static str) -> WsItem {
    WsItem::Fail { code, why }
}

fn protocol(why: &'static str) -> WsItem {
    fail(CloseCode::Protocol, why)
}

const NOT_UTF8: &str = "text that is not UTF-8";
const TOO_LARGE: &str = "a message over the limit";

fn drain(out: &mut ShortQueue<Bytes>) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(bytes) = out.pop_front() {
        assert!(!bytes.is_empty());
        all.extend_from_slice(&bytes);
    }
    all
}
