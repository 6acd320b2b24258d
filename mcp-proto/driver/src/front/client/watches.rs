//! What the parts of an application watch, and what a client watches for all of them.

use alloc::collections::BTreeMap;
use mcp_proto::input::Watch;

/// Identifies what one part of an application watches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::front) struct WatchId(u64);

/// What each part of an application watches.
#[derive(Debug)]
pub(super) struct Watches {
    /// What the configuration of the client names. It never ends.
    configured: Watch,
    live: BTreeMap<WatchId, Watch>,
    last: u64,
}

impl Watches {
    pub(super) const fn new(configured: Watch) -> Self {
        Self { configured, live: BTreeMap::new(), last: 0 }
    }

    /// Returns everything that is watched, and `more`.
    pub(super) fn with(&self, more: &Watch) -> Watch {
        let mut all = self.configured.clone();
        self.live.values().chain([more]).for_each(|watch| all.add(watch));
        all
    }

    pub(super) fn insert(&mut self, watch: Watch) -> WatchId {
        self.last += 1;
        let id = WatchId(self.last);
        self.live.insert(id, watch);
        id
    }

    /// Removes what one part watches. Returns what is still watched. `None` if there was nothing to
    /// remove.
    pub(super) fn remove(&mut self, id: WatchId) -> Option<Watch> {
        self.live.remove(&id)?;
        Some(self.with(&Watch::new()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_union_of_what_is_watched_shrinks_with_its_parts() {
        let mut watches = Watches::new(Watch::new().with_tools());
        let (a, b) = (Watch::new().with_uri("a").with_prompts(), Watch::new().with_uri("a").with_uri("b"));
        assert_eq!(watches.with(&a), a.clone().with_tools());
        let first = watches.insert(a.clone());
        let second = watches.insert(b.clone());
        assert_eq!(watches.with(&Watch::new()), a.with_tools().with_uri("b"));
        assert_eq!(watches.remove(first), Some(b.with_tools()));
        assert_eq!(watches.remove(first), None);
        assert_eq!(watches.remove(second), Some(Watch::new().with_tools()));
    }
}
