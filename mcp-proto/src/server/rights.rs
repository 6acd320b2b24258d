//! As whom a client was admitted, and what it may do.

use crate::auth::{Access, Principal};
use crate::time::Instant;
use alloc::sync::Arc;
use core::time::Duration;

/// As whom a client was admitted, and what it may do. Empty if no application has decided.
#[derive(Clone, Default, Debug)]
pub(super) struct ClientRights {
    pub(super) principal: Option<Principal>,
    /// What its token says. `None`: it was admitted without one.
    pub(super) access: Option<Arc<Access>>,
}

impl ClientRights {
    /// Returns when they end. `origin_unix`: the Unix time of [`Instant::ZERO`].
    pub(super) fn end(&self, origin_unix: Duration) -> Option<Instant> {
        let expires = self.access.as_ref()?.expires?;
        Some(Instant::new(expires.saturating_sub(origin_unix)))
    }
}

impl From<Option<Principal>> for ClientRights {
    fn from(principal: Option<Principal>) -> Self {
        Self { principal, access: None }
    }
}

impl From<Arc<Access>> for ClientRights {
    fn from(access: Arc<Access>) -> Self {
        Self { principal: Some(access.principal.clone()), access: Some(access) }
    }
}
