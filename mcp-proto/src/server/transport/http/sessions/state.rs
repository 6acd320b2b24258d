//! What outlives an HTTP exchange.

use crate::exchange::{ExchangeId, Peer};
use crate::input::{Principal, SessionKey};
use crate::seed::Seed;
use crate::server::client::{ClientIdentity, ClientKey};
use crate::server::keys::StreamKey;
use crate::server::session::Session;
use crate::server::transport::http::history::History;
use crate::server::transport::http::streams::ResponseStream;
use crate::server::transport::http::{SharedSession, Tail};
use crate::short_map::ShortMap;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// What outlives an HTTP exchange: sessions and streams.
#[derive(Debug)]
pub(in crate::server) struct HttpState {
    pub(in super::super) seed: Seed,
    pub(in super::super) sessions: BTreeMap<SessionKey, Box<SessionEntry>>,
    /// By the digest of the id, so that the time of a lookup reveals nothing about the ids.
    pub(in super::super) names: BTreeMap<[u8; 32], SessionKey>,
    pub(super) last_session: u64,
    /// The time of the last sweep.
    pub(super) swept: Instant,
    pub(in super::super) streams: ShortMap<StreamKey, ResponseStream>,
    pub(in super::super) last_stream: u64,
    /// The exchanges that carry a session's own stream, and the clients that they count for.
    pub(in super::super) own: BTreeMap<ExchangeId, ClientKey>,
    /// The exchanges that carry streams of other servers.
    pub(in crate::server) tails: BTreeMap<ExchangeId, Tail>,
    /// HTTP+SSE: the streams, by the digest of the id that their POSTs name.
    pub(in super::super) sse: BTreeMap<[u8; 32], ExchangeId>,
    /// The peer of the request that comes next.
    pub(in crate::server) sender: Option<(ExchangeId, Arc<Peer>)>,
}

/// The session of a legacy HTTP client, in the table of sessions.
#[derive(Debug)]
pub(in crate::server) struct SessionEntry {
    pub(in super::super) digest: [u8; 32],
    pub(in super::super) principal: Option<Principal>,
    pub(in crate::server) session: Session,
    /// The time of the last activity of its client.
    pub(super) active: Instant,
    /// Whether a message has followed `initialize`.
    pub(super) has_begun: bool,
    pub(in super::super) streams: BTreeSet<StreamKey>,
    /// Number of streams that it has had.
    pub(in super::super) last_stream: u64,
    /// Its own stream, which belongs to no request.
    pub(in super::super) own: Option<StreamKey>,
    pub(in super::super) history: History,
    /// What a store has of it.
    pub(in super::super) shared: Option<Box<SharedSession>>,
    /// The client that opened it. It counts for this one, and so does what the client declared.
    pub(in crate::server) opener: ClientKey,
    /// The client that its history counts for.
    pub(in super::super) client: ClientIdentity,
}

impl SessionEntry {
    /// Its client uses it, here or at another server. Returns whether nothing has since it was
    /// opened.
    pub(in super::super) const fn is_used(&mut self, now: Instant) -> bool {
        self.active = now;
        !core::mem::replace(&mut self.has_begun, true)
    }
}

impl HttpState {
    pub(in crate::server) fn new(seed: Seed) -> Self {
        Self {
            seed,
            sessions: BTreeMap::new(),
            names: BTreeMap::new(),
            last_session: 0,
            swept: Instant::ZERO,
            streams: ShortMap::new(),
            last_stream: 0,
            own: BTreeMap::new(),
            tails: BTreeMap::new(),
            sse: BTreeMap::new(),
            sender: None,
        }
    }

    pub(in crate::server) fn http_session(&self, key: SessionKey) -> Option<&SessionEntry> {
        self.sessions.get(&key).map(|session| &**session)
    }

    pub(in crate::server) fn http_session_mut(&mut self, key: SessionKey) -> Option<&mut SessionEntry> {
        self.sessions.get_mut(&key).map(|session| &mut **session)
    }

    pub(in crate::server) fn stream(&self, key: StreamKey) -> Option<&ResponseStream> {
        self.streams.get(&key)
    }

    pub(in crate::server) fn stream_mut(&mut self, key: StreamKey) -> Option<&mut ResponseStream> {
        self.streams.get_mut(&key)
    }

    /// Returns the exchange that carries the own stream of a session.
    pub(in crate::server) fn carrier_of_own_stream(&self, key: SessionKey) -> Option<ExchangeId> {
        self.streams.get(&self.sessions.get(&key)?.own?)?.exchange()
    }

    /// Returns the sessions that this principal opened.
    pub(in crate::server) fn sessions_of(&self, principal: &Principal) -> Vec<SessionKey> {
        let sessions = self.sessions.iter();
        sessions.filter(|(_, session)| session.principal.as_ref() == Some(principal)).map(|(key, _)| *key).collect()
    }

    pub(super) fn streams_of(&self, key: SessionKey) -> Vec<StreamKey> {
        self.sessions.get(&key).map(|session| session.streams.iter().copied().collect()).unwrap_or_default()
    }

    /// Returns the number of sessions.
    pub(in crate::server) fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Returns the number of open or kept streams of legacy clients.
    pub(in crate::server) fn streams(&self) -> usize {
        self.streams.values().filter(|stream| stream.is_legacy()).count()
    }

    #[cfg(test)]
    pub(in crate::server) fn swept(&self) -> Instant {
        self.swept
    }

    #[cfg(test)]
    pub(in crate::server) fn is_empty(&self) -> bool {
        self.sessions.is_empty()
            && self.names.is_empty()
            && self.streams.is_empty()
            && self.own.is_empty()
            && self.tails.is_empty()
            && self.sse.is_empty()
    }
}
