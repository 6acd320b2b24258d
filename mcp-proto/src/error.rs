//! What can go wrong, sorted by whose fault it is: ours (`Refused`), the call's (`CallError`), the peer's (`Diagnostic`), the link's
//! (`Closed`, in `exchange`). All are `Clone + PartialEq`; match on variants, not on texts.
//!
//! # Text of a peer
//!
//! Errors and diagnostics hold texts that the peer chose: messages, method names, header fields, the standard error of a program. A
//! terminal obeys some characters in them, and a line end in a log looks like the start of another entry. So every `Display` of this
//! crate writes control characters (C0, DEL, C1), line ends (also U+2028 and U+2029) and controls of bidirectional text as escapes, such
//! as `\n` and `\u{9b}`. All other characters stay. Fields hold the text as it was received; escape it before you print one by itself.

mod excerpt;
mod http;

pub(crate) use excerpt::excerpt;
pub use http::{AuthHints, HttpError};

#[cfg(test)]
mod tests;

use crate::exchange::{Closed, ExitStatus, Sent};
use crate::peer_text::{Visible, write_list};
use crate::rpc::{DecodeError, EncodeError, ErrorObject, Id};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

/// A command was refused: nothing has changed, and here is what was asked.
#[derive(Clone, PartialEq, Debug)]
pub struct Refused<T> {
    /// What was asked, handed back.
    pub value: T,
    /// Why.
    pub why: Refusal,
}

impl<T> Refused<T> {
    /// The same refusal of something else.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Refused<U> {
        Refused { value: f(self.value), why: self.why }
    }
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<T: fmt::Debug> core::error::Error for Refused<T> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.why)
    }
}

/// Why a command was refused.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// A limit is reached; try again when something has ended or was written.
    Full,
    /// The engine was closed, or has terminated.
    Closed,
    /// The request is no longer running: it was answered, cancelled, or its exchange ended.
    Gone,
    /// The request did not ask for it: progress without a token, a log message without a level or below it. Or handlers may not send
    /// notifications of this method: [`Cx::notify`](crate::Cx::notify) lists them.
    NotWanted,
    /// Progress that does not increase.
    NotIncreasing,
    /// The params could not be serialised.
    Unencodable(EncodeError),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("a limit is reached"),
            Self::Closed => f.write_str("the engine is closed"),
            Self::Gone => f.write_str("the request is no longer running"),
            Self::NotWanted => f.write_str("the request did not ask for it"),
            Self::NotIncreasing => f.write_str("progress must increase"),
            Self::Unencodable(e) => e.fmt(f),
        }
    }
}

impl core::error::Error for Refusal {}

/// A call ended badly. Exactly one of this and a result ends every call. Its `Display` has [escapes](self#text-of-a-peer).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum CallError {
    /// The server answered with an error. Never made up locally.
    Rpc(ErrorObject),
    /// No response arrived in time. The time counts from the call, and includes the wait before the request was sent. The call may have run,
    /// unless `sent` is `No`.
    Timeout {
        /// The limit that was reached.
        after: Duration,
        /// Whether the request can have reached the server.
        sent: Sent,
        /// What the call was waiting for at its timeout.
        awaited: Awaited,
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
    /// The server ended its answer without a response in it, and did not go on with it when it was asked to.
    NoResponse {
        /// The id of the request.
        id: Id,
        /// Attempts to resume the stream of the response since it last delivered a message.
        attempts: u32,
        /// Whether anything in the answer was valid JSON-RPC.
        any_message: bool,
        /// How the last attempt ended, or the answer itself if there was none.
        cause: StreamEnd,
    },
    /// The server answered with an HTTP status other than success, and without a JSON-RPC error that names this request.
    Http(Box<HttpError>),
    /// The server answered with success, but with something that is neither JSON nor an event stream, or with nothing at all.
    ContentType {
        /// The status.
        status: u16,
        /// The `Content-Type`; `None` if there is none, or if it is that of JSON and the body is empty.
        content_type: Option<String>,
    },
    /// The session of the server has ended while the answer was awaited (2025-11-25 transports, session management: a 404). It may have
    /// run. A call that was answered so itself has not, and is made again in the next session.
    SessionEnded,
    /// An answer came that cannot be read.
    Decode(DecodeError),
    /// The connection could not be agreed on, so the request was never sent.
    Negotiation(NegotiationError),
    /// The server asked for input that this client did not declare, or that the application refused to give.
    Input(ErrorObject),
    /// The server asked again after the last of [`ClientLimits::max_rounds`](crate::limits::ClientLimits::max_rounds) rounds.
    TooManyRounds(u32),
    /// The list has more pages than [`ClientLimits::max_pages`](crate::limits::ClientLimits::max_pages), or than the maximum given to
    /// [`Pages::new`](crate::call::Pages::new).
    TooManyPages(usize),
    /// The command itself was refused; nothing was sent.
    Refused(Refusal),
    /// The client sent a request of this call, and cannot write a further one, which would repeat or continue the call. It may have run.
    NotRepeated(EncodeError),
    /// A [`MessageHook`](crate::hook::MessageHook) refused the request (`sent` is `No`), or its answer.
    Denied {
        /// Whether the request can have reached the server.
        sent: Sent,
        /// The reason that the hook gave.
        reason: String,
    },
}

/// What a call was waiting for at its timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Awaited {
    /// The end of the negotiation, or of a restart of the server.
    Start,
    /// An HTTP connection: as many as
    /// [`FrameLimits::max_connections_per_origin`](crate::limits::FrameLimits::max_connections_per_origin) allows were in use, or the one for
    /// this request was not open yet.
    Connection,
    /// The response of the server, or the application's answer to a question of the server.
    Response,
}

impl CallError {
    /// Whether the request can have reached the server: `No` means that repeating it is safe.
    pub const fn sent(&self) -> Sent {
        match self {
            Self::Timeout { sent, .. } | Self::Closed { sent, .. } | Self::Denied { sent, .. } => *sent,
            Self::Negotiation(_) | Self::Refused(_) => Sent::No,
            _ => Sent::Maybe,
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rpc(e) => e.fmt(f),
            Self::Timeout { after, awaited: Awaited::Connection, .. } => {
                write!(f, "no response within {} ms: the request waited for a connection", after.as_millis())
            }
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
                    (1, cause) => write!(f, ": {cause}, after 1 attempt to go on with it"),
                    (attempts, cause) => write!(f, ": {cause}, after {attempts} attempts to go on with it"),
                }
            }
            Self::Http(e) => e.fmt(f),
            Self::ContentType { status, content_type: Some(kind) } => {
                write!(f, "HTTP {status} with a body of the type {kind:?}, where JSON or an event stream should be")
            }
            Self::ContentType { status, content_type: None } => write!(f, "HTTP {status} without an answer"),
            Self::SessionEnded => f.write_str("the session has ended"),
            Self::Decode(e) => write!(f, "the answer cannot be read: {e}"),
            Self::Negotiation(e) => e.fmt(f),
            Self::Input(e) => write!(f, "the server's question was not answered: {}", Visible(&e.message)),
            Self::TooManyRounds(1) => f.write_str("the server asked again after 1 round"),
            Self::TooManyRounds(n) => write!(f, "the server asked again after {n} rounds"),
            Self::TooManyPages(1) => f.write_str("the list has more than 1 page"),
            Self::TooManyPages(n) => write!(f, "the list has more than {n} pages"),
            Self::Refused(why) => why.fmt(f),
            Self::NotRepeated(e) => write!(f, "a later request of the call cannot be written: {e}"),
            Self::Denied { reason, .. } => write!(f, "refused by the message hook: {}", Visible(reason)),
        }
    }
}

impl core::error::Error for CallError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Rpc(e) | Self::Input(e) => Some(e),
            Self::Closed { why, .. } | Self::NoResponse { cause: StreamEnd::Closed(why), .. } => Some(why),
            Self::Http(e) => Some(e),
            Self::Decode(e) => Some(e),
            Self::Negotiation(e) => Some(e),
            Self::Refused(why) => Some(why),
            Self::NotRepeated(e) => Some(e),
            _ => None,
        }
    }
}

impl From<DecodeError> for CallError {
    fn from(e: DecodeError) -> Self {
        Self::Decode(e)
    }
}

/// How an event stream, or an attempt to go on with it, ended.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum StreamEnd {
    /// The server ended it in order.
    Ended,
    /// The connection ended.
    Closed(Closed),
    /// The attempt was answered with this HTTP status.
    Status(u16),
    /// The attempt was answered with something that is no event stream.
    ContentType(Option<String>),
    /// The server answered with this error: to the request for a subscription.
    Error(ErrorObject),
    /// Nothing came of it for as long as may be.
    Idle,
}

impl fmt::Display for StreamEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("the stream ended"),
            Self::Closed(why) => why.fmt(f),
            Self::Status(status) => write!(f, "HTTP {status}"),
            Self::ContentType(Some(kind)) => write!(f, "an answer of the type {kind:?} in place of an event stream"),
            Self::ContentType(None) => f.write_str("an answer without a type in place of an event stream"),
            Self::Error(error) => error.fmt(f),
            Self::Idle => f.write_str("nothing came"),
        }
    }
}

/// The two sides could not agree on a revision, or never got so far. Its `Display` has [escapes](self#text-of-a-peer).
#[derive(Clone, PartialEq, Debug)]
pub struct NegotiationError {
    /// What was being tried.
    pub stage: Stage,
    /// What happened.
    pub cause: NegotiationCause,
    /// Time since the start began. In a [`Termination`](crate::client::Termination) it includes the shutdown of the connection, in which a
    /// program is given time to exit by itself.
    pub after: Duration,
    /// How the first process ended, if the server was started a second time
    /// ([`ClientConfig::restart_after_probe`](crate::ClientConfig::restart_after_probe)). Then `cause` is about the second one.
    pub first: Option<Box<StartFailure>>,
}

/// How a process, or the connection to a Unix socket, ended before negotiation had succeeded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StartFailure {
    /// The step during which it ended.
    pub stage: Stage,
    /// How it ended.
    pub why: Closed,
}

/// The step of a negotiation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// The channel was being opened.
    Connect,
    /// `server/discover` was sent.
    Discover,
    /// `initialize` was sent.
    Initialize,
}

/// How a negotiation failed.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum NegotiationCause {
    /// The server answered with an error.
    Rpc(ErrorObject),
    /// The server answered with an HTTP status that says nothing about the era.
    Http(Box<HttpError>),
    /// The server answered something that cannot be read.
    Decode(DecodeError),
    /// The request of this step got no response within this time.
    Timeout(Duration),
    /// The whole start took longer than [`ClientConfig::connect_timeout`](crate::ClientConfig::connect_timeout), which is this time.
    StartTimeout(Duration),
    /// The connection ended.
    Closed(Closed),
    /// The server speaks only these revisions, and the client none of them (or its policy forbids them).
    NoMutualVersion(Vec<String>),
    /// A [`MessageHook`](crate::hook::MessageHook) refused the request or its answer, for this reason.
    Denied(String),
}

impl fmt::Display for NegotiationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed after {} ms: ", self.stage, self.after.as_millis())?;
        match (&self.first, &self.cause) {
            (None, cause) => cause.fmt(f),
            (Some(first), NegotiationCause::Closed(why)) => {
                write!(f, "started twice: {first}, {}", StartFailure { stage: self.stage, why: why.clone() })?;
                let last_words = last_words(why).or_else(|| last_words(&first.why));
                last_words.map_or(Ok(()), |last| write!(f, "; its last words: {}", Visible(last)))
            }
            (Some(first), cause) => write!(f, "{cause}; started twice: {first}"),
        }
    }
}

fn last_words(why: &Closed) -> Option<&str> {
    match why {
        Closed::Exited(status) => status.last_words(),
        _ => None,
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connecting",
            Self::Discover => "server/discover",
            Self::Initialize => "initialize",
        })
    }
}

impl fmt::Display for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Closed::Exited(ExitStatus { code: Some(code), .. }) => write!(f, "exit {code}")?,
            Closed::Exited(ExitStatus { signal: Some(signal), .. }) => write!(f, "signal {signal}")?,
            Closed::Exited(_) => f.write_str("exit")?,
            why => why.fmt(f)?,
        }
        write!(f, " after {}", self.stage)
    }
}

impl fmt::Display for NegotiationCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rpc(e) => e.fmt(f),
            Self::Http(e) => e.fmt(f),
            Self::Decode(e) => e.fmt(f),
            Self::Timeout(limit) => write!(f, "no answer within {} ms", limit.as_millis()),
            Self::StartTimeout(limit) => write!(f, "the start took longer than {} ms", limit.as_millis()),
            Self::Closed(why) => why.fmt(f),
            Self::Denied(reason) => write!(f, "refused by the message hook: {}", Visible(reason)),
            Self::NoMutualVersion(theirs) => {
                f.write_str("no mutual protocol version; the server has ")?;
                write_list(f, theirs.iter().map(String::as_str))
            }
        }
    }
}

impl core::error::Error for NegotiationError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.cause {
            NegotiationCause::Rpc(e) => Some(e),
            NegotiationCause::Http(e) => Some(e),
            NegotiationCause::Decode(e) => Some(e),
            NegotiationCause::Closed(why) => Some(why),
            _ => None,
        }
    }
}

/// Something of the peer's was dropped, ignored or answered with an error. It is never silent, and never ends the connection by itself. Its
/// `Display` has [escapes](self#text-of-a-peer).
#[derive(Clone, PartialEq, Debug)]
pub struct Diagnostic {
    /// What happened; has a stable code.
    pub kind: DiagnosticKind,
    /// What it was about: a method, an id, the head of a line. For people, not for programs; neither redacted nor escaped.
    pub detail: String,
}

/// The longest detail of a diagnostic, in bytes.
const MAX_DETAIL: usize = 1 << 10;

impl Diagnostic {
    /// A diagnostic. Of a detail that is longer than 1 KiB the beginning is kept: what waits for an application must not hold what the
    /// other side made long.
    pub fn new(kind: DiagnosticKind, detail: impl Into<String>) -> Self {
        let mut detail = detail.into();
        if detail.len() > MAX_DETAIL {
            let end = (0..=MAX_DETAIL).rev().find(|at| detail.is_char_boundary(*at)).unwrap_or_default();
            detail = detail[..end].into();
        }
        Self { kind, detail }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.kind.code(), Visible(&self.detail), self.kind.action())
    }
}

/// The kinds of [`Diagnostic`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "`code` and `action` say it")]
pub enum DiagnosticKind {
    BadMessage,
    Denied,
    UnexpectedBatch,
    UnknownId,
    LateAnswer,
    TextId,
    IdlessError,
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
    DroppedNotification,
    LateBytes,
    FellBackToLegacy,
    AskTimeout,
    UnknownExchange,
    UnsupportedVersion,
    HandshakeTimeout,
    TooManyExchanges,
    RecordingEnded,
    InvalidTool,
    RefreshFailed,
    BadSession,
    ListenerOff,
    BadSubscription,
    ControlEvent,
    DroppedResponse,
    DroppedAnswer,
    MissingStructure,
    LongEventId,
    NotAdmitted,
}

impl DiagnosticKind {
    /// The stable code.
    pub const fn code(self) -> &'static str {
        self.row().0
    }

    /// What the engine did.
    pub const fn action(self) -> &'static str {
        self.row().1
    }

    const fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::BadMessage => ("bad-message", "skipped; answered where the revision allows it"),
            Self::Denied => ("denied", "a message hook refused it; whoever waited for it was told"),
            Self::UnexpectedBatch => ("unexpected-batch", "answered with an error or read element by element"),
            Self::UnknownId => ("unknown-id", "the answer was ignored"),
            Self::LateAnswer => ("late-answer", "the answer was ignored"),
            Self::TextId => ("text-id", "matched to the numeric id"),
            Self::IdlessError => ("idless-error", "no call was touched"),
            Self::UnknownMethod => ("unknown-method", "answered -32601, or the notification was ignored"),
            Self::UnexpectedRequest => ("unexpected-request", "ignored: the revision has no such request"),
            Self::UnexpectedResponse => ("unexpected-response", "ignored: the revision has no such answer"),
            Self::UnknownProgress => ("unknown-progress", "ignored"),
            Self::StaleProgress => ("stale-progress", "ignored: it does not increase"),
            Self::BadParams => ("bad-params", "answered -32602, or the notification was ignored"),
            Self::UnknownCancel => ("unknown-cancel", "ignored"),
            Self::LongId => {
                ("long-id", "the request was answered -32600; a progress token or a cancellation was ignored")
            }
            Self::OutOfPlace => ("out-of-place", "the part was not written"),
            Self::DuplicateRequestId => ("duplicate-request-id", "the newcomer was answered -32600"),
            Self::TooManyRequests => ("too-many-requests", "answered -32603"),
            Self::TooManyInputs => ("too-many-inputs", "answered with an error"),
            Self::MissingCapability => ("missing-capability", "answered with an error"),
            Self::BadState => ("bad-state", "answered -32602"),
            Self::BeforeInitialize => ("before-initialize", "answered -32600"),
            Self::SecondInitialize => ("second-initialize", "answered -32600"),
            Self::BadRequest => ("http-defect", "answered with the status, or aborted if an answer had begun"),
            Self::HeaderMismatch => ("header-mismatch", "answered -32020"),
            Self::ForeignHost => ("foreign-host", "answered 403: `ServerConfig::hosts` does not allow it"),
            Self::UnknownContentType => ("unknown-content-type", "the call failed"),
            Self::BadEvent => ("bad-event", "skipped"),
            Self::WriteStalled => ("write-stalled", "the exchange was aborted"),
            Self::HandlerDeadline => ("handler-deadline", "answered -32603"),
            Self::DroppedNotification => ("dropped-notification", "ignored"),
            Self::LateBytes => ("late-bytes", "ignored; the channel was closed"),
            Self::FellBackToLegacy => ("fell-back-to-legacy", "initialize was sent"),
            Self::AskTimeout => ("ask-timeout", "the questions were cancelled, the request answered -32603"),
            Self::UnknownExchange => ("unknown-exchange", "ignored"),
            Self::UnsupportedVersion => ("unsupported-version", "answered -32022"),
            Self::HandshakeTimeout => ("handshake-timeout", "the exchange was aborted"),
            Self::TooManyExchanges => ("too-many-exchanges", "it was answered 503, or aborted"),
            Self::InvalidTool => ("invalid-tool", "left out of the list"),
            Self::RefreshFailed => {
                ("refresh-failed", "the calls that waited for the tools ended with the error that they had")
            }
            Self::RecordingEnded => ("recording-ended", "nothing more is recorded"),
            Self::BadSession => ("bad-session", "a server answered 400 or 404; a client did not use the id"),
            Self::ListenerOff => ("listener-off", "calls go on without it"),
            Self::BadSubscription => {
                ("bad-subscription", "the notification was ignored, or the subscription goes on with less")
            }
            Self::ControlEvent => ("control-event", "ignored: an event of a type that is not the protocol's"),
            Self::DroppedAnswer => ("dropped-answer", "dropped: its client cannot come back for it"),
            Self::MissingStructure => ("missing-structure", "sent with `isError`: its tool declares an output schema"),
            Self::LongEventId => ("long-event-id", "not kept: the stream is not resumed from this event"),
            Self::NotAdmitted => ("not-admitted", "the connection was closed unserved"),
            Self::DroppedResponse => ("dropped-response", "the server does not have our response"),
        }
    }
}
