//! Those that wait for the ends of calls, notifications and fetches, and what has come for each.

use super::super::shared::Later;
use super::shared::ClientShared;
use super::state::ClientState;
use alloc::boxed::Box;
use alloc::collections::vec_deque::IntoIter;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use core::future::Future;
use core::mem::take;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use mcp_proto::call::{CallId, CallNews, RawResult};
use mcp_proto::client::{ClientCommands, FetchError, FetchId, FetchResponse};
use mcp_proto::error::CallError;
use mcp_proto::exchange::{Closed, Sent};
use mcp_proto::input::NotificationId;
use mcp_proto::time::Instant;

/// What waits for one caller and is no end, oldest first: at most [`MAX`](Self::MAX). A slower
/// caller misses the oldest, never the newest.
#[derive(Debug, Default)]
pub struct NewsQueue(VecDeque<CallNews>);

/// A thing that ends, by its id.
pub(in crate::front) trait WaitKey: Copy + Ord {
    /// What comes for it.
    type Received: Receive;

    fn waiters(state: &mut ClientState) -> &mut Waiters<Self, Self::Received>;
    /// Nothing waits for its end any more.
    fn forgotten(self, state: &mut ClientState, now: Instant);
}

/// What has come for one of them since the last look.
pub(in crate::front) trait Receive: Default {
    /// Returns whether it has ended.
    fn has_ended(&self) -> bool;
    /// Ends it as aborted by this side, unless it has ended.
    fn abort(&mut self);
}

/// Those that wait for the ends of things with ids of the type `K`, and what has come for each.
#[derive(Debug)]
pub(in crate::front) struct Waiters<K, T>(BTreeMap<K, Waiter<T>>);

#[derive(Debug, Default)]
struct Waiter<T> {
    received: T,
    waker: Option<Waker>,
}

/// What has come for a call.
#[derive(Debug, Default)]
pub(in crate::front) struct CallReceived {
    /// It precedes the outcome.
    pub(in crate::front) news: NewsQueue,
    pub(in crate::front) outcome: Option<Result<RawResult, CallError>>,
}

impl<K: Ord, T: Receive> Waiters<K, T> {
    pub(super) fn begin(&mut self, id: K) {
        self.0.insert(id, Waiter::default());
    }

    /// Adds to what has come for one that has a waiter, and wakes the waiter.
    pub(super) fn receive(&mut self, id: K, later: &mut Later, add: impl FnOnce(&mut T)) {
        if let Some(waiter) = self.0.get_mut(&id) {
            add(&mut waiter.received);
            later.wake(waiter.waker.take());
        }
    }

    /// Takes what has come, and registers a waker for more. `None` if there is no waiter: its end
    /// was taken.
    fn poll(&mut self, id: K, waker: &Waker, later: &mut Later) -> Option<T> {
        let waiter = self.0.get_mut(&id)?;
        let received = take(&mut waiter.received);
        if received.has_ended() {
            self.forget(id, later);
        } else if !waiter.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            later.replaced(waiter.waker.replace(waker.clone()));
        }
        Some(received)
    }

    /// Returns whether there was a waiter. What has come for it is dropped.
    fn forget(&mut self, id: K, later: &mut Later) -> bool {
        let waiter = self.0.remove(&id);
        let is_known = waiter.is_some();
        later.replaced(waiter.and_then(|waiter| waiter.waker));
        is_known
    }

    /// Ends everything that has not ended, as aborted by this side.
    pub(super) fn abort(&mut self, later: &mut Later) {
        for waiter in self.0.values_mut() {
            waiter.received.abort();
            later.wake(waiter.waker.take());
        }
    }
}

impl<K, T> Default for Waiters<K, T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl NewsQueue {
    /// Maximum number.
    pub const MAX: usize = 256;

    /// Adds the newest.
    pub fn push(&mut self, news: CallNews) {
        if self.0.len() >= Self::MAX {
            self.0.pop_front();
        }
        self.0.push_back(news);
    }
}

impl IntoIterator for NewsQueue {
    type Item = CallNews;
    type IntoIter = IntoIter<CallNews>;

    fn into_iter(self) -> IntoIter<CallNews> {
        self.0.into_iter()
    }
}

impl CallReceived {
    /// The first outcome counts.
    pub(super) fn end(&mut self, outcome: Result<RawResult, CallError>) {
        self.outcome.get_or_insert(outcome);
    }
}

impl Receive for CallReceived {
    fn has_ended(&self) -> bool {
        self.outcome.is_some()
    }

    fn abort(&mut self) {
        self.outcome.get_or_insert_with(|| Err(CallError::Closed { sent: Sent::Maybe, why: Closed::Aborted }));
    }
}

impl WaitKey for CallId {
    type Received = CallReceived;

    fn waiters(state: &mut ClientState) -> &mut Waiters<Self, Self::Received> {
        &mut state.calls
    }

    fn forgotten(self, state: &mut ClientState, now: Instant) {
        state.engine.cancel(now, self, None);
    }
}

impl Receive for Option<Result<(), CallError>> {
    fn has_ended(&self) -> bool {
        self.is_some()
    }

    fn abort(&mut self) {
        self.get_or_insert_with(|| Err(CallError::Closed { sent: Sent::Maybe, why: Closed::Aborted }));
    }
}

impl WaitKey for NotificationId {
    type Received = Option<Result<(), CallError>>;

    fn waiters(state: &mut ClientState) -> &mut Waiters<Self, Self::Received> {
        &mut state.notifications
    }

    /// It is still delivered.
    fn forgotten(self, state: &mut ClientState, now: Instant) {
        state.engine.untrack(now, self);
    }
}

impl Receive for Option<Result<Box<FetchResponse>, FetchError>> {
    fn has_ended(&self) -> bool {
        self.is_some()
    }

    fn abort(&mut self) {
        self.get_or_insert_with(|| Err(FetchError::Closed { sent: Sent::Maybe, why: Closed::Aborted }));
    }
}

impl WaitKey for FetchId {
    type Received = Option<Result<Box<FetchResponse>, FetchError>>;

    fn waiters(state: &mut ClientState) -> &mut Waiters<Self, Self::Received> {
        &mut state.fetches
    }

    fn forgotten(self, state: &mut ClientState, now: Instant) {
        state.engine.cancel_fetch(now, self);
    }
}

impl ClientShared {
    /// Takes what has come, and registers a waker for more. `None` if its end was taken, or if the
    /// process exits with this client.
    pub(super) fn poll_end<K: WaitKey>(&self, id: K, waker: &Waker) -> Option<K::Received> {
        self.look(|state, later| match state.exit {
            Some(_) => None,
            None => K::waiters(state).poll(id, waker, later),
        })
    }

    /// Stops waiting. Does nothing if the end was taken.
    pub(super) fn forget<K: WaitKey>(&self, id: K) {
        self.with(|state, now, later| {
            // First, so that an end that this causes has no receiver.
            if K::waiters(state).forget(id, later) {
                id.forgotten(state, now);
            }
        });
    }
}

/// A future of the end of a notification or a fetch. Dropping it stops waiting.
pub(super) struct EndFuture<K: WaitKey> {
    pub(super) shared: Arc<ClientShared>,
    pub(super) id: K,
}

/// Nothing in it is ever pinned.
impl<K: WaitKey> Unpin for EndFuture<K> {}

impl<T, K: WaitKey<Received = Option<T>>> Future for EndFuture<K> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        self.shared.poll_end(self.id, cx.waker()).flatten().map_or(Poll::Pending, Poll::Ready)
    }
}

impl<K: WaitKey> Drop for EndFuture<K> {
    fn drop(&mut self) {
        self.shared.forget(self.id);
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::sync::atomic::{AtomicUsize, Ordering};
    use mcp_proto::call::Progress;
    use std::task::Wake;

    const CALL: CallId = CallId(7);

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The waiters of one test.
    struct Bench<K: Ord, T: Receive> {
        waiters: Waiters<K, T>,
        count: Arc<Count>,
    }

    impl<K: Ord, T: Receive> Bench<K, T> {
        fn new() -> Self {
            Self { waiters: Waiters::default(), count: Arc::default() }
        }

        fn poll(&mut self, id: K) -> Option<T> {
            self.with(|waiters, later, waker| waiters.poll(id, waker, later)).1
        }

        /// Returns how often the waker was woken.
        fn with<R>(&mut self, change: impl FnOnce(&mut Waiters<K, T>, &mut Later, &Waker) -> R) -> (usize, R) {
            let (mut later, waker) = (Later::default(), Waker::from(Arc::clone(&self.count)));
            let before = self.count.0.load(Ordering::Relaxed);
            let result = change(&mut self.waiters, &mut later, &waker);
            later.carry_out(&Default::default());
            (self.count.0.load(Ordering::Relaxed) - before, result)
        }
    }

    fn progress(done: f64) -> CallNews {
        CallNews::Progress(Progress::new(done))
    }

    fn ended(why: Closed) -> Result<RawResult, CallError> {
        Err(CallError::Closed { sent: Sent::No, why })
    }

    #[test]
    fn call_gets_progress_in_order_then_its_first_outcome() {
        let mut bench = Bench::<_, CallReceived>::new();
        bench.waiters.begin(CALL);
        assert!(bench.poll(CALL).is_some_and(|received| received.news.0.is_empty()));
        let push = |n: i32| move |call: &mut CallReceived| call.news.push(progress(f64::from(n)));
        let woken = (0..3).map(|n| bench.with(|waiters, later, _| waiters.receive(CALL, later, push(n))).0);
        assert!(woken.eq([1, 0, 0]), "woken once, until it polls again");
        let early = bench.poll(CALL).expect("known");
        assert!(early.news.0.iter().eq(&[0.0, 1.0, 2.0].map(progress)) && early.outcome.is_none());
        for why in [Closed::Eof, Closed::Reset] {
            bench.with(|waiters, later, _| waiters.receive(CALL, later, |call| call.end(ended(why))));
        }
        let end = bench.poll(CALL).expect("known");
        assert_eq!(end.outcome, Some(ended(Closed::Eof)));
        assert!(end.news.0.is_empty() && bench.poll(CALL).is_none());
        let (woken, ()) = bench.with(|waiters, later, _| waiters.receive(CALL, later, |_| panic!("it has no waiter")));
        assert_eq!(woken, 0);
    }

    #[test]
    fn slow_caller_misses_the_oldest_progress() {
        let mut queue = NewsQueue::default();
        let count = NewsQueue::MAX + 2;
        (0..count).for_each(|n| queue.push(progress(n as f64)));
        assert!(queue.0.iter().eq(&(2..count).map(|n| progress(n as f64)).collect::<Vec<_>>()));
    }

    #[test]
    fn aborted_calls_end_once() {
        let mut bench = Bench::<_, CallReceived>::new();
        for id in [CALL, CallId(8)] {
            bench.waiters.begin(id);
            bench.poll(id);
        }
        bench.with(|waiters, later, _| waiters.receive(CALL, later, |call| call.end(ended(Closed::Eof))));
        let (woken, ()) = bench.with(|waiters, later, _| waiters.abort(later));
        assert_eq!(woken, 1, "the other one was woken by its end");
        let mut end = |call| match bench.poll(call).and_then(|received| received.outcome) {
            Some(Err(CallError::Closed { why, .. })) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!((end(CALL), end(CallId(8))), (Closed::Eof, Closed::Aborted));
    }

    #[test]
    fn forgotten_fetch_keeps_nothing_and_its_end_has_no_receiver() {
        let mut bench = Bench::new();
        let end = |fetch: &mut Option<_>| *fetch = Some(Err::<Box<FetchResponse>, _>(FetchError::TooLong));
        for ends_before in [false, true] {
            bench.waiters.begin(FetchId(1));
            bench.poll(FetchId(1));
            if ends_before {
                bench.with(|waiters, later, _| waiters.receive(FetchId(1), later, end));
            }
            assert!(bench.with(|waiters, later, _| waiters.forget(FetchId(1), later)).1);
            bench.with(|waiters, later, _| waiters.receive(FetchId(1), later, |_| panic!("it has no waiter")));
        }
        // Nothing is left to forget of one whose end was taken.
        bench.waiters.begin(FetchId(1));
        bench.with(|waiters, later, _| waiters.receive(FetchId(1), later, end));
        assert!(bench.poll(FetchId(1)).flatten().is_some());
        assert!(!bench.with(|waiters, later, _| waiters.forget(FetchId(1), later)).1);
        assert!(bench.waiters.0.is_empty());
    }
}
