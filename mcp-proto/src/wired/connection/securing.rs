//! TLS on the connection of a client: the driver has it, and the connection waits for it.

use super::Connection;
use crate::exchange::{Peer, Shutdown};
use alloc::sync::Arc;

/// The beginning of TLS on the connection of a client.
#[derive(Debug)]
pub(super) enum Securing {
    /// The connection is not open, and leads to the server of this name.
    Waits(Arc<str>),
    /// It is open.
    Due(Arc<str>),
    /// The driver has begun.
    Begun,
}

impl Securing {
    /// The connection is open.
    pub(super) fn opened(&mut self) {
        if let Self::Waits(name) = self {
            *self = Self::Due(Arc::clone(name));
        }
    }

    /// Returns the name once the connection is open, once.
    pub(super) fn begin(&mut self) -> Option<Arc<str>> {
        match core::mem::replace(self, Self::Begun) {
            Self::Due(name) => Some(name),
            other => {
                *self = other;
                None
            }
        }
    }
}

impl Connection {
    /// Lets the driver begin TLS with the server of this name once the connection is open. Both
    /// count toward [`open_timeout`](crate::limits::FrameLimits::open_timeout).
    #[must_use]
    pub fn with_tls(mut self, name: Arc<str>) -> Self {
        self.route.get_or_insert_default().securing = Some(Securing::Waits(name));
        self
    }

    pub(super) fn secured(&mut self) {
        if self.ending != Some(Shutdown::Abort)
            && let Some(route) = &mut self.route
            && let Some(Securing::Begun) = route.securing
        {
            route.securing = None;
            self.begin_use(Peer::default());
        }
    }

    pub(super) fn securing(&mut self) -> Option<&mut Securing> {
        self.route.as_mut()?.securing.as_mut()
    }
}
