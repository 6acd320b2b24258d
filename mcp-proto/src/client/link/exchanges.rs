//! The table of the exchanges that are open, and the ids of new ones.

use super::{Duplex, Exchange};
use crate::exchange::ExchangeId;
#[cfg(feature = "http")]
use crate::exchange::Sent;
use crate::input::CallId;
use alloc::collections::BTreeMap;

/// The exchanges of a client that are not over. Each id is used once.
#[derive(Debug, Default)]
pub(in crate::client) struct Exchanges {
    open: BTreeMap<ExchangeId, Exchange>,
    /// The last id that was used.
    last: u64,
}

impl Exchanges {
    /// Returns a new id.
    pub(in crate::client) fn mint(&mut self) -> ExchangeId {
        self.last += 1;
        ExchangeId(self.last)
    }

    /// Returns whether an exchange with this id was open at some time.
    pub(super) const fn was_minted(&self, exchange: ExchangeId) -> bool {
        exchange.0 <= self.last
    }

    pub(in crate::client) fn insert(&mut self, exchange: ExchangeId, state: Exchange) {
        self.open.insert(exchange, state);
    }

    pub(super) fn remove(&mut self, exchange: &ExchangeId) -> Option<Exchange> {
        self.open.remove(exchange)
    }

    pub(in crate::client) fn get(&self, exchange: &ExchangeId) -> Option<&Exchange> {
        self.open.get(exchange)
    }

    pub(super) fn get_mut(&mut self, exchange: &ExchangeId) -> Option<&mut Exchange> {
        self.open.get_mut(exchange)
    }

    pub(in crate::client) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Returns the ids, the oldest first.
    pub(in crate::client) fn keys(&self) -> impl DoubleEndedIterator<Item = &ExchangeId> {
        self.open.keys()
    }

    #[cfg(feature = "http")]
    pub(in crate::client) fn values(&self) -> impl Iterator<Item = &Exchange> {
        self.open.values()
    }

    #[cfg(all(test, feature = "http"))]
    pub(in crate::client) fn iter(&self) -> impl Iterator<Item = (&ExchangeId, &Exchange)> {
        self.open.iter()
    }

    /// Returns whether the latest exchange has a connection to the server, or may have one.
    pub(in crate::client) fn has_reached_server(&self) -> bool {
        self.open.values().next_back().is_none_or(|exchange| match exchange {
            Exchange::Duplex(duplex) => duplex.opened,
            #[cfg(feature = "http")]
            Exchange::Http(http) => http.sent() == Sent::Maybe,
        })
    }

    /// Returns the call whose response arrives on this exchange.
    pub(in crate::client) fn call_on(&self, exchange: ExchangeId) -> Option<CallId> {
        match self.open.get(&exchange)? {
            #[cfg(feature = "http")]
            Exchange::Http(http) => http.call(),
            Exchange::Duplex(_) => None,
        }
    }

    /// Returns the state of an exchange that is open and duplex.
    pub(super) fn duplex_mut(&mut self, exchange: ExchangeId) -> Option<&mut Duplex> {
        match self.open.get_mut(&exchange)? {
            Exchange::Duplex(duplex) => Some(duplex),
            #[cfg(feature = "http")]
            Exchange::Http(_) => None,
        }
    }

    /// Records that a duplex exchange has a connection.
    pub(super) fn mark_opened(&mut self, exchange: ExchangeId) {
        if let Some(duplex) = self.duplex_mut(exchange) {
            duplex.opened = true;
        }
    }
}
