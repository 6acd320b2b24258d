//! Sessions of the legacy revisions over HTTP (2025-11-25 transports, session management).
//! `initialize` opens one and binds it to its principal. DELETE or a time without activity ends it.

mod state;

pub(in crate::server) use state::HttpState;
pub(super) use state::SessionEntry;

use super::history::History;
use super::shared::SharedSession;
use super::streams::ResponseStream;
use crate::exchange::ExchangeId;
use crate::input::{Principal, RequestKey, SessionKey};
use crate::server::client::Bound;
use crate::server::env::ServerEnv;
use crate::server::keys::{ServerTimer, SessionRef, StreamKey};
use crate::server::response::ErrorReply;
use crate::server::session::{Session, SessionTerms};
use crate::server::state_keys::StateKeys;
use crate::server::watched::Watcher;
use crate::server::{Event, Server, SessionEnd};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use core::time::Duration;
use hmac_sha256::Hash;

/// Minimum time between two sweeps of all sessions, where clients that are refused for want of room
/// retry again and again.
const SWEEPS_APART: Duration = Duration::from_secs(1);

/// A session that begins, or a copy of one of the store.
pub(super) struct NewSession {
    /// The digest of its id.
    pub(super) digest: [u8; 32],
    pub(super) principal: Option<Principal>,
    pub(super) negotiated: SessionTerms,
    /// The number of changes that its client needs no notification of.
    pub(super) changes: u64,
    pub(super) shared: Option<Box<SharedSession>>,
}

impl HttpState {
    /// The client of a session was active, or a stream of it ended.
    pub(super) fn touch_session(&mut self, env: &mut ServerEnv, key: SessionKey) {
        let now = env.now;
        if let Some(session) = self.sessions.get_mut(&key) {
            session.active = now;
        }
    }

    /// Returns whether a session has been idle for too long. It is not idle while a request of it
    /// runs or a stream of it is open.
    pub(super) fn is_idle_too_long(&self, env: &ServerEnv, key: SessionKey) -> bool {
        let limits = &env.config.limits.server;
        let Some(session) = self.sessions.get(&key) else { return false };
        let limit = if session.has_begun { limits.session_idle } else { limits.session_start };
        let is_open = |stream: &StreamKey| self.streams.get(stream).is_some_and(ResponseStream::is_active);
        env.now - session.active >= limit && !session.streams.iter().any(is_open)
    }

    /// Returns whether idle sessions are worth a sweep before a client opens another: there is no
    /// room for it, and the last sweep was not just before.
    pub(super) fn needs_sweep(&self, env: &ServerEnv) -> bool {
        self.sessions.len() >= env.config.limits.server.max_sessions && env.now - self.swept >= SWEEPS_APART
    }

    /// Returns a new id of a session: 192 unpredictable bits, in characters that every header field
    /// and every query may hold.
    pub(super) fn mint_id(&mut self) -> String {
        URL_SAFE_NO_PAD.encode(&self.seed.next_bytes()[..24])
    }

    /// Opens a session and returns its key and its id. `keys`: those of servers that share it.
    /// `changes`: the number of changes that its client needs no notification of.
    pub(super) fn open_session(
        &mut self,
        env: &mut ServerEnv,
        x: ExchangeId,
        negotiated: SessionTerms,
        changes: u64,
        keys: Option<&StateKeys>,
    ) -> Result<(SessionKey, String), ErrorReply> {
        let id = match keys {
            Some(keys) => {
                let [random @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _] = self.seed.next_bytes();
                keys.session_id(&random)
            }
            None => self.mint_id(),
        };
        let tag = env.node.as_ref().filter(|_| keys.is_some()).map(|node| node.tag());
        let shared = tag.map(|tag| Box::new(SharedSession::opened(env.now, tag)));
        let (digest, principal) = (Hash::hash(id.as_bytes()), env.rights(x).principal);
        let new = NewSession { digest, principal, negotiated, changes, shared };
        self.add_session(env, x, new).map(|key| (key, id))
    }

    /// Adds a session for the client of an exchange.
    pub(super) fn add_session(
        &mut self,
        env: &mut ServerEnv,
        x: ExchangeId,
        NewSession { digest, principal, negotiated, changes, shared }: NewSession,
    ) -> Result<SessionKey, ErrorReply> {
        let opener = env.client_on(x, None);
        env.check_share(&opener, Bound::Sessions, 1).map_err(|full| full.reject("there are too many sessions"))?;
        env.check_share(&opener, Bound::ClientData, negotiated.weight)
            .map_err(|full| full.reject("there is no room for what the client says of itself"))?;
        self.last_session += 1;
        let key = SessionKey::new(self.last_session);
        let client = env.client_on(x, Some(key));
        let opener = env.shares.take(&opener, Bound::Sessions, 1);
        env.shares.add(opener, Bound::ClientData, negotiated.weight);
        let session = SessionEntry {
            digest,
            principal,
            session: Session::new(Some(negotiated), changes, env.first_question()),
            active: env.now,
            has_begun: false,
            streams: BTreeSet::new(),
            last_stream: 0,
            own: None,
            history: History::default(),
            shared,
            opener,
            client,
        };
        self.names.insert(session.digest, key);
        self.sessions.insert(key, Box::new(session));
        if env.timers.get(ServerTimer::Sweep).is_none() {
            env.timers.set(ServerTimer::Sweep, Some(env.now + env.sweep_interval()));
        }
        env.emit(Event::SessionOpened(key));
        Ok(key)
    }

    /// The server terminates. It emits no event for the sessions, since all are over.
    pub(in crate::server) fn clear(&mut self) {
        let seed = self.seed.clone();
        *self = Self::new(seed);
    }
}

impl ServerEnv {
    /// Brings the next sweep forward.
    pub(super) fn sweep_soon(&mut self) {
        let soon = self.again(SWEEPS_APART);
        if self.timers.get(ServerTimer::Sweep).is_none_or(|at| at > soon) {
            self.timers.set(ServerTimer::Sweep, Some(soon));
        }
    }

    /// Returns the interval at which sessions are swept: with a store often enough that it keeps a
    /// session whose stream is open.
    fn sweep_interval(&self) -> Duration {
        let limits = &self.config.limits.server;
        match self.node {
            Some(_) => limits.session_sweep.min(limits.session_idle / 3),
            None => limits.session_sweep,
        }
    }
}

impl Server {
    /// Returns the session with this id, if it is open and belongs to the principal of the request.
    pub(super) fn find_session(&mut self, x: ExchangeId, id: &str) -> Option<SessionKey> {
        let key = *self.wire.http.names.get(&Hash::hash(id.as_bytes()))?;
        if self.wire.http.sessions.get(&key)?.principal != self.wire.env.rights(x).principal {
            return None;
        }
        if self.wire.http.is_idle_too_long(&self.wire.env, key) {
            self.end_session(key, SessionEnd::Idle);
            return None;
        }
        let now = self.wire.env.now;
        let session = self.wire.http.sessions.get_mut(&key)?;
        let is_first = session.is_used(now);
        self.wire.http.touch_shared(&mut self.wire.env, key, is_first);
        Some(key)
    }

    /// Ends a session: its requests are cancelled and answered, its streams end, and everything of
    /// it is removed.
    pub(in crate::server) fn end_session(&mut self, key: SessionKey, why: SessionEnd) {
        for stream in self.wire.http.streams_of(key) {
            let running: Vec<RequestKey> =
                self.wire.http.streams.get(&stream).map(|stream| stream.running().iter().collect()).unwrap_or_default();
            running
                .into_iter()
                .for_each(|request| self.requests.end_request(&mut self.wire, request, "the session has ended"));
        }
        // Among them a stream that the engine has just opened to withdraw its requests.
        self.wire.http.streams_of(key).into_iter().for_each(|stream| self.end_stream(stream));
        self.requests.leave_pages(&mut self.wire.env, SessionRef::Http(key));
        let Some(session) = self.wire.http.sessions.remove(&key) else { return };
        self.wire.http.names.remove(&session.digest);
        if let Some(watched) = session.session.watched() {
            self.wire.env.watched.forget(watched, Watcher::Session(SessionRef::Http(key)));
        }
        self.wire.env.shares.give_back_of(&session.client, Bound::History, session.history.bytes());
        self.wire.env.shares.give_back(session.opener, Bound::ClientData, session.session.weight());
        self.wire.env.shares.give_back(session.opener, Bound::Sessions, 1);
        if self.wire.http.sessions.is_empty() {
            self.wire.env.timers.set(ServerTimer::Sweep, None);
        }
        self.wire.env.emit(Event::SessionEnded(key, why));
    }

    /// Ends idle sessions, and sets the next sweep.
    pub(in crate::server) fn on_sweep(&mut self) {
        self.sweep_sessions();
        let has_more = self.wire.http.touch_open(&mut self.wire.env);
        if !self.wire.http.sessions.is_empty() {
            let interval = self.wire.env.sweep_interval();
            let next = self.wire.env.again(if has_more { interval.min(SWEEPS_APART) } else { interval });
            self.wire.env.timers.set(ServerTimer::Sweep, Some(next));
        }
    }

    pub(super) fn sweep_sessions(&mut self) {
        self.wire.http.swept = self.wire.env.now;
        let idle: Vec<SessionKey> = self
            .wire
            .http
            .sessions
            .keys()
            .copied()
            .filter(|key| self.wire.http.is_idle_too_long(&self.wire.env, *key))
            .collect();
        idle.into_iter().for_each(|key| self.end_session(key, SessionEnd::Idle));
    }

    /// Ends the sessions' own streams, since the server shuts down.
    pub(in crate::server) fn end_own_streams(&mut self) {
        let own: Vec<StreamKey> = self.wire.http.sessions.values().filter_map(|session| session.own).collect();
        for stream in own {
            self.move_listener(stream);
            self.end_stream(stream);
        }
    }
}
