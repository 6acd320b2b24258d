//! One connection in memory: a [`Transfer`] at each end, as in a driver of sockets, and two pipes
//! in place of the operating system.

use super::log::{LinkSide, Log, LogRedactor};
use super::pipe::{Pipe, PipeContent};
use crate::{Signal, Step, Transfer, TransferOutput};
use bytes::Bytes;
use core::net::SocketAddr;
use core::time::Duration;
use mcp_proto::exchange::{Closed, ConnectionId, Endpoint, ExitStatus, IoEvent, Peer};
use mcp_proto::frame::Kind;
use mcp_proto::time::{Instant, earliest};
use mcp_proto::wired::ConnectionOutput;
use std::io;

/// The port of the first client of an HTTP server. Each connection has its own.
const FIRST_PORT: u16 = 40_000;

/// The state of the way between the two sides.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Path {
    pub(super) latency: Duration,
    /// Whether the bytes to the server stop, and those to the client.
    pub(super) stalled: [bool; 2],
}

impl Path {
    /// Returns whether bytes from this side stop.
    fn is_stalled(&self, from: LinkSide) -> bool {
        self.stalled[from as usize]
    }
}

/// One connection of the client.
#[derive(Debug)]
pub(super) struct LinkConnection {
    kind: Kind,
    /// The client, as the server sees it.
    peer: Peer,
    is_program: bool,
    opening: Option<OpeningConnection>,
    /// The client has asked for TLS, which exists only by name, and was not told.
    secures: bool,
    client: End,
    /// `None` until the server accepts it, and if it never does.
    server: Option<End>,
    to_server: Pipe,
    to_client: Pipe,
}

/// A connection that is not open yet.
#[derive(Clone, Copy, Debug)]
struct OpeningConnection {
    at: Instant,
    /// Whether both directions must work: a pipe is open from the start.
    is_remote: bool,
}

/// One end of a connection.
#[derive(Debug)]
struct End {
    id: ConnectionId,
    transfer: Transfer,
    is_closed: bool,
    /// The text of what it wrote, and of what it read.
    written: LogRedactor,
    read: LogRedactor,
}

/// What happens to a connection next.
#[derive(Debug)]
pub(super) enum ConnectionEvent {
    /// The server accepts it.
    Accept(Kind, Peer),
    /// Report this to the engine of one side.
    Io(LinkSide, ConnectionId, IoEvent),
}

impl End {
    fn new(id: ConnectionId, transfer: Transfer) -> Self {
        Self { id, transfer, is_closed: false, written: LogRedactor::default(), read: LogRedactor::default() }
    }
}

impl LinkConnection {
    /// Returns the connection that a client opens to this endpoint.
    pub(super) fn new(now: Instant, id: ConnectionId, endpoint: &Endpoint, path: Path) -> Self {
        let port = FIRST_PORT.wrapping_add(id.0 as u16);
        let (kind, peer, is_remote) = match endpoint {
            Endpoint::Origin(_) | Endpoint::Within(..) => {
                (Kind::HttpServer, Peer::tcp(SocketAddr::from(([127, 0, 0, 1], port))), true)
            }
            Endpoint::Unix(_) => (Kind::Lines, Peer::unix(None), true),
            _ => (Kind::Lines, Peer::default(), false),
        };
        let at = if is_remote { now + path.latency * 2 } else { now };
        Self {
            kind,
            peer,
            is_program: matches!(endpoint, Endpoint::Program(_)),
            opening: Some(OpeningConnection { at, is_remote }),
            secures: false,
            client: End::new(id, Transfer::opening(endpoint)),
            server: None,
            to_server: Pipe::default(),
            to_client: Pipe::default(),
        }
    }

    /// Adds the end of the server, which has accepted the connection.
    pub(super) fn accepted(&mut self, id: ConnectionId) {
        self.server = Some(End::new(id, Transfer::accepted()));
    }

    /// Returns the id of the connection at this side.
    pub(super) fn id(&self, side: LinkSide) -> Option<ConnectionId> {
        match side {
            LinkSide::Client => Some(self.client.id),
            LinkSide::Server => self.server.as_ref().map(|end| end.id),
        }
    }

    /// Carries out an action of the engine of this side.
    pub(super) fn act(&mut self, now: Instant, side: LinkSide, output: ConnectionOutput, log: &mut Log) {
        let id = self.client.id;
        let (Some(end), ..) = self.parts(side) else { return };
        match &output {
            ConnectionOutput::Write(bytes) => {
                for line in end.written.lines(bytes) {
                    log.write(now, side, id, &line);
                }
            }
            ConnectionOutput::Secure(name) => {
                log.connection(now, side, id, format_args!("begins TLS with {name}"));
                self.secures = true;
                return;
            }
            ConnectionOutput::Close(how) => log.connection(now, side, id, format_args!("close: {how:?}")),
            ConnectionOutput::Read(true) => log.connection(now, side, id, format_args!("reads again")),
            ConnectionOutput::Read(false) => log.connection(now, side, id, format_args!("stops reading")),
        }
        end.transfer.act(now, output);
    }

    /// Lets the next thing happen. `None` if nothing happens at this instant.
    pub(super) fn step(&mut self, now: Instant, path: Path, log: &mut Log) -> Option<ConnectionEvent> {
        loop {
            if self.opening.is_some_and(|opening| opening.is_due(now, path)) {
                self.opening = None;
                if self.client.transfer.opened(now, Peer::default(), false) {
                    return Some(ConnectionEvent::Accept(self.kind, self.peer.clone()));
                }
            }
            let mut moved = false;
            for side in [LinkSide::Client, LinkSide::Server] {
                if let Some(event) = self.poll_output(now, side, path) {
                    let id = self.id(side)?;
                    return Some(ConnectionEvent::Io(side, id, event));
                }
                moved |= self.write(now, side, path) | self.read(now, side, path, log);
            }
            moved |= self.exit(now);
            if !moved {
                return None;
            }
        }
    }

    /// Breaks the connection. Returns the last event of each end that is not closed.
    pub(super) fn cut(self) -> impl Iterator<Item = ConnectionEvent> {
        let killed = Closed::Exited(ExitStatus::killed(9));
        let why = if self.is_program { killed } else { Closed::Reset };
        let ends = [(LinkSide::Client, Some(self.client), why), (LinkSide::Server, self.server, Closed::Reset)];
        ends.into_iter().filter_map(|(side, end, why)| {
            let end = end.filter(|end| !end.is_closed)?;
            Some(ConnectionEvent::Io(side, end.id, IoEvent::Closed(why)))
        })
    }

    /// Returns whether both ends are closed.
    pub(super) fn is_over(&self) -> bool {
        self.client.is_closed && self.server.as_ref().is_none_or(|end| end.is_closed)
    }

    /// Returns when the next thing happens by itself.
    pub(super) fn poll_timeout(&self, path: Path) -> Option<Instant> {
        let opening = self.opening.filter(|opening| opening.is_possible(path)).map(|opening| opening.at);
        let ends = [(LinkSide::Client, Some(&self.client)), (LinkSide::Server, self.server.as_ref())];
        let ends = ends.into_iter().filter_map(|(side, end)| {
            let end = end.filter(|end| !end.is_closed)?;
            let (incoming, from) = match side {
                LinkSide::Client => (&self.to_client, LinkSide::Server),
                LinkSide::Server => (&self.to_server, LinkSide::Client),
            };
            let arrival = incoming.peek().filter(|(_, content)| !path.is_stalled(from) && end.takes(content));
            earliest(arrival.map(|(at, _)| at), end.transfer.poll_timeout())
        });
        ends.fold(opening, |first, at| earliest(first, Some(at)))
    }

    /// Returns this end, the pipe to the other one, and the pipe from it.
    fn parts(&mut self, side: LinkSide) -> (Option<&mut End>, &mut Pipe, &mut Pipe) {
        match side {
            LinkSide::Client => (Some(&mut self.client), &mut self.to_server, &mut self.to_client),
            LinkSide::Server => (self.server.as_mut(), &mut self.to_client, &mut self.to_server),
        }
    }

    fn poll_output(&mut self, now: Instant, side: LinkSide, path: Path) -> Option<IoEvent> {
        if side == LinkSide::Client && core::mem::take(&mut self.secures) {
            return Some(IoEvent::Secured);
        }
        let (end, outgoing, _) = self.parts(side);
        let end = end?;
        loop {
            match end.transfer.poll_output(now)? {
                TransferOutput::Event(event) => {
                    if matches!(event, IoEvent::Closed(_)) {
                        end.is_closed = true;
                        outgoing.reset(now, now + path.latency);
                    }
                    return Some(event);
                }
                TransferOutput::Signal(Signal::Terminate) => end.transfer.exited(now, ExitStatus::killed(15)),
                TransferOutput::Signal(Signal::Kill) => end.transfer.exited(now, ExitStatus::killed(9)),
                // The program has no group.
                TransferOutput::Signal(Signal::KillGroup) => {}
            }
        }
    }

    /// Moves bytes of this end into its pipe, as many as fit. Returns whether anything has changed.
    fn write(&mut self, now: Instant, side: LinkSide, path: Path) -> bool {
        let (Some(end), outgoing, _) = self.parts(side) else { return false };
        let arrival = now + path.latency;
        let wrote = match end.transfer.step() {
            Some(Step::Write(pieces)) => {
                // One piece at a time, so that a part is what the engine wrote at once.
                let piece = &*pieces.slices()[0];
                let n = piece.len().min(outgoing.room());
                if n == 0 {
                    return false;
                }
                outgoing.write(now, arrival, PipeContent::Bytes(Bytes::copy_from_slice(&piece[..n])));
                n
            }
            Some(Step::Flush) => 0,
            Some(Step::End) => {
                outgoing.write(now, arrival, PipeContent::End);
                0
            }
            None => return false,
        };
        end.transfer.wrote(Ok(wrote));
        true
    }

    /// Passes what has arrived to this end. Returns whether anything has.
    fn read(&mut self, now: Instant, side: LinkSide, path: Path, log: &mut Log) -> bool {
        let id = self.client.id;
        let (Some(end), _, incoming) = self.parts(side) else { return false };
        let has_arrived = incoming.peek().is_some_and(|(arrival, content)| arrival <= now && end.takes(content));
        if !has_arrived || path.is_stalled(side.other()) {
            return false;
        }
        let Some(part) = incoming.read() else { return false };
        let read = match part.content {
            PipeContent::Bytes(bytes) => {
                // What arrives at the instant of its writing is in the log already.
                for line in end.read.lines(&bytes).iter().filter(|_| part.written < now) {
                    log.read(now, side, id, line);
                }
                Ok(bytes)
            }
            PipeContent::End => Ok(Bytes::new()),
            PipeContent::Reset => Err(io::ErrorKind::ConnectionReset.into()),
        };
        end.transfer.read(read);
        true
    }

    /// Lets a program exit once its server has closed the connection and the client has read all of
    /// it. Returns whether it has exited.
    fn exit(&mut self, now: Instant) -> bool {
        let has_left = self.server.as_ref().is_none_or(|end| end.is_closed) && self.to_client.peek().is_none();
        let exits = self.is_program && self.opening.is_none() && has_left && self.client.transfer.is_running();
        if exits {
            self.client.transfer.exited(now, ExitStatus::exited(0));
        }
        exits
    }
}

impl End {
    /// Returns whether it reads this.
    fn takes(&self, content: &PipeContent) -> bool {
        match content {
            PipeContent::Bytes(_) | PipeContent::End => self.transfer.wants_read(),
            PipeContent::Reset => self.transfer.reads(),
        }
    }
}

impl OpeningConnection {
    fn is_possible(self, path: Path) -> bool {
        !self.is_remote || path.stalled == [false; 2]
    }

    fn is_due(self, now: Instant, path: Path) -> bool {
        self.at <= now && self.is_possible(path)
    }
}
