//! The events of a server, for its application.

use super::Responder;
use crate::error::Diagnostic;
use crate::exchange::{ExchangeId, Peer, RequestHead};
use crate::input::{AdmitToken, Principal, RequestKey, SessionKey};
use crate::model::lifecycle::{ClientCapabilities, Implementation};
use crate::rpc::{ErrorObject, Object, RawJson};
use crate::version::ProtocolVersion;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use bytes::Bytes;

/// What a server tells its application.
#[derive(PartialEq, Debug)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "most outputs are requests and answers; a box for each would be one allocation more"
)]
pub enum Event {
    /// A request for the application. Never one that the engine answers itself (`initialize`,
    /// `server/discover`, `ping`).
    Request(Responder, Incoming),
    /// A request was cancelled: its handler should stop, and an answer to it is dropped. Not
    /// emitted for a request that was answered, nor while the engine waits for responses of the
    /// client: then no handler runs.
    Cancelled(RequestKey),
    /// A notification of the client that the engine does not consume.
    Notification {
        /// The exchange that brought it.
        exchange: ExchangeId,
        /// Its method.
        method: String,
        /// Its params.
        params: Option<RawJson>,
    },
    /// An HTTP request, with its head, or a connection of messages both ways, without one: to be
    /// admitted with [`Server::admit`](super::Server::admit). Only where
    /// [`ServerConfig::admit`](super::ServerConfig::admit) is set. From where it comes,
    /// [`AdmitToken::peer`] tells.
    ///
    /// Not emitted for a request that is refused for its host or its path, for the question of a
    /// browser whether a page may ask (CORS preflight), which carries no credentials, and for a
    /// stream that the driver was given ([`PeerKind::Given`]).
    ///
    /// [`PeerKind::Given`]: crate::exchange::PeerKind::Given
    Admit(AdmitToken, Option<Arc<RequestHead>>),
    /// A legacy client has opened an HTTP session.
    SessionOpened(SessionKey),
    /// An HTTP session has ended: no request of it follows. Not emitted when the server terminates.
    SessionEnded(SessionKey, SessionEnd),
    /// An event of a stream is kept for resumption. Emitted before the event is sent, in the order
    /// of the stream, and only with [`ServerConfig::store`](super::ServerConfig::store).
    Store(Append),
    /// A client did something wrong, or a message of it was dropped.
    Diagnostic(Diagnostic),
    /// Notifications or diagnostics were dropped, since the application did not take them.
    Lost {
        /// Number of notifications.
        notifications: u64,
        /// Number of diagnostics.
        diagnostics: u64,
    },
    /// The server has shut down. Emitted once, as the last output.
    Terminated,
}

/// Why a session ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SessionEnd {
    /// Its client ended it (DELETE).
    Deleted,
    /// No message came for [`session_idle`](crate::limits::ServerLimits::session_idle), or none
    /// after `initialize` for [`session_start`](crate::limits::ServerLimits::session_start).
    Idle,
    /// The application ended the access of its principal:
    /// [`Server::revoke`](super::Server::revoke).
    Revoked,
}

/// An event that is kept for resumption.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Append {
    /// The session.
    pub session: SessionKey,
    /// The stream within the session.
    pub stream: u64,
    /// The id of the event, unique within its session.
    pub id: String,
    /// Its data; empty for the event that begins a stream.
    pub data: Bytes,
}

/// A request for the application.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Incoming {
    /// The method.
    pub method: String,
    /// The params without `_meta`, `inputResponses` and `requestState`.
    pub params: Object,
    /// The `_meta` member.
    pub meta: Object,
    /// Who asks, and under which rules.
    pub context: Context,
    /// The answers to the questions of earlier rounds, by name, results as they are on the wire or
    /// errors. On a modern connection those of the last round alone until [`Responder::open`] has
    /// run, and none if no state came with them: nothing was asked then (but see
    /// [`unasked_answers`](super::ServerConfig::unasked_answers)).
    pub inputs: BTreeMap<String, Result<RawJson, ErrorObject>>,
    /// The state that the handler keeps between rounds. Still sealed on a modern connection:
    /// [`Responder::open`] opens it.
    pub state: Option<RequestState>,
    /// Names the round whose answers the request brings: no other round of any request has the
    /// same. A client can bring a sealed state again until it expires
    /// ([`state_lifetime`](crate::limits::ServerLimits::state_lifetime)); a handler that must not
    /// act twice on the same answers remembers the nonces for that time. `None` where no sealed
    /// state was opened: the first time, and before 2026-07-28, where the engine itself keeps the
    /// state and a round is answered once.
    pub nonce: Option<String>,
}

/// Who asks, and under which rules.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Context {
    /// The revision of the request.
    pub version: ProtocolVersion,
    /// The name and version that the client declared. For people: draw no conclusions from it.
    pub client: Option<Arc<Implementation>>,
    /// What the client declared: for this request (modern), or for its connection or session
    /// (legacy); nothing where an older request is served without a session. Shared by all requests
    /// that it holds for: a client may declare much, once, and ask much.
    pub capabilities: Arc<ClientCapabilities>,
    /// The peer of the exchange.
    pub peer: Peer,
    /// The head of the HTTP request that carried it; `None` on every other transport.
    pub http: Option<Arc<RequestHead>>,
    /// The principal that the application gave when it admitted the HTTP request or the connection.
    pub principal: Option<Principal>,
    /// The HTTP session of a legacy request. `None` on other transports, and for requests without a
    /// session.
    pub session: Option<SessionKey>,
    /// Whether the client asked for progress.
    pub wants_progress: bool,
}

/// The state that a request brings.
#[derive(Clone, PartialEq, Debug)]
pub enum RequestState {
    /// Kept by the engine, or opened.
    Kept(RawJson),
    /// From the client. Do not trust it before it was opened.
    Sealed(String),
}
