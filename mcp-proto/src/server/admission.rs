//! Admission: the application decides whether a client is served, from the head of an HTTP request
//! or from the peer of an accepted duplex connection. The engine serves nothing of either before.

use super::{Event, Server, ServerConfig, Timer};
use crate::error::DiagnosticKind;
use crate::exchange::{ExchangeId, Inbound, Outbound, Peer, RequestHead};
use crate::input::{Admission, AdmitKey, AdmitToken, Principal};
use alloc::boxed::Box;
use alloc::sync::Arc;

/// The decision of the application about a duplex connection.
#[derive(Debug)]
pub(super) enum Admitted {
    /// It has not decided.
    Waiting { key: AdmitKey, early: Option<Box<Inbound>>, ended: bool },
    /// The connection is served, for this principal.
    As(Option<Principal>),
}

impl ServerConfig {
    /// Returns whether the application decides about a duplex connection of this peer. It does not
    /// for a stream that was given to the driver: the peer is the program that started this one, or
    /// one that the application has chosen.
    pub(super) fn asks_about(&self, peer: &Peer) -> bool {
        self.admit && peer.is_accepted()
    }
}

impl Server {
    /// Emits the admission of an exchange. `head`: that of its HTTP request.
    pub(super) fn ask_admission(&mut self, x: ExchangeId, peer: Peer, head: Option<Arc<RequestHead>>) -> AdmitKey {
        // From the counter of the request keys, so that no other engine has the same.
        let key = AdmitKey(self.mint_key().0);
        self.env.admitting.insert(key, x);
        let timeout = self.env.now + self.shared.config.limits.server.admit_timeout;
        self.env.timers.set(Timer::Admit(x), Some(timeout));
        self.env.emit(Event::Admit(AdmitToken::new(key, peer), head));
        key
    }

    /// The application has decided.
    pub(super) fn on_admission(&mut self, key: AdmitKey, admission: Admission) {
        let Some(x) = self.env.admitting.get(&key).copied() else { return };
        self.env.forget_admission(x, key);
        #[cfg(feature = "http")]
        if self.env.exchanges.get(&x).is_some_and(|exchange| exchange.binding.http().is_some()) {
            return self.http_admission(x, admission);
        }
        match admission {
            Admission::Accept(principal) => self.admit_duplex(x, principal),
            Admission::Unauthorized(_) => self.refuse_duplex(x, "its credentials are not valid"),
            Admission::Forbidden(_) => self.refuse_duplex(x, "its credentials do not suffice"),
        }
    }

    /// The admission has timed out.
    pub(super) fn on_admit_timeout(&mut self, x: ExchangeId) {
        #[cfg(feature = "http")]
        if self.env.exchanges.get(&x).is_some_and(|exchange| exchange.binding.http().is_some()) {
            return self.http_admit_timeout(x);
        }
        self.refuse_duplex(x, "it was not admitted in time");
    }

    fn admit_duplex(&mut self, x: ExchangeId, principal: Option<Principal>) {
        if !self.env.counts_as(x, principal.as_ref()) {
            return self.refuse_duplex(x, "the client has taken its share of the server");
        }
        let Some(duplex) = self.env.duplex_mut(x) else { return };
        let before = core::mem::replace(&mut duplex.admitted, Admitted::As(principal));
        let Admitted::Waiting { early, ended, .. } = before else { return };
        self.env.send(x, Outbound::Continue);
        self.await_handshake(x);
        early.into_iter().for_each(|item| self.duplex_item(x, *item));
        if ended {
            self.duplex_item(x, Inbound::End);
        }
    }

    /// Closes a duplex connection that is not served: there is no request to answer.
    fn refuse_duplex(&mut self, x: ExchangeId, why: &str) {
        self.env.diagnose(DiagnosticKind::NotAdmitted, why);
        self.abort(x);
    }

    /// Keeps one message, and the end of the input, that a driver reads before the decision. A
    /// second message closes the connection.
    pub(super) fn duplex_early(&mut self, x: ExchangeId, item: Inbound) {
        let Some(duplex) = self.env.duplex_mut(x) else { return };
        let Admitted::Waiting { early, ended, .. } = &mut duplex.admitted else { return };
        match (early, item) {
            (_, Inbound::End) => *ended = true,
            (early @ None, item) if !*ended => *early = Some(Box::new(item)),
            _ => self.refuse_duplex(x, "a second message came before the decision"),
        }
    }
}
