//! What lasts between the messages of one client: the requests that run by the ids it chose, our questions to it, and what `initialize`
//! agreed on. A duplex exchange has one for as long as it is open, and so has a session over HTTP.

use super::binding::Duplex;
#[cfg(feature = "http")]
use super::binding::{Http, StreamKey};
use super::era::{Caller, Negotiated};
use super::{ExchangeId, Server};
use crate::input::RequestKey;
#[cfg(feature = "http")]
use crate::input::SessionKey;
use crate::model::logging::LogLevel;
use crate::rpc::Id;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use hmac_sha256::Hash;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Session {
    /// What `initialize` agreed on; modern requests neither need nor see it.
    pub(super) negotiated: Option<Negotiated>,
    /// The requests that run, by the id that the client chose.
    pub(super) ids: BTreeMap<Id, RequestKey>,
    /// Our own questions that are open, and the id of the next.
    pub(super) asked: BTreeMap<i64, RequestKey>,
    pub(super) next_id: i64,
    retired: Retired,
    /// Whether the client has said `notifications/initialized`: nothing is told to it before.
    pub(super) ready: bool,
    /// Of how many changes of the list of tools the client was told.
    pub(super) told: u64,
    /// The lowest level of log messages that the client wants (`logging/setLevel`); `None`: it has set none.
    pub(super) log_level: Option<LogLevel>,
}

/// With whom a session is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SessionRef {
    Duplex(ExchangeId),
    #[cfg(feature = "http")]
    Http(SessionKey),
}

/// Where the answer of a request goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReplyTo {
    /// The exchange that brought it. It ends with it.
    Exchange(ExchangeId),
    /// A stream, which outlives the exchange that brought it.
    #[cfg(feature = "http")]
    Stream(StreamKey),
}

/// Digests of the ids of answered requests, where using one again is refused.
#[derive(Debug, Default)]
struct Retired {
    known: BTreeSet<[u8; 32]>,
    order: VecDeque<[u8; 32]>,
}

impl Retired {
    const MAX: usize = 1024;
}

impl Session {
    /// `told`: the changes that were before it, which are none of its business.
    pub(super) const fn new(negotiated: Option<Negotiated>, told: u64) -> Self {
        let retired = Retired { known: BTreeSet::new(), order: VecDeque::new() };
        Self {
            negotiated,
            ids: BTreeMap::new(),
            asked: BTreeMap::new(),
            next_id: 1,
            retired,
            ready: false,
            told,
            log_level: None,
        }
    }

    /// A request with this id was answered.
    pub(super) fn retire(&mut self, id: &Id) {
        let digest = Hash::hash(format!("{id}").as_bytes());
        if self.retired.known.insert(digest) {
            self.retired.order.push_back(digest);
        }
        if self.retired.order.len() > Retired::MAX
            && let Some(oldest) = self.retired.order.pop_front()
        {
            self.retired.known.remove(&oldest);
        }
    }

    /// Whether a request with this id runs, or is remembered.
    pub(super) fn has_used(&self, id: &Id) -> bool {
        let retired = &self.retired.known;
        self.ids.contains_key(id) || !retired.is_empty() && retired.contains(&Hash::hash(format!("{id}").as_bytes()))
    }

    /// Bytes of what is kept of what the client said of itself.
    pub(super) fn weight(&self) -> usize {
        self.negotiated.as_ref().map_or(0, |negotiated| negotiated.weight)
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.ids.is_empty() && self.asked.is_empty()
    }
}

impl Server {
    /// Whom a request on an exchange comes from.
    pub(super) fn caller(&self, x: ExchangeId) -> Caller {
        let Some(exchange) = self.exchanges.get(&x) else { return Caller::default() };
        let peer = exchange.peer.clone();
        #[cfg(feature = "http")]
        if let Some((head, principal)) = exchange.binding.http().map(Http::origin) {
            return Caller { peer, http: Some(head), principal, session: None };
        }
        let principal = exchange.binding.duplex().and_then(Duplex::principal).cloned();
        Caller { peer, principal, ..Caller::default() }
    }

    pub(super) fn session(&self, session_ref: SessionRef) -> Option<&Session> {
        match session_ref {
            SessionRef::Duplex(x) => self.exchanges.get(&x)?.binding.duplex().map(|duplex| &duplex.session),
            #[cfg(feature = "http")]
            SessionRef::Http(session) => self.web.http_session(session).map(|session| &session.session),
        }
    }

    pub(super) fn session_mut(&mut self, session_ref: SessionRef) -> Option<&mut Session> {
        match session_ref {
            SessionRef::Duplex(x) => self.exchanges.get_mut(&x)?.binding.duplex_mut().map(|duplex| &mut duplex.session),
            #[cfg(feature = "http")]
            SessionRef::Http(session) => self.web.http_session_mut(session).map(|session| &mut session.session),
        }
    }

    /// With whom the session is that a request belongs to. `None` for one that stands alone.
    pub(super) fn session_ref(&self, reply_to: ReplyTo) -> Option<SessionRef> {
        match reply_to {
            ReplyTo::Exchange(x) => {
                let exchange = self.exchanges.get(&x)?;
                exchange.binding.duplex().map(|_| SessionRef::Duplex(x))
            }
            #[cfg(feature = "http")]
            ReplyTo::Stream(stream) => self.web.stream(stream)?.session.map(SessionRef::Http),
        }
    }

    /// The session that a request belongs to.
    pub(super) fn session_at(&mut self, reply_to: ReplyTo) -> Option<&mut Session> {
        let session_ref = self.session_ref(reply_to)?;
        self.session_mut(session_ref)
    }

    /// With whom the session is that goes out on an exchange.
    pub(super) fn session_on(&self, x: ExchangeId) -> Option<SessionRef> {
        #[cfg(feature = "http")]
        let reply_to = self.reply_to_on(x);
        #[cfg(not(feature = "http"))]
        let reply_to = ReplyTo::Exchange(x);
        self.session_ref(reply_to)
    }

    /// Where the questions of a request are said.
    pub(super) fn ask_on(&mut self, reply_to: ReplyTo) -> ReplyTo {
        match reply_to {
            ReplyTo::Exchange(_) => reply_to,
            #[cfg(feature = "http")]
            ReplyTo::Stream(stream) => ReplyTo::Stream(self.stream_to_ask_on(stream)),
        }
    }
}
