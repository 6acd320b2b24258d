//! A future on a thread of the application, which reads the connection of its answer meanwhile.

use crate::connection::{ConnectionThreads, Wait};
use crate::driver::Driver;
use crate::here;
use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait};
use mcp_driver::Clock;
use mcp_proto::Instant;
use std::mem::take;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// A thread that waits for a future.
#[derive(Default)]
struct Waiter {
    at: Mutex<At>,
    woken: Condvar,
}

/// Where a thread waits. Its lock is taken before that of what is known without the lock of a
/// connection, and after every other.
#[derive(Default)]
enum At {
    #[default]
    Runs,
    Woken,
    Leads(Arc<ConnectionThreads>),
    Follows(Arc<ConnectionThreads>),
    Elsewhere,
}

impl Wake for Waiter {
    fn wake(self: Arc<Self>) {
        let at = std::mem::replace(&mut *lock(&self.at), At::Woken);
        match at {
            At::Runs | At::Woken => {}
            At::Leads(connection) => connection.interrupt(),
            At::Follows(connection) => {
                connection.unfollow(true);
                self.woken.notify_one();
            }
            At::Elsewhere => self.woken.notify_one(),
        }
    }
}

impl Driver {
    /// As [`wait`](Self::wait), for any time.
    pub(crate) fn wait_for<F: Future>(self: &Arc<Self>, via: Option<u64>, future: F) -> F::Output {
        let mut future = pin!(future);
        loop {
            if let Some(output) = self.wait(via, None, future.as_mut()) {
                return output;
            }
        }
    }

    /// Polls a future to its end on this thread, which reads or sleeps while the future waits, for
    /// at most `limit`. `None` if the future has not ended by then. `via` is the connection of the
    /// answer, if it is known.
    pub(crate) fn wait<F: Future>(
        self: &Arc<Self>,
        mut via: Option<u64>,
        limit: Option<Duration>,
        future: F,
    ) -> Option<F::Output> {
        let (waiter, clock, mut future) = (Arc::<Waiter>::default(), Clock::start(), pin!(future));
        let (waker, until) = (Waker::from(Arc::clone(&waiter)), limit.map(Instant::new));
        let left = || until.map(|_| clock.until(until));
        loop {
            let mut cx = Context::from_waker(&waker);
            let (polled, wrote) = here::noting_writes(|| future.as_mut().poll(&mut cx));
            if let Poll::Ready(output) = polled {
                return Some(output);
            }
            if left() == Some(Duration::ZERO) {
                return None;
            }
            via = wrote.or(via);
            waiter.wait(self, via.and_then(|number| self.connection(number)), left);
        }
    }
}

impl Waiter {
    /// Waits until it is woken, or for the time that `left` returns. May return earlier.
    fn wait(
        &self,
        driver: &Arc<Driver>,
        connection: Option<Arc<ConnectionThreads>>,
        left: impl Fn() -> Option<Duration>,
    ) {
        let mut at = lock(&self.at);
        if let At::Woken = *at {
            *at = At::Runs;
            return;
        }
        match connection.map(|connection| (connection.enter(), connection)) {
            Some((Wait::Lead(polled), connection)) => {
                *at = At::Leads(Arc::clone(&connection));
                drop(at);
                connection.lead(driver, &polled, || {
                    let left = left();
                    let is_over = left == Some(Duration::ZERO) || matches!(*lock(&self.at), At::Woken);
                    (!is_over).then_some(left)
                });
                drop(take(&mut *lock(&self.at)));
            }
            Some((Wait::Follow, connection)) => {
                *at = At::Follows(connection);
                let end = take(&mut *self.park(at, left));
                if let At::Follows(connection) = end {
                    connection.unfollow(false);
                }
            }
            Some((Wait::Elsewhere, _)) | None => {
                *at = At::Elsewhere;
                drop(at);
                driver.as_stranger(|| drop(take(&mut *self.park(lock(&self.at), left))));
            }
        }
    }

    /// Sleeps until it is woken, or no time is left.
    fn park<'a>(&self, mut at: MutexGuard<'a, At>, left: impl Fn() -> Option<Duration>) -> MutexGuard<'a, At> {
        while !matches!(*at, At::Woken) {
            let left = left();
            if left == Some(Duration::ZERO) {
                break;
            }
            at = wait(&self.woken, at, left);
        }
        at
    }
}

#[cfg(all(test, unix, feature = "http", not(shuttle)))]
mod tests;
