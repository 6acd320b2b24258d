//! Foreign work that owes the engine something: a handler its answer, an admission its decision. It pays in any case, and once: when it is
//! done, when it panics, and when whoever runs it lets it go.

use crate::config::BoxFuture;
use crate::server::Shared;
use crate::sync::{Mutex, guarded, lock};
use smol::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

/// A request that runs: whether it was cancelled, and the task to be told so.
#[derive(Default)]
pub(crate) struct Running {
    pub(crate) cancelled: Arc<AtomicBool>,
    waker: Mutex<Option<Waker>>,
}

impl Running {
    /// Cancels it. Not to be called under a lock, since its task is woken.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
        let waker = lock(&self.waker).take();
        waker.into_iter().for_each(Waker::wake);
    }

    /// Whether it was cancelled.
    pub(crate) fn was_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Whether it was cancelled. If not, the task is woken when it is.
    fn is_cancelled(&self, cx: &mut Context<'_>) -> bool {
        let mut waker = lock(&self.waker);
        let before = if waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            None
        } else {
            waker.replace(cx.waker().clone())
        };
        drop(waker);
        // Outside the lock: it may be the last of a task that holds a server.
        drop(before);
        self.was_cancelled()
    }
}

/// A future of the application, and what is done with its outcome; with the reason if there is none. It keeps no server alive.
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
