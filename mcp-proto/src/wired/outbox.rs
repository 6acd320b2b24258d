//! The one queue of outputs of a wired engine, and of the events that a driver hands on. Since the engine is pumped to the end on every input, its
//! bound on waiting notifications and diagnostics is kept here. What must not be lost is never dropped here.

use crate::droppable::{Droppable, Weigh, Weight};
use crate::exchange::Action;
use alloc::collections::VecDeque;

/// A queue in which at most so many notifications and diagnostics wait, which hold at most so many bytes. Those beyond are counted, and the count stands where the first of
/// them would have stood.
#[derive(Debug)]
pub struct Outbox<T> {
    queue: VecDeque<Entry<T>>,
    droppable: Droppable,
    /// Outputs taken so far, which tells where an entry stands now.
    taken: u64,
    /// The number of the entry that counts losses, as long as it waits.
    losses: Option<u64>,
    /// All that were ever counted instead of queued: notifications and diagnostics.
    lost: (u64, u64),
}

#[derive(Debug)]
enum Entry<T> {
    Output(T),
    Lost { notifications: u64, diagnostics: u64 },
}

impl<T: Weigh> Outbox<T> {
    /// An empty queue with these bounds: a number, and bytes.
    pub const fn new(max_count: usize, max_bytes: usize) -> Self {
        let droppable = Droppable::new(max_count, max_bytes);
        Self { queue: VecDeque::new(), droppable, taken: 0, losses: None, lost: (0, 0) }
    }

    /// Adds an output, or counts it.
    pub fn push(&mut self, output: T) {
        match output.weight() {
            Weight::Notification(size) if !self.droppable.enter(size) => return self.lose(1, 0),
            Weight::Diagnostic(size) if !self.droppable.enter(size) => return self.lose(0, 1),
            Weight::Lost(notifications, diagnostics) => return self.lose(notifications, diagnostics),
            Weight::Kept | Weight::Notification(_) | Weight::Diagnostic(_) => {}
        }
        self.queue.push_back(Entry::Output(output));
    }

    /// The next output.
    pub fn pop(&mut self) -> Option<T> {
        let entry = self.queue.pop_front()?;
        if self.losses == Some(self.taken) {
            self.losses = None;
        }
        self.taken += 1;
        Some(match entry {
            Entry::Output(output) => {
                self.droppable.leave(output.weight());
                output
            }
            Entry::Lost { notifications, diagnostics } => T::lost(notifications, diagnostics),
        })
    }

    /// How many outputs wait.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// How many notifications and how many diagnostics were ever lost: those counted here, and those that an output of an earlier queue
    /// stands for.
    pub fn lost(&self) -> (u64, u64) {
        self.lost
    }

    fn lose(&mut self, more_notifications: u64, more_diagnostics: u64) {
        self.lost.0 += more_notifications;
        self.lost.1 += more_diagnostics;
        let at = self.losses.and_then(|number| usize::try_from(number - self.taken).ok());
        if let Some(Entry::Lost { notifications, diagnostics }) = at.and_then(|at| self.queue.get_mut(at)) {
            *notifications += more_notifications;
            *diagnostics += more_diagnostics;
            return;
        }
        self.losses = Some(self.taken + self.queue.len() as u64);
        self.queue.push_back(Entry::Lost { notifications: more_notifications, diagnostics: more_diagnostics });
    }
}

impl<E: Weigh> Weigh for Action<E> {
    fn weight(&self) -> Weight {
        match self {
            Self::Event(event) => event.weight(),
            _ => Weight::Kept,
        }
    }

    fn lost(notifications: u64, diagnostics: u64) -> Self {
        Self::Event(E::lost(notifications, diagnostics))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Event;
    use crate::error::{Diagnostic, DiagnosticKind};
    use crate::input::InputKey;

    #[test]
    fn what_is_beyond_the_bound_is_counted_where_the_first_of_it_stood() {
        let note = || Event::Notification { method: "m".into(), params: None };
        let diagnostic = || Event::Diagnostic(Diagnostic::new(DiagnosticKind::BadEvent, "d"));
        let kept = || Event::InputWithdrawn(InputKey(1));
        let mut outbox = Outbox::new(1, usize::MAX);
        for event in [note(), note(), kept(), diagnostic(), note()] {
            outbox.push(event);
        }
        assert_eq!(outbox.pop(), Some(note()));
        assert_eq!(outbox.pop(), Some(Event::Lost { notifications: 2, diagnostics: 1 }));
        outbox.push(note());
        outbox.push(diagnostic());
        assert_eq!(outbox.pop(), Some(kept()));
        assert_eq!(outbox.pop(), Some(note()));
        assert_eq!(outbox.pop(), Some(Event::Lost { notifications: 0, diagnostics: 1 }));
        assert_eq!(outbox.pop(), None);
    }

    #[test]
    fn losses_of_an_earlier_queue_are_added_up() {
        let mut outbox = Outbox::new(0, usize::MAX);
        outbox.push(Event::Lost { notifications: 1, diagnostics: 2 });
        outbox.push(Event::Notification { method: "m".into(), params: None });
        outbox.push(Event::Lost { notifications: 3, diagnostics: 4 });
        assert_eq!(outbox.pop(), Some(Event::Lost { notifications: 5, diagnostics: 6 }));
        assert_eq!(outbox.pop(), None);
    }
}
