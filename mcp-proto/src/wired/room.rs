//! The budget of memory that the connections of one server share for requests that are not read to
//! their end. Each connection has a [`Reservation`] of the [`MemoryBudget`]. Whenever it has parsed
//! all it could, it sets the reservation to the bytes it holds. Dropping the reservation returns
//! all of them, however the connection ends. The counter is atomic: tasks own the connections, and
//! no task takes a lock for it.

use alloc::sync::Arc;
use core::mem;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that a connection may hold regardless of the others, so that the server still serves small
/// requests while a few large ones fill the budget.
const SMALL: usize = 64 << 10;

/// The budget of one server. Clones share it.
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
    /// Returns a budget of `most` bytes.
    pub(super) fn new(most: usize) -> Self {
        Self { held: Arc::default(), most }
    }

    /// Returns a reservation for one more connection, which holds nothing.
    pub(super) fn share(&self) -> Reservation {
        Reservation { room: self.clone(), held: 0 }
    }
}

impl Reservation {
    /// Sets the bytes that the connection now holds. Returns false if the additional bytes do not
    /// fit. They still count, until the connection has released them.
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

    /// Returns whether the connection may not hold any further byte.
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
