//! Why bytes are not a message.

use super::{Id, code};
use crate::peer_text::Visible;
use alloc::string::String;
use bytes::Bytes;
use core::fmt;

/// Bytes that are not a message, and what could be parsed of them. The bytes around them are not
/// affected.
#[derive(Clone, PartialEq, Debug)]
pub struct InvalidMessage {
    /// The reason.
    pub kind: InvalidKind,
    /// A valid top-level id, if it precedes the fault, so that the request with this id can be
    /// answered or ended.
    pub id: Option<Id>,
    /// Whether a top-level `method` precedes the fault. The id is then one of the peer's requests,
    /// not one of this side's.
    pub has_method: bool,
    /// A copy of the first bytes, at most [`InvalidMessage::HEAD`].
    pub head: Bytes,
    /// What a [malformed error](InvalidKind::BadError) says, at most
    /// [`InvalidMessage::ERROR_TEXT`] bytes: the text that it is, its code and its message, or its
    /// JSON.
    pub error_text: Option<String>,
}

impl InvalidMessage {
    /// Maximum number of bytes in `head`.
    pub const HEAD: usize = 8 << 10;

    /// Maximum number of bytes in `error_text`.
    pub const ERROR_TEXT: usize = 1 << 10;

    /// Creates an invalid message without an id.
    pub fn new(kind: InvalidKind, bytes: &[u8]) -> Self {
        let head = Bytes::copy_from_slice(&bytes[..bytes.len().min(Self::HEAD)]);
        Self { kind, id: None, has_method: false, head, error_text: None }
    }

    /// Returns whether it would be a notification, if its params were an object. Nothing answers a
    /// notification, whatever its params are.
    pub(crate) fn is_notification(&self) -> bool {
        self.kind == InvalidKind::BadParams && self.has_method && self.id.is_none()
    }
}

impl fmt::Display for InvalidMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.as_str())?;
        match &self.error_text {
            Some(text) => write!(f, ": {}", Visible(text)),
            None => Ok(()),
        }
    }
}

impl core::error::Error for InvalidMessage {}

/// The reason why bytes are not a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum InvalidKind {
    /// Not UTF-8.
    Utf8,
    /// Not JSON: a syntax error, a NUL, a byte-order mark inside the stream, a number out of
    /// grammar, or bytes after the value.
    Syntax,
    /// JSON cut short by the end of the input.
    Truncated,
    /// A string with an escaped surrogate that lacks its pair: valid JSON, but not Unicode text.
    LoneSurrogate,
    /// Nested deeper than [`FrameLimits::max_depth`](crate::limits::FrameLimits::max_depth).
    TooDeep,
    /// Larger than the limit of its frame.
    TooLong,
    /// JSON, but neither an object nor an array.
    NotAnObject,
    /// An array without elements.
    EmptyBatch,
    /// An array with more elements than
    /// [`FrameLimits::max_batch`](crate::limits::FrameLimits::max_batch).
    BatchTooLong,
    /// An array inside an array, or where the revision has none.
    UnexpectedBatch,
    /// A key of the envelope occurs twice.
    DuplicateKey,
    /// `jsonrpc` is missing or not "2.0".
    NotJsonRpc,
    /// `id` is `null` on a request, a fraction, beyond 64 bits, or of another type.
    BadId,
    /// `method` is not a string.
    BadMethod,
    /// `params` is neither an object nor `null` nor an empty array.
    BadParams,
    /// `error` has no integer `code` or no string `message`.
    BadError,
    /// Both a method and a result or error, or both a result and an error.
    Ambiguous,
    /// A result without an id.
    MissingId,
    /// Neither a method nor a result nor an error.
    Shapeless,
    /// A message that a [`MessageHook`](crate::hook::MessageHook) refused. The head is the reason.
    Denied,
}

impl InvalidKind {
    /// Returns one sentence in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Utf8 => "the message is not utf-8",
            Self::Syntax => "the message is not json",
            Self::Truncated => "the message is cut short",
            Self::LoneSurrogate => "a string holds a lone surrogate",
            Self::TooDeep => "the message is nested too deeply",
            Self::TooLong => "the message is longer than the limit",
            Self::NotAnObject => "the message is not an object",
            Self::EmptyBatch => "the batch is empty",
            Self::BatchTooLong => "the batch has too many elements",
            Self::UnexpectedBatch => "a batch is not allowed here",
            Self::DuplicateKey => "a key of the envelope occurs twice",
            Self::NotJsonRpc => "`jsonrpc` is not \"2.0\"",
            Self::BadId => "the id is neither a string nor a 64-bit integer",
            Self::BadMethod => "the method is not a string",
            Self::BadParams => "the params are not an object",
            Self::BadError => "the error lacks an integer code or a message",
            Self::Ambiguous => "the message is both a request and an answer, or both a result and an error",
            Self::MissingId => "the answer has no id",
            Self::Denied => "the message was refused",
            Self::Shapeless => "the message has neither a method nor a result nor an error",
        }
    }

    /// Returns the error code of the response: `-32700` for invalid JSON, `-32602` for invalid
    /// params, `-32603` for a refused message, `-32600` otherwise.
    pub const fn code(self) -> i64 {
        match self {
            Self::Utf8 | Self::Syntax | Self::Truncated | Self::LoneSurrogate | Self::TooDeep | Self::TooLong => {
                code::PARSE_ERROR
            }
            Self::BadParams => code::INVALID_PARAMS,
            Self::Denied => code::INTERNAL_ERROR,
            _ => code::INVALID_REQUEST,
        }
    }
}
