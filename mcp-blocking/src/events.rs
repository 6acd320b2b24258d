//! Events for the application: delivered in order, on their own thread, and limited.

use crate::pool::Pool;
use crate::sync::{Condvar, Mutex, lock, wait};
use mcp_proto::adapter::{EventQueue, Weigh};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

pub(crate) type Told<E> = dyn Fn(E) + Send + Sync;

/// Passes events to a function of the application, if there is one.
pub(crate) struct Events<E> {
    told: Option<Arc<Told<E>>>,
    waiting: Arc<Waiting<E>>,
    pool: Pool<Arc<Told<E>>>,
}

/// The waiting events.
pub(crate) struct Waiting<E> {
    queue: Mutex<EventQueue<E>>,
    max: usize,
    /// Signalled when fewer events wait.
    fewer: Condvar,
}

impl<E: Weigh> Waiting<E> {
    /// Returns whether more events wait than the limit, since they are of a kind that is never
    /// dropped. In that case waits for at most `patience`, so that the producer slows down.
    pub(crate) fn is_behind(&self, patience: Duration) -> bool {
        let mut queue = lock(&self.queue);
        if queue.len() > self.max {
            queue = wait(&self.fewer, queue, Some(patience));
        }
        queue.len() > self.max
    }
}

impl<E: Weigh + Send + 'static> Events<E> {
    /// `max` is the maximum number of droppable events that wait, and of the bytes that they hold.
    pub(crate) fn new(told: Option<Box<dyn FnMut(E) + Send>>, max: (usize, usize)) -> Self {
        let told = told.map(|told| {
            let told = Mutex::new(told);
            Arc::new(move |event| lock(&told)(event)) as Arc<Told<E>>
        });
        // Droppable events alone never exceed their limit. The entry that counts dropped ones is
        // one more.
        let waiting =
            Waiting { queue: Mutex::new(EventQueue::new(max.0, max.1)), max: max.0 + 1, fewer: Condvar::new() };
        let waiting = Arc::new(waiting);
        let taken = Arc::clone(&waiting);
        // One thread, since events are delivered in order.
        let pool = Pool::new("mcp-events", 1, move |told: Arc<Told<E>>| {
            let next = || {
                let mut queue = lock(&taken.queue);
                let event = queue.pop();
                if queue.len() == taken.max {
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

    /// Queues an event, or counts it if too many wait.
    pub(crate) fn tell(&mut self, event: E) {
        let Some(told) = &self.told else { return };
        lock(&self.waiting.queue).push(event);
        // One job delivers all waiting events. If no thread can be started, they wait for the next
        // event.
        if self.pool.waiting() == 0 {
            drop(self.pool.submit(Arc::clone(told)));
        }
    }

    /// Returns the number of waiting events, and the numbers of lost notifications and diagnostics.
    pub(crate) fn held(&self) -> (usize, (u64, u64)) {
        let waiting = lock(&self.waiting.queue);
        (waiting.len(), waiting.lost())
    }

    /// Returns the waiting events, for the producers.
    pub(crate) fn waiting(&self) -> Arc<Waiting<E>> {
        Arc::clone(&self.waiting)
    }

    /// Accepts no further events. Those that are queued are delivered.
    pub(crate) fn end(&mut self) -> Option<Arc<Told<E>>> {
        self.told.take()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use mcp_proto::adapter::Weight;
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
    fn missed_events_of_a_slow_application_are_counted() {
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
        let mut events = Events::new(Some(Box::new(slow)), (2, usize::MAX));
        events.tell(Plain::Note(0));
        inside.recv_timeout(BOUND).expect("entered");
        (1..=5).for_each(|n| events.tell(Plain::Note(n)));
        events.tell(Plain::Last);
        (0..5).for_each(|_| open.send(()).expect("heard"));
        let heard: Vec<Plain> = (0..5).map(|_| heard.recv_timeout(BOUND).expect("told")).collect();
        assert_eq!(heard, [Plain::Note(0), Plain::Note(1), Plain::Note(2), Plain::Lost(3, 0), Plain::Last]);
    }
}
