//! A store in memory: for several servers of one process, for tests and for simulations.

use super::{Incarnation, NodeItem, StoreReply, StoreRequest};
use crate::server::store::News;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

/// The number of news that a store keeps for nodes that have not read them.
const NEWS: usize = 1000;

/// A store in memory. It has no clock: each call names the time of the store, as a duration since
/// any fixed moment. A clone is what the store was at that time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Memory {
    members: BTreeMap<Incarnation, Member>,
    news: VecDeque<(Incarnation, News)>,
    /// The number of news that there have been.
    last: u64,
}

#[derive(Clone, PartialEq, Debug)]
struct Member {
    /// The end of its lease.
    until: Duration,
    beat: u64,
    /// The number of news that it has read, or missed before it joined.
    read: u64,
}

impl Memory {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Carries out a request.
    pub fn apply(&mut self, now: Duration, request: StoreRequest) -> StoreReply {
        self.members.retain(|_, member| member.until > now);
        match request {
            StoreRequest::Join { node, lease } => {
                let member = Member { until: now + lease, beat: 0, read: self.last };
                // A join that is repeated changes nothing.
                self.members.entry(node).or_insert(member);
                StoreReply::Joined { warning: None }
            }
            StoreRequest::Renew { node, beat, lease } => match self.members.get_mut(&node) {
                Some(member) if member.beat == beat || member.beat + 1 == beat => {
                    (member.until, member.beat) = (now + lease, beat);
                    StoreReply::Done
                }
                _ => StoreReply::Lapsed,
            },
            StoreRequest::Leave { node } => {
                self.members.remove(&node);
                StoreReply::Done
            }
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
        let Some(member) = self.members.get_mut(&node).filter(|member| member.until > now) else { return Vec::new() };
        let unread = usize::try_from(self.last - member.read).unwrap_or(usize::MAX);
        member.read = self.last;
        let missed = (unread > self.news.len()).then_some(NodeItem::Missed);
        let kept = self.news.iter().skip(self.news.len().saturating_sub(unread));
        missed.into_iter().chain(kept.map(|(from, news)| NodeItem::News { from: *from, news: news.clone() })).collect()
    }

    /// Returns the number of members.
    pub fn members(&self, now: Duration) -> usize {
        self.members.values().filter(|member| member.until > now).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Change;
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
}
