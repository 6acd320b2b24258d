//! JSON that was checked once and is carried as bytes from then on.

use super::scan;
use super::{InvalidKind, InvalidMessage};
use crate::peer_text::Visible;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// One JSON value as text. It is valid UTF-8 and valid JSON, no deeper than 128, without lone surrogates, and holds no CR and no LF, so
/// that it can be framed by line and by `data:` as it is. Cloning shares the bytes.
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
    /// Takes one JSON value as it is, white space around it removed.
    ///
    /// # Errors
    /// A [`InvalidMessage`] if the bytes are not one JSON value, or hold a CR or LF (pretty-printed JSON; serialise it compactly).
    pub fn parse(bytes: impl Into<Bytes>) -> Result<Self, InvalidMessage> {
        let bytes = bytes.into();
        let value = scan::value(&bytes).map_err(|kind| InvalidMessage::new(kind, &bytes))?;
        let value = bytes.slice(value);
        if memchr::memchr2(b'\r', b'\n', &value).is_some() {
            return Err(InvalidMessage::new(InvalidKind::Syntax, &bytes));
        }
        Ok(Self(value))
    }

    /// Serialises `value`, once.
    ///
    /// # Errors
    /// [`EncodeError`] if the value's own `Serialize` fails, or it is nested deeper than 128.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Self, EncodeError> {
        let bytes = serde_json::to_vec(value).map_err(|e| EncodeError(e.to_string()))?;
        Self::parse(bytes).map_err(|d| EncodeError(d.to_string()))
    }

    /// Reads it as a `T`.
    ///
    /// # Errors
    /// [`DecodeError`] with what serde says of the mismatch.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, DecodeError> {
        serde_json::from_slice(&self.0).map_err(|e| DecodeError::new(e.to_string()))
    }

    /// Bytes that are already known to keep the promise of this type.
    pub(crate) fn trusted(bytes: Bytes) -> Self {
        // Depth is not promised here: what was checked on its own may be nested into something larger. Its reader checks again.
        debug_assert!(
            match scan::value(&bytes) {
                Ok(range) => range.len() == bytes.len(),
                Err(kind) => kind == InvalidKind::TooDeep,
            },
            "{bytes:?}"
        );
        Self(bytes)
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The JSON text as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The JSON text as shared bytes.
    pub fn to_bytes(&self) -> Bytes {
        self.0.clone()
    }

    /// The same in bytes of its own, for what is kept longer than the message that it came in.
    pub(crate) fn detached(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }

    /// `null`.
    pub const fn null() -> Self {
        Self(Bytes::from_static(b"null"))
    }

    /// `{}`.
    pub const fn empty_object() -> Self {
        Self(Bytes::from_static(b"{}"))
    }

    /// The value as an [`Id`](super::Id): a string, or a number that is an integer of 64 bits or, in any other spelling (`42.0`), one up to
    /// 2^53. `None` for anything else.
    pub(crate) fn id(&self) -> Option<super::Id> {
        scan::id(self)
    }

    /// The type of the value.
    pub fn kind(&self) -> JsonKind {
        JsonKind::of(self.0.first().copied())
    }
}

impl JsonKind {
    /// The type of a checked value that begins so.
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
        Self(value.to_string().into())
    }
}

impl From<u64> for RawJson {
    fn from(value: u64) -> Self {
        Self(value.to_string().into())
    }
}

impl From<&str> for RawJson {
    fn from(value: &str) -> Self {
        let mut out = Vec::with_capacity(value.len() + 2);
        super::write::string(&mut out, value);
        Self(out.into())
    }
}

impl From<&super::Id> for RawJson {
    fn from(id: &super::Id) -> Self {
        match id {
            super::Id::Int(n) => Self::from(*n),
            super::Id::Text(s) => Self::from(s.as_str()),
        }
    }
}

impl fmt::Debug for RawJson {
    /// The JSON text, with [escapes](crate::error#text-of-a-peer).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Visible(self.as_str()), f)
    }
}

/// A value could not be written as JSON: its `Serialize` refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EncodeError(String);

impl EncodeError {
    /// An error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl EncodeError {
    /// Why, without what the display says before it.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot be written as json: {}", Visible(&self.0))
    }
}

impl core::error::Error for EncodeError {}

/// JSON that is not of the expected shape. Its `Display` has [escapes](crate::error#text-of-a-peer).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DecodeError(String);

impl DecodeError {
    /// An error with this text.
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
