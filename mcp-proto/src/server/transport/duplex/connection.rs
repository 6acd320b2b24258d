//! The state of a duplex connection.

use crate::exchange::Inbound;
use crate::input::{AdmitKey, Principal, RequestKey};
use crate::server::batch::Batch;
use crate::server::session::Session;
use crate::short_set::ShortSet;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;

/// The state of a duplex connection.
#[derive(Debug)]
pub(in crate::server) struct Duplex {
    pub(in crate::server) session: Session,
    pub(in crate::server) admitted: Admitted,
    pub(super) batches: BTreeMap<u64, Batch>,
    pub(super) next_batch: u64,
    /// Its running requests.
    running: ShortSet<RequestKey>,
    /// Whether the client has closed its sending side.
    pub(super) ended: bool,
}

impl Duplex {
    pub(super) fn new(told: u64) -> Self {
        let (session, admitted) = (Session::new(None, told), Admitted::As(None));
        Self { session, admitted, batches: BTreeMap::new(), next_batch: 0, running: ShortSet::new(), ended: false }
    }

    /// Returns the key of its admission, while the application has not decided.
    pub(in crate::server) const fn waits_for_admission(&self) -> Option<AdmitKey> {
        match self.admitted {
            Admitted::Waiting { key, .. } => Some(key),
            Admitted::As(_) => None,
        }
    }

    /// Returns the estimated bytes of what the client declared in `initialize`.
    pub(in crate::server) fn weight(&self) -> usize {
        self.session.weight()
    }

    /// Returns whether the client has closed its sending side.
    pub(in crate::server) const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns its running requests.
    pub(in crate::server) const fn running(&self) -> &ShortSet<RequestKey> {
        &self.running
    }

    pub(in crate::server) const fn running_mut(&mut self) -> &mut ShortSet<RequestKey> {
        &mut self.running
    }

    /// Returns the principal of its admission.
    pub(in crate::server) fn principal(&self) -> Option<&Principal> {
        match &self.admitted {
            Admitted::As(principal) => principal.as_ref(),
            Admitted::Waiting { .. } => None,
        }
    }

    #[cfg(test)]
    pub(in crate::server) fn is_idle(&self) -> bool {
        self.session.is_idle() && self.batches.is_empty() && self.running.is_empty()
    }
}

/// The decision of the application about a duplex connection.
#[derive(Debug)]
pub(in crate::server) enum Admitted {
    /// It has not decided.
    Waiting { key: AdmitKey, early: Option<Box<Inbound>>, ended: bool },
    /// The connection is served, for this principal.
    As(Option<Principal>),
}

impl Admitted {
    /// Keeps one message, and the end of the input, that a driver reads before the decision.
    /// Returns false for a second message, which closes the connection.
    pub(in crate::server) fn keep(&mut self, item: Inbound) -> bool {
        let Self::Waiting { early, ended, .. } = self else { return true };
        match (early, item) {
            (_, Inbound::End) => *ended = true,
            (early @ None, item) if !*ended => *early = Some(Box::new(item)),
            _ => return false,
        }
        true
    }
}
