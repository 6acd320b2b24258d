//! The heads of HTTP/1.1 messages (RFC 9112): which fields are shown, and how the body is framed.
//! The redactor fails at the same byte as the codec: after it, the position of the next head is
//! unknown.

use super::chunks::ChunkFraming;
use super::first::FirstLine;
use super::lengths::{BodyLength, Lengths, ListMember};
use super::names::shows_field;
use super::pairs::Pairs;
use super::{Framing, Side};

/// A head, byte by byte.
#[derive(Clone)]
pub(super) struct Head {
    at: HeadState,
    first: FirstLine,
    /// Whether the line must be HTTP.
    is_http: bool,
    name: Name,
    pairs: Pairs,
    lengths: Lengths,
    /// A content coding, compared with each name of none.
    coding: [ListMember; NO_CODING.len()],
    /// Whether there is a content coding. The codec supports none.
    is_coded: bool,
    media: MediaType,
    after_cr: bool,
    is_trailer: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum HeadState {
    FirstLine,
    LineStart,
    Name,
    Value(FieldValue),
}

/// The treatment of a field value.
#[derive(Clone, Copy, PartialEq)]
enum FieldValue {
    Shown,
    /// Whether its first byte other than white space has occurred.
    Masked(bool),
    Length,
    TransferCoding,
    ContentCoding,
    Type,
}

/// The name of a field, byte by byte. One that is longer than every known name is unknown.
#[derive(Clone, Default)]
struct Name {
    bytes: [u8; 32],
    len: usize,
}

/// The first `Content-Type`. The codec ignores others.
#[derive(Clone, Copy)]
enum MediaType {
    Unknown,
    /// The type so far, and whether its parameters have begun.
    Read(ListMember, bool),
}

/// The treatment of a byte.
pub(super) enum HeadStep {
    /// It is shown.
    Show,
    Mask,
    /// It is shown, and this framing follows.
    Then(Framing),
    /// The codec fails here.
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

impl MediaType {
    const EVENTS: &str = "text/event-stream";

    fn push(&mut self, byte: u8) {
        let Self::Read(essence, ended) = self else { return };
        *ended |= byte == b';';
        if !*ended {
            // The codec also ignores Unicode white space around the type.
            essence.push(if byte.is_ascii() { byte } else { b' ' }, Self::EVENTS);
        }
    }

    fn is_events(&self) -> bool {
        matches!(self, Self::Read(essence, _) if essence.is(Self::EVENTS))
    }
}

impl Head {
    /// Creates the head of a message. `side` is its sender, if known. `is_http` is whether it must
    /// be HTTP.
    pub(super) fn new(side: Option<Side>, is_http: bool) -> Self {
        Self {
            at: HeadState::FirstLine,
            first: FirstLine::new(side),
            is_http,
            name: Name::default(),
            pairs: Pairs::default(),
            lengths: Lengths::default(),
            coding: Default::default(),
            is_coded: false,
            media: MediaType::Unknown,
            after_cr: false,
            is_trailer: false,
        }
    }

    /// Creates the fields after the last chunk.
    pub(super) fn trailer() -> Self {
        Self { at: HeadState::LineStart, is_trailer: true, ..Self::new(None, true) }
    }

    /// Returns the sender, once the first line is complete.
    pub(super) fn side(&self) -> Option<Side> {
        self.first.side()
    }

    /// Returns whether the body is an event stream.
    pub(super) fn has_events(&self) -> bool {
        self.side() == Some(Side::Response) && self.media.is_events()
    }

    pub(super) fn step(&mut self, byte: u8) -> HeadStep {
        let after_cr = core::mem::replace(&mut self.after_cr, byte == b'\r');
        match byte {
            b'\n' => return self.end_line(after_cr),
            _ if after_cr && (self.is_http || self.at != HeadState::FirstLine) => return HeadStep::Broken,
            // A program may print a CR anywhere.
            _ if after_cr => drop(self.first.push(b'\r')),
            _ => {}
        }
        if byte == b'\r' {
            return HeadStep::Show;
        }
        let masked = match &mut self.at {
            HeadState::FirstLine => {
                if !self.first.push(byte) && self.is_http {
                    return HeadStep::Broken;
                }
                if self.first.ends_target() {
                    // The version follows, whatever the target has begun.
                    self.pairs.skip();
                    false
                } else {
                    self.pairs.masks(byte)
                }
            }
            HeadState::LineStart | HeadState::Name if is_token(byte) => {
                if self.at == HeadState::LineStart {
                    self.name = Name::default();
                    self.at = HeadState::Name;
                }
                self.name.push(byte);
                false
            }
            HeadState::Name if byte == b':' => {
                self.at = HeadState::Value(self.field());
                false
            }
            // This includes a folded line (RFC 9112 section 5.2).
            HeadState::LineStart | HeadState::Name => return HeadStep::Broken,
            HeadState::Value(_) if byte != b'\t' && byte.is_ascii_control() => return HeadStep::Broken,
            HeadState::Value(FieldValue::Masked(begun)) => {
                *begun |= !matches!(byte, b' ' | b'\t');
                *begun
            }
            HeadState::Value(FieldValue::Length) => !self.lengths.length(byte),
            HeadState::Value(field) => {
                match field {
                    FieldValue::TransferCoding => self.lengths.coding(byte),
                    FieldValue::ContentCoding if byte == b',' => self.end_content_coding(),
                    FieldValue::ContentCoding => {
                        self.coding.iter_mut().zip(NO_CODING).for_each(|(coding, name)| coding.push(byte, name));
                    }
                    FieldValue::Type => self.media.push(byte),
                    FieldValue::Shown | FieldValue::Masked(_) | FieldValue::Length => {}
                }
                self.pairs.masks(byte)
            }
        };
        if masked { HeadStep::Mask } else { HeadStep::Show }
    }

    fn field(&mut self) -> FieldValue {
        let side = self.side().filter(|_| !self.is_trailer);
        if !side.is_some_and(|side| shows_field(self.name.text(), side)) {
            FieldValue::Masked(false)
        } else if self.name.is("content-length") {
            FieldValue::Length
        } else if self.name.is("transfer-encoding") {
            FieldValue::TransferCoding
        } else if self.name.is("content-encoding") {
            FieldValue::ContentCoding
        } else if self.name.is("content-type") && matches!(self.media, MediaType::Unknown) {
            self.media = MediaType::Read(ListMember::default(), false);
            FieldValue::Type
        } else {
            self.pairs = Pairs::of_field(self.name.text());
            FieldValue::Shown
        }
    }

    fn end_content_coding(&mut self) {
        let coding = core::mem::take(&mut self.coding);
        self.is_coded |= !coding.iter().zip(NO_CODING).any(|(coding, name)| coding.is_empty() || coding.is(name));
    }

    fn end_line(&mut self, after_cr: bool) -> HeadStep {
        self.pairs = Pairs::default();
        match self.at {
            // A program printed it to the connection of its messages.
            HeadState::FirstLine if !self.is_http && self.side().is_none() && !self.first.names_http() => {
                return HeadStep::Then(Framing::Lines);
            }
            HeadState::FirstLine if self.side().is_none() => return HeadStep::Broken,
            HeadState::Name => return HeadStep::Broken,
            _ if !after_cr => return HeadStep::Broken,
            HeadState::LineStart => return self.body(),
            HeadState::Value(FieldValue::Length) => self.lengths.end_length(),
            HeadState::Value(FieldValue::TransferCoding) => self.lengths.end_coding(),
            HeadState::Value(FieldValue::ContentCoding) => self.end_content_coding(),
            HeadState::FirstLine | HeadState::Value(_) => {}
        }
        self.at = HeadState::LineStart;
        HeadStep::Show
    }

    /// Returns the framing after the head (RFC 9112 section 6.3).
    fn body(&self) -> HeadStep {
        let declared = self.lengths.declared(self.first.is_old());
        let status = self.first.status();
        HeadStep::Then(match (self.side(), declared) {
            _ if self.is_trailer => Framing::Start,
            (Some(Side::Response), _) if matches!(status, 102..200 | 100) => Framing::Start,
            (Some(Side::Response), _) if status < 200 => return HeadStep::Broken,
            (_, BodyLength::Invalid) => return HeadStep::Broken,
            (Some(Side::Response), _) if matches!(status, 204 | 304) => Framing::Start,
            (Some(Side::Request), _) if self.is_coded => return HeadStep::Broken,
            (_, BodyLength::Known(0)) => Framing::Start,
            (_, BodyLength::Unknown) => return HeadStep::Broken,
            _ if self.is_coded => return HeadStep::Broken,
            (_, BodyLength::Known(length)) => Framing::Body(length),
            (Some(Side::Request), BodyLength::Chunked) => Framing::Chunked(ChunkFraming::of_request()),
            (_, BodyLength::Chunked) => Framing::Chunked(ChunkFraming::of_response()),
            (Some(Side::Request), BodyLength::Nothing) if self.first.wants_body() => return HeadStep::Broken,
            (Some(Side::Request), BodyLength::Nothing) => Framing::Start,
            (_, BodyLength::Nothing) => Framing::Close,
        })
    }
}

/// The names of content codings that mean that there is none, as the codec has them.
const NO_CODING: [&str; 3] = ["identity", "none", "utf-8"];

/// Returns whether a byte may be part of a token (RFC 9110 section 5.6.2).
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
