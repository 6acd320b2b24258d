//! The way between a server and its store.

use crate::sync::{Condvar, Mutex, lock};
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use mcp_proto::input::ServerCommand;
use mcp_proto::server::store::{NodeItem, StoreError, StoreReply, StoreRequest, StoreToken};

/// The number of requests that wait for a driver of the store. The engine has given up the oldest
/// long before.
const MAX: usize = 16 << 10;

type Link = dyn Fn(ServerCommand) + Send + Sync;

/// A server, for the driver of its store. Its requests leave in order; replies and items come back.
/// A clone is the same one, for a second thread.
#[derive(Clone)]
pub struct StorePort {
    queue: StoreQueue,
    link: Arc<Link>,
}

/// The requests of a server that its driver has not taken.
#[derive(Clone)]
pub(crate) struct StoreQueue(Arc<(Mutex<QueueState>, Condvar)>);

struct QueueState {
    requests: VecDeque<(StoreToken, StoreRequest)>,
    ended: bool,
}

impl StorePort {
    /// `link` leads replies to the engine.
    pub(crate) fn new(queue: StoreQueue, link: impl Fn(ServerCommand) + Send + Sync + 'static) -> Self {
        Self { queue, link: Arc::new(link) }
    }

    /// Waits until the server has requests, and takes all of them, in order: carry them out in this
    /// order. Returns none after `time`. `None` once the server has ended, and no request is left.
    pub fn take(&self, time: Duration) -> Option<Vec<(StoreToken, StoreRequest)>> {
        let (waiting, ready) = &*self.queue.0;
        let waits = |waiting: &mut QueueState| waiting.requests.is_empty() && !waiting.ended;
        let woken = ready.wait_timeout_while(lock(waiting), time, waits);
        let (mut waiting, _) = woken.unwrap_or_else(std::sync::PoisonError::into_inner);
        let taken: Vec<_> = waiting.requests.drain(..).collect();
        (!taken.is_empty() || !waiting.ended).then_some(taken)
    }

    /// Returns whether the server has ended. Some of its last requests may wait still.
    pub fn has_ended(&self) -> bool {
        self.ends_within(Duration::ZERO)
    }

    /// Waits until the server has ended, for this time at most. Returns whether it has ended.
    pub fn ends_within(&self, time: Duration) -> bool {
        let (waiting, ready) = &*self.queue.0;
        let woken = ready.wait_timeout_while(lock(waiting), time, |waiting| !waiting.ended);
        woken.unwrap_or_else(std::sync::PoisonError::into_inner).0.ended
    }

    /// Returns what became of a request. Each has one result, soon: the engine gives up the request
    /// after [`store_timeout`](mcp_proto::limits::ServerLimits::store_timeout), and ignores a later
    /// result.
    pub fn reply(&self, token: StoreToken, result: Result<StoreReply, StoreError>) {
        (self.link)(ServerCommand::Stored(token, result));
    }

    /// Delivers what other nodes say. In the order of the store, from the moment on at which the
    /// node has joined.
    pub fn deliver(&self, item: NodeItem) {
        (self.link)(ServerCommand::Arrived(item));
    }
}

impl fmt::Debug for StorePort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StorePort(..)")
    }
}

impl StoreQueue {
    pub(crate) fn new() -> Self {
        let waiting = QueueState { requests: VecDeque::new(), ended: false };
        Self(Arc::new((Mutex::new(waiting), Condvar::new())))
    }

    /// Adds a request. The lock of the server may be held, so that the order is that of the engine.
    pub(crate) fn push(&self, token: StoreToken, request: StoreRequest) {
        let (waiting, ready) = &*self.0;
        let mut waiting = lock(waiting);
        if waiting.requests.len() >= MAX {
            waiting.requests.pop_front();
        }
        waiting.requests.push_back((token, request));
        // Another thread may wait for the end.
        ready.notify_all();
    }

    /// Nothing follows.
    pub(crate) fn end(&self) {
        let (waiting, ready) = &*self.0;
        lock(waiting).ended = true;
        ready.notify_all();
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use mcp_proto::server::store::Incarnation;

    fn leave() -> StoreRequest {
        StoreRequest::Leave { node: Incarnation([1; 16]) }
    }

    #[test]
    fn requests_leave_in_order_and_the_last_ones_after_the_end() {
        let queue = StoreQueue::new();
        let port = StorePort::new(queue.clone(), |_| {});
        assert_eq!(port.take(Duration::ZERO), Some(Vec::new()));
        (1..=3).for_each(|nth| queue.push(StoreToken(nth), leave()));
        let taken = port.take(Duration::ZERO).unwrap();
        assert_eq!(taken.iter().map(|(token, _)| token.0).collect::<Vec<_>>(), [1, 2, 3]);
        queue.push(StoreToken(4), leave());
        queue.end();
        assert!(port.has_ended());
        assert_eq!(port.take(Duration::MAX).unwrap().len(), 1);
        assert_eq!(port.take(Duration::MAX), None);
    }

    #[test]
    fn driver_that_takes_nothing_costs_bounded_memory() {
        let queue = StoreQueue::new();
        (0..=MAX as u64).for_each(|nth| queue.push(StoreToken(nth), leave()));
        let taken = StorePort::new(queue, |_| {}).take(Duration::ZERO).unwrap();
        assert_eq!((taken.len(), taken[0].0), (MAX, StoreToken(1)));
    }
}
