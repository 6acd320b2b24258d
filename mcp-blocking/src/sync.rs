//! Locks, conditions and threads, and how they are waited for. In the model they are those of the model checker, and time passes only
//! when a scenario says so; the rest of this crate does not notice.

use crate::os::Clock;
use mcp_proto::Instant;
use std::io;
use std::sync::PoisonError;
use std::time::Duration;

#[cfg(all(test, shuttle))]
pub(crate) use crate::tests::os::Condvar;
#[cfg(all(test, shuttle))]
pub(crate) use shuttle::{
    sync::{Mutex, MutexGuard},
    thread,
};
#[cfg(not(all(test, shuttle)))]
pub(crate) use std::{
    sync::{Condvar, Mutex, MutexGuard},
    thread,
};

/// Locks. What a thread that panicked has left is taken as it is: every change is made whole before anything that may panic.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a signal, at most so long. It may also end for no reason.
pub(crate) fn wait<'a, T>(on: &Condvar, guard: MutexGuard<'a, T>, limit: Option<Duration>) -> MutexGuard<'a, T> {
    match limit {
        None => on.wait(guard).unwrap_or_else(PoisonError::into_inner),
        Some(limit) => on.wait_timeout(guard, limit).unwrap_or_else(PoisonError::into_inner).0,
    }
}

/// Waits until `is_so`, at most until then. A time beyond the range of the clock is none.
pub(crate) fn wait_until<'a, T>(
    on: &Condvar,
    mut guard: MutexGuard<'a, T>,
    clock: &Clock,
    until: Instant,
    mut is_so: impl FnMut(&T) -> bool,
) -> MutexGuard<'a, T> {
    while !is_so(&guard) {
        let left = until.since(clock.now());
        if left.is_zero() {
            break;
        }
        guard = wait(on, guard, Some(left));
    }
    guard
}

/// Starts a thread that nobody joins.
pub(crate) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.into()).spawn(body).map(drop)
}
