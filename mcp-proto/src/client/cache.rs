//! The cache of results (2026-07-28 server utilities, caching). It answers a call from an earlier
//! result of the same request while that is fresh, in the turn of the call and without I/O. It
//! never sends anything by itself.
//!
//! A result is fresh until its `ttlMs` is over. It is dropped before that when
//!
//! * the server announces a change of it, or the client reports one that it may have missed;
//! * the client no longer receives the changes that it received when it stored the result, since a
//!   listener or a subscription is lost. What it fetches meanwhile lives by its `ttlMs` alone, and
//!   is dropped once changes arrive again, since one may have been missed between;
//! * the session or the connection ends;
//! * it is private, and the credentials change;
//! * the server responds to the same request with an error, or with a result that is not to be
//!   stored. An error for any page of a list concerns all of its pages.
//!
//! A result is not stored if one of these happened after its request was sent.

mod entries;

use super::call_table::{CallOwner, CallState, Errand};
use super::ctx::Ctx;
use super::env::ClientEnv;
use super::{Client, Event, State};
use crate::auth::Generation;
use crate::call::{RawCall, RawResult};
use crate::error::{CallError, DiagnosticKind};
use crate::input::{CallId, Change, Watch};
use crate::model::lifecycle::{CacheHints, CacheScope, meta};
use crate::rpc::{JsonKind, Object};
use crate::short_map::ShortMap;
use crate::stats::CacheStats;
use crate::time::Instant;
use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;
use entries::{Entries, Entry};

/// The settings of the cache of results: [`ClientConfig::cache`](super::ClientConfig::cache).
///
/// The client stores complete results of `server/discover`, `tools/list`, `prompts/list`,
/// `resources/list`, `resources/templates/list` and `resources/read`, each page of a list by its
/// own cursor. It answers a later call with the same method and the same params from there, while
/// the result is fresh, without asking the server: `_meta` does not count, and no hook sees it.
/// [`RawResult::age`](crate::call::RawResult::age) is set then, and
/// [`Call::fresh`](crate::Call::fresh) asks the server in any case.
///
/// A result is fresh until its `ttlMs` is over, by the time of the engine, counted from its
/// arrival. A change that the server announces drops it before that, and so do the loss of a
/// listener that would have announced one, the end of the session, other credentials unless the
/// result has the `cacheScope` `public`, and an error of the server for the same request. A result
/// of a request with answers to questions of the server is never stored (2026-07-28 caching).
///
/// The cache fetches nothing by itself, and needs memory only for what it stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Cache {
    /// Maximum number of results. The cache first drops the one that was not used for the longest
    /// time. Zero stores nothing. Default 1024.
    pub entries: usize,
    /// Maximum number of bytes of results, with their keys and 256 bytes more for each. A result
    /// that is larger than all of it is not stored. Default 16 MiB.
    pub bytes: usize,
    /// Maximum time for which a result is fresh, whatever its server says. Default 24 h.
    pub max_ttl: Duration,
    /// The time for which a result without `ttlMs` is fresh, as of a server of an older revision.
    /// It has no `cacheScope` either, so it is private. Default zero: it is not stored.
    pub default_ttl: Duration,
    /// How long ago a result may have expired that ends a call in place of a failure: a timeout, a
    /// connection that ended, or an HTTP status of 500 and above. A diagnostic
    /// ([`StaleResult`](DiagnosticKind::StaleResult)) contains the failure then. An error response
    /// of the server always ends the call itself, and so does any failure of
    /// [`Call::fresh`](crate::Call::fresh). Default `None`: never.
    pub stale_on_error: Option<Duration>,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            entries: 1024,
            bytes: 16 << 20,
            max_ttl: Duration::from_secs(24 * 60 * 60),
            default_ttl: Duration::ZERO,
            stale_on_error: None,
        }
    }
}

/// The requests whose results are stored. The number is the first byte of a key, so that the
/// results of one method lie together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum CacheableMethod {
    Discover,
    Tools,
    Prompts,
    Resources,
    Templates,
    Read,
}

impl CacheableMethod {
    fn of(method: &str) -> Option<Self> {
        Some(match method {
            "server/discover" => Self::Discover,
            "tools/list" => Self::Tools,
            "prompts/list" => Self::Prompts,
            "resources/list" => Self::Resources,
            "resources/templates/list" => Self::Templates,
            "resources/read" => Self::Read,
            _ => return None,
        })
    }
}

/// Ends a part of a key. No UTF-8 text contains it.
const END: u8 = 0xFF;
/// Members of params that make a result depend on more than its key.
const INPUT: [&str; 2] = ["inputResponses", "requestState"];

/// Returns the key of a request: its method, and its params without `_meta`. Params with the same
/// members in another order have another key. `None`: its result is not stored.
fn key_of(method: &str, params: &Object) -> Option<Vec<u8>> {
    let of = CacheableMethod::of(method)?;
    if INPUT.iter().any(|member| params.contains(member)) {
        return None;
    }
    let size: usize = params.slices().map(|(name, value)| name.len() + value.len() + 2).sum();
    let mut key = Vec::with_capacity(1 + size);
    key.push(of as u8);
    // The URI comes first and decoded, since changes name it.
    let uri = if of == CacheableMethod::Read { Some(params.str("uri")?) } else { None };
    key.extend_from_slice(uri.as_deref().unwrap_or_default().as_bytes());
    for (name, value) in params.slices() {
        if name != meta::META && !(uri.is_some() && name == "uri") {
            key.push(END);
            key.extend_from_slice(name.as_bytes());
            key.push(END);
            key.extend_from_slice(value);
        }
    }
    Some(key)
}

/// Returns whether a key is one of this method.
fn is_of(key: &[u8], of: CacheableMethod) -> bool {
    key.first() == Some(&(of as u8))
}

/// Returns whether the result of a key may contain what this URI names: it is of the same URI, or
/// of one that the URI continues.
fn may_contain(key: &[u8], uri: &str) -> bool {
    let read = key.get(1..).unwrap_or_default().split(|byte| *byte == END).next().unwrap_or_default();
    is_of(key, CacheableMethod::Read) && uri.as_bytes().starts_with(read)
}

/// A cache, with the requests whose results it waits for.
#[derive(Debug)]
pub(super) struct ResultCache {
    config: Cache,
    entries: Entries,
    /// The requests on their way whose results can be stored.
    pending: ShortMap<CallId, Miss>,
    /// The number of the present credentials.
    credentials: u64,
    /// The present credentials of the login.
    login: Generation,
    hits: u64,
    misses: u64,
}

/// A request on its way, since its result was not here.
#[derive(Debug)]
struct Miss {
    key: Vec<u8>,
    /// The credentials with which it was sent.
    credentials: u64,
    /// Whether an expired result may take the place of its failure.
    takes_stale: bool,
}

impl ResultCache {
    pub(super) fn new(config: Cache) -> Self {
        Self {
            config,
            entries: Entries::new(config.entries, config.bytes),
            pending: ShortMap::new(),
            credentials: 0,
            login: Generation::default(),
            hits: 0,
            misses: 0,
        }
    }

    /// Drops everything.
    fn clear(&mut self) {
        self.pending.clear();
        self.entries.drop_where(&[], |_, _| true);
    }

    /// Drops the results of a method for which this returns true. A result that is on its way is
    /// not stored.
    fn drop_where(&mut self, of: CacheableMethod, is_dropped: impl Fn(&[u8]) -> bool) {
        let is_refuted = |(_, miss): &(&CallId, &Miss)| is_of(&miss.key, of) && is_dropped(&miss.key);
        let refuted: Vec<CallId> = self.pending.iter().filter(is_refuted).map(|(call, _)| *call).collect();
        refuted.iter().for_each(|call| drop(self.pending.remove(call)));
        self.entries.drop_where(&[of as u8], |key, _| is_dropped(key));
    }

    fn on_change(&mut self, change: &Change) {
        match change {
            Change::Tools => self.drop_where(CacheableMethod::Tools, |_| true),
            Change::Prompts => self.drop_where(CacheableMethod::Prompts, |_| true),
            Change::Resources => {
                self.drop_where(CacheableMethod::Resources, |_| true);
                self.drop_where(CacheableMethod::Templates, |_| true);
            }
            Change::Resource(uri) => self.drop_where(CacheableMethod::Read, |key| may_contain(key, uri)),
        }
    }

    /// The server responded to a request with an error. A list has no page any more that fits the
    /// others.
    fn on_refusal(&mut self, call: CallId, key: &[u8]) {
        let lists =
            [CacheableMethod::Tools, CacheableMethod::Prompts, CacheableMethod::Resources, CacheableMethod::Templates];
        match lists.into_iter().find(|list| is_of(key, *list)) {
            Some(list) => self.drop_where(list, |_| true),
            None => {
                self.entries.remove(key);
                self.forget_earlier(call, key);
            }
        }
    }

    /// The responses to earlier requests of this key are older than that of this call.
    fn forget_earlier(&mut self, call: CallId, key: &[u8]) {
        let earlier = self.pending.iter().filter(|(id, miss)| **id < call && miss.key == key);
        let earlier: Vec<CallId> = earlier.map(|(id, _)| *id).collect();
        earlier.iter().for_each(|call| drop(self.pending.remove(call)));
    }

    /// The credentials have changed: private results are those of other ones.
    fn on_credentials(&mut self) {
        self.credentials += 1;
        self.entries.drop_where(&[], |_, entry| entry.is_private);
    }

    /// Answers a call, if there is a fresh result.
    fn answer(&mut self, key: &[u8], now: Instant) -> Option<&mut Entry> {
        let until = self.entries.get(key).map(|entry| entry.until).unwrap_or_default();
        if now >= until + self.config.stale_on_error.unwrap_or_default() {
            self.entries.remove(key);
        }
        if now >= until {
            self.misses += 1;
            return None;
        }
        self.hits += 1;
        self.entries.touch(key)
    }

    /// Returns the result that ends a call in place of its failure.
    fn answer_stale(&mut self, key: &[u8], now: Instant) -> Option<&mut Entry> {
        let stale = self.config.stale_on_error?;
        self.entries.get(key).filter(|entry| now < entry.until + stale)?;
        self.entries.touch(key)
    }

    /// Stores the result of a call, in place of an earlier one.
    fn keep(&mut self, call: CallId, miss: Miss, result: &RawResult, learned: u64, now: Instant) {
        let Miss { key, credentials, .. } = miss;
        // The responses to two requests may change places.
        if self.entries.get(&key).is_some_and(|entry| entry.call > call) {
            return;
        }
        self.entries.remove(&key);
        let Some((ttl, scope)) = self.lifetime(result) else { return self.forget_earlier(call, &key) };
        let is_private = scope == CacheScope::Private;
        if is_private && credentials != self.credentials {
            return;
        }
        let (version, received, until) = (result.version, now, now + ttl);
        // The result shares the bytes of whatever was read with it.
        let json = || result.json.detached();
        let size = key.len() + result.json.as_bytes().len();
        self.entries.put(&key, size, || Entry { json: json(), version, received, until, is_private, call, learned });
    }

    /// Returns for how long a result is fresh, and for whom. `None`: it is not stored.
    fn lifetime(&self, result: &RawResult) -> Option<(Duration, CacheScope)> {
        let object = Object::read(&result.json).ok()?;
        let is_absent = |key| matches!(object.kind(key), None | Some(JsonKind::Null));
        if !is_absent("resultType") && object.str("resultType")? != "complete" {
            return None;
        }
        let hints = CacheHints::read(&object);
        let ttl = match is_absent("ttlMs") {
            true => self.config.default_ttl,
            false => Duration::from_millis(hints.ttl_ms),
        };
        let ttl = ttl.min(self.config.max_ttl);
        (!ttl.is_zero()).then_some((ttl, hints.scope))
    }
}

impl ClientEnv {
    /// Returns the cache, if there is one. It knows the present credentials.
    fn cache(&mut self) -> Option<&mut ResultCache> {
        let cache = self.cache.as_deref_mut()?;
        let login = self.login.latest();
        if cache.login != login {
            cache.login = login;
            cache.on_credentials();
        }
        Some(cache)
    }

    /// Drops the results that a change concerns.
    pub(super) fn drop_changed(&mut self, change: &Change) {
        if let Some(cache) = self.cache() {
            cache.on_change(change);
        }
    }

    /// Drops the results whose changes the client does not receive any more.
    pub(super) fn drop_watched(&mut self, watched: &Watch) {
        if self.cache.is_some() {
            watched.changes().for_each(|change| self.drop_changed(&change));
        }
    }

    /// Drops all results.
    pub(super) fn drop_cached(&mut self) {
        if let Some(cache) = self.cache() {
            cache.clear();
        }
    }

    /// Drops the private results.
    pub(super) fn drop_private(&mut self) {
        if let Some(cache) = self.cache() {
            cache.on_credentials();
        }
    }

    /// Drops the private results of a login that has ended.
    pub(super) fn notice_login(&mut self) {
        self.cache();
    }
}

impl Ctx {
    /// Answers a call of the application from the cache, if it can. The call has ended then.
    pub(super) fn answer_cached(&mut self, call: &RawCall) -> Option<CallId> {
        let is_ready = self.env.state() == State::Ready && !self.link.is_holding();
        let now = self.env.now;
        let cache = self.env.cache().filter(|_| is_ready && !call.options.fresh)?;
        let key = key_of(&call.method, call.params.as_ref().ok()?)?;
        let entry = cache.answer(&key, now)?;
        let (result, learned) = (entry.result(now), entry.learned);
        self.learn_again(&key, &result, learned);
        let call = self.calls.pass();
        self.env.event(Event::Ended { call, outcome: Ok(result) });
        Some(call)
    }

    /// A request of a call was sent. Its result is stored if it can be.
    pub(super) fn note_asked(&mut self, call: CallId) {
        let Some(cache) = self.env.cache() else { return };
        let storable = self.calls.get(call).filter(|state| state.has_no_input());
        let key = storable.and_then(|state| key_of(&state.raw.method, state.raw.params.as_ref().ok()?));
        match (key, storable) {
            (Some(key), Some(state)) => {
                let takes_stale = state.owner == CallOwner::Application && !state.raw.options.fresh;
                let credentials = cache.credentials;
                cache.pending.insert(call, Miss { key, credentials, takes_stale });
            }
            _ => drop(cache.pending.remove(&call)),
        }
    }

    /// A call has this outcome: stores it, drops what it refutes, or returns an expired result in
    /// its place.
    pub(super) fn settle_cached(
        &mut self,
        call: CallId,
        outcome: Result<RawResult, CallError>,
    ) -> Result<RawResult, CallError> {
        let (now, learned) = (self.env.now, self.tools.changes());
        let Some(cache) = self.env.cache() else { return outcome };
        let Some(miss) = cache.pending.remove(&call) else { return outcome };
        match outcome {
            Ok(result) => {
                cache.keep(call, miss, &result, learned, now);
                Ok(result)
            }
            Err(error) if is_refusal(&error) => {
                cache.on_refusal(call, &miss.key);
                Err(error)
            }
            Err(error) if miss.takes_stale && is_outage(&error) => {
                let Some(entry) = cache.answer_stale(&miss.key, now) else { return Err(error) };
                let (result, learned) = (entry.result(now), entry.learned);
                self.learn_again(&miss.key, &result, learned);
                self.env.diagnose(DiagnosticKind::StaleResult, format!("{error}"));
                Ok(result)
            }
            Err(error) => Err(error),
        }
    }

    /// Learns from a stored list of tools, unless the client still knows what it learned from it.
    fn learn_again(&mut self, key: &[u8], result: &RawResult, learned: u64) {
        if !is_of(key, CacheableMethod::Tools) || learned == self.tools.changes() {
            return;
        }
        self.tools.learn_again(&self.env, &result.json);
        let learned = self.tools.changes();
        if let Some(entry) = self.env.cache().and_then(|cache| cache.entries.touch(key)) {
            entry.learned = learned;
        }
    }
}

impl CallState {
    /// Returns whether the cache may store the result of the present request: it is one that an
    /// application can send again, and has no answers to questions of the server.
    fn has_no_input(&self) -> bool {
        let is_of_interest = matches!(self.owner, CallOwner::Application | CallOwner::Engine(Errand::Page));
        is_of_interest && self.rounds == 0 && self.round.is_empty()
    }
}

impl Client {
    /// Returns the counts of the cache ([`ClientConfig::cache`](super::ClientConfig::cache)).
    pub fn cache_stats(&self) -> CacheStats {
        let Some(cache) = &self.cx.env.cache else { return CacheStats::default() };
        CacheStats {
            hits: cache.hits,
            misses: cache.misses,
            evicted: cache.entries.evicted(),
            entries: cache.entries.len(),
            bytes: cache.entries.bytes(),
        }
    }
}

/// Returns whether a call failed by the decision of the server.
fn is_refusal(error: &CallError) -> bool {
    match error {
        CallError::Rpc(_) => true,
        CallError::Http(error) => error.status < 500,
        _ => false,
    }
}

/// Returns whether a call failed since the server cannot be reached, and not by its decision.
fn is_outage(error: &CallError) -> bool {
    match error {
        CallError::Timeout { .. } | CallError::Closed { .. } | CallError::NoResponse { .. } => true,
        CallError::Http(error) => error.status >= 500,
        _ => false,
    }
}
