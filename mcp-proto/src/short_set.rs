//! A set that mostly has one element.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;

/// A set that mostly has one element at most, for which it needs no memory beside itself.
#[derive(Debug)]
pub(crate) struct ShortSet<T> {
    /// The smallest one.
    first: Option<T>,
    more: Option<Box<SetRest<T>>>,
}

/// The other elements.
#[derive(Debug)]
struct SetRest<T>(BTreeSet<T>);

impl<T: Copy + Ord> ShortSet<T> {
    pub(crate) const fn new() -> Self {
        Self { first: None, more: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Returns the smallest element.
    pub(crate) const fn first(&self) -> Option<T> {
        self.first
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.as_ref().map_or(0, |more| more.0.len())
    }

    pub(crate) fn insert(&mut self, element: T) {
        let first = *self.first.get_or_insert(element);
        if first != element {
            self.first = Some(first.min(element));
            let more = self.more.get_or_insert_with(|| Box::new(SetRest(BTreeSet::new())));
            more.0.insert(first.max(element));
        }
    }

    pub(crate) fn remove(&mut self, element: &T) {
        if self.first.as_ref() == Some(element) {
            self.first = self.more.as_mut().and_then(|more| more.0.pop_first());
        } else if let Some(more) = &mut self.more {
            more.0.remove(element);
        }
        self.more.take_if(|more| more.0.is_empty());
    }

    /// Returns the elements in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = T> {
        self.first.into_iter().chain(self.more.iter().flat_map(|more| more.0.iter().copied()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_as_any_set_and_keeps_no_memory(steps in proptest::collection::vec((any::<bool>(), 0..6_u8), 0..40)) {
            let (mut set, mut model) = (ShortSet::new(), BTreeSet::new());
            for (inserts, element) in steps {
                if inserts {
                    set.insert(element);
                    model.insert(element);
                } else {
                    set.remove(&element);
                    model.remove(&element);
                }
                prop_assert_eq!(set.iter().collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!((set.len(), set.is_empty()), (model.len(), model.is_empty()));
                prop_assert_eq!(set.first(), model.first().copied());
                prop_assert_eq!(set.more.is_some(), model.len() > 1);
            }
        }
    }
}
