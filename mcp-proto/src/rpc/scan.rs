//! Bytes to messages. One pass validates the text against RFC 8259 and finds the members of the
//! envelope. The keys that are present decide what they form (JSON-RPC 2.0 sections 4 and 5), never
//! their values alone: `null` is a value, not an absence.
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

use super::grammar::{MAX_DEPTH, Scan, unescape};
use super::{ErrorObject, Id, InvalidKind, InvalidMessage, Message, Notification, Payload, RawJson, Request, Response};
use crate::limits::FrameLimits;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Range;

/// Parses one message. White space around it is allowed. Its parts share `bytes`, unless there is a
/// CR or LF between its tokens: then the message is copied without them.
///
/// # Errors
/// A [`InvalidMessage`]. An array is [`InvalidKind::UnexpectedBatch`] (or `EmptyBatch`).
pub fn parse(bytes: Bytes, max_depth: u32) -> Result<Message, InvalidMessage> {
    match read(&bytes, max_depth, None)? {
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
    read(&bytes, limits.max_depth, Some(limits.max_batch))
}

/// Returns the range of the one JSON value in `bytes`.
pub(super) fn value(bytes: &[u8]) -> Result<Range<usize>, InvalidKind> {
    let (text, cut) = decoded(bytes);
    let mut scan = Scan::new(text, MAX_DEPTH);
    let found = scan.value(0).and_then(|range| scan.end().map(|()| range));
    let range = coded(found, cut)?;
    if scan.lone { Err(InvalidKind::LoneSurrogate) } else { Ok(range) }
}

/// Visits the members of a JSON object, with unescaped keys. Visits nothing for any other value.
pub(super) fn members(json: &RawJson, mut each: impl FnMut(String, RawJson)) {
    let bytes = json.to_bytes();
    let mut scan = Scan::new(&bytes, MAX_DEPTH);
    if !scan.open(b'{') {
        return;
    }
    let mut first = true;
    while let Ok(Some(key)) = scan.member(first) {
        first = false;
        let (Ok(value), Some(key)) = (scan.skip(), unescape(&bytes[key])) else { return };
        each(key, RawJson::trusted(bytes.slice(value)));
    }
}

/// Returns the elements of a JSON array. Empty for any other value.
pub(super) fn elements(json: &RawJson) -> Vec<RawJson> {
    let bytes = json.to_bytes();
    let mut scan = Scan::new(&bytes, MAX_DEPTH);
    let mut found = Vec::new();
    let mut first = true;
    if scan.open(b'[') {
        while let Ok(true) = scan.element(first) {
            first = false;
            let Ok(value) = scan.skip() else { break };
            found.push(RawJson::trusted(bytes.slice(value)));
        }
    }
    found
}

/// Returns a string, or an integer as [`Id`] defines it. `None` for any other value.
pub(super) fn id(json: &RawJson) -> Option<Id> {
    read_id(json.as_bytes())
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
fn read(bytes: &Bytes, max_depth: u32, max_batch: Option<usize>) -> Result<Document, InvalidMessage> {
    let (text, cut) = decoded(bytes);
    let mut scan = Scan::new(text, max_depth);
    let mut found = Found::default();
    let outcome = scan.document(&mut found, max_batch.unwrap_or(0)).and_then(|range| scan.end().map(|()| range));
    let range = match coded(outcome, cut) {
        Ok(range) => range,
        Err(kind) => return Err(found.outer.defect(kind, bytes, bytes)),
    };
    if memchr::memchr2(b'\r', b'\n', &bytes[range.clone()]).is_some() {
        // Strings contain neither, so all of them are between tokens.
        let compact: Vec<u8> = bytes[range].iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
        return read(&compact.into(), max_depth, max_batch);
    }
    match found.batch {
        None => match found.outer.classify(bytes) {
            Ok(message) => Ok(Document::Message(message)),
            Err(kind) => Err(found.outer.defect(kind, bytes, bytes)),
        },
        Some(batch) => {
            let kind = match (batch.count, max_batch) {
                (0, _) => InvalidKind::EmptyBatch,
                (_, None) => InvalidKind::UnexpectedBatch,
                (count, Some(max)) if count > max => InvalidKind::BatchTooLong,
                _ => {
                    let element = |(range, envelope): (Range<usize>, Envelope)| {
                        envelope.classify(bytes).map_err(|kind| envelope.defect(kind, bytes, &bytes[range]))
                    };
                    return Ok(Document::Batch(batch.elements.into_iter().map(element).collect()));
                }
            };
            Err(InvalidMessage::new(kind, bytes))
        }
    }
}

/// Returns the longest prefix that is UTF-8, and the fault of the bytes after it. A character that
/// the end of the input splits is truncated, not invalid.
fn decoded(bytes: &[u8]) -> (&[u8], Option<InvalidKind>) {
    match core::str::from_utf8(bytes) {
        Ok(_) => (bytes, None),
        Err(e) => {
            let kind = if e.error_len().is_some() { InvalidKind::Utf8 } else { InvalidKind::Truncated };
            (&bytes[..e.valid_up_to()], Some(kind))
        }
    }
}

/// Merges the fault of the encoding in reading order: any other fault of the prefix comes first,
/// except that the prefix itself looks truncated.
fn coded<T>(outcome: Result<T, InvalidKind>, cut: Option<InvalidKind>) -> Result<T, InvalidKind> {
    match (outcome, cut) {
        (Ok(_) | Err(InvalidKind::Truncated), Some(kind)) => Err(kind),
        (outcome, _) => outcome,
    }
}

/// What one pass has found so far. It remains valid if the pass ends with a fault.
#[derive(Default)]
struct Found {
    outer: Envelope,
    batch: Option<Elements>,
}

/// The elements of an array, as many as may be kept, and their total number.
#[derive(Default)]
struct Elements {
    elements: Vec<(Range<usize>, Envelope)>,
    count: usize,
}

/// Maximum size of a text that is kept alive for any part of it.
const LARGE: usize = 4 << 10;

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
        let decoded;
        let key = if key.contains(&b'\\') {
            decoded = unescape(key)?;
            decoded.as_bytes()
        } else {
            key
        };
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
            _ => None,
        }
    }

    fn classify(&self, text: &Bytes) -> Result<Message, InvalidKind> {
        let raw = |range: &Range<usize>| {
            // A small part of a large text is copied, so that a long-running request keeps alive
            // only the bytes that it counts.
            let is_small = text.len() > LARGE && range.len() < text.len() / 4;
            let part = if is_small { Bytes::copy_from_slice(&text[range.clone()]) } else { text.slice(range.clone()) };
            RawJson::trusted(part)
        };
        match self.kind {
            _ if self.lone => return Err(InvalidKind::LoneSurrogate),
            Outermost::Object => {}
            Outermost::Array => return Err(InvalidKind::UnexpectedBatch),
            Outermost::Scalar => return Err(InvalidKind::NotAnObject),
        }
        if self.duplicate {
            return Err(InvalidKind::DuplicateKey);
        }
        if self.jsonrpc.as_ref().and_then(|range| read_string(&text[range.clone()])).as_deref() != Some("2.0") {
            return Err(InvalidKind::NotJsonRpc);
        }
        let id = self.id.as_ref().map(|range| &text[range.clone()]);
        let legal = |id: &[u8]| read_id(id).ok_or(InvalidKind::BadId);
        match (&self.method, &self.result, &self.error) {
            (Some(method), None, None) => {
                let method = read_string(&text[method.clone()]).ok_or(InvalidKind::BadMethod)?;
                let id = id.map(legal).transpose()?;
                let params = match &self.params {
                    Some(range) if text[range.start] == b'{' => Some(raw(range)),
                    Some(range) if text[range.start] != b'n' => return Err(InvalidKind::BadParams),
                    _ => None,
                };
                Ok(match id {
                    Some(id) => Message::Request(Request { id, method, params }),
                    None => Message::Notification(Notification { method, params }),
                })
            }
            (None, Some(result), None) => {
                let id = legal(id.ok_or(InvalidKind::MissingId)?)?;
                Ok(Message::Response(Response { id, payload: Payload::Result(raw(result)) }))
            }
            (None, None, Some(error)) => {
                let id = id.filter(|id| *id != b"null").map(legal).transpose()?;
                let error = read_error(&raw(error)).ok_or(InvalidKind::BadError)?;
                Ok(match id {
                    Some(id) => Message::Response(Response { id, payload: Payload::Error(error) }),
                    None => Message::Error(error),
                })
            }
            (None, None, None) => Err(InvalidKind::Shapeless),
            _ => Err(InvalidKind::Ambiguous),
        }
    }

    fn defect(&self, kind: InvalidKind, text: &[u8], shown: &[u8]) -> InvalidMessage {
        let id = self.id.as_ref().and_then(|range| read_id(&text[range.clone()]));
        InvalidMessage { id, has_method: self.has_method, ..InvalidMessage::new(kind, shown) }
    }
}

fn read_error(json: &RawJson) -> Option<ErrorObject> {
    let (mut code, mut message, mut data) = (None, None, None);
    members(json, |key, value| match key.as_str() {
        "code" => code = read_integer(value.as_bytes()),
        "message" => message = read_string(value.as_bytes()),
        "data" => data = Some(value),
        _ => {}
    });
    Some(ErrorObject { code: code?, message: message?, data })
}

fn read_id(value: &[u8]) -> Option<Id> {
    match value.first()? {
        b'"' => read_string(value).map(Id::Text),
        _ => read_integer(value).map(Id::Int),
    }
}

/// Returns the text of a JSON string. `None` for another value, or for a string with a lone
/// surrogate.
fn read_string(value: &[u8]) -> Option<String> {
    unescape(value.strip_prefix(b"\"")?.strip_suffix(b"\"")?)
}

/// Returns a validated JSON number as an integer: any 64-bit integer, and an integer up to 2^53 in
/// any other notation (`1.0`, `10e-1`), which a peer with doubles can represent exactly. Uses
/// decimal arithmetic, so that a fraction is not lost in the rounding of a double.
fn read_integer(value: &[u8]) -> Option<i64> {
    let text = core::str::from_utf8(value).ok()?;
    if !text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
        return None;
    }
    if let Ok(n) = text.parse() {
        return Some(n);
    }
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    let all = whole.len() + fraction.len();
    let leading = digits().take_while(|&d| d == b'0').count();
    if leading == all {
        return Some(0);
    }
    let trailing = digits().rev().take_while(|&d| d == b'0').count();
    // An exponent that does not fit moves the digits out of range, or behind the decimal point.
    let exponent = exponent.parse::<i64>().ok()?;
    let zeros =
        exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(i64::try_from(trailing).ok()?)?;
    let zeros = u32::try_from(zeros).ok().filter(|&zeros| zeros <= 16)?;
    if all - leading - trailing > 16 {
        return None;
    }
    let significant = digits().skip(leading).take(all - leading - trailing);
    let n = significant.fold(0, |n, d| n * 10 + i64::from(d - b'0')).checked_mul(10_i64.pow(zeros))?;
    (n <= 1 << 53).then_some(if negative { -n } else { n })
}

impl Scan<'_> {
    /// Parses the outermost value: its envelope, or the envelopes of at most `keep` elements.
    fn document(&mut self, found: &mut Found, keep: usize) -> Result<Range<usize>, InvalidKind> {
        self.space();
        let start = self.at;
        if self.text.get(start) != Some(&b'[') {
            return self.envelope(&mut found.outer);
        }
        self.at += 1;
        let batch = found.batch.insert(Elements::default());
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
            while let Some(key) = self.member(first)? {
                first = false;
                let key = &self.text[key];
                let slot = found.slot(key).map(|slot| slot.is_some());
                let value = self.value(1)?;
                match (slot, found.slot(key)) {
                    (Some(false), Some(slot)) => *slot = Some(value),
                    (Some(true), _) => found.duplicate = true,
                    _ => {}
                }
            }
        } else {
            self.value(0)?;
        }
        found.lone = self.lone;
        Ok(start..self.at)
    }
}
