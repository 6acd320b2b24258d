//! A store in memory: for several servers of one process, for tests and for simulations.

mod streams;
mod tasks;

use super::{Incarnation, News, NodeItem, NodeTag, PrincipalDigest, Serves, SessionDigest, StoreReply, StoreRequest};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;
use streams::{NewEvent, Streams};
use tasks::{KeptTask, Tasks};

/// The number of news that a store keeps for nodes that have not read them.
const NEWS: usize = 1000;
/// The number of items that a node has not taken, and their bytes.
const INBOX: (usize, usize) = (10_000, 64 << 20);

/// A store in memory. It has no clock: each call names the time of the store, as a duration since
/// any fixed moment. A clone is what the store was at that time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Memory {
    members: BTreeMap<NodeTag, Member>,
    sessions: BTreeMap<SessionDigest, Session>,
    tasks: Tasks,
    /// When the access of a principal has ended, and until when this is kept.
    revoked: BTreeMap<PrincipalDigest, (Duration, Duration)>,
    news: VecDeque<(Incarnation, News)>,
    /// The number of news that there have been.
    last: u64,
}

#[derive(Clone, PartialEq, Debug)]
struct Member {
    node: Incarnation,
    /// The end of its lease.
    until: Duration,
    beat: u64,
    /// The number of news that it has read, or missed before it joined.
    read: u64,
    inbox: Vec<NodeItem>,
    inbox_bytes: usize,
}

#[derive(Clone, PartialEq, Debug)]
struct Session {
    /// When it ends.
    until: Duration,
    opened: Duration,
    version: u64,
    record: Bytes,
    streams: Streams,
}

impl Memory {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the sessions, their streams and the tasks what they were in an earlier clone. The
    /// members, what they have not read, and the news stay as they are: the part of a store that
    /// has these need not go back with the rest, as one shard of a cluster.
    pub fn take_back(&mut self, earlier: &Self) {
        self.sessions.clone_from(&earlier.sessions);
        self.tasks.clone_from(&earlier.tasks);
        self.revoked.clone_from(&earlier.revoked);
    }

    /// What it serves: everything.
    pub const SERVES: Serves = Serves::SESSIONS.and(Serves::TASKS);

    /// Carries out a request.
    pub fn apply(&mut self, now: Duration, request: StoreRequest) -> StoreReply {
        self.members.retain(|_, member| member.until > now);
        self.sessions.retain(|_, session| session.until > now);
        self.sessions.values_mut().for_each(|session| session.streams.expire(now));
        self.tasks.expire(now);
        self.revoked.retain(|_, (_, until)| *until > now);
        match request {
            StoreRequest::Join { node, lease } => {
                let (until, read) = (now + lease, self.last);
                // A join that is repeated changes nothing.
                let member = self.members.entry(node.tag()).or_insert_with(|| Member::new(node, until, read));
                if member.node == node { StoreReply::Joined { warning: None } } else { StoreReply::Taken }
            }
            StoreRequest::Renew { node, beat, lease } => match self.member(node) {
                Some(member) if member.beat == beat || member.beat + 1 == beat => {
                    (member.until, member.beat) = (now + lease, beat);
                    StoreReply::Done
                }
                _ => StoreReply::Lapsed,
            },
            StoreRequest::Leave { node } => {
                if self.member(node).is_some() {
                    self.members.remove(&node.tag());
                }
                StoreReply::Done
            }
            StoreRequest::Open { session, record, ttl } => {
                self.sessions.entry(session).or_insert(Session::new(now, ttl, record));
                StoreReply::Done
            }
            StoreRequest::Load { session, ttl } => match self.sessions.get_mut(&session) {
                None => StoreReply::Missing,
                Some(kept) => {
                    kept.until = now + ttl;
                    kept.reply()
                }
            },
            StoreRequest::Change { session, version, record } => match self.sessions.get_mut(&session) {
                None => StoreReply::Missing,
                Some(kept) if kept.version == version => {
                    (kept.version, kept.record) = (version + 1, record);
                    StoreReply::Done
                }
                Some(kept) if kept.version == version + 1 && kept.record == record => StoreReply::Done,
                Some(kept) => kept.reply(),
            },
            StoreRequest::Touch { session, ttl } => match self.sessions.get_mut(&session) {
                None => StoreReply::Missing,
                Some(kept) => {
                    kept.until = now + ttl;
                    StoreReply::Done
                }
            },
            StoreRequest::Close { session } => {
                self.sessions.remove(&session);
                StoreReply::Done
            }
            StoreRequest::Claim { session, stream, requests, node, over } => {
                self.streams(session, |streams| streams.claim(stream, &requests, node, over))
            }
            StoreRequest::Append { session, stream, epoch, event, is_sent, answers, keep, last } => self
                .streams(session, |streams| {
                    streams.append(now, stream, NewEvent { epoch, event, is_sent, answers, keep, last })
                }),
            StoreRequest::Read { session, stream, after } => {
                self.streams(session, |streams| streams.read(stream, after))
            }
            StoreRequest::Cancel { session, request, keep } => {
                self.streams(session, |streams| streams.cancel(now, request, keep))
            }
            StoreRequest::Revoke { principal, keep } => {
                self.revoked.insert(principal, (now, now + keep));
                StoreReply::Done
            }
            StoreRequest::IsRevoked { principal, opened } => match self.revoked.get(&principal) {
                Some((at, _)) if millis(*at) >= opened => StoreReply::Done,
                _ => StoreReply::Missing,
            },
            StoreRequest::IsMember { node } => match self.member(node) {
                Some(_) => StoreReply::Done,
                None => StoreReply::NoNode,
            },
            StoreRequest::PutTask { task, version, record, owner, principal, created, ttl } => {
                let kept = KeptTask { until: now + ttl, version, record, owner, place: (created, principal) };
                self.tasks.put(task, kept)
            }
            StoreRequest::GetTask { task } => self.tasks.get(task),
            StoreRequest::ListTasks { principal, after, count } => self.tasks.list(principal, after, count),
            StoreRequest::Orphans { node, lease } => {
                let is_member =
                    |node: Incarnation| self.members.get(&node.tag()).is_some_and(|member| member.node == node);
                self.tasks.orphans(now, node, lease, is_member)
            }
            StoreRequest::Send { node, item } => match self.members.get_mut(&node) {
                None => StoreReply::NoNode,
                Some(member) => member.put(item),
            },
            StoreRequest::Publish { node, news } => {
                self.news.push_back((node, news));
                self.last += 1;
                if self.news.len() > NEWS {
                    self.news.pop_front();
                }
                StoreReply::Done
            }
        }
    }

    /// Takes what has arrived for a node. Nothing arrives for one that is no member.
    pub fn take_arrived(&mut self, now: Duration, node: Incarnation) -> Vec<NodeItem> {
        let last = self.last;
        let Some(member) = self.member(node).filter(|member| member.until > now) else { return Vec::new() };
        let own = core::mem::take(&mut member.inbox);
        member.inbox_bytes = 0;
        let before = core::mem::replace(&mut member.read, last);
        let unread = usize::try_from(last - before).unwrap_or(usize::MAX);
        let missed = (unread > self.news.len()).then_some(NodeItem::Missed);
        let kept = self.news.iter().skip(self.news.len().saturating_sub(unread));
        let news = kept.map(|(from, news)| NodeItem::News { from: *from, news: news.clone() });
        own.into_iter().chain(missed).chain(news).collect()
    }

    fn streams(&mut self, session: SessionDigest, with: impl FnOnce(&mut Streams) -> StoreReply) -> StoreReply {
        self.sessions.get_mut(&session).map_or(StoreReply::Missing, |session| with(&mut session.streams))
    }

    fn member(&mut self, node: Incarnation) -> Option<&mut Member> {
        self.members.get_mut(&node.tag()).filter(|member| member.node == node)
    }

    /// Returns the number of tasks.
    pub fn tasks(&self, now: Duration) -> usize {
        self.tasks.len(now)
    }

    /// Returns the number of sessions.
    pub fn sessions(&self, now: Duration) -> usize {
        self.sessions.values().filter(|session| session.until > now).count()
    }

    /// Returns the number of members.
    pub fn members(&self, now: Duration) -> usize {
        self.members.values().filter(|member| member.until > now).count()
    }
}

impl Member {
    const fn new(node: Incarnation, until: Duration, read: u64) -> Self {
        Self { node, until, beat: 0, read, inbox: Vec::new(), inbox_bytes: 0 }
    }

    fn put(&mut self, item: NodeItem) -> StoreReply {
        let bytes = self.inbox_bytes.saturating_add(item.size());
        if self.inbox.len() >= INBOX.0 || bytes > INBOX.1 {
            return StoreReply::Full;
        }
        self.inbox_bytes = bytes;
        self.inbox.push(item);
        StoreReply::Done
    }
}

impl Session {
    fn new(now: Duration, ttl: Duration, record: Bytes) -> Self {
        Self { until: now + ttl, opened: now, version: 1, record, streams: Streams::default() }
    }

    fn reply(&self) -> StoreReply {
        StoreReply::Session { version: self.version, record: self.record.clone(), opened: millis(self.opened) }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Change;
    use crate::server::store::{Epoch, RequestDigest, StoredEvent};
    use alloc::vec;

    const A: Incarnation = Incarnation([1; 16]);
    const B: Incarnation = Incarnation([2; 16]);
    const LEASE: Duration = Duration::from_secs(15);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn join(store: &mut Memory, now: u64, node: Incarnation) {
        assert_eq!(
            store.apply(at(now), StoreRequest::Join { node, lease: LEASE }),
            StoreReply::Joined { warning: None }
        );
    }

    fn renew(store: &mut Memory, now: u64, node: Incarnation, beat: u64) -> StoreReply {
        store.apply(at(now), StoreRequest::Renew { node, beat, lease: LEASE })
    }

    fn publish(store: &mut Memory, node: Incarnation, news: News) {
        assert_eq!(store.apply(at(1), StoreRequest::Publish { node, news }), StoreReply::Done);
    }

    #[test]
    fn lease_that_has_ended_is_never_renewed() {
        let mut store = Memory::new();
        join(&mut store, 0, A);
        assert_eq!(renew(&mut store, 14, A, 1), StoreReply::Done);
        assert_eq!(renew(&mut store, 28, A, 2), StoreReply::Done);
        assert_eq!(renew(&mut store, 43, A, 3), StoreReply::Lapsed);
        assert_eq!(renew(&mut store, 44, A, 3), StoreReply::Lapsed);
        assert_eq!(store.members(at(44)), 0);
    }

    #[test]
    fn renewal_may_be_repeated_and_a_lost_one_is_noticed() {
        let mut store = Memory::new();
        join(&mut store, 0, A);
        let before = store.clone();
        assert_eq!(renew(&mut store, 5, A, 1), StoreReply::Done);
        assert_eq!(renew(&mut store, 6, A, 1), StoreReply::Done, "its reply was lost");
        assert_eq!(renew(&mut store, 10, A, 2), StoreReply::Done);
        store = before;
        assert_eq!(renew(&mut store, 14, A, 3), StoreReply::Lapsed, "the store went back");
    }

    #[test]
    fn news_reach_members_once_and_in_order() {
        let mut store = Memory::new();
        join(&mut store, 0, A);
        publish(&mut store, A, News::Changed(Change::Tools));
        join(&mut store, 1, B);
        publish(&mut store, A, News::ChangedAll);
        publish(&mut store, B, News::Elicited("e".into()));
        let said = |from, news| NodeItem::News { from, news };
        let both = vec![said(A, News::ChangedAll), said(B, News::Elicited("e".into()))];
        assert_eq!(store.take_arrived(at(2), B), both);
        assert_eq!(store.take_arrived(at(2), B), []);
        assert_eq!(store.take_arrived(at(2), A).len(), 3);
        assert_eq!(store.take_arrived(at(20), A), [], "its lease has ended");
    }

    #[test]
    fn node_that_was_away_learns_that_it_missed_news() {
        let mut store = Memory::new();
        join(&mut store, 0, A);
        for _ in 0..=NEWS {
            publish(&mut store, B, News::Changed(Change::Tools));
        }
        let arrived = store.take_arrived(at(2), A);
        assert_eq!((arrived.len(), &arrived[0]), (NEWS + 1, &NodeItem::Missed));
    }

    #[test]
    fn tag_belongs_to_one_member() {
        let mut store = Memory::new();
        let other = Incarnation({
            let mut bytes = A.0;
            bytes[15] = 9;
            bytes
        });
        assert_eq!(A.tag(), other.tag());
        assert!(B.tag() != A.tag() && Incarnation([0xff; 16]).tag().0 < 1 << 20);
        join(&mut store, 0, A);
        let taken = store.apply(at(1), StoreRequest::Join { node: other, lease: LEASE });
        assert_eq!(taken, StoreReply::Taken);
        assert_eq!(store.apply(at(1), StoreRequest::Leave { node: other }), StoreReply::Done);
        assert_eq!(
            (renew(&mut store, 2, other, 1), renew(&mut store, 2, A, 1)),
            (StoreReply::Lapsed, StoreReply::Done)
        );
        join(&mut store, 20, other);
    }

    const SESSION: SessionDigest = SessionDigest([5; 32]);

    fn session(store: &mut Memory, now: u64) -> StoreReply {
        store.apply(at(now), StoreRequest::Load { session: SESSION, ttl: at(10) })
    }

    fn kept(version: u64, record: &'static str) -> StoreReply {
        StoreReply::Session { version, record: record.into(), opened: 0 }
    }

    #[test]
    fn session_lives_as_long_as_it_is_touched() {
        let mut store = Memory::new();
        let open = |record: &'static str| StoreRequest::Open { session: SESSION, record: record.into(), ttl: at(10) };
        let touch = StoreRequest::Touch { session: SESSION, ttl: at(10) };
        assert_eq!(session(&mut store, 0), StoreReply::Missing);
        assert_eq!(store.apply(at(0), open("a")), StoreReply::Done);
        assert_eq!(store.apply(at(1), open("a")), StoreReply::Done);
        assert_eq!(store.apply(at(9), touch.clone()), StoreReply::Done);
        assert_eq!((session(&mut store, 18), session(&mut store, 28)), (kept(1, "a"), StoreReply::Missing));
        assert_eq!(store.apply(at(28), touch), StoreReply::Missing);
        assert_eq!(store.apply(at(29), open("b")), StoreReply::Done);
        let close = StoreRequest::Close { session: SESSION };
        assert_eq!(
            (store.apply(at(30), close.clone()), store.apply(at(30), close)),
            (StoreReply::Done, StoreReply::Done)
        );
        assert_eq!(session(&mut store, 30), StoreReply::Missing);
    }

    #[test]
    fn record_is_replaced_only_in_the_version_that_was_read() {
        let mut store = Memory::new();
        let change =
            |version, record: &'static str| StoreRequest::Change { session: SESSION, version, record: record.into() };
        assert_eq!(store.apply(at(0), change(1, "b")), StoreReply::Missing);
        store.apply(at(0), StoreRequest::Open { session: SESSION, record: "a".into(), ttl: at(10) });
        assert_eq!(store.apply(at(1), change(1, "b")), StoreReply::Done);
        assert_eq!(store.apply(at(1), change(1, "b")), StoreReply::Done, "its reply was lost");
        assert_eq!(store.apply(at(1), change(1, "c")), kept(2, "b"), "of another node");
        assert_eq!(store.apply(at(1), change(2, "c")), StoreReply::Done);
        assert_eq!(session(&mut store, 1), kept(3, "c"));
    }

    #[test]
    fn revocation_ends_what_was_opened_before() {
        let mut store = Memory::new();
        let principal = PrincipalDigest([1; 32]);
        let is_revoked = |store: &mut Memory, now, principal, opened| {
            store.apply(at(now), StoreRequest::IsRevoked { principal, opened })
        };
        assert_eq!(is_revoked(&mut store, 5, principal, 4000), StoreReply::Missing);
        assert_eq!(store.apply(at(5), StoreRequest::Revoke { principal, keep: at(10) }), StoreReply::Done);
        assert_eq!(is_revoked(&mut store, 6, principal, 4000), StoreReply::Done);
        assert_eq!(is_revoked(&mut store, 6, principal, 5000), StoreReply::Done);
        assert_eq!(is_revoked(&mut store, 6, principal, 5001), StoreReply::Missing);
        assert_eq!(is_revoked(&mut store, 6, PrincipalDigest([2; 32]), 4000), StoreReply::Missing);
        assert_eq!(is_revoked(&mut store, 15, principal, 4000), StoreReply::Missing);
    }

    #[test]
    fn items_reach_one_member_and_are_bounded() {
        let mut store = Memory::new();
        join(&mut store, 0, A);
        let item = |bytes: usize| NodeItem::Answer { session: SESSION, message: vec![b' '; bytes].into() };
        let send = |store: &mut Memory, node: Incarnation, item| {
            store.apply(at(1), StoreRequest::Send { node: node.tag(), item })
        };
        assert_eq!(send(&mut store, B, item(1)), StoreReply::NoNode);
        assert_eq!(send(&mut store, A, item(1)), StoreReply::Done);
        assert_eq!(send(&mut store, A, item(INBOX.1)), StoreReply::Full);
        assert_eq!(store.take_arrived(at(1), A), [item(1)]);
        assert_eq!(store.take_arrived(at(1), A), []);
        for _ in 0..INBOX.0 {
            assert_eq!(send(&mut store, A, item(1)), StoreReply::Done);
        }
        assert_eq!(send(&mut store, A, item(1)), StoreReply::Full);
    }

    fn claim(store: &mut Memory, node: Incarnation, over: Option<Epoch>) -> StoreReply {
        let requests = vec![Bytes::from_static(b"1"), Bytes::from_static(b"\"a\"")];
        store.apply(at(1), StoreRequest::Claim { session: SESSION, stream: 7, requests, node, over })
    }

    fn append(store: &mut Memory, epoch: Epoch, number: u64, data: &'static str, last: Option<Duration>) -> StoreReply {
        let (event, answers) = (StoredEvent { number, data: data.into() }, None);
        store.apply(
            at(1),
            StoreRequest::Append {
                session: SESSION,
                stream: 7,
                epoch,
                event,
                is_sent: true,
                answers,
                keep: 1000,
                last,
            },
        )
    }

    fn opened() -> Memory {
        let mut store = Memory::new();
        store.apply(at(0), StoreRequest::Open { session: SESSION, record: "a".into(), ttl: at(1000) });
        store
    }

    fn epoch(reply: StoreReply) -> Epoch {
        match reply {
            StoreReply::Claimed { epoch, .. } | StoreReply::Owned(epoch) => epoch,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_epoch_writes_at_a_time() {
        let mut store = opened();
        let first = epoch(claim(&mut store, A, None));
        assert_eq!((first.node, epoch(claim(&mut store, A, None))), (A, first), "its reply was lost");
        assert_eq!(claim(&mut store, B, None), StoreReply::Owned(first));
        assert_eq!(append(&mut store, first, 1, "x", None), StoreReply::Done);
        assert_eq!(append(&mut store, first, 1, "x", None), StoreReply::Done, "its reply was lost");
        let second = epoch(claim(&mut store, B, Some(first)));
        assert_eq!((second.node, epoch(claim(&mut store, B, Some(first)))), (B, second));
        assert_eq!(append(&mut store, first, 2, "y", None), StoreReply::Fenced(second));
        assert_eq!(claim(&mut store, A, Some(first)), StoreReply::Owned(second), "what it saw is out of date");
        assert_eq!(append(&mut store, second, 3, "z", None), StoreReply::Gap(1));
        assert_eq!(append(&mut store, second, 2, "z", Some(at(60))), StoreReply::Done);
        assert_eq!(append(&mut store, second, 3, "z", None), StoreReply::Over);
        assert_eq!(claim(&mut store, A, Some(second)), StoreReply::Over);
    }

    #[test]
    fn events_are_read_in_pages_and_kept_for_a_time() {
        let mut store = opened();
        let read = |store: &mut Memory, now: u64, after: u64| {
            store.apply(at(now), StoreRequest::Read { session: SESSION, stream: 7, after })
        };
        assert_eq!(read(&mut store, 1, 0), StoreReply::Missing);
        let own = epoch(claim(&mut store, A, None));
        for number in 1..=1001 {
            append(&mut store, own, number, "x", (number == 1001).then_some(at(60)));
        }
        assert_eq!(read(&mut store, 1, 0), StoreReply::Gap(1), "the oldest is not kept");
        let StoreReply::Stream { events, owner, is_over } = read(&mut store, 1, 1) else { panic!("it is kept") };
        assert_eq!((events.len(), events[0].number, owner, is_over), (100, 2, own, false));
        let StoreReply::Stream { events, is_over, .. } = read(&mut store, 1, 990) else { panic!("it is kept") };
        assert_eq!((events.len(), is_over), (11, true));
        assert_eq!(read(&mut store, 1, 1002), StoreReply::Missing);
        assert_eq!(read(&mut store, 61, 990), StoreReply::Missing);
    }

    #[test]
    fn cancellation_finds_the_node_or_waits_for_it() {
        let mut store = opened();
        let one = RequestDigest(hmac_sha256::Hash::hash(b"1"));
        let cancel = |store: &mut Memory, now: u64| {
            store.apply(at(now), StoreRequest::Cancel { session: SESSION, request: one, keep: at(10) })
        };
        assert_eq!(cancel(&mut store, 0), StoreReply::Done);
        let StoreReply::Claimed { epoch, open, cancelled, .. } = claim(&mut store, A, None) else { panic!("free") };
        assert_eq!((open.len(), &cancelled), (2, &vec![one]));
        let StoreReply::Claimed { cancelled: again, .. } = claim(&mut store, A, None) else { panic!("its own") };
        assert_eq!(again, cancelled, "its reply was lost");
        assert_eq!(cancel(&mut store, 2), StoreReply::Owned(epoch));
        let event = StoredEvent { number: 1, data: "x".into() };
        let answers = Some(one);
        let answer = StoreRequest::Append {
            session: SESSION,
            stream: 7,
            epoch,
            event,
            is_sent: true,
            answers,
            keep: 1000,
            last: None,
        };
        assert_eq!(store.apply(at(2), answer), StoreReply::Done);
        let StoreReply::Claimed { open, last, sent, .. } = claim(&mut store, A, None) else { panic!("its own") };
        assert_eq!((open, last, sent), (vec![Bytes::from_static(b"\"a\"")], 1, 1));
        assert_eq!(cancel(&mut store, 3), StoreReply::Done, "it has its answer");
        let other = RequestDigest::of(b"\"a\"");
        let cancel = StoreRequest::Cancel { session: SESSION, request: other, keep: at(10) };
        assert_eq!(store.apply(at(3), cancel.clone()), StoreReply::Owned(epoch));
        assert_eq!(append(&mut store, epoch, 2, "y", Some(at(60))), StoreReply::Done);
        assert_eq!(store.apply(at(3), cancel), StoreReply::Done, "it gets no answer");
    }
}
