//! What is between the engines and the pipes of one connection: a transfer at each end, which may
//! begin TLS, and a proxy. The plaintext of one end is compared with what the other one wrote.

use super::super::fault::Fault;
use super::super::net::Link;
use super::super::report::Report;
use super::super::world::{Ends, NEVER, World};
use super::proxy::{ForwardingProxy, Relayed};
use super::{AUTHORIZATION, HOST, Keys, Road};
use bytes::Bytes;
use mcp_driver::{Step, Transfer, TransferOutput};
use mcp_proto::Instant;
use mcp_proto::exchange::{Closed, ConnectionId, IoEvent, Shutdown, TlsFailureKind};
use mcp_proto::wired::ConnectionOutput;
use std::collections::VecDeque;

/// The two ends of a connection, as places in a pair.
const CLIENT: usize = 0;
const SERVER: usize = 1;
/// The number of the first connection that its server has left.
const FIRST_LEFT: u64 = 1 << 50;

/// The layers of one connection.
#[derive(Debug)]
pub struct Wrap {
    /// The transfers of both ends. `None` once that end has closed.
    ends: [Option<Transfer>; 2],
    proxy: Option<ForwardingProxy>,
    is_tls: bool,
    /// The client has begun TLS: what it writes from now on is for the server.
    has_begun: bool,
    /// The client has seen the end of the handshake.
    is_secured: bool,
    /// Plaintext that each end wrote and the other one has not read.
    said: [VecDeque<u8>; 2],
    /// Whether each end has ended its direction in order.
    finished: [bool; 2],
    /// Whether ciphertext has arrived at each end.
    has_arrived: [bool; 2],
    /// The last plaintext that the server read.
    tail: Vec<u8>,
    /// The outputs of the transfers are being carried out.
    is_busy: bool,
}

impl Wrap {
    /// Returns the layers of a new connection on this road, `None` if there are none. A connection
    /// of the malicious peer has no proxy.
    pub(in crate::sim) fn new(road: Road, keys: Option<&Keys>, may_have_proxy: bool) -> Option<Self> {
        let (mut client, mut server) = (Transfer::given(), Transfer::accepted());
        if let Some(keys) = keys {
            client = client.with_connector(keys.connector.clone());
            server.accept_tls(keys.acceptor.accept());
        }
        let is_proxied = matches!(road, Road::Tunnel | Road::Forward) && may_have_proxy;
        (road != Road::Plain).then(|| Self {
            ends: [Some(client), Some(server)],
            proxy: is_proxied.then(ForwardingProxy::default),
            is_tls: road.is_tls(),
            has_begun: false,
            is_secured: false,
            said: Default::default(),
            finished: [false; 2],
            has_arrived: [false; 2],
            tail: Vec::new(),
            is_busy: false,
        })
    }

    /// Returns whether the client and the server still have the connection.
    pub(in crate::sim) fn has(&self) -> [bool; 2] {
        self.ends.each_ref().map(Option::is_some)
    }

    /// Returns whether what the client writes now is for the server.
    pub(in crate::sim) const fn leads_to_server(&self) -> bool {
        self.has_begun || !self.is_tls
    }

    /// Passes an output of an engine to the transfer of its end.
    fn act(&mut self, now: Instant, end: usize, output: ConnectionOutput) {
        let Some(transfer) = &mut self.ends[end] else { return };
        if let ConnectionOutput::Write(bytes) = &output
            && self.is_tls
            && (end == SERVER || self.has_begun)
        {
            self.said[end].extend(bytes.iter());
        }
        transfer.act(now, output);
    }

    /// Returns the next event of an engine.
    fn next_event(&mut self, now: Instant) -> Option<(usize, IoEvent)> {
        [CLIENT, SERVER].into_iter().find_map(|end| match self.ends[end].as_mut()?.poll_output(now)? {
            TransferOutput::Event(event) => Some((end, event)),
            TransferOutput::Signal(signal) => panic!("{signal:?} for a socket"),
        })
    }

    /// Compares an event of one end with what the other end did.
    fn check(&mut self, end: usize, event: &IoEvent, report: &mut Report) {
        let is_of_peer = self.is_tls && (end == SERVER || self.has_begun);
        match event {
            IoEvent::Read(bytes) => {
                if is_of_peer {
                    let said = &mut self.said[1 - end];
                    let is_same = bytes.len() <= said.len() && said.drain(..bytes.len()).eq(bytes.iter().copied());
                    assert!(is_same, "plaintext that the other end did not write");
                }
                if end == SERVER {
                    self.tail.extend_from_slice(bytes);
                    let has_credentials = self.tail.windows(AUTHORIZATION.len()).any(|w| w == AUTHORIZATION.as_bytes());
                    assert!(!has_credentials, "the credentials of the proxy reach the server");
                    self.tail.drain(..self.tail.len().saturating_sub(AUTHORIZATION.len()));
                }
            }
            IoEvent::ReadClosed if is_of_peer => {
                let is_whole = self.finished[1 - end] && self.said[1 - end].is_empty();
                assert!(is_whole, "a truncated stream looks complete");
            }
            IoEvent::Secured => {
                self.is_secured = true;
                report.secured += 1;
                report.tunnels += u64::from(self.proxy.is_some());
            }
            IoEvent::Closed(Closed::Tls(why)) if why.kind == TlsFailureKind::Truncated => report.truncations += 1,
            IoEvent::Closed(Closed::Tls(_)) => report.tls_failures += 1,
            _ => {}
        }
    }
}

/// Moves what an end has to write to its pipe, a step at a time: the transfer hears of each byte
/// that the pipe accepts.
fn pump(link: &mut Link, end: usize) {
    let (Some(wrap), pipe) = (&mut link.wrap, &mut link.pipes[1 - end]) else { return };
    let is_held = end == SERVER && wrap.proxy.as_ref().is_some_and(|proxy| !proxy.passes());
    let Some(transfer) = wrap.ends[end].as_mut().filter(|_| !is_held) else { return };
    while !pipe.is_waiting() {
        match transfer.step() {
            None => return,
            Some(Step::Write(pieces)) => {
                pieces.iter().for_each(|piece| pipe.write(piece));
                // A pipe that has ended takes nothing, and says nothing.
                return;
            }
            Some(Step::Flush) => transfer.wrote(Ok(0)),
            Some(Step::End) => {
                pipe.end();
                transfer.wrote(Ok(0));
            }
        }
    }
}

impl<E: Ends> World<E> {
    /// An engine writes to a link.
    pub(in crate::sim) fn send(&mut self, n: usize, up: bool, bytes: Bytes) {
        let (now, link) = (self.net.now, &mut self.net.links[n]);
        match &mut link.wrap {
            None => link.pipe(up).write(bytes),
            Some(wrap) => {
                wrap.act(now, usize::from(!up), ConnectionOutput::Write(bytes));
                self.settle(n);
            }
        }
    }

    /// A client begins TLS.
    pub(in crate::sim) fn secure(&mut self, owner: u64, channel: ConnectionId, name: &str) {
        assert_eq!(name, HOST, "the name of another server");
        if let Some(n) = self.net.link_of(owner, channel) {
            self.begin_tls(n, name);
        }
    }

    pub(in crate::sim) fn begin_tls(&mut self, n: usize, name: &str) {
        let (now, link) = (self.net.now, &mut self.net.links[n]);
        let wrap = link.wrap.as_mut().filter(|wrap| wrap.is_tls).expect("a link with TLS");
        let has_tunnel = wrap.proxy.as_ref().is_none_or(ForwardingProxy::has_granted);
        assert!(has_tunnel && !wrap.has_begun, "TLS begins without a tunnel, or twice");
        wrap.has_begun = true;
        wrap.act(now, CLIENT, ConnectionOutput::Secure(name.into()));
        if self.net.chaos.hit(Fault::HandshakeStall, 60) {
            let up = self.net.chaos.rng.per_mille(500);
            self.net.links[n].pipe(up).stall(NEVER);
        }
        self.settle(n);
    }

    /// The server ends its direction of a link.
    pub(in crate::sim) fn finish_at_server(&mut self, n: usize) {
        let (now, link) = (self.net.now, &mut self.net.links[n]);
        match &mut link.wrap {
            None => link.pipe(false).end(),
            Some(wrap) => {
                wrap.finished[SERVER] = true;
                wrap.act(now, SERVER, ConnectionOutput::Close(Shutdown::WriteHalf));
                self.settle(n);
            }
        }
    }

    /// A pipe has accepted bytes of one end.
    pub(in crate::sim) fn taken_wrapped(&mut self, n: usize, up: bool, taken: usize) {
        let at_server = self.net.links[n].at_server;
        if up {
            E::taken(self, n, up, taken);
        }
        let Some(n) = self.net.link_at(at_server) else { return };
        let end = usize::from(!up);
        if let Some(transfer) = self.net.links[n].wrap.as_mut().and_then(|wrap| wrap.ends[end].as_mut())
            && taken > 0
        {
            transfer.wrote(Ok(taken));
        }
        self.settle(n);
    }

    /// Bytes arrive at one end, or their end. Returns the name of the link at the server, which
    /// another one replaces once that has left it.
    pub(in crate::sim) fn arrive_wrapped(&mut self, n: usize, up: bool, event: Option<IoEvent>) -> ConnectionId {
        let bytes = match event {
            Some(IoEvent::Read(bytes)) => self.corrupted(n, up, bytes),
            Some(_) => Bytes::new(),
            None => return self.net.links[n].at_server,
        };
        let (chaos, link) = (&mut self.net.chaos, &mut self.net.links[n]);
        let Some(wrap) = &mut link.wrap else { return link.at_server };
        let relayed = match &mut wrap.proxy {
            Some(proxy) if up && !bytes.is_empty() => proxy.read(chaos, &bytes),
            _ => Relayed::Up(bytes.into()),
        };
        match relayed {
            Relayed::Nothing => {}
            Relayed::Up(bytes) => {
                if let Some(transfer) = &mut wrap.ends[usize::from(up)] {
                    transfer.read(Ok(bytes.into()));
                }
            }
            Relayed::Opens(text) => link.pipe(false).write(text.into()),
            Relayed::Answer(text, ends) => {
                link.pipe(false).write(text.into());
                if ends {
                    link.pipe(false).end();
                }
                return self.leave_server(n);
            }
        }
        self.settle(n)
    }

    /// The proxy leaves the server, and keeps the client.
    fn leave_server(&mut self, n: usize) -> ConnectionId {
        let at_server = self.net.links[n].at_server;
        let left = self.rename(n);
        if let Some(wrap) = &mut self.net.links[n].wrap {
            wrap.ends[SERVER] = None;
        }
        E::at_server(self, at_server, IoEvent::Closed(Closed::Reset));
        left
    }

    /// The next server may use the name of a connection that this one has left.
    fn rename(&mut self, n: usize) -> ConnectionId {
        self.net.left += 1;
        let name = ConnectionId(FIRST_LEFT + self.net.left);
        self.net.links[n].at_server = name;
        name
    }

    /// Returns bytes that arrive, perhaps with another one among them. In a handshake that is the
    /// first one of all: the others have no fixed place, and some of them no effect.
    fn corrupted(&mut self, n: usize, up: bool, bytes: Bytes) -> Bytes {
        let (chaos, link) = (&mut self.net.chaos, &mut self.net.links[n]);
        let Some(wrap) = link.wrap.as_mut().filter(|wrap| wrap.has_begun) else { return bytes };
        let is_first = !std::mem::replace(&mut wrap.has_arrived[usize::from(up)], true);
        if !(is_first || wrap.is_secured) || !chaos.hit(Fault::Corrupt, 15) {
            return bytes;
        }
        let at = if wrap.is_secured { chaos.rng.below(bytes.len() as u64) as usize } else { 0 };
        let mut bytes = Vec::from(bytes);
        bytes[at] ^= 1 << chaos.rng.below(8);
        bytes.into()
    }

    /// Carries out what the transfers of a link have to write and to report. Returns its name at
    /// the server.
    fn settle(&mut self, n: usize) -> ConnectionId {
        let mut at_server = self.net.links[n].at_server;
        match &mut self.net.links[n].wrap {
            // An engine that hears of an event acts in the middle of it.
            Some(wrap) if !wrap.is_busy => wrap.is_busy = true,
            _ => return at_server,
        }
        while let Some(n) = self.net.link_at(at_server) {
            let (now, link) = (self.net.now, &mut self.net.links[n]);
            pump(link, CLIENT);
            pump(link, SERVER);
            let Some(wrap) = &mut link.wrap else { return at_server };
            let Some((end, event)) = wrap.next_event(now) else {
                wrap.is_busy = false;
                if wrap.has() == [false; 2] {
                    self.net.links.swap_remove(n);
                }
                return at_server;
            };
            wrap.check(end, &event, &mut self.report);
            at_server = self.tell(n, end, event);
        }
        at_server
    }

    /// Tells an engine an event of its connection. Returns the name of the link at the server.
    fn tell(&mut self, n: usize, end: usize, event: IoEvent) -> ConnectionId {
        let link = &mut self.net.links[n];
        let (owner, at_client, at_server) = (link.owner, link.at_client, link.at_server);
        let mut name = at_server;
        if let (IoEvent::Closed(_), Some(wrap)) = (&event, &mut link.wrap) {
            wrap.ends[end] = None;
            // The other end sees the end, and what it still writes is dropped.
            link.pipes[1 - end].end();
            link.reads[end] = true;
            if end == SERVER {
                name = self.rename(n);
            }
        }
        match (end, event) {
            (CLIENT, event) => self.at_client(owner, at_client, event),
            (_, event) => {
                if let IoEvent::Written(written) = event {
                    E::taken(self, n, false, written);
                }
                E::at_server(self, at_server, event);
            }
        }
        name
    }
}
