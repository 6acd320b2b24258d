//! The state of a duplex connection.

use crate::auth::Access;
use crate::exchange::{Inbound, RequestHead};
use crate::input::{AdmitKey, RequestKey};
use crate::server::batch::{Array, Batch};
use crate::server::client::ClientKey;
use crate::server::era::Transport;
use crate::server::rights::ClientRights;
use crate::server::session::Session;
use crate::short_set::ShortSet;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use bytes::Bytes;

/// The state of a duplex connection.
#[derive(Debug)]
pub(in crate::server) struct Duplex {
    pub(in crate::server) session: Session,
    pub(in crate::server) admitted: DuplexAdmission,
    pub(super) batches: BTreeMap<u64, Batch>,
    pub(super) next_batch: u64,
    /// Its running requests.
    running: ShortSet<RequestKey>,
    /// Whether the client has closed its sending side.
    pub(super) ended: bool,
    /// HTTP+SSE: the stream that carries what the server sends.
    pub(in crate::server) sse: Option<Box<SseStream>>,
    /// WebSocket: the head of the handshake.
    pub(in crate::server) upgrade: Option<Arc<RequestHead>>,
}

/// The stream of a client over HTTP+SSE of 2024-11-05. What the client sends arrives in POSTs.
#[derive(Debug)]
pub(in crate::server) struct SseStream {
    /// The hash of the id that its POSTs name.
    pub(in crate::server) digest: [u8; 32],
    /// The client that it counts for.
    pub(in crate::server) client: ClientKey,
    /// The POST that is handled now.
    pub(in crate::server) posted: Option<PostOrigin>,
}

/// Where a message over HTTP+SSE comes from. Each POST has a token of its own.
#[derive(Debug)]
pub(in crate::server) struct PostOrigin {
    pub(in crate::server) head: Arc<RequestHead>,
    pub(in crate::server) access: Option<Arc<Access>>,
}

impl Duplex {
    pub(super) fn new(told: u64) -> Self {
        let admitted = DuplexAdmission::As(ClientRights::default());
        let (session, batches) = (Session::new(None, told, 1), BTreeMap::new());
        let (running, next_batch, ended) = (ShortSet::new(), 0, false);
        Self { session, admitted, batches, next_batch, running, ended, sse: None, upgrade: None }
    }

    /// Returns the connection of a client over a WebSocket, which was admitted with these rights.
    pub(in crate::server) fn over_web_socket(told: u64, rights: ClientRights, head: Arc<RequestHead>) -> Self {
        Self { admitted: DuplexAdmission::As(rights), upgrade: Some(head), ..Self::new(told) }
    }

    /// Returns the connection of a client over HTTP+SSE, which was admitted with these rights, and
    /// counts for this client.
    pub(in crate::server) fn over_sse(told: u64, rights: ClientRights, digest: [u8; 32], client: ClientKey) -> Self {
        let sse = Some(Box::new(SseStream { digest, client, posted: None }));
        Self { admitted: DuplexAdmission::As(rights), sse, ..Self::new(told) }
    }

    /// Returns whether it is a WebSocket.
    pub(in crate::server) const fn is_web_socket(&self) -> bool {
        self.upgrade.is_some()
    }

    /// Returns how its messages travel.
    pub(in crate::server) const fn transport(&self) -> Transport {
        match self.sse {
            Some(_) => Transport::Sse,
            None => Transport::Duplex,
        }
    }

    /// Returns the key of its admission, while the application has not decided.
    pub(in crate::server) const fn waits_for_admission(&self) -> Option<AdmitKey> {
        match self.admitted {
            DuplexAdmission::Waiting { key, .. } => Some(key),
            DuplexAdmission::As(_) => None,
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

    /// Returns as whom its client was admitted.
    pub(in crate::server) const fn rights(&self) -> Option<&ClientRights> {
        match &self.admitted {
            DuplexAdmission::As(rights) => Some(rights),
            DuplexAdmission::Waiting { .. } => None,
        }
    }

    /// A request of a batch is over. `response`: `None` if it was cancelled. Returns the array of
    /// the batch if it is complete.
    pub(in crate::server) fn end_in_batch(&mut self, batch: u64, response: Option<Bytes>) -> Option<Bytes> {
        self.batches.get_mut(&batch)?.end(response);
        self.take_complete_batch(batch)?.bytes
    }

    /// Removes a batch that is complete. Returns its array.
    pub(super) fn take_complete_batch(&mut self, batch: u64) -> Option<Array> {
        if !self.batches.get(&batch)?.is_complete() {
            return None;
        }
        self.batches.remove(&batch).map(Batch::into_array)
    }

    #[cfg(test)]
    pub(in crate::server) fn is_idle(&self) -> bool {
        self.session.is_idle() && self.batches.is_empty() && self.running.is_empty()
    }
}

/// The decision of the application about a duplex connection.
#[derive(Debug)]
pub(in crate::server) enum DuplexAdmission {
    /// It has not decided.
    Waiting { key: AdmitKey, early: Option<Box<Inbound>>, ended: bool },
    /// The connection is served, with these rights.
    As(ClientRights),
}

impl DuplexAdmission {
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
