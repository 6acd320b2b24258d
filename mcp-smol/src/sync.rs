//! Locks, timers and the executor. Under the model checker these are its own, so that it controls
//! the schedule; the rest of this crate does not notice.

#[cfg(not(all(test, shuttle)))]
mod primitives {
    pub(crate) use async_io::Timer;
    pub(crate) use smol::block_on;
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use std::thread;
    use std::time::Duration;

    /// The time after which a task that has more to do is polled again.
    pub(crate) const YIELD: Duration = Duration::from_micros(10);

    /// The least time between the work after a deadline and the next deadline: what is due may be a
    /// part of much work, and take longer than the pause that the engine makes after it.
    pub(crate) const REST: Duration = Duration::from_micros(100);

    /// Runs a task on smol's global executor.
    pub(crate) fn spawn(task: impl Future<Output: Send> + Send + 'static) {
        smol::spawn(task).detach();
    }
}

#[cfg(all(test, shuttle))]
mod primitives {
    pub(crate) use crate::tests::time::Timer;
    pub(crate) use shuttle::future::block_on;
    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use shuttle::thread;
    use std::time::Duration;

    /// No time passes by itself.
    pub(crate) const YIELD: Duration = Duration::ZERO;
    pub(crate) const REST: Duration = Duration::ZERO;

    /// Runs a task of the model checker.
    pub(crate) fn spawn(task: impl Future<Output: Send> + Send + 'static) {
        drop(shuttle::future::spawn(task));
    }
}

pub(crate) use primitives::{Condvar, Mutex, MutexGuard, REST, Timer, YIELD, block_on, spawn, thread};

/// Ignores poisoning: every change is complete before anything that may panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Changes what a mutex protects, and releases it before the caller drops what this returns: a
/// waker, for example, may be the last one of a task that holds the owner of the mutex.
pub(crate) fn locked<T, R>(mutex: &Mutex<T>, change: impl FnOnce(&mut T) -> R) -> R {
    change(&mut lock(mutex))
}
