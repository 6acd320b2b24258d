//! The pools of connections of an HTTP client, one for each origin and reach. Requests use idle
//! connections again, and requests beyond the limit wait in their order (RFC 9112, sections 9.3 and
//! 9.4). A pool only counts connections and owns none.

use super::Connection;
use crate::exchange::{ConnectionId, Endpoint, ExchangeId, Origin, Reach, RequestHead};
use crate::limits::FrameLimits;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;

/// What the connections of a pool lead to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct PoolKey {
    pub(super) origin: Origin,
    /// The addresses of the origin to which they may lead.
    pub(super) reach: Reach,
}

impl PoolKey {
    /// Returns the endpoint of a new connection.
    pub(super) fn endpoint(&self) -> Endpoint {
        match self.reach {
            Reach::Any => Endpoint::Origin(self.origin.clone()),
            reach => Endpoint::Within(self.origin.clone(), reach),
        }
    }
}

/// A request that needs a connection.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct QueuedRequest {
    pub(super) exchange: ExchangeId,
    pub(super) key: PoolKey,
    pub(super) head: RequestHead,
    pub(super) body: Bytes,
    pub(super) repeatable: bool,
    /// Other requests may wait for its response.
    pub(super) urgent: bool,
    /// The body of its response is no message.
    pub(super) raw: bool,
    /// It was written once, to a connection that was dead. Only a new connection may carry it.
    pub(super) repeated: bool,
}

/// What a pool counts a connection as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ConnectionUse {
    /// It is being opened, or carries a request that is not answered by an event stream.
    Busy,
    /// An event stream is open on it.
    Stream,
    /// It can carry another request.
    Idle,
    /// It is being closed, and is counted until it is closed.
    Ending,
    /// It is closed.
    Closed,
}

impl ConnectionUse {
    /// Returns the current use of a connection.
    pub(super) fn of(connection: &Connection) -> Self {
        match () {
            () if connection.is_closed() => Self::Closed,
            () if connection.is_ending() => Self::Ending,
            () if connection.is_idle() => Self::Idle,
            () if connection.is_streaming() => Self::Stream,
            () => Self::Busy,
        }
    }
}

/// What the client does next with a connection.
#[derive(PartialEq, Debug)]
pub(super) enum PoolStep {
    /// Write the request to this idle connection.
    Reuse(ConnectionId, QueuedRequest),
    /// Open a connection for the request. The pool counts it as busy from now on.
    Open(QueuedRequest),
    /// Close this idle connection: streams have ended, and the origin has too many connections.
    Close(ConnectionId),
    /// Close this idle connection soon unless it is used: the origin has too many idle ones.
    CloseSoon(ConnectionId),
}

impl PoolStep {
    /// Returns the exchange of the request that it carries.
    pub(super) const fn exchange(&self) -> Option<ExchangeId> {
        match self {
            Self::Reuse(_, request) | Self::Open(request) => Some(request.exchange),
            Self::Close(_) | Self::CloseSoon(_) => None,
        }
    }
}

/// The pools of a client.
#[derive(Debug)]
pub(super) struct OriginPools {
    limits: OriginLimits,
    pools: BTreeMap<PoolKey, OriginPool>,
}

/// The limits of each pool.
#[derive(Clone, Copy, Debug)]
struct OriginLimits {
    connections: usize,
    /// This many connections with an event stream do not count as connections.
    streams: usize,
    idle: usize,
}

/// The connections to one origin, and the requests that wait for one.
#[derive(Debug, Default)]
struct OriginPool {
    /// Number of connections that were opened and are not closed.
    connections: usize,
    /// Number of those with an open event stream.
    streams: usize,
    /// Number of those that are being closed.
    ending: usize,
    /// The one that was used last is at the end: it is the least likely to be dead.
    idle: Vec<ConnectionId>,
    waiting: VecDeque<QueuedRequest>,
}

impl OriginPools {
    pub(super) fn new(limits: &FrameLimits) -> Self {
        let connections = limits.max_connections_per_origin.max(1);
        let idle = limits.max_idle_per_origin;
        let limits = OriginLimits { connections, streams: limits.max_streams_per_origin, idle };
        Self { limits, pools: BTreeMap::new() }
    }

    /// Queues a request, and returns the next step. If that is `None`, the request waits, and a
    /// later step carries it.
    pub(super) fn submit(&mut self, request: QueuedRequest) -> Option<PoolStep> {
        let pool = self.pools.entry(request.key.clone()).or_default();
        // A repeated request is older than all that wait.
        let before = |other: &QueuedRequest| request.repeated || request.urgent && !other.urgent;
        let at = pool.waiting.iter().position(before).unwrap_or(pool.waiting.len());
        pool.waiting.insert(at, request);
        pool.next_step(self.limits)
    }

    /// Counts a connection as something else than before, and returns the next step.
    pub(super) fn changed(
        &mut self,
        key: &PoolKey,
        id: ConnectionId,
        from: ConnectionUse,
        to: ConnectionUse,
    ) -> Option<PoolStep> {
        let pool = self.pools.get_mut(key)?;
        match from {
            ConnectionUse::Stream => pool.streams -= 1,
            ConnectionUse::Idle => pool.idle.retain(|idle| *idle != id),
            ConnectionUse::Ending => pool.ending -= 1,
            ConnectionUse::Busy | ConnectionUse::Closed => {}
        }
        match to {
            ConnectionUse::Stream => pool.streams += 1,
            ConnectionUse::Idle if pool.is_over_limit(self.limits) && !pool.has_urgent() => {
                return Some(PoolStep::Close(id));
            }
            ConnectionUse::Idle => {
                pool.idle.push(id);
                let step = pool.next_step(self.limits);
                return step.or_else(|| pool.close_surplus(self.limits));
            }
            ConnectionUse::Ending => pool.ending += 1,
            ConnectionUse::Closed => pool.connections -= 1,
            ConnectionUse::Busy => {}
        }
        let step = pool.next_step(self.limits);
        if pool.connections == 0 && pool.waiting.is_empty() {
            self.pools.remove(key);
        }
        step
    }

    /// Removes a waiting request.
    pub(super) fn cancel(&mut self, key: &PoolKey, exchange: ExchangeId) {
        if let Some(pool) = self.pools.get_mut(key) {
            pool.waiting.retain(|request| request.exchange != exchange);
        }
    }

    /// Returns the number of waiting requests.
    pub(super) fn waiting(&self) -> usize {
        self.pools.values().map(|pool| pool.waiting.len()).sum()
    }

    /// Removes all waiting requests.
    pub(super) fn clear(&mut self) {
        self.pools.values_mut().for_each(|pool| pool.waiting.clear());
    }
}

impl OriginLimits {
    /// Returns the maximum number of connections, the one for this request included. For an urgent
    /// request it is double: the server may respond to nothing else before it, and responds to it
    /// at once.
    fn max_connections(self, request: &QueuedRequest) -> usize {
        if request.urgent { self.connections.saturating_mul(2) } else { self.connections }
    }
}

impl OriginPool {
    /// Returns the number of connections that count against the limit.
    fn counted(&self, limits: OriginLimits) -> usize {
        self.connections - self.streams.min(limits.streams)
    }

    /// Returns whether too many connections are counted, without those that are being closed.
    fn is_over_limit(&self, limits: OriginLimits) -> bool {
        self.counted(limits) > limits.connections + self.ending
    }

    /// Returns whether an urgent request waits that may use an idle connection.
    fn has_urgent(&self) -> bool {
        self.waiting.iter().any(|request| request.urgent && !request.repeated)
    }

    /// Returns the step that closes the last idle connection before those that are kept. The
    /// connections before it already got their step.
    fn close_surplus(&self, limits: OriginLimits) -> Option<PoolStep> {
        let at = self.idle.len().checked_sub(limits.idle.saturating_add(1))?;
        self.idle.get(at).map(|id| PoolStep::CloseSoon(*id))
    }

    /// Returns the next step for a waiting request. Each change makes room for at most one request,
    /// so one step for each change is enough.
    fn next_step(&mut self, limits: OriginLimits) -> Option<PoolStep> {
        if let Some(at) = self.waiting.iter().position(|request| !request.repeated)
            && let Some(id) = self.idle.pop()
        {
            return self.waiting.remove(at).map(|request| PoolStep::Reuse(id, request));
        }
        let counted = self.counted(limits);
        let at = self.waiting.iter().position(|request| counted < limits.max_connections(request))?;
        let request = self.waiting.remove(at)?;
        self.connections += 1;
        Some(PoolStep::Open(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Headers;

    const A: ConnectionId = ConnectionId(1);
    const B: ConnectionId = ConnectionId(2);
    const C: ConnectionId = ConnectionId(3);

    fn pools(connections: usize, streams: usize) -> OriginPools {
        let limits = FrameLimits {
            max_connections_per_origin: connections,
            max_streams_per_origin: streams,
            ..FrameLimits::default()
        };
        OriginPools::new(&limits)
    }

    fn origin(host: &str) -> PoolKey {
        PoolKey { origin: Origin { tls: false, host: host.into(), port: 80 }, reach: Reach::Any }
    }

    fn request(exchange: u64, host: &str) -> QueuedRequest {
        let head = RequestHead { method: "POST".into(), target: "/".into(), headers: Headers::new() };
        let exchange = ExchangeId(exchange);
        QueuedRequest {
            exchange,
            key: origin(host),
            head,
            body: Bytes::new(),
            repeatable: true,
            urgent: false,
            raw: false,
            repeated: false,
        }
    }

    #[test]
    fn requests_beyond_the_limit_wait_in_order_per_origin() {
        let mut pools = pools(1, 0);
        assert_eq!(pools.submit(request(1, "a")), Some(PoolStep::Open(request(1, "a"))));
        assert_eq!(pools.submit(request(2, "a")), None);
        assert_eq!(pools.submit(request(3, "a")), None);
        assert_eq!(pools.submit(request(4, "b")), Some(PoolStep::Open(request(4, "b"))));
        pools.cancel(&origin("a"), ExchangeId(2));
        assert_eq!(
            pools.changed(&origin("a"), A, ConnectionUse::Busy, ConnectionUse::Idle),
            Some(PoolStep::Reuse(A, request(3, "a")))
        );
        assert_eq!(pools.changed(&origin("a"), A, ConnectionUse::Busy, ConnectionUse::Closed), None);
        assert_eq!(pools.changed(&origin("b"), B, ConnectionUse::Busy, ConnectionUse::Closed), None);
        assert!(pools.pools.is_empty());
    }

    #[test]
    fn connection_used_last_is_reused_first_an_ending_one_never() {
        let mut pools = pools(4, 0);
        for n in 1..=3 {
            let _ = pools.submit(request(n, "a"));
        }
        for id in [A, B, C] {
            assert_eq!(pools.changed(&origin("a"), id, ConnectionUse::Busy, ConnectionUse::Idle), None);
        }
        assert_eq!(pools.changed(&origin("a"), C, ConnectionUse::Idle, ConnectionUse::Ending), None);
        assert_eq!(pools.submit(request(4, "a")), Some(PoolStep::Reuse(B, request(4, "a"))));
    }

    #[test]
    fn repeated_request_goes_first_on_a_new_connection() {
        let mut pools = pools(2, 0);
        let repeated = QueuedRequest { repeated: true, ..request(1, "a") };
        let _ = pools.submit(request(1, "a"));
        let _ = pools.submit(request(2, "a"));
        assert_eq!(pools.submit(request(3, "a")), None);
        assert_eq!(pools.submit(repeated.clone()), None);
        assert_eq!(
            pools.changed(&origin("a"), B, ConnectionUse::Busy, ConnectionUse::Idle),
            Some(PoolStep::Reuse(B, request(3, "a")))
        );
        assert_eq!(
            pools.changed(&origin("a"), A, ConnectionUse::Busy, ConnectionUse::Closed),
            Some(PoolStep::Open(repeated))
        );
    }

    // covers: B-073
    #[test]
    fn urgent_requests_wait_for_no_others() {
        let urgent = |n| QueuedRequest { urgent: true, ..request(n, "a") };
        let mut pools = pools(2, 0);
        for n in 1..=2 {
            assert_eq!(pools.submit(request(n, "a")), Some(PoolStep::Open(request(n, "a"))));
        }
        assert_eq!(pools.submit(request(3, "a")), None);
        for n in 4..=5 {
            assert_eq!(pools.submit(urgent(n)), Some(PoolStep::Open(urgent(n))));
        }
        assert_eq!(pools.submit(urgent(6)), None, "as many again, and no more");
        assert_eq!(pools.submit(urgent(7)), None);
        let reused = pools.changed(&origin("a"), A, ConnectionUse::Busy, ConnectionUse::Idle);
        assert_eq!(reused, Some(PoolStep::Reuse(A, urgent(6))), "it goes first, on an idle connection");
        assert_eq!(
            pools.changed(&origin("a"), B, ConnectionUse::Busy, ConnectionUse::Closed),
            Some(PoolStep::Open(urgent(7)))
        );
        assert_eq!(
            pools.changed(&origin("a"), A, ConnectionUse::Busy, ConnectionUse::Idle),
            Some(PoolStep::Close(A)),
            "it was one too many"
        );
        assert_eq!(pools.changed(&origin("a"), A, ConnectionUse::Idle, ConnectionUse::Ending), None);
        assert_eq!(pools.changed(&origin("a"), A, ConnectionUse::Ending, ConnectionUse::Closed), None);
        assert_eq!(pools.changed(&origin("a"), C, ConnectionUse::Busy, ConnectionUse::Closed), None);
        assert_eq!(
            pools.changed(&origin("a"), C, ConnectionUse::Busy, ConnectionUse::Closed),
            Some(PoolStep::Open(request(3, "a")))
        );
    }

    #[test]
    fn few_streams_do_not_count_as_connections() {
        let mut pools = pools(1, 2);
        let a = origin("a");
        let _ = pools.submit(request(1, "a"));
        assert_eq!(pools.submit(request(2, "a")), None);
        assert_eq!(
            pools.changed(&a, A, ConnectionUse::Busy, ConnectionUse::Stream),
            Some(PoolStep::Open(request(2, "a")))
        );
        assert_eq!(pools.submit(request(3, "a")), None);
        assert_eq!(
            pools.changed(&a, B, ConnectionUse::Busy, ConnectionUse::Stream),
            Some(PoolStep::Open(request(3, "a")))
        );
        assert_eq!(pools.submit(request(4, "a")), None);
        assert_eq!(
            pools.changed(&a, C, ConnectionUse::Busy, ConnectionUse::Stream),
            None,
            "the third counts as any other"
        );
        assert_eq!(
            pools.changed(&a, A, ConnectionUse::Stream, ConnectionUse::Closed),
            Some(PoolStep::Open(request(4, "a")))
        );
    }

    #[test]
    fn connection_of_an_ended_stream_is_kept_if_there_is_room() {
        let a = origin("a");
        let mut pools = pools(1, 8);
        let _ = pools.submit(request(1, "a"));
        assert_eq!(pools.changed(&a, A, ConnectionUse::Busy, ConnectionUse::Stream), None);
        assert_eq!(pools.changed(&a, A, ConnectionUse::Stream, ConnectionUse::Idle), None);
        assert_eq!(pools.submit(request(2, "a")), Some(PoolStep::Reuse(A, request(2, "a"))));

        assert_eq!(pools.changed(&a, A, ConnectionUse::Busy, ConnectionUse::Stream), None);
        assert_eq!(pools.submit(request(3, "a")), Some(PoolStep::Open(request(3, "a"))));
        assert_eq!(pools.submit(request(4, "a")), None);
        assert_eq!(pools.changed(&a, A, ConnectionUse::Stream, ConnectionUse::Idle), Some(PoolStep::Close(A)));
        assert_eq!(pools.changed(&a, A, ConnectionUse::Idle, ConnectionUse::Ending), None);
        assert_eq!(
            pools.changed(&a, B, ConnectionUse::Busy, ConnectionUse::Idle),
            Some(PoolStep::Reuse(B, request(4, "a"))),
            "one is enough"
        );
        assert_eq!(pools.changed(&a, A, ConnectionUse::Ending, ConnectionUse::Closed), None);
    }
}
