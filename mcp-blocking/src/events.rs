//! Events on their way to the application: in order, on a thread of their own, and bounded.

use crate::pool::Pool;
use crate::sync::{Condvar, Mutex, lock, wait};
use mcp_proto::wired::{Outbox, Weigh};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

pub(crate) type Told<E> = dyn Fn(E) + Send + Sync;

/// Hands events to a function of the application, if there is one.
pub(crate) struct Events<E> {
    told: Option<Arc<Told<E>>>,
    waiting: Arc<Waiting<E>>,
    pool: Pool<Arc<Told<E>>>,
}

/// The events that wait.
pub(crate) struct Waiting<E> {
    outbox: Mutex<Outbox<E>>,
    max: usize,
    /// Told when fewer wait.
    fewer: Condvar,
}

impl<E: Weigh> Waiting<E> {
    /// Whether more wait than the bound, since they are of a kind that is never dropped. Waits a while if that is so, at most until it is
    /// not: whoever brings more should.
    pub(crate) fn is_behind(&self, patience: Duration) -> bool {
        let mut outbox = lock(&self.outbox);
        if outbox.len() > self.max {
            outbox = wait(&self.fewer, outbox, Some(patience));
        }
        outbox.len() > self.max
    }
}

impl<E: Weigh + Send + 'static> Events<E> {
    /// `max`: how many events that may be dropped wait at most, and how many bytes they hold.
    pub(crate) fn new(told: Option<Arc<Told<E>>>, max: (usize, usize)) -> Self {
        // What is droppable never gets beyond its bound alone; the entry that counts what was dropped is one more.
        let waiting = Waiting { outbox: Mutex::new(Outbox::new(max.0, max.1)), max: max.0 + 1, fewer: Condvar::new() };
        let waiting = Arc::new(waiting);
        let taken = Arc::clone(&waiting);
        // One thread, since events are told in order.
        let pool = Pool::new("mcp-events", 1, move |told: Arc<Told<E>>| {
            let next = || {
                let mut outbox = lock(&taken.outbox);
                let event = outbox.pop();
                if outbox.len() == taken.max {
                    taken.fewer.notify_all();
                }
                event
            };
            while let Some(event) = next() {
                drop(catch_unwind(AssertUnwindSafe(|| told(event))));
            }
        });
        Self { told, waiting, pool }
    }

    /// Hands an event over, or counts it if too many wait.
    pub(crate) fn tell(&mut self, event: E) {
        let Some(told) = &self.told else { return };
        lock(&self.waiting.outbox).push(event);
        // A job tells all that waits. Without a thread it waits for the next one.
        if self.pool.waiting() == 0 {
            drop(self.pool.submit(Arc::clone(told)));
        }
    }

    /// How many events wait, and how many notifications and diagnostics were lost.
    pub(crate) fn held(&self) -> (usize, (u64, u64)) {
        let waiting = lock(&self.waiting.outbox);
        (waiting.len(), waiting.lost())
    }

    /// What those look at who bring events.
    pub(crate) fn waiting(&self) -> Arc<Waiting<E>> {
        Arc::clone(&self.waiting)
    }

    /// No further event is told. What was handed over is.
    pub(crate) fn end(&mut self) -> Option<Arc<Told<E>>> {
        self.told.take()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use mcp_proto::wired::Weight;
    use std::sync::mpsc;
    use std::time::Duration;

    #[derive(Debug, PartialEq)]
    enum Plain {
        Note(u32),
        Lost(u64, u64),
        Last,
    }

    impl Weigh for Plain {
        fn weight(&self) -> Weight {
            match *self {
                Self::Note(_) => Weight::Notification(1),
                Self::Lost(notes, others) => Weight::Lost(notes, others),
                Self::Last => Weight::Kept,
            }
        }

        fn lost(notifications: u64, diagnostics: u64) -> Self {
            Self::Lost(notifications, diagnostics)
        }
    }

    // covers: B-274
    #[test]
    fn what_a_slow_application_misses_is_counted_and_told_in_its_place() {
        const BOUND: Duration = Duration::from_secs(20);
        let (told, heard) = mpsc::channel();
        let (open, gate) = mpsc::channel::<()>();
        let (entered, inside) = mpsc::channel();
        let (gate, told) = (Mutex::new(gate), Mutex::new(told));
        let slow = move |event| {
            entered.send(()).expect("heard");
            gate.lock().expect("no panic").recv_timeout(BOUND).expect("opened");
            told.lock().expect("no panic").send(event).expect("heard");
        };
        let mut events = Events::new(Some(Arc::new(slow)), (2, usize::MAX));
        events.tell(Plain::Note(0));
        inside.recv_timeout(BOUND).expect("entered");
        (1..=5).for_each(|n| events.tell(Plain::Note(n)));
        events.tell(Plain::Last);
        (0..5).for_each(|_| open.send(()).expect("heard"));
        let heard: Vec<Plain> = (0..5).map(|_| heard.recv_timeout(BOUND).expect("told")).collect();
        assert_eq!(heard, [Plain::Note(0), Plain::Note(1), Plain::Note(2), Plain::Lost(3, 0), Plain::Last]);
    }
}
