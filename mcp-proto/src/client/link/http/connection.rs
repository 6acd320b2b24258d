//! Tracks whether a request may have been sent, according to the driver's reports about its
//! connection. A request that never had a connection certainly did not run.

use super::exchanges::HttpExchanges;
use super::{ExchangeStage, HttpExchange, HttpLink, LOGIN};
use crate::client::env::ClientEnv;
use crate::error::WaitReason;
use crate::exchange::{ExchangeId, Sent};
use crate::rpc::Id;

/// The driver's latest report about the connection of an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ConnectionReport {
    /// No report: the exchange may have been sent.
    Unreported,
    /// The exchange waits for a connection, so none of its bytes were written.
    Waiting,
    Opened,
}

impl HttpExchange {
    /// Holds the message: it is not on the wire, and was not sent.
    pub(super) const fn hold(&mut self) {
        (self.stage, self.connection) = (ExchangeStage::Held, ConnectionReport::Waiting);
    }

    /// Returns the exchange of a message that is no longer held.
    pub(super) fn released(self) -> Self {
        Self { stage: ExchangeStage::Live, connection: ConnectionReport::Unreported, ..self }
    }

    /// Returns whether the message may have reached the server, on this exchange or on an earlier
    /// one.
    pub(in crate::client) const fn sent(&self) -> Sent {
        match self.connection {
            ConnectionReport::Waiting if !self.again => Sent::No,
            ConnectionReport::Unreported | ConnectionReport::Waiting | ConnectionReport::Opened => Sent::Maybe,
        }
    }
}

impl HttpExchanges {
    /// Notes that the exchange waits for a connection. Ignored after an earlier report.
    pub(super) fn on_waiting(&mut self, exchange: ExchangeId) {
        if let Some(http) = self.get_mut(exchange)
            && http.connection == ConnectionReport::Unreported
        {
            http.connection = ConnectionReport::Waiting;
        }
    }

    /// Notes that the exchange has a connection, so its request may have been sent.
    pub(super) fn on_connected(&mut self, exchange: ExchangeId) {
        if let Some(http) = self.get_mut(exchange) {
            http.connection = ConnectionReport::Opened;
        }
    }
}

impl HttpLink {
    /// Returns whether the server has not begun to process the request with this id. The request
    /// was refused and waits for credentials, or it waits for a connection.
    pub(in crate::client) fn is_unsent(&self, env: &ClientEnv, id: &Id) -> bool {
        let http = env.ids.exchange(id).and_then(|exchange| self.exchanges.get(exchange));
        http.is_some_and(|http| {
            http.is_post() && (matches!(http.stage, ExchangeStage::Parked(_)) || http.sent() == Sent::No)
        })
    }

    /// Returns the event that the request with this id awaits, and whether the request may have
    /// reached the server.
    pub(in crate::client) fn awaited(&self, env: &ClientEnv, id: &Id) -> (WaitReason, Sent) {
        match env.ids.exchange(id).and_then(|exchange| self.exchanges.get(exchange)) {
            // A request that was refused has not run.
            Some(http) if http.stage == ExchangeStage::Parked(LOGIN) => (WaitReason::Login, Sent::No),
            Some(http) if matches!(http.stage, ExchangeStage::Signing(_)) => (WaitReason::Login, http.sent()),
            Some(http) if http.connection == ConnectionReport::Waiting => (WaitReason::Connection, http.sent()),
            _ => (WaitReason::Response, Sent::Maybe),
        }
    }
}
