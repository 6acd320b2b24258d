//! Events that may be dropped where the application does not take them, and the bound on those that wait.

use crate::error::Diagnostic;
use crate::rpc::RawJson;

/// How an output behaves when the application does not take it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Weight {
    /// It is kept whatever happens.
    Kept,
    /// A notification that holds so many bytes. It may be counted instead.
    Notification(usize),
    /// A diagnostic, or an event that counts as one, that holds so many bytes. It may be counted instead.
    Diagnostic(usize),
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

/// The bound on outputs that wait and may be dropped: by their number, and by the bytes that they hold.
#[derive(Debug)]
pub(crate) struct Droppable {
    count: usize,
    bytes: usize,
    max_count: usize,
    max_bytes: usize,
}

impl Droppable {
    pub(crate) const fn new(max_count: usize, max_bytes: usize) -> Self {
        Self { count: 0, bytes: 0, max_count, max_bytes }
    }

    /// Counts an output that holds so many bytes as waiting. False if there is no room for it.
    pub(crate) const fn enter(&mut self, size: usize) -> bool {
        let bytes = self.bytes.saturating_add(size);
        if self.count >= self.max_count || bytes > self.max_bytes {
            return false;
        }
        self.count += 1;
        self.bytes = bytes;
        true
    }

    /// An output of this weight was taken.
    pub(crate) const fn leave(&mut self, weight: Weight) {
        match weight {
            Weight::Notification(size) | Weight::Diagnostic(size) => {
                self.count -= 1;
                self.bytes -= size;
            }
            Weight::Kept | Weight::Lost(..) => {}
        }
    }
}

/// What an event takes beside its texts.
pub(crate) const EVENT: usize = 256;

impl Weight {
    pub(crate) fn of_notification(method: &str, params: Option<&RawJson>) -> Self {
        Self::Notification(EVENT + method.len() + params.map_or(0, |params| params.as_bytes().len()))
    }

    pub(crate) const fn of_diagnostic(diagnostic: &Diagnostic) -> Self {
        Self::Diagnostic(EVENT + diagnostic.detail.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: B-274
    #[test]
    fn what_waits_is_bounded_by_number_and_by_bytes() {
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
