//! Which connection carries which HTTP request: idle connections are used again, and requests beyond the limit wait in their order
//! (RFC 9112 section 9.3, 9.4). No connection and no engine; it only keeps count.

use crate::exchange::{ConnectionId, ExchangeId, Origin, RequestHead};
use crate::limits::FrameLimits;
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
    /// Others may wait for it.
    pub(super) urgent: bool,
    /// Only a new connection will do: it was written once, to a connection that was dead.
    pub(super) again: bool,
}

/// What a connection is used for, as the pool counts it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    /// It is being opened, or carries a request that is not answered by an event stream.
    Busy,
    /// An event stream is open on it.
    Stream,
    /// It can carry another request.
    Idle,
    /// It is being closed, and takes its place until it is.
    Ending,
    /// It is closed.
    Closed,
}

/// What to do now.
#[derive(PartialEq, Debug)]
pub(super) enum Turn {
    /// Write it to this idle connection.
    Reuse(ConnectionId, Job),
    /// Open a connection for it; the pool counts it from now on, as busy.
    Open(Job),
    /// Close this idle connection: there are more than may be, since streams have ended.
    Close(ConnectionId),
    /// Close this idle connection soon, unless it is used: there are more idle ones than are kept.
    Surplus(ConnectionId),
}

impl Turn {
    /// The request that it is about.
    pub(super) const fn exchange(&self) -> Option<ExchangeId> {
        match self {
            Self::Reuse(_, job) | Self::Open(job) => Some(job.exchange),
            Self::Close(_) | Self::Surplus(_) => None,
        }
    }
}

/// The connections of a client, by where they lead.
#[derive(Debug)]
pub(super) struct Pool {
    bounds: Bounds,
    origins: BTreeMap<Origin, Place>,
}

/// The bounds for one origin.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    connections: usize,
    /// So many connections with an event stream are not counted as connections.
    streams: usize,
    idle: usize,
}

#[derive(Debug, Default)]
struct Place {
    /// ConnectionCounts that were opened and not yet reported closed.
    connections: usize,
    /// Those of them with an open event stream.
    streams: usize,
    /// Those of them that are being closed.
    ending: usize,
    /// The latest used last: it is the least likely to be dead.
    idle: Vec<ConnectionId>,
    waiting: VecDeque<Job>,
}

impl Pool {
    pub(super) fn new(limits: &FrameLimits) -> Self {
        let connections = limits.max_connections_per_origin.max(1);
        let idle = limits.max_idle_per_origin;
        let bounds = Bounds { connections, streams: limits.max_streams_per_origin, idle };
        Self { bounds, origins: BTreeMap::new() }
    }

    /// Takes a job. `None`: it waits, and a later call returns it.
    pub(super) fn submit(&mut self, job: Job) -> Option<Turn> {
        let place = self.origins.entry(job.origin.clone()).or_default();
        // A repeated request is older than all that wait.
        let before = |other: &Job| job.again || job.urgent && !other.urgent;
        let at = place.waiting.iter().position(before).unwrap_or(place.waiting.len());
        place.waiting.insert(at, job);
        place.next(self.bounds)
    }

    /// A connection is used for something else than before.
    pub(super) fn changed(&mut self, origin: &Origin, channel: ConnectionId, from: Use, to: Use) -> Option<Turn> {
        let place = self.origins.get_mut(origin)?;
        match from {
            Use::Stream => place.streams -= 1,
            Use::Idle => place.idle.retain(|idle| *idle != channel),
            Use::Ending => place.ending -= 1,
            Use::Busy | Use::Closed => {}
        }
        match to {
            Use::Stream => place.streams += 1,
            Use::Idle if place.is_crowded(self.bounds) && !place.is_pressed() => return Some(Turn::Close(channel)),
            Use::Idle => {
                place.idle.push(channel);
                let turn = place.next(self.bounds);
                return turn.or_else(|| place.surplus(self.bounds));
            }
            Use::Ending => place.ending += 1,
            Use::Closed => place.connections -= 1,
            Use::Busy => {}
        }
        let turn = place.next(self.bounds);
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

    /// How many jobs wait.
    pub(super) fn waiting(&self) -> usize {
        self.origins.values().map(|place| place.waiting.len()).sum()
    }

    /// No job is wanted any more.
    pub(super) fn clear(&mut self) {
        self.origins.values_mut().for_each(|place| place.waiting.clear());
    }
}

impl Bounds {
    /// How many connections may be counted once there is one for this job. Urgent ones have as many again: the server may answer nothing
    /// else before it gets them, and they are answered at once.
    fn most(self, job: &Job) -> usize {
        if job.urgent { self.connections.saturating_mul(2) } else { self.connections }
    }
}

impl Place {
    fn counted(&self, bounds: Bounds) -> usize {
        self.connections - self.streams.min(bounds.streams)
    }

    /// Whether there are too many, without those that are being closed.
    fn is_crowded(&self, bounds: Bounds) -> bool {
        self.counted(bounds) > bounds.connections + self.ending
    }

    /// Whether something urgent waits that may take a connection which was used before.
    fn is_pressed(&self) -> bool {
        self.waiting.iter().any(|job| job.urgent && !job.again)
    }

    /// The latest idle connection before those that are kept; those before it are surplus already.
    fn surplus(&self, bounds: Bounds) -> Option<Turn> {
        let at = self.idle.len().checked_sub(bounds.idle.saturating_add(1))?;
        self.idle.get(at).map(|channel| Turn::Surplus(*channel))
    }

    /// Each change frees at most one place, so one turn at a time is enough.
    fn next(&mut self, bounds: Bounds) -> Option<Turn> {
        if let Some(at) = self.waiting.iter().position(|job| !job.again)
            && let Some(channel) = self.idle.pop()
        {
            return self.waiting.remove(at).map(|job| Turn::Reuse(channel, job));
        }
        let counted = self.counted(bounds);
        let at = self.waiting.iter().position(|job| counted < bounds.most(job))?;
        let job = self.waiting.remove(at)?;
        self.connections += 1;
        Some(Turn::Open(job))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Headers;

    const A: ConnectionId = ConnectionId(1);
    const B: ConnectionId = ConnectionId(2);
    const C: ConnectionId = ConnectionId(3);

    fn pool(connections: usize, streams: usize) -> Pool {
        let limits = FrameLimits {
            max_connections_per_origin: connections,
            max_streams_per_origin: streams,
            ..FrameLimits::default()
        };
        Pool::new(&limits)
    }

    fn origin(host: &str) -> Origin {
        Origin { tls: false, host: host.into(), port: 80 }
    }

    fn job(exchange: u64, host: &str) -> Job {
        let head = RequestHead { method: "POST".into(), target: "/".into(), headers: Headers::new() };
        let exchange = ExchangeId(exchange);
        Job { exchange, origin: origin(host), head, body: Bytes::new(), repeatable: true, urgent: false, again: false }
    }

    #[test]
    fn requests_beyond_the_limit_wait_in_their_order_and_origins_do_not_share() {
        let mut pool = pool(1, 0);
        assert_eq!(pool.submit(job(1, "a")), Some(Turn::Open(job(1, "a"))));
        assert_eq!(pool.submit(job(2, "a")), None);
        assert_eq!(pool.submit(job(3, "a")), None);
        assert_eq!(pool.submit(job(4, "b")), Some(Turn::Open(job(4, "b"))));
        pool.cancel(&origin("a"), ExchangeId(2));
        assert_eq!(pool.changed(&origin("a"), A, Use::Busy, Use::Idle), Some(Turn::Reuse(A, job(3, "a"))));
        assert_eq!(pool.changed(&origin("a"), A, Use::Busy, Use::Closed), None);
        assert_eq!(pool.changed(&origin("b"), B, Use::Busy, Use::Closed), None);
        assert!(pool.origins.is_empty());
    }

    #[test]
    fn the_connection_used_last_is_used_first_and_a_dying_one_never() {
        let mut pool = pool(4, 0);
        for n in 1..=3 {
            let _ = pool.submit(job(n, "a"));
        }
        for channel in [A, B, C] {
            assert_eq!(pool.changed(&origin("a"), channel, Use::Busy, Use::Idle), None);
        }
        assert_eq!(pool.changed(&origin("a"), C, Use::Idle, Use::Ending), None);
        assert_eq!(pool.submit(job(4, "a")), Some(Turn::Reuse(B, job(4, "a"))));
    }

    #[test]
    fn a_repeated_request_goes_first_and_takes_no_connection_that_was_used() {
        let mut pool = pool(2, 0);
        let again = Job { again: true, ..job(1, "a") };
        let _ = pool.submit(job(1, "a"));
        let _ = pool.submit(job(2, "a"));
        assert_eq!(pool.submit(job(3, "a")), None);
        assert_eq!(pool.submit(again.clone()), None);
        assert_eq!(pool.changed(&origin("a"), B, Use::Busy, Use::Idle), Some(Turn::Reuse(B, job(3, "a"))));
        assert_eq!(pool.changed(&origin("a"), A, Use::Busy, Use::Closed), Some(Turn::Open(again)));
    }

    // covers: B-073
    #[test]
    fn what_others_wait_for_waits_for_none_of_them() {
        let urgent = |n| Job { urgent: true, ..job(n, "a") };
        let mut pool = pool(2, 0);
        for n in 1..=2 {
            assert_eq!(pool.submit(job(n, "a")), Some(Turn::Open(job(n, "a"))));
        }
        assert_eq!(pool.submit(job(3, "a")), None);
        for n in 4..=5 {
            assert_eq!(pool.submit(urgent(n)), Some(Turn::Open(urgent(n))));
        }
        assert_eq!(pool.submit(urgent(6)), None, "as many again, and no more");
        assert_eq!(pool.submit(urgent(7)), None);
        let reused = pool.changed(&origin("a"), A, Use::Busy, Use::Idle);
        assert_eq!(reused, Some(Turn::Reuse(A, urgent(6))), "it goes first, on a connection that there is");
        assert_eq!(pool.changed(&origin("a"), B, Use::Busy, Use::Closed), Some(Turn::Open(urgent(7))));
        assert_eq!(pool.changed(&origin("a"), A, Use::Busy, Use::Idle), Some(Turn::Close(A)), "it was one too many");
        assert_eq!(pool.changed(&origin("a"), A, Use::Idle, Use::Ending), None);
        assert_eq!(pool.changed(&origin("a"), A, Use::Ending, Use::Closed), None);
        assert_eq!(pool.changed(&origin("a"), C, Use::Busy, Use::Closed), None);
        assert_eq!(pool.changed(&origin("a"), C, Use::Busy, Use::Closed), Some(Turn::Open(job(3, "a"))));
    }

    #[test]
    fn a_stream_leaves_its_place_to_a_request_as_long_as_there_are_few() {
        let mut pool = pool(1, 2);
        let a = origin("a");
        let _ = pool.submit(job(1, "a"));
        assert_eq!(pool.submit(job(2, "a")), None);
        assert_eq!(pool.changed(&a, A, Use::Busy, Use::Stream), Some(Turn::Open(job(2, "a"))));
        assert_eq!(pool.submit(job(3, "a")), None);
        assert_eq!(pool.changed(&a, B, Use::Busy, Use::Stream), Some(Turn::Open(job(3, "a"))));
        assert_eq!(pool.submit(job(4, "a")), None);
        assert_eq!(pool.changed(&a, C, Use::Busy, Use::Stream), None, "the third counts as any other");
        assert_eq!(pool.changed(&a, A, Use::Stream, Use::Closed), Some(Turn::Open(job(4, "a"))));
    }

    #[test]
    fn a_stream_that_ends_is_kept_as_a_connection_only_if_there_is_room() {
        let a = origin("a");
        let mut pool = pool(1, 8);
        let _ = pool.submit(job(1, "a"));
        assert_eq!(pool.changed(&a, A, Use::Busy, Use::Stream), None);
        assert_eq!(pool.changed(&a, A, Use::Stream, Use::Idle), None);
        assert_eq!(pool.submit(job(2, "a")), Some(Turn::Reuse(A, job(2, "a"))));

        assert_eq!(pool.changed(&a, A, Use::Busy, Use::Stream), None);
        assert_eq!(pool.submit(job(3, "a")), Some(Turn::Open(job(3, "a"))));
        assert_eq!(pool.submit(job(4, "a")), None);
        assert_eq!(pool.changed(&a, A, Use::Stream, Use::Idle), Some(Turn::Close(A)));
        assert_eq!(pool.changed(&a, A, Use::Idle, Use::Ending), None);
        assert_eq!(pool.changed(&a, B, Use::Busy, Use::Idle), Some(Turn::Reuse(B, job(4, "a"))), "one is enough");
        assert_eq!(pool.changed(&a, A, Use::Ending, Use::Closed), None);
    }
}
