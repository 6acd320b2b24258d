//! This server as a node of a store: its lease, what it has said and the store has not got yet, and
//! its requests without a reply.

use super::latency::Latency;
use super::unsaid::Unsaid;
use super::{
    Incarnation, News, NodeTag, PrincipalDigest, RequestDigest, SessionDigest, SessionRecord, StoreError, StoreReply,
    StoreRequest, StoreToken, TaskDigest,
};
use crate::error::DiagnosticKind;
use crate::exchange::ExchangeId;
use crate::input::{Principal, RequestKey, SessionKey};
use crate::seed::Seed;
use crate::server::Event;
use crate::server::client::{Bound, ClientIdentity, ClientKey};
use crate::server::env::ServerEnv;
use crate::server::keys::{ServerTimer, StreamKey, TaskKey};
use crate::server::tasks::{TaskChange, TaskRecord};
use crate::server::transport::{ForwardedItem, Opening, Place};
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

/// The number of news that may have no reply.
const SAYING: usize = 32;

/// The number of earlier incarnations of a node that it still wants to leave the store.
const FORMER: usize = 16;

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
    unsaid: Unsaid,
    /// The number of news without a reply.
    saying: usize,
    /// The nodes that this one has been and that may still be members, the oldest first.
    former: Vec<Incarnation>,
    /// The size of what the requests without a reply carry, in bytes.
    carried: usize,
    /// What was for servers that were no members, with its size in bytes.
    delayed: Vec<(ClientKey, usize, ForwardedItem)>,
    /// The sessions with a listener here that may have changed at the store.
    outdated: BTreeSet<SessionDigest>,
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
    /// The size of what it carries, in bytes.
    carried: usize,
    /// The client whose request it counts as.
    client: Option<ClientKey>,
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
    /// Another server gets it.
    Send(Box<ForwardedItem>),
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
    /// The node that this one has been is no member any more.
    Leave(Incarnation),
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
            unsaid: Unsaid::default(),
            saying: 0,
            former: Vec::new(),
            carried: 0,
            delayed: Vec::new(),
            outdated: BTreeSet::new(),
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
        if node.former.len() >= FORMER {
            node.former.remove(0);
        }
        node.former.push(before);
        for node in node.former.clone() {
            self.ask_store(StoreRequest::Leave { node }, Then::Leave(node));
        }
        self.join_as(Incarnation(random).with_tag_of(before));
    }

    /// A node that this one has been is no member any more.
    pub(super) fn has_left(&mut self, former: Incarnation) {
        if let Some(node) = &mut self.node {
            node.former.retain(|known| *known != former);
        }
    }

    fn join_as(&mut self, own: Incarnation) {
        let lease = self.config.limits.server.node_lease;
        if let Some(node) = &mut self.node {
            (node.own, node.is_member, node.beat) = (own, false, 0);
        }
        self.ask_store(StoreRequest::Join { node: own, lease }, Then::Join);
    }

    /// Takes a session with a listener here that may have changed at the store.
    pub(in crate::server) fn take_outdated(&mut self) -> Option<SessionDigest> {
        self.node.as_mut().filter(|node| node.may_send())?.outdated.pop_first()
    }

    /// A session with a listener here may have changed at the store.
    pub(in crate::server) fn is_outdated(&mut self, session: SessionDigest) {
        if let Some(node) = &mut self.node {
            node.outdated.insert(session);
        }
    }

    /// Returns whether a session is being loaded.
    pub(in crate::server) fn is_loading(&self, session: SessionDigest) -> bool {
        self.node.as_ref().is_some_and(|node| node.loading.contains_key(&session))
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
        if !node.unsaid.add(news, max, max_bytes) {
            let why = "the store does not reply, and there is no room for what the other nodes do not know";
            self.diagnose(DiagnosticKind::StoreUnreachable, why);
        }
        self.say_next();
    }

    /// Sends what is to be said, unless much was sent that has no reply, or the store has just
    /// failed.
    pub(super) fn say_next(&mut self) {
        let max = (self.config.limits.server.max_store_requests / 4).clamp(1, SAYING);
        while let Some(node) = self.node.as_mut().filter(|node| node.may_send() && node.saying < max)
            && let Some(news) = node.unsaid.take()
        {
            match news {
                // The store knows it first: a session that a node loads after the news is none.
                News::Revoked(principal) => {
                    let keep = self.config.limits.server.session_idle.saturating_mul(2);
                    let request = StoreRequest::Revoke { principal: PrincipalDigest::of(&principal), keep };
                    self.ask_store(request, Then::Revoke(principal));
                }
                news => self.publish_news(news),
            }
        }
    }

    /// Tells all other nodes.
    pub(super) fn publish_news(&mut self, news: News) {
        let Some(node) = &self.node else { return };
        let request = StoreRequest::Publish { node: node.own, news: news.clone() };
        self.ask_store(request, Then::Publish(news));
    }

    /// Asks the store for something that a client has caused and that no request of it waits for:
    /// it counts as a request of the client until there is a reply. Returns false if the client has
    /// too many, or as [`ask_store`](Self::ask_store).
    pub(in crate::server) fn ask_store_for(
        &mut self,
        client: &ClientIdentity,
        request: StoreRequest,
        then: Then,
    ) -> bool {
        let carried = request.carried();
        let Some(client) = self.take_share(client, carried) else { return false };
        if !self.ask_store(request, then) {
            self.give_share_back(client, carried);
            return false;
        }
        let last = self.node.as_mut().and_then(|node| node.pending.values_mut().next_back());
        last.into_iter().for_each(|pending| pending.client = Some(client));
        true
    }

    /// Keeps what could not be passed on until it is sent again. It counts as a request of the
    /// client. Returns false if the client has too many, or if there is no room.
    pub(in crate::server) fn delay(&mut self, client: &ClientIdentity, item: ForwardedItem, size: usize) -> bool {
        let limits = &self.config.limits.server;
        let (max, max_bytes) = (limits.max_store_requests, limits.max_store_bytes);
        let is_full = |node: &Node| node.delayed.len() >= max || node.carried.saturating_add(size) > max_bytes;
        if self.node.as_ref().is_none_or(|node| is_full(node)) {
            return false;
        }
        let Some(client) = self.take_share(client, size) else { return false };
        if let Some(node) = &mut self.node {
            node.carried += size;
            node.delayed.push((client, size, item));
        }
        self.retry_soon();
        true
    }

    /// Takes what could not be passed on.
    pub(in crate::server) fn take_delayed(&mut self) -> Vec<ForwardedItem> {
        let Some(node) = &mut self.node else { return Vec::new() };
        let delayed = core::mem::take(&mut node.delayed);
        node.carried -= delayed.iter().map(|(_, size, _)| size).sum::<usize>();
        delayed.iter().for_each(|(client, size, _)| self.give_share_back(*client, *size));
        delayed.into_iter().map(|(.., item)| item).collect()
    }

    /// A request has a reply, or none will come: its client has room for another.
    fn forget(&mut self, pending: &PendingRequest) {
        if let Some(client) = pending.client {
            self.give_share_back(client, pending.carried);
        }
    }

    /// Something of this size, in bytes, counts as a request of the client. Returns `None` if the
    /// client has too many.
    fn take_share(&mut self, client: &ClientIdentity, size: usize) -> Option<ClientKey> {
        let bounds = [(Bound::Requests, 1), (Bound::RunningBytes, size)];
        if bounds.iter().any(|(bound, more)| self.check_share(client, *bound, *more).is_err()) {
            return None;
        }
        let client = self.shares.take(client, Bound::Requests, 1);
        self.shares.add(client, Bound::RunningBytes, size);
        Some(client)
    }

    fn give_share_back(&mut self, client: ClientKey, size: usize) {
        self.shares.give_back(client, Bound::RunningBytes, size);
        self.shares.give_back(client, Bound::Requests, 1);
    }

    /// Asks the store for something. Returns false if too many requests have no reply, or if they
    /// carry too much.
    pub(in crate::server) fn ask_store(&mut self, request: StoreRequest, then: Then) -> bool {
        let limits = &self.config.limits.server;
        let (until, max, max_bytes) =
            (self.now + limits.store_timeout, limits.max_store_requests, limits.max_store_bytes);
        let Some(node) = &mut self.node else { return false };
        // The lease and the news are few, and needed.
        let is_news = matches!(then, Then::Publish(_) | Then::Revoke(_));
        let is_own = is_news || matches!(then, Then::Join | Then::Renew(_) | Then::Leave(_));
        let carried = request.carried();
        let is_full = node.pending.len() >= max || carried > 0 && node.carried.saturating_add(carried) > max_bytes;
        if !is_own && is_full {
            return false;
        }
        node.saying += usize::from(is_news);
        node.carried += carried;
        node.last_token += 1;
        node.requests += 1;
        let token = StoreToken(node.last_token);
        node.forwarded += u64::from(matches!(request, StoreRequest::Send { .. }));
        node.pending.insert(token, PendingRequest { since: self.now, until, then, carried, client: None });
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
        self.retry_soon();
    }

    /// What the store was not asked for is tried again after some time.
    pub(in crate::server) fn retry_soon(&mut self) {
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
        let pending = node.pending.remove(&token)?;
        node.latency.add(self.now - pending.since);
        node.carried -= pending.carried;
        node.saying -= usize::from(matches!(pending.then, Then::Publish(_) | Then::Revoke(_)));
        let failure = result.as_ref().err();
        let after = if failure.is_some() { Health::Failed } else { Health::Good };
        let before = core::mem::replace(&mut node.health, after);
        node.failures += u64::from(failure.is_some());
        self.forget(&pending);
        self.arm_store();
        if let Some(why) = failure {
            // One for each time of failure: the state, and not each request, is worth a line.
            if before == Health::Good {
                self.diagnose(DiagnosticKind::StoreUnreachable, &format!("{why}"));
            }
            self.timers.set(ServerTimer::StoreRetry, Some(self.now + RETRY));
        }
        Some(pending.then)
    }

    /// The store has replied to this join. Returns whether this server is a member.
    pub(super) fn has_joined(&mut self, reply: StoreReply) -> bool {
        match reply {
            // Perhaps by the node that this one has been: it leaves, or its lease ends.
            StoreReply::Taken if self.node.as_ref().is_some_and(|node| !node.former.is_empty()) => {
                self.timers.set(ServerTimer::StoreRetry, Some(self.now + RETRY));
            }
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
        drop(self.take_delayed());
        let Some(mut node) = self.node.take() else { return };
        let unanswered = core::mem::take(&mut node.pending);
        unanswered.values().for_each(|pending| self.forget(pending));
        let unanswered = unanswered.into_values().filter_map(|pending| match pending.then {
            Then::Publish(news) => Some(news),
            Then::Revoke(principal) => Some(News::Revoked(principal)),
            _ => None,
        });
        let (own, keep) = (node.own, self.config.limits.server.session_idle.saturating_mul(2));
        let rest = unanswered.chain(core::iter::from_fn(|| node.unsaid.take())).flat_map(|news| {
            let revoke = match &news {
                News::Revoked(principal) => {
                    Some(StoreRequest::Revoke { principal: PrincipalDigest::of(principal), keep })
                }
                _ => None,
            };
            revoke.into_iter().chain([StoreRequest::Publish { node: own, news }])
        });
        let leave = node.former.iter().chain([&own]).map(|node| StoreRequest::Leave { node: *node });
        for (request, nth) in rest.chain(leave).zip(1..) {
            self.emit(Event::Store(StoreToken(node.last_token + nth), request));
        }
    }

    /// Returns what a store has done for this server. Zero without one.
    pub(in crate::server) fn store_stats(&self) -> StoreStats {
        self.node.as_ref().map(|node| node.stats()).unwrap_or_default()
    }
}
