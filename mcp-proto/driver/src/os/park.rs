//! A future on a thread that waits.

use super::Clock;
use crate::job::Job;
use alloc::sync::Arc;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use mcp_proto::time::Instant;
#[cfg(shuttle)]
use shuttle::thread::{self, Thread};
use std::task::Wake;
#[cfg(not(shuttle))]
use std::thread::{self, Thread};

/// Polls a future to its end on this thread, which is parked while the future waits.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let (waker, mut future) = (parked(), pin!(future));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

/// Like [`block_on`], for at most `limit`. `None` if the future has not ended by then.
pub fn block_on_for<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let (clock, waker, mut future) = (Clock::start(), parked(), pin!(future));
    let until = Instant::new(limit);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        if clock.now() >= until {
            return None;
        }
        park_until(&clock, until, &waker);
    }
}

/// Returns whether this thread unwinds after a panic.
pub(crate) fn is_unwinding() -> bool {
    thread::panicking()
}

/// Wakes a parked thread.
struct ParkedThread(Thread);

impl Wake for ParkedThread {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Returns the waker of this thread.
fn parked() -> Waker {
    Waker::from(Arc::new(ParkedThread(thread::current())))
}

#[cfg(not(shuttle))]
fn park_until(clock: &Clock, until: Instant, _: &Waker) {
    thread::park_timeout(clock.until(Some(until)));
}

#[cfg(shuttle)]
fn park_until(clock: &Clock, until: Instant, waker: &Waker) {
    let _timer = super::model::ModelTimer::new(super::model::now() + clock.until(Some(until)), waker.clone());
    thread::park();
}

/// Exits this process.
pub(crate) fn exit(code: i32) -> ! {
    std::process::exit(code)
}

impl Job {
    /// Runs it to its end on this thread, which is parked while a future waits.
    pub fn block(self) {
        match self {
            Self::Sync(job) => job.run(),
            Self::Async(job) => drop(block_on(job)),
        }
    }
}
