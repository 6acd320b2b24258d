//! Revocation of a principal: the engine ends everything that the application admitted for it.

use super::env::ServerEnv;
use super::requests::Requests;
use super::running::ServedRequest;
use super::transport::{Binding, ServedExchange};
use super::{Server, SessionEnd};
use crate::exchange::ExchangeId;
use crate::input::{Principal, RequestKey};
use alloc::vec::Vec;

/// The message of the error response to a request that ends with its principal.
const REVOKED: &str = "the server has ended the access of this principal";

impl Server {
    /// Ends everything of a principal.
    pub(super) fn end_access(&mut self, principal: &Principal) {
        self.wire
            .http
            .sessions_of(principal)
            .into_iter()
            .for_each(|session| self.end_session(session, SessionEnd::Revoked));
        let running = self.requests.of_principal(&self.wire.env, principal);
        running.into_iter().for_each(|key| self.requests.end_request(&mut self.wire, key, REVOKED));
        self.wire.env.remove_tasks_of(principal);
        let is_of = |exchange: &ServedExchange| exchange.binding.principal() == Some(principal);
        let open: Vec<ExchangeId> =
            self.wire.env.exchanges.iter().filter(|(_, exchange)| is_of(exchange)).map(|(x, _)| *x).collect();
        open.into_iter().for_each(|x| self.revoke_exchange(x));
    }

    /// Ends an exchange whose requests are answered.
    fn revoke_exchange(&mut self, x: ExchangeId) {
        self.end_listens(x);
        match self.wire.env.exchanges.get(&x).map(|exchange| &exchange.binding) {
            Some(Binding::Duplex(_)) => self.end_duplex(x),
            Some(Binding::Http(_)) => self.wire.env.refuse_unread(x, REVOKED),
            None => {}
        }
    }
}

impl Server {
    /// Ends the subscriptions of an exchange with their results.
    pub(super) fn end_listens(&mut self, x: ExchangeId) {
        let exchange = self.wire.env.exchanges.get(&x);
        let listens: Vec<RequestKey> =
            exchange.into_iter().flat_map(|exchange| exchange.listens.iter().copied()).collect();
        listens.into_iter().for_each(|key| self.listens.end(&mut self.wire, key));
    }
}

impl Requests {
    /// Returns the requests of a principal.
    fn of_principal(&self, env: &ServerEnv, principal: &Principal) -> Vec<RequestKey> {
        self.iter().filter(|(_, running)| running.principal(env) == Some(principal)).map(|(key, _)| key).collect()
    }
}

impl ServedRequest {
    /// Returns the principal of a request. A legacy request may have outlived the exchange that
    /// brought it.
    fn principal<'a>(&'a self, env: &'a ServerEnv) -> Option<&'a Principal> {
        match self.request() {
            Some(incoming) => incoming.context.principal.as_ref(),
            None => env.exchanges.get(&self.exchange)?.binding.principal(),
        }
    }
}

impl Binding {
    /// Returns the principal of its admission.
    fn principal(&self) -> Option<&Principal> {
        self.rights()?.principal.as_ref()
    }
}
