//! The queue of outputs of an engine, which drops notifications and diagnostics if the application
//! does not take them.

use crate::error::Diagnostic;
use crate::exchange::Action;
use crate::rpc::RawJson;
use alloc::collections::VecDeque;
use core::mem::take;

/// The capacity that an empty queue keeps. More of it is left of a burst.
const KEPT: usize = 16;

/// What happens to an output that the application does not take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Weight {
    /// It is always kept.
    Kept,
    /// A notification that holds this many bytes. It may be dropped and counted instead.
    Notification(usize),
    /// A diagnostic, or an event that counts as one, that holds this many bytes. It may be dropped
    /// and counted instead.
    Diagnostic(usize),
    /// A report of this many lost notifications and diagnostics, which is added to the counts.
    Lost(u64, u64),
}

/// An output that may be droppable.
pub trait Weigh: Sized {
    /// Returns what happens to it.
    fn weight(&self) -> Weight;
    /// Creates the report of dropped outputs.
    fn lost(notifications: u64, diagnostics: u64) -> Self;
}

/// Outputs in their order. Droppable ones beyond a maximum number, or beyond a maximum of bytes,
/// are counted and dropped. A report tells how many were dropped. All other outputs are kept.
#[derive(Debug)]
pub struct EventQueue<T> {
    outputs: VecDeque<T>,
    /// The number of outputs that were taken, which is the number of the first one that waits.
    taken: u64,
    /// The droppable ones of `outputs`.
    droppable: Droppable,
    report: Report,
    /// Dropped notifications and diagnostics that no taken report contains.
    unreported: (u64, u64),
    /// All notifications and diagnostics that were ever dropped.
    lost: (u64, u64),
    closed: bool,
}

/// The place of the report of dropped outputs.
#[derive(Debug)]
enum Report {
    /// In the place of the first dropped one. It counts further ones while it waits: this is its
    /// number in that case.
    InPlace(Option<u64>),
    /// Before the next droppable output that is kept, or at the end.
    Later,
}

impl<T: Weigh> EventQueue<T> {
    /// Creates an empty queue with a maximum number of droppable outputs, and of the bytes that
    /// they hold. The report of dropped outputs takes the place of the first one.
    pub const fn new(max_count: usize, max_bytes: usize) -> Self {
        Self::with_report(Report::InPlace(None), max_count, max_bytes)
    }

    /// Creates an empty queue like [`Self::new`], with the difference that the report of dropped
    /// outputs comes before the next droppable output that is kept, or at the end.
    pub(crate) const fn reporting_later(max_count: usize, max_bytes: usize) -> Self {
        Self::with_report(Report::Later, max_count, max_bytes)
    }

    const fn with_report(report: Report, max_count: usize, max_bytes: usize) -> Self {
        Self {
            outputs: VecDeque::new(),
            taken: 0,
            droppable: Droppable::new(max_count, max_bytes),
            report,
            unreported: (0, 0),
            lost: (0, 0),
            closed: false,
        }
    }

    /// Adds an output, or counts it if it is droppable and there is no room for it. A report of
    /// another queue is added to the counts.
    pub fn push(&mut self, output: T) {
        match output.weight() {
            Weight::Notification(size) if self.closed || !self.droppable.enter(size) => return self.lose(1, 0),
            Weight::Diagnostic(size) if self.closed || !self.droppable.enter(size) => return self.lose(0, 1),
            Weight::Lost(notifications, diagnostics) => return self.lose(notifications, diagnostics),
            Weight::Notification(_) | Weight::Diagnostic(_) => self.report_lost(),
            Weight::Kept => {}
        }
        self.outputs.push_back(output);
    }

    /// Takes the next output.
    pub fn pop(&mut self) -> Option<T> {
        if self.outputs.is_empty() {
            self.report_lost();
        }
        let output = self.outputs.pop_front()?;
        match &mut self.report {
            Report::InPlace(waiting) if *waiting == Some(self.taken) => {
                *waiting = None;
                self.unreported = (0, 0);
            }
            Report::InPlace(_) | Report::Later => self.droppable.leave(output.weight()),
        }
        self.taken += 1;
        if self.outputs.is_empty() && self.outputs.capacity() > KEPT {
            self.outputs = VecDeque::new();
        }
        Some(output)
    }

    /// Returns the number of waiting outputs.
    pub fn len(&self) -> usize {
        self.outputs.len()
    }

    /// Returns whether no output waits.
    pub fn is_empty(&self) -> bool {
        self.outputs.is_empty()
    }

    /// Returns how many notifications and how many diagnostics were ever lost: those dropped here,
    /// and those that a report of another queue contained.
    pub fn lost(&self) -> (u64, u64) {
        self.lost
    }

    /// Returns the number of outputs that were taken.
    pub(crate) const fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns the number of outputs that were taken or wait.
    pub(crate) fn pushed(&self) -> u64 {
        self.taken + self.outputs.len() as u64
    }

    /// Adds the report of what was dropped, if it does not wait and anything was dropped.
    pub(crate) fn report_lost(&mut self) {
        match self.report {
            Report::InPlace(_) => {}
            Report::Later => {
                let (notifications, diagnostics) = take(&mut self.unreported);
                if (notifications, diagnostics) != (0, 0) {
                    self.outputs.push_back(T::lost(notifications, diagnostics));
                }
            }
        }
    }

    /// From now on, droppable outputs are dropped without a report.
    pub(crate) const fn close(&mut self) {
        self.closed = true;
    }

    fn lose(&mut self, notifications: u64, diagnostics: u64) {
        self.lost.0 += notifications;
        self.lost.1 += diagnostics;
        if self.closed {
            return;
        }
        self.unreported.0 += notifications;
        self.unreported.1 += diagnostics;
        let next = self.pushed();
        match &mut self.report {
            Report::InPlace(waiting) => {
                let report = T::lost(self.unreported.0, self.unreported.1);
                let place = waiting.and_then(|number| usize::try_from(number - self.taken).ok());
                match place.and_then(|place| self.outputs.get_mut(place)) {
                    Some(waiting) => *waiting = report,
                    None => {
                        *waiting = Some(next);
                        self.outputs.push_back(report);
                    }
                }
            }
            Report::Later => {}
        }
    }
}

/// The droppable outputs that wait, and their limit.
#[derive(Debug)]
struct Droppable {
    count: usize,
    bytes: usize,
    max_count: usize,
    max_bytes: usize,
}

impl Droppable {
    const fn new(max_count: usize, max_bytes: usize) -> Self {
        Self { count: 0, bytes: 0, max_count, max_bytes }
    }

    /// Counts an output of this size as waiting. Returns false if there is no room for it.
    const fn enter(&mut self, size: usize) -> bool {
        let bytes = self.bytes.saturating_add(size);
        if self.count >= self.max_count || bytes > self.max_bytes {
            return false;
        }
        self.count += 1;
        self.bytes = bytes;
        true
    }

    /// Removes an output of this weight from the counts.
    const fn leave(&mut self, weight: Weight) {
        match weight {
            Weight::Notification(size) | Weight::Diagnostic(size) => {
                self.count -= 1;
                self.bytes -= size;
            }
            Weight::Kept | Weight::Lost(..) => {}
        }
    }
}

/// Bytes that an event counts in addition to its texts.
pub(crate) const EVENT: usize = 256;

impl Weight {
    pub(crate) fn of_notification(method: &str, params: Option<&RawJson>) -> Self {
        Self::Notification(EVENT + method.len() + params.map_or(0, |params| params.as_bytes().len()))
    }

    pub(crate) fn of_diagnostic(diagnostic: &Diagnostic) -> Self {
        let last_event = diagnostic.stream.as_ref().and_then(|stream| stream.last_event.as_ref());
        Self::Diagnostic(EVENT + diagnostic.detail.len() + last_event.map_or(0, |id| id.len()))
    }
}

impl<E: Weigh> Weigh for Action<E> {
    fn weight(&self) -> Weight {
        match self {
            Self::Event(event) => event.weight(),
            // A server that closes its connections without end causes notices without end, and no
            // driver waits for them.
            Self::Notice(..) => Weight::Diagnostic(EVENT),
            Self::Open(..) | Self::Secure(..) | Self::Write(..) | Self::Read(..) | Self::Close(..) => Weight::Kept,
        }
    }

    fn lost(notifications: u64, diagnostics: u64) -> Self {
        Self::Event(E::lost(notifications, diagnostics))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::DiagnosticKind;
    use alloc::vec::Vec;

    #[derive(Clone, PartialEq, Debug)]
    enum Item {
        Note,
        Trouble,
        Kept,
        Lost(u64, u64),
    }
    use Item::{Kept, Lost, Note, Trouble};

    impl Weigh for Item {
        fn weight(&self) -> Weight {
            match self {
                Note => Weight::of_notification("m", None),
                Trouble => Weight::of_diagnostic(&Diagnostic::new(DiagnosticKind::BadEvent, "d")),
                Kept => Weight::Kept,
                Lost(notifications, diagnostics) => Weight::Lost(*notifications, *diagnostics),
            }
        }

        fn lost(notifications: u64, diagnostics: u64) -> Self {
            Lost(notifications, diagnostics)
        }
    }

    fn drained(queue: &mut EventQueue<Item>) -> Vec<Item> {
        core::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn report_takes_the_place_of_the_first_dropped_output() {
        let mut queue = EventQueue::new(1, usize::MAX);
        [Note, Note, Kept, Trouble, Note].into_iter().for_each(|item| queue.push(item));
        assert_eq!((queue.pop(), queue.pop()), (Some(Note), Some(Lost(2, 1))));
        queue.push(Note);
        queue.push(Trouble);
        assert_eq!(drained(&mut queue), [Kept, Note, Lost(0, 1)]);
        assert_eq!((queue.lost(), queue.is_empty()), ((2, 2), true));
    }

    #[test]
    fn reports_of_another_queue_are_added_up() {
        let mut queue = EventQueue::new(0, usize::MAX);
        [Lost(1, 2), Note, Lost(3, 4)].into_iter().for_each(|item| queue.push(item));
        assert_eq!(drained(&mut queue), [Lost(5, 6)]);
    }

    #[test]
    fn later_report_comes_before_the_next_droppable_output() {
        let mut queue = EventQueue::reporting_later(1, usize::MAX);
        [Note, Note, Kept, Trouble].into_iter().for_each(|item| queue.push(item));
        assert_eq!((queue.pop(), queue.pushed()), (Some(Note), 2));
        [Note, Note, Kept].into_iter().for_each(|item| queue.push(item));
        assert_eq!((queue.taken(), queue.pushed()), (1, 5));
        assert_eq!(drained(&mut queue), [Kept, Lost(1, 1), Note, Kept, Lost(1, 0)]);
    }

    #[test]
    fn closed_queue_drops_without_a_report() {
        let mut queue = EventQueue::reporting_later(1, usize::MAX);
        [Note, Note].into_iter().for_each(|item| queue.push(item));
        queue.report_lost();
        queue.push(Kept);
        queue.close();
        queue.push(Trouble);
        assert_eq!(drained(&mut queue), [Note, Lost(1, 0), Kept]);
    }

    #[test]
    fn empty_queue_keeps_little_of_a_burst() {
        let mut queue = EventQueue::new(0, 0);
        for count in [1, KEPT, 1000] {
            (0..count).for_each(|_| queue.push(Kept));
            assert_eq!(drained(&mut queue).len(), count);
            assert!(queue.outputs.capacity() <= KEPT);
        }
    }

    // covers: B-274
    #[test]
    fn waiting_outputs_are_limited_by_number_and_bytes() {
        let mut droppable = Droppable::new(3, 100);
        assert!(droppable.enter(60) && !droppable.enter(41) && droppable.enter(40));
        assert!(droppable.enter(0) && !droppable.enter(0), "the number");
        droppable.leave(Weight::Kept);
        droppable.leave(Weight::Lost(1, 1));
        assert!(!droppable.enter(0));
        droppable.leave(Weight::Notification(60));
        assert!(!droppable.enter(61) && droppable.enter(60));
        for size in [60, 40, 0] {
            droppable.leave(Weight::Diagnostic(size));
        }
        assert_eq!((droppable.count, droppable.bytes), (0, 0));
    }
}
