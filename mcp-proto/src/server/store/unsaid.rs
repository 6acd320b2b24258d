//! What a node has to say to all others, and the store has not got yet.

use super::News;
use crate::input::Change;
use alloc::collections::{BTreeMap, BTreeSet};

/// The memory of one of the news beside its text, in bytes, as estimated.
const OVERHEAD: usize = 64;

/// News in the order in which they are said: revocations before all others. Nothing is in it twice.
#[derive(Debug, Default)]
pub(super) struct Unsaid {
    /// By whether it can wait, and its number.
    order: BTreeMap<(bool, u64), News>,
    all: BTreeSet<News>,
    last: u64,
    bytes: usize,
}

impl Unsaid {
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Adds what is to be said. Without room for a change, everything counts as changed. Returns
    /// false if it is something else, and there is no room for it.
    pub(super) fn add(&mut self, news: News, max: usize, max_bytes: usize) -> bool {
        let is_full =
            |unsaid: &Self, news: &News| unsaid.len() >= max || unsaid.bytes.saturating_add(size(news)) > max_bytes;
        if self.all.contains(&news) {
            return true;
        }
        if is_full(self, &news) || self.all.contains(&News::ChangedAll) && is_change(&news) {
            self.merge_changes();
            if is_change(&news) {
                return true;
            }
            if is_full(self, &news) {
                return false;
            }
        }
        self.push(news);
        true
    }

    /// Takes what is to be said next.
    pub(super) fn take(&mut self) -> Option<News> {
        let (_, news) = self.order.pop_first()?;
        self.all.remove(&news);
        self.bytes -= size(&news);
        Some(news)
    }

    fn push(&mut self, news: News) {
        self.last += 1;
        self.bytes += size(&news);
        self.all.insert(news.clone());
        self.order.insert((!matches!(news, News::Revoked(_)), self.last), news);
    }

    /// Everything counts as changed, instead of single changes.
    fn merge_changes(&mut self) {
        let is_kept = |news: &News| !is_change(news) || *news == News::ChangedAll;
        self.order.retain(|_, news| is_kept(news));
        self.all.retain(is_kept);
        self.bytes = self.order.values().map(size).sum();
        if !self.all.contains(&News::ChangedAll) {
            self.push(News::ChangedAll);
        }
    }
}

/// Returns whether [`News::ChangedAll`] contains these news.
const fn is_change(news: &News) -> bool {
    matches!(news, News::Changed(_) | News::Session(_) | News::ChangedAll)
}

/// Returns the memory of news, in bytes, as estimated.
fn size(news: &News) -> usize {
    let text = match news {
        News::Revoked(principal) => principal.0.len(),
        News::Elicited(id) => id.len(),
        News::Changed(Change::Resource(uri)) => uri.len(),
        News::Changed(Change::Tools | Change::Prompts | Change::Resources)
        | News::ChangedAll
        | News::Closed(_)
        | News::Session(_)
        | News::Task(_) => 0,
    };
    text + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Principal;
    use crate::server::store::TaskDigest;
    use alloc::vec;
    use alloc::vec::Vec;

    fn task(nth: u8) -> News {
        News::Task(TaskDigest([nth; 32]))
    }

    #[test]
    fn news_leave_in_their_order_after_revocations() {
        let mut unsaid = Unsaid::default();
        let revoked = News::Revoked(Principal("ada".into()));
        for news in [task(2), News::Changed(Change::Tools), task(1), task(2), revoked.clone()] {
            assert!(unsaid.add(news, 10, 1000));
        }
        let taken: Vec<News> = core::iter::from_fn(|| unsaid.take()).collect();
        assert_eq!(taken, [revoked, task(2), News::Changed(Change::Tools), task(1)]);
        assert_eq!((unsaid.len(), unsaid.bytes), (0, 0));
    }

    #[test]
    fn changes_without_room_become_one() {
        let mut unsaid = Unsaid::default();
        assert!(unsaid.add(task(1), 3, 1000) && unsaid.add(News::Changed(Change::Tools), 3, 1000));
        assert!(unsaid.add(News::Changed(Change::Prompts), 3, 1000));
        // Everything counts as changed, and another task has room.
        assert!(unsaid.add(News::Changed(Change::Resources), 3, 1000) && unsaid.add(task(2), 3, 1000));
        assert!(!unsaid.add(task(3), 3, 1000));
        let taken: Vec<News> = core::iter::from_fn(|| unsaid.take()).collect();
        assert_eq!(taken, vec![task(1), News::ChangedAll, task(2)]);
    }
}
