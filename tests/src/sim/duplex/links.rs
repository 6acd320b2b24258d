//! The links of a world: how they open, carry, suffer and end.

use super::super::accept;
use super::Transport;
use super::world::{Link, World};
use crate::sim::digest::log::{Engine, Op};
use crate::sim::fault::Fault;
use crate::sim::link::{Arrival, Pipe};
use bytes::Bytes;
use mcp_proto::client::State;
use mcp_proto::exchange::{Closed, ConnectionId, Endpoint, ExitStatus, IoEvent, Peer, Shutdown};
use mcp_proto::input::Input;
use mcp_proto::wired::Kind;
use std::time::Duration;

impl World {
    /// Returns whether this fault is chosen here at random.
    pub(super) fn fault(&mut self, fault: Fault) -> bool {
        let rate = if self.quiet { 0 } else { self.scenario.faults };
        let rate = match fault {
            Fault::Cut => rate * 4,
            Fault::Delay | Fault::Stall => rate,
            Fault::Connect => rate * 4,
            Fault::Reset | Fault::HalfClose => rate / 6,
            Fault::Exit => rate / 4,
            Fault::Truncate => rate / 2,
            Fault::Garbage | Fault::Drop | Fault::Duplicate => rate,
            Fault::TextId => rate * 2,
            other => panic!("no fault of this world: {other:?}"),
        };
        let mut hit = rate > 0 && self.rng.per_mille(rate);
        if hit {
            hit = !self.scenario.less.faults.contains(&self.faults);
            self.faults += 1;
        }
        if hit {
            self.report.steps += 1;
            *self.report.faults.entry(fault).or_default() += 1;
            self.trace(|| format!("fault {fault:?}"));
        }
        hit
    }

    pub(super) fn link_of(&self, client: usize, channel: ConnectionId) -> Option<usize> {
        self.links.iter().position(|link| link.client == client && link.at_client == channel)
    }

    pub(super) fn want_open(&mut self, client: usize, channel: ConnectionId, endpoint: &Endpoint) {
        assert!(matches!(endpoint, Endpoint::Program(_) | Endpoint::Origin(_)));
        let after = Duration::from_millis(self.rng.below(50));
        if self.fault(Fault::Connect) {
            if self.rng.per_mille(300) {
                self.clients[client].hanging.insert(channel);
                return;
            }
            self.clients[client].hanging.insert(channel);
        }
        self.opening.push((self.now + after, client, channel));
    }

    pub(super) fn open(&mut self, n: usize) {
        let (_, client, channel) = self.opening.swap_remove(n);
        if self.clients[client].hanging.remove(&channel) {
            return self.told(client, channel, IoEvent::Closed(Closed::Refused));
        }
        let kind = match self.scenario.settings.transport {
            Transport::Lines => Kind::Lines,
            Transport::Http => Kind::HttpServer,
        };
        self.log.push(Engine::Server, self.now, || Op::Accept);
        let Some(at_server) = accept(&mut self.server, self.now, kind) else {
            return self.told(client, channel, IoEvent::Closed(Closed::Refused));
        };
        let latency = Duration::from_millis(self.rng.below(20));
        let pipe = || Pipe::new(self.scenario.capacity, latency);
        let (up, down) = (pipe(), pipe());
        self.links.push(Link {
            client,
            at_client: channel,
            at_server,
            up,
            down,
            boundary: [true; 2],
            reads: [true; 2],
            exit: None,
        });
        self.told(client, channel, IoEvent::Opened(Peer::default()));
        self.drain_server();
    }

    fn told(&mut self, client: usize, channel: ConnectionId, wire: IoEvent) {
        self.input(client, Input::Event(channel, wire));
    }

    fn tell_server(&mut self, connection: ConnectionId, wire: IoEvent) {
        let input = Input::Event(connection, wire);
        self.log.server(self.now, &input);
        let _ = self.server.apply(self.now, input);
    }

    /// Bytes of an engine. On lines, whole messages may suffer.
    pub(super) fn write(&mut self, link: Option<usize>, up: bool, bytes: Bytes) {
        let Some(link) = link else { return };
        let whole = self.links[link].boundary[usize::from(up)] && bytes.ends_with(b"\n");
        let lines = self.scenario.settings.transport == Transport::Lines;
        let mut pieces = vec![bytes.clone()];
        let mut truncate = false;
        if lines && whole {
            if self.fault(Fault::Garbage) {
                pieces.insert(0, Bytes::from_static(b"[debug] {\"jsonrpc\": oops\n"));
            }
            if self.fault(Fault::Drop) {
                pieces.pop();
            } else if self.fault(Fault::Duplicate) {
                pieces.push(bytes);
            } else if let (false, Some(text)) = (up, text_id(&bytes))
                && self.fault(Fault::TextId)
            {
                let last = pieces.len() - 1;
                pieces[last] = text;
            } else if self.fault(Fault::Truncate) {
                let last = pieces.len() - 1;
                pieces[last].truncate(bytes.len() / 2);
                truncate = true;
            }
        }
        let link = &mut self.links[link];
        link.boundary[usize::from(up)] = pieces.last().is_none_or(|last| last.ends_with(b"\n"));
        let pipe = if up { &mut link.up } else { &mut link.down };
        pieces.into_iter().for_each(|piece| pipe.write(piece));
        if truncate {
            pipe.end();
        }
    }

    pub(super) fn accept(&mut self, n: usize, up: bool) {
        if self.fault(Fault::Stall) {
            let until = self.now + Duration::from_millis(1 + self.rng.below(40_000));
            let link = &mut self.links[n];
            if up {
                link.up.stall(until)
            } else {
                link.down.stall(until)
            }
            return;
        }
        let cut = self.fault(Fault::Cut);
        let link = &mut self.links[n];
        let pipe = if up { &mut link.up } else { &mut link.down };
        let taken = pipe.accept(self.now, cut, &mut self.rng);
        let (client, at_client, at_server) = (link.client, link.at_client, link.at_server);
        match up {
            true => self.told(client, at_client, IoEvent::Written(taken)),
            false => {
                self.tell_server(at_server, IoEvent::Written(taken));
                self.drain_server();
            }
        }
    }

    pub(super) fn arrive(&mut self, n: usize, up: bool) {
        if self.fault(Fault::Reset) {
            return self.cut(n, Closed::Reset, Closed::Reset);
        }
        if self.scenario.settings.transport == Transport::Lines && self.fault(Fault::Exit) {
            // Its output ends at once, and its exit status follows a little later.
            self.links[n].exit = Some(self.now + Duration::from_millis(self.rng.below(1_000)));
            self.links[n].down.truncate();
            return;
        }
        if self.fault(Fault::Delay) {
            let by = Duration::from_millis(1 + self.rng.below(5_000));
            let link = &mut self.links[n];
            return if up { link.up.delay(by) } else { link.down.delay(by) };
        }
        if self.fault(Fault::HalfClose) {
            let link = &mut self.links[n];
            if up { link.up.truncate() } else { link.down.truncate() }
        }
        self.report.steps += 1;
        let link = &mut self.links[n];
        let arrival = if up { link.up.arrive() } else { link.down.arrive() };
        let (client, at_client, at_server) = (link.client, link.at_client, link.at_server);
        let both_ended = link.up.ended && link.down.ended;
        match (up, arrival) {
            (true, Arrival::Bytes(bytes)) => self.tell_server(at_server, IoEvent::Read(bytes)),
            (true, Arrival::End) => self.tell_server(at_server, IoEvent::ReadClosed),
            (false, Arrival::Bytes(bytes)) => self.told(client, at_client, IoEvent::Read(bytes)),
            (false, Arrival::End) => {
                self.told(client, at_client, IoEvent::ReadClosed);
                self.burst(client, at_client, 6);
            }
        }
        self.drain_server();
        if let (true, Some(n)) = (both_ended, self.link_of(client, at_client)) {
            let status = ExitStatus::exited(0);
            let why =
                if self.scenario.settings.transport == Transport::Lines { Closed::Exited(status) } else { Closed::Eof };
            self.cut(n, why, Closed::Eof);
        }
    }

    pub(super) fn close(&mut self, client: usize, channel: ConnectionId, how: Shutdown) {
        let Some(n) = self.link_of(client, channel) else {
            // It never opened.
            let known = self.opening.len();
            self.opening.retain(|(_, c, ch)| (*c, *ch) != (client, channel));
            let hung = self.clients[client].hanging.remove(&channel);
            if how == Shutdown::Abort && (hung || self.opening.len() < known) {
                self.told(client, channel, IoEvent::Closed(Closed::Aborted));
            }
            return;
        };
        match how {
            Shutdown::WriteHalf => self.links[n].up.end(),
            Shutdown::Terminate if self.rng.per_mille(500) => {
                let status = ExitStatus::killed(15);
                self.cut(n, Closed::Exited(status), Closed::Reset);
            }
            Shutdown::Terminate => {}
            Shutdown::Abort => self.cut(n, Closed::Aborted, Closed::Reset),
        }
    }

    /// The link is gone.
    pub(super) fn cut(&mut self, n: usize, client_hears: Closed, server_hears: Closed) {
        let link = self.links.swap_remove(n);
        self.told(link.client, link.at_client, IoEvent::Closed(client_hears));
        if self.clients[link.client].engine.client().state() == State::Restarting {
            self.burst(link.client, link.at_client, 9);
        }
        self.tell_server(link.at_server, IoEvent::Closed(server_hears));
        self.drain_server();
    }
}

/// The line with its numeric id turned into a string, if it is an answer.
fn text_id(line: &Bytes) -> Option<Bytes> {
    let text = std::str::from_utf8(line).ok()?;
    let (before, rest) = text.split_once("\"id\":")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit())?;
    let answer = digits > 0 && !rest.contains("\"method\"");
    answer.then(|| Bytes::from(format!("{before}\"id\":\"{}\"{}", &rest[..digits], &rest[digits..])))
}
