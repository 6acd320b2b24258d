//! The id of a request.

use super::scalar::{read_integer, read_string};
use alloc::string::String;
use core::fmt;

/// The id of a request on the wire: a string or an integer (JSON-RPC 2.0 section 4, and MCP, which
/// forbids `null`). A response contains it with the same JSON type and value. Integers beyond
/// ±(2^53 - 1) are exact here, but a peer that represents numbers as IEEE 754 doubles (JavaScript)
/// rounds them and responds with another id (RFC 8259 section 6). The engines create no such ids.
/// `1.0` and `1e0` are the integer 1. Fractions, integers beyond the signed 64-bit range and other
/// types are an [`InvalidKind::BadId`](super::InvalidKind::BadId).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id {
    /// A JSON integer.
    Int(i64),
    /// A JSON string. It may be empty.
    Text(String),
}

impl Id {
    /// Returns the size of a string in bytes of UTF-8, and 0 for an integer.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Int(_) => 0,
            Self::Text(text) => text.len(),
        }
    }

    /// Reads an id from a validated JSON value. `None` if it is neither a string nor an integer.
    pub(super) fn read(value: &[u8]) -> Option<Self> {
        match value.first()? {
            b'"' => read_string(value).map(Self::Text),
            _ => read_integer(value).map(Self::Int),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(n) => write!(f, "{n}"),
            Self::Text(s) => write!(f, "{s:?}"),
        }
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<i64> for Id {
    fn from(n: i64) -> Self {
        Self::Int(n)
    }
}

impl From<&str> for Id {
    fn from(s: &str) -> Self {
        Self::Text(s.into())
    }
}
