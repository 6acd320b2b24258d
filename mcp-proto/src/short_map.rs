//! A map that mostly has one entry.

use alloc::collections::BTreeMap;
use core::mem;

/// A map that mostly has one entry at most, which is found without a search.
#[derive(Debug)]
pub(crate) struct ShortMap<K, V> {
    /// The one with the smallest key.
    first: Option<(K, V)>,
    more: BTreeMap<K, V>,
}

impl<K: Ord, V> ShortMap<K, V> {
    pub(crate) const fn new() -> Self {
        Self { first: None, more: BTreeMap::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        match &mut self.first {
            Some(first) if key < first.0 => {
                let (key, value) = mem::replace(first, (key, value));
                self.more.insert(key, value);
            }
            Some(first) if key > first.0 => drop(self.more.insert(key, value)),
            first => *first = Some((key, value)),
        }
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        match &mut self.first {
            Some(first) if first.0 == *key => {
                mem::replace(&mut self.first, self.more.pop_first()).map(|(_, value)| value)
            }
            Some(_) => self.more.remove(key),
            None => None,
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }

    pub(crate) fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        match &self.first {
            Some(first) if first.0 == *key => Some(&first.1),
            Some(_) => self.more.get(key),
            None => None,
        }
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        match &mut self.first {
            Some(first) if first.0 == *key => Some(&mut first.1),
            Some(_) => self.more.get_mut(key),
            None => None,
        }
    }

    /// Returns the entries, in the order of their keys.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.first.iter().map(|(key, value)| (key, value)).chain(&self.more)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }
}

impl<K: Ord, V> Default for ShortMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_as_any_map(steps in proptest::collection::vec((any::<bool>(), 0..6_u8, any::<u8>()), 0..40)) {
            let (mut map, mut model) = (ShortMap::new(), BTreeMap::new());
            for (inserts, key, value) in steps {
                if inserts {
                    map.insert(key, value);
                    model.insert(key, value);
                } else {
                    prop_assert_eq!(map.remove(&key), model.remove(&key));
                }
                prop_assert_eq!(map.get(&key), model.get(&key));
                prop_assert_eq!(map.get_mut(&key), model.get_mut(&key));
                prop_assert_eq!(map.contains_key(&key), model.contains_key(&key));
                prop_assert!(map.iter().eq(&model) && map.iter().rev().eq(model.iter().rev()));
                prop_assert!(map.keys().eq(model.keys()) && map.values().eq(model.values()));
                prop_assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
            }
            map.clear();
            prop_assert_eq!(map.iter().collect::<Vec<_>>(), []);
        }
    }
}
