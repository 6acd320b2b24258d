//! Takes the secrets out of what goes over a channel, so that it may be logged, kept and shown. Bytes in, as many bytes out.
//!
//! What is masked:
//!
//! * Header fields: the values of all but those of a short list of standard fields that hold no credential, such as `Content-Type`,
//!   `Host`, `Date` and `Retry-After`. In a request the list has only fields that a client writes itself, so that every field that an
//!   application adds is masked, whatever its name.
//! * Members, query and form parameters: the values of those whose names have `password`, `passwd`, `secret` or `token` in them, or say
//!   otherwise that they are secret (`api_key`, `Authorization`, `Mcp-Session-Id`, …); the `requestState` of a server; and of a `url`,
//!   such as that of an elicitation, all but scheme and host.
//! * All that follows a byte at which the codec of HTTP/1.1 gives up: it is not known then what it is.
//!
//! What stays: ids, methods, cursors, progress tokens, and all sizes.
//!
//! Of text that is no header field this is a filter by names, not a proof: a secret that stands in a plain sentence is not found.
//! Nothing here knows a message, an engine or a channel; all of it is state of bounded size and one step a byte.

mod chunks;
mod first;
mod head;
mod lengths;
mod names;
mod prose;
mod show;
mod text;

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::vec::Vec;
use chunks::{Chunks, Part};
use core::fmt;
use head::{Head, Step};
use text::Text;

pub(crate) use show::Field;
pub use show::{Arguments, Url};

/// Redacts one direction of one channel, as its bytes go by.
///
/// For each byte that goes in, one comes out: a byte of a masked string is `x`, a digit of a masked number `1` or `0`. What is JSON stays
/// JSON, what is framed stays framed. Where the bytes are cut changes nothing, and redacting twice is redacting once. The state does not
/// grow, and each byte costs the same.
///
/// It sees by itself whether lines of JSON or HTTP/1.1 (either side) go by. It reads the lengths of HTTP messages by the rules of
/// [`frame`](crate::frame). After anything that those rules forbid (lengths that differ, a length beside a transfer coding, a line that
/// ends with a bare LF, …) it masks every byte but CR and LF.
///
/// ```
/// use mcp_proto::redact::Redactor;
/// let mut redactor = Redactor::new();
/// let mut out = redactor.redact(br#"{"id":1,"method":"tools/call","params":{"arguments":{"api_k"#);
/// out.extend(redactor.redact(br#"ey":"sk-123"}}}"#));
/// assert_eq!(out, br#"{"id":1,"method":"tools/call","params":{"arguments":{"api_key":"xxxxxx"}}}"#);
/// ```
#[derive(Clone)]
pub struct Redactor {
    protocol: Protocol,
    framing: Framing,
    text: Text,
}

/// What goes over a channel in one direction, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Unknown,
    Http(Side),
}

/// Who sends an HTTP message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// A client.
    Request,
    /// A server.
    Response,
}

/// One message, or any other JSON, redacted as [`Redactor`] does it. It may hold line breaks.
pub fn redact_message(message: &[u8]) -> Vec<u8> {
    Redactor { framing: Framing::Close, ..Redactor::new() }.redact(message)
}

/// Whether what is set under this name, as in `name=value`, is taken for a secret. Compared without case, `_` and `-`.
pub fn is_secret_name(name: &str) -> bool {
    names::is_secret(name)
}

/// Whether the value of a header field of this name may be secret: any but those that a client writes itself. The fields that an
/// application adds to its requests are all secret.
pub fn is_secret_field(name: &str) -> bool {
    !names::shows_field(name.as_bytes(), Side::Request)
}

#[derive(Clone)]
enum Framing {
    /// Before a line or a head.
    Start,
    /// After the CR of an empty line before a head (RFC 9112 section 2.2).
    EmptyLine,
    /// Lines of JSON, for good.
    Lines,
    Head(Box<Head>),
    /// So many bytes of a body.
    Body(u64),
    /// A body that only the end of the channel ends.
    Close,
    Chunked(Chunks),
    /// The codec has given up.
    Lost,
}

impl Redactor {
    /// A redactor at the start of a channel.
    pub fn new() -> Self {
        Self { protocol: Protocol::Unknown, framing: Framing::Start, text: Text::default() }
    }

    /// A redactor of lines of JSON, whatever they look like.
    pub(crate) fn of_lines() -> Self {
        Self { framing: Framing::Lines, ..Self::new() }
    }

    /// A redactor of HTTP/1.1 from one side.
    #[cfg(feature = "http")]
    pub(crate) fn of_http(side: Side) -> Self {
        Self { protocol: Protocol::Http(side), ..Self::new() }
    }

    /// The next bytes, redacted; exactly as many.
    pub fn redact(&mut self, chunk: &[u8]) -> Vec<u8> {
        chunk.iter().map(|byte| self.step(*byte)).collect()
    }

    fn step(&mut self, byte: u8) -> u8 {
        if let Framing::Start = self.framing {
            self.text = Text::default();
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
                    self.text = Text::default();
                    return byte;
                }
                self.text.step(byte)
            }
            Framing::Head(head) => match head.step(byte) {
                Step::Show => byte,
                Step::Mask => MASK,
                Step::Broken => self.lose(byte),
                Step::Then(next) => {
                    self.text = if head.has_events() { Text::events() } else { Text::default() };
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
                Part::Framing => byte,
                Part::Data => self.text.step(byte),
                Part::Last => {
                    self.framing = Framing::Head(Box::new(Head::trailer()));
                    byte
                }
                Part::Broken => self.lose(byte),
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

    /// Masks all that follows. A control character stays, so that the codec refuses the redacted bytes at the same place.
    fn lose(&mut self, byte: u8) -> u8 {
        self.framing = Framing::Lost;
        if byte.is_ascii_control() { byte } else { MASK }
    }
}

/// Replaces a byte that is not shown.
const MASK: u8 = b'x';

impl Default for Redactor {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Redactor {
    /// Its state holds the last bytes that went by, and is not shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}
