//! Frames to bytes (RFC 6455 section 5.2), and the masks of a client.

use super::super::conn::write;
use super::{CloseCode, WsSide};
use crate::seed::Seed;
use crate::short_queue::ShortQueue;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;

/// The operation codes that this crate understands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Opcode {
    Continuation = 0x0,
    Text = 0x1,
    Close = 0x8,
    Ping = 0x9,
    Pong = 0xa,
}

impl Opcode {
    pub(super) fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }
}

/// The bit of the first byte of a frame that ends its message.
pub(super) const FIN: u8 = 0x80;

/// The bit of the second byte of a frame whose payload is masked.
pub(super) const MASKED: u8 = 0x80;

/// The short lengths that announce a length of two or eight bytes after them.
pub(super) const TWO_BYTES: u8 = 126;
pub(super) const EIGHT_BYTES: u8 = 127;

/// Maximum length of the payload of a control frame, in bytes.
pub(super) const MAX_CONTROL: usize = 125;

/// Maximum length of the header of a frame, in bytes: the first two, a length, and a key.
pub(super) const MAX_HEADER: usize = 14;

/// The mask keys of a client, a new one for each frame. They come from an HMAC, so that an
/// application that chooses payloads cannot choose the bytes on the wire (RFC 6455 section 10.3).
#[derive(Clone)]
pub(crate) struct Masks {
    seed: Seed,
    /// The latest draw, of eight keys.
    drawn: [[u8; 4]; 8],
    /// The keys of the draw that were used.
    used: usize,
}

impl Masks {
    /// Creates the keys of one connection. Two connections must not share a seed.
    pub(crate) const fn new(seed: Seed) -> Self {
        Self { seed, drawn: [[0; 4]; 8], used: 8 }
    }

    /// Returns a key that was not used before.
    pub(super) fn next(&mut self) -> [u8; 4] {
        if self.used == self.drawn.len() {
            let bytes = self.seed.next_bytes();
            let (keys, _) = bytes.as_chunks();
            self.drawn.copy_from_slice(keys);
            self.used = 0;
        }
        self.used += 1;
        self.drawn[self.used - 1]
    }
}

impl fmt::Debug for Masks {
    /// Never shows a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Masks").field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// Masks bytes, or removes their mask: both are the same operation. The first byte is the one that
/// the first byte of the key masks.
pub(super) fn mask(bytes: &mut [u8], key: [u8; 4]) {
    let [a, b, c, d] = key;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (words, rest) = bytes.as_chunks_mut();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(key.iter().cycle()) {
        *byte ^= key;
    }
}

/// Returns the header of an unfragmented frame, with the shortest form of the length. The vector
/// has room for `room` bytes more.
fn header(opcode: Opcode, len: usize, masked: u8, room: usize) -> Vec<u8> {
    let mut header = Vec::with_capacity(MAX_HEADER + room);
    header.push(FIN | opcode as u8);
    match (u8::try_from(len), u16::try_from(len)) {
        (Ok(len), _) if len < TWO_BYTES => header.push(masked | len),
        (_, Ok(len)) => {
            header.push(masked | TWO_BYTES);
            header.extend_from_slice(&len.to_be_bytes());
        }
        _ => {
            header.push(masked | EIGHT_BYTES);
            header.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
    header
}

/// Writes one unfragmented frame. A server shares a large payload; a client copies every one, since
/// the mask changes it.
pub(super) fn frame(role: &mut WsSide, opcode: Opcode, payload: Bytes, out: &mut ShortQueue<Bytes>) {
    match role {
        WsSide::Server => write(out, header(opcode, payload.len(), 0, 0), payload, b""),
        WsSide::Client(masks) => {
            let key = masks.next();
            let mut frame = header(opcode, payload.len(), MASKED, payload.len());
            frame.extend_from_slice(&key);
            let start = frame.len();
            frame.extend_from_slice(&payload);
            mask(&mut frame[start..], key);
            out.push_back(frame.into());
        }
    }
}

/// Returns the payload of a `Close`. A reason that is too long ends at the last whole character
/// that fits.
pub(super) fn close_payload(code: CloseCode, reason: &str) -> Bytes {
    let mut len = reason.len().min(MAX_CONTROL - 2);
    while !reason.is_char_boundary(len) {
        len -= 1;
    }
    [&code.number().to_be_bytes(), &reason.as_bytes()[..len]].concat().into()
}
