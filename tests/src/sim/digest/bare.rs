//! A client at seam B, with one connection for each exchange: its starts, messages and aborts are
//! visible, without a pool.

use super::said::Said;
use bytes::Bytes;
use mcp_proto::client::{Client, Event, Output};
use mcp_proto::exchange::{
    ConnectionId, Endpoint, ExchangeEvent, ExchangeId, Inbound, IoEvent, Outbound, Peer, Shutdown, Start,
};
use mcp_proto::input::{Input, WiredClientInput};
use mcp_proto::wired::{Connection, ConnectionOutput, Kind};
use mcp_proto::{ClientConfig, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A client and the connections of its exchanges. Each connection has the number of its exchange.
pub struct Bare {
    client: Client,
    connections: BTreeMap<u64, Route>,
    deeds: VecDeque<Deed>,
    said: Said,
}

struct Route {
    connection: Connection,
    http: bool,
    opened: bool,
    over: bool,
}

/// The actions for the network, and the events for the application.
#[derive(Debug)]
pub enum Deed {
    /// Open this connection, of messages by line or of HTTP.
    Open(u64, Kind),
    /// Write to it.
    Write(u64, Bytes),
    /// End it.
    Close(u64, Shutdown),
    /// An event.
    Event(Event),
}

impl Bare {
    /// A client that has begun.
    pub fn new(config: Arc<ClientConfig>, seed: [u8; 32], now: Instant) -> Self {
        let client = Client::new(config, seed, now);
        let mut bare = Self { client, connections: BTreeMap::new(), deeds: VecDeque::new(), said: Said::default() };
        bare.settle(now);
        bare
    }

    /// Applies an input to the client, or to the connection of an exchange.
    pub fn tell(&mut self, now: Instant, input: WiredClientInput) {
        match input {
            Input::Event(ConnectionId(number), wire) => {
                let exchange = ExchangeId(number);
                let Some(route) = self.connections.get_mut(&number) else { return };
                if route.http && matches!(wire, IoEvent::Opened(_)) && !std::mem::replace(&mut route.opened, true) {
                    self.client.handle_event(now, exchange, ExchangeEvent::Opened(Peer::default()));
                }
                let closed = matches!(wire, IoEvent::Closed(_));
                route.connection.handle_io(now, wire);
                self.settle(now);
                if closed {
                    self.connections.remove(&number);
                }
            }
            Input::Command(command) => drop(self.client.apply(now, Input::Command(command))),
            Input::Tick => {
                for route in self.connections.values_mut() {
                    if route.connection.poll_timeout().is_some_and(|at| at <= now) {
                        route.connection.handle_timeout(now);
                    }
                }
                self.settle(now);
                self.client.handle_timeout(now);
            }
        }
        self.settle(now);
    }

    /// Returns the next action.
    pub fn next_deed(&mut self) -> Option<Deed> {
        self.deeds.pop_front()
    }

    /// Returns the time of the next timer.
    pub fn next_timeout(&self) -> Option<Instant> {
        let connections = self.connections.values().filter_map(|route| route.connection.poll_timeout());
        connections.chain(self.client.poll_timeout()).min()
    }

    /// Returns the starts, messages and aborts of the client since the last call, and its events.
    pub fn take_said(&mut self) -> Said {
        std::mem::take(&mut self.said)
    }

    /// Runs the client and the connections until all have no output.
    fn settle(&mut self, now: Instant) {
        loop {
            while let Some(output) = self.client.poll_output() {
                self.carry_out(now, output);
            }
            let event = self.connections.iter_mut().find_map(|(number, route)| {
                route.connection.poll_event().map(|(exchange, event)| (*number, exchange, event))
            });
            let Some((number, exchange, event)) = event else { break };
            if let Some(route) = self.connections.get_mut(&number) {
                let ends = matches!(event, ExchangeEvent::Failed { .. } | ExchangeEvent::Inbound(Inbound::End));
                route.over |= route.http && ends;
            }
            self.client.handle_event(now, exchange, event);
        }
        for (number, route) in &mut self.connections {
            if route.over {
                route.connection.close(now);
            }
            while route.connection.poll_diagnostic().is_some() {}
            while let Some(output) = route.connection.poll_output() {
                match output {
                    ConnectionOutput::Write(bytes) => self.deeds.push_back(Deed::Write(*number, bytes)),
                    ConnectionOutput::Secure(_) | ConnectionOutput::Read(_) => {}
                    ConnectionOutput::Close(how) => self.deeds.push_back(Deed::Close(*number, how)),
                }
            }
        }
    }

    fn carry_out(&mut self, now: Instant, output: Output) {
        match output {
            Output::Start(exchange, start) => {
                self.said.start(exchange.0, &start);
                let limits = &self.client.config().limits.frame;
                let (connection, kind) = match &start {
                    Start::Duplex(endpoint) => {
                        let program = matches!(endpoint, Endpoint::Program(_));
                        (Connection::client(Kind::Lines, program, limits, now), Kind::Lines)
                    }
                    Start::Http { .. } => (Connection::client(Kind::HttpClient, false, limits, now), Kind::HttpServer),
                    Start::WebSocket { head, dialect, .. } => {
                        (Connection::web_socket(head.clone(), *dialect, [0; 32], limits, now), Kind::HttpServer)
                    }
                };
                let mut route = Route { connection, http: kind != Kind::Lines, opened: false, over: false };
                route.connection.begin(exchange);
                if let Start::Http { head, body, .. } = start {
                    route.connection.send(now, exchange, Outbound::Request { head, body });
                    self.client.handle_event(now, exchange, ExchangeEvent::Waiting);
                }
                self.connections.insert(exchange.0, route);
                self.deeds.push_back(Deed::Open(exchange.0, kind));
            }
            Output::Send(exchange, outgoing) => {
                self.said.send(exchange.0, &outgoing);
                if let Some(route) = self.connections.get_mut(&exchange.0) {
                    route.connection.send(now, exchange, outgoing);
                }
            }
            Output::Abort(exchange) => {
                self.said.abort(exchange.0);
                if let Some(route) = self.connections.get_mut(&exchange.0) {
                    route.connection.abort(now, exchange);
                }
            }
            Output::Event(event) => {
                self.said.event_of_client(&event);
                self.deeds.push_back(Deed::Event(event));
            }
        }
    }
}
