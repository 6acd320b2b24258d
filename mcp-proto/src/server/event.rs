//! The outputs of a server: what it sends on exchanges, and the events for its application. The
//! weights of the events determine which of them may be dropped.

use super::Responder;
use super::incoming::IncomingRequest;
use super::store::{StoreRequest, StoreToken};
use crate::error::Diagnostic;
use crate::event_queue::{Weigh, Weight};
use crate::exchange::{ExchangeId, Outbound, RequestHead};
use crate::input::{AdmitKey, AdmitToken, RequestKey, SessionKey};
use crate::rpc::RawJson;
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::sync::Arc;
use bytes::Bytes;

/// An output of a server, for its driver (seam B).
#[derive(PartialEq, Debug)]
#[must_use]
#[expect(
    clippy::large_enum_variant,
    reason = "most outputs are requests and answers; a box for each would be one allocation more"
)]
pub enum Output {
    /// Send this on an exchange.
    Send(ExchangeId, Outbound),
    /// End an exchange now. The driver reports no further event of it, and the engine sends nothing
    /// on it.
    Abort(ExchangeId),
    /// An event for the application.
    Event(Event),
}

/// An event of a server, for its application.
#[derive(PartialEq, Debug)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "most outputs are requests and answers; a box for each would be one allocation more"
)]
pub enum Event {
    /// A request for the application. Never one that the engine answers itself (`initialize`,
    /// `server/discover`, `ping`).
    Request(Responder, IncomingRequest),
    /// A request was cancelled. Its handler should stop. The engine drops an answer to it. Not
    /// emitted for a request that was answered, nor while the engine waits for responses of the
    /// client: then no handler runs.
    Cancelled(RequestKey),
    /// A notification of the client that the engine does not consume.
    Notification {
        /// The exchange on which it arrived.
        exchange: ExchangeId,
        /// Its method.
        method: Cow<'static, str>,
        /// Its params.
        params: Option<RawJson>,
    },
    /// An HTTP request (with its head) or a duplex connection (without one) waits for a decision by
    /// [`Server::admit`](super::ServerCommands::admit). Emitted only if
    /// [`ServerConfig::admit`](super::ServerConfig::admit) is set. [`AdmitToken::peer`] returns the
    /// peer.
    ///
    /// Not emitted for a request that is refused for its host or its path, nor for the metadata
    /// document of a resource ([`ServerConfig::resource`](super::ServerConfig::resource)), nor for
    /// a CORS preflight of a browser, which carries no credentials, nor for a stream that the
    /// driver was given ([`PeerKind::Given`]).
    ///
    /// [`PeerKind::Given`]: crate::exchange::PeerKind::Given
    Admit(AdmitToken, Option<Arc<RequestHead>>),
    /// A decision about this request or connection is not needed any more: its exchange has ended,
    /// or [`admit_timeout`](crate::limits::ServerLimits::admit_timeout) is over. The engine ignores
    /// a decision. Not emitted after a decision, nor when the server terminates.
    AdmitWithdrawn(AdmitKey),
    /// A legacy client has opened an HTTP session.
    SessionOpened(SessionKey),
    /// An HTTP session has ended: no request of it follows. Not emitted when the server terminates.
    SessionEnded(SessionKey, SessionEnd),
    /// An event of a stream is kept for resumption. Emitted before the event is sent, in the order
    /// of the stream, and only with
    /// [`ServerConfig::report_kept`](super::ServerConfig::report_kept).
    Kept(KeptEvent),
    /// The driver carries this out at the store, and returns the result with
    /// [`Server::stored`](super::ServerCommands::stored). Not emitted without
    /// [`ServerConfig::store`](super::ServerConfig::store). The engine waits for no reply to what
    /// it emits when the server terminates.
    Store(StoreToken, StoreRequest),
    /// A client violated the protocol, or the engine dropped a message of a client.
    Diagnostic(Diagnostic),
    /// The engine dropped notifications or diagnostics, since the application did not take them in
    /// time.
    Lost {
        /// Number of notifications.
        notifications: u64,
        /// Number of diagnostics.
        diagnostics: u64,
    },
    /// The server has shut down. Emitted once, as the last output.
    Terminated,
}

/// The cause of the end of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SessionEnd {
    /// Its client ended it (DELETE).
    Deleted,
    /// No message arrived for [`session_idle`](crate::limits::ServerLimits::session_idle), or none
    /// after `initialize` for [`session_start`](crate::limits::ServerLimits::session_start).
    Idle,
    /// The application ended the access of its principal:
    /// [`Server::revoke`](super::ServerCommands::revoke).
    Revoked,
}

/// An event that is kept for resumption.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct KeptEvent {
    /// The session.
    pub session: SessionKey,
    /// The stream within the session.
    pub stream: u64,
    /// The id of the event, unique within its session.
    pub id: String,
    /// Its data. Empty for the event that begins a stream.
    pub data: Bytes,
}

impl Weigh for Output {
    fn weight(&self) -> Weight {
        match self {
            Self::Event(event) => event.weight(),
            Self::Send(..) | Self::Abort(_) => Weight::Kept,
        }
    }

    fn lost(notifications: u64, diagnostics: u64) -> Self {
        Self::Event(Event::lost(notifications, diagnostics))
    }
}

impl Weigh for Event {
    fn weight(&self) -> Weight {
        match self {
            Self::Notification { method, params, .. } => Weight::of_notification(method, params.as_ref()),
            Self::Diagnostic(diagnostic) => Weight::of_diagnostic(diagnostic),
            Self::Lost { notifications, diagnostics } => Weight::Lost(*notifications, *diagnostics),
            _ => Weight::Kept,
        }
    }

    fn lost(notifications: u64, diagnostics: u64) -> Self {
        Self::Lost { notifications, diagnostics }
    }
}
