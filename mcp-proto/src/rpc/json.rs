//! JSON that was validated once and is then carried as bytes.

use super::grammar::{self, MAX_DEPTH, Scan};
use super::members::Member;
use super::value::Write;
use super::{Id, InvalidKind, InvalidMessage, LARGE};
use crate::peer_text::Visible;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// One JSON value as text: valid UTF-8 and valid JSON, nested at most 128 deep, without lone
/// surrogates, and without CR and LF, so that it can be framed by line and by `data:` unchanged.
/// Cloning shares the bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawJson(Bytes);

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
        Ok(Self(if range.len() == bytes.len() { bytes } else { bytes.slice(range) }))
    }

    /// Serializes `value`, once.
    ///
    /// # Errors
    /// [`EncodeError`] if the `Serialize` of the value fails, or if it is nested deeper than 128.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Self, EncodeError> {
        let bytes = serde_json::to_vec(value).map_err(|e| EncodeError(e.to_string()))?;
        Self::parse(bytes).map_err(|d| EncodeError(d.to_string()))
    }

    /// Decodes it as a `T`.
    ///
    /// # Errors
    /// [`DecodeError`] with the message of serde.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, DecodeError> {
        serde_json::from_slice(&self.0).map_err(|e| DecodeError::new(e.to_string()))
    }

    /// Writes a value.
    fn of(value: &(impl Write + ?Sized)) -> Self {
        let mut text = Vec::with_capacity(value.json_len());
        value.write_json(&mut text);
        Self(text.into())
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
        Self(bytes)
    }

    /// Returns the JSON text.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Returns the JSON text as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the JSON text as shared bytes.
    pub fn to_bytes(&self) -> Bytes {
        self.0.clone()
    }

    /// Returns a copy that does not share bytes, for values that outlive their message.
    pub(crate) fn detached(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }

    /// Returns a value that shares no text with the message that it was parsed from.
    pub(crate) fn alone(&self) -> Self {
        // The parser has copied a small one.
        if self.0.len() < LARGE { self.clone() } else { self.detached() }
    }

    /// `null`.
    pub const fn null() -> Self {
        Self(Bytes::from_static(b"null"))
    }

    /// `{}`.
    pub const fn empty_object() -> Self {
        Self(Bytes::from_static(b"{}"))
    }

    /// Returns the value as an [`Id`]: a string, a 64-bit integer, or an integer up to
    /// 2^53 in any other notation (`42.0`). `None` for any other value.
    pub(crate) fn id(&self) -> Option<Id> {
        Id::read(&self.0)
    }

    /// Returns a member of a JSON object. `None` for any other value.
    pub(crate) fn member(&self, key: &str) -> Option<Self> {
        let mut scan = Scan::new(&self.0, MAX_DEPTH);
        let (mut found, mut first) = (None, true);
        if !scan.open(b'{') {
            return None;
        }
        while let Ok(Some(range)) = scan.member(first) {
            first = false;
            let Ok(value) = scan.skip() else { break };
            let member = Member::new(range, value.clone());
            if member.name(&self.0) == key {
                found = Some(value);
            }
        }
        found.map(|value| Self::trusted(self.0.slice(value)))
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

    /// Returns the type of the value.
    pub fn kind(&self) -> JsonKind {
        JsonKind::of(self.0.first().copied())
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
        Self(Bytes::from_static(if value { b"true" } else { b"false" }))
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

impl fmt::Debug for RawJson {
    /// Writes the JSON text, with [escapes](crate::error#text-of-a-peer).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Visible(self.as_str()), f)
    }
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
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Visible(&self.0).fmt(f)
    }
}

impl core::error::Error for DecodeError {}
