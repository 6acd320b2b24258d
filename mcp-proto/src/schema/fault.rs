//! Why a schema cannot be used, and why a value does not match one. Both may contain text of a
//! peer, so they hold a bounded part of it.

use crate::peer_text::{Visible, beginning};
use crate::rpc::DecodeError;
use alloc::string::{String, ToString};
use core::fmt;

/// Maximum length of each text in these errors, in bytes.
const MAX_TEXT: usize = 512;

/// Why no value can be validated under a schema. Its `Display` has
/// [escapes](crate::error#text-of-a-peer).
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum BadSchema {
    /// `$schema` names a dialect that is not supported.
    Dialect(String),
    /// A reference leads out of the schema, or to nothing in it. Nothing is fetched.
    Reference(String),
    /// Schemas apply each other to the same value without end. The text is the JSON Pointer of one
    /// of them.
    Cycle(String),
    /// The schema exceeds a limit.
    Limit(SchemaLimit),
    /// The schema is not valid in its dialect.
    Invalid {
        /// The JSON Pointer of the part that is not valid.
        path: String,
        /// The reason.
        why: String,
    },
    /// The validator panicked.
    Panicked,
}

/// The limits of a schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum SchemaLimit {
    /// The length of its text.
    Size,
    /// The depth of its nesting.
    Depth,
    /// The number of JSON values in it.
    Nodes,
    /// The number of its regular expressions.
    Patterns,
    /// The length of a regular expression.
    PatternSize,
    /// The length of the JSON Pointers and URIs of its schemas.
    Locations,
    /// The number of JSON values that are compiled for it, or of schemas that are compiled for each
    /// other in a row.
    Compiled,
    /// The number of schemas that it applies to one value.
    Work,
}

/// Why a value does not match a schema. Its `Display` has
/// [escapes](crate::error#text-of-a-peer).
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct Mismatch {
    path: String,
    why: String,
}

impl Mismatch {
    /// Creates a mismatch of the value at this JSON Pointer (RFC 6901), with at most the first 512
    /// bytes of each text. The empty path is the whole value.
    pub fn new(path: impl AsRef<str>, why: impl AsRef<str>) -> Self {
        Self { path: beginning(path.as_ref(), MAX_TEXT).into(), why: beginning(why.as_ref(), MAX_TEXT).into() }
    }

    /// Returns the JSON Pointer of the part that does not match. The empty text is the whole value.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the reason.
    pub fn why(&self) -> &str {
        &self.why
    }
}

impl BadSchema {
    /// Creates an error about the part of a schema at this JSON Pointer, with at most the first 512
    /// bytes of each text.
    pub fn invalid(path: impl AsRef<str>, why: impl AsRef<str>) -> Self {
        let Mismatch { path, why } = Mismatch::new(path, why);
        Self::Invalid { path, why }
    }

    /// Creates an error about this reference, with at most the first 512 bytes.
    pub fn reference(to: impl AsRef<str>) -> Self {
        Self::Reference(beginning(to.as_ref(), MAX_TEXT).into())
    }

    /// Creates an error about the schema at this JSON Pointer, with at most its first 512 bytes.
    pub fn cycle(path: impl AsRef<str>) -> Self {
        Self::Cycle(beginning(path.as_ref(), MAX_TEXT).into())
    }

    /// Creates an error about this dialect, with at most the first 512 bytes.
    pub fn dialect(name: impl AsRef<str>) -> Self {
        Self::Dialect(beginning(name.as_ref(), MAX_TEXT).into())
    }
}

impl From<DecodeError> for BadSchema {
    fn from(e: DecodeError) -> Self {
        Self::invalid("", e.to_string())
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => Visible(&self.why).fmt(f),
            path => write!(f, "{} (at {})", Visible(&self.why), Visible(path)),
        }
    }
}

impl core::error::Error for Mismatch {}

impl fmt::Display for BadSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dialect(dialect) => write!(f, "the dialect {} is not supported", Visible(dialect)),
            Self::Reference(to) => write!(f, "the reference {} leads out of the schema or to nothing", Visible(to)),
            Self::Cycle(path) => {
                write!(f, "the schema at `{}` applies itself to the same value without end", Visible(path))
            }
            Self::Limit(limit) => limit.fmt(f),
            Self::Invalid { path, why } if path.is_empty() => Visible(why).fmt(f),
            Self::Invalid { path, why } => write!(f, "{} (at {})", Visible(why), Visible(path)),
            Self::Panicked => f.write_str("the validator panicked"),
        }
    }
}

impl core::error::Error for BadSchema {}

impl fmt::Display for SchemaLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Size => "the schema is too long",
            Self::Depth => "the schema is nested too deep",
            Self::Nodes => "the schema has too many values",
            Self::Patterns => "the schema has too many regular expressions",
            Self::PatternSize => "a regular expression of the schema is too long",
            Self::Locations => "the names and URIs of the schema are too long for the number of schemas below them",
            Self::Compiled => "the schema is too costly to compile",
            Self::Work => "the schema applies too many schemas to one value",
        })
    }
}
