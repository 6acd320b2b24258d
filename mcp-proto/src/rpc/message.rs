//! Messages.

use super::{Id, InvalidMessage, Object, RawJson};
use crate::peer_text::Visible;
use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt;

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
    pub method: Cow<'static, str>,
    /// Its params, a JSON object. `None` if absent or `null`.
    pub params: Option<RawJson>,
}

/// A notification, as received.
#[derive(Clone, PartialEq, Debug)]
pub struct Notification {
    /// Its method, unescaped.
    pub method: Cow<'static, str>,
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
    /// Whether the peer wrote a member that it has not as `null`: an error beside a result, a
    /// result beside an error, or a method beside either. A writer of messages ignores it.
    pub has_nulls: bool,
}

impl Response {
    /// Creates a response.
    pub const fn new(id: Id, payload: Payload) -> Self {
        Self { id, payload, has_nulls: false }
    }
}

/// The payload of a response.
#[derive(Clone, PartialEq, Debug)]
pub enum Payload {
    /// The `result` member.
    Result(RawJson),
    /// The `error` member.
    Error(ErrorObject),
}

/// A JSON-RPC error object. Its `Display` is `MCP error <code>: <message>`, with
/// [escapes](crate::error#text-of-a-peer).
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct ErrorObject {
    /// The code. [`code`](super::code) has the meanings of the reserved range.
    pub code: i64,
    /// One sentence. Neither redacted nor escaped.
    pub message: String,
    /// Further information.
    #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
    pub data: Option<RawJson>,
}

impl ErrorObject {
    /// Creates an error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Encodes it as the member `error` of a response.
    pub(crate) fn write(&self) -> Object {
        let object = Object::new().with("code", self.code).with("message", self.message.as_str());
        object.with_opt("data", self.data.as_ref())
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

impl InvalidMessage {
    /// Returns the error for the response, where one is due.
    pub fn to_error(&self) -> ErrorObject {
        ErrorObject::new(self.kind.code(), self.kind.as_str())
    }
}
