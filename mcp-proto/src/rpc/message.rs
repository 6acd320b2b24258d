//! Messages, and why bytes are not a message.

use super::RawJson;
use crate::peer_text::Visible;
use alloc::string::String;
use bytes::Bytes;
use core::fmt;

/// The id of a request on the wire: a string or an integer (JSON-RPC 2.0 section 4, and MCP, which
/// forbids `null`). A response contains it with the same JSON type and value. Integers beyond
/// ±(2^53 - 1) are exact here, but a peer that represents numbers as IEEE 754 doubles (JavaScript)
/// rounds them and responds with another id (RFC 8259 section 6). The engines create no such ids.
/// `1.0` and `1e0` are the integer 1. Fractions, integers beyond the signed 64-bit range and other
/// types are an [`InvalidKind::BadId`].
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

/// One well-formed message.
#[derive(Clone, PartialEq, Debug)]
pub enum Message {
    /// It has a method and an id, and always gets a response.
    Request(Request),
    /// It has a method and no id, and never gets a response.
    Notification(Notification),
    /// It has an id, and either a result or an error.
    Response(Response),
    /// An error without an id, or with the id `null`. It belongs to the connection and not to a
    /// request.
    Error(ErrorObject),
}

/// A request, as received.
#[derive(Clone, PartialEq, Debug)]
pub struct Request {
    /// Its id.
    pub id: Id,
    /// Its method, unescaped.
    pub method: String,
    /// Its params, a JSON object. `None` if absent or `null`.
    pub params: Option<RawJson>,
}

/// A notification, as received.
#[derive(Clone, PartialEq, Debug)]
pub struct Notification {
    /// Its method, unescaped.
    pub method: String,
    /// Its params, a JSON object. `None` if absent or `null`.
    pub params: Option<RawJson>,
}

/// A response, as received.
#[derive(Clone, PartialEq, Debug)]
pub struct Response {
    /// The id of its request.
    pub id: Id,
    /// The result, which may be any JSON value, or the error.
    pub payload: Payload,
}

/// The payload of a response.
#[derive(Clone, PartialEq, Debug)]
pub enum Payload {
    /// The `result` member.
    Result(RawJson),
    /// The `error` member.
    Error(ErrorObject),
}

/// The error codes that the specification defines.
pub mod code {
    /// The bytes are not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// JSON, but not a message.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The method does not exist or is not available.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The params are invalid.
    pub const INVALID_PARAMS: i64 = -32602;
    /// An internal error of the responder.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// 2026-07-28: a header field is missing, malformed, or contradicts the body.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// 2026-07-28: the request needs a client capability that it did not declare.
    pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
    /// 2026-07-28: the requested revision is not supported.
    pub const UNSUPPORTED_VERSION: i64 = -32022;
}

/// A JSON-RPC error object. Its `Display` is `MCP error <code>: <message>`, with
/// [escapes](crate::error#text-of-a-peer).
#[derive(Clone, PartialEq, Debug)]
pub struct ErrorObject {
    /// The code. [`code`] has the meanings of the reserved range.
    pub code: i64,
    /// One sentence. Neither redacted nor escaped.
    pub message: String,
    /// Further information.
    pub data: Option<RawJson>,
}

impl ErrorObject {
    /// Creates an error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Sets the data.
    #[must_use]
    pub fn with_data(mut self, data: RawJson) -> Self {
        self.data = Some(data);
        self
    }
}

impl fmt::Display for ErrorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MCP error {}: {}", self.code, Visible(&self.message))
    }
}

impl core::error::Error for ErrorObject {}

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
}

impl InvalidMessage {
    /// Maximum number of bytes in `head`.
    pub const HEAD: usize = 8 << 10;

    /// Creates an invalid message without an id.
    pub fn new(kind: InvalidKind, bytes: &[u8]) -> Self {
        let head = Bytes::copy_from_slice(&bytes[..bytes.len().min(Self::HEAD)]);
        Self { kind, id: None, has_method: false, head }
    }

    /// Returns the error for the response, where one is due.
    pub fn to_error(&self) -> ErrorObject {
        ErrorObject::new(self.kind.code(), self.kind.as_str())
    }
}

impl fmt::Display for InvalidMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.as_str())
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
    /// `params` is neither an object nor `null`.
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
