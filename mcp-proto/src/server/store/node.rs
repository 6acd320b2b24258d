//! This server as a node of a store: its lease, what it has said and the store has not got yet, and
//! its requests without a reply.

use super::latency::Latency;
use super::{
    Incarnation, News, NodeTag, PrincipalDigest, RequestDigest, SessionDigest, SessionRecord, StoreError, StoreReply,
    StoreRequest, StoreToken, TaskDigest,
};
use crate::error::DiagnosticKind;
use crate::exchange::ExchangeId;
use crate::input::{Change, Principal, RequestKey, SessionKey};
use crate::seed::Seed;
use crate::server::Event;
use crate::server::env::ServerEnv;
use crate::server::keys::{ServerTimer, StreamKey, TaskKey};
use crate::server::tasks::{TaskChange, TaskRecord};
use crate::server::transport::{Opening, Place};
use crate::stats::StoreStats;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

/// The time after a failure until the next request to the store.
const RETRY: Duration = Duration::from_secs(1);

/// The memory of one of the news beside its text, in bytes, as estimated.
const OVERHEAD: usize = 64;

/// See the [module](self).
#[derive(Debug)]
pub(in crate::server) struct Node {
    seed: Seed,
    own: Incarnation,
    is_member: bool,
    /// The number of the last renewal that the store has confirmed.
    beat: u64,
    last_token: u64,
    /// The requests without a reply, the oldest first.
    pending: BTreeMap<StoreToken, PendingRequest>,
    /// The HTTP requests that wait for a session.
    pub(in crate::server) loading: BTreeMap<SessionDigest, Vec<ExchangeId>>,
    /// The sessions with changes that the store does not have.
    pub(in crate::server) changed: BTreeSet<SessionKey>,
    /// The requests about tasks that the store was not asked for yet.
    asking: Vec<RequestKey>,
    /// Other nodes that were members a short time ago, and until when they count as such.
    pub(in crate::server) members: BTreeMap<Incarnation, Instant>,
    /// The size of the events that wait for the store, in bytes.
    held: usize,
    /// The streams with events that the store was not asked to keep, since it has failed.
    stalled: BTreeSet<StreamKey>,
    /// What the store has not got yet. The most important first, and nothing twice.
    unsaid: BTreeSet<News>,
    unsaid_bytes: usize,
    health: Health,
    requests: u64,
    failures: u64,
    forwarded: u64,
    pub(super) arrived: u64,
    latency: Latency,
}

/// Whether the store carries out requests, as far as this node knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Health {
    Good,
    /// A request has failed. Nothing is sent for a time that can wait.
    Failed,
    /// It is tried again.
    Trying,
}

#[derive(Debug)]
struct PendingRequest {
    since: Instant,
    until: Instant,
    then: Then,
}

/// What a reply is for.
#[derive(Debug)]
pub(in crate::server) enum Then {
    Join,
    Renew(u64),
    Publish(News),
    /// The other nodes are told then.
    Revoke(Principal),
    /// The response to `initialize` waits for it.
    Open(SessionKey, ExchangeId),
    /// What waits for it is in [`Node::loading`].
    Load(SessionDigest),
    /// What waits for it is in [`Node::loading`]. The record of the session, and its version.
    IsRevoked(SessionDigest, Box<(SessionRecord, u64)>),
    Change(SessionKey),
    Touch(SessionKey),
    /// The response to DELETE waits for it.
    Close(SessionKey, ExchangeId),
    /// The response to a POST waits for it.
    Send(ExchangeId),
    /// The events of a stream wait for it.
    Claim(StreamKey),
    /// The event of a stream with this number is sent then.
    Append(StreamKey, Place),
    /// The message of the own stream of a session is at the server that has the stream.
    PassOn(StreamKey, Bytes),
    /// The response to GET waits for it.
    Opening(Box<Opening>),
    /// An exchange sends what a stream of another server has got.
    Tail(ExchangeId),
    /// Streams of that server are sent here.
    IsMember(Incarnation),
    /// The server of a stream that is sent on this exchange is lost.
    ClaimLost(ExchangeId),
    /// The request was cancelled.
    Cancel(SessionDigest, RequestDigest),
    /// This server works on the task.
    TaskPut(TaskKey),
    /// A request about tasks waits for it.
    TaskRead(RequestKey),
    /// A request about a task of that server waits for it.
    TaskOwner(RequestKey, Box<(TaskRecord, u64, Incarnation)>),
    /// A request has changed a task, which is this then, in this version.
    TaskChange(RequestKey, Box<(TaskRecord, u64)>, TaskChange),
    /// Subscriptions include the task.
    WatchedTask(TaskDigest),
    /// This server ends the tasks of lost ones.
    Orphans,
    /// One of them.
    Orphan,
    /// Nothing waits for it.
    Nothing,
}

impl Node {
    /// `seed`: unpredictable, and of no other node.
    pub(in crate::server) fn new(seed: Seed) -> Self {
        Self {
            seed,
            own: Incarnation([0; 16]),
            is_member: false,
            beat: 0,
            last_token: 0,
            pending: BTreeMap::new(),
            loading: BTreeMap::new(),
            changed: BTreeSet::new(),
            asking: Vec::new(),
            members: BTreeMap::new(),
            held: 0,
            stalled: BTreeSet::new(),
            unsaid: BTreeSet::new(),
            unsaid_bytes: 0,
            health: Health::Good,
            requests: 0,
            failures: 0,
            forwarded: 0,
            arrived: 0,
            latency: Latency::default(),
        }
    }

    /// Returns this node.
    pub(in crate::server) const fn own(&self) -> Incarnation {
        self.own
    }

    /// Returns the number by which other nodes reach this one.
    pub(in crate::server) const fn tag(&self) -> NodeTag {
        self.own.tag()
    }

    /// Returns whether something may be sent that can wait.
    pub(in crate::server) fn may_send(&self) -> bool {
        self.health != Health::Failed
    }

    fn stats(&self) -> StoreStats {
        StoreStats {
            is_member: self.is_member,
            requests: self.requests,
            failures: self.failures,
            waiting: self.pending.len() + self.unsaid.len(),
            forwarded: self.forwarded,
            arrived: self.arrived,
            p50: self.latency.percentile(50),
            p99: self.latency.percentile(99),
        }
    }

    /// Returns whether a request of this kind has no reply yet.
    fn waits_for(&self, is_it: impl Fn(&Then) -> bool) -> bool {
        self.pending.values().any(|pending| is_it(&pending.then))
    }

    /// Adds what is to be said. Without room for a change, everything counts as changed. Returns
    /// false if it is something else, and there is no room for it.
    fn add(&mut self, news: News, max: usize, max_bytes: usize) -> bool {
        let is_full = |node: &Self, news: &News| {
            node.unsaid.len() >= max || node.unsaid_bytes.saturating_add(size(news)) > max_bytes
        };
        if self.unsaid.contains(&news) {
            return true;
        }
        if is_full(self, &news) || self.unsaid.contains(&News::ChangedAll) && is_change(&news) {
            self.unsaid.retain(|news| !is_change(news));
            self.unsaid.insert(News::ChangedAll);
            self.unsaid_bytes = self.unsaid.iter().map(size).sum();
            if is_change(&news) {
                return true;
            }
            if is_full(self, &news) {
                return false;
            }
        }
        self.unsaid_bytes += size(&news);
        self.unsaid.insert(news);
        true
    }

    /// Takes what is to be said next.
    fn take(&mut self) -> Option<News> {
        let news = self.unsaid.pop_first()?;
        self.unsaid_bytes -= size(&news);
        Some(news)
    }
}

/// Returns whether [`News::ChangedAll`] contains these news.
const fn is_change(news: &News) -> bool {
    matches!(news, News::Changed(_) | News::Session(_) | News::ChangedAll)
}

/// Returns the memory of news, in bytes, as estimated.
fn size(news: &News) -> usize {
    let text = match news {
        News::Revoked(principal) => principal.0.len(),
        News::Elicited(id) => id.len(),
        News::Changed(Change::Resource(uri)) => uri.len(),
        News::Changed(Change::Tools | Change::Prompts | Change::Resources)
        | News::ChangedAll
        | News::Closed(_)
        | News::Session(_)
        | News::Task(_) => 0,
    };
    text + OVERHEAD
}

impl ServerEnv {
    /// Joins the store as another node than before. Does nothing without a store.
    pub(in crate::server) fn join_store(&mut self) {
        let Some(node) = &mut self.node else { return };
        let [random @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = node.seed.next_bytes();
        self.join_as(Incarnation(random));
    }

    /// Joins again as another node with the same tag, so that answers to what it has asked reach
    /// it.
    pub(in crate::server) fn rejoin_store(&mut self) {
        let Some(node) = &mut self.node else { return };
        let before = node.own;
        let [random @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = node.seed.next_bytes();
        self.ask_store(StoreRequest::Leave { node: before }, Then::Nothing);
        self.join_as(Incarnation(random).with_tag_of(before));
    }

    fn join_as(&mut self, own: Incarnation) {
        let lease = self.config.limits.server.node_lease;
        if let Some(node) = &mut self.node {
            (node.own, node.is_member, node.beat) = (own, false, 0);
        }
        self.ask_store(StoreRequest::Join { node: own, lease }, Then::Join);
    }

    /// Returns whether this server was that node before it joined again.
    pub(in crate::server) fn has_been(&self, other: Incarnation) -> bool {
        self.node.as_ref().is_some_and(|node| node.own != other && node.tag() == other.tag())
    }

    /// Says something to all other nodes. Does nothing without a store.
    pub(in crate::server) fn say(&mut self, news: News) {
        let limits = &self.config.limits.server;
        let (max, max_bytes) = (limits.max_store_requests, limits.max_store_bytes);
        let Some(node) = &mut self.node else { return };
        if !node.add(news, max, max_bytes) {
            let why = "the store does not reply, and there is no room for what the other nodes do not know";
            self.diagnose(DiagnosticKind::StoreUnreachable, why);
        }
        self.say_next();
    }

    /// Sends what is to be said next, unless something was sent and has no reply, or the store has
    /// just failed.
    pub(super) fn say_next(&mut self) {
        let Some(node) = &mut self.node else { return };
        if !node.may_send() || node.waits_for(|then| matches!(then, Then::Publish(_) | Then::Revoke(_))) {
            return;
        }
        match node.take() {
            // The store knows it first: a session that a node loads after the news is none.
            Some(News::Revoked(principal)) => {
                let keep = self.config.limits.server.session_idle.saturating_mul(2);
                let request = StoreRequest::Revoke { principal: PrincipalDigest::of(&principal), keep };
                self.ask_store(request, Then::Revoke(principal));
            }
            Some(news) => self.publish_news(news),
            None => {}
        }
    }

    /// Tells all other nodes.
    pub(super) fn publish_news(&mut self, news: News) {
        let Some(node) = &self.node else { return };
        let request = StoreRequest::Publish { node: node.own, news: news.clone() };
        self.ask_store(request, Then::Publish(news));
    }

    /// Asks the store for something. Returns false if too many requests have no reply.
    pub(in crate::server) fn ask_store(&mut self, request: StoreRequest, then: Then) -> bool {
        let limits = &self.config.limits.server;
        let (until, max) = (self.now + limits.store_timeout, limits.max_store_requests);
        let Some(node) = &mut self.node else { return false };
        // The lease and the news are few, and needed.
        let is_own = matches!(then, Then::Join | Then::Renew(_) | Then::Publish(_) | Then::Revoke(_));
        if !is_own && node.pending.len() >= max {
            return false;
        }
        node.last_token += 1;
        node.requests += 1;
        let token = StoreToken(node.last_token);
        node.forwarded += u64::from(matches!(request, StoreRequest::Send { .. }));
        node.pending.insert(token, PendingRequest { since: self.now, until, then });
        self.emit(Event::Store(token, request));
        self.arm_store();
        true
    }

    /// A request about tasks waits for the store.
    pub(in crate::server) fn asks_store(&mut self, request: RequestKey) {
        self.node.iter_mut().for_each(|node| node.asking.push(request));
    }

    /// Takes the requests about tasks that the store was not asked for yet.
    pub(in crate::server) fn take_asking(&mut self) -> Vec<RequestKey> {
        self.node.as_mut().map(|node| core::mem::take(&mut node.asking)).unwrap_or_default()
    }

    /// Returns the size of the events that wait for the store, in bytes.
    pub(in crate::server) fn held_for_store(&self) -> usize {
        self.node.as_ref().map_or(0, |node| node.held)
    }

    /// An event of this size waits for the store.
    pub(in crate::server) fn hold_for_store(&mut self, bytes: usize) {
        self.node.iter_mut().for_each(|node| node.held += bytes);
    }

    /// An event of this size waits for the store no longer.
    pub(in crate::server) fn release_for_store(&mut self, bytes: usize) {
        self.node.iter_mut().for_each(|node| node.held -= bytes);
    }

    /// The store could not be asked to keep the events of a stream.
    pub(in crate::server) fn stall(&mut self, stream: StreamKey) {
        if let Some(node) = &mut self.node {
            node.stalled.insert(stream);
        }
        if self.timers.get(ServerTimer::StoreRetry).is_none() {
            self.timers.set(ServerTimer::StoreRetry, Some(self.now + RETRY));
        }
    }

    /// Takes the streams with events that the store was not asked to keep.
    pub(in crate::server) fn take_stalled(&mut self) -> BTreeSet<StreamKey> {
        self.node.as_mut().map(|node| core::mem::take(&mut node.stalled)).unwrap_or_default()
    }

    /// Sets the timer for the oldest request without a reply.
    fn arm_store(&mut self) {
        let oldest = self.node.as_ref().and_then(|node| node.pending.values().next()).map(|pending| pending.until);
        self.timers.set(ServerTimer::StoreReply, oldest);
    }

    /// Returns the oldest request that has got no reply in time.
    pub(super) fn overdue(&self) -> Option<StoreToken> {
        let (token, pending) = self.node.as_ref()?.pending.iter().next()?;
        (pending.until <= self.now).then_some(*token)
    }

    /// A request has a result. Returns what it is for, and `None` if its time is over.
    pub(super) fn settle(&mut self, token: StoreToken, result: &Result<StoreReply, StoreError>) -> Option<Then> {
        let node = self.node.as_mut()?;
        let PendingRequest { since, then, .. } = node.pending.remove(&token)?;
        node.latency.add(self.now - since);
        let failure = result.as_ref().err();
        let after = if failure.is_some() { Health::Failed } else { Health::Good };
        let before = core::mem::replace(&mut node.health, after);
        node.failures += u64::from(failure.is_some());
        self.arm_store();
        if let Some(why) = failure {
            // One for each time of failure: the state, and not each request, is worth a line.
            if before == Health::Good {
                self.diagnose(DiagnosticKind::StoreUnreachable, &format!("{why}"));
            }
            self.timers.set(ServerTimer::StoreRetry, Some(self.now + RETRY));
        }
        Some(then)
    }

    /// The store has replied to this join. Returns whether this server is a member.
    pub(super) fn has_joined(&mut self, reply: StoreReply) -> bool {
        match reply {
            StoreReply::Taken => self.join_store(),
            StoreReply::Joined { warning } => {
                warning.into_iter().for_each(|why| self.diagnose(DiagnosticKind::UnsafeStore, &why));
                self.is_confirmed(0);
                return true;
            }
            _ => self.timers.set(ServerTimer::StoreRetry, Some(self.now + RETRY)),
        }
        false
    }

    /// The store has replied to this renewal. Returns false if this server is no member any more.
    pub(super) fn has_renewed(&mut self, beat: u64, reply: &StoreReply) -> bool {
        if *reply == StoreReply::Done {
            self.is_confirmed(beat);
            return true;
        }
        self.diagnose(DiagnosticKind::NodeLapsed, "the store has not kept the lease of this server");
        false
    }

    /// The store has confirmed that this server is a member.
    fn is_confirmed(&mut self, beat: u64) {
        if let Some(node) = &mut self.node {
            (node.is_member, node.beat) = (true, beat);
        }
        self.timers.set(ServerTimer::StoreRenewal, Some(self.again(self.config.limits.server.node_renewal)));
    }

    /// The lease is to be renewed.
    pub(in crate::server) fn renew_lease(&mut self) {
        let lease = self.config.limits.server.node_lease;
        let Some(node) = &self.node else { return };
        // A renewal without a reply may have been carried out: it is repeated under its number.
        let (own, beat) = (node.own, node.beat + 1);
        self.ask_store(StoreRequest::Renew { node: own, beat, lease }, Then::Renew(beat));
    }

    /// Some time has passed since the store failed.
    pub(in crate::server) fn retry_store(&mut self) {
        let Some(node) = &mut self.node else { return };
        node.health = Health::Trying;
        let (is_member, waits) = (node.is_member, node.waits_for(|then| matches!(then, Then::Join | Then::Renew(_))));
        match (is_member, waits) {
            (_, true) => {}
            (true, false) => self.renew_lease(),
            (false, false) => self.rejoin_store(),
        }
        self.say_next();
    }

    /// The server terminates: it says the rest, and leaves. Nothing waits for the store.
    pub(in crate::server) fn leave_store(&mut self) {
        let Some(mut node) = self.node.take() else { return };
        let unanswered = core::mem::take(&mut node.pending);
        let unanswered = unanswered.into_values().filter_map(|pending| match pending.then {
            Then::Publish(news) => Some(news),
            Then::Revoke(principal) => Some(News::Revoked(principal)),
            _ => None,
        });
        let (own, keep) = (node.own, self.config.limits.server.session_idle.saturating_mul(2));
        let rest = unanswered.chain(node.unsaid).flat_map(|news| {
            let revoke = match &news {
                News::Revoked(principal) => {
                    Some(StoreRequest::Revoke { principal: PrincipalDigest::of(principal), keep })
                }
                _ => None,
            };
            revoke.into_iter().chain([StoreRequest::Publish { node: own, news }])
        });
        for (request, nth) in rest.chain([StoreRequest::Leave { node: own }]).zip(1..) {
            self.emit(Event::Store(StoreToken(node.last_token + nth), request));
        }
    }

    /// Returns what a store has done for this server. Zero without one.
    pub(in crate::server) fn store_stats(&self) -> StoreStats {
        self.node.as_ref().map(|node| node.stats()).unwrap_or_default()
    }
}
