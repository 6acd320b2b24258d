//! The stored results, within their bounds. The first to go is the one that was not used for the
//! longest time.

use crate::call::RawResult;
use crate::input::CallId;
use crate::rpc::RawJson;
use crate::time::Instant;
use crate::version::ProtocolVersion;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Bound;

/// Bytes of a result that count beside its text and its key: those of the tables that hold it.
const OVERHEAD: usize = 256;

/// The stored results.
#[derive(Debug)]
pub(super) struct Entries {
    map: BTreeMap<Arc<[u8]>, Slot>,
    /// Their keys, in the order in which they were last used.
    order: BTreeMap<u64, Arc<[u8]>>,
    used: u64,
    bytes: usize,
    evicted: u64,
    max_entries: usize,
    max_bytes: usize,
}

#[derive(Debug)]
struct Slot {
    entry: Entry,
    /// The place in `order`.
    place: u64,
    size: usize,
}

/// A stored result.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) json: RawJson,
    pub(super) version: ProtocolVersion,
    pub(super) received: Instant,
    /// The end of its freshness.
    pub(super) until: Instant,
    /// Whether it is only for the credentials with which it was fetched.
    pub(super) is_private: bool,
    /// The call that fetched it.
    pub(super) call: CallId,
    /// The state of the client's knowledge of tools in which it has learned from this result.
    pub(super) learned: u64,
}

impl Entry {
    pub(super) fn result(&self, now: Instant) -> RawResult {
        RawResult { age: Some(now - self.received), ..RawResult::new(self.json.clone(), self.version) }
    }
}

impl Entries {
    pub(super) const fn new(max_entries: usize, max_bytes: usize) -> Self {
        Self { map: BTreeMap::new(), order: BTreeMap::new(), used: 0, bytes: 0, evicted: 0, max_entries, max_bytes }
    }

    pub(super) fn len(&self) -> usize {
        self.map.len()
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of results that were dropped to make room.
    pub(super) const fn evicted(&self) -> u64 {
        self.evicted
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.map.get(key).map(|stored| &stored.entry)
    }

    /// Returns a result that is used now.
    pub(super) fn touch(&mut self, key: &[u8]) -> Option<&mut Entry> {
        let stored = self.map.get_mut(key)?;
        self.used += 1;
        if let Some(key) = self.order.remove(&stored.place) {
            self.order.insert(self.used, key);
        }
        stored.place = self.used;
        Some(&mut stored.entry)
    }

    /// Stores a result of this size, and makes room for it. Does nothing if there is not enough.
    pub(super) fn put(&mut self, key: &[u8], size: usize, entry: impl FnOnce() -> Entry) {
        let size = size.saturating_add(OVERHEAD);
        if size > self.max_bytes || self.max_entries == 0 {
            return;
        }
        self.remove(key);
        while self.map.len() >= self.max_entries || self.bytes > self.max_bytes - size {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            self.remove(&oldest);
            self.evicted += 1;
        }
        self.used += 1;
        self.bytes += size;
        let key: Arc<[u8]> = key.into();
        self.order.insert(self.used, Arc::clone(&key));
        self.map.insert(key, Slot { entry: entry(), place: self.used, size });
    }

    pub(super) fn remove(&mut self, key: &[u8]) {
        if let Some(stored) = self.map.remove(key) {
            self.order.remove(&stored.place);
            self.bytes -= stored.size;
        }
    }

    /// Removes those with a key that begins like this, and for which this returns true.
    pub(super) fn drop_where(&mut self, start: &[u8], is_dropped: impl Fn(&[u8], &Entry) -> bool) {
        let from = self.map.range::<[u8], _>((Bound::Included(start), Bound::Unbounded));
        let of_start = from.take_while(|(key, _)| key.starts_with(start));
        let dropped = of_start.filter(|(key, stored)| is_dropped(key, &stored.entry));
        let dropped: Vec<Arc<[u8]>> = dropped.map(|(key, _)| Arc::clone(key)).collect();
        dropped.iter().for_each(|key| self.remove(key));
    }
}
