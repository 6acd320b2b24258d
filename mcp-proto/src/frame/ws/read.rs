//! Bytes to messages and control frames (RFC 6455 sections 5 and 8.1).
//!
//! A fault is found as early as possible: that of a header before its payload, a length over the
//! limit before the payload is held, and invalid UTF-8 at its first byte, although the fragment is
//! not complete. A control frame between two fragments does not touch the message.

use super::super::input::ByteQueue;
use super::super::work::{MAX_IDLE, Work};
use super::write::{self, EIGHT_BYTES, FIN, MASKED, MAX_CONTROL, MAX_HEADER, Opcode, TWO_BYTES};
use super::{CloseCode, CloseFrame, WsItem};
use alloc::string::ToString;
use alloc::vec::Vec;
use bytes::Bytes;
use core::mem;

/// Reads the WebSocket frames of one side (RFC 6455 section 5), which follow its handshake, and
/// answers nothing: for logs and other observers. [`Conn`](crate::frame::Conn) is the codec of a
/// connection.
#[derive(Debug)]
pub struct FrameReader {
    /// Whether the peer masks its frames: whether it is a client.
    masked: bool,
    /// Maximum length of a message, in bytes.
    max: usize,
    input: ByteQueue,
    /// The header that is incomplete.
    header: Header,
    /// The frame whose payload is incomplete.
    frame: Option<Frame>,
    /// The message so far, over all its fragments.
    text: Vec<u8>,
    /// Bytes of the message that are whole characters. At most three follow: the start of another.
    valid: usize,
    /// The message has begun and another fragment follows.
    unfinished: bool,
    /// The payload of a control frame so far.
    control: Vec<u8>,
    /// Bytes since the last message, except those of its own payload: headers and control frames.
    idle: usize,
    eof: bool,
    ended: bool,
    /// Number of scanned or moved bytes. Lets a test check that the cost is linear.
    #[cfg(test)]
    pub(super) scanned: usize,
}

/// The header of a frame so far.
#[derive(Debug, Default)]
struct Header {
    bytes: [u8; MAX_HEADER],
    len: usize,
}

/// A frame whose header is complete.
#[derive(Clone, Copy, Debug)]
struct Frame {
    opcode: Opcode,
    /// It ends its message.
    fin: bool,
    /// Bytes of the payload that were not read.
    rest: usize,
    /// The key of the next bytes, if they are masked.
    key: Option<[u8; 4]>,
}

/// Why the connection fails.
#[derive(Debug)]
struct Failure {
    code: CloseCode,
    why: &'static str,
}

/// Size of the smallest buffer of a message, in bytes, so that single bytes do not grow it again
/// and again.
const SMALLEST: usize = 64;

const NOT_UTF8: Failure = Failure { code: CloseCode::InvalidText, why: "text that is not UTF-8" };

impl FrameReader {
    /// Creates the reader. `masked` is whether the side masks its frames, as a client does. `max`
    /// is the maximum length of a message in bytes.
    pub fn new(masked: bool, max: usize) -> Self {
        Self {
            masked,
            max,
            input: ByteQueue::default(),
            header: Header::default(),
            frame: None,
            text: Vec::new(),
            valid: 0,
            unfinished: false,
            control: Vec::new(),
            idle: 0,
            eof: false,
            ended: false,
            #[cfg(test)]
            scanned: 0,
        }
    }

    /// Adds bytes. Ignored after the final item.
    pub fn bytes(&mut self, bytes: Bytes) {
        if !self.eof && !self.ended {
            self.input.push(bytes);
        }
    }

    /// Reports that no more bytes follow. [`WsItem::End`] follows after all items before it, unless
    /// the side had closed the connection.
    pub fn eof(&mut self) {
        self.eof = true;
    }

    #[cfg(test)]
    pub(super) fn is_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn buffered(&self) -> usize {
        self.input.held() + self.text.capacity() + self.control.capacity()
    }

    pub(super) fn at_boundary(&self) -> bool {
        self.input.is_empty() && self.header.len == 0 && self.frame.is_none() && !self.unfinished
    }

    /// Returns the next item, however much work it is. `None` until more bytes are added, and after
    /// the final item.
    pub fn poll(&mut self) -> Option<WsItem> {
        self.poll_within(&mut Work::unlimited())
    }

    pub(super) fn poll_within(&mut self, work: &mut Work) -> Option<WsItem> {
        if self.ended {
            return None;
        }
        let item = match self.read_item(work) {
            Ok(Some(item)) => item,
            Ok(None) if self.eof && !work.is_stopped() => WsItem::End,
            Ok(None) => return None,
            Err(Failure { code, why }) => WsItem::Fail { code, why },
        };
        if let WsItem::Close(_) | WsItem::Fail { .. } | WsItem::End = item {
            self.end();
        }
        Some(item)
    }

    /// Nothing that follows counts, and nothing is held for it.
    pub(super) fn end(&mut self) {
        *self = Self { eof: self.eof, ended: true, ..Self::new(self.masked, self.max) };
    }

    /// Returns the next item. `None` if more bytes are needed, or if the work is done.
    fn read_item(&mut self, work: &mut Work) -> Result<Option<WsItem>, Failure> {
        loop {
            if !self.input.is_empty() && work.stops() {
                return Ok(None);
            }
            let frame = match self.frame {
                Some(frame) => frame,
                None => match self.read_header()? {
                    Some(frame) => frame,
                    None => return Ok(None),
                },
            };
            let rest = frame.rest;
            if let Some(text) = self.read_whole(&frame)? {
                self.frame = None;
                self.unfinished = false;
                self.idle = 0;
                work.spend(rest + Work::UNIT);
                return Ok(Some(WsItem::Text(text)));
            }
            self.frame = self.read_payload(frame)?;
            work.spend(rest - self.frame.map_or(0, |frame| frame.rest) + Work::UNIT);
            if self.frame.is_some() {
                return Ok(None);
            }
            if let Some(item) = self.end_frame(frame)? {
                return Ok(Some(item));
            }
        }
    }

    fn read_header(&mut self) -> Result<Option<Frame>, Failure> {
        while let Some(front) = self.input.front() {
            let count = self.header.extend(front);
            self.input.skip(count);
            self.look(count);
            if self.header.len == 2 {
                self.check_start()?;
            }
            if self.header.len == self.header.wanted() {
                return self.end_header().map(Some);
            }
        }
        Ok(None)
    }

    /// Checks the first two bytes of a header.
    fn check_start(&self) -> Result<(), Failure> {
        let [first, second, ..] = self.header.bytes;
        if first & 0x70 != 0 {
            return Err(protocol("a reserved bit is set"));
        }
        match Opcode::parse(first) {
            None if first & 0xf != BINARY => return Err(protocol("a reserved opcode")),
            Some(opcode) if opcode.is_control() => {
                if first & FIN == 0 {
                    return Err(protocol("a fragmented control frame"));
                }
                if usize::from(second & !MASKED) > MAX_CONTROL {
                    return Err(protocol("a control frame of more than 125 bytes"));
                }
            }
            Some(Opcode::Continuation) if !self.unfinished => {
                return Err(protocol("a continuation without a message"));
            }
            Some(Opcode::Continuation) => {}
            _ if self.unfinished => return Err(protocol("a message inside another one")),
            Some(_) => {}
            None => return Err(Failure { code: CloseCode::Unsupported, why: "a binary message" }),
        }
        match (self.masked, second & MASKED != 0) {
            (true, false) => Err(protocol("a client that does not mask")),
            (false, true) => Err(protocol("a server that masks")),
            _ => Ok(()),
        }
    }

    /// Checks the length of the frame that begins, and that of its message.
    fn end_header(&mut self) -> Result<Frame, Failure> {
        let header = mem::take(&mut self.header);
        let (first, length) = (header.bytes[0], header.length()?);
        // `check_start` has refused all others.
        let opcode = Opcode::parse(first).unwrap_or(Opcode::Continuation);
        self.idle += header.len + if opcode.is_control() { usize::from(header.bytes[1] & !MASKED) } else { 0 };
        if self.idle > MAX_IDLE {
            return Err(Failure { code: CloseCode::Policy, why: "16 MiB of frames without a message" });
        }
        let most = if opcode.is_control() { MAX_CONTROL } else { self.max.saturating_sub(self.text.len()) };
        match usize::try_from(length) {
            Ok(rest) if rest <= most => Ok(Frame { opcode, fin: first & FIN != 0, rest, key: header.key() }),
            _ => Err(Failure { code: CloseCode::TooBig, why: "a message over the limit" }),
        }
    }

    /// Returns a message that is the whole payload of this frame, if it is not masked and the next
    /// bytes contain it: the common case at a client, which saves a copy.
    fn read_whole(&mut self, frame: &Frame) -> Result<Option<Bytes>, Failure> {
        let is_whole = frame.fin && frame.key.is_none() && !frame.opcode.is_control() && self.text.is_empty();
        let Some(text) = self.input.front().filter(|_| is_whole).and_then(|front| front.get(..frame.rest)) else {
            return Ok(None);
        };
        core::str::from_utf8(text).map_err(|_| NOT_UTF8)?;
        self.look(frame.rest);
        Ok(Some(self.input.take(frame.rest)))
    }

    /// Moves the payload to its buffer. Returns the frame if more follows.
    fn read_payload(&mut self, mut frame: Frame) -> Result<Option<Frame>, Failure> {
        while let Some(front) = self.input.front().filter(|_| frame.rest > 0) {
            let part = &front[..frame.rest.min(front.len())];
            let (count, max) = (part.len(), self.max);
            let moved = if frame.opcode.is_control() {
                frame.append(part, &mut self.control, MAX_CONTROL)
            } else {
                frame.append(part, &mut self.text, max)
            };
            self.input.skip(count);
            self.look(moved);
            if !frame.opcode.is_control() {
                self.check_text()?;
            }
        }
        Ok(Some(frame).filter(|frame| frame.rest > 0))
    }

    /// Checks the bytes of the message that were not known to be valid.
    fn check_text(&mut self) -> Result<(), Failure> {
        let unknown = &self.text[self.valid..];
        let scanned = unknown.len();
        self.valid += match core::str::from_utf8(unknown) {
            Ok(text) => text.len(),
            Err(e) if e.error_len().is_none() => e.valid_up_to(),
            Err(_) => return Err(NOT_UTF8),
        };
        self.look(scanned);
        Ok(())
    }

    /// Returns the item that a frame completes.
    fn end_frame(&mut self, frame: Frame) -> Result<Option<WsItem>, Failure> {
        Ok(Some(match frame.opcode {
            Opcode::Ping => WsItem::Ping(mem::take(&mut self.control).into()),
            Opcode::Pong => WsItem::Pong(mem::take(&mut self.control).into()),
            Opcode::Close => WsItem::Close(close_frame(&self.control)?),
            Opcode::Text | Opcode::Continuation => {
                self.unfinished = !frame.fin;
                if self.unfinished {
                    return Ok(None);
                }
                if mem::take(&mut self.valid) < self.text.len() {
                    return Err(NOT_UTF8);
                }
                self.idle = 0;
                WsItem::Text(mem::take(&mut self.text).into())
            }
        }))
    }

    fn look(&mut self, _count: usize) {
        #[cfg(test)]
        {
            self.scanned += _count;
        }
    }
}

impl Header {
    /// Copies the bytes that the header lacks, as far as their number is known. Returns how many.
    fn extend(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.wanted() - self.len);
        self.bytes[self.len..self.len + count].copy_from_slice(&bytes[..count]);
        self.len += count;
        count
    }

    /// Returns the length of the header, as far as it is known.
    fn wanted(&self) -> usize {
        if self.len < 2 {
            return 2;
        }
        let length = match self.bytes[1] & !MASKED {
            TWO_BYTES => 2,
            EIGHT_BYTES => 8,
            _ => 0,
        };
        2 + length + if self.bytes[1] & MASKED == 0 { 0 } else { 4 }
    }

    /// Returns the length of the payload, whose form must be the shortest.
    fn length(&self) -> Result<u64, Failure> {
        let [_, second, length @ .., _, _, _, _] = self.bytes;
        match second & !MASKED {
            TWO_BYTES => match u16::from_be_bytes([length[0], length[1]]) {
                len if len < u16::from(TWO_BYTES) => Err(protocol("a length in a form that is too long")),
                len => Ok(len.into()),
            },
            EIGHT_BYTES => match u64::from_be_bytes(length) {
                len if len <= u16::MAX.into() => Err(protocol("a length in a form that is too long")),
                len if len >> 63 != 0 => Err(protocol("a length of more than 63 bits")),
                len => Ok(len),
            },
            short => Ok(short.into()),
        }
    }

    /// Returns the key at the end of the header.
    fn key(&self) -> Option<[u8; 4]> {
        self.bytes[..self.len].last_chunk().copied().filter(|_| self.bytes[1] & MASKED != 0)
    }
}

impl Frame {
    /// Moves the next part of the payload to a buffer of at most `max` bytes, without its mask. The
    /// buffer grows with the bytes that are there, not with those that the frame announces. Returns
    /// the number of bytes that were moved.
    fn append(&mut self, part: &[u8], buffer: &mut Vec<u8>, max: usize) -> usize {
        let (start, needed) = (buffer.len(), buffer.len() + part.len());
        let mut moved = part.len();
        if needed > buffer.capacity() {
            // Doubles, but never exceeds what can follow.
            let most = if self.fin { start + self.rest } else { max };
            let target = (2 * buffer.capacity()).max(SMALLEST).min(most).max(needed);
            buffer.reserve_exact(target - start);
            moved += start;
        }
        buffer.extend_from_slice(part);
        if let Some(key) = &mut self.key {
            write::mask(&mut buffer[start..], *key);
            key.rotate_left(part.len() % 4);
        }
        self.rest -= part.len();
        moved
    }
}

impl Opcode {
    /// Returns the opcode in the first byte of a frame. `None` for a binary and a reserved one.
    fn parse(first: u8) -> Option<Self> {
        let known = [Self::Continuation, Self::Text, Self::Close, Self::Ping, Self::Pong];
        known.into_iter().find(|opcode| *opcode as u8 == first & 0xf)
    }
}

/// The opcode of a binary message.
const BINARY: u8 = 0x2;

/// Parses the payload of a `Close` (RFC 6455 section 7.4).
fn close_frame(payload: &[u8]) -> Result<CloseFrame, Failure> {
    let (code, reason) = match payload {
        [] => (None, &[][..]),
        [_] => return Err(protocol("half of a close code")),
        [high, low, reason @ ..] => (Some(u16::from_be_bytes([*high, *low])), reason),
    };
    if !matches!(code, None | Some(1000..=1003 | 1007..=1014 | 3000..=4999)) {
        return Err(protocol("a close code that must not be sent"));
    }
    let reason = core::str::from_utf8(reason).map_err(|_| NOT_UTF8)?.to_string();
    Ok(CloseFrame { code, reason })
}

fn protocol(why: &'static str) -> Failure {
    Failure { code: CloseCode::Protocol, why }
}
