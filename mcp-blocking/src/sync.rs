//! Locks, conditions and threads. Under the model checker these are its own, and time passes only
//! when a scenario requests it; the rest of this crate does not notice.

use std::io;
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

#[cfg(all(test, shuttle))]
pub(crate) use crate::tests::os::Condvar;
#[cfg(all(test, shuttle))]
pub(crate) use shuttle::{
    sync::{Mutex, MutexGuard},
    thread, thread_local,
};
#[cfg(not(all(test, shuttle)))]
pub(crate) use std::{
    sync::{Condvar, Mutex, MutexGuard},
    thread, thread_local,
};

/// Locks. Ignores poisoning: every change is complete before anything that may panic.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks, unless another thread holds the lock. Never waits.
pub(crate) fn try_lock<T: ?Sized>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Waits for a signal, for at most `limit`. May wake up spuriously.
pub(crate) fn wait<'a, T>(on: &Condvar, guard: MutexGuard<'a, T>, limit: Option<Duration>) -> MutexGuard<'a, T> {
    match limit {
        None => on.wait(guard).unwrap_or_else(PoisonError::into_inner),
        Some(limit) => on.wait_timeout(guard, limit).unwrap_or_else(PoisonError::into_inner).0,
    }
}

/// Starts a thread that is never joined.
pub(crate) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.into()).spawn(body).map(drop)
}
