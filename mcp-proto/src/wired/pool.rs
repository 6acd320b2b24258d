//! Which connection carries which HTTP request: idle connections are used again, and requests beyond the limit wait in their order
//! (RFC 9112 section 9.3, 9.4). No lane and no engine; it only keeps count.

use crate::exchange::{ChannelId, ExchangeId, Origin, RequestHead};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;

/// A request that needs a connection.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Job {
    pub(super) exchange: ExchangeId,
    pub(super) origin: Origin,
    pub(super) head: RequestHead,
    pub(super) body: Bytes,
    pub(super) repeatable: bool,
    /// Only a new connection will do: it was written once, to a connection that was dead.
    pub(super) again: bool,
}

/// What to do for a job now.
#[derive(PartialEq, Debug)]
pub(super) enum Turn {
    /// Write it to this idle connection.
    Reuse(ChannelId, Job),
    /// Open a connection for it; the pool counts it from now on.
    Open(Job),
}

/// The connections of a client, by where they lead.
#[derive(Debug)]
pub(super) struct Pool {
    max: usize,
    origins: BTreeMap<Origin, Place>,
}

#[derive(Debug, Default)]
struct Place {
    /// Connections that were opened and not yet reported closed.
    connections: usize,
    /// The latest used last: it is the least likely to be dead.
    idle: Vec<ChannelId>,
    waiting: VecDeque<Job>,
}

impl Pool {
    pub(super) fn new(max_connections_per_origin: usize) -> Self {
        Self { max: max_connections_per_origin.max(1), origins: BTreeMap::new() }
    }

    /// Takes a job. `None`: it waits, and a later call returns it.
    pub(super) fn submit(&mut self, job: Job) -> Option<Turn> {
        let place = self.origins.entry(job.origin.clone()).or_default();
        // A repeated request is older than all that wait.
        if job.again {
            place.waiting.push_front(job);
        } else {
            place.waiting.push_back(job);
        }
        place.next(self.max)
    }

    /// A connection has become idle.
    pub(super) fn idle(&mut self, origin: &Origin, channel: ChannelId) -> Option<Turn> {
        let place = self.origins.get_mut(origin)?;
        place.idle.push(channel);
        place.next(self.max)
    }

    /// An idle connection is being closed.
    pub(super) fn unidle(&mut self, origin: &Origin, channel: ChannelId) {
        if let Some(place) = self.origins.get_mut(origin) {
            place.idle.retain(|idle| *idle != channel);
        }
    }

    /// A connection is closed.
    pub(super) fn closed(&mut self, origin: &Origin, channel: ChannelId) -> Option<Turn> {
        let place = self.origins.get_mut(origin)?;
        place.idle.retain(|idle| *idle != channel);
        place.connections = place.connections.saturating_sub(1);
        let turn = place.next(self.max);
        if place.connections == 0 && place.waiting.is_empty() {
            self.origins.remove(origin);
        }
        turn
    }

    /// A waiting job is no longer wanted.
    pub(super) fn cancel(&mut self, origin: &Origin, exchange: ExchangeId) {
        if let Some(place) = self.origins.get_mut(origin) {
            place.waiting.retain(|job| job.exchange != exchange);
        }
    }

    /// No job is wanted any more.
    pub(super) fn clear(&mut self) {
        self.origins.values_mut().for_each(|place| place.waiting.clear());
    }
}

impl Place {
    /// Each event frees at most one place, so one turn at a time is enough.
    fn next(&mut self, max: usize) -> Option<Turn> {
        if let Some(at) = self.waiting.iter().position(|job| !job.again)
            && let Some(channel) = self.idle.pop()
        {
            return self.waiting.remove(at).map(|job| Turn::Reuse(channel, job));
        }
        if self.connections >= max {
            return None;
        }
        let job = self.waiting.pop_front()?;
        self.connections += 1;
        Some(Turn::Open(job))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Headers;

    fn origin(host: &str) -> Origin {
        Origin { tls: false, host: host.into(), port: 80 }
    }

    fn job(exchange: u64, host: &str) -> Job {
        let head = RequestHead { method: "POST".into(), target: "/".into(), headers: Headers::new() };
        let exchange = ExchangeId(exchange);
        Job { exchange, origin: origin(host), head, body: Bytes::new(), repeatable: true, again: false }
    }

    #[test]
    fn requests_beyond_the_limit_wait_in_their_order_and_origins_do_not_share() {
        let mut pool = Pool::new(1);
        assert_eq!(pool.submit(job(1, "a")), Some(Turn::Open(job(1, "a"))));
        assert_eq!(pool.submit(job(2, "a")), None);
        assert_eq!(pool.submit(job(3, "a")), None);
        assert_eq!(pool.submit(job(4, "b")), Some(Turn::Open(job(4, "b"))));
        pool.cancel(&origin("a"), ExchangeId(2));
        assert_eq!(pool.idle(&origin("a"), ChannelId(1)), Some(Turn::Reuse(ChannelId(1), job(3, "a"))));
        assert_eq!(pool.closed(&origin("a"), ChannelId(1)), None);
        assert_eq!(pool.closed(&origin("b"), ChannelId(2)), None);
        assert!(pool.origins.is_empty());
    }

    #[test]
    fn the_connection_used_last_is_used_first_and_a_dying_one_never() {
        let mut pool = Pool::new(4);
        for n in 1..=3 {
            let _ = pool.submit(job(n, "a"));
        }
        for n in 1..=3 {
            assert_eq!(pool.idle(&origin("a"), ChannelId(n)), None);
        }
        pool.unidle(&origin("a"), ChannelId(3));
        assert_eq!(pool.submit(job(4, "a")), Some(Turn::Reuse(ChannelId(2), job(4, "a"))));
    }

    #[test]
    fn a_repeated_request_goes_first_and_takes_no_connection_that_was_used() {
        let mut pool = Pool::new(2);
        let again = Job { again: true, ..job(1, "a") };
        let _ = pool.submit(job(1, "a"));
        let _ = pool.submit(job(2, "a"));
        assert_eq!(pool.submit(job(3, "a")), None);
        assert_eq!(pool.submit(again.clone()), None);
        assert_eq!(pool.idle(&origin("a"), ChannelId(2)), Some(Turn::Reuse(ChannelId(2), job(3, "a"))));
        assert_eq!(pool.closed(&origin("a"), ChannelId(1)), Some(Turn::Open(again)));
    }
}
