//! Sessions that several servers share through a store. A server keeps a copy of what the store has
//! of a session, for [`session_cache`](crate::limits::ServerLimits::session_cache). A request whose
//! session is not here, or is too old, waits until it is loaded. What a client changes in its
//! session goes to the store, and the other servers load it again.

use super::exchange::{ResponseStage, StoreWait};
use super::headers::names_modern;
use super::path_of;
use super::sessions::{HttpState, NewSession, SessionEntry};
use super::sse::PathUse;
use super::streams::ResponseStream;
use crate::error::DiagnosticKind;
use crate::exchange::{ExchangeId, Headers, Inbound, RequestHead};
use crate::input::SessionKey;
use crate::model::headers::{SESSION, is_session_id};
use crate::rpc::Id;
use crate::server::env::ServerEnv;
use crate::server::keys::SessionRef;
use crate::server::store::{
    News, NodeTag, PrincipalDigest, SessionChange, SessionDigest, SessionRecord, StoreError, StoreReply, StoreRequest,
    Then,
};
use crate::server::watched::WatchedResources;
use crate::server::{Server, SessionEnd, Sessions};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use hmac_sha256::Hash;

/// Why a request is refused that needs the store.
const AWAY: &str = "the store of the sessions does not reply";

/// The number of sessions that are loaded at once. Ids that no server has made are never looked up.
const LOADS: usize = 64;

/// A session is touched once in this part of the time after which it ends.
const TOUCHES: u32 = 30;

/// The number of sessions that a sweep touches at once. The next ones follow after a second.
const PART: usize = 150;

/// What a store has of a session, as this server knows it.
#[derive(Debug)]
pub(in crate::server) struct SharedSession {
    /// That of this server when the copy was made.
    tag: NodeTag,
    version: u64,
    /// When the copy was made. `None`: the store may have another.
    loaded: Option<Instant>,
    /// When the store was asked to keep it for longer. `None`: it has not done so, and is to be
    /// asked soon.
    touched: Option<Instant>,
    /// The changes that the store does not have, the oldest first.
    changes: Vec<SessionChange>,
    /// The version that is being replaced, and the number of changes that go with it.
    sent: Option<(u64, usize)>,
    /// It has been changed while it was being loaded: the copy is newer than what comes.
    is_newer: bool,
}

impl SharedSession {
    /// A session that was just opened here.
    pub(super) const fn opened(now: Instant, tag: NodeTag) -> Self {
        let (loaded, touched) = (Some(now), Some(now));
        Self { tag, version: 1, loaded, touched, changes: Vec::new(), sent: None, is_newer: false }
    }

    /// Returns the number of a stream of this session, which no stream of any server has. It is not
    /// used again by a later copy of the session: the store may have more of the stream than was
    /// sent.
    pub(super) const fn number(&self, of_server: u64) -> u64 {
        (self.tag.0 as u64) << 32 | of_server & 0xffff_ffff
    }

    /// One that the store has just returned, and keeps for longer.
    fn loaded(version: u64, now: Instant, tag: NodeTag) -> Self {
        Self { version, ..Self::opened(now, tag) }
    }
}

/// What has become of the loading of a session.
#[derive(Debug)]
enum LoadOutcome {
    /// The store has not replied, for this reason.
    Nothing(&'static str),
    Corrupt,
    /// What the store has of it, in this version.
    Record(SessionRecord, u64),
    /// The store has nothing of it, or not any more.
    Ended(SessionEnd),
}

impl SessionEntry {
    /// Returns what the store has to keep.
    fn record(&self) -> Option<SessionRecord> {
        let session = &self.session;
        let watched = session.watched().into_iter().flat_map(WatchedResources::uris);
        Some(SessionRecord {
            terms: session.negotiated()?.clone(),
            principal: self.principal.clone(),
            is_ready: session.is_ready(),
            log_level: session.log_level(),
            watched: watched.map(String::from).collect(),
        })
    }
}

impl HttpState {
    /// Returns the session with this digest, if there is a copy of it.
    pub(in crate::server) fn session_of_digest(&self, session: SessionDigest) -> Option<SessionKey> {
        self.names.get(&session.0).copied()
    }

    /// Returns the sessions that a store keeps too.
    pub(in crate::server) fn shared_sessions(&self) -> Vec<SessionDigest> {
        let shared = self.sessions.values().filter(|session| session.shared.is_some());
        shared.map(|session| SessionDigest(session.digest)).collect()
    }

    /// The client of a session has changed it. Does nothing without a store.
    pub(in crate::server) fn note_change(&mut self, env: &mut ServerEnv, session: SessionRef, change: SessionChange) {
        let (Some(key), Some(node)) = (session.http(), &mut env.node) else { return };
        if let Some(shared) = self.sessions.get_mut(&key).and_then(|session| session.shared.as_mut()) {
            shared.changes.push(change);
            node.changed.insert(key);
        }
    }

    /// The streams of sessions are open: the store keeps them for longer. Returns whether some are
    /// left, to be touched soon: the store gets them in parts.
    pub(super) fn touch_open(&mut self, env: &mut ServerEnv) -> bool {
        let due = env.config.limits.server.session_idle / TOUCHES;
        let is_open = |session: &SessionEntry| {
            session.streams.iter().any(|stream| self.streams.get(stream).is_some_and(ResponseStream::is_active))
        };
        let is_due = |session: &SessionEntry| match session.shared.as_ref().map(|shared| shared.touched) {
            Some(Some(at)) => env.now - at >= due && is_open(session),
            Some(None) => true,
            None => false,
        };
        let keys = self.sessions.iter().filter(|(_, session)| is_due(session)).map(|(key, _)| *key);
        let keys: Vec<SessionKey> = keys.take(PART + 1).collect();
        let has_more = keys.len() > PART;
        let is_refused = keys.into_iter().take(PART).any(|key| !self.touch_shared(env, key, false));
        has_more || is_refused
    }

    /// A client uses its session: the store keeps it for longer. `is_first`: nothing has used it
    /// since it was opened. Returns false if the store has no room for that.
    pub(super) fn touch_shared(&mut self, env: &mut ServerEnv, key: SessionKey, is_first: bool) -> bool {
        let ttl = env.config.limits.server.session_idle;
        let Some(session) = self.sessions.get_mut(&key) else { return true };
        let Some(shared) = &mut session.shared else { return true };
        let is_due = |touched: Instant| env.now - touched >= ttl / TOUCHES;
        if !is_first && !shared.touched.is_none_or(is_due) {
            return true;
        }
        let touch = StoreRequest::Touch { session: SessionDigest(session.digest), ttl };
        let is_asked = env.ask_store(touch, Then::Touch(key));
        shared.touched = is_asked.then_some(env.now);
        if !is_asked {
            env.sweep_soon();
        }
        is_asked
    }

    /// The store was asked to keep a session for longer, and has not replied.
    pub(in crate::server) fn was_not_touched(&mut self, env: &mut ServerEnv, key: SessionKey) {
        if let Some(shared) = self.sessions.get_mut(&key).and_then(|session| session.shared.as_mut()) {
            shared.touched = None;
            env.sweep_soon();
        }
    }
}

/// Requests that wait.
impl Server {
    /// Lets a request wait for its session, if that has to be loaded. Returns its message
    /// otherwise.
    pub(super) fn await_session(&mut self, x: ExchangeId, head: &RequestHead, item: Inbound) -> Option<Inbound> {
        let Some(session) = self.session_to_load(head) else { return Some(item) };
        if self.load_session(session, Some(x)) {
            self.wait_for_store(x, StoreWait::Load(item));
        } else {
            self.wire.env.refuse_busy(x, None, "too many sessions are being loaded");
        }
        None
    }

    pub(super) fn wait_for_store(&mut self, x: ExchangeId, wait: StoreWait) {
        if let Some(http) = self.wire.env.http(x) {
            http.stage = ResponseStage::Storing(Box::new(wait));
        }
    }

    /// Takes what an exchange waits for.
    pub(super) fn take_wait(&mut self, x: ExchangeId) -> Option<StoreWait> {
        let http = self.wire.env.http(x)?;
        match core::mem::replace(&mut http.stage, ResponseStage::Answering) {
            ResponseStage::Storing(wait) => Some(*wait),
            other => {
                http.stage = other;
                None
            }
        }
    }

    /// Returns the session that a request names, if it has to be loaded. An id that no server has
    /// made never has.
    fn session_to_load(&self, head: &RequestHead) -> Option<SessionDigest> {
        let config = &self.shared.config;
        let is_shared = config.shares_sessions() && self.wire.env.node.is_some();
        if !is_shared
            || config.sessions == Sessions::Off
            || names_modern(head)
            || config.place(path_of(head)) != Some(PathUse::Mcp)
        {
            return None;
        }
        let mut named = head.headers.all(SESSION).map(str::trim);
        let id = named.next().filter(|id| is_session_id(id) && self.shared.keys.has_made_session(id))?;
        if named.any(|other| other != id) {
            return None;
        }
        let session = SessionDigest(Hash::hash(id.as_bytes()));
        // One that is idle here may be in use at other servers.
        let known = self.wire.http.session_of_digest(session);
        let known = known.filter(|key| !self.wire.http.is_idle_too_long(&self.wire.env, *key));
        let known = known.and_then(|key| self.wire.http.http_session(key));
        let loaded = known.and_then(|known| known.shared.as_ref()?.loaded);
        let is_fresh = loaded.is_some_and(|at| self.wire.env.now - at < config.limits.server.session_cache);
        (!is_fresh).then_some(session)
    }

    /// Loads a session, for an exchange that waits for it. Returns false if too many are being
    /// loaded.
    fn load_session(&mut self, session: SessionDigest, x: Option<ExchangeId>) -> bool {
        let Some(node) = &mut self.wire.env.node else { return false };
        if let Some(waiting) = node.loading.get_mut(&session) {
            waiting.extend(x);
            return true;
        }
        if node.loading.len() >= LOADS {
            return false;
        }
        let ttl = self.shared.config.limits.server.session_idle;
        let is_asked = self.wire.env.ask_store(StoreRequest::Load { session, ttl }, Then::Load(session));
        if let Some(node) = self.wire.env.node.as_mut().filter(|_| is_asked) {
            node.loading.insert(session, x.into_iter().collect());
        }
        is_asked
    }

    /// The store has returned a session, or has not.
    pub(in crate::server) fn session_is_loaded(
        &mut self,
        session: SessionDigest,
        result: Result<StoreReply, StoreError>,
    ) {
        match result {
            Err(_) => self.loading_ends(session, LoadOutcome::Nothing(AWAY)),
            Ok(StoreReply::Session { version, record, opened }) => match SessionRecord::decode(&record) {
                Ok(record) => match &record.principal {
                    Some(principal) => {
                        let request = StoreRequest::IsRevoked { principal: PrincipalDigest::of(principal), opened };
                        let then = Then::IsRevoked(session, Box::new((record, version)));
                        if !self.wire.env.ask_store(request, then) {
                            self.loading_ends(session, LoadOutcome::Nothing(AWAY));
                        }
                    }
                    None => self.loading_ends(session, LoadOutcome::Record(record, version)),
                },
                Err(why) => {
                    self.wire.env.diagnose(DiagnosticKind::RecordCorrupt, &format!("{why}"));
                    self.loading_ends(session, LoadOutcome::Corrupt);
                }
            },
            Ok(_) => self.loading_ends(session, LoadOutcome::Ended(SessionEnd::Idle)),
        }
    }

    /// The store knows whether the access of the principal of a session has ended since.
    pub(in crate::server) fn revocation_is_known(
        &mut self,
        session: SessionDigest,
        (record, version): (SessionRecord, u64),
        result: Result<StoreReply, StoreError>,
    ) {
        match result {
            Err(_) => self.loading_ends(session, LoadOutcome::Nothing(AWAY)),
            Ok(StoreReply::Missing) => self.loading_ends(session, LoadOutcome::Record(record, version)),
            Ok(_) => {
                self.wire.env.ask_store(StoreRequest::Close { session }, Then::Nothing);
                self.loading_ends(session, LoadOutcome::Ended(SessionEnd::Revoked));
            }
        }
    }

    /// A session was loaded, or was not: what waits for it goes on.
    fn loading_ends(&mut self, session: SessionDigest, loaded: LoadOutcome) {
        let waiting = self.wire.env.node.as_mut().and_then(|node| node.loading.remove(&session)).unwrap_or_default();
        let is_taken = match loaded {
            LoadOutcome::Nothing(why) => {
                // What its client listens for may have changed.
                let key = self.wire.http.session_of_digest(session);
                if key.is_some_and(|key| self.wire.http.carrier_of_own_stream(key).is_some()) {
                    self.wire.env.is_outdated(session);
                }
                Err(why)
            }
            LoadOutcome::Corrupt => Ok(()),
            LoadOutcome::Record(record, version) => {
                self.take_record(session, version, record, waiting.first().copied())
            }
            LoadOutcome::Ended(end) => {
                let known = self.wire.http.session_of_digest(session);
                known.into_iter().for_each(|key| self.end_session(key, end));
                Ok(())
            }
        };
        for x in waiting {
            let Some(StoreWait::Load(item)) = self.take_wait(x) else { continue };
            let Some(http) = self.wire.env.http(x) else { continue };
            let (head, accepts) = (http.head.clone(), http.accepts);
            match is_taken {
                Ok(()) => self.http_request(x, &head, accepts, item),
                Err(why) => self.wire.env.refuse_busy(x, None, why),
            }
        }
        self.load_outdated();
    }

    /// Loads the sessions that may have changed at the store.
    pub(in crate::server) fn load_outdated(&mut self) {
        let mut later = Vec::new();
        while let Some(session) = self.wire.env.take_outdated() {
            if self.wire.http.session_of_digest(session).is_none() {
                continue;
            }
            if self.wire.env.is_loading(session) {
                // What comes may be older.
                later.push(session);
            } else if !self.load_session(session, None) {
                // The end of another loading makes room, or some time.
                later.push(session);
                self.wire.env.retry_soon();
                break;
            }
        }
        later.into_iter().for_each(|session| self.wire.env.is_outdated(session));
    }

    /// Makes or renews the copy of a session. `x`: an exchange of its client.
    fn take_record(
        &mut self,
        session: SessionDigest,
        version: u64,
        record: SessionRecord,
        x: Option<ExchangeId>,
    ) -> Result<(), &'static str> {
        if let Some(key) = self.wire.http.session_of_digest(session) {
            let shared = self.wire.http.http_session_mut(key).and_then(|entry| entry.shared.as_mut());
            if shared.is_some_and(|shared| core::mem::take(&mut shared.is_newer)) {
                self.session_is_outdated(session);
            } else {
                self.renew_copy(key, version, record);
            }
            return Ok(());
        }
        let Some(x) = x else { return Ok(()) };
        if self.wire.http.needs_sweep(&self.wire.env) {
            self.sweep_sessions();
        }
        let (changes, now) = (self.listens.changes_at_join(), self.wire.env.now);
        let Some(tag) = self.wire.env.node.as_ref().map(|node| node.tag()) else { return Ok(()) };
        let new = NewSession {
            digest: session.0,
            principal: record.principal.clone(),
            negotiated: record.terms.clone(),
            changes,
            shared: Some(Box::new(SharedSession::loaded(version, now, tag))),
        };
        let opened = self.wire.http.add_session(&mut self.wire.env, x, new);
        let key = opened.map_err(|_| "there is no room for the session")?;
        self.renew_copy(key, version, record);
        Ok(())
    }

    /// Takes what the store has of a session, and keeps what it does not have yet.
    fn renew_copy(&mut self, key: SessionKey, version: u64, mut record: SessionRecord) {
        let now = self.wire.env.now;
        let Some(entry) = self.wire.http.http_session_mut(key) else { return };
        // The store keeps it for as long as if its client had used it now, and other servers have
        // seen what follows `initialize`.
        entry.is_used(now);
        let Some(shared) = &mut entry.shared else { return };
        (shared.version, shared.loaded, shared.touched) = (version, Some(now), Some(now));
        shared.changes.iter().for_each(|change| record.apply(change));
        if let Some(level) = record.log_level {
            entry.session.set_log_level(level);
        }
        if record.is_ready {
            entry.session.set_ready();
        }
        let before: BTreeSet<String> =
            entry.session.watched().into_iter().flat_map(WatchedResources::uris).map(String::from).collect();
        let session_ref = SessionRef::Http(key);
        for uri in before.difference(&record.watched) {
            self.wire.unwatch(session_ref, uri);
        }
        for uri in record.watched.difference(&before) {
            // The client may have missed a change since it asked for them.
            if self.wire.watch(session_ref, uri).is_ok() {
                self.wire.mark_updated(session_ref, uri);
            }
        }
        if record.is_ready {
            self.listens.session_is_ready(&mut self.wire, session_ref);
        }
    }

    /// Another server has changed a session. It is loaded again with the next request of its
    /// client, and now if its client listens here.
    pub(in crate::server) fn session_is_outdated(&mut self, session: SessionDigest) {
        let Some(key) = self.wire.http.session_of_digest(session) else { return };
        if let Some(shared) = self.wire.http.http_session_mut(key).and_then(|session| session.shared.as_mut()) {
            shared.loaded = None;
        }
        if self.wire.http.carrier_of_own_stream(key).is_some() {
            self.wire.env.is_outdated(session);
            self.load_outdated();
        }
    }
}

/// Changes.
impl Server {
    /// Sends what clients have changed in their sessions to the store.
    pub(in crate::server) fn keep_changes(&mut self) {
        while let Some(node) = self.wire.env.node.as_mut().filter(|node| node.may_send())
            && let Some(key) = node.changed.pop_first()
        {
            let Some(entry) = self.wire.http.http_session(key) else { continue };
            let (digest, record) = (SessionDigest(entry.digest), entry.record());
            let Some(shared) = entry.shared.as_ref().filter(|shared| shared.sent.is_none()) else { continue };
            let (version, count) = (shared.version, shared.changes.len());
            let Some(record) = record.filter(|_| count > 0) else { continue };
            let request = StoreRequest::Change { session: digest, version, record: record.encode() };
            if !self.wire.env.ask_store(request, Then::Change(key)) {
                return self.change_later(key);
            }
            if let Some(shared) = self.wire.http.http_session_mut(key).and_then(|entry| entry.shared.as_mut()) {
                shared.sent = Some((version, count));
            }
        }
    }

    /// The store has replaced what it keeps of a session, or has not.
    pub(in crate::server) fn session_is_changed(&mut self, key: SessionKey, result: Result<StoreReply, StoreError>) {
        let Some(entry) = self.wire.http.http_session_mut(key) else { return };
        let digest = SessionDigest(entry.digest);
        let Some(shared) = &mut entry.shared else { return };
        let Some((version, count)) = shared.sent.take() else { return };
        match result {
            Ok(StoreReply::Done) => {
                shared.version = shared.version.max(version + 1);
                shared.changes.drain(..count);
                shared.is_newer = self.wire.env.is_loading(digest);
                self.wire.env.say(News::Session(digest));
            }
            Ok(StoreReply::Session { version, record, .. }) => match SessionRecord::decode(&record) {
                Ok(record) => self.renew_copy(key, version, record),
                Err(why) => {
                    self.wire.env.diagnose(DiagnosticKind::RecordCorrupt, &format!("{why}"));
                    return self.end_session(key, SessionEnd::Idle);
                }
            },
            Ok(StoreReply::Missing) => return self.end_session(key, SessionEnd::Idle),
            Ok(_) | Err(_) => {}
        }
        self.change_later(key);
    }

    fn change_later(&mut self, key: SessionKey) {
        if let Some(node) = &mut self.wire.env.node {
            node.changed.insert(key);
        }
    }
}

/// The beginning and the end of a session.
impl Server {
    /// Keeps a new session in the store, before its client gets this response. Returns the response
    /// without a store.
    pub(super) fn keep_session(
        &mut self,
        x: ExchangeId,
        key: SessionKey,
        id: &Id,
        response: (Headers, Bytes),
    ) -> Option<(Headers, Bytes)> {
        let Some(entry) = self.wire.http.http_session(key).filter(|entry| entry.shared.is_some()) else {
            return Some(response);
        };
        let (session, record) = (SessionDigest(entry.digest), entry.record()?.encode());
        let ttl = self.shared.config.limits.server.session_start;
        if self.wire.env.ask_store(StoreRequest::Open { session, record, ttl }, Then::Open(key, x)) {
            let (headers, body) = response;
            self.wait_for_store(x, StoreWait::Answer { headers, body, id: id.clone() });
        } else {
            self.end_session(key, SessionEnd::Idle);
            self.wire.env.refuse_busy(x, Some(id), AWAY);
        }
        None
    }

    /// The store has kept a new session, or has not.
    pub(in crate::server) fn session_is_kept(&mut self, key: SessionKey, x: ExchangeId, is_kept: bool) {
        if !is_kept {
            self.end_session(key, SessionEnd::Idle);
        }
        match self.take_wait(x) {
            Some(StoreWait::Answer { headers, body, .. }) if is_kept => self.wire.env.answer_one(x, headers, body),
            Some(StoreWait::Answer { id, .. }) => {
                self.wire.env.refuse_busy(x, Some(&id), AWAY);
            }
            _ => {}
        }
    }

    /// Drops a session from the store, before its client gets the response to DELETE. Returns false
    /// without a store.
    pub(super) fn drop_session(&mut self, x: ExchangeId, key: SessionKey) -> bool {
        let Some(entry) = self.wire.http.http_session(key).filter(|entry| entry.shared.is_some()) else {
            return false;
        };
        let session = SessionDigest(entry.digest);
        if self.wire.env.ask_store(StoreRequest::Close { session }, Then::Close(key, x)) {
            self.wait_for_store(x, StoreWait::Drop);
        } else {
            self.wire.env.refuse_busy(x, None, AWAY);
        }
        true
    }

    /// The store has dropped a session, or has not.
    pub(in crate::server) fn session_is_dropped(&mut self, key: SessionKey, x: ExchangeId, is_dropped: bool) {
        let waits = self.take_wait(x).is_some();
        if is_dropped {
            if waits {
                self.answer_delete(x);
            }
            if let Some(entry) = self.wire.http.http_session(key) {
                let news = News::Closed(SessionDigest(entry.digest));
                self.wire.env.say(news);
            }
            self.end_session(key, SessionEnd::Deleted);
        } else if waits {
            self.wire.env.refuse_busy(x, None, AWAY);
        }
    }
}
