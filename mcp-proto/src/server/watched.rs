//! The resources that clients watch: who watches each, and the updates that wait for room.

use super::keys::SessionRef;
use crate::input::RequestKey;
use crate::short_set::ShortSet;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A client that watches resources.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Watcher {
    /// In a session of an older revision.
    Session(SessionRef),
    /// With a subscription of 2026-07-28.
    Listen(RequestKey),
}

/// The watchers of every watched resource.
#[derive(Debug, Default)]
pub(super) struct WatchIndex(BTreeMap<Arc<str>, ShortSet<Watcher>>);

/// The resources that one client watches.
#[derive(Debug, Default)]
pub(super) struct WatchedResources {
    uris: BTreeSet<Arc<str>>,
    /// The updates that the client was not notified of.
    updates: BTreeSet<Arc<str>>,
    /// The memory of the URIs, in bytes, as estimated.
    weight: usize,
}

impl WatchIndex {
    /// Adds a watcher of a resource. Returns the URI, which all its watchers share.
    fn insert(&mut self, uri: &str, watcher: Watcher) -> Arc<str> {
        let shared = self.0.get_key_value(uri).map_or_else(|| Arc::from(uri), |(shared, _)| Arc::clone(shared));
        self.0.entry(Arc::clone(&shared)).or_insert_with(ShortSet::new).insert(watcher);
        shared
    }

    fn remove(&mut self, uri: &str, watcher: Watcher) {
        let Some(watchers) = self.0.get_mut(uri) else { return };
        watchers.remove(&watcher);
        if watchers.is_empty() {
            self.0.remove(uri);
        }
    }

    /// Removes a client that watches no more.
    pub(super) fn forget(&mut self, watched: &WatchedResources, watcher: Watcher) {
        watched.uris.iter().for_each(|uri| self.remove(uri, watcher));
    }

    /// Returns the clients that watch a resource, or one that it is a part of, with the URI that
    /// they watch.
    pub(super) fn of(&self, uri: &str) -> Vec<(Watcher, Arc<str>)> {
        let mut found = Vec::new();
        for whole in wholes(uri) {
            if let Some((shared, watchers)) = self.0.get_key_value(whole) {
                found.extend(watchers.iter().map(|watcher| (watcher, Arc::clone(shared))));
            }
        }
        found
    }

    /// Returns the URIs that are watched.
    pub(super) fn uris(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|uri| &**uri)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the URI itself and the URIs that contain it: those that it continues after a `/`, and
/// the one whose fragment it names (RFC 3986 sections 1.2.3 and 3.5).
fn wholes(uri: &str) -> impl Iterator<Item = &str> {
    let ends = uri.bytes().enumerate().flat_map(|(at, byte)| match byte {
        b'/' => [Some(at), Some(at + 1)],
        b'#' => [Some(at), None],
        _ => [None, None],
    });
    let mut last = usize::MAX;
    let ends = ends.flatten().filter(move |end| core::mem::replace(&mut last, *end) != *end && *end < uri.len());
    ends.map(|end| &uri[..end]).chain([uri])
}

impl WatchedResources {
    pub(super) fn len(&self) -> usize {
        self.uris.len()
    }

    pub(super) fn uris(&self) -> impl Iterator<Item = &str> {
        self.uris.iter().map(|uri| &**uri)
    }

    pub(super) fn contains(&self, uri: &str) -> bool {
        self.uris.contains(uri)
    }

    /// Returns the memory of the URIs, in bytes, as estimated.
    pub(super) const fn weight(&self) -> usize {
        self.weight
    }

    pub(super) fn insert(&mut self, index: &mut WatchIndex, uri: &str, watcher: Watcher, weight: usize) {
        if self.uris.insert(index.insert(uri, watcher)) {
            self.weight += weight;
        }
    }

    /// Removes a URI, and the updates that wait for it. Returns whether it was watched.
    pub(super) fn remove(&mut self, index: &mut WatchIndex, uri: &str, watcher: Watcher, weight: usize) -> bool {
        let was_watched = self.uris.remove(uri);
        if was_watched {
            index.remove(uri, watcher);
            self.weight -= weight;
            let uris = &self.uris;
            self.updates.retain(|update| wholes(update).any(|whole| uris.contains(whole)));
        }
        was_watched
    }

    /// A resource has changed, which is `watched` or a part of it. Beyond `max` updates, this one
    /// is merged into an update of `watched`.
    pub(super) fn mark(&mut self, changed: &Arc<str>, watched: &Arc<str>, max: usize) {
        let is_merged = self.updates.len() >= max && !self.updates.contains(changed);
        self.updates.insert(Arc::clone(if is_merged { watched } else { changed }));
    }

    /// Returns an update that the client was not notified of.
    pub(super) fn update(&self) -> Option<&Arc<str>> {
        self.updates.first()
    }

    /// The client was notified of the update that [`update`](Self::update) returns.
    pub(super) fn told(&mut self) {
        self.updates.pop_first();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: SUB-S-016
    #[test]
    fn a_resource_is_a_part_of_those_that_its_path_continues() {
        let all = |uri| wholes(uri).collect::<Vec<_>>();
        assert_eq!(all("a:b"), ["a:b"]);
        assert_eq!(all("a:/b/c#d"), ["a:", "a:/", "a:/b", "a:/b/", "a:/b/c", "a:/b/c#d"]);
        assert_eq!(all("a://b"), ["a:", "a:/", "a://", "a://b"]);
        assert_eq!(all("a:/b/"), ["a:", "a:/", "a:/b", "a:/b/"]);
        assert_eq!(all(""), [""]);
    }
}
