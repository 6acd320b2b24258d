//! Ids on the wire: created, matched, and remembered for a while after their requests have ended
//! (JSON-RPC 2.0 section 4). The client never reuses an id.

use super::compat::IdPolicy;
use crate::exchange::ExchangeId;
use crate::input::CallId;
use crate::rpc::Id;
use crate::short_map::ShortMap;
use crate::time::Instant;
use alloc::collections::VecDeque;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;

#[derive(Debug)]
pub(super) struct Ids {
    policy: IdPolicy,
    origin_unix: Duration,
    last: u64,
    pending: ShortMap<Id, PendingRequest>,
    /// The latest ones. Only a response that is late or unknown is looked up here.
    retired: VecDeque<Id>,
    max_retired: usize,
    text_id_told: bool,
}

/// A request that waits for its response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PendingRequest {
    pub(super) purpose: Purpose,
    pub(super) exchange: ExchangeId,
}

/// The purpose of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    Discover,
    Initialize,
    /// A ping of the engine.
    Ping,
    /// A subscription to changes.
    Listen,
    Call(CallId),
}

/// The request that the id of a response names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Match {
    /// The request is pending. `deviating`: the id arrived as a string, for the first time.
    Pending {
        pending: PendingRequest,
        deviating: bool,
    },
    /// The request was pending before.
    Retired,
    Unknown,
}

impl Ids {
    pub(super) const fn new(policy: IdPolicy, origin_unix: Duration, max_retired: usize) -> Self {
        Self {
            policy,
            origin_unix,
            last: 0,
            pending: ShortMap::new(),
            retired: VecDeque::new(),
            max_retired,
            text_id_told: false,
        }
    }

    /// Returns a new id for a request.
    pub(super) fn mint(&mut self, now: Instant, purpose: Purpose, exchange: ExchangeId) -> Id {
        let id = match self.policy {
            IdPolicy::Counter => {
                self.last += 1;
                Id::Int(i64::try_from(self.last).unwrap_or(i64::MAX))
            }
            IdPolicy::Snowflake { node } => {
                let millis = now.unix(self.origin_unix).as_millis() as u64;
                let fresh = millis << 22 | u64::from(node & 0x3ff) << 12;
                self.last = fresh.max(self.last.saturating_add(1));
                Id::Text(self.last.to_string())
            }
        };
        self.pending.insert(id.clone(), PendingRequest { purpose, exchange });
        id
    }

    /// Finds the request to which a response on `exchange` belongs. With `lenient`, a string that
    /// is the decimal of a pending integer matches it, unless a pending string id is equal to it.
    pub(super) fn find(&mut self, id: &Id, exchange: ExchangeId, lenient: bool) -> (Id, Match) {
        let on_exchange = |pending: &&PendingRequest| pending.exchange == exchange;
        if let Some(pending) = self.pending.get(id).filter(on_exchange) {
            return (id.clone(), Match::Pending { pending: *pending, deviating: false });
        }
        if let (Id::Text(text), true) = (id, lenient)
            && let Some(number) = text.parse().ok().filter(|n: &i64| n.to_string() == *text)
            && let Some(pending) = self.pending.get(&Id::Int(number)).filter(on_exchange)
        {
            let deviating = !core::mem::replace(&mut self.text_id_told, true);
            return (Id::Int(number), Match::Pending { pending: *pending, deviating });
        }
        (id.clone(), if self.retired.contains(id) { Match::Retired } else { Match::Unknown })
    }

    /// Returns the call whose request has this id, which is also its progress token. If `exchange`
    /// is given, only a request on it matches.
    pub(super) fn call(&self, token: &Id, exchange: Option<ExchangeId>) -> Option<CallId> {
        match self.pending.get(token)? {
            PendingRequest { purpose: Purpose::Call(call), exchange: on } if exchange.is_none_or(|x| x == *on) => {
                Some(*call)
            }
            _ => None,
        }
    }

    /// Records that the response to the request with this id arrives on another exchange from now
    /// on.
    pub(super) fn move_to(&mut self, id: &Id, exchange: ExchangeId) {
        if let Some(pending) = self.pending.get_mut(id) {
            pending.exchange = exchange;
        }
    }

    /// Returns the exchange on which the request with this id is pending.
    pub(super) fn exchange(&self, id: &Id) -> Option<ExchangeId> {
        self.pending.get(id).map(|pending| pending.exchange)
    }

    /// Returns the exchange of the pending request that a response with this id answers, if the
    /// response may arrive on any exchange. `lenient` as for [`find`](Self::find).
    pub(super) fn asked_on(&self, id: &Id, lenient: bool) -> Option<ExchangeId> {
        let number = || match id {
            Id::Text(text) if lenient => text.parse().ok().filter(|n: &i64| n.to_string() == *text),
            _ => None,
        };
        self.exchange(id).or_else(|| self.exchange(&Id::Int(number()?)))
    }

    /// Returns whether a request of a call is pending.
    pub(super) fn has_calls(&self) -> bool {
        self.pending.values().any(|pending| matches!(pending.purpose, Purpose::Call(_)))
    }

    /// Retires an id. The client recognises a late response to it for a while.
    pub(super) fn retire(&mut self, id: &Id) {
        if self.pending.remove(id).is_none() {
            return;
        }
        if self.retired.len() >= self.max_retired {
            self.retired.pop_front();
        }
        if self.max_retired > 0 {
            self.retired.push_back(id.clone());
        }
    }

    /// Forgets an id that is retired.
    pub(super) fn forget(&mut self, id: &Id) {
        self.retired.retain(|retired| retired != id);
    }

    /// Retires the pending request of the handshake, as [`retire`](Self::retire) does.
    pub(super) fn retire_handshake(&mut self) {
        let waiting = self.pending.iter().find(|(_, p)| matches!(p.purpose, Purpose::Discover | Purpose::Initialize));
        if let Some(id) = waiting.map(|(id, _)| id.clone()) {
            self.retire(&id);
        }
    }

    /// Retires every pending ping, as [`retire`](Self::retire) does. A ping that was sent for
    /// another reason may be pending beside the periodic one.
    pub(super) fn retire_pings(&mut self) {
        let is_ping = |(_, pending): &(&Id, &PendingRequest)| pending.purpose == Purpose::Ping;
        let pings: Vec<Id> = self.pending.iter().filter(is_ping).map(|(id, _)| id.clone()).collect();
        pings.iter().for_each(|id| self.retire(id));
    }

    #[cfg(test)]
    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }
}
