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
pub(super) struct Talk {
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

/// With whom a talk is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Party {
    Duplex(ExchangeId),
    #[cfg(feature = "http")]
    Session(SessionKey),
}

/// Where the answer of a request goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
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

impl Talk {
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

    pub(super) fn talk(&self, party: Party) -> Option<&Talk> {
        match party {
            Party::Duplex(x) => self.exchanges.get(&x)?.binding.duplex().map(|duplex| &duplex.talk),
            #[cfg(feature = "http")]
            Party::Session(session) => self.web.session(session).map(|session| &session.talk),
        }
    }

    pub(super) fn talk_mut(&mut self, party: Party) -> Option<&mut Talk> {
        match party {
            Party::Duplex(x) => self.exchanges.get_mut(&x)?.binding.duplex_mut().map(|duplex| &mut duplex.talk),
            #[cfg(feature = "http")]
            Party::Session(session) => self.web.session_mut(session).map(|session| &mut session.talk),
        }
    }

    /// With whom the talk is that a request belongs to. `None` for one that stands alone.
    pub(super) fn party(&self, place: Place) -> Option<Party> {
        match place {
            Place::Exchange(x) => {
                let exchange = self.exchanges.get(&x)?;
                exchange.binding.duplex().map(|_| Party::Duplex(x))
            }
            #[cfg(feature = "http")]
            Place::Stream(stream) => self.web.stream(stream)?.session.map(Party::Session),
        }
    }

    /// The talk that a request belongs to.
    pub(super) fn talk_at(&mut self, place: Place) -> Option<&mut Talk> {
        let party = self.party(place)?;
        self.talk_mut(party)
    }

    /// With whom the talk is that goes out on an exchange.
    pub(super) fn party_on(&self, x: ExchangeId) -> Option<Party> {
        #[cfg(feature = "http")]
        let place = self.place_on(x);
        #[cfg(not(feature = "http"))]
        let place = Place::Exchange(x);
        self.party(place)
    }

    /// Where the questions of a request are said.
    pub(super) fn place_to_ask(&mut self, place: Place) -> Place {
        match place {
            Place::Exchange(_) => place,
            #[cfg(feature = "http")]
            Place::Stream(stream) => Place::Stream(self.stream_to_ask_on(stream)),
        }
    }
}
