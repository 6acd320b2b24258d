#![forbid(unsafe_code)]
//! Memory of the engines under bad input, by an allocator that counts the whole process. The tests
//! run one at a time.

mod bad_input;
mod fetched;
mod queued;
mod running;
mod schemas;
mod tokens;

use mcp_tests::heap::{COUNTED, Counted};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[global_allocator]
static HEAP: Counted = COUNTED;

/// Waits for the other tests to end.
fn alone() -> MutexGuard<'static, ()> {
    static RUNNING: Mutex<()> = Mutex::new(());
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
