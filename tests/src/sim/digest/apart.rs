//! A server whose connections stand beside it, as in an adapter with many tasks: what it sends and aborts can be seen.

use super::said::Said;
use mcp_proto::Instant;
use mcp_proto::input::{AdmitToken, Input, IoEvent, Note, RequestKey, ServerCommand, WiredServerInput};
use mcp_proto::server::{Event, ServerConfig};
use mcp_proto::wired::{Connection, Kind, Mail, SharedServer};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A server and its connections, apart.
pub struct Apart {
    server: SharedServer,
    connections: BTreeMap<u64, Connection>,
    /// What it sent and aborted, and was not taken.
    mail: VecDeque<Mail>,
    /// Admissions that wait for a decision.
    asked: BTreeMap<u64, AdmitToken>,
    closing: bool,
}

impl Apart {
    /// A server without connections.
    pub fn new(config: Arc<ServerConfig>, seed: [u8; 32], now: Instant) -> Self {
        let server = SharedServer::new(config, seed, now);
        Self { server, connections: BTreeMap::new(), mail: VecDeque::new(), asked: BTreeMap::new(), closing: false }
    }

    /// A connection, by its number; `None` if the server takes no more.
    pub fn accept(&mut self, now: Instant, kind: Kind) -> Option<u64> {
        let connection = self.server.join(now, kind, Default::default())?;
        let number = connection.number();
        self.connections.insert(number, connection);
        self.settle(now, number);
        Some(number)
    }

    /// Tells the server, or one of its connections, something.
    pub fn input(&mut self, now: Instant, input: WiredServerInput) {
        match input {
            Input::Event(number, wire) => {
                let closed = matches!(wire, IoEvent::Closed(_));
                let Some(connection) = self.connections.get_mut(&number.0) else { return };
                connection.handle_io(now, wire);
                self.settle(now, number.0);
                if closed {
                    self.connections.remove(&number.0);
                    self.server.leave(now, number.0);
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
            Input::Command(ServerCommand::Respond(answer)) => self.server.respond(now, answer),
            Input::Command(ServerCommand::Notify(key, note)) => self.notify(now, key, note),
            Input::Command(ServerCommand::Publish(change)) => self.server.publish(now, change),
            Input::Command(ServerCommand::Revoke(principal)) => self.server.revoke(now, &principal),
            Input::Command(ServerCommand::Admit(key, admission)) => {
                if let Some(token) = self.asked.remove(&key.0) {
                    self.server.admit(now, token, admission);
                }
            }
            Input::Command(ServerCommand::Shutdown(grace)) => self.server.shutdown(now, grace),
        }
        self.settle_all(now);
    }

    /// Sends a notification on a request.
    pub fn notify(&mut self, now: Instant, key: RequestKey, note: Note) {
        let _ = self.server.notify(now, key, note);
        self.settle_all(now);
    }

    /// The next event. What was sent and aborted before goes to `said`.
    pub fn poll(&mut self, now: Instant, said: &mut Said) -> Option<Event> {
        self.settle_all(now);
        for mail in self.mail.drain(..) {
            match &mail {
                Mail::Send(exchange, outgoing) => said.send(exchange.0, outgoing),
                Mail::Abort(exchange) => said.abort(exchange.0),
            }
        }
        let event = self.server.poll_event()?;
        said.event_of_server(&event);
        match event {
            Event::Admit(token, _) => {
                self.asked.insert(token.key().0, token);
                self.poll(now, said)
            }
            Event::Terminated => {
                self.closing = true;
                Some(event)
            }
            event => Some(event),
        }
    }

    fn settle_all(&mut self, now: Instant) {
        while let Some(number) = self.server.poll_woken() {
            self.settle(now, number);
        }
        if std::mem::take(&mut self.closing) {
            for number in self.connections.keys().copied().collect::<Vec<_>>() {
                if let Some(connection) = self.connections.get_mut(&number) {
                    connection.close(now);
                }
                self.settle(now, number);
            }
        }
    }

    /// Lets a connection and the server talk until both are silent.
    fn settle(&mut self, now: Instant, number: u64) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        loop {
            let (facts, diagnostics) = connection.take_facts();
            let mut moved = !facts.is_empty() || !diagnostics.is_empty();
            self.server.facts(now, facts, diagnostics);
            while let Some(mail) = self.server.poll_mail(number) {
                moved = true;
                self.mail.push_back(mail.clone());
                mail.deliver(now, connection);
            }
            while connection.poll_output().is_some() {
                moved = true;
            }
            if !moved {
                return;
            }
        }
    }
}
