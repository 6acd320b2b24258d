//! The budget of memory that the connections of one server share for TLS handshakes that are not
//! complete, and for requests that are not read to their end. Each connection has a
//! [`Reservation`] of the [`MemoryBudget`]. Whenever it has parsed all it could, it sets the
//! reservation to the bytes it holds. Dropping the reservation returns all of them, however the
//! connection ends. The counter is atomic: tasks own the connections, and no task takes a lock for
//! it.

use alloc::sync::Arc;
use core::mem;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that a connection may hold regardless of the others, so that the server still serves small
/// requests while a few large ones fill the budget.
const SMALL: usize = 64 << 10;

/// Bytes that TLS holds on a connection until the handshake is complete, measured with rustls.
const HANDSHAKE: usize = 80 << 10;

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

/// The TLS handshakes of one address that are not complete.
#[derive(Clone, Debug, Default)]
pub(super) struct AddressHandshakes(Arc<AtomicUsize>);

/// The memory of a TLS handshake, from
/// [`SharedServer::begin_handshake`](super::SharedServer::begin_handshake). Dropping it returns the
/// memory to the budget of the server.
#[derive(Debug)]
pub struct HandshakeReservation {
    _memory: Reservation,
    of: Option<AddressHandshakes>,
}

impl AddressHandshakes {
    /// Returns whether one more handshake fits into this number of bytes. One always does.
    fn fits(&self, share: usize) -> bool {
        let begun = self.0.load(Ordering::Relaxed);
        begun == 0 || begun.saturating_add(1).saturating_mul(HANDSHAKE) <= share
    }
}

impl Drop for HandshakeReservation {
    fn drop(&mut self) {
        if let Some(AddressHandshakes(begun)) = &self.of {
            begun.fetch_sub(1, Ordering::Relaxed);
        }
    }
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

    /// Reserves the memory of a TLS handshake. `of` are those of its address, if the address
    /// distinguishes clients, and the bytes that they may hold together. `None` if there is no
    /// room. Call it under the lock of the server: it counts after it has compared.
    pub(super) fn handshake(&self, of: Option<(&AddressHandshakes, usize)>) -> Option<HandshakeReservation> {
        if of.is_some_and(|(begun, share)| !begun.fits(share)) {
            return None;
        }
        let mut memory = self.share();
        if !memory.hold(HANDSHAKE) {
            return None;
        }
        let of = of.map(|(begun, _)| begun.clone());
        if let Some(AddressHandshakes(begun)) = &of {
            begun.fetch_add(1, Ordering::Relaxed);
        }
        Some(HandshakeReservation { _memory: memory, of })
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

    // covers: B-187
    #[test]
    fn handshakes_take_room_until_they_are_dropped() {
        let room = MemoryBudget::new(4 * HANDSHAKE);
        let (greedy, modest) = (AddressHandshakes::default(), AddressHandshakes::default());
        let share = 2 * HANDSHAKE;
        let begun: Vec<_> = (0..9).filter_map(|_| room.handshake(Some((&greedy, share)))).collect();
        assert_eq!(begun.len(), 2, "an address has its share");
        let other = room.handshake(Some((&modest, share))).expect("another one has the rest");
        let anyone = room.handshake(None).expect("nor does one without an address");
        assert!(room.handshake(None).is_none() && room.handshake(Some((&modest, share))).is_none());
        // What they hold is missing for requests.
        let mut request = room.share();
        assert!(!request.hold(SMALL + 1) && request.hold(SMALL));
        drop((request, other, begun));
        assert!(room.handshake(Some((&greedy, 0))).is_some(), "one is always possible for an address");
        drop(anyone);
        assert_eq!(room.held.load(Ordering::Relaxed), 0);
        assert_eq!((greedy.0.load(Ordering::Relaxed), modest.0.load(Ordering::Relaxed)), (0, 0));
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
