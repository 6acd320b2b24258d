//! A queue that is mostly empty.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::mem;

/// A queue that mostly has one element at most, for which it needs no memory beside itself.
#[derive(Debug)]
pub(crate) struct ShortQueue<T> {
    front: Option<T>,
    more: Option<Box<QueueRest<T>>>,
}

/// The other elements.
#[derive(Debug)]
struct QueueRest<T>(VecDeque<T>);

impl<T> ShortQueue<T> {
    pub(crate) const fn new() -> Self {
        Self { front: None, more: None }
    }

    pub(crate) fn front(&self) -> Option<&T> {
        self.front.as_ref()
    }

    pub(crate) fn front_mut(&mut self) -> Option<&mut T> {
        self.front.as_mut()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.front.is_none()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.front.iter().chain(self.more.iter().flat_map(|more| &more.0))
    }

    pub(crate) fn push_back(&mut self, element: T) {
        match self.front {
            None => self.front = Some(element),
            Some(_) => self.more.get_or_insert_with(|| Box::new(QueueRest(VecDeque::new()))).0.push_back(element),
        }
    }

    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let next = self.more.as_mut().and_then(|more| more.0.pop_front());
        mem::replace(&mut self.front, next)
    }

    /// Keeps these elements only.
    pub(crate) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        if let Some(more) = &mut self.more {
            more.0.retain(&keep);
        }
        if self.front.as_ref().is_some_and(|front| !keep(front)) {
            self.pop_front();
        }
    }

    /// Gives back the memory of former elements.
    pub(crate) fn shrink(&mut self) {
        self.more.take_if(|more| more.0.is_empty());
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }
}

impl<T> Default for ShortQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Extend<T> for ShortQueue<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        elements.into_iter().for_each(|element| self.push_back(element));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_leave_in_order_and_a_shrunk_queue_keeps_nothing() {
        let mut queue = ShortQueue::new();
        for count in 1..5 {
            queue.extend(0..count);
            assert_eq!((queue.front(), queue.is_empty(), queue.more.is_some()), (Some(&0), false, count > 1));
            assert!(core::iter::from_fn(|| queue.pop_front()).eq(0..count));
            queue.shrink();
            assert!(queue.is_empty() && queue.more.is_none());
        }
        queue.extend(0..6);
        queue.shrink();
        queue.retain(|element| element % 3 == 1);
        assert!(core::iter::from_fn(|| queue.pop_front()).eq([1, 4]));
        queue.extend([1, 2]);
        queue.clear();
        assert_eq!(queue.pop_front(), None);
    }
}
