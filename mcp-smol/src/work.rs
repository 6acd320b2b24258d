//! Futures of the application whose result the engine waits for: a handler and its answer, an
//! admission and its decision. Each reports exactly once: when it completes, when it panics, and
//! when its task is dropped.

use crate::future::BoxFuture;
use crate::server::Shared;
use crate::sync::{Mutex, guarded, lock};
use smol::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

/// A running request: whether it was cancelled, and the waker for its cancellation.
#[derive(Default)]
pub(crate) struct Running {
    pub(crate) cancelled: Arc<AtomicBool>,
    waker: Mutex<Option<Waker>>,
}

impl Running {
    /// Cancels it. Do not call it under a lock, since it wakes the task.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
        let waker = lock(&self.waker).take();
        waker.into_iter().for_each(Waker::wake);
    }

    /// Returns whether it was cancelled.
    pub(crate) fn was_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Returns whether it was cancelled. Otherwise wakes the task at its cancellation.
    fn is_cancelled(&self, cx: &mut Context<'_>) -> bool {
        let mut waker = lock(&self.waker);
        let before = if waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            None
        } else {
            waker.replace(cx.waker().clone())
        };
        drop(waker);
        // Outside of the lock: it may be the last waker of a task that holds a server.
        drop(before);
        self.was_cancelled()
    }
}

/// A future of the application, and a function for its outcome, or for the reason if there is none.
/// It does not keep the server alive.
pub(crate) struct Work<T, P: FnOnce(&Arc<Shared>, Result<T, &'static str>)> {
    server: Weak<Shared>,
    running: Arc<Running>,
    work: Option<BoxFuture<T>>,
    pay: Option<P>,
}

impl<T, P: FnOnce(&Arc<Shared>, Result<T, &'static str>)> Work<T, P> {
    pub(crate) fn new(server: &Arc<Shared>, running: Arc<Running>, work: BoxFuture<T>, pay: P) -> Self {
        Self { server: Arc::downgrade(server), running, work: Some(work), pay: Some(pay) }
    }

    fn end(&mut self, outcome: Result<T, &'static str>) {
        let work = self.work.take();
        guarded(|| drop(work));
        if let (Some(pay), Some(server)) = (self.pay.take(), self.server.upgrade()) {
            pay(&server, outcome);
        }
    }
}

impl<T, P: FnOnce(&Arc<Shared>, Result<T, &'static str>) + Unpin> Future for Work<T, P> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let Some(work) = &mut this.work else { return Poll::Ready(()) };
        if this.running.is_cancelled(cx) {
            this.end(Err("was cancelled"));
            return Poll::Ready(());
        }
        match guarded(|| work.as_mut().poll(cx)) {
            Some(Poll::Pending) => return Poll::Pending,
            Some(Poll::Ready(outcome)) => this.end(Ok(outcome)),
            None => this.end(Err("panicked")),
        }
        Poll::Ready(())
    }
}

impl<T, P: FnOnce(&Arc<Shared>, Result<T, &'static str>)> Drop for Work<T, P> {
    fn drop(&mut self) {
        self.end(Err("was dropped"));
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::Router;
    use std::future::pending;
    use std::panic::{self, AssertUnwindSafe};

    /// Panics when it is dropped.
    struct Grenade;

    impl Drop for Grenade {
        fn drop(&mut self) {
            panic::resume_unwind(Box::new("on purpose"));
        }
    }

    // covers: B-149
    #[test]
    fn dropped_work_keeps_the_panic_of_its_future_and_reports() {
        let server = Shared::new(Router::new("none", "1").into(), None).expect("a seed");
        let outcome = Arc::new(Mutex::new(None));
        let report = Arc::clone(&outcome);
        let future = async {
            let _grenade = Grenade;
            pending::<()>().await;
        };
        let mut work = Work::new(&server, Arc::default(), Box::pin(future), move |_: &Arc<Shared>, outcome| {
            *lock(&report) = Some(outcome);
        });
        assert!(smol::block_on(smol::future::poll_once(&mut work)).is_none());
        panic::catch_unwind(AssertUnwindSafe(|| drop(work))).expect("no panic");
        assert_eq!(*lock(&outcome), Some(Err("was dropped")));
    }
}
