//! A driver on smol's global executor that the last handle can take back: `main` may return right after a client is dropped, and then
//! no executor is left to end the client's program.

use crate::driver::Driver;
use smol::Timer;
use smol::future::{Future, FutureExt};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// Whoever holds it may poll the driver; the driver itself is polled by one at a time.
#[derive(Clone)]
pub(crate) struct Spawned(Arc<Slot>);

struct Slot {
    /// `None` once it has ended or was taken back.
    driver: Mutex<Option<Driver>>,
    /// Who polls it at the moment: a callback that drops the last handle must not wait for itself.
    polled_by: Mutex<Option<ThreadId>>,
}

impl Spawned {
    pub(crate) fn new(driver: Driver) -> Self {
        Self(Arc::new(Slot { driver: Mutex::new(Some(driver)), polled_by: Mutex::new(None) }))
    }

    /// Takes the driver back and runs it to its end on this thread, for at most `limit`; what is left then is killed. Does nothing within
    /// a poll of this very driver, since whoever polls it goes on.
    pub(crate) fn finish(&self, limit: Duration) {
        if *lock(&self.0.polled_by) == Some(thread::current().id()) {
            return;
        }
        // Whoever polls is soon done, unless a callback waits for this very drop: then the driver is left to it.
        let until = Instant::now() + limit;
        let driver = loop {
            match self.0.driver.try_lock() {
                Ok(mut slot) => break slot.take(),
                Err(TryLockError::Poisoned(slot)) => break slot.into_inner().take(),
                Err(TryLockError::WouldBlock) if Instant::now() >= until => return,
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
            }
        };
        if let Some(driver) = driver {
            smol::block_on(driver.or(async {
                Timer::after(limit).await;
            }));
        }
    }
}

impl Future for Spawned {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut slot = lock(&self.0.driver);
        let Some(driver) = slot.as_mut() else { return Poll::Ready(()) };
        let polling = Polling::new(&self.0);
        let polled = Pin::new(driver).poll(cx);
        drop(polling);
        if polled.is_ready() {
            *slot = None;
        }
        polled
    }
}

/// Marks that this thread polls, also if that unwinds.
struct Polling<'a>(&'a Slot);

impl<'a> Polling<'a> {
    fn new(slot: &'a Slot) -> Self {
        *lock(&slot.polled_by) = Some(thread::current().id());
        Self(slot)
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        *lock(&self.0.polled_by) = None;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
