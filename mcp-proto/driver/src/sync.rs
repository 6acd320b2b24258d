//! The locks of this module. Under the model checker they are its own, so that it controls the
//! schedule.

#[cfg(shuttle)]
pub(super) use shuttle::sync::{Condvar, Mutex, MutexGuard};
use std::panic::{AssertUnwindSafe, catch_unwind};
#[cfg(not(shuttle))]
pub(super) use std::sync::{Condvar, Mutex, MutexGuard};

/// Locks. Ignores poisoning: every change is complete before anything that may panic.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Changes what a mutex protects, and releases it before the caller drops what this returns: a
/// waker, for example, may be the last one of a task that holds the owner of the mutex.
pub(super) fn locked<T, R>(mutex: &Mutex<T>, change: impl FnOnce(&mut T) -> R) -> R {
    change(&mut lock(mutex))
}

/// Runs or drops code of the application, and catches its panic. `None` if it panicked.
pub fn guarded<T>(foreign: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(foreign)).ok()
}
