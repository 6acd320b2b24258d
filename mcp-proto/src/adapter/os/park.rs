//! A future on a thread that waits.

use crate::adapter::job::Job;
use alloc::sync::Arc;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
#[cfg(shuttle)]
use shuttle::thread::{self, Thread};
use std::task::Wake;
#[cfg(not(shuttle))]
use std::thread::{self, Thread};

/// Polls a future to its end on this thread, which is parked while the future waits.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Parked(Thread);

    impl Wake for Parked {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Parked(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
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
