//! How much of half-read requests the connections of one server hold together. Each connection has a [`Reservation`] of the [`MemoryBudget`], sets it to what it
//! holds whenever it has read and understood all it could, and gives all of it back when it is dropped, however it ends. The count belongs
//! to nobody: connections are owned by tasks, and no lock is taken for it.

use alloc::sync::Arc;
use core::mem;
use core::sync::atomic::{AtomicUsize, Ordering};

/// What a connection may hold whatever the others do, so that small requests are served while a few large ones fill the room.
const SMALL: usize = 64 << 10;

/// The room of one server. Clones are the same room.
#[derive(Clone, Debug)]
pub(super) struct MemoryBudget {
    held: Arc<AtomicUsize>,
    most: usize,
}

/// The part of a [`MemoryBudget`] that one connection holds.
#[derive(Debug)]
pub(super) struct Reservation {
    room: MemoryBudget,
    held: usize,
}

impl MemoryBudget {
    /// MemoryBudget for so many bytes.
    pub(super) fn new(most: usize) -> Self {
        Self { held: Arc::default(), most }
    }

    /// A share for one more connection, which holds nothing.
    pub(super) fn share(&self) -> Reservation {
        Reservation { room: self.clone(), held: 0 }
    }
}

impl Reservation {
    /// Its connection now holds so many bytes. False: what came on top does not fit. It is counted all the same, until the connection has let go of it.
    pub(super) fn hold(&mut self, bytes: usize) -> bool {
        let before = mem::replace(&mut self.held, bytes);
        if bytes <= before {
            self.room.held.fetch_sub(before - bytes, Ordering::Relaxed);
            return true;
        }
        let more = bytes - before;
        let all = self.room.held.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        bytes <= SMALL || all <= self.room.most
    }

    /// Whether its connection may not hold a byte more.
    pub(super) fn is_full(&self) -> bool {
        self.held > SMALL && self.room.held.load(Ordering::Relaxed) >= self.room.most
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.hold(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn what_a_share_holds_is_counted_until_it_is_let_go_or_dropped() {
        let room = MemoryBudget::new(3 * SMALL);
        let held = || room.held.load(Ordering::Relaxed);
        let (mut first, mut second) = (room.share(), room.share());
        assert!(first.hold(2 * SMALL) && !first.is_full());
        assert!(second.hold(SMALL) && !second.is_full());
        assert!(first.is_full(), "not one byte more");
        assert!(!second.hold(SMALL + 1) && second.is_full());
        assert_eq!(held(), 3 * SMALL + 1, "it is there until it is let go");
        assert!(second.hold(SMALL));
        assert!(first.hold(2 * SMALL), "what is there already is not refused");
        drop(first);
        assert_eq!(held(), SMALL);
        assert!(second.hold(3 * SMALL));
        assert!(second.hold(0));
        assert_eq!(held(), 0);
    }

    #[test]
    fn little_is_always_held() {
        let room = MemoryBudget::new(0);
        let mut shares: Vec<Reservation> = (0..10).map(|_| room.share()).collect();
        assert!(shares.iter_mut().all(|share| share.hold(SMALL) && !share.is_full()));
        assert!(!shares[0].hold(SMALL + 1));
        drop(shares);
        assert_eq!(room.held.load(Ordering::Relaxed), 0);
    }
}
