//! The one queue of outputs of a wired engine, and of the events that a driver hands on. Since the engine is pumped to the end on every input, its
//! bound on waiting notifications and diagnostics is kept here. What must not be lost is never dropped here.

use crate::client;
use crate::exchange::Action;
use crate::server;
use alloc::collections::VecDeque;

/// How an output behaves when the application does not take it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Weight {
    /// It is kept whatever happens.
    Kept,
    /// A notification, which may be counted instead.
    Notification,
    /// A diagnostic, which may be counted instead.
    Diagnostic,
    /// It stands for so many notifications and so many diagnostics, and is added to what is counted.
    Lost(u64, u64),
}

/// An output that tells whether it may be dropped.
pub trait Weigh: Sized {
    /// How it behaves.
    fn weight(&self) -> Weight;
    /// The output that stands for so many dropped ones.
    fn lost(notifications: u64, diagnostics: u64) -> Self;
}

/// A queue in which at most so many notifications and diagnostics wait. Those beyond are counted, and the count stands where the first of
/// them would have stood.
#[derive(Debug)]
pub struct Outbox<T> {
    queue: VecDeque<Entry<T>>,
    max: usize,
    droppable: usize,
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
    /// An empty queue with this bound.
    pub fn new(max: usize) -> Self {
        Self { queue: VecDeque::new(), max, droppable: 0, taken: 0, losses: None, lost: (0, 0) }
    }

    /// Adds an output, or counts it.
    pub fn push(&mut self, output: T) {
        match output.weight() {
            Weight::Kept => {}
            Weight::Lost(notifications, diagnostics) => return self.lose(notifications, diagnostics),
            _ if self.droppable < self.max => self.droppable += 1,
            Weight::Notification => return self.lose(1, 0),
            Weight::Diagnostic => return self.lose(0, 1),
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
                if output.weight() != Weight::Kept {
                    self.droppable -= 1;
                }
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

impl Weigh for client::Event {
    fn weight(&self) -> Weight {
        match self {
            Self::Notification { .. } | Self::ToolsChanged => Weight::Notification,
            // What a driver may see without end, and nobody waits for.
            Self::Diagnostic(_)
            | Self::PingMissed { .. }
            | Self::Reconnecting { .. }
            | Self::ChannelClosing { .. }
            | Self::ChannelClosed { .. } => Weight::Diagnostic,
            Self::Lost { notifications, diagnostics } => Weight::Lost(*notifications, *diagnostics),
            _ => Weight::Kept,
        }
    }

    fn lost(notifications: u64, diagnostics: u64) -> Self {
        Self::Lost { notifications, diagnostics }
    }
}

impl Weigh for server::Event {
    fn weight(&self) -> Weight {
        match self {
            Self::Notification { .. } => Weight::Notification,
            Self::Diagnostic(_) => Weight::Diagnostic,
            Self::Lost { notifications, diagnostics } => Weight::Lost(*notifications, *diagnostics),
            _ => Weight::Kept,
        }
    }

    fn lost(notifications: u64, diagnostics: u64) -> Self {
        Self::Lost { notifications, diagnostics }
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
        let mut outbox = Outbox::new(1);
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
        let mut outbox = Outbox::new(0);
        outbox.push(Event::Lost { notifications: 1, diagnostics: 2 });
        outbox.push(Event::Notification { method: "m".into(), params: None });
        outbox.push(Event::Lost { notifications: 3, diagnostics: 4 });
        assert_eq!(outbox.pop(), Some(Event::Lost { notifications: 5, diagnostics: 6 }));
        assert_eq!(outbox.pop(), None);
    }
}
