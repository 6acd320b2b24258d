//! Takes the secrets out of what goes over a channel, so that it may be logged, kept and shown. Bytes in, as many bytes out.
//!
//! What is masked: the values of members, header fields, query and form parameters whose names say that they are secret (`token`,
//! `api_key`, `password`, `Authorization`, `Cookie`, `Mcp-Session-Id`, `Mcp-Param-*`, …), the `requestState` of a server, and of a `url`,
//! such as that of an elicitation, all but scheme and host. What stays: ids, methods, cursors, progress tokens, and all sizes.
//!
//! This is a filter by names, not a proof: a secret that stands in a plain sentence is not found.
//! Nothing here knows a message, an engine or a channel; all of it is state of bounded size and one step a byte.

mod head;
mod names;
mod prose;
mod show;
mod text;

#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::fmt;
use head::Head;
use text::Text;

pub use show::{Arguments, Url};

/// Redacts one direction of one channel, as its bytes go by.
///
/// For each byte that goes in, one comes out: a byte of a masked string is `x`, a digit of a masked number `1` or `0`. What is JSON stays
/// JSON, what is framed stays framed. Where the bytes are cut changes nothing, and redacting twice is redacting once. The state does not
/// grow, and each byte costs the same.
///
/// It sees by itself whether lines of JSON or HTTP/1.1 (either side) go by.
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
    framing: Framing,
    text: Text,
}

/// One message, or any other JSON, redacted as [`Redactor`] does it. It may hold line breaks.
pub fn redact_message(message: &[u8]) -> Vec<u8> {
    Redactor { framing: Framing::Close, text: Text::default() }.redact(message)
}

/// Whether what is set under this name, as in `name=value`, is taken for a secret. Compared without case, `_` and `-`.
pub fn is_secret_name(name: &str) -> bool {
    names::is_secret(name)
}

/// Whether the value of a header field of this name is taken for a secret; as [`is_secret_name`], and `Mcp-Param-*`.
pub fn is_secret_field(name: &str) -> bool {
    names::is_secret_field(name)
}

#[derive(Clone)]
enum Framing {
    /// Before a line or a head.
    Start,
    /// Lines of JSON, for good.
    Lines,
    Head(Head),
    /// So many bytes of a body.
    Body(u64),
    /// A body that only the end of the channel ends.
    Close,
    Chunked(Chunked),
}

#[derive(Clone, Copy)]
enum Chunked {
    Size(u64),
    Extension(u64),
    Data(u64),
    DataEnd,
}

impl Redactor {
    /// A redactor at the start of a channel.
    pub fn new() -> Self {
        Self { framing: Framing::Start, text: Text::default() }
    }

    /// The next bytes, redacted; exactly as many.
    pub fn redact(&mut self, chunk: &[u8]) -> Vec<u8> {
        chunk.iter().map(|byte| self.step(*byte)).collect()
    }

    fn step(&mut self, byte: u8) -> u8 {
        if let Framing::Start = self.framing {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => return byte,
                _ if byte.is_ascii_alphabetic() => self.framing = Framing::Head(Head::new()),
                _ => self.framing = Framing::Lines,
            }
            self.text = Text::default();
        }
        match &mut self.framing {
            Framing::Start | Framing::Close => self.text.step(byte),
            Framing::Lines => {
                if byte == b'\n' {
                    self.text = Text::default();
                    return byte;
                }
                self.text.step(byte)
            }
            Framing::Head(head) => {
                let (shown, next) = head.step(byte);
                if let Some(next) = next {
                    self.text = if head.has_events() { Text::events() } else { Text::default() };
                    self.framing = next;
                }
                shown
            }
            Framing::Body(left) => {
                *left -= 1;
                if *left == 0 {
                    self.framing = Framing::Start;
                }
                self.text.step(byte)
            }
            Framing::Chunked(chunked) => {
                let in_data = matches!(chunked, Chunked::Data(_));
                match chunked.step(byte) {
                    Some(next) => *chunked = next,
                    None => self.framing = Framing::Head(Head::trailer()),
                }
                if in_data { self.text.step(byte) } else { byte }
            }
        }
    }
}

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

impl Chunked {
    /// `None` after the last chunk.
    fn step(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Size(0) | Self::Extension(0), b'\n') => return None,
            (Self::Size(size) | Self::Extension(size), b'\n') => Self::Data(size),
            (Self::Size(size), _) => match char::from(byte).to_digit(16) {
                Some(digit) => Self::Size(size.saturating_mul(16).saturating_add(digit.into())),
                None => Self::Extension(size),
            },
            (Self::Extension(size), _) => Self::Extension(size),
            (Self::Data(1), _) => Self::DataEnd,
            (Self::Data(left), _) => Self::Data(left - 1),
            (Self::DataEnd, b'\n') => Self::Size(0),
            (Self::DataEnd, _) => Self::DataEnd,
        })
    }
}
