//! A server with separate connections, as in an adapter with many tasks: the messages and aborts of
//! the engine are visible.

use super::super::is_refused;
use super::said::Said;
use mcp_proto::Instant;
use mcp_proto::exchange::{Closed, IoEvent};
use mcp_proto::input::{Input, WiredServerInput};
use mcp_proto::server::{Event, ServerCommands, ServerConfig};
use mcp_proto::wired::{Connection, Kind, Mail, SharedServer};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A server and its connections, apart.
pub struct Apart {
    server: SharedServer,
    connections: BTreeMap<u64, Connection>,
    /// The sent and aborted items that were not taken yet.
    mail: VecDeque<Mail>,
}

impl Apart {
    /// A server without connections.
    pub fn new(config: Arc<ServerConfig>, seed: [u8; 32], now: Instant) -> Self {
        let server = SharedServer::new(config, seed, now);
        Self { server, connections: BTreeMap::new(), mail: VecDeque::new() }
    }

    /// A connection, by its number. `None` if the server refuses it.
    pub fn accept(&mut self, now: Instant, kind: Kind) -> Option<u64> {
        let mut connection = self.server.accept(now, kind, Default::default());
        let number = connection.number();
        if is_refused(number) {
            connection.handle_io(now, IoEvent::Closed(Closed::Aborted));
            drop(self.server.exchange(now, connection.take_turn()));
            return None;
        }
        self.connections.insert(number, connection);
        self.settle(now, number);
        Some(number)
    }

    /// Applies an input to the server, or to one of its connections.
    pub fn input(&mut self, now: Instant, input: WiredServerInput) {
        match input {
            Input::Event(number, wire) => {
                let closed = matches!(wire, IoEvent::Closed(_));
                let Some(connection) = self.connections.get_mut(&number.0) else { return };
                connection.handle_io(now, wire);
                self.settle(now, number.0);
                if closed {
                    self.connections.remove(&number.0);
                }
            }
            Input::Tick => {
                let due = |(number, connection): (&u64, &Connection)| {
                    connection.poll_timeout().filter(|at| *at <= now).map(|_| *number)
                };
                for number in self.connections.iter().filter_map(due).collect::<Vec<_>>() {
                    if let Some(connection) = self.connections.get_mut(&number) {
                        connection.handle_timeout(now);
                    }
                    self.settle(now, number);
                }
                self.server.handle_timeout(now);
            }
            Input::Command(command) => drop(self.server.act(now, command)),
        }
        self.settle_all(now);
    }

    /// Returns the next event. Earlier messages and aborts are added to `said`.
    pub fn poll(&mut self, now: Instant, said: &mut Said) -> Option<Event> {
        self.settle_all(now);
        for mail in self.mail.drain(..) {
            match &mail {
                Mail::Send(exchange, outgoing) => said.send(exchange.0, outgoing),
                Mail::Abort(exchange) => said.abort(exchange.0),
                Mail::Close | Mail::Terminate => {}
            }
        }
        let event = self.server.poll_event()?;
        said.event_of_server(&event);
        match event {
            // The log names an admission by its key.
            Event::Admit(..) => self.poll(now, said),
            event => Some(event),
        }
    }

    fn settle_all(&mut self, now: Instant) {
        while let Some(number) = self.server.poll_woken() {
            self.settle(now, number);
        }
    }

    /// Runs a connection and the server until both have no output.
    fn settle(&mut self, now: Instant, number: u64) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        loop {
            let turn = connection.take_turn();
            let mut moved = !turn.is_empty();
            let reply = self.server.exchange(now, turn);
            moved |= !reply.is_empty();
            self.mail.extend(reply.iter().cloned());
            connection.apply(now, reply);
            while connection.poll_output().is_some() {
                moved = true;
            }
            if !moved {
                return;
            }
        }
    }
}
