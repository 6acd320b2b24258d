//! Bytes to messages. One pass checks the text against RFC 8259 and finds the members of the envelope; what they are together is decided
//! by which keys are present (JSON-RPC 2.0 sections 4 and 5), never by their values alone: `null` is a value, not an absence.
//!
//! Where several things are wrong with a message, its [`InvalidKind`] is the first of these that applies:
//!
//! 1. the text: `Utf8`, `Syntax`, `Truncated`, `TooDeep`, whichever is met first in reading order; then `LoneSurrogate`;
//! 2. the outermost value: `NotAnObject`, `EmptyBatch`, `BatchTooLong`, `UnexpectedBatch`;
//! 3. `DuplicateKey`, `NotJsonRpc`, `Ambiguous`, `Shapeless`;
//! 4. a member: `BadMethod`, `BadId`, `MissingId`, `BadParams`, `BadError`.
//!
//! Keys outside the envelope are ignored, twice or once. `params` of an answer are ignored like them.

use super::grammar::{MAX_DEPTH, Scan, unescape};
use super::{ErrorObject, Id, InvalidKind, InvalidMessage, Message, Notification, Payload, RawJson, Request, Response};
use crate::limits::FrameLimits;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Range;

/// Reads one message. White space around it is allowed. Its parts share `bytes`, unless a CR or LF stands between its tokens: then the
/// message is copied without them.
///
/// # Errors
/// A [`InvalidMessage`]. An array is [`InvalidKind::UnexpectedBatch`] (or `EmptyBatch`).
pub fn parse(bytes: Bytes, max_depth: u32) -> Result<Message, InvalidMessage> {
    match read(&bytes, max_depth, None)? {
        Document::Message(message) => Ok(message),
        Document::Batch(_) => Err(InvalidMessage::new(InvalidKind::UnexpectedBatch, &bytes)),
    }
}

/// Reads one message, or an array of them, for the codecs. A fault in the text of an array is a fault of the whole; any other fault, lone
/// surrogates included, only costs its element. Each element may nest as deep as a message that stands alone.
///
/// # Errors
/// A [`InvalidMessage`] of the whole text.
pub fn parse_batch_or_message(bytes: Bytes, limits: &FrameLimits) -> Result<Document, InvalidMessage> {
    read(&bytes, limits.max_depth, Some(limits.max_batch))
}

/// Where the one JSON value in `bytes` stands.
pub(super) fn value(bytes: &[u8]) -> Result<Range<usize>, InvalidKind> {
    let (text, cut) = decoded(bytes);
    let mut scan = Scan::new(text, MAX_DEPTH);
    let found = scan.value(0).and_then(|range| scan.end().map(|()| range));
    let range = coded(found, cut)?;
    if scan.lone { Err(InvalidKind::LoneSurrogate) } else { Ok(range) }
}

/// Hands out the members of a JSON object, keys decoded; of anything else, none.
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

/// The elements of a JSON array; of anything else, none.
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

/// A string, or an integer as [`Id`] defines it; `None` for anything else.
pub(super) fn id(json: &RawJson) -> Option<Id> {
    read_id(json.as_bytes())
}

/// What a text is, read as a whole.
#[derive(Clone, PartialEq, Debug)]
pub enum Document {
    /// One message.
    Message(Message),
    /// An array; each element is a message or what is wrong with it.
    Batch(Vec<Result<Message, InvalidMessage>>),
}

/// `max_batch` is `None` where no array is allowed: then none of its elements is kept.
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
        // Strings hold neither, so all of them stand between tokens.
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

/// The longest prefix that is UTF-8, and what is wrong with what follows it. A character that the end cuts is cut, not wrong.
fn decoded(bytes: &[u8]) -> (&[u8], Option<InvalidKind>) {
    match core::str::from_utf8(bytes) {
        Ok(_) => (bytes, None),
        Err(e) => {
            let kind = if e.error_len().is_some() { InvalidKind::Utf8 } else { InvalidKind::Truncated };
            (&bytes[..e.valid_up_to()], Some(kind))
        }
    }
}

/// Puts the fault of the coding where it belongs in reading order: behind every other fault of the prefix, which itself only looks cut.
fn coded<T>(outcome: Result<T, InvalidKind>, cut: Option<InvalidKind>) -> Result<T, InvalidKind> {
    match (outcome, cut) {
        (Ok(_) | Err(InvalidKind::Truncated), Some(kind)) => Err(kind),
        (outcome, _) => outcome,
    }
}

/// What one pass has found so far; it stays when the pass meets a fault.
#[derive(Default)]
struct Found {
    outer: Envelope,
    batch: Option<Elements>,
}

/// The elements of an array, as many as may be kept, and how many there are.
#[derive(Default)]
struct Elements {
    elements: Vec<(Range<usize>, Envelope)>,
    count: usize,
}

/// Up to so many bytes a text may be kept for a part of it.
const LARGE: usize = 4 << 10;

/// Where the members of the envelope stand in the text.
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
    /// The place of a key of the envelope; escapes in the key are decoded, `"\u006dethod"` is `method`.
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
            // What is a small part of a large text goes on without it: a request may run for long, and counts as what it holds.
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

/// The text of a JSON string; `None` for another value, or if it holds a lone surrogate.
fn read_string(value: &[u8]) -> Option<String> {
    unescape(value.strip_prefix(b"\"")?.strip_suffix(b"\"")?)
}

/// A checked JSON number as an integer: any integer of 64 bits, and any other spelling (`1.0`, `10e-1`) of an integer up to 2^53, which is
/// what a peer that keeps its numbers as doubles can mean exactly. Calculated in decimal: a fraction too small for a double is one still.
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
    // An exponent that does not fit moves the digits out of the range, or behind the point.
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
    /// The outermost value, its envelope or the envelopes of its elements, of which at most `keep` are kept.
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

    /// A value; if it is an object, where the members of the envelope stand.
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
