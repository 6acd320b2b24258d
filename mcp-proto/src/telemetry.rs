//! Telemetry: what an application learns of each call of a client and each request of a server, to
//! make spans and metrics of it. This module makes neither, and has no clock. A
//! [`Span`](crate::span::Span) calls it.

use crate::error::CallError;
use crate::exchange::Sent;
use crate::rpc::Id;
use crate::trace_context::TraceContext;
use crate::version::ProtocolVersion;
use alloc::borrow::Cow;
use alloc::string::ToString;
use alloc::sync::Arc;
use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;

/// Learns of the beginning and the end of every call of a client, and of every request that a
/// server gives to its [`Router`](crate::Router), the requests for lists included. Each beginning
/// has one end. What a server answers without its router, such as `initialize`, `server/discover`
/// and `ping`, has neither, nor has a request of a server to its client.
///
/// A driver calls `began` on the thread of the application that makes the call, before the request
/// is sent, and on a server on the thread that routes the request, which need not be the one that
/// runs the handler. It calls `ended` where the outcome is known: on a client that may be within
/// any function of the client that the application calls, or where it drops a call. The driver
/// holds no lock of its own then; take none that the application holds there. The functions should
/// return soon, since other calls and requests wait too. A panic is caught, and costs only the
/// telemetry.
///
/// It sees neither arguments nor results. The target can be a URI, which may name something
/// private.
pub trait Observe: Send + Sync {
    /// A call or a request begins. Returns the context of its span, or `None` to leave the
    /// context as it is. A client sends it with the call, in place of that of
    /// [`Call::trace`](crate::Call::trace); in the handler of a server,
    /// [`Cx::trace`](crate::Cx::trace) returns it.
    fn began(&self, span: &SpanStart<'_>) -> Option<TraceContext> {
        let _ = span;
        None
    }

    /// It has ended.
    fn ended(&self, span: &SpanEnd<'_>);
}

/// An [`Observe`] for the configuration of clients and servers, which may share one.
///
/// A driver calls it: the engines do not. A program that drives an engine itself uses a
/// [`Span`](crate::span::Span).
///
/// ```
/// use mcp_proto::telemetry::{Observe, SpanEnd, Telemetry};
/// use mcp_proto::Router;
///
/// struct Log;
///
/// impl Observe for Log {
///     fn ended(&self, end: &SpanEnd<'_>) {
///         println!("{} took {:?}: {:?}", end.span.name(), end.duration, end.outcome);
///     }
/// }
///
/// let router = Router::new("calc", "1.0").configure(|config| {
///     config.observe = Some(Telemetry::new(Log));
/// });
/// # drop(router);
/// ```
#[derive(Clone)]
pub struct Telemetry(Arc<Numbered<dyn Observe>>);

struct Numbered<T: ?Sized> {
    /// The last number of a span.
    last: AtomicUsize,
    observe: T,
}

/// The side of a call or a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// A client makes the call.
    Client,
    /// A server answers the request.
    Server,
}

/// How the messages travel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Transport {
    /// As lines, over pipes or a socket.
    Lines,
    /// Over HTTP.
    Http,
    /// Over a WebSocket.
    WebSocket,
}

/// A call or a request at its beginning. On a client all rounds of a call are one span, on a server
/// each round of a request in which its handler runs is one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SpanStart<'a> {
    /// Its number, with which [`Observe::ended`] gets it again. Unique among the calls and requests
    /// of one [`Telemetry`].
    pub id: usize,
    /// The side that this program is on.
    pub side: Side,
    /// The method.
    pub method: &'a str,
    /// What it is about: the name of the tool or the prompt, or the URI of the resource. `None` for
    /// any other method. On a server, a client chooses it: nothing may have that name.
    pub target: Option<Cow<'a, str>>,
    /// The revision. `None` on a client.
    pub revision: Option<ProtocolVersion>,
    /// How its messages travel.
    pub transport: Transport,
    /// The id of the request. `None` on a client.
    pub request: Option<&'a Id>,
    /// Its place in a trace: what [`Call::trace`](crate::Call::trace) has set, or what the client
    /// of a server sent.
    pub trace: Option<TraceContext>,
    /// About the size of the params, in bytes.
    pub bytes: usize,
}

/// A call or a request at its end.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SpanEnd<'a> {
    /// What was known at the beginning.
    pub span: SpanStart<'a>,
    /// The revision. `None` if the call ended before a revision was negotiated.
    pub revision: Option<ProtocolVersion>,
    /// The time since its beginning.
    pub duration: Duration,
    /// How it ended.
    pub outcome: SpanOutcome,
    /// On a client the size of the result, on a server that of the response, in bytes. 0 without
    /// one.
    pub bytes: usize,
}

/// How a call or a request ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum SpanOutcome {
    /// With a result.
    Complete,
    /// The handler asks for input. On a client this is not the end.
    InputRequired,
    /// With a result of a tool that is an error (`isError`).
    ToolError,
    /// With an error of this code in the response.
    Rpc(i64),
    /// It was cancelled. On a server also: its client has left, or its time was over.
    Cancelled,
    /// No response came in time.
    Timeout,
    /// The connection or the session ended first.
    Lost,
    /// This client refused to send it.
    Refused,
    /// The response was not valid, or this client refused it.
    Invalid,
    /// The server refused the HTTP request with this status.
    Http(u16),
    /// Something else, such as a user who refused, or a negotiation that failed.
    Other,
}

impl Telemetry {
    /// Creates the telemetry that calls this.
    pub fn new(observe: impl Observe + 'static) -> Self {
        Self(Arc::new(Numbered { last: AtomicUsize::new(0), observe }))
    }

    /// Returns the number of the next span.
    pub(crate) fn number(&self) -> usize {
        self.0.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Returns what learns of the spans.
    pub(crate) fn observer(&self) -> &dyn Observe {
        &self.0.observe
    }
}

impl SpanStart<'_> {
    /// Returns a name of low cardinality: the method, with the name of the tool or the prompt.
    pub fn name(&self) -> Cow<'_, str> {
        match &self.target {
            Some(target) if self.method != "resources/read" => alloc::format!("{} {target}", self.method).into(),
            _ => Cow::Borrowed(self.method),
        }
    }
}

impl SpanOutcome {
    /// Returns a name of the error, of low cardinality: the value of `error.type` in telemetry.
    /// `None` if it is none.
    pub fn error_type(self) -> Option<Cow<'static, str>> {
        Some(match self {
            Self::Complete | Self::InputRequired => return None,
            Self::Rpc(code) => code.to_string().into(),
            Self::Http(status) => status.to_string().into(),
            Self::ToolError => "tool_error".into(),
            Self::Cancelled => "cancelled".into(),
            Self::Timeout => "timeout".into(),
            Self::Lost => "connection_lost".into(),
            Self::Refused => "refused".into(),
            Self::Invalid => "invalid_response".into(),
            Self::Other => "_OTHER".into(),
        })
    }
}

impl SpanOutcome {
    /// Returns the code of an error in the response.
    pub(crate) const fn code(self) -> Option<i64> {
        match self {
            Self::Rpc(code) => Some(code),
            _ => None,
        }
    }
}

impl From<&CallError> for SpanOutcome {
    fn from(error: &CallError) -> Self {
        match error {
            CallError::Rpc(error) | CallError::Input(error) => Self::Rpc(error.code),
            CallError::Timeout { .. } => Self::Timeout,
            CallError::Cancelled { .. } => Self::Cancelled,
            CallError::Closed { .. } | CallError::NoResponse { .. } | CallError::SessionEnded => Self::Lost,
            CallError::Http(error) => Self::Http(error.status),
            CallError::Refused(_) | CallError::NotRepeated(_) | CallError::Denied { sent: Sent::No, .. } => {
                Self::Refused
            }
            CallError::Decode(_)
            | CallError::InvalidResult(_)
            | CallError::ContentType { .. }
            | CallError::Denied { .. } => Self::Invalid,
            _ => Self::Other,
        }
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Telemetry(..)")
    }
}

impl PartialEq for Telemetry {
    /// Returns whether both call the same value.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
