//! HTTP/1.1 (RFC 9112), as much as one exchange after another needs. Strict where two readers could disagree about where a message ends:
//! a line ends with CRLF and nothing else, `Content-Length` and `Transfer-Encoding` exclude each other, and only `chunked` is a coding.

mod client;
mod head;
mod length;
mod server;

pub(super) use client::Client;
pub(super) use server::Server;

use super::body::Body;
use super::input::Input;
use crate::exchange::Inbound;
use alloc::string::String;
use core::mem;
use length::Length;

/// A body with the framing around it.
#[derive(Debug)]
struct Framed {
    length: Length,
    body: Body,
    /// Bytes of content that were read and not yet taken by [`take_content`](Self::take_content): the framing around them is none.
    content: usize,
}

/// Why a body cannot be read on.
#[derive(Debug)]
enum BodyError {
    /// The framing makes no sense.
    Framing(&'static str),
    /// The connection ended too early.
    Cut,
    /// A limit is passed.
    Limit(String),
}

impl Framed {
    fn new(length: Length, body: Body) -> Self {
        Self { length, body, content: 0 }
    }

    /// Bytes held that are not yet items.
    fn buffered(&self) -> usize {
        self.length.buffered() + self.body.buffered()
    }

    /// Bytes of content that were read since this was last called.
    fn take_content(&mut self) -> usize {
        mem::take(&mut self.content)
    }

    /// The next item of the body; `None` when more bytes are needed. With `eof` none will come.
    fn poll_item(&mut self, input: &mut Input, eof: bool) -> Result<Option<Inbound>, BodyError> {
        loop {
            if let Some(item) = self.body.poll_item() {
                return Ok(Some(item));
            }
            if let Some(why) = self.body.broken() {
                return Err(BodyError::Limit(why.clone()));
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
