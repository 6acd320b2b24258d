//! A driver on smol's global executor that the last handle can take back: `main` may return right
//! after a client is dropped, and then no executor would be left to end the client's program.

use crate::clock;
use crate::driver::Driver;
use crate::sync::{Condvar, Mutex, block_on, lock, thread};
use smol::future::{Future, FutureExt};
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Each owner may poll the driver, one at a time.
#[derive(Clone)]
pub(crate) struct SharedDriver(Arc<Shelf>);

struct Shelf {
    slot: Mutex<Slot>,
    /// Signals that the driver was put back after a poll.
    back: Condvar,
}

enum Slot {
    /// With the waker of the task that polled it last, to wake it when the driver is taken back.
    Free(Box<Driver>, Option<Waker>),
    /// This thread polls it: a callback that drops the last handle must not wait for itself.
    Polled(thread::ThreadId),
    /// It has ended, or was taken back.
    Gone,
}

impl SharedDriver {
    pub(crate) fn new(driver: Driver) -> Self {
        Self(Arc::new(Shelf { slot: Mutex::new(Slot::Free(Box::new(driver), None)), back: Condvar::new() }))
    }

    /// Takes the driver back and runs it to its end on this thread, for at most `limit`. Then kills
    /// the remaining programs. Does nothing during a poll of this driver, whose task continues.
    pub(crate) fn finish(&self, limit: Duration) {
        let me = thread::current().id();
        let elsewhere = |slot: &mut Slot| matches!(slot, Slot::Polled(by) if *by != me);
        // A poll ends soon, unless a callback waits for this drop. The driver is then left to that
        // poll.
        let waited = self.0.back.wait_timeout_while(lock(&self.0.slot), limit, elsewhere);
        let (mut slot, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *slot, Slot::Gone) {
            Slot::Free(driver, task) => {
                drop(slot);
                block_on(driver.or(clock::after(limit)));
                // The task has nothing left to do, and would otherwise stay in its executor
                // forever.
                task.into_iter().for_each(Waker::wake);
            }
            other => *slot = other,
        }
    }
}

impl Future for SharedDriver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut slot = lock(&self.0.slot);
        let driver = match std::mem::replace(&mut *slot, Slot::Polled(thread::current().id())) {
            Slot::Free(driver, _) => driver,
            other => {
                *slot = other;
                return Poll::Ready(());
            }
        };
        drop(slot);
        let mut polling = PollGuard { shelf: &self.0, driver: Some(driver), keep: None };
        let polled = polling.driver.as_mut().map_or(Poll::Ready(()), |driver| Pin::new(driver).poll(cx));
        polling.keep = polled.is_pending().then(|| cx.waker().clone());
        polled
    }
}

/// Puts the driver back after a poll. If it has ended, or the poll unwinds, it is dropped before
/// its end is reported.
struct PollGuard<'a> {
    shelf: &'a Shelf,
    driver: Option<Box<Driver>>,
    /// The waker of the task, unless the driver has ended.
    keep: Option<Waker>,
}

impl Drop for PollGuard<'_> {
    fn drop(&mut self) {
        let driver = self.driver.take().filter(|_| self.keep.is_some());
        let task = self.keep.take();
        *lock(&self.shelf.slot) = driver.map_or(Slot::Gone, |driver| Slot::Free(driver, task));
        self.shelf.back.notify_all();
    }
}
