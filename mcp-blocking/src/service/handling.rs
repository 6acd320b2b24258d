//! The state of a request's handler, shared by the thread that runs it, the thread that cancels it,
//! and the statistics.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU8, Ordering};

/// The number of cancelled handlers of one server that have not returned. Clones share the count.
#[derive(Clone, Default)]
pub(super) struct Abandoned(Arc<AtomicIsize>);

impl Abandoned {
    pub(super) fn count(&self) -> usize {
        // The thread of a handler may decrement the count before the thread that cancels it has
        // incremented it.
        usize::try_from(self.0.load(Ordering::Relaxed)).unwrap_or(0)
    }
}

/// A request that the application received.
pub(super) struct Handling {
    /// The flag that the handler can check.
    pub(super) cancelled: Arc<AtomicBool>,
    /// A combination of the bits below.
    stage: AtomicU8,
    abandoned: Abandoned,
}

const ENTERED: u8 = 1;
const CANCELLED: u8 = 2;
const RETURNED: u8 = 4;

impl Handling {
    pub(super) fn new(abandoned: &Abandoned) -> Self {
        Self { cancelled: Arc::default(), stage: AtomicU8::new(0), abandoned: abandoned.clone() }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Cancels it. A running handler counts as abandoned from now on.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
        if self.stage.fetch_or(CANCELLED, Ordering::Relaxed) == ENTERED {
            self.abandoned.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Runs the handler, which must not panic. `None` if the request was cancelled before.
    pub(super) fn run<T>(&self, handler: impl FnOnce() -> T) -> Option<T> {
        if self.stage.fetch_or(ENTERED, Ordering::Relaxed) & CANCELLED != 0 {
            return None;
        }
        let outcome = handler();
        if self.stage.fetch_or(RETURNED, Ordering::Relaxed) & CANCELLED != 0 {
            self.abandoned.0.fetch_sub(1, Ordering::Relaxed);
        }
        Some(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handler_is_abandoned_between_cancellation_and_return() {
        let abandoned = Abandoned::default();
        let waits = Handling::new(&abandoned);
        waits.cancel();
        assert!(waits.run(|| ()).is_none() && waits.is_cancelled());
        assert_eq!(abandoned.count(), 0, "it was never run");
        let runs = Handling::new(&abandoned);
        let inside = || {
            assert_eq!(abandoned.count(), 0);
            // Twice: by the client, and by the end of the server.
            runs.cancel();
            runs.cancel();
            abandoned.count()
        };
        assert_eq!(runs.run(inside), Some(1));
        assert_eq!(abandoned.count(), 0);
        let ended = Handling::new(&abandoned);
        assert!(ended.run(|| ()).is_some());
        ended.cancel();
        assert_eq!(abandoned.count(), 0, "it has returned");
    }
}
