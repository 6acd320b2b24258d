//! HTTP/1.1 (RFC 9112) for sequential exchanges. It is strict wherever two readers could disagree
//! about the end of a message: only CRLF ends a line, `Content-Length` and `Transfer-Encoding`
//! exclude each other, and `chunked` is the only coding.
//!
//! Both codecs read one message after another with a [`MessageReader`]. Its [`ReadState`] on a
//! client, which reads responses:
//!
//! ```text
//!            encode(Outbound::Request)          Inbound::Response (RFC 9112 section 4)
//!   Idle ─────────────────────────────▶ Head ──────────────────────────────────────▶ Body
//!    ▲                                  │  ▲ │                                        │
//!    │ 101, if asked for                │  └─┘ other 1xx (RFC 9110 section 15.2)      │
//!    ├──────────────────────────────────┘                                             │
//!    └─────────────────── Inbound::End (RFC 9112 section 6.3) ────────────────────────┘
//! ```
//!
//! On a server, which reads requests, with the [`BodyGate`] of a body in parentheses:
//!
//! ```text
//!           Inbound::Request (RFC 9112 section 3)         Outbound::Continue, `100 Continue`
//!   Head ──┬─ set_holding(true) ──────────▶ Body (Held) ──────────────────────┐
//!    ▲     ├─ `Expect: 100-continue` ─────▶ Body (Expected) ── next poll ─────┤
//!    │     └─ otherwise ──────────────────────────────────────────────────────┤
//!    │                   Inbound::End (RFC 9112 section 6.3)                  ▼
//!    └────────────────────────────────────────────────────────────────── Body (Open)
//!
//!   Head, Body ── Inbound::Reject ──▶ Rejected
//!   Body (Held), all of it received ── Outbound::Response ──▶ Head
//! ```
//!
//! On both, any state is followed by `Broken` if the connection ends within a message (RFC 9112
//! section 8), and on a client also if a response is invalid. What a server writes meanwhile is its
//! [`ResponseState`](server::ResponseState):
//!
//! ```text
//!          encode(Outbound::Response) with Body::Stream
//!   Idle ──┬─ HTTP/1.1 ──────────────────────────────────▶ Chunked (RFC 9112 section 7.1) ──┐
//!    ▲     ├─ HTTP/1.0 ──────────────────────────────────▶ Close (RFC 9112 section 6.3) ────┤
//!    │     └─ `HEAD`, 204, 304, illegal head ────────────▶ Silent (RFC 9112 section 6.3) ───┤
//!    └───────────────────────────── encode(Outbound::End) ──────────────────────────────────┘
//! ```
//!
//! A response with all of its body leaves it `Idle`. Whether the connection persists (RFC 9112
//! section 9.3) is a [`Persistence`](client::Persistence) on a client, and on a server what the
//! latest request and its response say.

mod client;
mod connect;
mod head;
mod length;
mod server;

pub(super) use client::ClientCodec;
pub(crate) use connect::ConnectCodec;
pub(crate) use head::false_coding;
pub(super) use server::ServerCodec;

use super::body::BodyDecoder;
use super::coding::{Decoder, GzipSupport};
use super::input::ByteQueue;
use super::work::Work;
use crate::exchange::Inbound;
use crate::limits::FrameLimits;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use bytes::Bytes;
use core::mem;
use head::Gather;
use length::{Length, Piece};

/// The incoming half of a connection.
#[derive(Debug)]
pub(in crate::frame) struct MessageReader {
    limits: Arc<FrameLimits>,
    /// Content codings, if they are used.
    coding: Option<GzipSupport>,
    input: ByteQueue,
    eof: bool,
    state: ReadState,
}

/// What the next byte belongs to.
#[derive(Debug)]
enum ReadState {
    /// No message: a client has no request in flight.
    Idle,
    Head(Gather),
    Body(FramedBody),
    /// No message: a server has rejected a request, and can trust no byte that follows.
    Rejected,
    /// No message: the framing is broken, for this reason.
    Broken(String),
}

impl MessageReader {
    fn new(limits: Arc<FrameLimits>, state: ReadState) -> Self {
        Self { limits, coding: GzipSupport::get(), input: ByteQueue::default(), eof: false, state }
    }

    /// Sets whether bodies may have a content coding.
    pub(in crate::frame) fn set_coding(&mut self, on: bool) {
        self.coding = GzipSupport::get().filter(|_| on);
    }

    pub(in crate::frame) fn bytes(&mut self, bytes: Bytes) {
        if self.may_read() {
            self.input.push(bytes);
        }
    }

    pub(in crate::frame) fn eof(&mut self) {
        self.eof = true;
    }

    /// Returns whether the peer sends nothing more, as far as was reported.
    pub(in crate::frame) fn is_eof(&self) -> bool {
        self.eof
    }

    pub(in crate::frame) fn broken(&self) -> Option<&String> {
        match &self.state {
            ReadState::Broken(why) => Some(why),
            _ => None,
        }
    }

    pub(in crate::frame) fn buffered(&self) -> usize {
        self.input.held()
            + match &self.state {
                ReadState::Head(gather) => gather.buffered(),
                ReadState::Body(framed) => framed.buffered(),
                ReadState::Idle | ReadState::Rejected | ReadState::Broken(_) => 0,
            }
    }

    /// Returns the number of content bytes of the current body that were read since the last call.
    pub(in crate::frame) fn take_content(&mut self) -> usize {
        match &mut self.state {
            ReadState::Body(framed) => mem::take(&mut framed.content),
            _ => 0,
        }
    }

    /// Returns the bytes after the message that switched protocols.
    pub(in crate::frame) fn take_rest(&mut self) -> impl Iterator<Item = Bytes> + use<> {
        mem::take(&mut self.input).into_rest()
    }

    /// Returns whether bytes that arrive now may be read.
    fn may_read(&self) -> bool {
        !self.eof && !matches!(self.state, ReadState::Rejected | ReadState::Broken(_))
    }

    /// Drops what was received, and reads nothing more. The first reason why the framing is broken
    /// remains.
    fn stop(&mut self, state: ReadState) {
        self.input.clear();
        if self.broken().is_none() {
            self.state = state;
        }
    }
}

/// A body, its framing and its content coding.
#[derive(Debug)]
struct FramedBody {
    gate: BodyGate,
    length: Length,
    /// The content coding, until its end. Boxed: most bodies have none.
    decoder: Option<Box<Decoder>>,
    body: BodyDecoder,
    /// Content bytes that were read, after decoding, since the last
    /// [`take_content`](MessageReader::take_content). Framing does not count.
    content: usize,
}

/// Whether a body may be read. That of a response always may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BodyGate {
    /// Only after `Continue`. `expects`: the client waits for `100 Continue` (RFC 9110 section
    /// 10.1.1).
    Held {
        expects: bool,
    },
    /// It may, but the client still waits for `100 Continue`.
    Expected,
    Open,
}

/// Why the rest of a body cannot be read.
#[derive(Debug)]
enum BodyError {
    /// The framing or the content coding is invalid.
    Framing(&'static str),
    /// The connection ended too early.
    Cut,
    /// A limit is exceeded.
    Limit(String),
}

impl FramedBody {
    fn new(gate: BodyGate, length: Length, decoder: Option<Decoder>, body: BodyDecoder) -> Self {
        Self { gate, length, decoder: decoder.map(Box::new), body, content: 0 }
    }

    /// Returns the number of bytes that are held and not parsed.
    fn buffered(&self) -> usize {
        self.length.buffered() + self.decoder.as_ref().map_or(0, |decoder| decoder.buffered()) + self.body.buffered()
    }

    /// Returns the next part of the body. `None` if more bytes are needed, or if the work is done.
    /// With `eof` there are no more bytes.
    fn poll_item(&mut self, input: &mut ByteQueue, eof: bool, work: &mut Work) -> Result<Option<Inbound>, BodyError> {
        loop {
            if let Some(item) = self.body.poll_within(work) {
                return Ok(Some(item));
            }
            if let Some(why) = self.body.broken() {
                return Err(BodyError::Limit(why.clone()));
            }
            let has_more = !input.is_empty() || self.decoder.as_ref().is_some_and(|decoder| decoder.has_more());
            if work.is_stopped() || has_more && work.stops() {
                return Ok(None);
            }
            if let Some(decoder) = &mut self.decoder {
                // A piece at a time, so that the body stops at its limit.
                if let Some(bytes) = decoder.next().map_err(BodyError::Framing)? {
                    self.content(bytes, work);
                    continue;
                }
            }
            match self.length.next(input, eof, work).map_err(BodyError::Framing)? {
                Piece::Data(mut content) => {
                    let len = content.len();
                    if self.decoder.is_none() && self.body.reads(len, self.length.is_rest(len)) {
                        let item = self.body.read(&mut content, work);
                        let count = len - content.len();
                        input.skip(count);
                        self.length.advance(count);
                        self.content += count;
                        if item.is_some() {
                            return Ok(item);
                        }
                        continue;
                    }
                    let bytes = input.take(len);
                    self.length.advance(len);
                    match &mut self.decoder {
                        Some(decoder) => decoder.bytes(bytes),
                        None => self.content(bytes, work),
                    }
                }
                Piece::More => return Ok(None),
                Piece::Cut => return self.body.cut().map(Some).ok_or(BodyError::Cut),
                Piece::End => {
                    if self.decoder.as_ref().is_some_and(|decoder| !decoder.is_complete()) {
                        return self.body.cut().map(Some).ok_or(BodyError::Framing("the coded body is cut short"));
                    }
                    self.decoder = None;
                    self.body.end();
                }
            }
        }
    }

    /// Passes content to the body, which counts the work on the lines of an event stream itself.
    fn content(&mut self, bytes: Bytes, work: &mut Work) {
        self.content += bytes.len();
        if !self.body.is_event_stream() {
            work.spend(bytes.len());
        }
        self.body.bytes(bytes);
    }
}
