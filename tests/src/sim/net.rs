//! The network of a world: its connections, in virtual time.

use super::fault::{Chaos, Fault};
use super::link::Pipe;
use super::secured::Wrap;
use super::web::wire::Requests;
use bytes::Bytes;
use mcp_proto::Instant;
use mcp_proto::exchange::{Closed, ConnectionId};
use std::collections::BTreeSet;
use std::time::Duration;

/// How often a network fails. Chances are in percent of the usual one, times in milliseconds.
#[derive(Debug)]
pub struct Odds {
    /// The faults of an attempt to connect, and their chance.
    pub connect: (&'static [Fault], u64),
    /// The time below which a connection opens.
    pub opening: u64,
    /// The stall of the direction to the client and of that to the server, the chance, and the
    /// longest time.
    pub stall: ([Fault; 2], u64, u64),
    /// The chance that bytes are cut.
    pub cut: u64,
    /// The chance that bytes are delayed.
    pub delay: u64,
    /// The early end of a direction, and its chance.
    pub half_close: (Fault, u64),
    /// The loss of a connection with bytes to the client and to the server, and its chance.
    pub reset: ([Fault; 2], u64),
}

/// A connection.
#[derive(Debug)]
pub struct Link {
    /// The number of its client.
    pub owner: u64,
    /// Its name at the client.
    pub at_client: ConnectionId,
    /// Its name at the server.
    pub at_server: ConnectionId,
    /// The direction to the client, and that to the server.
    pub pipes: [Pipe; 2],
    /// Whether the client and the server read.
    pub reads: [bool; 2],
    /// Its client is gone: nothing moves any more.
    pub frozen: bool,
    /// When it ends by itself, and what its client sees then.
    pub until: Option<(Instant, Closed)>,
    /// The next byte to the server finds it dead.
    pub doomed: bool,
    /// Bytes that the server wrote and that were not taken.
    pub unsent: usize,
    /// Whether the last byte of each direction ended a line, so that a line can be slipped in.
    pub boundary: [bool; 2],
    /// The requests on it, if the server is a model.
    pub requests: Requests,
    /// How many of them were complete.
    pub read: u64,
    /// What is between the engines and their pipes, if there is anything.
    pub wrap: Option<Box<Wrap>>,
}

impl Link {
    /// The direction to the server, or to the client.
    pub fn pipe(&mut self, up: bool) -> &mut Pipe {
        &mut self.pipes[usize::from(up)]
    }
}

/// The time, the random generator, and the connections.
#[derive(Debug)]
pub struct Net {
    /// Now.
    pub now: Instant,
    /// The random generator.
    pub chaos: Chaos,
    /// The connections that are open at one side at least.
    pub links: Vec<Link>,
    /// Attempts to connect: until when, the client, and why they fail.
    pub opening: Vec<(Instant, u64, ConnectionId, Option<Closed>)>,
    /// Attempts to connect that get no response.
    pub hanging: BTreeSet<(u64, ConnectionId)>,
    /// Connections whose end their client does not know yet.
    pub closing: Vec<(Instant, u64, ConnectionId, Closed)>,
    /// Servers that have left a connection before its client.
    pub(super) left: u64,
    /// Bytes that a link holds in one direction.
    capacity: usize,
}

impl Net {
    /// A network without connections, whose links hold `capacity` bytes in one direction.
    pub const fn new(chaos: Chaos, capacity: usize) -> Self {
        Self {
            now: Instant::ZERO,
            chaos,
            links: Vec::new(),
            opening: Vec::new(),
            hanging: BTreeSet::new(),
            closing: Vec::new(),
            left: 0,
            capacity,
        }
    }

    /// Returns the link that a client knows by this name.
    pub fn link_of(&self, owner: u64, channel: ConnectionId) -> Option<usize> {
        self.links.iter().position(|link| (link.owner, link.at_client) == (owner, channel))
    }

    /// Returns the link that the server knows by this name.
    pub fn link_at(&self, at_server: ConnectionId) -> Option<usize> {
        self.links.iter().position(|link| link.at_server == at_server)
    }

    /// Returns whether a client waits for this connection to open.
    pub fn is_opening(&self, owner: u64, channel: ConnectionId) -> bool {
        self.hanging.contains(&(owner, channel))
            || self.opening.iter().any(|(_, of, ch, _)| (*of, *ch) == (owner, channel))
    }

    /// Returns whether a client still has this connection.
    pub fn is_known(&self, owner: u64, channel: ConnectionId) -> bool {
        self.link_of(owner, channel).is_some()
            || self.is_opening(owner, channel)
            || self.closing.iter().any(|(_, of, ch, _)| (*of, *ch) == (owner, channel))
    }

    /// Returns whether no connection is left, in either direction or half.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty() && self.opening.is_empty() && self.hanging.is_empty() && self.closing.is_empty()
    }

    /// Drops an attempt to connect. Returns whether there was one.
    pub(super) fn forget(&mut self, owner: u64, channel: ConnectionId) -> bool {
        let is_opening = self.is_opening(owner, channel);
        self.opening.retain(|(_, of, ch, _)| (*of, *ch) != (owner, channel));
        self.hanging.remove(&(owner, channel));
        is_opening
    }

    /// Opens a link, and returns its place.
    pub(super) fn connect(&mut self, owner: u64, at_client: ConnectionId, at_server: ConnectionId) -> usize {
        let latency = self.random(20);
        let pipe = || Pipe::new(self.capacity, latency);
        self.links.push(Link {
            owner,
            at_client,
            at_server,
            pipes: [pipe(), pipe()],
            reads: [true; 2],
            frozen: false,
            until: None,
            doomed: false,
            unsent: 0,
            boundary: [true; 2],
            requests: Requests::default(),
            read: 0,
            wrap: None,
        });
        self.links.len() - 1
    }

    /// The server writes to a connection.
    pub fn write(&mut self, at_server: ConnectionId, bytes: impl Into<Bytes>) {
        if let Some(n) = self.link_at(at_server) {
            self.links[n].pipe(false).write(bytes.into());
        }
    }

    /// The server ends a connection, after the written bytes.
    pub fn end(&mut self, at_server: ConnectionId) {
        if let Some(n) = self.link_at(at_server) {
            self.links[n].pipe(false).end();
        }
    }

    /// Returns a random time below this number of milliseconds.
    pub fn random(&mut self, millis: u64) -> Duration {
        Duration::from_millis(self.chaos.rng.below(millis))
    }
}
