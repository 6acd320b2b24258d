//! Bytes to messages. One pass validates the text against RFC 8259 and finds the members of the
//! envelope. The keys that are present decide what they form (JSON-RPC 2.0 sections 4 and 5), never
//! their values alone: `null` is a value, not an absence. Only in a response is `null` an absence,
//! for a member that cannot be there: an error beside a result that is not `null`, a result beside
//! such an error, a method beside either. The meaning is certain, and some servers write all
//! members of a structure.
//!
//! If a message has several faults, its [`InvalidKind`] is the first of these that applies:
//!
//! 1. the text: `Utf8`, `Syntax`, `Truncated` or `TooDeep`, whichever is first in reading order;
//!    then `LoneSurrogate`;
//! 2. the outermost value: `NotAnObject`, `EmptyBatch`, `BatchTooLong`, `UnexpectedBatch`;
//! 3. `DuplicateKey`, `NotJsonRpc`, `Ambiguous`, `Shapeless`;
//! 4. a member: `BadMethod`, `BadId`, `MissingId`, `BadParams`, `BadError`.
//!
//! Keys outside the envelope are ignored, even if they repeat. So are the `params` of a response.

use super::grammar::{Scan, add_fault, utf8_prefix};
use super::json::is_empty_array;
use super::members::Layout;
use super::method::read_method;
use super::scalar::{read_integer, read_str, unescape};
use super::{
    ErrorObject, Id, InvalidKind, InvalidMessage, Message, Notification, Object, Payload, RawJson, Request, Response,
};
use crate::limits::FrameLimits;
use crate::peer_text::beginning;
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Range;

/// Parses one message. White space around it is allowed. A part of at least 4 KiB, and at least a
/// quarter of the message, shares `bytes`; any other is a copy, so that nothing small keeps a large
/// buffer alive. If there is a CR or LF between the tokens, the message is copied without them.
///
/// # Errors
/// A [`InvalidMessage`]. An array is [`InvalidKind::UnexpectedBatch`] (or `EmptyBatch`).
pub fn parse(bytes: Bytes, max_depth: u32) -> Result<Message, InvalidMessage> {
    match read(MessageText::Shared(&bytes), max_depth, None)? {
        Document::Message(message) => Ok(message),
        Document::Batch(_) => Err(InvalidMessage::new(InvalidKind::UnexpectedBatch, &bytes)),
    }
}

/// Parses one message, or an array of messages, for the codecs. A fault in the text of an array is
/// a fault of the whole array. Any other fault, including a lone surrogate, affects only its
/// element. Each element may nest as deep as a single message.
///
/// # Errors
/// A [`InvalidMessage`] for the whole text.
pub fn parse_batch_or_message(bytes: Bytes, limits: &FrameLimits) -> Result<Document, InvalidMessage> {
    read(MessageText::Shared(&bytes), limits.max_depth, Some(limits.max_batch))
}

/// Like [`parse_batch_or_message`]. Copies every part, so it is for small messages.
pub(crate) fn parse_small(bytes: &[u8], limits: &FrameLimits) -> Result<Document, InvalidMessage> {
    read(MessageText::Borrowed(bytes), limits.max_depth, Some(limits.max_batch))
}

/// The content of a whole text.
#[derive(Clone, PartialEq, Debug)]
pub enum Document {
    /// One message.
    Message(Message),
    /// An array. Each element is a message or invalid.
    Batch(Vec<Result<Message, InvalidMessage>>),
}

/// With `max_batch` as `None`, an array is not allowed, and none of its elements is kept.
fn read(source: MessageText<'_>, max_depth: u32, max_batch: Option<usize>) -> Result<Document, InvalidMessage> {
    let bytes = source.as_bytes();
    let (text, cut) = utf8_prefix(bytes);
    let mut scan = Scan::new(text, max_depth);
    let mut found = Found::default();
    let outcome = scan.document(&mut found, max_batch.unwrap_or(0)).and_then(|range| {
        let breaks = scan.breaks;
        scan.end().map(|()| (range, breaks))
    });
    let (range, breaks) = match add_fault(outcome, cut) {
        Ok(range) => range,
        Err(kind) => return Err(found.outer.defect(kind, bytes, bytes)),
    };
    if breaks {
        let compact: Vec<u8> = bytes[range].iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
        return read(MessageText::Shared(&compact.into()), max_depth, max_batch);
    }
    match found.batch {
        None => match found.outer.classify(source) {
            Ok(message) => Ok(Document::Message(message)),
            Err(kind) => Err(found.outer.defect(kind, bytes, bytes)),
        },
        Some(batch) => {
            let kind = match (batch.count, max_batch) {
                (0, _) => InvalidKind::EmptyBatch,
                (_, None) => InvalidKind::UnexpectedBatch,
                (count, Some(max)) if count > max => InvalidKind::BatchTooLong,
                _ => {
                    let element = |(range, mut envelope): (Range<usize>, Envelope)| {
                        envelope.classify(source).map_err(|kind| envelope.defect(kind, bytes, &bytes[range]))
                    };
                    return Ok(Document::Batch(batch.elements.into_iter().map(element).collect()));
                }
            };
            Err(InvalidMessage::new(kind, bytes))
        }
    }
}

/// The text of a message, validated.
#[derive(Clone, Copy)]
enum MessageText<'a> {
    Shared(&'a Bytes),
    Borrowed(&'a [u8]),
}

impl<'a> MessageText<'a> {
    fn as_bytes(self) -> &'a [u8] {
        match self {
            Self::Shared(bytes) => bytes,
            Self::Borrowed(bytes) => bytes,
        }
    }

    /// Returns the text of a value. A small one is copied, so that a long-running request keeps
    /// alive only the bytes that it counts.
    fn part(self, range: &Range<usize>) -> Bytes {
        match self {
            Self::Shared(text) if range.len() >= LARGE.max(text.len() / 4) => text.slice(range.clone()),
            _ => Bytes::copy_from_slice(&self.as_bytes()[range.clone()]),
        }
    }
}

/// What one pass has found so far. It remains valid if the pass ends with a fault.
#[derive(Default)]
struct Found {
    outer: Envelope,
    batch: Option<BatchElements>,
}

/// The elements of an array, as many as may be kept, and their total number.
#[derive(Default)]
struct BatchElements {
    elements: Vec<(Range<usize>, Envelope)>,
    count: usize,
}

/// Minimum size of a part that may keep the text around it alive.
pub(crate) const LARGE: usize = 4 << 10;

/// Maximum number of members of `params` or of a result that the pass over the message notes. A
/// larger object is read again when it is used.
const NOTED: usize = 16;

/// The ranges of the envelope's members in the text.
#[derive(Default)]
struct Envelope {
    kind: Outermost,
    jsonrpc: Option<Range<usize>>,
    id: Option<Range<usize>>,
    method: Option<Range<usize>>,
    params: Option<Range<usize>>,
    result: Option<Range<usize>>,
    error: Option<Range<usize>>,
    /// The start of the last value that is an object, and its members. `None` if they are too many.
    noted: Option<usize>,
    layout: Layout,
    has_method: bool,
    duplicate: bool,
    lone: bool,
}

#[derive(Default, PartialEq)]
enum Outermost {
    #[default]
    Object,
    Array,
    Scalar,
}

impl Envelope {
    /// Returns the slot for a key of the envelope. Escapes in the key are decoded: `"\u006dethod"`
    /// is `method`.
    fn slot(&mut self, key: &[u8]) -> Option<&mut Option<Range<usize>>> {
        match key {
            b"jsonrpc" => Some(&mut self.jsonrpc),
            b"id" => Some(&mut self.id),
            b"method" => {
                self.has_method = true;
                Some(&mut self.method)
            }
            b"params" => Some(&mut self.params),
            b"result" => Some(&mut self.result),
            b"error" => Some(&mut self.error),
            _ if key.contains(&b'\\') => {
                let decoded = unescape(key).filter(|decoded| !decoded.contains('\\'))?;
                self.slot(decoded.as_bytes())
            }
            _ => None,
        }
    }

    /// Checks that it is one object of JSON-RPC 2.0.
    fn check(&self, text: &[u8]) -> Result<(), InvalidKind> {
        match self.kind {
            _ if self.lone => return Err(InvalidKind::LoneSurrogate),
            Outermost::Object => {}
            Outermost::Array => return Err(InvalidKind::UnexpectedBatch),
            Outermost::Scalar => return Err(InvalidKind::NotAnObject),
        }
        if self.duplicate {
            return Err(InvalidKind::DuplicateKey);
        }
        if self.jsonrpc.as_ref().and_then(|range| read_str(&text[range.clone()])).as_deref() != Some("2.0") {
            return Err(InvalidKind::NotJsonRpc);
        }
        Ok(())
    }

    fn classify(&mut self, source: MessageText<'_>) -> Result<Message, InvalidKind> {
        let text = source.as_bytes();
        self.check(text)?;
        let has_nulls = self.drop_nulls(text);
        let (noted, layout) = (self.noted, &mut self.layout);
        // A value with its members, for what is read next: the others may wait in a queue.
        let mut object = |range: &Range<usize>| {
            let layout = (noted == Some(range.start)).then(|| core::mem::take(layout));
            RawJson::with_layout(source.part(range), layout)
        };
        let id = self.id.as_ref().map(|range| &text[range.clone()]);
        let legal = |id: &[u8]| Id::read(id).ok_or(InvalidKind::BadId);
        match (&self.method, &self.result, &self.error) {
            (Some(method), None, None) => {
                let method = read_method(&text[method.clone()]).ok_or(InvalidKind::BadMethod)?;
                let id = id.map(legal).transpose()?;
                let params = match &self.params {
                    Some(range) if text[range.start] == b'{' => Some(range),
                    // The empty object of a language that has no other empty collection.
                    Some(range) if is_empty_array(&text[range.clone()]) => {
                        return Ok(message(id, method, Some(RawJson::empty_object())));
                    }
                    Some(range) if text[range.start] != b'n' => return Err(InvalidKind::BadParams),
                    _ => None,
                };
                let params = match id {
                    Some(_) => params.map(object),
                    None => params.map(|range| RawJson::trusted(source.part(range))),
                };
                Ok(message(id, method, params))
            }
            (None, Some(result), None) => {
                let id = legal(id.ok_or(InvalidKind::MissingId)?)?;
                let payload = Payload::Result(object(result));
                Ok(Message::Response(Response { id, payload, has_nulls }))
            }
            (None, None, Some(error)) => {
                let id = id.filter(|id| *id != b"null").map(legal).transpose()?;
                let error = read_error(&object(error)).ok_or(InvalidKind::BadError)?;
                Ok(match id {
                    Some(id) => Message::Response(Response { id, payload: Payload::Error(error), has_nulls }),
                    None => Message::Error(error),
                })
            }
            (None, None, None) => Err(InvalidKind::Shapeless),
            _ => Err(InvalidKind::Ambiguous),
        }
    }

    /// Drops the members of a response that are `null` and cannot be there. Returns whether there
    /// was one.
    fn drop_nulls(&mut self, text: &[u8]) -> bool {
        let is = |slot: &Option<Range<usize>>, null: bool| {
            slot.as_ref().is_some_and(|range| (text[range.start] == b'n') == null)
        };
        let (result, error) = (is(&self.result, false), is(&self.error, false));
        let mut dropped = false;
        if is(&self.error, true) && result {
            (self.error, dropped) = (None, true);
        }
        if is(&self.result, true) && error {
            (self.result, dropped) = (None, true);
        }
        if is(&self.method, true) && (self.result.is_some() || self.error.is_some()) {
            (self.method, self.has_method, dropped) = (None, false, true);
        }
        dropped
    }

    fn defect(&self, kind: InvalidKind, text: &[u8], shown: &[u8]) -> InvalidMessage {
        let id = self.id.as_ref().and_then(|range| Id::read(&text[range.clone()]));
        let error = self.error.as_ref().filter(|_| kind == InvalidKind::BadError);
        let error_text = error.map(|range| error_text(&text[range.clone()]));
        InvalidMessage { id, has_method: self.has_method, error_text, ..InvalidMessage::new(kind, shown) }
    }
}

/// Returns a request, or a notification if it has no id.
fn message(id: Option<Id>, method: Cow<'static, str>, params: Option<RawJson>) -> Message {
    match id {
        Some(id) => Message::Request(Request { id, method, params }),
        None => Message::Notification(Notification { method, params }),
    }
}

/// Returns what a malformed error says: the text that it is, or its code and its message, or else
/// the beginning of its JSON.
fn error_text(error: &[u8]) -> String {
    let text = |value: &[u8]| read_str(value).map(Cow::into_owned);
    let json = || String::from_utf8_lossy(error).into_owned();
    let object = || {
        let object = Object::read(&RawJson::trusted(Bytes::copy_from_slice(error))).ok()?;
        let message = object.str("message")?.into_owned();
        let code = object.get("code").map(|code| text(code.as_bytes()).unwrap_or_else(|| code.as_str().into()));
        Some(code.map_or_else(|| message.clone(), |code| format!("{code}: {message}")))
    };
    let said = text(error).or_else(object).unwrap_or_else(json);
    beginning(&said, InvalidMessage::ERROR_TEXT).into()
}

fn read_error(json: &RawJson) -> Option<ErrorObject> {
    let error = Object::read(json).ok()?;
    let code = read_integer(error.get("code")?.as_bytes())?;
    Some(ErrorObject { code, message: error.str("message")?.into_owned(), data: error.get("data") })
}

impl Scan<'_> {
    /// Parses the outermost value: its envelope, or the envelopes of at most `keep` elements.
    fn document(&mut self, found: &mut Found, keep: usize) -> Result<Range<usize>, InvalidKind> {
        self.space();
        self.breaks = false;
        let start = self.at;
        if self.text.get(start) != Some(&b'[') {
            return self.envelope(&mut found.outer);
        }
        self.at += 1;
        let batch = found.batch.insert(BatchElements::default());
        while self.element(batch.count == 0)? {
            let mut envelope = Envelope::default();
            let range = self.envelope(&mut envelope)?;
            batch.count += 1;
            if batch.count <= keep {
                batch.elements.push((range, envelope));
            }
        }
        Ok(start..self.at)
    }

    /// Parses a value. For an object, records the ranges of the envelope's members.
    fn envelope(&mut self, found: &mut Envelope) -> Result<Range<usize>, InvalidKind> {
        self.space();
        self.lone = false;
        let start = self.at;
        found.kind = match self.text.get(start) {
            Some(b'{') => Outermost::Object,
            Some(b'[') => Outermost::Array,
            _ => Outermost::Scalar,
        };
        if found.kind == Outermost::Object && self.max_depth > 0 {
            self.at += 1;
            let mut first = true;
            let (mut noted, mut layout) = (None, Layout::default());
            while let Some(key) = self.member(first)? {
                first = false;
                let slot = found.slot(&self.text[key]);
                self.space();
                let start = self.at;
                if self.max_depth > 1 && self.text.get(start) == Some(&b'{') {
                    let is_whole = self.members(&mut layout, NOTED, |scan| scan.value(2))?;
                    noted = is_whole.then_some(start);
                } else {
                    self.value(1)?;
                }
                match slot {
                    Some(slot @ None) => *slot = Some(start..self.at),
                    Some(Some(_)) => found.duplicate = true,
                    None => {}
                }
            }
            (found.noted, found.layout) = (noted, layout);
        } else {
            self.value(0)?;
        }
        found.lone = self.lone;
        Ok(start..self.at)
    }
}
