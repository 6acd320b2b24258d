//! The end of a principal: what the application admitted as coming from it is closed before its
//! clients end it themselves.

#[cfg(feature = "http")]
use super::SessionEnd;
use super::binding::Binding;
use super::binding::Duplex;
#[cfg(feature = "http")]
use super::binding::Http;
use super::requests::Running;
use super::{Exchange, Server};
use crate::exchange::ExchangeId;
use crate::input::{Principal, RequestKey, ServerCommand, ServerInput};
use crate::time::Instant;
use alloc::vec::Vec;

/// The message of the error response to a request that ends with its principal.
const REVOKED: &str = "the server has ended the access of this principal";

impl Server {
    /// Ends everything that was admitted as coming from this principal
    /// ([`Admission::Accept`](crate::input::Admission::Accept)): its requests are cancelled and
    /// answered `-32603`, its sessions end ([`Revoked`](super::SessionEnd::Revoked)) with their
    /// streams and with what is kept for its clients, its subscriptions end, its connections of
    /// messages both ways are closed, and an HTTP request whose body has not come is answered 403.
    /// A later request that names one of its sessions is answered 404.
    ///
    /// It undoes no admission: first stop admitting the principal, then call this. What still waits
    /// for its admission is not touched, and a sealed state that its clients hold is valid again if
    /// the principal is admitted again.
    pub fn revoke(&mut self, now: Instant, principal: &Principal) {
        self.done(now, ServerInput::Command(ServerCommand::Revoke(principal.clone())));
    }

    pub(super) fn on_revoke(&mut self, principal: &Principal) {
        if self.is_terminated() {
            return;
        }
        #[cfg(feature = "http")]
        self.http.sessions_of(principal).into_iter().for_each(|session| self.end_session(session, SessionEnd::Revoked));
        let of_principal = |running: &Running| self.principal_of(running) == Some(principal);
        let running: Vec<RequestKey> =
            self.requests.iter().filter(|(_, running)| of_principal(running)).map(|(key, _)| *key).collect();
        running.into_iter().for_each(|key| self.end_request(key, REVOKED));
        let is_of = |exchange: &Exchange| exchange.binding.principal() == Some(principal);
        let open: Vec<ExchangeId> =
            self.env.exchanges.iter().filter(|(_, exchange)| is_of(exchange)).map(|(x, _)| *x).collect();
        open.into_iter().for_each(|x| self.revoke_exchange(x));
    }

    /// From whom a request comes. One of an older revision may have outlived the exchange that
    /// brought it.
    fn principal_of<'a>(&'a self, running: &'a Running) -> Option<&'a Principal> {
        match running.request() {
            Some(incoming) => incoming.context.principal.as_ref(),
            None => self.env.exchanges.get(&running.exchange)?.binding.principal(),
        }
    }

    /// Ends what is left of an exchange whose requests are answered.
    fn revoke_exchange(&mut self, x: ExchangeId) {
        let listens: Vec<RequestKey> =
            self.env.exchanges.get(&x).map(|exchange| exchange.listens.iter().copied().collect()).unwrap_or_default();
        listens.into_iter().for_each(|key| self.end_listen(key));
        match self.env.exchanges.get(&x).map(|exchange| &exchange.binding) {
            Some(Binding::Duplex(_)) => self.end_duplex(x),
            #[cfg(feature = "http")]
            Some(Binding::Http(_)) => self.env.refuse_unread(x, REVOKED),
            None => {}
        }
    }
}

impl Binding {
    /// From whom its requests come, once that was decided.
    fn principal(&self) -> Option<&Principal> {
        #[cfg(feature = "http")]
        if let Some(http) = self.http() {
            return Http::principal(http);
        }
        self.duplex().and_then(Duplex::principal)
    }
}
