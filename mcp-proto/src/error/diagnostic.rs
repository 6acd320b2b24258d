//! What an engine dropped, ignored or rejected, as events with stable codes.

use crate::peer_text::{Visible, beginning};
use crate::redact::Url;
use crate::rpc::{ErrorObject, Object, code};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

/// The engine dropped something of the peer, ignored it, or answered it with an error. It does none
/// of these without a diagnostic. A diagnostic by itself never ends a connection. Its `Display` has
/// [escapes](crate::error#text-of-a-peer).
#[derive(Clone, PartialEq, Debug)]
pub struct Diagnostic {
    /// The kind, which has a stable code.
    pub kind: DiagnosticKind,
    /// The subject: a method, an id, the head of a line. For people; neither redacted nor escaped.
    pub detail: String,
    /// The event stream that it is about, for a client over HTTP.
    pub stream: Option<StreamPlace>,
}

/// A position in an event stream.
#[derive(Clone, PartialEq, Eq)]
pub struct StreamPlace {
    /// The URL of the stream.
    pub url: Arc<str>,
    /// The last event id so far.
    pub last_event: Option<Arc<str>>,
}

impl fmt::Debug for StreamPlace {
    /// Masks credentials in the query.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("StreamPlace");
        shown.field("url", &Url(&self.url)).field("last_event", &self.last_event).finish()
    }
}

/// Maximum length of the detail of a diagnostic, in bytes.
const MAX_DETAIL: usize = 1 << 10;

impl Diagnostic {
    /// Creates a diagnostic, with at most the first 1 KiB of the detail: a queued diagnostic must
    /// not hold a long text of the peer.
    pub fn new(kind: DiagnosticKind, detail: impl Into<String>) -> Self {
        let mut detail = detail.into();
        if detail.len() > MAX_DETAIL {
            detail = beginning(&detail, MAX_DETAIL).into();
        }
        Self { kind, detail, stream: None }
    }

    /// Returns it as an error of JSON-RPC, for a program that passes on what happened. Its code is
    /// `-32700` for bytes that are not a message, `-32601` for an unknown method, `-32602` for bad
    /// params, and otherwise `-32603`. Its message is the `Display` of the diagnostic, and
    /// `data.code` the code of its kind. [`error_response`](crate::rpc::error_response) makes a
    /// message of it.
    ///
    /// ```
    /// use mcp_proto::error::{Diagnostic, DiagnosticKind};
    ///
    /// let error = Diagnostic::new(DiagnosticKind::BadMessage, "Listening on 80").to_rpc_error();
    /// assert_eq!(error.code, -32700);
    /// assert_eq!(error.data.unwrap().as_str(), r#"{"code":"bad-message"}"#);
    /// ```
    pub fn to_rpc_error(&self) -> ErrorObject {
        let code = match self.kind {
            DiagnosticKind::BadMessage => code::PARSE_ERROR,
            DiagnosticKind::UnknownMethod => code::METHOD_NOT_FOUND,
            DiagnosticKind::BadParams => code::INVALID_PARAMS,
            _ => code::INTERNAL_ERROR,
        };
        let data = Object::new().with("code", self.kind.code()).to_json();
        ErrorObject::new(code, format!("{self}")).with_data(data)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.kind.code(), Visible(&self.detail), self.kind.action())?;
        let Some(StreamPlace { url, last_event }) = &self.stream else { return Ok(()) };
        write!(f, "; on the stream of {}", Url(url))?;
        last_event.as_ref().map_or(Ok(()), |id| write!(f, " after the event {}", Visible(id)))
    }
}

/// The kinds of [`Diagnostic`], each with a code that never changes. The third column says what the
/// engine emits it about, the fourth what the engine did ([`action`](Self::action)).
///
/// | code | kind | subject | action |
/// |---|---|---|---|
/// | `bad-message` | `BadMessage` | bytes that are not a JSON-RPC message | skipped; answered with an error if the revision allows it |
/// | `denied` | `Denied` | a message that a message hook refused | dropped; its call or its request ended with an error |
/// | `unexpected-batch` | `UnexpectedBatch` | a batch that the revision or the limit does not allow, or `initialize` in a batch | answered with an error, or handled element by element |
/// | `unknown-id` | `UnknownId` | a response to a request that was never sent | the response was ignored |
/// | `late-answer` | `LateAnswer` | a response to a request that has ended | the response was ignored |
/// | `text-id` | `TextId` | a response whose id is a numeric id as a string | matched to the numeric id |
/// | `deviation` | `Deviation` | a form that the specification does not have and whose meaning is certain: a `null` for an absent member, an empty array for an empty object, no version of a program | taken as it is meant |
/// | `redirected` | `Redirected` | a response that redirects a request of the client | followed: the request goes to the other URL |
/// | `idless-error` | `IdlessError` | an error response without an id | ignored: it ends no call |
/// | `unknown-method` | `UnknownMethod` | a request or a notification of an unknown method | answered with -32601, or the notification was ignored |
/// | `unexpected-request` | `UnexpectedRequest` | a request of the server on 2026-07-28 or before negotiation | ignored, or answered with -32600 |
/// | `unexpected-response` | `UnexpectedResponse` | a response of a kind that the revision or the HTTP status rules out | ignored, or answered with -32600 |
/// | `unknown-progress` | `UnknownProgress` | progress of an unknown progress token | ignored |
/// | `stale-progress` | `StaleProgress` | progress that does not increase | ignored |
/// | `bad-params` | `BadParams` | params without the shape of their method | answered with -32602, or the notification was ignored |
/// | `unknown-cancel` | `UnknownCancel` | a cancellation of a request that is not running | ignored |
/// | `long-id` | `LongId` | an id or a progress token longer than [`FrameLimits::max_id`](crate::limits::FrameLimits::max_id) | the request was answered with -32600; a progress token or a cancellation was ignored |
/// | `out-of-place` | `OutOfPlace` | a part that the connection cannot send at this point | the part was not written |
/// | `duplicate-request-id` | `DuplicateRequestId` | a request with an id that was used before | the later request was answered with -32600 |
/// | `too-many-requests` | `TooManyRequests` | a request beyond a limit, or during a shutdown | answered with -32603 |
/// | `too-many-inputs` | `TooManyInputs` | a request for input beyond a limit | answered with an error |
/// | `missing-capability` | `MissingCapability` | a request for input that the client does not support | answered with an error |
/// | `bad-state` | `BadState` | a `requestState` that the server did not seal, or that has expired | answered with -32602 |
/// | `before-initialize` | `BeforeInitialize` | a legacy request before `initialize` | answered with -32600 |
/// | `second-initialize` | `SecondInitialize` | a second `initialize` in a session | answered with -32600 |
/// | `http-defect` | `BadRequest` | an HTTP request that violates HTTP, the transport or a limit | answered with the status, or aborted if a response had begun |
/// | `header-mismatch` | `HeaderMismatch` | header fields that contradict the message | answered with -32020 |
/// | `foreign-host` | `ForeignHost` | a host or an origin that is not allowed | answered with 403: `ServerConfig::hosts` does not allow it |
/// | `unknown-content-type` | `UnknownContentType` | never emitted: such a call ends with [`CallError::ContentType`](crate::CallError::ContentType) | the call failed |
/// | `bad-event` | `BadEvent` | a part that the exchange cannot have | skipped |
/// | `write-stalled` | `WriteStalled` | a peer that accepts no byte, or reads no response | the exchange was aborted |
/// | `handler-deadline` | `HandlerDeadline` | a handler that exceeded its deadline | answered with -32603 |
/// | `stuck-handlers` | `StuckHandlers` | threads for handlers of a server that are all in use and do not become free | the requests that waited for one were answered with -32603 |
/// | `dropped-notification` | `DroppedNotification` | a notification that cannot be delivered | dropped |
/// | `late-bytes` | `LateBytes` | bytes after the HTTP response | ignored; the connection was closed |
/// | `fell-back-to-legacy` | `FellBackToLegacy` | a server that failed the probe with `server/discover` | `initialize` was sent |
/// | `fell-back-to-sse` | `FellBackToSse` | a server that refused Streamable HTTP | the stream of HTTP+SSE was opened |
/// | `ask-timeout` | `AskTimeout` | a client that did not provide input in time | the requests for input were cancelled; their request was answered with -32603 |
/// | `unknown-exchange` | `UnknownExchange` | an event of an exchange that is not open | ignored |
/// | `unsupported-version` | `UnsupportedVersion` | a request of a revision that the server does not support | answered with -32022 |
/// | `handshake-timeout` | `HandshakeTimeout` | a duplex connection without a request | the exchange was aborted |
/// | `too-many-exchanges` | `TooManyExchanges` | an exchange beyond a limit | answered with 503, or aborted |
/// | `recording-ended` | `RecordingEnded` | a recording that cannot continue | nothing more is recorded |
/// | `invalid-tool` | `InvalidTool` | a listed tool that a client must not call | removed from the list |
/// | `invalid-element` | `InvalidElement` | an element of a list, or a block of content, that cannot be decoded | left out of its list; a block of content is delivered as it is |
/// | `refresh-failed` | `RefreshFailed` | a list of tools that the client cannot fetch again | the calls that waited for it ended with their original errors |
/// | `stale-result` | `StaleResult` | a call for a result that the cache has, but expired, and that failed | the expired result was delivered |
/// | `bad-session` | `BadSession` | an HTTP request without a valid session id, or a session id that a client cannot use | a server answered with 400 or 404; a client did not use the id |
/// | `listener-off` | `ListenerOff` | a server without notifications outside of calls, or with a failed stream for them | calls continue without them |
/// | `bad-subscription` | `BadSubscription` | a notification of no subscription, or a server that accepts only a part of one | the notification was ignored, or the subscription was reduced |
/// | `control-event` | `ControlEvent` | a server-sent event of a type that the protocol does not define | ignored |
/// | `bad-endpoint` | `BadEndpoint` | an `endpoint` event that names no usable URL | the stream was closed |
/// | `dropped-response` | `DroppedResponse` | a response to the server that cannot be delivered | dropped: the server does not receive the response |
/// | `dropped-answer` | `DroppedAnswer` | a response to a client that has disconnected | dropped: the client cannot resume |
/// | `missing-structure` | `MissingStructure` | a result without `structuredContent` of a tool with an output schema | sent with `isError`: its tool declares an output schema |
/// | `long-event-id` | `LongEventId` | an event id that is too long | not kept: the client does not resume the stream from this event |
/// | `level-refused` | `LevelRefused` | a server that refuses `logging/setLevel` | the client drops the messages below the level itself |
/// | `dropped-log` | `DroppedLog` | log messages of a request whose client does not read | dropped |
/// | `unknown-elicitation` | `UnknownElicitation` | the completion of a web page that the server has not named, or that is complete | ignored |
/// | `insecure-url` | `InsecureUrl` | a web page for the user without `https`, outside of this computer | the user is asked |
/// | `invalid-input-request` | `InvalidInputRequest` | a request for input of a handler that violates the protocol | not sent; its request was answered with -32603 |
/// | `schema-mismatch` | `SchemaMismatch` | a result that does not match the output schema of its tool | a server sent it with `isError`; a client delivered it |
/// | `bad-schema` | `BadSchema` | a schema of a tool that cannot be used to validate | a server answered the call with -32603; a client delivered the result unchecked |
/// | `misplaced-response` | `MisplacedResponse` | HTTP+SSE: a response in the body of a POST, which belongs on the stream | taken |
/// | `expired-access` | `ExpiredAccess` | a request on a connection whose token has expired, and which ends after the calls that run | answered with -32603 |
/// | `false-coding` | `FalseCoding` | a body whose `Content-Encoding` is no coding: `none` or `utf-8` | read as it is |
/// | `not-admitted` | `NotAdmitted` | a connection that the application did not admit | the connection was closed unserved |
/// | `issuer-unavailable` | `IssuerUnavailable` | an authorization server of a server that verifies tokens, which does not answer, or not as it should | requests with its tokens are answered with 503 while no keys are known |
/// | `store-unreachable` | `StoreUnreachable` | a store that does not carry out a request of this server | tried again: until then the other nodes do not know what this one says |
/// | `unsafe-store` | `UnsafeStore` | a store that may drop what servers keep in it | used as it is |
/// | `record-corrupt` | `RecordCorrupt` | a record of another server in the store that this version cannot read | ignored: its session counts as unknown |
/// | `fenced` | `Fenced` | a stream of this server that another one of the store writes now, or whose events the store has lost | cut off: its client resumes it, or learns that its request is lost |
/// | `node-lost` | `NodeLost` | a server of the store whose lease has ended | its requests were answered with -32603 |
/// | `node-lapsed` | `NodeLapsed` | a lease of this server that the store has not kept | joined the store as another node |
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the table describes them")]
pub enum DiagnosticKind {
    BadMessage,
    Denied,
    UnexpectedBatch,
    UnknownId,
    LateAnswer,
    TextId,
    Deviation,
    IdlessError,
    Redirected,
    UnknownMethod,
    UnexpectedRequest,
    UnexpectedResponse,
    UnknownProgress,
    StaleProgress,
    BadParams,
    UnknownCancel,
    LongId,
    OutOfPlace,
    DuplicateRequestId,
    TooManyRequests,
    TooManyInputs,
    MissingCapability,
    BadState,
    BeforeInitialize,
    SecondInitialize,
    BadRequest,
    HeaderMismatch,
    ForeignHost,
    UnknownContentType,
    BadEvent,
    WriteStalled,
    HandlerDeadline,
    StuckHandlers,
    DroppedNotification,
    LateBytes,
    FellBackToLegacy,
    FellBackToSse,
    AskTimeout,
    UnknownExchange,
    UnsupportedVersion,
    HandshakeTimeout,
    TooManyExchanges,
    RecordingEnded,
    InvalidTool,
    InvalidElement,
    RefreshFailed,
    StaleResult,
    BadSession,
    ListenerOff,
    BadSubscription,
    ControlEvent,
    BadEndpoint,
    DroppedResponse,
    DroppedAnswer,
    MissingStructure,
    LongEventId,
    LevelRefused,
    DroppedLog,
    UnknownElicitation,
    InsecureUrl,
    InvalidInputRequest,
    NotAdmitted,
    IssuerUnavailable,
    StoreUnreachable,
    UnsafeStore,
    RecordCorrupt,
    Fenced,
    NodeLost,
    NodeLapsed,
    SchemaMismatch,
    BadSchema,
    MisplacedResponse,
    FalseCoding,
    ExpiredAccess,
}

impl DiagnosticKind {
    /// Returns the stable code.
    pub const fn code(self) -> &'static str {
        self.row().0
    }

    /// Returns what the engine did.
    pub const fn action(self) -> &'static str {
        self.row().1
    }

    const fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::BadMessage => ("bad-message", "skipped; answered with an error if the revision allows it"),
            Self::Denied => ("denied", "dropped; its call or its request ended with an error"),
            Self::UnexpectedBatch => ("unexpected-batch", "answered with an error, or handled element by element"),
            Self::UnknownId => ("unknown-id", "the response was ignored"),
            Self::LateAnswer => ("late-answer", "the response was ignored"),
            Self::TextId => ("text-id", "matched to the numeric id"),
            Self::Deviation => ("deviation", "taken as it is meant"),
            Self::Redirected => ("redirected", "followed: the request goes to the other URL"),
            Self::IdlessError => ("idless-error", "ignored: it ends no call"),
            Self::UnknownMethod => ("unknown-method", "answered with -32601, or the notification was ignored"),
            Self::UnexpectedRequest => ("unexpected-request", "ignored, or answered with -32600"),
            Self::UnexpectedResponse => ("unexpected-response", "ignored, or answered with -32600"),
            Self::UnknownProgress => ("unknown-progress", "ignored"),
            Self::StaleProgress => ("stale-progress", "ignored"),
            Self::BadParams => ("bad-params", "answered with -32602, or the notification was ignored"),
            Self::UnknownCancel => ("unknown-cancel", "ignored"),
            Self::LongId => {
                ("long-id", "the request was answered with -32600; a progress token or a cancellation was ignored")
            }
            Self::OutOfPlace => ("out-of-place", "the part was not written"),
            Self::DuplicateRequestId => ("duplicate-request-id", "the later request was answered with -32600"),
            Self::TooManyRequests => ("too-many-requests", "answered with -32603"),
            Self::TooManyInputs => ("too-many-inputs", "answered with an error"),
            Self::MissingCapability => ("missing-capability", "answered with an error"),
            Self::BadState => ("bad-state", "answered with -32602"),
            Self::BeforeInitialize => ("before-initialize", "answered with -32600"),
            Self::SecondInitialize => ("second-initialize", "answered with -32600"),
            Self::BadRequest => ("http-defect", "answered with the status, or aborted if a response had begun"),
            Self::HeaderMismatch => ("header-mismatch", "answered with -32020"),
            Self::ForeignHost => ("foreign-host", "answered with 403: `ServerConfig::hosts` does not allow it"),
            Self::UnknownContentType => ("unknown-content-type", "the call failed"),
            Self::BadEvent => ("bad-event", "skipped"),
            Self::WriteStalled => ("write-stalled", "the exchange was aborted"),
            Self::HandlerDeadline => ("handler-deadline", "answered with -32603"),
            Self::StuckHandlers => ("stuck-handlers", "the requests that waited for one were answered with -32603"),
            Self::DroppedNotification => ("dropped-notification", "dropped"),
            Self::LateBytes => ("late-bytes", "ignored; the connection was closed"),
            Self::FellBackToLegacy => ("fell-back-to-legacy", "`initialize` was sent"),
            Self::FellBackToSse => ("fell-back-to-sse", "the stream of HTTP+SSE was opened"),
            Self::AskTimeout => {
                ("ask-timeout", "the requests for input were cancelled; their request was answered with -32603")
            }
            Self::UnknownExchange => ("unknown-exchange", "ignored"),
            Self::UnsupportedVersion => ("unsupported-version", "answered with -32022"),
            Self::HandshakeTimeout => ("handshake-timeout", "the exchange was aborted"),
            Self::TooManyExchanges => ("too-many-exchanges", "answered with 503, or aborted"),
            Self::InvalidTool => ("invalid-tool", "removed from the list"),
            Self::InvalidElement => {
                ("invalid-element", "left out of its list; a block of content is delivered as it is")
            }
            Self::RefreshFailed => ("refresh-failed", "the calls that waited for it ended with their original errors"),
            Self::StaleResult => ("stale-result", "the expired result was delivered"),
            Self::RecordingEnded => ("recording-ended", "nothing more is recorded"),
            Self::BadSession => ("bad-session", "a server answered with 400 or 404; a client did not use the id"),
            Self::ListenerOff => ("listener-off", "calls continue without them"),
            Self::BadSubscription => {
                ("bad-subscription", "the notification was ignored, or the subscription was reduced")
            }
            Self::ControlEvent => ("control-event", "ignored"),
            Self::BadEndpoint => ("bad-endpoint", "the stream was closed"),
            Self::DroppedAnswer => ("dropped-answer", "dropped: the client cannot resume"),
            Self::MissingStructure => ("missing-structure", "sent with `isError`: its tool declares an output schema"),
            Self::LongEventId => ("long-event-id", "not kept: the client does not resume the stream from this event"),
            Self::LevelRefused => ("level-refused", "the client drops the messages below the level itself"),
            Self::DroppedLog => ("dropped-log", "dropped"),
            Self::UnknownElicitation => ("unknown-elicitation", "ignored"),
            Self::InsecureUrl => ("insecure-url", "the user is asked"),
            Self::InvalidInputRequest => ("invalid-input-request", "not sent; its request was answered with -32603"),
            Self::NotAdmitted => ("not-admitted", "the connection was closed unserved"),
            Self::StoreUnreachable => {
                ("store-unreachable", "tried again: until then the other nodes do not know what this one says")
            }
            Self::UnsafeStore => ("unsafe-store", "used as it is"),
            Self::RecordCorrupt => ("record-corrupt", "ignored: its session counts as unknown"),
            Self::Fenced => ("fenced", "cut off: its client resumes it, or learns that its request is lost"),
            Self::NodeLost => ("node-lost", "its requests were answered with -32603"),
            Self::NodeLapsed => ("node-lapsed", "joined the store as another node"),
            Self::IssuerUnavailable => {
                ("issuer-unavailable", "requests with its tokens are answered with 503 while no keys are known")
            }
            Self::SchemaMismatch => ("schema-mismatch", "a server sent it with `isError`; a client delivered it"),
            Self::BadSchema => {
                ("bad-schema", "a server answered the call with -32603; a client delivered the result unchecked")
            }
            Self::MisplacedResponse => ("misplaced-response", "taken"),
            Self::FalseCoding => ("false-coding", "read as it is"),
            Self::ExpiredAccess => ("expired-access", "answered with -32603"),
            Self::DroppedResponse => ("dropped-response", "dropped: the server does not receive the response"),
        }
    }
}
