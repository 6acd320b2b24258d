//! What is said on an exchange and not yet written.

use crate::exchange::{Body, Outbound};

/// What was said on an exchange and is not written yet.
#[derive(Debug, Default)]
pub(super) struct Load {
    /// Bytes in the queue of outputs.
    pub(super) queued: usize,
    /// Bytes that the driver took since it last told how many are unsent. Counted only if it ever
    /// tells.
    pub(super) handed: usize,
    /// Bytes unsent, as last told.
    pub(super) unsent: usize,
    pub(super) told: bool,
    /// Bytes that the engine answered by itself while the exchange was over its bound.
    pub(super) excess: usize,
}

impl Load {
    pub(super) fn total(&self) -> usize {
        self.queued.saturating_add(self.unsent).saturating_add(if self.told { self.handed } else { 0 })
    }
}

/// The bytes that an outgoing weighs: its content, without framing.
pub(super) fn size(outgoing: &Outbound) -> usize {
    match outgoing {
        Outbound::Message(bytes) | Outbound::Event { data: bytes, .. } => bytes.len(),
        Outbound::Response { body: Body::Full(bytes), .. } => bytes.len(),
        _ => 0,
    }
}
