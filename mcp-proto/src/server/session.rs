//! The session of one legacy client: its running requests by the ids that it chose, the engine's
//! own requests to it, and what `initialize` negotiated. A duplex connection owns one for as long
//! as it is open, an HTTP session for as long as it lives. Modern requests on a duplex connection
//! use its table of ids and nothing else of it.

use super::watched::WatchedResources;
use crate::input::RequestKey;
use crate::model::capabilities::ClientCapabilities;
use crate::model::lifecycle::Implementation;
use crate::model::logging::LogLevel;
use crate::rpc::Id;
use crate::version::ProtocolVersion;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::sync::Arc;
use hmac_sha256::Hash;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Session {
    negotiated: Option<SessionTerms>,
    /// The running requests and subscriptions, by the id that the client chose.
    requests: BTreeMap<Id, RequestKey>,
    retired: RetiredIds,
    /// The engine's requests that wait for a response, by their id on the wire. The value is the
    /// request for which the engine sent it.
    questions: BTreeMap<i64, RequestKey>,
    first_question: i64,
    next_question: i64,
    /// Whether the client has sent `notifications/initialized`. It receives no notification of a
    /// change before.
    is_ready: bool,
    /// Number of changes of lists that the client was notified of.
    announced: u64,
    log_level: Option<LogLevel>,
    /// Whether the diagnostic about `null` for an absent member of a response was emitted.
    has_noted_nulls: bool,
    /// The resources that the client watches.
    watched: Option<Box<WatchedResources>>,
}

/// What `initialize` negotiated.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SessionTerms {
    pub(super) version: ProtocolVersion,
    pub(super) client: Option<Arc<Implementation>>,
    pub(super) capabilities: Arc<ClientCapabilities>,
    /// The memory that it holds, in bytes, as estimated.
    pub(super) weight: usize,
}

impl SessionTerms {
    /// Returns the rules of a client that has negotiated nothing, so that nothing is known of its
    /// capabilities.
    pub(super) fn assumed(version: ProtocolVersion) -> Self {
        Self { version, client: None, capabilities: Arc::default(), weight: 0 }
    }
}

/// The target of the id of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum QuestionState {
    Open(i64),
    /// A request of the engine that was answered or withdrawn.
    Closed,
    /// The engine sent no request with this id.
    Unknown,
}

/// Digests of the ids of finished requests, where a client must not use one again.
#[derive(Debug, Default)]
struct RetiredIds {
    known: BTreeSet<[u8; 32]>,
    order: VecDeque<[u8; 32]>,
}

impl RetiredIds {
    const MAX: usize = 1024;

    fn insert(&mut self, id: &Id) {
        let digest = Self::digest(id);
        if self.known.insert(digest) {
            self.order.push_back(digest);
        }
        if self.order.len() > Self::MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    fn contains(&self, id: &Id) -> bool {
        !self.known.is_empty() && self.known.contains(&Self::digest(id))
    }

    fn digest(id: &Id) -> [u8; 32] {
        Hash::hash(format!("{id}").as_bytes())
    }
}

impl Session {
    /// Creates a session. `changes`: number of changes before it, which its client is not notified
    /// of. `first_question`: the id of the first request of the engine.
    pub(super) const fn new(negotiated: Option<SessionTerms>, changes: u64, first_question: i64) -> Self {
        Self {
            negotiated,
            requests: BTreeMap::new(),
            retired: RetiredIds { known: BTreeSet::new(), order: VecDeque::new() },
            questions: BTreeMap::new(),
            first_question,
            next_question: first_question,
            is_ready: false,
            announced: changes,
            log_level: None,
            has_noted_nulls: false,
            watched: None,
        }
    }

    /// Returns the result of `initialize`. `None` on a duplex connection without `initialize`.
    pub(super) const fn negotiated(&self) -> Option<&SessionTerms> {
        self.negotiated.as_ref()
    }

    /// Notes a response with `null` for an absent member. Returns whether it is the first one: such
    /// a client writes all responses like this.
    pub(super) const fn note_nulls(&mut self) -> bool {
        !core::mem::replace(&mut self.has_noted_nulls, true)
    }

    /// Stores the result of `initialize`.
    pub(super) fn negotiate(&mut self, negotiated: SessionTerms) {
        self.negotiated = Some(negotiated);
    }

    /// Returns the estimated memory of what the client keeps here, in bytes: its declaration in
    /// `initialize`, and the resources that it watches.
    pub(super) fn weight(&self) -> usize {
        let declared = self.negotiated.as_ref().map_or(0, |negotiated| negotiated.weight);
        declared + self.watched().map_or(0, WatchedResources::weight)
    }

    /// Returns the resources that the client watches.
    pub(super) fn watched(&self) -> Option<&WatchedResources> {
        self.watched.as_deref()
    }

    pub(super) fn watched_mut(&mut self) -> &mut WatchedResources {
        self.watched.get_or_insert_default()
    }

    /// Returns the pending update of a resource, if the client may receive it.
    pub(super) fn update(&self) -> Option<&Arc<str>> {
        self.watched().filter(|_| self.is_ready)?.update()
    }

    /// Adds a running request or a subscription, or replaces its key.
    pub(super) fn insert(&mut self, id: Id, key: RequestKey) {
        self.requests.insert(id, key);
    }

    /// Removes a request or a subscription that is over.
    pub(super) fn remove(&mut self, id: &Id) {
        self.requests.remove(id);
    }

    /// Remembers the id of a finished request: the client must not use it again.
    pub(super) fn retire(&mut self, id: &Id) {
        self.retired.insert(id);
    }

    /// Returns whether a request with this id runs, or its id was retired.
    pub(super) fn has_used(&self, id: &Id) -> bool {
        self.requests.contains_key(id) || self.retired.contains(id)
    }

    /// Returns the running request or the subscription with this id.
    pub(super) fn request(&self, id: &Id) -> Option<RequestKey> {
        self.requests.get(id).copied()
    }

    /// Returns the running request or the subscription whose id is this one.
    pub(super) fn request_of(&self, is_it: impl Fn(&Id) -> bool) -> Option<RequestKey> {
        self.requests.iter().find(|(id, _)| is_it(id)).map(|(_, key)| *key)
    }

    /// Returns the number of running requests and subscriptions.
    pub(super) fn running(&self) -> usize {
        self.requests.len()
    }

    /// Assigns an id to a request of the engine, sent for the request `key`.
    pub(super) fn open_question(&mut self, key: RequestKey) -> i64 {
        let id = self.next_question;
        self.next_question += 1;
        self.questions.insert(id, key);
        id
    }

    /// Returns the target of the id of a response. `id`: `None` if the engine sends no such ids.
    pub(super) fn question(&self, id: Option<i64>) -> QuestionState {
        match id {
            Some(id) if self.questions.contains_key(&id) => QuestionState::Open(id),
            Some(id) if (self.first_question..self.next_question).contains(&id) => QuestionState::Closed,
            _ => QuestionState::Unknown,
        }
    }

    /// Closes a request of the engine. Returns the request that it was sent for.
    pub(super) fn close_question(&mut self, id: i64) -> Option<RequestKey> {
        self.questions.remove(&id)
    }

    /// Returns the requests that wait for the client.
    pub(super) fn asking(&self) -> BTreeSet<RequestKey> {
        self.questions.values().copied().collect()
    }

    /// The client has sent `notifications/initialized`, or has shown in another way that it is
    /// initialized.
    pub(super) const fn set_ready(&mut self) {
        self.is_ready = true;
    }

    /// Returns whether the client is initialized.
    pub(super) const fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Returns the number of changes that the client was notified of, if it is to be notified of
    /// more: lists have changed `changes` times.
    pub(super) fn needs_announcement(&self, changes: u64) -> Option<u64> {
        Some(self.announced).filter(|announced| self.is_ready && *announced < changes)
    }

    /// The client was notified of all `changes`.
    pub(super) const fn announce(&mut self, changes: u64) {
        self.announced = changes;
    }

    /// Returns the lowest level of log messages that the client set by `logging/setLevel`.
    pub(super) const fn log_level(&self) -> Option<LogLevel> {
        self.log_level
    }

    pub(super) const fn set_log_level(&mut self, level: LogLevel) {
        self.log_level = Some(level);
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.requests.is_empty() && self.questions.is_empty()
    }
}
