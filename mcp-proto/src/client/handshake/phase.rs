//! The phase of a client, from its start to its end, and the events of a handshake. The steps of a
//! phase are private, so that every transition is here or in `handshake.rs`.

use crate::client::Termination;
use crate::error::{HttpError, NegotiationCause, NegotiationError};
use crate::exchange::{Closed, Sent};
use crate::model::lifecycle::ServerInfo;
use crate::rpc::{DecodeError, ErrorObject, Payload};
use crate::version::ProtocolVersion;
use alloc::boxed::Box;
use alloc::string::String;

/// The state of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum State {
    /// The client only makes fetches: [`ClientConfig::fetcher`](crate::ClientConfig::fetcher).
    NoServer,
    /// `server/discover` was sent.
    Probing,
    /// `initialize` was sent.
    Initializing,
    /// Negotiated: the client sends calls.
    Ready,
    /// The session has ended, and the server refused another one. The next call tries again.
    Lapsed,
    /// The program has closed its output, and the client waits for its exit status.
    Ending,
    /// The application closed the client, or negotiation failed. The exchanges end.
    Closing,
    /// The client has terminated.
    Terminated,
}

/// The phase of a client. Anyone may read its state, and only the handshake sees its steps.
#[derive(Debug)]
pub(in crate::client) struct Phase {
    step: Step,
}

/// A step of the life of a client.
#[derive(Debug)]
pub(super) enum Step {
    /// There is no server to negotiate with.
    NoServer,
    /// The client sent `server/discover`.
    Probing {
        /// The revision in the request.
        asked: ProtocolVersion,
        /// Whether the server refused `initialize` before. The client then has no fallback left.
        last_resort: bool,
        /// Whether the client has already followed the server's list of revisions once.
        corrected: bool,
    },
    /// The client sent `initialize`.
    Initializing {
        /// The revision in the request.
        asked: ProtocolVersion,
        /// The reason for the request, which determines the fallbacks that are left.
        after: After,
        /// Whether the client has already followed the server's list of revisions once.
        corrected: bool,
    },
    Ready(ServerInfo),
    /// The session ended, and the client could not open another. The next call tries again.
    Lapsed,
    /// The server closed its output. The client waits briefly for its exit status.
    Ending(ServerInfo),
    Closing(Termination),
    Terminated,
}

/// The reason for `initialize`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum After {
    /// A verdict. If the server refuses `initialize`, the client probes it.
    Verdict,
    /// A verdict for HTTP+SSE. If the server does not offer it, the client negotiates from the
    /// beginning.
    SseVerdict,
    /// A probe with an inconclusive result. A server that refuses `initialize` and names a modern
    /// revision of the client did understand the probe. A server that exits may have exited because
    /// of the probe.
    Probe,
    /// The same, and the server has refused `initialize`, perhaps because of the probe. It is
    /// started a second time when it has ended. Nothing is awaited of the first process.
    SpoiltProbe,
    /// The end of a session. If the client cannot open a new one now, it may succeed later.
    Session,
    /// Any other reason. The client has no fallback.
    Else,
}

/// An event of the pending handshake: of the probe (`server/discover`), or of `initialize`. Its
/// request is retired, except after `Idless`, `Timeout`, `StartTimeout` and `Resumed`, and after
/// the end of a duplex exchange.
#[derive(Debug)]
pub(in crate::client) enum HandshakeEvent {
    /// The response to the probe.
    Discovered(Payload),
    /// The response to `initialize`.
    Initialized(Payload),
    /// An error response without an id.
    Idless(ErrorObject),
    /// The response is unreadable.
    Invalid(DecodeError),
    /// A message hook denied the request, or the response.
    Denied(String),
    /// The server refused the request over HTTP, without a response.
    Refused {
        /// Whether the refusal is typical of a server of the other era.
        tells_of_era: bool,
        /// The error of the refusal.
        error: Box<HttpError>,
    },
    /// The exchange ended, or the output of a duplex server. With `Sent::No`, the exchange was not
    /// open, or the server has not seen the request.
    Closed(Sent, Closed),
    /// HTTP+SSE: there is no `endpoint` event, so the client could not send the request.
    NoEndpoint(Box<NegotiationCause>),
    /// The limit for the response is over.
    Timeout,
    /// The limit for the whole start is over.
    StartTimeout,
    /// The request was sent again, with credentials.
    Resumed,
    /// WebSocket: the server demanded credentials for the connection, and the application has given
    /// them.
    Reopen,
}

/// What follows an event of the handshake for the rest of the client.
#[derive(Debug)]
#[must_use]
pub(in crate::client) enum Next {
    /// Nothing.
    Wait,
    /// The negotiation succeeded: the session begins.
    Ready,
    /// The server has opened no new session. The next call tries again, and the others end.
    Lapsed(NegotiationError),
    /// The negotiation failed, and the client ends.
    Failed(NegotiationError),
}

impl Phase {
    /// Creates the phase of a client that has not begun to negotiate.
    pub(in crate::client) const fn new() -> Self {
        Self { step: Step::Terminated }
    }

    pub(in crate::client) const fn state(&self) -> State {
        match &self.step {
            Step::NoServer => State::NoServer,
            Step::Probing { .. } => State::Probing,
            Step::Initializing { .. } => State::Initializing,
            Step::Ready(_) => State::Ready,
            Step::Lapsed => State::Lapsed,
            Step::Ending(_) => State::Ending,
            Step::Closing(_) => State::Closing,
            Step::Terminated => State::Terminated,
        }
    }

    /// Returns the description that the server sent, once the negotiation succeeded.
    pub(in crate::client) const fn server_info(&self) -> Option<&ServerInfo> {
        match &self.step {
            Step::Ready(info) | Step::Ending(info) => Some(info),
            _ => None,
        }
    }

    /// Returns why the client closes.
    pub(in crate::client) const fn closing(&self) -> Option<&Termination> {
        match &self.step {
            Step::Closing(why) => Some(why),
            _ => None,
        }
    }

    pub(super) const fn step(&self) -> &Step {
        &self.step
    }

    pub(super) fn set(&mut self, step: Step) {
        self.step = step;
    }

    /// The session ended. Another negotiation may follow.
    pub(in crate::client) fn lapse(&mut self) {
        self.step = Step::Lapsed;
    }

    /// The server of a client that is ready closed its output.
    pub(in crate::client) fn end_output(&mut self) {
        self.step = match core::mem::replace(&mut self.step, Step::Terminated) {
            Step::Ready(info) => Step::Ending(info),
            other => other,
        };
    }

    /// The client closes for this reason.
    pub(in crate::client) fn close(&mut self, why: Termination) {
        self.step = Step::Closing(why);
    }

    /// The last exchange of a client that closes has ended. Returns why it closed.
    pub(in crate::client) fn terminate(&mut self) -> Option<Termination> {
        match core::mem::replace(&mut self.step, Step::Terminated) {
            Step::Closing(why) => Some(why),
            _ => None,
        }
    }
}
