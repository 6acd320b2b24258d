//! The heads of HTTP/1.1 messages (RFC 9112): which fields are secret, and how the body behind them is framed.

use super::names::Word;
use super::prose::Prose;
use super::{Chunked, Framing};

/// A head as it goes by.
#[derive(Clone)]
pub(super) struct Head {
    at: At,
    prose: Prose,
    word: Word,
    /// The first bytes of the first line.
    first: [u8; Head::FIRST],
    /// Its last bytes without line break.
    last: [u8; Head::LAST],
    len: usize,
    length: Option<u64>,
    chunked: bool,
    events: bool,
    trailer: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum At {
    FirstLine,
    LineStart,
    Name,
    Value(Field),
}

#[derive(Clone, Copy, PartialEq)]
enum Field {
    Other,
    /// Whether its first byte other than white space came.
    Secret(bool),
    Length,
    Coding,
    Type,
}

impl Head {
    /// `HTTP/1.1 200`.
    const FIRST: usize = 12;
    /// ` HTTP/1.1`.
    const LAST: usize = 9;

    pub(super) fn new() -> Self {
        Self {
            at: At::FirstLine,
            prose: Prose::default(),
            word: Word::default(),
            first: [0; Self::FIRST],
            last: [0; Self::LAST],
            len: 0,
            length: None,
            chunked: false,
            events: false,
            trailer: false,
        }
    }

    /// The fields after the last chunk.
    pub(super) fn trailer() -> Self {
        Self { at: At::LineStart, trailer: true, ..Self::new() }
    }

    /// Whether its body is an event stream.
    pub(super) fn has_events(&self) -> bool {
        self.events
    }

    /// The next byte, or what stands in its place; and what follows, if the head ends with it.
    pub(super) fn step(&mut self, byte: u8) -> (u8, Option<Framing>) {
        if byte == b'\n' {
            return (byte, self.end_line());
        }
        if byte == b'\r' {
            return (byte, None);
        }
        let mut masked = false;
        match &mut self.at {
            At::FirstLine => {
                if let Some(slot) = self.first.get_mut(self.len) {
                    *slot = byte;
                }
                self.len = self.len.saturating_add(1);
                self.last.rotate_left(1);
                self.last[Self::LAST - 1] = byte;
                masked = self.prose.masks(byte);
            }
            At::LineStart if !matches!(byte, b' ' | b'\t') => {
                self.word.clear();
                self.word.push(byte);
                self.at = At::Name;
            }
            At::LineStart => self.at = At::Value(Field::Secret(false)),
            At::Name if byte == b':' => {
                self.at = At::Value(self.field());
                self.word.clear();
            }
            At::Name => self.word.push(byte),
            At::Value(Field::Other) => masked = self.prose.masks(byte),
            At::Value(Field::Secret(begun)) => {
                *begun |= !matches!(byte, b' ' | b'\t');
                masked = *begun;
            }
            At::Value(Field::Length) => {
                if let Some(digit) = char::from(byte).to_digit(10) {
                    let length = self.length.unwrap_or(0).saturating_mul(10);
                    self.length = Some(length.saturating_add(digit.into()));
                }
            }
            At::Value(Field::Coding) => {
                self.word.push(byte);
                self.chunked |= self.word.ends_with("chunked");
            }
            At::Value(Field::Type) => {
                self.word.push(byte);
                self.events |= self.word.ends_with("text/eventstream");
            }
        }
        (if masked { b'x' } else { byte }, None)
    }

    fn field(&mut self) -> Field {
        if self.word.is("contentlength") {
            self.length = None;
            Field::Length
        } else if self.word.is("transferencoding") {
            Field::Coding
        } else if self.word.is("contenttype") {
            Field::Type
        } else if self.word.is_secret_field() {
            Field::Secret(false)
        } else {
            Field::Other
        }
    }

    fn end_line(&mut self) -> Option<Framing> {
        self.prose.skip();
        match self.at {
            // A program that prints to the channel of its messages is no HTTP.
            At::FirstLine if !self.is_request() && !self.is_response() => return Some(Framing::Lines),
            At::LineStart => return Some(self.body()),
            _ => self.at = At::LineStart,
        }
        None
    }

    fn is_response(&self) -> bool {
        self.first.starts_with(b"HTTP/1.")
    }

    fn is_request(&self) -> bool {
        self.last.starts_with(b" HTTP/1.")
    }

    /// RFC 9112 section 6.3.
    fn body(&self) -> Framing {
        let bodyless = self.is_response() && matches!(&self.first[9..], [b'1', ..] | b"204" | b"304");
        match self.length {
            _ if self.trailer || bodyless => Framing::Start,
            _ if self.chunked => Framing::Chunked(Chunked::Size(0)),
            Some(length) if length > 0 => Framing::Body(length),
            None if self.is_response() => Framing::Close,
            _ => Framing::Start,
        }
    }
}
