//! The waiters for a change of some state.

use super::sync::{Mutex, lock, locked};
use alloc::collections::BTreeMap;
use core::future::poll_fn;
use core::mem::take;
use core::task::{Poll, Waker};

/// The waiters for a change of some state. Each is removed when its future is dropped.
#[derive(Debug, Default)]
pub(super) struct Watchers(Mutex<Seats>);

#[derive(Debug, Default)]
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
    pub(super) async fn watch<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        let seat = self.seat();
        poll_fn(|cx| {
            // Before the look: a change after it finds the waker.
            drop(locked(&self.0, |seats| seats.wakers.insert(seat.number, cx.waker().clone())));
            look().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Wakes the waiters. Call it after a change, outside of the lock of the changed state.
    pub(super) fn wake(&self) {
        locked(&self.0, |seats| take(&mut seats.wakers)).into_values().for_each(Waker::wake);
    }

    fn seat(&self) -> Seat<'_> {
        let mut seats = lock(&self.0);
        seats.last += 1;
        Seat { watchers: self, number: seats.last }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        drop(locked(&self.watchers.0, |seats| seats.wakers.remove(&self.number)));
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use alloc::sync::Arc;
    use core::future::Future;
    use core::pin::pin;
    use core::sync::atomic::{AtomicBool, Ordering};
    use core::task::Context;
    use std::task::Wake;

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
        let waker = Waker::from(Arc::clone(&woken));
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
