//! Synchronization between threads and tasks: locks, watchers, the executor, and time. Under the
//! model checker these are its own, so that it controls the schedule; the rest of this crate does
//! not notice.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Poll, Waker};

#[cfg(not(all(test, shuttle)))]
mod primitives {
    pub(crate) use async_io::Timer;
    pub(crate) use mcp_proto::adapter::{Clock, seed};
    pub(crate) use smol::block_on;
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use std::thread;

    /// Runs a task on smol's global executor.
    pub(crate) fn spawn(task: impl Future<Output: Send> + Send + 'static) {
        smol::spawn(task).detach();
    }
}

#[cfg(all(test, shuttle))]
mod primitives {
    pub(crate) use crate::tests::time::{Clock, Timer, seed};
    pub(crate) use shuttle::future::block_on;
    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use shuttle::thread;

    /// Runs a task of the model checker.
    pub(crate) fn spawn(task: impl Future<Output: Send> + Send + 'static) {
        drop(shuttle::future::spawn(task));
    }
}

pub(crate) use primitives::{Clock, Condvar, Mutex, MutexGuard, Timer, block_on, seed, spawn, thread};

/// Ignores poisoning: a panic under a lock is a fault of the engine, and its state is still the
/// best available.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Runs or drops code of the application, and catches its panic. `None` if it panicked.
pub(crate) fn guarded<T>(foreign: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(foreign)).ok()
}

/// The waiters for a change of some state. Each is removed when its future is dropped.
#[derive(Default)]
pub(crate) struct Watchers(Mutex<Seats>);

#[derive(Default)]
struct Seats {
    last: u64,
    wakers: BTreeMap<u64, Waker>,
}

/// A registered waiter.
struct Seat<'a> {
    watchers: &'a Watchers,
    number: u64,
}

impl Watchers {
    /// Waits until `look` returns a value. It looks again after every change, so that no signal is
    /// missed.
    pub(crate) async fn watch<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        let seat = self.seat();
        poll_fn(|cx| {
            // Before the look: a change after it finds the waker.
            let before = lock(&self.0).wakers.insert(seat.number, cx.waker().clone());
            drop(before);
            look().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Wakes the waiters. Call it after a change, outside of the lock of the changed state.
    pub(crate) fn wake(&self) {
        let woken = std::mem::take(&mut lock(&self.0).wakers);
        woken.into_values().for_each(Waker::wake);
    }

    fn seat(&self) -> Seat<'_> {
        let mut seats = lock(&self.0);
        seats.last += 1;
        Seat { watchers: self, number: seats.last }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let waker = lock(&self.watchers.0).wakers.remove(&self.number);
        // Outside of the lock: it may be the last waker of a task that waits here as well.
        drop(waker);
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context, Wake};

    /// Whether it was woken.
    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    // covers: B-277
    #[test]
    fn change_right_after_the_look_is_not_missed() {
        let (watchers, woken) = (Watchers::default(), Arc::<Woken>::default());
        let waker = Waker::from(woken.clone());
        let mut seen = None;
        let mut watching = pin!(watchers.watch(|| {
            let looked = seen.replace(());
            // Like a change by another thread at the worst moment.
            watchers.wake();
            looked
        }));
        assert!(watching.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(woken.0.load(Ordering::SeqCst), "the waiter was not woken");
        assert!(watching.poll(&mut Context::from_waker(&waker)).is_ready());
    }

    // covers: B-277
    #[test]
    fn dropped_waiter_is_removed() {
        let watchers = Watchers::default();
        let count = || lock(&watchers.0).wakers.len();
        let mut cx = Context::from_waker(Waker::noop());
        let stays = pin!(watchers.watch(|| None::<()>));
        assert!(stays.poll(&mut cx).is_pending());
        for _ in 0..100 {
            let mut goes = pin!(watchers.watch(|| None::<()>));
            assert!(goes.as_mut().poll(&mut cx).is_pending() && goes.poll(&mut cx).is_pending());
            assert_eq!(count(), 2);
        }
        assert_eq!(count(), 1);
        assert!(pin!(watchers.watch(|| Some(()))).poll(&mut cx).is_ready());
        watchers.wake();
        assert_eq!(count(), 0);
    }
}
