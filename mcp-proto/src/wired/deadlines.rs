//! The deadlines of many connections, in their order: finding or arming one does not visit all of
//! them. This module fires nothing itself.

use crate::exchange::ConnectionId;
use crate::time::Instant;
use alloc::collections::{BTreeMap, BTreeSet};

/// At most one deadline for each connection.
#[derive(Debug)]
pub(super) struct Deadlines {
    order: BTreeSet<(Instant, ConnectionId)>,
    at: BTreeMap<ConnectionId, Instant>,
}

impl Deadlines {
    pub(super) const fn new() -> Self {
        Self { order: BTreeSet::new(), at: BTreeMap::new() }
    }

    /// Replaces the deadline of a connection.
    pub(super) fn set(&mut self, channel: ConnectionId, deadline: Option<Instant>) {
        let old = match deadline {
            Some(at) => self.at.insert(channel, at),
            None => self.at.remove(&channel),
        };
        if old == deadline {
            return;
        }
        if let Some(at) = old {
            self.order.remove(&(at, channel));
        }
        if let Some(at) = deadline {
            self.order.insert((at, channel));
        }
    }

    /// Returns the earliest deadline and its connection.
    pub(super) fn first(&self) -> Option<(Instant, ConnectionId)> {
        self.order.first().copied()
    }

    /// Returns the connection with the earliest deadline, if that is not after `now`.
    pub(super) fn due(&self, now: Instant) -> Option<ConnectionId> {
        self.order.first().filter(|(at, _)| *at <= now).map(|(_, channel)| *channel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_has_one_deadline_and_the_earliest_is_first() {
        let (a, b) = (ConnectionId(1), ConnectionId(2));
        let at = Instant::from_millis;
        let mut deadlines = Deadlines::new();
        deadlines.set(a, Some(at(5)));
        deadlines.set(b, Some(at(3)));
        deadlines.set(b, Some(at(9)));
        assert_eq!((deadlines.first(), deadlines.due(at(4)), deadlines.due(at(5))), (Some((at(5), a)), None, Some(a)));
        deadlines.set(a, None);
        assert_eq!(deadlines.first(), Some((at(9), b)));
        deadlines.set(b, None);
        assert_eq!(deadlines.first(), None);
    }
}
