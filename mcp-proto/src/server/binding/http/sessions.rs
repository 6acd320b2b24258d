//! Sessions of the legacy revisions over HTTP (2025-11-25 transports, session management).
//! `initialize` opens one and binds it to its principal. DELETE or a time without activity ends it.

use super::history::History;
use super::streams::{ResponseStream, StreamKey};
use crate::exchange::{ExchangeId, Peer};
use crate::input::{Principal, RequestKey, SessionKey};
use crate::seed::Seed;
use crate::server::env::Env;
use crate::server::era::{ErrorReply, Negotiated};
use crate::server::session::Session;
use crate::server::shares::{Bound, Client, ClientKey};
use crate::server::{Event, Server, SessionEnd, Timer};
use crate::time::Instant;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use core::time::Duration;
use hmac_sha256::Hash;

/// Minimum time between two sweeps of all sessions, where clients that are refused for want of room
/// retry again and again.
const SWEEPS_APART: Duration = Duration::from_secs(1);

/// What outlives an HTTP exchange: sessions and streams.
#[derive(Debug)]
pub(in crate::server) struct HttpState {
    seed: Seed,
    pub(super) sessions: BTreeMap<SessionKey, HttpSession>,
    /// By the digest of the id, so that the time of a lookup reveals nothing about the ids.
    names: BTreeMap<[u8; 32], SessionKey>,
    last_session: u64,
    /// The time of the last sweep.
    swept: Instant,
    pub(super) streams: BTreeMap<StreamKey, ResponseStream>,
    pub(super) last_stream: u64,
    /// The exchanges that carry a session's own stream, and the clients that they count for.
    pub(super) own: BTreeMap<ExchangeId, ClientKey>,
    /// The peer of the request that comes next.
    pub(in crate::server) sender: Option<(ExchangeId, Peer)>,
}

/// The session of a legacy HTTP client.
#[derive(Debug)]
pub(in crate::server) struct HttpSession {
    digest: [u8; 32],
    principal: Option<Principal>,
    pub(in crate::server) session: Session,
    /// The time of the last activity of its client.
    active: Instant,
    /// Whether a message has followed `initialize`.
    has_begun: bool,
    pub(super) streams: BTreeSet<StreamKey>,
    /// Number of streams that it has had.
    pub(super) last_stream: u64,
    /// Its own stream, which belongs to no request.
    pub(super) own: Option<StreamKey>,
    pub(super) history: History,
    /// The client that opened it. It counts for this one, and so does what the client declared.
    opener: ClientKey,
    /// The client that its history counts for.
    pub(super) client: Client,
}

impl HttpState {
    pub(in crate::server) fn new(seed: Seed) -> Self {
        Self {
            seed,
            sessions: BTreeMap::new(),
            names: BTreeMap::new(),
            last_session: 0,
            swept: Instant::ZERO,
            streams: BTreeMap::new(),
            last_stream: 0,
            own: BTreeMap::new(),
            sender: None,
        }
    }

    pub(in crate::server) fn http_session(&self, key: SessionKey) -> Option<&HttpSession> {
        self.sessions.get(&key)
    }

    pub(in crate::server) fn http_session_mut(&mut self, key: SessionKey) -> Option<&mut HttpSession> {
        self.sessions.get_mut(&key)
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

    fn streams_of(&self, key: SessionKey) -> Vec<StreamKey> {
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
        self.sessions.is_empty() && self.names.is_empty() && self.streams.is_empty() && self.own.is_empty()
    }

    /// The client of a session was active, or a stream of it ended.
    pub(super) fn touch_session(&mut self, env: &mut Env, key: SessionKey) {
        let now = env.now;
        if let Some(session) = self.sessions.get_mut(&key) {
            session.active = now;
        }
    }

    /// Returns whether a session has been idle for too long. It is not idle while a request of it
    /// runs or a stream of it is open.
    fn is_idle_too_long(&self, env: &Env, key: SessionKey) -> bool {
        let limits = &env.config.limits.server;
        let Some(session) = self.sessions.get(&key) else { return false };
        let limit = if session.has_begun { limits.session_idle } else { limits.session_start };
        let is_open = |stream: &StreamKey| self.streams.get(stream).is_some_and(ResponseStream::is_active);
        env.now - session.active >= limit && !session.streams.iter().any(is_open)
    }
}

impl Server {
    /// Opens a session and returns its id: 192 unpredictable bits, in characters that every header
    /// field may hold.
    pub(super) fn open_session(&mut self, x: ExchangeId, negotiated: Negotiated) -> Result<String, ErrorReply> {
        let limits = &self.shared.config.limits.server;
        let (max, sweep) = (limits.max_sessions, limits.session_sweep);
        if self.http.sessions.len() >= max && self.env.now - self.http.swept >= SWEEPS_APART {
            self.sweep_sessions();
        }
        let opener = self.env.client_on(x, None);
        self.env.check_share(&opener, Bound::Sessions, 1).map_err(|full| full.reject("there are too many sessions"))?;
        self.env
            .check_share(&opener, Bound::ClientData, negotiated.weight)
            .map_err(|full| full.reject("there is no room for what the client says of itself"))?;
        let id = URL_SAFE_NO_PAD.encode(&self.http.seed.next_bytes()[..24]);
        self.http.last_session += 1;
        let key = SessionKey(self.http.last_session);
        let client = self.env.client_on(x, Some(key));
        let opener = self.env.shares.take(&opener, Bound::Sessions, 1);
        self.env.shares.add(opener, Bound::ClientData, negotiated.weight);
        let session = HttpSession {
            digest: Hash::hash(id.as_bytes()),
            principal: self.caller(x).principal,
            session: Session::new(Some(negotiated), self.changes),
            active: self.env.now,
            has_begun: false,
            streams: BTreeSet::new(),
            last_stream: 0,
            own: None,
            history: History::default(),
            opener,
            client,
        };
        self.http.names.insert(session.digest, key);
        self.http.sessions.insert(key, session);
        if self.env.timers.get(Timer::Sweep).is_none() {
            self.env.timers.set(Timer::Sweep, Some(self.env.now + sweep));
        }
        self.env.emit(Event::SessionOpened(key));
        Ok(id)
    }

    /// Returns the session with this id, if it is open and belongs to the principal of the request.
    pub(super) fn find_session(&mut self, x: ExchangeId, id: &str) -> Option<SessionKey> {
        let key = *self.http.names.get(&Hash::hash(id.as_bytes()))?;
        let principal = self.caller(x).principal;
        if self.http.sessions.get(&key)?.principal != principal {
            return None;
        }
        if self.http.is_idle_too_long(&self.env, key) {
            self.end_session(key, SessionEnd::Idle);
            return None;
        }
        let now = self.env.now;
        let session = self.http.sessions.get_mut(&key)?;
        (session.active, session.has_begun) = (now, true);
        Some(key)
    }

    /// Ends a session: its requests are cancelled and answered, its streams end, and everything of
    /// it is removed.
    pub(in crate::server) fn end_session(&mut self, key: SessionKey, why: SessionEnd) {
        for stream in self.http.streams_of(key) {
            let running: Vec<RequestKey> = self
                .http
                .streams
                .get(&stream)
                .map(|stream| stream.running().iter().copied().collect())
                .unwrap_or_default();
            running.into_iter().for_each(|request| self.end_request(request, "the session has ended"));
        }
        // Among them a stream that the engine has just opened to withdraw its requests.
        self.http.streams_of(key).into_iter().for_each(|stream| self.end_stream(stream));
        let Some(session) = self.http.sessions.remove(&key) else { return };
        self.http.names.remove(&session.digest);
        self.env.shares.give_back_of(&session.client, Bound::History, session.history.bytes());
        self.env.shares.give_back(session.opener, Bound::ClientData, session.session.weight());
        self.env.shares.give_back(session.opener, Bound::Sessions, 1);
        if self.http.sessions.is_empty() {
            self.env.timers.set(Timer::Sweep, None);
        }
        self.env.emit(Event::SessionEnded(key, why));
    }

    /// Ends idle sessions, and sets the next sweep.
    pub(in crate::server) fn on_sweep(&mut self) {
        self.sweep_sessions();
        if !self.http.sessions.is_empty() {
            let next = self.env.again(self.shared.config.limits.server.session_sweep);
            self.env.timers.set(Timer::Sweep, Some(next));
        }
    }

    fn sweep_sessions(&mut self) {
        self.http.swept = self.env.now;
        let idle: Vec<SessionKey> =
            self.http.sessions.keys().copied().filter(|key| self.http.is_idle_too_long(&self.env, *key)).collect();
        idle.into_iter().for_each(|key| self.end_session(key, SessionEnd::Idle));
    }

    /// The server terminates. It emits no event for the sessions, since all are over.
    pub(in crate::server) fn clear_http(&mut self) {
        let seed = self.http.seed.clone();
        self.http = HttpState::new(seed);
    }

    /// Ends the sessions' own streams, since the server shuts down.
    pub(in crate::server) fn end_own_streams(&mut self) {
        let own: Vec<StreamKey> = self.http.sessions.values().filter_map(|session| session.own).collect();
        own.into_iter().for_each(|stream| self.end_stream(stream));
    }
}
