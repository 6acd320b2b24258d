//! WebSocket (RFC 6455), without extensions: one text message is one JSON-RPC message.
//!
//! [`handshake`] upgrades an HTTP/1.1 connection. [`WsCodec`] frames everything after it: text
//! messages in both directions, pings, and the closing handshake. It does not parse the messages.
//!
//! How the bytes are split never changes the items. A frame, a fragment or a read of one byte costs
//! a constant amount of work, and a fragment leaves nothing behind but its payload.

mod bare;
mod channel;
pub(crate) mod handshake;
mod opening;
mod read;
mod support;
#[cfg(test)]
mod tests;
mod write;

pub(super) use channel::WsChannel;
pub(super) use opening::WsHandshakeCodec;
pub use read::FrameReader;
pub(crate) use support::WsSupport;
pub(crate) use write::Masks;

use super::work::Work;
use crate::short_queue::ShortQueue;
use alloc::string::String;
use bytes::Bytes;
use write::{MAX_CONTROL, Opcode};

/// The side of a connection.
#[derive(Debug)]
pub(crate) enum WsSide {
    /// The client, which masks every frame (RFC 6455 section 5.3).
    Client(Masks),
    /// The server, which masks none.
    Server,
}

/// What the peer sent, in order. [`Close`](Self::Close), [`Fail`](Self::Fail) and
/// [`End`](Self::End) are final: no item follows, and all later bytes are dropped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WsItem {
    /// A whole text message, joined from its fragments. It is valid UTF-8.
    Text(Bytes),
    /// A ping, which the other side answers.
    Ping(Bytes),
    /// A pong, solicited or not.
    Pong(Bytes),
    /// The peer closes the connection. The other side answers it.
    Close(CloseFrame),
    /// The peer violated the protocol or a limit. The other side closes the connection with this
    /// code and reason, unless it has done so before.
    Fail {
        /// The code of the `Close`.
        code: CloseCode,
        /// The reason, for people.
        why: &'static str,
    },
    /// The connection ended without a `Close`, perhaps inside a message. Emitted only after
    /// [`FrameReader::eof`].
    End,
}

/// The `Close` of a peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CloseFrame {
    /// The code, if it has one: 1000 to 1003, 1007 to 1014, or 3000 to 4999.
    pub code: Option<u16>,
    /// The reason, for people. Often empty. The peer chose it.
    pub reason: String,
}

/// The codes that this crate sends (RFC 6455 section 7.4.1). Those that must not be sent, such as
/// 1005, 1006 and 1015, do not exist here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CloseCode {
    /// The connection has served its purpose.
    Normal = 1000,
    /// The program stops.
    GoingAway = 1001,
    /// The peer violated the protocol.
    Protocol = 1002,
    /// The peer sent a binary message.
    Unsupported = 1003,
    /// The peer sent text that is not UTF-8.
    InvalidText = 1007,
    /// The peer may not do what it asked for.
    Policy = 1008,
    /// The peer sent a message over the limit.
    TooBig = 1009,
    /// This side failed.
    Internal = 1011,
    /// The server has no room now. Like 503 of HTTP; registered by IANA (RFC 6455 section 11.7).
    TryLater = 1013,
}

impl CloseCode {
    /// Returns the number on the wire.
    pub const fn number(self) -> u16 {
        self as u16
    }
}

/// The codec of one connection after the handshake. Framed bytes go to a queue of the caller.
///
/// # Pings
///
/// The codec holds the payload of the latest ping until [`poll_pong`](Self::poll_pong) frames it; a
/// newer ping replaces it (RFC 6455 section 5.5.3). A pong is therefore never in the queue. A
/// connection takes it after the queue is empty, so that it cannot come between two pieces of a
/// frame, and only once everything that it took before is written. However many pings a peer sends
/// without reading, one pong is unwritten at most, and one waits.
///
/// # Closing
///
/// Each side sends one `Close`. The codec answers that of the peer with its code, and sends one of
/// its own when the peer violates the protocol. No frame follows a `Close` that was sent. Messages
/// of the peer are still read until its `Close` arrives.
#[derive(Debug)]
pub(crate) struct WsCodec {
    _support: WsSupport,
    role: WsSide,
    reader: FrameReader,
    /// The payload of the latest ping that was not answered.
    pong: Option<Bytes>,
    /// A `Close` was sent.
    closed: bool,
}

const CLOSED: &str = "a frame after the close of a websocket";

impl WsCodec {
    /// Creates the codec of a connection whose handshake is complete. `max_message` is the maximum
    /// length of a message of the peer in bytes, and so of each of its data frames.
    pub(crate) fn new(role: WsSide, max_message: usize, support: WsSupport) -> Self {
        let reader = FrameReader::new(matches!(role, WsSide::Server), max_message);
        Self { _support: support, role, reader, pong: None, closed: false }
    }

    /// Adds bytes that were read. It parses nothing; [`poll_within`](Self::poll_within) does. A
    /// large frame may keep `bytes` alive instead of being copied.
    pub(crate) fn bytes(&mut self, bytes: Bytes) {
        self.reader.bytes(bytes);
    }

    /// Reports that the peer sends nothing more. [`WsItem::End`] follows after all items before it,
    /// unless another one was final.
    pub(crate) fn eof(&mut self) {
        self.reader.eof();
    }

    /// Returns the next item, however much work it is.
    #[cfg(test)]
    pub(crate) fn poll(&mut self, out: &mut ShortQueue<Bytes>) -> Option<WsItem> {
        self.poll_within(out, &mut Work::unlimited())
    }

    /// Returns the next item, and does what the protocol requires: a ping makes a pong due, and a
    /// `Close` or a violation queues a `Close`. `None` also if the work is done before it.
    pub(crate) fn poll_within(&mut self, out: &mut ShortQueue<Bytes>, work: &mut Work) -> Option<WsItem> {
        let item = self.reader.poll_within(work)?;
        match &item {
            WsItem::Ping(payload) => self.pong(payload.clone()),
            WsItem::Close(CloseFrame { code, .. }) => {
                let payload = code.map_or(Bytes::new(), |code| Bytes::copy_from_slice(&code.to_be_bytes()));
                self.send_close(payload, out);
            }
            WsItem::Fail { code, why } => self.close(*code, why, out),
            WsItem::Text(_) | WsItem::Pong(_) | WsItem::End => {}
        }
        Some(item)
    }

    /// Queues a text message, which must be UTF-8. A server shares a large one without a copy. The
    /// error says why it is not sent.
    pub(crate) fn text(&mut self, message: Bytes, out: &mut ShortQueue<Bytes>) -> Result<(), &'static str> {
        self.send(Opcode::Text, message, out)
    }

    /// Queues a ping. The error says why it is not sent: its payload has more than 125 bytes, for
    /// example.
    pub(crate) fn ping(&mut self, payload: Bytes, out: &mut ShortQueue<Bytes>) -> Result<(), &'static str> {
        if payload.len() > MAX_CONTROL {
            return Err("a ping of more than 125 bytes");
        }
        self.send(Opcode::Ping, payload, out)
    }

    /// Makes a pong due, in place of an earlier one that was not taken. Nothing is due after a
    /// `Close` was sent.
    fn pong(&mut self, payload: Bytes) {
        if !self.closed {
            self.pong = Some(payload);
        }
    }

    /// Returns the frame of the pong that is due. Call it only when the queue is empty, and when
    /// everything that was taken before is written: see [`WsCodec`].
    pub(crate) fn poll_pong(&mut self) -> Option<Bytes> {
        let mut frame = ShortQueue::new();
        let payload = self.pong.take()?;
        write::frame(&mut self.role, Opcode::Pong, payload, &mut frame);
        frame.pop_front()
    }

    /// Queues a `Close`, unless one was sent. A reason of more than 123 bytes is truncated.
    pub(crate) fn close(&mut self, code: CloseCode, reason: &str, out: &mut ShortQueue<Bytes>) {
        self.send_close(write::close_payload(code, reason), out);
    }

    /// Queues a `Close` like [`close`](Self::close), reads nothing more, and drops what was read.
    pub(crate) fn give_up(&mut self, code: CloseCode, out: &mut ShortQueue<Bytes>) {
        self.reader.end();
        self.close(code, "", out);
    }

    fn send_close(&mut self, payload: Bytes, out: &mut ShortQueue<Bytes>) {
        // The last chance of a pong.
        out.extend(self.poll_pong());
        if self.send(Opcode::Close, payload, out).is_ok() {
            self.closed = true;
        }
    }

    fn send(&mut self, opcode: Opcode, payload: Bytes, out: &mut ShortQueue<Bytes>) -> Result<(), &'static str> {
        if self.closed {
            return Err(CLOSED);
        }
        write::frame(&mut self.role, opcode, payload, out);
        Ok(())
    }

    /// Returns whether a `Close` was sent.
    #[cfg(test)]
    pub(crate) fn is_close_sent(&self) -> bool {
        self.closed
    }

    /// Returns whether the peer can send nothing more that counts: a final item was polled.
    #[cfg(test)]
    pub(crate) fn is_ended(&self) -> bool {
        self.reader.is_ended()
    }

    /// Returns the number of bytes that were read and not parsed (the capacity held for them).
    pub(crate) fn buffered(&self) -> usize {
        self.reader.buffered() + self.pong.as_ref().map_or(0, Bytes::len)
    }

    /// Returns whether no message or frame of the peer is parsed in part. Bytes that were not
    /// polled count as parsed in part.
    pub(crate) fn at_boundary(&self) -> bool {
        self.reader.at_boundary()
    }
}
