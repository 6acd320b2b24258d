//! What a server tells its application.

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
    /// A request to answer. Never one that the engine answers itself (`initialize`,
    /// `server/discover`, `ping`).
    Request(Responder, Incoming),
    /// A request that was handed out is cancelled: its handler should stop, an answer to it is
    /// dropped. Not emitted for a request that was answered, nor while the engine waits for answers
    /// of the client: then no handler runs.
    Cancelled(RequestKey),
    /// A notification of the client that the engine does not consume.
    Notification {
        /// Where it came from.
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
    /// A client of an older revision has opened a session over HTTP.
    SessionOpened(SessionKey),
    /// A session has ended. What the application keeps for it can go; no request of it follows. Not
    /// emitted when the server terminates.
    SessionEnded(SessionKey, SessionEnd),
    /// An event of a stream is kept, so that its client can come back for it. It comes before the
    /// event is written, and in the order of the stream. Only where
    /// [`ServerConfig::store`](super::ServerConfig::store) is set.
    Store(Append),
    /// A client did something wrong, or something of it was dropped.
    Diagnostic(Diagnostic),
    /// So many notifications or diagnostics were not delivered, since the application did not take
    /// them.
    Lost {
        /// How many notifications.
        notifications: u64,
        /// How many diagnostics.
        diagnostics: u64,
    },
    /// The server has shut down; exactly once, and the last output of all.
    Terminated,
}

/// Why a session ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SessionEnd {
    /// Its client ended it (DELETE).
    Deleted,
    /// Nothing came for [`session_idle`](crate::limits::ServerLimits::session_idle), or nothing at
    /// all for [`session_start`](crate::limits::ServerLimits::session_start).
    Idle,
    /// The application ended the access of its principal:
    /// [`Server::revoke`](super::Server::revoke).
    Revoked,
}

/// An event that is kept for its client to come back for.
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
    /// What the handler wanted to remember. Still sealed on a modern connection:
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
    /// The revision of this request.
    pub version: ProtocolVersion,
    /// Who the client says it is. For people: draw no conclusions from it.
    pub client: Option<Arc<Implementation>>,
    /// What the client declared: for this request (modern), or for its connection or session
    /// (legacy); nothing where an older request is served without a session. Shared by all requests
    /// that it holds for: a client may declare much, once, and ask much.
    pub capabilities: Arc<ClientCapabilities>,
    /// Who is at the other end.
    pub peer: Peer,
    /// The head of the HTTP request that carried it; `None` on every other transport.
    pub http: Option<Arc<RequestHead>>,
    /// From whom it comes, as the application said when it admitted the HTTP request or the
    /// connection.
    pub principal: Option<Principal>,
    /// The session that it belongs to: the same for all requests of a client of an older revision
    /// over HTTP, unless they are served one by one.
    pub session: Option<SessionKey>,
    /// Whether progress was asked for.
    pub wants_progress: bool,
}

/// A `requestState` as it came back.
#[derive(Clone, PartialEq, Debug)]
pub enum RequestState {
    /// From our own memory, or opened.
    Kept(RawJson),
    /// From the client: not to be believed before it was opened.
    Sealed(String),
}
