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
use crate::exchange::Item;
use alloc::string::String;
use length::Length;

/// A body with the framing around it.
#[derive(Debug)]
struct Framed {
    length: Length,
    body: Body,
}

/// Why a body cannot be read on.
#[derive(Debug)]
enum Fault {
    /// The framing makes no sense.
    Framing(&'static str),
    /// The connection ended too early.
    Cut,
    /// A limit is passed.
    Limit(String),
}

impl Framed {
    /// The next item of the body; `None` when more bytes are needed. With `eof` none will come.
    fn poll_item(&mut self, input: &mut Input, eof: bool) -> Result<Option<Item>, Fault> {
        loop {
            if let Some(item) = self.body.poll_item() {
                return Ok(Some(item));
            }
            if let Some(why) = self.body.broken() {
                return Err(Fault::Limit(why.clone()));
            }
            match self.length.next(input, eof).map_err(Fault::Framing)? {
                length::Piece::Data(bytes) => self.body.bytes(bytes),
                length::Piece::More => return Ok(None),
                length::Piece::Cut => return self.body.cut().map(Some).ok_or(Fault::Cut),
                length::Piece::End => self.body.end(),
            }
        }
    }
}
