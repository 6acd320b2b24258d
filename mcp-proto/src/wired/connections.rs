//! The connections of one engine that runs in one thread: their deadlines, and which of them have
//! events that the engine has not handled. No engine and no pool.

use super::Connection;
use crate::exchange::{ConnectionId, ExchangeEvent, ExchangeId, IoEvent};
use crate::short_map::ShortMap;
use crate::short_set::ShortSet;
use crate::time::{Instant, Timers};
use alloc::boxed::Box;

/// Connections, each with what its owner keeps for it.
#[derive(Debug)]
pub(super) struct Connections<T> {
    /// Boxed, since a node of the map is half empty.
    entries: ShortMap<ConnectionId, Box<ConnectionEntry<T>>>,
    /// At most one for each connection.
    deadlines: Timers<ConnectionId>,
    /// Connections that changed since the engine handled their events.
    changed: ShortSet<ConnectionId>,
}

/// One connection.
#[derive(Debug)]
pub(super) struct ConnectionEntry<T> {
    pub(super) connection: Connection,
    pub(super) data: T,
}

impl<T> Connections<T> {
    pub(super) fn new() -> Self {
        Self { entries: ShortMap::new(), deadlines: Timers::default(), changed: ShortSet::new() }
    }

    /// Adds a connection, as changed.
    pub(super) fn insert(&mut self, id: ConnectionId, connection: Connection, data: T) {
        self.entries.insert(id, Box::new(ConnectionEntry { connection, data }));
        self.changed.insert(id);
    }

    /// Removes a closed connection.
    pub(super) fn remove(&mut self, id: ConnectionId) {
        self.deadlines.set(id, None);
        self.entries.remove(&id);
    }

    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut ConnectionEntry<T>> {
        self.entries.get_mut(&id).map(|entry| &mut **entry)
    }

    /// Returns a connection to change it.
    pub(super) fn change(&mut self, id: ConnectionId) -> Option<&mut ConnectionEntry<T>> {
        let entry = self.entries.get_mut(&id)?;
        self.changed.insert(id);
        Some(entry)
    }

    /// Passes an event to a connection, unless the connection no longer exists.
    pub(super) fn handle_io(&mut self, now: Instant, id: ConnectionId, event: IoEvent) {
        if let Some(entry) = self.change(id) {
            entry.connection.handle_io(now, event);
        }
    }

    /// Returns the first connection that changed.
    pub(super) fn changed(&self) -> Option<ConnectionId> {
        self.changed.first()
    }

    /// Takes the next event of a connection. After the last one the connection counts as unchanged.
    pub(super) fn poll_event(&mut self, id: ConnectionId) -> Option<(ExchangeId, ExchangeEvent)> {
        let event = self.entries.get_mut(&id).and_then(|entry| entry.connection.poll_event());
        if event.is_none() {
            self.changed.remove(&id);
        }
        event
    }

    /// Updates the timer of a connection.
    pub(super) fn arm(&mut self, id: ConnectionId) {
        let Some(entry) = self.entries.get(&id) else { return };
        let connection = &entry.connection;
        self.deadlines.set(id, connection.poll_timeout().filter(|_| !connection.is_closed()));
    }

    /// Fires the timer that is due first, up to `now`. Returns whether there was one.
    pub(super) fn fire(&mut self, now: Instant, due: Instant) -> bool {
        let Some(id) = self.deadlines.pop_due(due) else { return false };
        if let Some(entry) = self.change(id) {
            entry.connection.handle_timeout(now);
        }
        true
    }

    /// Returns the earliest deadline.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.next().map(|(at, _)| at)
    }

    /// Returns the earliest deadline and its connection.
    pub(super) fn first_timeout(&self) -> Option<(Instant, ConnectionId)> {
        self.deadlines.next()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ConnectionEntry<T>> {
        self.entries.values().map(|entry| &**entry)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = ConnectionId> + use<'_, T> {
        self.entries.keys().copied()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
