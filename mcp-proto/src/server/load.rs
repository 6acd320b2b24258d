//! The bytes that were sent on an exchange and are not written.

use crate::exchange::{Body, Outbound};

/// The bytes that were sent on an exchange and are not written.
#[derive(Debug, Default)]
pub(super) struct Load {
    /// Bytes in the queue of outputs.
    pub(super) queued: usize,
    /// Bytes that the driver took since its last report of unsent bytes. Counted only if it reports
    /// at all.
    pub(super) handed: usize,
    /// Unsent bytes, as last reported.
    pub(super) unsent: usize,
    pub(super) told: bool,
    /// Bytes of the engine's own responses while the exchange was over its limit.
    pub(super) excess: usize,
}

impl Load {
    pub(super) fn total(&self) -> usize {
        self.queued.saturating_add(self.unsent).saturating_add(if self.told { self.handed } else { 0 })
    }
}

/// Returns the size of an outbound part, in bytes, without framing.
pub(super) fn size(outgoing: &Outbound) -> usize {
    match outgoing {
        Outbound::Message(bytes) | Outbound::Event { data: bytes, .. } => bytes.len(),
        Outbound::Response { body: Body::Full(bytes), .. } => bytes.len(),
        _ => 0,
    }
}
