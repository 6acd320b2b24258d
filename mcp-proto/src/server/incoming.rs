//! A request as the application gets it.

use super::responder::ResponderData;
use super::state_keys::KeyAge;
use super::tasks::TaskSlot;
use crate::auth::Access;
use crate::exchange::{Peer, RequestHead};
use crate::input::{Principal, RequestKey, SessionKey};
use crate::model::capabilities::ClientCapabilities;
use crate::model::lifecycle::{Implementation, meta};
use crate::model::tasks::TaskOptions;
use crate::rpc::{ErrorObject, Object, RawJson};
use crate::version::ProtocolVersion;
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

/// A request for the application.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct IncomingRequest {
    /// The method.
    pub method: Cow<'static, str>,
    /// The params without `_meta`, `inputResponses` and `requestState`.
    pub params: Object,
    /// The `_meta` member.
    pub meta: Object,
    /// The client, and the rules of the request.
    pub context: Context,
    /// The input responses of earlier rounds, by name: results as received, or errors. On a modern
    /// connection, only those of the last round before [`open`](super::Responder::open) has run.
    /// Empty there if the request brought no state, since the server then requested no input (but
    /// see [`unasked_answers`](super::ServerCompat::unasked_answers)).
    pub inputs: BTreeMap<String, Result<RawJson, ErrorObject>>,
    /// The state that the handler keeps between rounds. On a modern connection it is sealed until
    /// [`open`](super::Responder::open) opens it.
    pub state: Option<RequestState>,
    /// Identifies the round whose input responses the request brings. No other round of any request
    /// has the same nonce. A client can send a sealed state again until it expires
    /// ([`state_lifetime`](crate::limits::ServerLimits::state_lifetime)). A handler that must not
    /// act twice on the same responses remembers the nonces for that time. `None` if no sealed
    /// state was opened. This is the case in the first round. It is also the case before
    /// 2026-07-28: the engine itself keeps the state there, and accepts one response to each round.
    pub nonce: Option<String>,
    /// Number of earlier rounds in which it has asked.
    pub rounds: u32,
    /// Where the request began.
    pub(super) first: Option<FirstRound>,
    /// Which key seals its state.
    pub(super) key_age: KeyAge,
    /// Whether its client takes a task as the response.
    pub(super) may_be_task: bool,
    /// What its client wants of the task, if it demands one (2025-11-25).
    pub(crate) wanted_task: Option<Box<TaskOptions>>,
    /// Its place among the tasks. `None` beside `may_be_task`: there is no room.
    pub(crate) task: Option<TaskSlot>,
}

/// The first round of a request, from which the ids of its web pages are derived.
#[derive(Clone)]
pub(super) struct FirstRound {
    pub(super) shared: Arc<ResponderData>,
    pub(super) key: RequestKey,
}

impl PartialEq for FirstRound {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl fmt::Debug for FirstRound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}

/// Whether a request can become a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TaskOffer {
    /// Its client has no tasks.
    None,
    /// There is no room.
    Full,
    Place,
}

impl IncomingRequest {
    /// Returns whether the request can become a task.
    pub(crate) const fn task_offer(&self) -> TaskOffer {
        match (&self.task, self.may_be_task) {
            (Some(_), _) => TaskOffer::Place,
            (None, true) => TaskOffer::Full,
            (None, false) => TaskOffer::None,
        }
    }

    /// Returns a text that tells where the request comes from: its address, or else its session or
    /// its connection.
    pub(crate) fn source(&self) -> String {
        let Context { peer, session, .. } = &self.context;
        let address = self.first.as_ref().and_then(|first| first.shared.config.address_of(peer));
        match (address, session) {
            (Some(address), _) => format!("{address}"),
            (None, Some(session)) => format!("{session:?}"),
            (None, None) => format!("{:?}", peer.connection),
        }
    }

    /// Returns the id of the web page that the request for input of this name opens: see
    /// [`Cx::elicitation_id`](crate::Cx::elicitation_id).
    pub fn elicitation_id(&self, name: &str) -> String {
        let principal = self.context.principal.as_ref();
        let id = |first: &FirstRound| first.shared.elicitation_id((first.key, self.key_age), principal, name);
        self.first.as_ref().map(id).unwrap_or_default()
    }
}

/// The client, and the rules of a request.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Context {
    /// The revision of the request.
    pub version: ProtocolVersion,
    pub(super) declared: Declaration,
    /// The peer of the exchange.
    pub peer: Arc<Peer>,
    /// The head of the HTTP request that carried it. `None` on every other transport. With
    /// [`ServerConfig::resource`](super::ServerConfig::resource) it has no credentials.
    pub http: Option<Arc<RequestHead>>,
    /// The principal that the application gave when it admitted the HTTP request or the connection.
    pub principal: Option<Principal>,
    /// What the verified token of the HTTP request or of the connection says. `None` if it was
    /// admitted without one ([`Admission::Granted`]), or was not admitted.
    ///
    /// [`Admission::Granted`]: crate::input::Admission::Granted
    pub access: Option<Arc<Access>>,
    /// The HTTP session of a legacy request. `None` on other transports, and for requests without a
    /// session.
    pub session: Option<SessionKey>,
    /// Whether the client requested progress.
    pub wants_progress: bool,
}

impl Context {
    /// Returns the name and version that the client declared. For people: do not base decisions on
    /// it.
    pub fn client(&self) -> Option<Arc<Implementation>> {
        match &self.declared {
            Declaration::Here(meta) => {
                let info = meta.optional_object(meta::CLIENT_INFO).ok().flatten()?;
                Implementation::read(info).ok().map(Arc::new)
            }
            Declaration::Before { client, .. } => client.clone(),
        }
    }

    /// Returns the capabilities that the client declared: for this request (modern), or for its
    /// connection or session (legacy). Empty if a legacy request is served without a session.
    pub fn capabilities(&self) -> Arc<ClientCapabilities> {
        self.declared.capabilities()
    }
}

/// Where the client has declared its name and its capabilities. Nothing of a modern declaration is
/// decoded before the handler asks for it.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Declaration {
    /// In the `_meta` of the request (modern).
    Here(Object),
    /// For its connection or session (legacy). All requests share it, since a client may send a
    /// large declaration once, and many requests.
    Before { client: Option<Arc<Implementation>>, capabilities: Arc<ClientCapabilities> },
}

impl Declaration {
    pub(super) fn capabilities(&self) -> Arc<ClientCapabilities> {
        match self {
            Self::Here(meta) => {
                let declared = meta.optional_object(meta::CLIENT_CAPABILITIES).ok().flatten().unwrap_or_default();
                Arc::new(ClientCapabilities::read(&declared))
            }
            Self::Before { capabilities, .. } => Arc::clone(capabilities),
        }
    }
}

/// The state that a request brings.
#[derive(Clone, PartialEq, Debug)]
pub enum RequestState {
    /// The engine kept it, or has opened it.
    Kept(RawJson),
    /// The client sent it. Do not trust it before it is opened.
    Sealed(String),
}
