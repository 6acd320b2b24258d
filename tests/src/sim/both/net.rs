//! The connections of a world: how they open, carry, suffer and end.

use super::super::accept;
use super::super::digest::log::{Engine, Op};
use super::super::link::{Arrival, Pipe};
use super::ServerInputKind;
use super::watch::Peer;
use super::{Fault, World};
use bytes::Bytes;
use mcp_proto::Instant;
use mcp_proto::exchange::{Closed, ConnectionId, IoEvent, Shutdown};
use mcp_proto::input::Input;
use mcp_proto::wired::Kind;
use std::time::Duration;

/// Whose a connection is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Owner {
    /// The client of this number.
    Host(u64),
    /// The malicious peer.
    Raw,
}

/// The number and the principal of the malicious peer.
pub(super) const RAW: u64 = 1_000_000;

pub(super) struct Link {
    pub(super) owner: Owner,
    pub(super) at_client: ConnectionId,
    pub(super) at_server: ConnectionId,
    pub(super) up: Pipe,
    pub(super) down: Pipe,
    /// Its client is gone: nothing moves any more.
    pub(super) frozen: bool,
    /// Whether the client, or the malicious peer, reads.
    pub(super) reads: bool,
    /// Whether the server reads.
    pub(super) server_reads: bool,
    /// When the malicious peer cuts it.
    pub(super) gives_up: Option<Instant>,
    /// Bytes that the server wrote and that were not taken.
    pub(super) unsent: usize,
    /// It is found dead by the next byte that arrives.
    doomed: bool,
}

impl World {
    /// Whether a client still has this connection.
    pub(super) fn is_known(&self, owner: Owner, channel: ConnectionId) -> bool {
        self.links.iter().any(|link| (link.owner, link.at_client) == (owner, channel))
            || self.opening.iter().any(|(_, of, ch, _)| (*of, *ch) == (owner, channel))
            || self.closing.iter().any(|(_, of, ch, _)| (*of, *ch) == (owner, channel))
            || self.hanging.contains(&(owner, channel))
    }

    fn link_of(&self, owner: Owner, channel: ConnectionId) -> Option<usize> {
        self.links.iter().position(|link| (link.owner, link.at_client) == (owner, channel))
    }

    pub(super) fn client_reads(&mut self, owner: Owner, channel: ConnectionId, reads: bool) {
        if let Some(n) = self.link_of(owner, channel) {
            self.links[n].reads = reads;
        }
    }

    pub(super) fn server_reads(&mut self, at_server: ConnectionId, reads: bool) {
        if let Some(n) = self.link_at(at_server) {
            self.links[n].server_reads = reads;
        }
    }

    pub(super) fn link_at(&self, at_server: ConnectionId) -> Option<usize> {
        self.links.iter().position(|link| link.at_server == at_server)
    }

    /// Reports an event of a connection to a client.
    pub(super) fn handle_event(&mut self, owner: Owner, channel: ConnectionId, wire: IoEvent) {
        if let Some(n) = self.host_of(owner) {
            self.tell(n, Input::Event(channel, wire));
        }
    }

    // ---- how they open

    pub(super) fn want_open(&mut self, owner: Owner, channel: ConnectionId) {
        let at = self.now + Duration::from_millis(self.chaos.rng.below(20));
        match self.chaos.pick(&[Fault::Refused, Fault::Hang], 250) {
            Some(Fault::Hang) => {
                self.hanging.insert((owner, channel));
            }
            Some(_) => self.opening.push((at, owner, channel, Some(Closed::Refused))),
            None => self.opening.push((at, owner, channel, None)),
        }
    }

    pub(super) fn open(&mut self, n: usize) {
        let (_, owner, channel, why) = self.opening.swap_remove(n);
        if let Some(why) = why.or_else(|| self.connect(owner, channel).err()) {
            return self.handle_event(owner, channel, IoEvent::Closed(why));
        }
        self.handle_event(owner, channel, IoEvent::Opened(Default::default()));
        self.drain_server();
    }

    /// A connection to the server.
    pub(super) fn connect(&mut self, owner: Owner, channel: ConnectionId) -> Result<usize, Closed> {
        self.count_server(ServerInputKind::Accept);
        self.log.push(Engine::Server, self.now, || Op::Accept);
        let at_server = accept(&mut self.server, self.now, Kind::HttpServer).ok_or(Closed::Refused)?;
        let latency = Duration::from_millis(self.chaos.rng.below(20));
        let pipe = || Pipe::new(self.scenario.capacity, latency);
        let (up, down) = (pipe(), pipe());
        let (number, principal) = match self.host_of(owner) {
            Some(n) => (self.hosts[n].number, self.hosts[n].principal),
            None => (RAW, RAW),
        };
        self.watch.open(at_server, Peer { number, principal: self.scenario.settings.admit.then_some(principal) });
        self.links.push(Link {
            owner,
            at_client: channel,
            at_server,
            up,
            down,
            frozen: false,
            reads: true,
            server_reads: true,
            gives_up: None,
            unsent: 0,
            doomed: false,
        });
        Ok(self.links.len() - 1)
    }

    // ---- how they carry

    pub(super) fn client_writes(&mut self, owner: Owner, channel: ConnectionId, bytes: Bytes) {
        let Some(n) = self.link_of(owner, channel) else { return };
        let at_server = self.links[n].at_server;
        if self.watch.is_idle(at_server) && self.chaos.hit(Fault::DeadAtWrite, 200) {
            self.links[n].doomed = true;
        }
        self.watch.says(at_server, &bytes);
        self.links[n].up.write(bytes);
    }

    pub(super) fn server_writes(&mut self, at_server: ConnectionId, bytes: Bytes) {
        self.watch.hears(self.now, at_server, &bytes);
        if let Some(n) = self.link_at(at_server) {
            self.links[n].unsent += bytes.len();
            self.links[n].down.write(bytes);
        }
    }

    pub(super) fn accept(&mut self, n: usize, up: bool) {
        let (chaos, link) = (&mut self.chaos, &mut self.links[n]);
        let pipe = if up { &mut link.up } else { &mut link.down };
        if chaos.hit(if up { Fault::StallUp } else { Fault::SlowReader }, 24) {
            return pipe.stall(self.now + Duration::from_millis(1 + chaos.rng.below(60_000)));
        }
        let cut = chaos.hit(Fault::Cut, 40);
        let taken = pipe.accept(self.now, cut, &mut chaos.rng);
        let (owner, at_client, at_server) = (link.owner, link.at_client, link.at_server);
        if up {
            if !link.up.may_accept() && self.chaos.hit(Fault::EndUp, 25) {
                self.links[n].up.end();
            }
            self.handle_event(owner, at_client, IoEvent::Written(taken));
        } else {
            link.unsent -= taken;
            self.tell_server(Input::Event(at_server, IoEvent::Written(taken)));
        }
    }

    pub(super) fn arrive(&mut self, n: usize, up: bool) {
        if up && self.links[n].doomed {
            return self.cut(n, Closed::Reset, Closed::Reset);
        }
        if self.chaos.hit(Fault::Delay, 20) {
            let by = Duration::from_millis(1 + self.chaos.rng.below(5_000));
            let pipe = if up { &mut self.links[n].up } else { &mut self.links[n].down };
            return pipe.delay(by);
        }
        if !up && self.chaos.hit(Fault::EndDown, 30) {
            self.links[n].down.truncate();
        }
        let reset = self.chaos.hit(if up { Fault::ResetUp } else { Fault::ResetDown }, 30);
        self.chaos.steps += 1;
        let link = &mut self.links[n];
        let arrival = if up { link.up.arrive() } else { link.down.arrive() };
        let (owner, at_client, at_server) = (link.owner, link.at_client, link.at_server);
        match arrival {
            Arrival::Bytes(mut bytes) => {
                if reset {
                    bytes.truncate(self.chaos.rng.below(bytes.len() as u64 + 1) as usize);
                }
                match (up, bytes.is_empty()) {
                    (_, true) => {}
                    (true, false) => self.tell_server(Input::Event(at_server, IoEvent::Read(bytes))),
                    (false, false) => self.handle_event(owner, at_client, IoEvent::Read(bytes)),
                }
            }
            Arrival::End if up => self.tell_server(Input::Event(at_server, IoEvent::ReadClosed)),
            Arrival::End => self.handle_event(owner, at_client, IoEvent::ReadClosed),
        }
        let Some(n) = self.link_at(at_server) else { return };
        let link = &self.links[n];
        if reset {
            self.cut(n, Closed::Reset, Closed::Reset);
        } else if link.up.ended && link.down.ended {
            self.cut(n, Closed::Eof, Closed::Eof);
        } else if owner == Owner::Raw && link.down.ended {
            self.cut(n, Closed::Eof, Closed::Reset);
        }
    }

    // ---- how they end

    pub(super) fn client_closes(&mut self, owner: Owner, channel: ConnectionId) {
        if let Some(n) = self.link_of(owner, channel) {
            return self.cut(n, Closed::Aborted, Closed::Reset);
        }
        let known = self.opening.len();
        self.opening.retain(|(_, of, ch, _)| (*of, *ch) != (owner, channel));
        if self.opening.len() < known || self.hanging.remove(&(owner, channel)) {
            self.closing.push((self.now, owner, channel, Closed::Aborted));
        }
    }

    pub(super) fn server_closes(&mut self, at_server: ConnectionId, how: Shutdown) {
        let Some(n) = self.link_at(at_server) else { return };
        match how {
            Shutdown::WriteHalf => self.links[n].down.end(),
            Shutdown::Terminate => {}
            Shutdown::Abort => self.cut(n, Closed::Reset, Closed::Aborted),
        }
    }

    /// The link is lost: the server sees it at once, the client a moment later.
    pub(super) fn cut(&mut self, n: usize, client_hears: Closed, server_hears: Closed) {
        let link = self.links.swap_remove(n);
        self.trace(|| format!("{:?} of {:?} is cut: {client_hears}", link.at_server, link.owner));
        self.watch.gone(link.at_server);
        let at = self.now + Duration::from_millis(self.chaos.rng.below(3));
        if !link.frozen && self.host_of(link.owner).is_some() {
            self.closing.push((at, link.owner, link.at_client, client_hears));
        }
        self.tell_server(Input::Event(link.at_server, IoEvent::Closed(server_hears)));
        self.check_disconnected(link.at_server);
    }

    /// A pooled connection ends while it is idle.
    pub(super) fn dead_idle(&mut self) {
        let idle = |link: &Link| !link.frozen && link.owner != Owner::Raw && self.watch.is_idle(link.at_server);
        let idle: Vec<usize> = (0..self.links.len()).filter(|n| idle(&self.links[*n])).collect();
        if let Some(n) = idle.get(self.rng.below(idle.len() as u64) as usize) {
            self.chaos.count(Fault::DeadIdle);
            let why = if self.rng.per_mille(500) { Closed::Eof } else { Closed::Reset };
            self.cut(*n, why, Closed::Reset);
        }
    }
}
