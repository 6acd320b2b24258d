//! A client, a server behind a URL, and the connections between them, in virtual time. The server
//! implements [`Site`]: it receives the requests and returns bytes. Connections are cut, delayed,
//! stalled, refused and reset at random.

use super::super::digest::log::{Engine, Log, Op};
use super::super::fault::{Chaos, Fault};
use super::super::link::{Arrival, Pipe};
use super::tap::Tap;
use super::wire::{Request, Requests};
use bytes::Bytes;
use mcp_proto::client::Event;
use mcp_proto::error::Refused;
use mcp_proto::exchange::{Action, Closed, ConnectionId, ConnectionNotice, Endpoint, IoEvent, Peer, Shutdown};
use mcp_proto::input::{Applied, Input, WiredClientInput};
use mcp_proto::wired::WiredClient;
use mcp_proto::{ClientConfig, Instant};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// A connection, as a server knows it: never used twice.
pub type Conn = ConnectionId;

/// A server over HTTP.
pub trait Site {
    /// A request has been read.
    fn request(&mut self, conn: Conn, request: Request, net: &mut Net);
    /// The connection is gone, or will carry no further request.
    fn gone(&mut self, conn: Conn, net: &mut Net);
    /// When it wants to act by itself.
    fn due(&self) -> Option<Instant>;
    /// Handles the time.
    fn wake(&mut self, net: &mut Net);
}

/// The context of a server: the time, the random generator, and its connections.
#[derive(Debug)]
pub struct Net {
    /// Now.
    pub now: Instant,
    /// The random generator.
    pub chaos: Chaos,
    said: Vec<(Conn, Said)>,
}

#[derive(Debug)]
enum Said {
    Bytes(Bytes),
    End,
    Reset,
}

impl Net {
    /// Writes to a connection.
    pub fn write(&mut self, conn: Conn, bytes: impl Into<Bytes>) {
        self.said.push((conn, Said::Bytes(bytes.into())));
    }

    /// Ends a connection, after the written bytes.
    pub fn end(&mut self, conn: Conn) {
        self.said.push((conn, Said::End));
    }

    /// Cuts a connection at once.
    pub fn reset(&mut self, conn: Conn) {
        self.said.push((conn, Said::Reset));
    }
}

struct Link {
    conn: Conn,
    /// Whether the client reads.
    reads: bool,
    up: Pipe,
    down: Pipe,
    requests: Requests,
    /// How many requests the server has read from it.
    read: u64,
}

enum Next {
    Open(usize),
    Closed(usize),
    Accept(usize, bool),
    Arrive(usize, bool),
    Client,
    Site,
}

/// The world of one client and its server.
pub struct Web<S> {
    engine: WiredClient,
    /// The server.
    pub site: S,
    /// The time and the random generator.
    pub net: Net,
    /// The check of the bytes on the connections.
    pub tap: Tap,
    /// The events of the client's application, with their times.
    pub events: VecDeque<(Instant, Event)>,
    /// Connections whose end was reported to the application.
    pub closed: u64,
    links: Vec<Link>,
    opening: Vec<(Instant, ConnectionId, Option<Closed>)>,
    hanging: BTreeSet<ConnectionId>,
    closing: Vec<(Instant, ConnectionId, Closed)>,
    capacity: usize,
    trace: bool,
    /// The inputs of the client, if they are recorded.
    pub(in crate::sim) log: Log,
}

impl<S: Site> Web<S> {
    /// A client with this configuration and the server `site`. Links hold `capacity` bytes in one
    /// direction.
    pub fn new(config: ClientConfig, site: S, chaos: Chaos, capacity: usize, trace: bool) -> Self {
        Self::with(config, site, chaos, capacity, trace, Log::default())
    }

    /// The same, with a log of the inputs of the client.
    pub(in crate::sim) fn with(
        config: ClientConfig,
        site: S,
        mut chaos: Chaos,
        capacity: usize,
        trace: bool,
        mut log: Log,
    ) -> Self {
        let config = Arc::new(config);
        let seed = chaos.rng.seed();
        log.push(Engine::Client(0), Instant::ZERO, || Op::Client { rng: 0, seed });
        let tap = Tap::new(&config);
        let mut web = Self {
            engine: WiredClient::new(config, seed, Instant::ZERO),
            site,
            net: Net { now: Instant::ZERO, chaos, said: Vec::new() },
            tap,
            events: VecDeque::new(),
            closed: 0,
            links: Vec::new(),
            opening: Vec::new(),
            hanging: BTreeSet::new(),
            closing: Vec::new(),
            capacity,
            trace,
            log,
        };
        web.drain();
        web
    }

    /// The client, to look at.
    pub fn engine(&self) -> &WiredClient {
        &self.engine
    }

    /// Whether no connection is left, in either direction or half.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty() && self.opening.is_empty() && self.hanging.is_empty() && self.closing.is_empty()
    }

    /// The connections that are known to be open.
    pub fn is_known(&self, channel: ConnectionId) -> bool {
        self.links.iter().any(|link| link.conn == channel)
            || self.opening.iter().any(|(_, of, _)| *of == channel)
            || self.closing.iter().any(|(_, of, _)| *of == channel)
            || self.hanging.contains(&channel)
    }

    /// Prints, if this world is traced.
    pub fn trace(&self, text: impl FnOnce() -> String) {
        if self.trace {
            println!("{:>14?} {}", self.net.now, text());
        }
    }

    /// Applies an input to the client, and takes its outputs.
    ///
    /// # Errors
    /// The refusal of the client.
    pub fn tell(&mut self, input: WiredClientInput) -> Result<Applied, Refused<WiredClientInput>> {
        self.trace(|| format!("{:?} <- {input:?}", self.engine.client().state()));
        self.tap.input(self.net.now, self.engine.client().state(), &input);
        if let Input::Event(channel, IoEvent::Read(bytes)) = &input {
            self.tap.heard(*channel, bytes);
        }
        if let Input::Event(channel, IoEvent::ReadClosed | IoEvent::Closed(_)) = &input {
            self.tap.ended(*channel);
        }
        self.log.client(0, self.net.now, &input);
        let applied = self.engine.apply(self.net.now, input);
        self.drain();
        applied
    }

    /// Steps until `until`, which then is now.
    ///
    /// # Panics
    /// If that takes a million steps.
    pub fn run_until(&mut self, until: Instant) {
        for _ in 0..1_000_000 {
            match self.next() {
                Some(at) if at <= until => self.step(),
                _ => {
                    self.net.now = self.net.now.max(until);
                    return;
                }
            }
        }
        panic!("still busy at {:?}", self.net.now);
    }

    /// When the next thing happens.
    pub fn next(&self) -> Option<Instant> {
        self.options().into_iter().map(|(at, _)| at.max(self.net.now)).min()
    }

    /// Executes the next step: of all steps at the earliest time, a random one.
    pub fn step(&mut self) {
        let mut options = self.options();
        let Some(first) = options.iter().map(|(at, _)| (*at).max(self.net.now)).min() else { return };
        options.retain(|(at, _)| *at <= first);
        self.net.now = first;
        let chosen = self.net.chaos.rng.below(options.len() as u64) as usize;
        match options.swap_remove(chosen).1 {
            Next::Open(n) => self.open(n),
            Next::Closed(n) => {
                let (_, channel, why) = self.closing.swap_remove(n);
                self.handle_event(channel, IoEvent::Closed(why));
            }
            Next::Accept(n, up) => self.accept(n, up),
            Next::Arrive(n, up) => self.arrive(n, up),
            Next::Client => {
                self.net.chaos.steps += 1;
                let _ = self.tell(Input::Tick);
            }
            Next::Site => {
                self.site.wake(&mut self.net);
                self.carry();
            }
        }
    }

    fn options(&self) -> Vec<(Instant, Next)> {
        let mut options = Vec::new();
        for (n, (at, ..)) in self.opening.iter().enumerate() {
            options.push((*at, Next::Open(n)));
        }
        for (n, (at, ..)) in self.closing.iter().enumerate() {
            options.push((*at, Next::Closed(n)));
        }
        for (n, link) in self.links.iter().enumerate() {
            for (up, pipe) in [(true, &link.up), (false, &link.down)] {
                if pipe.may_accept() {
                    options.push((pipe.stalled_until(), Next::Accept(n, up)));
                }
                let reads = up || link.reads;
                if let (Some(at), true) = (pipe.next_arrival(), reads) {
                    options.push((at, Next::Arrive(n, up)));
                }
            }
        }
        options.extend(self.engine.poll_timeout().map(|at| (at, Next::Client)));
        options.extend(self.site.due().map(|at| (at, Next::Site)));
        options
    }

    fn handle_event(&mut self, channel: ConnectionId, wire: IoEvent) {
        let _ = self.tell(Input::Event(channel, wire));
    }

    // ---- connections

    fn want_open(&mut self, channel: ConnectionId) {
        let after = Duration::from_millis(self.net.chaos.rng.below(20));
        let why = match self.net.chaos.pick(&[Fault::Refused, Fault::Unresolved, Fault::Unreachable, Fault::Hang], 350)
        {
            Some(Fault::Hang) => {
                self.hanging.insert(channel);
                return;
            }
            Some(Fault::Refused) => Some(Closed::Refused),
            Some(Fault::Unresolved) => Some(Closed::Unresolved),
            Some(_) => Some(Closed::Unreachable("no route".into())),
            None => None,
        };
        self.opening.push((self.net.now + after, channel, why));
    }

    fn open(&mut self, n: usize) {
        let (_, conn, why) = self.opening.swap_remove(n);
        if let Some(why) = why {
            return self.handle_event(conn, IoEvent::Closed(why));
        }
        let latency = Duration::from_millis(self.net.chaos.rng.below(20));
        let pipe = || Pipe::new(self.capacity, latency);
        let (up, down) = (pipe(), pipe());
        self.links.push(Link { conn, reads: true, up, down, requests: Requests::default(), read: 0 });
        self.handle_event(conn, IoEvent::Opened(Peer::default()));
    }

    fn accept(&mut self, n: usize, up: bool) {
        let chaos = &mut self.net.chaos;
        let link = &mut self.links[n];
        let pipe = if up { &mut link.up } else { &mut link.down };
        if chaos.hit(Fault::Stall, 20) {
            return pipe.stall(self.net.now + Duration::from_millis(1 + chaos.rng.below(40_000)));
        }
        let cut = chaos.hit(Fault::Cut, 40);
        let taken = pipe.accept(self.net.now, cut, &mut chaos.rng);
        let conn = link.conn;
        if up {
            self.handle_event(conn, IoEvent::Written(taken));
        }
    }

    fn arrive(&mut self, n: usize, up: bool) {
        let link = &mut self.links[n];
        let conn = link.conn;
        let fresh = link.read > 0 && !link.requests.is_partial();
        if up && fresh && self.net.chaos.hit(Fault::DeadAtWrite, 150) {
            return self.cut(n, Closed::Reset);
        }
        if self.net.chaos.hit(Fault::Delay, 20) {
            let by = Duration::from_millis(1 + self.net.chaos.rng.below(5_000));
            let pipe = if up { &mut self.links[n].up } else { &mut self.links[n].down };
            return pipe.delay(by);
        }
        if !up && self.net.chaos.hit(Fault::HalfClose, 40) {
            self.links[n].down.truncate();
        }
        let reset = self.net.chaos.hit(Fault::Reset, 30);
        self.net.chaos.steps += 1;
        let pipe = if up { &mut self.links[n].up } else { &mut self.links[n].down };
        match (pipe.arrive(), up) {
            (Arrival::Bytes(mut bytes), false) => {
                if reset {
                    bytes.truncate(self.net.chaos.rng.below(bytes.len() as u64 + 1) as usize);
                }
                if !bytes.is_empty() {
                    self.handle_event(conn, IoEvent::Read(bytes));
                }
            }
            (Arrival::End, false) => self.handle_event(conn, IoEvent::ReadClosed),
            (Arrival::Bytes(bytes), true) if !reset => {
                let link = &mut self.links[n];
                let requests = link.requests.read(&bytes);
                link.read += requests.len() as u64;
                for request in requests {
                    self.trace(|| {
                        format!("server {conn:?} <- {} {}", request.method, String::from_utf8_lossy(&request.body))
                    });
                    self.site.request(conn, request, &mut self.net);
                }
                self.carry();
            }
            (Arrival::Bytes(_) | Arrival::End, true) => {}
        }
        let at = self.links.iter().position(|link| link.conn == conn);
        if let (true, Some(n)) = (reset, at) {
            self.cut(n, Closed::Reset);
        }
    }

    /// Handles the output of the server.
    fn carry(&mut self) {
        for (conn, said) in std::mem::take(&mut self.net.said) {
            let Some(n) = self.links.iter().position(|link| link.conn == conn) else { continue };
            match said {
                Said::Bytes(bytes) => self.links[n].down.write(bytes),
                Said::End => self.links[n].down.end(),
                Said::Reset => self.cut(n, Closed::Reset),
            }
        }
    }

    /// The link is lost, and the client sees it a moment later.
    fn cut(&mut self, n: usize, why: Closed) {
        let link = self.links.swap_remove(n);
        self.trace(|| format!("{:?} is cut: {why}", link.conn));
        self.site.gone(link.conn, &mut self.net);
        self.carry();
        let after = Duration::from_millis(self.net.chaos.rng.below(3));
        self.closing.push((self.net.now + after, link.conn, why));
    }

    fn drain(&mut self) {
        while let Some(action) = self.engine.poll_output() {
            self.trace(|| format!("  -> {action:?}"));
            self.tap.action(&action);
            match action {
                Action::Open(channel, endpoint) => {
                    assert!(
                        matches!(&endpoint, Endpoint::Origin(origin) if *origin == self.tap.origin),
                        "opens {endpoint:?}"
                    );
                    self.want_open(channel);
                }
                Action::Write(channel, bytes) => {
                    if let Some(link) = self.links.iter_mut().find(|link| link.conn == channel) {
                        link.up.write(bytes);
                    }
                }
                Action::Close(channel, how) => {
                    assert_eq!(how, Shutdown::Abort, "a connection over HTTP is cut");
                    self.close(channel);
                }
                Action::Read(channel, reads) => {
                    self.links.iter_mut().filter(|link| link.conn == channel).for_each(|link| link.reads = reads);
                }
                Action::Notice(_, ConnectionNotice::Closed(_)) => self.closed += 1,
                Action::Notice(_, ConnectionNotice::Closing(_)) => {}
                Action::Event(event) => self.events.push_back((self.net.now, event)),
            }
        }
    }

    fn close(&mut self, channel: ConnectionId) {
        if let Some(n) = self.links.iter().position(|link| link.conn == channel) {
            return self.cut(n, Closed::Aborted);
        }
        let known = self.opening.len();
        self.opening.retain(|(_, of, _)| *of != channel);
        if self.opening.len() < known || self.hanging.remove(&channel) {
            self.closing.push((self.net.now, channel, Closed::Aborted));
        }
    }
}
