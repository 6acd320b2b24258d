//! The heads of HTTP/1.1 messages (RFC 9112): which fields are shown, and how the body behind them is framed. The redactor gives up where
//! the codec does: behind such a byte the place of the next head is not known.

use super::chunks::Chunks;
use super::first::FirstLine;
use super::lengths::{Declared, Lengths, Member};
use super::names::shows_field;
use super::prose::Prose;
use super::{Framing, Side};

/// A head as it goes by.
#[derive(Clone)]
pub(super) struct Head {
    at: At,
    first: FirstLine,
    /// Whether the line is known to be one of HTTP before it is read.
    is_http: bool,
    name: Name,
    prose: Prose,
    lengths: Lengths,
    coding: Member,
    /// Whether a content coding is named: the codec knows none.
    is_coded: bool,
    media: Media,
    after_cr: bool,
    is_trailer: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum At {
    FirstLine,
    LineStart,
    Name,
    Value(Field),
}

/// What is done with the value of a field.
#[derive(Clone, Copy, PartialEq)]
enum Field {
    Shown,
    /// Whether its first byte other than white space came.
    Masked(bool),
    Length,
    TransferCoding,
    ContentCoding,
    Type,
}

/// The name of a field as it goes by. One that is longer than any known name is none of them.
#[derive(Clone, Default)]
struct Name {
    bytes: [u8; 32],
    len: usize,
}

/// What the first `Content-Type` says; the codec reads no other.
#[derive(Clone, Copy)]
enum Media {
    Unknown,
    /// The type so far; whether its parameters have begun.
    Read(Member, bool),
}

/// What becomes of a byte.
pub(super) enum Step {
    /// It is shown.
    Show,
    Mask,
    /// It is shown, and this follows.
    Then(Framing),
    /// The codec reads no further than here.
    Broken,
}

impl Name {
    fn push(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(self.len) {
            *slot = byte;
        }
        self.len = self.len.saturating_add(1);
    }

    fn text(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    fn is(&self, name: &str) -> bool {
        self.text().eq_ignore_ascii_case(name.as_bytes())
    }
}

impl Media {
    const EVENTS: &str = "text/event-stream";

    fn push(&mut self, byte: u8) {
        let Self::Read(essence, ended) = self else { return };
        *ended |= byte == b';';
        if !*ended {
            // White space of Unicode around the type counts as white space for the codec.
            essence.push(if byte.is_ascii() { byte } else { b' ' }, Self::EVENTS);
        }
    }

    fn is_events(&self) -> bool {
        matches!(self, Self::Read(essence, _) if essence.is(Self::EVENTS))
    }
}

impl Head {
    /// The head of a message. `side`: whose, if that is known. `is_http`: whether it must be one.
    pub(super) fn new(side: Option<Side>, is_http: bool) -> Self {
        Self {
            at: At::FirstLine,
            first: FirstLine::new(side),
            is_http,
            name: Name::default(),
            prose: Prose::default(),
            lengths: Lengths::default(),
            coding: Member::default(),
            is_coded: false,
            media: Media::Unknown,
            after_cr: false,
            is_trailer: false,
        }
    }

    /// The fields after the last chunk.
    pub(super) fn trailer() -> Self {
        Self { at: At::LineStart, is_trailer: true, ..Self::new(None, true) }
    }

    /// Whose head it is, once its first line has been read.
    pub(super) fn side(&self) -> Option<Side> {
        self.first.side()
    }

    /// Whether its body is an event stream.
    pub(super) fn has_events(&self) -> bool {
        self.side() == Some(Side::Response) && self.media.is_events()
    }

    pub(super) fn step(&mut self, byte: u8) -> Step {
        let after_cr = core::mem::replace(&mut self.after_cr, byte == b'\r');
        match byte {
            b'\n' => return self.end_line(after_cr),
            _ if after_cr && (self.is_http || self.at != At::FirstLine) => return Step::Broken,
            // A program may print a CR anywhere.
            _ if after_cr => drop(self.first.push(b'\r')),
            _ => {}
        }
        if byte == b'\r' {
            return Step::Show;
        }
        let masked = match &mut self.at {
            At::FirstLine => {
                if !self.first.push(byte) && self.is_http {
                    return Step::Broken;
                }
                if self.first.ends_target() {
                    // What follows is the version, whatever the target has begun.
                    self.prose.skip();
                    false
                } else {
                    self.prose.masks(byte)
                }
            }
            At::LineStart | At::Name if is_token(byte) => {
                if self.at == At::LineStart {
                    self.name = Name::default();
                    self.at = At::Name;
                }
                self.name.push(byte);
                false
            }
            At::Name if byte == b':' => {
                self.at = At::Value(self.field());
                false
            }
            // Also a line that continues the one before it (RFC 9112 section 5.2).
            At::LineStart | At::Name => return Step::Broken,
            At::Value(_) if byte != b'\t' && byte.is_ascii_control() => return Step::Broken,
            At::Value(Field::Masked(begun)) => {
                *begun |= !matches!(byte, b' ' | b'\t');
                *begun
            }
            At::Value(Field::Length) => !self.lengths.length(byte),
            At::Value(field) => {
                match field {
                    Field::TransferCoding => self.lengths.coding(byte),
                    Field::ContentCoding if byte == b',' => self.end_content_coding(),
                    Field::ContentCoding => self.coding.push(byte, IDENTITY),
                    Field::Type => self.media.push(byte),
                    Field::Shown | Field::Masked(_) | Field::Length => {}
                }
                self.prose.masks(byte)
            }
        };
        if masked { Step::Mask } else { Step::Show }
    }

    fn field(&mut self) -> Field {
        let side = self.side().filter(|_| !self.is_trailer);
        if !side.is_some_and(|side| shows_field(self.name.text(), side)) {
            Field::Masked(false)
        } else if self.name.is("content-length") {
            Field::Length
        } else if self.name.is("transfer-encoding") {
            Field::TransferCoding
        } else if self.name.is("content-encoding") {
            Field::ContentCoding
        } else if self.name.is("content-type") && matches!(self.media, Media::Unknown) {
            self.media = Media::Read(Member::default(), false);
            Field::Type
        } else {
            Field::Shown
        }
    }

    fn end_content_coding(&mut self) {
        let coding = core::mem::take(&mut self.coding);
        self.is_coded |= !coding.is_empty() && !coding.is(IDENTITY);
    }

    fn end_line(&mut self, after_cr: bool) -> Step {
        self.prose.skip();
        match self.at {
            // A program printed it to the channel of its messages.
            At::FirstLine if !self.is_http && self.side().is_none() && !self.first.names_http() => {
                return Step::Then(Framing::Lines);
            }
            At::FirstLine if self.side().is_none() => return Step::Broken,
            At::Name => return Step::Broken,
            _ if !after_cr => return Step::Broken,
            At::LineStart => return self.body(),
            At::Value(Field::Length) => self.lengths.end_length(),
            At::Value(Field::TransferCoding) => self.lengths.end_coding(),
            At::Value(Field::ContentCoding) => self.end_content_coding(),
            At::FirstLine | At::Value(_) => {}
        }
        self.at = At::LineStart;
        Step::Show
    }

    /// What follows the head (RFC 9112 section 6.3).
    fn body(&self) -> Step {
        let declared = self.lengths.declared(self.first.is_old());
        let status = self.first.status();
        Step::Then(match (self.side(), declared) {
            _ if self.is_trailer => Framing::Start,
            (Some(Side::Response), _) if matches!(status, 102..200 | 100) => Framing::Start,
            (Some(Side::Response), _) if status < 200 => return Step::Broken,
            (_, Declared::Invalid) => return Step::Broken,
            (Some(Side::Response), _) if matches!(status, 204 | 304) => Framing::Start,
            (Some(Side::Request), _) if self.is_coded => return Step::Broken,
            (_, Declared::Known(0)) => Framing::Start,
            (_, Declared::Unknown) => return Step::Broken,
            _ if self.is_coded => return Step::Broken,
            (_, Declared::Known(length)) => Framing::Body(length),
            (Some(Side::Request), Declared::Chunked) => Framing::Chunked(Chunks::of_request()),
            (_, Declared::Chunked) => Framing::Chunked(Chunks::of_response()),
            (Some(Side::Request), Declared::Nothing) if self.first.wants_body() => return Step::Broken,
            (Some(Side::Request), Declared::Nothing) => Framing::Start,
            (_, Declared::Nothing) => Framing::Close,
        })
    }
}

const IDENTITY: &str = "identity";

/// A part of a token (RFC 9110 section 5.6.2).
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
