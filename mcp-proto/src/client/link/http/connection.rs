//! Whether a request can have left: what the driver reported of its connection. What never had one certainly did not run.

use super::{Http, Stage};
use crate::client::Client;
use crate::client::link::Exchanges;
use crate::error::Awaited;
use crate::exchange::{ExchangeId, Sent};
use crate::rpc::Id;

/// What the driver reported of the connection of an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Connection {
    /// Nothing: the exchange may have been sent.
    Unreported,
    /// It waits for one, so nothing of it was written.
    Waiting,
    Opened,
}

impl Http {
    /// Whether its message can have reached the server: over this exchange, or over one before it.
    pub(in crate::client) const fn sent(&self) -> Sent {
        match self.connection {
            Connection::Waiting if !self.again => Sent::No,
            Connection::Unreported | Connection::Waiting | Connection::Opened => Sent::Maybe,
        }
    }
}

impl Exchanges {
    /// The exchange waits for a connection. Ignored after an earlier report.
    pub(super) fn on_waiting(&mut self, exchange: ExchangeId) {
        if let Some(http) = self.http_mut(exchange)
            && http.connection == Connection::Unreported
        {
            http.connection = Connection::Waiting;
        }
    }

    /// The exchange has a connection, so its request may have been sent.
    pub(super) fn on_connected(&mut self, exchange: ExchangeId) {
        if let Some(http) = self.http_mut(exchange) {
            http.connection = Connection::Opened;
        }
    }
}

impl Client {
    /// Whether the server has not begun with the request with this id: it was refused and waits for credentials, or it waits for a
    /// connection.
    pub(in crate::client) fn is_unsent(&self, id: &Id) -> bool {
        let http = self.ids.exchange(id).and_then(|exchange| self.exchanges.http(exchange));
        http.is_some_and(|http| http.is_post() && (matches!(http.stage, Stage::Parked(_)) || http.sent() == Sent::No))
    }

    /// What the request with this id waits for, and whether it can have reached the server.
    pub(in crate::client) fn awaited(&self, id: &Id) -> (Awaited, Sent) {
        match self.ids.exchange(id).and_then(|exchange| self.exchanges.http(exchange)) {
            Some(http) if http.connection == Connection::Waiting => (Awaited::Connection, http.sent()),
            _ => (Awaited::Response, Sent::Maybe),
        }
    }
}
