//! The table of open HTTP exchanges, and the source of ids for new ones.

use super::HttpExchange;
use crate::exchange::ExchangeId;
use crate::short_map::ShortMap;
use alloc::vec::Vec;

/// The HTTP exchanges of a client that have not ended, and those that will be repeated. Each id is
/// used once.
#[derive(Debug, Default)]
pub(super) struct HttpExchanges {
    open: ShortMap<ExchangeId, HttpExchange>,
    /// The latest id.
    last: u64,
}

impl HttpExchanges {
    /// Returns a new id.
    pub(super) fn mint(&mut self) -> ExchangeId {
        self.last += 1;
        ExchangeId(self.last)
    }

    /// Returns whether this id was ever used for an exchange.
    pub(super) const fn was_minted(&self, exchange: ExchangeId) -> bool {
        exchange.0 <= self.last
    }

    pub(super) fn insert(&mut self, exchange: ExchangeId, http: HttpExchange) {
        self.open.insert(exchange, http);
    }

    pub(super) fn remove(&mut self, exchange: ExchangeId) -> Option<HttpExchange> {
        self.open.remove(&exchange)
    }

    pub(super) fn get(&self, exchange: ExchangeId) -> Option<&HttpExchange> {
        self.open.get(&exchange)
    }

    pub(super) fn get_mut(&mut self, exchange: ExchangeId) -> Option<&mut HttpExchange> {
        self.open.get_mut(&exchange)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Returns the ids, the oldest first.
    pub(super) fn ids(&self) -> Vec<ExchangeId> {
        self.open.keys().copied().collect()
    }

    /// Returns the exchanges, the oldest first.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (ExchangeId, &HttpExchange)> {
        self.open.iter().map(|(exchange, http)| (*exchange, http))
    }
}
