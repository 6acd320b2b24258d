//! Admission: the application decides whether a client is served, from the head of an HTTP request
//! or from the peer of an accepted duplex connection. The engine serves nothing of either before.

use super::requests::Requests;
use super::rights::ClientRights;
use super::transport::DuplexAdmission;
use super::{Server, ServerConfig};
use crate::auth::AccessDenial;
use crate::error::DiagnosticKind;
use crate::exchange::{ExchangeId, Inbound, Outbound, Peer};
use crate::input::{Admission, AdmitKey};

impl ServerConfig {
    /// Returns whether the application decides about a duplex connection of this peer. It does not
    /// for a stream that was given to the driver: the peer is the program that started this one, or
    /// one that the application has chosen.
    pub(super) fn asks_about(&self, peer: &Peer) -> bool {
        self.admit && peer.is_accepted()
    }

    /// Returns the decision of the application, or a denial if the access lacks a scope that every
    /// request needs.
    pub(super) fn within_scopes(&self, admission: Admission) -> Admission {
        match (&self.resource, admission) {
            (Some(resource), Admission::Granted(access)) if !access.scopes.contains_all(&resource.scopes_required) => {
                Admission::Denied(AccessDenial::Scope(resource.scopes_required.clone()))
            }
            (_, admission) => admission,
        }
    }
}

impl Requests {
    /// Returns a new key of an admission. It is from the counter of the request keys, so that no
    /// other engine has the same.
    pub(super) const fn mint_admit_key(&mut self) -> AdmitKey {
        AdmitKey::new(self.mint_key().number())
    }
}

impl Server {
    /// The application has decided.
    pub(super) fn on_admission(&mut self, key: AdmitKey, admission: Admission) {
        let Some(x) = self.wire.env.admitting.get(&key).copied() else { return };
        self.wire.env.forget_admission(x, key);
        if self.wire.env.exchanges.get(&x).is_some_and(|exchange| exchange.binding.http().is_some()) {
            return self.http_admission(x, admission);
        }
        match self.wire.env.config.within_scopes(admission) {
            Admission::Accept(principal) => self.admit_duplex(x, principal.into()),
            Admission::Granted(access) => self.admit_duplex(x, access.into()),
            Admission::Denied(_) => self.refuse_duplex(x, "its credentials are not accepted"),
            Admission::Unauthorized(_) => self.refuse_duplex(x, "its credentials are not valid"),
            Admission::Forbidden(_) => self.refuse_duplex(x, "its credentials do not suffice"),
        }
    }

    /// The admission has timed out.
    pub(super) fn on_admit_timeout(&mut self, x: ExchangeId) {
        if self.wire.env.exchanges.get(&x).is_some_and(|exchange| exchange.binding.http().is_some()) {
            return self.wire.env.refuse_busy(x, None, "the request was not admitted in time");
        }
        self.refuse_duplex(x, "it was not admitted in time");
    }

    fn admit_duplex(&mut self, x: ExchangeId, rights: ClientRights) {
        if !self.wire.env.counts_as(x, rights.principal.as_ref()) {
            return self.refuse_duplex(x, "the client has taken its share of the server");
        }
        let Some(duplex) = self.wire.env.duplex_mut(x) else { return };
        let before = core::mem::replace(&mut duplex.admitted, DuplexAdmission::As(rights));
        let DuplexAdmission::Waiting { early, ended, .. } = before else { return };
        self.wire.env.end_with_token(x);
        self.wire.env.send(x, Outbound::Continue);
        self.wire.env.await_handshake(x);
        early.into_iter().for_each(|item| self.duplex_item(x, *item));
        if ended {
            self.duplex_item(x, Inbound::End);
        }
    }

    /// Closes a duplex connection that is not served: there is no request to answer.
    pub(super) fn refuse_duplex(&mut self, x: ExchangeId, why: &str) {
        self.wire.env.diagnose(DiagnosticKind::NotAdmitted, why);
        self.abort(x);
    }
}
