//! A table whose entries expire.

use crate::time::Instant;
use alloc::collections::{BTreeMap, BTreeSet};

/// The SHA-256 of what an entry is about. A table holds no token.
pub(super) type Digest = [u8; 32];

/// A table with a limited number of entries, each with a time at which it expires. In a full table
/// a new entry replaces the one that expires first.
#[derive(Debug)]
pub(super) struct ExpiringTable<T> {
    max: usize,
    entries: BTreeMap<Digest, (Instant, T)>,
    due: BTreeSet<(Instant, Digest)>,
}

impl<T> ExpiringTable<T> {
    /// A table with at most this number of entries.
    pub(super) const fn new(max: usize) -> Self {
        Self { max, entries: BTreeMap::new(), due: BTreeSet::new() }
    }

    /// Returns an entry that has not expired.
    pub(super) fn get(&self, now: Instant, digest: &Digest) -> Option<&T> {
        self.entries.get(digest).filter(|(until, _)| *until > now).map(|(_, value)| value)
    }

    /// Adds an entry, or replaces the one with this digest.
    pub(super) fn insert(&mut self, now: Instant, digest: Digest, until: Instant, value: T) {
        self.purge(now);
        self.remove(&digest);
        if self.entries.len() >= self.max
            && let Some((_, first)) = self.due.pop_first()
        {
            self.entries.remove(&first);
        }
        self.due.insert((until, digest));
        self.entries.insert(digest, (until, value));
    }

    /// Removes what has expired.
    pub(super) fn purge(&mut self, now: Instant) {
        while let Some((until, digest)) = self.due.first().copied()
            && until <= now
        {
            self.due.remove(&(until, digest));
            self.entries.remove(&digest);
        }
    }

    /// Removes the entries for which this does not hold.
    pub(super) fn retain(&mut self, holds: impl Fn(&T) -> bool) {
        let due = &mut self.due;
        self.entries.retain(|digest, (until, value)| {
            let stays = holds(value);
            if !stays {
                due.remove(&(*until, *digest));
            }
            stays
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn remove(&mut self, digest: &Digest) {
        if let Some((until, _)) = self.entries.remove(digest) {
            self.due.remove(&(until, *digest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Instant {
        Instant::from_millis(seconds * 1000)
    }

    #[test]
    fn entry_lasts_until_it_expires() {
        let mut table = ExpiringTable::new(8);
        table.insert(at(0), [1; 32], at(10), 'a');
        table.insert(at(0), [2; 32], at(5), 'b');
        assert_eq!((table.get(at(4), &[1; 32]), table.get(at(4), &[2; 32])), (Some(&'a'), Some(&'b')));
        assert_eq!((table.get(at(5), &[1; 32]), table.get(at(5), &[2; 32])), (Some(&'a'), None));
        // A later entry with the same digest replaces the time, too.
        table.insert(at(5), [1; 32], at(20), 'c');
        table.purge(at(10));
        assert_eq!(table.get(at(19), &[1; 32]), Some(&'c'));
        table.purge(at(20));
        assert!(table.is_empty() && table.due.is_empty());
    }

    #[test]
    fn full_table_drops_what_expires_first() {
        let mut table = ExpiringTable::new(2);
        for (digest, until) in [(1, 30), (2, 10), (3, 20)] {
            table.insert(at(0), [digest; 32], at(until), digest);
        }
        assert_eq!([1, 2, 3].map(|digest| table.get(at(0), &[digest; 32]).copied()), [Some(1), None, Some(3)]);
        table.retain(|value| *value == 3);
        assert_eq!((table.entries.len(), table.due.len()), (1, 1));
    }
}
