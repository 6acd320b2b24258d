//! JSON that was validated once and is then carried as bytes.

use super::grammar::{self, MAX_DEPTH, Scan};
use super::members::Layout;
use super::object::Inner;
use super::value::Write;
use super::{Id, InvalidKind, InvalidMessage, LARGE, Object, encode};
use crate::peer_text::{Visible, is_escaped};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use core::hash::{Hash, Hasher};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// One JSON value as text: valid UTF-8 and valid JSON, nested at most 128 deep, without lone
/// surrogates, and without CR and LF, so that it can be framed by line and by `data:` unchanged.
/// Cloning shares the bytes.
///
/// ```
/// use mcp_proto::RawJson;
///
/// let json = RawJson::parse(r#"{"sum":3,"unit":"m"}"#)?;
/// assert_eq!(json.get("sum").map(|sum| sum.decode::<i64>()), Some(Ok(3)));
/// assert_eq!(json.to_string(), r#"{"sum":3,"unit":"m"}"#);
/// # Ok::<(), mcp_proto::rpc::InvalidMessage>(())
/// ```
///
/// It serializes as the value, and not as a string. [`encode`](Self::encode) and what uses it, such
/// as [`Call::arguments`](crate::Call::arguments), keep the text of a `RawJson` unchanged. Inside
/// another value, and in any other serializer, its numbers become those of serde: integers of up to
/// 128 bits unchanged, all others as the closest double. A number beyond the range of doubles is an
/// error. A format that is not human-readable gets the text as a string.
#[derive(Clone)]
pub struct RawJson(Repr);

#[derive(Clone)]
enum Repr {
    Text(Bytes),
    /// An object whose members are known.
    Object(Arc<Inner>),
}

/// The type of a JSON value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names are those of RFC 8259")]
pub enum JsonKind {
    Object,
    Array,
    String,
    Number,
    Bool,
    Null,
}

impl RawJson {
    /// Validates one JSON value, and removes white space around it.
    ///
    /// # Errors
    /// An [`InvalidMessage`] if the bytes are not one JSON value, or contain a CR or LF (indented
    /// JSON; serialize it compactly).
    pub fn parse(bytes: impl Into<Bytes>) -> Result<Self, InvalidMessage> {
        let bytes = bytes.into();
        let range = grammar::value(&bytes).map_err(|kind| InvalidMessage::new(kind, &bytes))?;
        if memchr::memchr2(b'\r', b'\n', &bytes[range.clone()]).is_some() {
            return Err(InvalidMessage::new(InvalidKind::Syntax, &bytes));
        }
        Ok(Self::of_text(if range.len() == bytes.len() { bytes } else { bytes.slice(range) }))
    }

    /// Like [`parse`](Self::parse), of text with line ends between its tokens.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_indented(text: &[u8]) -> Result<Self, InvalidMessage> {
        // A JSON string contains none.
        let space = |byte: &u8| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte };
        Self::parse(text.iter().map(space).collect::<Vec<u8>>())
    }

    /// Serializes `value`, once.
    ///
    /// # Errors
    /// [`EncodeError`] if the `Serialize` of the value fails, or if it is nested deeper than 128.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Self, EncodeError> {
        Self::parse(encode::to_vec(value)?).map_err(|d| EncodeError(d.to_string()))
    }

    /// Like [`encode`](Self::encode). Finds the members of an object in the pass that checks it.
    pub(super) fn encode_object<T: Serialize + ?Sized>(value: &T) -> Result<Self, EncodeError> {
        let bytes = encode::to_vec(value)?;
        let mut layout = Layout::default();
        let object = |scan: &mut Scan<'_>| match scan.text.first() == Some(&b'{') {
            true => Ok(scan.members(&mut layout, usize::MAX, |scan| scan.value(1))? && !scan.breaks),
            false => Ok(false),
        };
        match grammar::whole(&bytes, object) {
            Ok(true) => Ok(Self::with_layout(bytes.into(), Some(layout))),
            // Not an object, or not to be framed: it says which.
            Ok(false) | Err(_) => Self::parse(bytes).map_err(|d| EncodeError(d.to_string())),
        }
    }

    /// Decodes it as a `T`.
    ///
    /// # Errors
    /// [`DecodeError`] with the message of serde.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, DecodeError> {
        serde_json::from_slice(self.as_bytes()).map_err(|e| DecodeError::new(e.to_string()))
    }

    /// Writes a value.
    fn of(value: &(impl Write + ?Sized)) -> Self {
        let mut text = Vec::with_capacity(value.json_len());
        value.write_json(&mut text);
        Self::of_text(text.into())
    }

    const fn of_text(text: Bytes) -> Self {
        Self(Repr::Text(text))
    }

    /// Wraps the text of a value, and what a pass over it has found if it is an object.
    pub(super) fn with_layout(text: Bytes, layout: Option<Layout>) -> Self {
        match layout.filter(|layout| !layout.is_empty()) {
            Some(layout) => Self(Repr::Object(Arc::new(Inner::new(text, layout)))),
            None => Self::trusted(text),
        }
    }

    /// Returns the members, if they are known.
    pub(super) const fn members(&self) -> Option<&Arc<Inner>> {
        match &self.0 {
            Repr::Text(_) => None,
            Repr::Object(inner) => Some(inner),
        }
    }

    /// Returns the members, if they are known, without sharing them.
    pub(super) fn into_members(self) -> Result<Arc<Inner>, Self> {
        match self.0 {
            Repr::Text(text) => Err(Self::of_text(text)),
            Repr::Object(inner) => Ok(inner),
        }
    }

    /// Wraps bytes that are known to meet the requirements of this type.
    pub(crate) fn trusted(bytes: Bytes) -> Self {
        // Except for the depth: a validated value may be part of a larger one. Its reader checks
        // the depth again.
        debug_assert!(
            match grammar::value(&bytes) {
                Ok(range) => range.len() == bytes.len(),
                Err(kind) => kind == InvalidKind::TooDeep,
            },
            "{bytes:?}"
        );
        Self::of_text(bytes)
    }

    /// Returns the JSON text.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// Returns the JSON text as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Text(text) => text,
            Repr::Object(inner) => inner.bytes(),
        }
    }

    /// Returns the JSON text as shared bytes.
    pub fn to_bytes(&self) -> Bytes {
        match &self.0 {
            Repr::Text(text) => text.clone(),
            Repr::Object(inner) => inner.to_bytes(),
        }
    }

    /// Returns a copy that does not share bytes, for values that outlive their message.
    pub(crate) fn detached(&self) -> Self {
        Self::of_text(Bytes::copy_from_slice(self.as_bytes()))
    }

    /// Returns a value that shares no text with the message that it was parsed from.
    pub(crate) fn alone(self) -> Self {
        // The parser has copied a small one.
        if self.as_bytes().len() < LARGE { self } else { self.detached() }
    }

    /// `null`.
    pub const fn null() -> Self {
        Self::of_text(Bytes::from_static(b"null"))
    }

    /// `{}`.
    pub const fn empty_object() -> Self {
        Self::of_text(Bytes::from_static(b"{}"))
    }

    /// Returns the value as an [`Id`]: a string, a 64-bit integer, or an integer up to
    /// 2^53 in any other notation (`42.0`). `None` for any other value.
    pub(crate) fn id(&self) -> Option<Id> {
        Id::read(self.as_bytes())
    }

    /// Returns the elements of a JSON array. Empty for any other value.
    pub(crate) fn elements(&self) -> impl Iterator<Item = Self> + use<> {
        let (bytes, mut next) = (self.to_bytes(), None);
        core::iter::from_fn(move || {
            let mut scan = Scan::new(&bytes, MAX_DEPTH);
            match next {
                Some(at) => scan.at = at,
                None => scan.open(b'[').then_some(())?,
            }
            scan.element(next.is_none()).ok()?.then_some(())?;
            let value = scan.skip().ok()?;
            next = Some(scan.at);
            Some(Self::trusted(bytes.slice(value)))
        })
    }

    /// Returns the string at the end of an object that is written as `head`, this string and `}`.
    /// `None` for any other form, of the same object too: a reader takes this as a short cut.
    pub(crate) fn last_string(&self, head: &str) -> Option<&[u8]> {
        let string = self.as_bytes().strip_prefix(head.as_bytes())?.strip_suffix(b"}")?;
        let first = Scan::new(string, MAX_DEPTH).skip().ok()?;
        (string.starts_with(b"\"") && first == (0..string.len())).then_some(string)
    }

    /// Returns whether it is an array without elements: the empty object of a language that has no
    /// other empty collection, where only an object can be meant.
    pub(crate) fn is_empty_array(&self) -> bool {
        is_empty_array(self.as_bytes())
    }

    /// Returns the type of the value.
    pub fn kind(&self) -> JsonKind {
        JsonKind::of(self.as_bytes().first().copied())
    }

    /// Returns a member of an object, unchanged. `None` without such a member, and for any other
    /// value. Each call reads the object: for several members, use [`Object::read`].
    pub fn get(&self, key: &str) -> Option<Self> {
        Object::read(self).ok()?.get(key)
    }
}

impl PartialEq for RawJson {
    /// Compares the texts.
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for RawJson {}

impl Hash for RawJson {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl JsonKind {
    /// Returns the type of a validated value by its first byte.
    pub(super) const fn of(first: Option<u8>) -> Self {
        match first {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b'"') => Self::String,
            Some(b't' | b'f') => Self::Bool,
            Some(b'n') => Self::Null,
            _ => Self::Number,
        }
    }
}

impl From<bool> for RawJson {
    fn from(value: bool) -> Self {
        Self::of_text(Bytes::from_static(if value { b"true" } else { b"false" }))
    }
}

impl From<i64> for RawJson {
    fn from(value: i64) -> Self {
        Self::of(&value)
    }
}

impl From<u64> for RawJson {
    fn from(value: u64) -> Self {
        Self::of(&value)
    }
}

impl From<&str> for RawJson {
    fn from(value: &str) -> Self {
        Self::of(value)
    }
}

impl From<&Id> for RawJson {
    fn from(id: &Id) -> Self {
        Self::of(id)
    }
}

impl From<Vec<RawJson>> for RawJson {
    fn from(elements: Vec<RawJson>) -> Self {
        Self::of(&elements)
    }
}

impl fmt::Display for RawJson {
    /// Writes the JSON text, to be shown: characters that a terminal obeys, which only a string can
    /// contain, are written as escapes of JSON such as `\u009b`. The value is the same.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.as_str();
        // A tab is white space between tokens: a string has none.
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| *c != '\t' && is_escaped(*c)) {
            f.write_str(&rest[..at])?;
            c.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(f, "\\u{unit:04x}"))?;
            rest = &rest[at + c.len_utf8()..];
        }
        f.write_str(rest)
    }
}

impl fmt::Debug for RawJson {
    /// Writes the JSON text, with [escapes](crate::error#text-of-a-peer).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Visible(self.as_str()), f)
    }
}

/// Returns whether a validated value is an array without elements.
pub(super) fn is_empty_array(value: &[u8]) -> bool {
    value.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")).is_some_and(|inner| inner.trim_ascii().is_empty())
}

/// A value cannot be serialized as JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct EncodeError(String);

impl EncodeError {
    /// Creates an error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot be written as json: {}", Visible(&self.0))
    }
}

impl core::error::Error for EncodeError {}

/// JSON without the expected shape. Its `Display` has [escapes](crate::error#text-of-a-peer).
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct DecodeError(String);

impl DecodeError {
    /// Creates an error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns it as the error of a value that this member holds.
    pub(crate) fn within(self, key: &str) -> Self {
        Self(alloc::format!("`{key}`: {}", self.0))
    }

    /// Returns the member that cannot be decoded: the key with which an error about a member
    /// begins. `None` if the value as a whole cannot be decoded.
    pub(crate) fn member(&self) -> Option<&str> {
        self.0.strip_prefix('`')?.split_once('`').map(|(key, _)| key)
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Visible(&self.0).fmt(f)
    }
}

impl core::error::Error for DecodeError {}
