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
pub(super) use server::ServerCodec;

use super::body::BodyDecoder;
use super::input::ByteQueue;
use crate::exchange::Inbound;
use alloc::string::String;
use core::mem;
use length::Length;

/// A body and its framing.
#[derive(Debug)]
struct Framed {
    length: Length,
    body: BodyDecoder,
    /// Content bytes that were read since the last [`take_content`](Self::take_content). Framing
    /// does not count.
    content: usize,
}

/// Why the rest of a body cannot be read.
#[derive(Debug)]
enum BodyError {
    /// The framing is invalid.
    Framing(&'static str),
    /// The connection ended too early.
    Cut,
    /// A limit is exceeded.
    Limit(String),
}

impl Framed {
    fn new(length: Length, body: BodyDecoder) -> Self {
        Self { length, body, content: 0 }
    }

    /// Returns the number of bytes that are held and not parsed.
    fn buffered(&self) -> usize {
        self.length.buffered() + self.body.buffered()
    }

    /// Returns the number of content bytes that were read since the last call.
    fn take_content(&mut self) -> usize {
        mem::take(&mut self.content)
    }

    /// Returns the next part of the body. `None` if more bytes are needed. With `eof` there are
    /// none.
    fn poll_item(&mut self, input: &mut ByteQueue, eof: bool) -> Result<Option<Inbound>, BodyError> {
        loop {
            if let Some(item) = self.body.poll_item() {
                return Ok(Some(item));
            }
            if let Some(why) = self.body.broken() {
                return Err(BodyError::Limit(why.clone()));
            }
            if let Some(text) = self.length.whole(input)
                && let Some(item) = self.body.whole(text)
            {
                let count = text.len();
                self.content += count;
                input.skip(count);
                self.length = Length::Known(0);
                return Ok(Some(item));
            }
            match self.length.next(input, eof).map_err(BodyError::Framing)? {
                length::Piece::Data(bytes) => {
                    self.content += bytes.len();
                    self.body.bytes(bytes);
                }
                length::Piece::More => return Ok(None),
                length::Piece::Cut => return self.body.cut().map(Some).ok_or(BodyError::Cut),
                length::Piece::End => self.body.end(),
            }
        }
    }
}
