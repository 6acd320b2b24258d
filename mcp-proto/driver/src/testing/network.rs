//! All connections between the two sides. It moves bytes and decides nothing.

use super::connection::{ConnectionEvent, LinkConnection, Path};
use super::log::{LinkSide, Log};
use alloc::collections::{BTreeMap, VecDeque};
use mcp_proto::exchange::{ConnectionId, Endpoint};
use mcp_proto::time::{Instant, earliest};
use mcp_proto::wired::ConnectionOutput;

/// The connections, by the id that the client gave them.
#[derive(Debug, Default)]
pub(super) struct Network {
    pub(super) path: Path,
    connections: BTreeMap<ConnectionId, LinkConnection>,
    /// The client's id for each id of the server.
    accepted: BTreeMap<ConnectionId, ConnectionId>,
    /// The last events of connections that were cut, with the client's id.
    cut: VecDeque<(ConnectionId, ConnectionEvent)>,
}

impl Network {
    /// Begins to open a connection.
    pub(super) fn open(&mut self, now: Instant, id: ConnectionId, endpoint: &Endpoint) {
        self.connections.insert(id, LinkConnection::new(now, id, endpoint, self.path));
    }

    /// Adds the server's end of the connection that the client calls `client`.
    pub(super) fn accepted(&mut self, client: ConnectionId, server: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&client) {
            connection.accepted(server);
            self.accepted.insert(server, client);
        }
    }

    /// Carries out an action of the engine of one side. Does nothing if the connection is closed.
    pub(super) fn act(
        &mut self,
        now: Instant,
        side: LinkSide,
        id: ConnectionId,
        output: ConnectionOutput,
        log: &mut Log,
    ) {
        let client = match side {
            LinkSide::Client => Some(id),
            LinkSide::Server => self.accepted.get(&id).copied(),
        };
        if let Some(connection) = client.and_then(|client| self.connections.get_mut(&client)) {
            connection.act(now, side, output, log);
        }
    }

    /// Lets the next thing happen, and returns it with the client's id of its connection. `None` if
    /// nothing happens at this instant.
    pub(super) fn step(&mut self, now: Instant, log: &mut Log) -> Option<(ConnectionId, ConnectionEvent)> {
        if let Some(last) = self.cut.pop_front() {
            return Some(last);
        }
        let path = self.path;
        let found = self
            .connections
            .iter_mut()
            .find_map(|(id, connection)| connection.step(now, path, log).map(|event| (*id, event)));
        if let Some((id, _)) = &found
            && self.connections.get(id).is_some_and(LinkConnection::is_over)
            && let Some(server) = self.connections.remove(id).and_then(|connection| connection.id(LinkSide::Server))
        {
            self.accepted.remove(&server);
        }
        found
    }

    /// Breaks every connection.
    pub(super) fn cut(&mut self) {
        self.accepted.clear();
        for (id, connection) in core::mem::take(&mut self.connections) {
            self.cut.extend(connection.cut().map(|last| (id, last)));
        }
    }

    /// Returns when the next thing happens by itself.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let timeouts = self.connections.values().map(|connection| connection.poll_timeout(self.path));
        timeouts.fold(None, earliest)
    }
}
