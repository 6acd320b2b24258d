//! Removes the secrets from the bytes of a connection, so that they can be logged, stored and
//! displayed. The output has the length of the input.
//!
//! Masked are:
//!
//! * header fields: all values, except for a short list of standard fields that hold no credential,
//!   such as `Content-Type`, `Host`, `Date` and `Retry-After`. For requests the list has only
//!   fields that a client writes itself, so that every field of the application is masked, whatever
//!   its name.
//! * members, query and form parameters: the values of those whose names contain `password`,
//!   `passwd`, `secret` or `token`, or have another known name (`api_key`, `Authorization`,
//!   `Mcp-Session-Id`, …), except those of OAuth that name no secret (`token_endpoint`,
//!   `token_type`, …); the `requestState` of a server; and of a `url`, such as that of an
//!   elicitation, everything except scheme and host. In JSON inside a string, everything after such
//!   a name is masked.
//! * everything after a byte at which the HTTP/1.1 codec fails, since its meaning is unknown.
//!
//! Ids, methods, cursors, progress tokens and all sizes are not masked.
//!
//! Outside of header fields this is a filter by names and not a guarantee: it does not find a
//! secret in a plain sentence. This module knows no message, engine or connection. Its state has a
//! bounded size, and it takes one step per byte.

mod chunks;
mod first;
mod head;
mod lengths;
mod names;
mod pairs;
mod show;
mod text;

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
#[cfg(any(test, feature = "record"))]
use alloc::string::String;
use alloc::vec::Vec;
use chunks::{ChunkFraming, ChunkPart};
use core::fmt;
use head::{Head, HeadStep};
use text::TextRedactor;

pub(crate) use show::HeaderField;
pub use show::{Arguments, Url};

/// Redacts one direction of one connection, byte by byte.
///
/// Each input byte gives one output byte: a byte of a masked string becomes `x`, or `~` if an HTML
/// form encodes it, and an escape becomes one of such a character, so that a masked secret is as
/// long in a form as the secret; a digit of a masked number becomes `1` or `0`. JSON stays JSON,
/// and framing stays intact. How the bytes are split changes nothing, and redacting twice equals
/// redacting once. The state does not grow, and each byte has the same cost.
///
/// It detects by itself whether the bytes are lines of JSON or HTTP/1.1 (of either side). It
/// determines the lengths of HTTP messages by the rules of [`frame`](crate::frame). After anything
/// that those rules forbid (lengths that differ, a length with a transfer coding, a line that ends
/// with a bare LF, …) it masks every byte except CR and LF.
///
/// ```
/// use mcp_proto::redact::Redactor;
/// let mut redactor = Redactor::new();
/// let mut out = redactor.redact(br#"{"id":1,"method":"m","params":{"api_k"#);
/// out.extend(redactor.redact(br#"ey":"sk-123"}}"#));
/// assert_eq!(out, br#"{"id":1,"method":"m","params":{"api_key":"xxxxxx"}}"#);
/// ```
#[derive(Clone)]
pub struct Redactor {
    protocol: Protocol,
    framing: Framing,
    text: TextRedactor,
}

/// The protocol of one direction of a connection, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Unknown,
    Http(Side),
}

/// The sender of an HTTP message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// A client.
    Request,
    /// A server.
    Response,
}

/// Redacts one message, or any other JSON, as [`Redactor`] does. It may contain line breaks.
pub fn redact_message(message: &[u8]) -> Vec<u8> {
    Redactor { framing: Framing::Close, ..Redactor::new() }.redact(message)
}

/// Returns whether a value under this name, as in `name=value`, counts as a secret. Ignores case,
/// `_` and `-`.
pub fn is_secret_name(name: &str) -> bool {
    names::is_secret(name)
}

/// Returns whether the value of a header field of this name may be secret. This applies to all
/// fields except those that a client writes itself, and so to every field that an application adds
/// to its requests.
pub fn is_secret_field(name: &str) -> bool {
    !names::shows_field(name.as_bytes(), Side::Request)
}

#[derive(Clone)]
enum Framing {
    /// Before a line or a head.
    Start,
    /// After the CR of an empty line before a head (RFC 9112 section 2.2).
    EmptyLine,
    /// Lines of JSON, permanently.
    Lines,
    Head(Box<Head>),
    /// In a body with this many remaining bytes.
    Body(u64),
    /// In a body that only the end of the connection ends.
    Close,
    Chunked(ChunkFraming),
    /// The codec has failed.
    Lost,
}

impl Redactor {
    /// Creates a redactor for a new connection.
    pub fn new() -> Self {
        Self { protocol: Protocol::Unknown, framing: Framing::Start, text: TextRedactor::default() }
    }

    /// Creates a redactor for lines of JSON, whatever they look like.
    #[cfg(any(test, feature = "record"))]
    pub(crate) fn of_lines() -> Self {
        Self { framing: Framing::Lines, ..Self::new() }
    }

    /// Creates a redactor for HTTP/1.1 of one side.
    #[cfg(any(test, feature = "record"))]
    pub(crate) fn of_http(side: Side) -> Self {
        Self { protocol: Protocol::Http(side), ..Self::new() }
    }

    /// Returns the next bytes, redacted. The number of bytes is the same.
    pub fn redact(&mut self, chunk: &[u8]) -> Vec<u8> {
        chunk.iter().map(|byte| self.step(*byte)).collect()
    }

    fn step(&mut self, byte: u8) -> u8 {
        if let Framing::Start = self.framing {
            self.text = TextRedactor::default();
            match self.protocol {
                Protocol::Unknown if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') => return byte,
                Protocol::Http(_) if byte == b'\r' => {
                    self.framing = Framing::EmptyLine;
                    return byte;
                }
                _ if head::is_token(byte) => self.framing = Framing::Head(Box::new(self.head())),
                Protocol::Unknown => self.framing = Framing::Lines,
                Protocol::Http(_) => return self.lose(byte),
            }
        }
        match &mut self.framing {
            Framing::Start | Framing::Close => self.text.step(byte),
            Framing::EmptyLine if byte == b'\n' => {
                self.framing = Framing::Start;
                byte
            }
            Framing::EmptyLine => self.lose(byte),
            Framing::Lines => {
                if byte == b'\n' {
                    self.text = TextRedactor::default();
                    return byte;
                }
                self.text.step(byte)
            }
            Framing::Head(head) => match head.step(byte) {
                HeadStep::Show => byte,
                HeadStep::Mask => MASK,
                HeadStep::Broken => self.lose(byte),
                HeadStep::Then(next) => {
                    self.text = if head.has_events() { TextRedactor::events() } else { TextRedactor::default() };
                    if let Some(side) = head.side() {
                        self.protocol = Protocol::Http(side);
                    }
                    self.framing = next;
                    byte
                }
            },
            Framing::Body(left) => {
                *left -= 1;
                if *left == 0 {
                    self.framing = Framing::Start;
                }
                self.text.step(byte)
            }
            Framing::Chunked(chunks) => match chunks.step(byte) {
                ChunkPart::Framing => byte,
                ChunkPart::Data => self.text.step(byte),
                ChunkPart::Last => {
                    self.framing = Framing::Head(Box::new(Head::trailer()));
                    byte
                }
                ChunkPart::Broken => self.lose(byte),
            },
            Framing::Lost if matches!(byte, b'\r' | b'\n') => byte,
            Framing::Lost => MASK,
        }
    }

    fn head(&self) -> Head {
        match self.protocol {
            Protocol::Unknown => Head::new(None, false),
            Protocol::Http(side) => Head::new(Some(side), true),
        }
    }

    /// Masks everything that follows. A control character stays, so that the codec rejects the
    /// redacted bytes at the same position.
    fn lose(&mut self, byte: u8) -> u8 {
        self.framing = Framing::Lost;
        if byte.is_ascii_control() { byte } else { MASK }
    }
}

/// Replaces a byte that is not shown.
const MASK: u8 = b'x';

/// Masks a secret that may be sent again, as the redactor does.
#[cfg(any(test, feature = "record"))]
pub(crate) fn masked_secret(secret: &str) -> String {
    secret.bytes().map(|byte| char::from(mask_of(byte))).collect()
}

/// Returns what replaces a byte of a secret that may be sent again in a form
/// (application/x-www-form-urlencoded): it is encoded if the byte is.
const fn mask_of(byte: u8) -> u8 {
    match byte {
        b'*' | b'-' | b'.' | b'_' | b' ' => MASK,
        _ if byte.is_ascii_alphanumeric() => MASK,
        _ => b'~',
    }
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Redactor {
    /// Does not show the state, which contains the latest bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}
