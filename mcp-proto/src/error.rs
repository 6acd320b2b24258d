//! Errors: of a command ([`RefusedCommand`]), of a call ([`CallError`]), of the peer
//! ([`Diagnostic`]), of a connection ([`Closed`]). All are `Clone + PartialEq`. Match on variants,
//! not on texts.
//!
//! # Text of a peer
//!
//! Errors and diagnostics contain texts of the peer: messages, method names, header fields, the
//! standard error of a program. A terminal interprets some characters in them, and a line end
//! forges an entry of a log. Every `Display` of this crate therefore writes control characters (C0,
//! DEL, C1), line ends (U+2028 and U+2029 included), bidirectional controls and invisible
//! characters (of no width, such as U+200B, and the others that Unicode says to ignore) as escapes,
//! such as `\n` and `\u{9b}`. Fields hold the text as received. Print a field by itself with
//! [`escaped`].

mod diagnostic;
mod excerpt;
mod http;
mod negotiation;

pub use diagnostic::{Diagnostic, DiagnosticKind, StreamPlace};
pub(crate) use excerpt::excerpt;
pub use http::{AuthHints, HttpError};
pub use negotiation::{NegotiationCause, NegotiationError, RefusedAttempt, Stage, StartFailure};

#[cfg(test)]
pub(crate) mod tests;

pub use crate::exchange::{AuthError, Problem, TriedUrl, UrlFault};
use crate::exchange::{Closed, Sent};
use crate::peer_text::Visible;
use crate::rpc::{DecodeError, EncodeError, ErrorObject, Id, Object, code};
use crate::schema::{BadSchema, Mismatch};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::time::Duration;

/// Returns the [text of a peer](self#text-of-a-peer) with escapes, to print it.
///
/// ```
/// assert_eq!(mcp_proto::error::escaped("a\u{1b}[2J").to_string(), r"a\u{1b}[2J");
/// ```
pub fn escaped(text: &str) -> impl fmt::Display {
    Visible(text)
}

/// A refused command. Nothing has changed, and `value` is the input.
#[derive(Clone, PartialEq, Debug)]
pub struct RefusedCommand<T> {
    /// The refused input.
    pub value: T,
    /// The reason.
    pub why: Refusal,
}

impl<T> RefusedCommand<T> {
    /// Maps the refused input.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> RefusedCommand<U> {
        RefusedCommand { value: f(self.value), why: self.why }
    }
}

impl<T> fmt::Display for RefusedCommand<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<T: fmt::Debug> core::error::Error for RefusedCommand<T> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.why)
    }
}

/// Why a command was refused.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Refusal {
    /// A limit is reached. Retry when a call has ended or bytes were written.
    Full,
    /// The engine was closed, or has terminated.
    Closed,
    /// The request no longer runs: it was answered or cancelled, or its exchange ended.
    Gone,
    /// The client did not ask for it: progress without a token, a log message without a level or
    /// below the level. Or a handler may not send this method: [`Cx::notify`](crate::Cx::notify)
    /// lists them.
    NotWanted,
    /// Progress that does not increase.
    NotIncreasing,
    /// Serialization of the params failed.
    Unencodable(EncodeError),
    /// The configuration may open its connection a second time, which a connection that is open
    /// already does not allow.
    NotReopenable,
    /// The dialect of the client can only call tools: [`Dialect`](crate::Dialect),
    /// [`WsDialect`](crate::WsDialect).
    NotInDialect,
    /// The client only makes fetches: [`ClientConfig::fetcher`](crate::ClientConfig::fetcher).
    NoServer,
    /// The task is not of this server, or the client does not take tasks
    /// ([`attach`](crate::tasks::attach)).
    OtherServer,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("a limit is reached"),
            Self::Closed => f.write_str("the engine is closed"),
            Self::Gone => f.write_str("the request is no longer running"),
            Self::NotWanted => f.write_str("the request does not allow it"),
            Self::NotIncreasing => f.write_str("progress must increase"),
            Self::Unencodable(e) => e.fmt(f),
            Self::NoServer => f.write_str("the client has no server"),
            Self::OtherServer => f.write_str("the task is of another server"),
            Self::NotInDialect => f.write_str("the dialect can only call tools"),
            Self::NotReopenable => f.write_str("a connection that is open already cannot be opened again"),
        }
    }
}

impl core::error::Error for Refusal {}

/// Why a call failed. Every call ends with exactly one result or error. Its `Display` has
/// [escapes](self#text-of-a-peer).
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum CallError {
    /// The server responded with this error. The engine never creates one itself.
    Rpc(ErrorObject),
    /// No response arrived in time. The time starts with the call, and includes the wait before the
    /// request was sent. The call may have run, unless `sent` is `No`.
    Timeout {
        /// The limit that was reached.
        after: Duration,
        /// Whether the request can have reached the server.
        sent: Sent,
        /// The wait that timed out.
        awaited: WaitReason,
    },
    /// The application cancelled it. It may have run.
    Cancelled {
        /// The application's reason.
        reason: Option<String>,
    },
    /// The connection ended first.
    Closed {
        /// Whether the request can have reached the server.
        sent: Sent,
        /// How the connection ended.
        why: Closed,
    },
    /// The server ended the HTTP response without a JSON-RPC response, and resuming the stream
    /// failed.
    NoResponse {
        /// The id of the request.
        #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
        id: Id,
        /// Attempts to resume the stream of the response since it last delivered a message.
        attempts: u32,
        /// Whether the HTTP response contained a JSON-RPC message.
        any_message: bool,
        /// How the last attempt ended, or the HTTP response if there was no attempt.
        cause: StreamEnd,
    },
    /// The server responded with an HTTP status other than 2xx, and without a JSON-RPC error for
    /// this request.
    Http(Box<HttpError>),
    /// The server responded with 2xx, but with neither JSON nor an event stream, or with an empty
    /// body.
    ContentType {
        /// The status.
        status: u16,
        /// The `Content-Type`. `None` if there is none, or if it is JSON and the body is empty.
        content_type: Option<String>,
    },
    /// The session ended while the call waited for its response (2025-11-25 transports, session
    /// management: a 404). The call may have run. A call whose own response is that 404 has not
    /// run, and the engine repeats it in the next session.
    SessionEnded,
    /// The result cannot be decoded.
    Decode(DecodeError),
    /// Negotiation failed, and the request was never sent.
    Negotiation(NegotiationError),
    /// The server requested input that this client did not declare, or that the application
    /// refused.
    Input(ErrorObject),
    /// The server requires that the user opens a web page first (`-32042`), and the user did not
    /// consent. A later call asks again.
    NoConsent {
        /// Whether the user declined. Otherwise the user dismissed the request without a decision.
        declined: bool,
    },
    /// The server requested input again after
    /// [`ClientLimits::max_rounds`](crate::limits::ClientLimits::max_rounds) rounds.
    TooManyRounds(u32),
    /// The list has more pages than
    /// [`ClientLimits::max_pages`](crate::limits::ClientLimits::max_pages), or than the maximum
    /// given to [`Pages::new`](crate::call::Pages::new).
    TooManyPages(usize),
    /// The engine refused the command. Nothing was sent.
    Refused(Refusal),
    /// The client sent a request of this call, and cannot serialize the next one, which would
    /// repeat or continue the call. The call may have run.
    NotRepeated(EncodeError),
    /// The client validates results of tools
    /// ([`ClientConfig::validate`](crate::ClientConfig::validate)), and rejected this one. The tool
    /// has run.
    InvalidResult(InvalidResult),
    /// The result was a task, and the server does not know it any more. The call may have run.
    TaskLost {
        /// The id of the task.
        id: String,
    },
    /// A [`MessageHook`](crate::hook::MessageHook) refused the request (`sent` is `No`) or the
    /// response.
    Denied {
        /// Whether the request can have reached the server.
        sent: Sent,
        /// The reason of the hook.
        reason: String,
    },
}

/// Why the result of a tool is not valid. Its `Display` has [escapes](self#text-of-a-peer).
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum InvalidResult {
    /// Its structured content does not match the output schema of the tool.
    Mismatch(Mismatch),
    /// It has no structured content, although the tool has an output schema.
    NoStructure,
    /// The output schema of the tool cannot be used, so that nothing is known of the result.
    Schema(BadSchema),
    /// It has no content, which this client
    /// [requires](crate::client::ResultValidation::require_content).
    NoContent,
}

impl fmt::Display for InvalidResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mismatch(mismatch) => write!(f, "the result does not match its schema: {mismatch}"),
            Self::NoStructure => f.write_str("the tool has an output schema, and the result no structured content"),
            Self::Schema(bad) => write!(f, "the output schema of the tool cannot be used: {bad}"),
            Self::NoContent => f.write_str("the result has no content"),
        }
    }
}

impl core::error::Error for InvalidResult {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Mismatch(mismatch) => Some(mismatch),
            Self::Schema(bad) => Some(bad),
            Self::NoStructure | Self::NoContent => None,
        }
    }
}

/// The wait of a call that timed out.
#[derive(Clone, PartialEq, Eq, Debug, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum WaitReason {
    /// The end of negotiation.
    Start,
    /// An HTTP connection:
    /// [`max_connections_per_origin`](crate::limits::FrameLimits::max_connections_per_origin)
    /// were in use, or the one for this request was not open yet.
    Connection,
    /// The end of a [login](crate::auth), for which the request waits.
    Login,
    /// The response of the server, or input of the application.
    Response,
    /// The completion of web pages that the server requires:
    /// [`elicitation_timeout`](crate::limits::ClientLimits::elicitation_timeout).
    Elicitation,
    /// The response, while this callback of the same program waited for something that the driver
    /// does not control, such as real time: `the handler of tools/call boil`. No engine emits it:
    /// it is for a driver of both sides in virtual time, as `mcp_driver::testing::Link`.
    Callback(String),
}

impl CallError {
    /// Returns whether the request can have reached the server. With `No` it is safe to repeat it.
    pub const fn sent(&self) -> Sent {
        match self {
            Self::Timeout { sent, .. } | Self::Closed { sent, .. } | Self::Denied { sent, .. } => *sent,
            Self::Negotiation(_) | Self::Refused(_) => Sent::No,
            _ => Sent::Maybe,
        }
    }

    /// Returns whether the server does not have the resource that `resources/read` names: the error
    /// `-32602` with the URI in its data, as 2026-07-28 has it, or `-32002`, as earlier revisions
    /// have it. A client accepts both from a server of any revision.
    pub fn is_not_found(&self) -> bool {
        let Self::Rpc(error) = self else { return false };
        let names_uri = || {
            let data = error.data.as_ref().and_then(|data| Object::read(data).ok());
            data.is_some_and(|data| data.str("uri").is_some())
        };
        error.code == code::RESOURCE_NOT_FOUND || (error.code == code::INVALID_PARAMS && names_uri())
    }

    /// Returns whether the server does not have the method: the error `-32601`, also in the body of
    /// an HTTP response with an error status.
    pub fn is_method_not_found(&self) -> bool {
        let error = match self {
            Self::Rpc(error) => Some(error),
            Self::Http(http) => http.error.as_ref(),
            _ => None,
        };
        error.is_some_and(|error| error.code == code::METHOD_NOT_FOUND)
    }

    /// Returns why the call has no credentials that the server accepts, if that is why it failed:
    /// its own request, or the negotiation before it. Only with
    /// [`ClientConfig::auth`](crate::ClientConfig::auth).
    pub fn unauthorized(&self) -> Option<&AuthError> {
        match self {
            Self::Closed { why: Closed::Unauthorized(error), .. } => Some(error),
            Self::NoResponse { cause: StreamEnd::Closed(Closed::Unauthorized(error)), .. } => Some(error),
            Self::Negotiation(error) => error.unauthorized(),
            _ => None,
        }
    }

    /// Returns it as an error of JSON-RPC, for a program that passes the result of a call on. An
    /// error of the server stays as it is. Everything else is `-32603`, with an HTTP status as
    /// `data.httpStatus`: 2026-07-28 leaves no other code for it.
    pub fn to_rpc_error(&self) -> ErrorObject {
        match self {
            Self::Rpc(error) | Self::Input(error) => error.clone(),
            Self::Http(error) => error.to_rpc_error(),
            _ => ErrorObject::new(code::INTERNAL_ERROR, format!("{self}")),
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rpc(e) => e.fmt(f),
            Self::Timeout { after, awaited: WaitReason::Connection, .. } => {
                write!(f, "no response within {} ms: the request waited for a connection", after.as_millis())
            }
            Self::Timeout { after, awaited: WaitReason::Login, .. } => {
                write!(f, "no response within {} ms: the request waited for a login", after.as_millis())
            }
            Self::Timeout { after, awaited: WaitReason::Callback(callback), .. } => write!(
                f,
                "no response within {} ms: {} waits for something outside of its driver",
                after.as_millis(),
                Visible(callback)
            ),
            Self::Timeout { after, .. } => write!(f, "no response within {} ms", after.as_millis()),
            Self::Cancelled { reason: Some(reason) } => write!(f, "cancelled: {}", Visible(reason)),
            Self::Cancelled { reason: None } => f.write_str("cancelled"),
            Self::Closed { why, .. } => write!(f, "Transport closed: {why}"),
            Self::NoResponse { id, any_message, attempts, cause } => {
                match any_message {
                    true => write!(f, "No response received for request ID {id}")?,
                    false => f.write_str("No valid JSON-RPC response found in SSE stream")?,
                }
                match (attempts, cause) {
                    (0, StreamEnd::Ended) => Ok(()),
                    (0, cause) => write!(f, ": {cause}"),
                    (1, cause) => write!(f, ": {cause}, after 1 attempt to resume it"),
                    (attempts, cause) => write!(f, ": {cause}, after {attempts} attempts to resume it"),
                }
            }
            Self::Http(e) => e.fmt(f),
            Self::ContentType { status, content_type: Some(kind) } => {
                write!(f, "HTTP {status} with a body of type {kind:?} instead of JSON or an event stream")
            }
            Self::ContentType { status, content_type: None } => write!(f, "HTTP {status} without a response body"),
            Self::SessionEnded => f.write_str("the session has ended"),
            Self::Decode(e) => write!(f, "the result cannot be decoded: {e}"),
            Self::Negotiation(e) => e.fmt(f),
            Self::Input(e) => write!(f, "the server's request for input failed: {}", Visible(&e.message)),
            Self::NoConsent { declined: true } => {
                f.write_str("the user declined the web page that the server requires")
            }
            Self::NoConsent { declined: false } => {
                f.write_str("the user dismissed the web page that the server requires")
            }
            Self::TooManyRounds(1) => f.write_str("the server requested input again after 1 round"),
            Self::TooManyRounds(n) => write!(f, "the server requested input again after {n} rounds"),
            Self::TooManyPages(1) => f.write_str("the list has more than 1 page"),
            Self::TooManyPages(n) => write!(f, "the list has more than {n} pages"),
            Self::Refused(why) => why.fmt(f),
            Self::NotRepeated(e) => write!(f, "a later request of the call cannot be serialized: {e}"),
            Self::InvalidResult(why) => why.fmt(f),
            Self::TaskLost { .. } => f.write_str("the server does not know the task any more"),
            Self::Denied { reason, .. } => write!(f, "refused by the message hook: {}", Visible(reason)),
        }
    }
}

impl core::error::Error for CallError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Rpc(e) | Self::Input(e) => Some(e),
            Self::Closed { why, .. } | Self::NoResponse { cause: StreamEnd::Closed(why), .. } => Some(why),
            Self::Http(e) => Some(&**e),
            Self::Decode(e) => Some(e),
            Self::Negotiation(e) => Some(e),
            Self::Refused(why) => Some(why),
            Self::NotRepeated(e) => Some(e),
            Self::InvalidResult(e) => Some(e),
            _ => None,
        }
    }
}

impl CallError {
    /// Returns the time for which the server asked not to be tried again.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Http(error) => error.retry_after,
            Self::Closed { why, .. } => why.retry_after(),
            Self::NoResponse { cause, .. } => cause.retry_after(),
            Self::Negotiation(error) => error.retry_after(),
            _ => None,
        }
    }
}

impl From<DecodeError> for CallError {
    fn from(e: DecodeError) -> Self {
        Self::Decode(e)
    }
}

/// How an event stream, or an attempt to resume it, ended.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum StreamEnd {
    /// The server ended the stream.
    Ended,
    /// The connection ended.
    Closed(Closed),
    /// The server responded to the attempt with an HTTP status that is not a success.
    Status {
        /// The status.
        status: u16,
        /// The `Retry-After` field, as sent (RFC 9110 section 10.2.3). `None` if there is none, or
        /// if it is a date.
        retry_after: Option<Duration>,
    },
    /// The server responded to the attempt with something other than an event stream.
    ContentType(Option<String>),
    /// The server responded to `subscriptions/listen` with this error.
    Error(ErrorObject),
    /// The stream was silent for its maximum time.
    Idle,
}

impl StreamEnd {
    /// Returns the time for which the server asked not to be tried again.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            Self::Closed(why) => why.retry_after(),
            Self::Ended | Self::ContentType(_) | Self::Error(_) | Self::Idle => None,
        }
    }
}

impl fmt::Display for StreamEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("the stream ended"),
            Self::Closed(why) => why.fmt(f),
            Self::Status { status, retry_after: None } => write!(f, "HTTP {status}"),
            Self::Status { status, retry_after: Some(after) } => {
                write!(f, "HTTP {status} [retry after {} s]", after.as_secs())
            }
            Self::ContentType(Some(kind)) => write!(f, "a response of type {kind:?} instead of an event stream"),
            Self::ContentType(None) => f.write_str("a response without a type instead of an event stream"),
            Self::Error(error) => error.fmt(f),
            Self::Idle => f.write_str("the stream was silent for too long"),
        }
    }
}
