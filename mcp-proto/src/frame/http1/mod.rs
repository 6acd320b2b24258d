//! HTTP/1.1 (RFC 9112) for sequential exchanges. It is strict wherever two readers could disagree
//! about the end of a message: only CRLF ends a line, `Content-Length` and `Transfer-Encoding`
//! exclude each other, and `chunked` is the only coding.

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
use super::coding::Decoder;
use super::input::ByteQueue;
use super::work::Work;
use crate::exchange::Inbound;
use alloc::boxed::Box;
use alloc::string::String;
use bytes::Bytes;
use core::mem;
use length::{Length, Piece};

/// A body, its framing and its content coding.
#[derive(Debug)]
struct Framed {
    length: Length,
    /// The content coding, until its end. Boxed: most bodies have none.
    decoder: Option<Box<Decoder>>,
    body: BodyDecoder,
    /// Content bytes that were read, after decoding, since the last
    /// [`take_content`](Self::take_content). Framing does not count.
    content: usize,
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

impl Framed {
    fn new(length: Length, decoder: Option<Decoder>, body: BodyDecoder) -> Self {
        Self { length, decoder: decoder.map(Box::new), body, content: 0 }
    }

    /// Returns the number of bytes that are held and not parsed.
    fn buffered(&self) -> usize {
        self.length.buffered() + self.decoder.as_ref().map_or(0, |decoder| decoder.buffered()) + self.body.buffered()
    }

    /// Returns the number of content bytes that were read since the last call.
    fn take_content(&mut self) -> usize {
        mem::take(&mut self.content)
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
