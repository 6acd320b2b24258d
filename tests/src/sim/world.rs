//! A world: clients, a network, and the end of it that a server is. Each kind of world implements
//! [`Ends`]; the steps of clients and connections are the same in all.

use super::client::Client;
use super::digest::log::{Engine, Log, Op};
use super::fault::Fault;
use super::link::Arrival;
use super::net::{Net, Odds};
use super::report::{InputKind, Report};
use super::rng::Rng;
use super::scenario::Less;
use super::secured::Wrap;
use bytes::Bytes;
use mcp_proto::client::Event;
use mcp_proto::exchange::{Action, Closed, ConnectionId, Endpoint, IoEvent, Shutdown};
use mcp_proto::input::{CallId, ClientCommand, Input, InputResult, WiredClientInput};
use mcp_proto::{Call, Instant, Method};
use std::collections::BTreeSet;
use std::time::Duration;

/// A time that never comes.
pub const NEVER: Instant = Instant::new(Duration::MAX);

/// The ends of a world: its server, and what differs at its clients and in its network.
pub trait Ends: Sized {
    /// What only these clients have.
    type Client;
    /// A step of the server or of an application.
    type Step;
    /// How often the network fails.
    const ODDS: Odds;
    /// Whether bytes stay at the server while the client does not read.
    const HOLDS: bool = false;

    // ---- the server

    /// Returns the possible steps of the server and of applications, each with its time. Those in
    /// the first list precede the steps of the connections, when one of all is drawn.
    fn steps(world: &World<Self>) -> [Vec<(Instant, Self::Step)>; 2];
    /// Executes one of them.
    fn step(world: &mut World<Self>, step: Self::Step);
    /// A client connects. Returns the name of the connection at the server, or `None` if that
    /// refuses it.
    fn accept(world: &mut World<Self>, owner: u64, at_client: ConnectionId) -> Option<ConnectionId>;
    /// Returns what is between the engines and a new connection, if there is anything.
    fn wrap(_world: &mut World<Self>, _owner: u64) -> Option<Wrap> {
        None
    }
    /// Something happened to a connection of the server.
    fn at_server(world: &mut World<Self>, at_server: ConnectionId, event: IoEvent);
    /// A client has seen the opening of its connection.
    fn opened(_world: &mut World<Self>) {}

    // ---- the clients

    /// Returns when the timer of a client fires.
    fn timer(_world: &World<Self>, client: &Client<Self::Client>) -> Option<Instant> {
        client.engine.poll_timeout()
    }
    /// A client emitted an event, which it already keeps itself.
    fn event(world: &mut World<Self>, n: usize, event: Event);
    /// A client got an input. `moves` are its states before and after.
    fn moved(_world: &mut World<Self>, _n: usize, _moves: [mcp_proto::client::State; 2]) {}
    /// A client wrote to a link.
    fn write(world: &mut World<Self>, link: usize, bytes: Bytes) {
        world.net.links[link].pipe(true).write(bytes);
    }
    /// A client ends a link.
    fn close(world: &mut World<Self>, link: usize, _how: Shutdown) {
        world.cut(link, Closed::Aborted, Closed::Reset);
    }
    /// Checks invariants after each step.
    fn look(world: &mut World<Self>) {
        let now = world.net.now;
        world.clients.iter_mut().for_each(|client| client.look(now));
    }

    // ---- the network

    /// Returns what prevents an attempt to connect, if anything does: no response, or the reason.
    fn obstacle(world: &mut World<Self>) -> Result<(), Option<Closed>> {
        let (faults, chance) = Self::ODDS.connect;
        match world.net.chaos.pick(faults, chance) {
            None => Ok(()),
            Some(Fault::Hang) => Err(None),
            Some(Fault::Refused) => Err(Some(Closed::Refused)),
            Some(Fault::Unresolved) => Err(Some(Closed::Unresolved)),
            Some(_) => Err(Some(Closed::Unreachable("no route".into()))),
        }
    }
    /// Something may go wrong with bytes that arrive: returns whether their connection is reset.
    /// `None` if they do not arrive now.
    fn mishap(world: &mut World<Self>, link: usize, up: bool) -> Option<bool> {
        if up && Self::is_dead(world, link) {
            world.cut(link, Closed::Reset, Closed::Reset);
            return None;
        }
        if world.delays(link, up) {
            return None;
        }
        let (fault, chance) = Self::ODDS.half_close;
        if !up && world.net.chaos.hit(fault, chance) {
            world.net.links[link].pipe(up).truncate();
        }
        let (faults, chance) = Self::ODDS.reset;
        Some(world.net.chaos.hit(faults[usize::from(up)], chance))
    }
    /// Returns whether bytes to the server find a link dead.
    fn is_dead(world: &mut World<Self>, link: usize) -> bool {
        world.net.links[link].doomed
    }
    /// Returns how many bytes still arrive on a connection that is reset.
    fn survivors(world: &mut World<Self>, _up: bool, bytes: usize) -> usize {
        world.net.chaos.rng.below(bytes as u64 + 1) as usize
    }
    /// Bytes left an end of a link.
    fn taken(_world: &mut World<Self>, _link: usize, _up: bool, _bytes: usize) {}
    /// A client has seen the end of what the server sends.
    fn hung_up(_world: &mut World<Self>, _owner: u64, _at_client: ConnectionId) {}
    /// Returns what a client sees of a connection that both sides have ended.
    fn ended(_world: &World<Self>) -> Closed {
        Closed::Eof
    }
    /// A connection is lost, which its client sees a moment later if it was open.
    fn lost(world: &mut World<Self>, owner: u64, at_client: ConnectionId, why: Closed, was_open: bool) {
        let after = if was_open { world.net.random(3) } else { Duration::ZERO };
        if world.client_of(owner).is_some() {
            world.net.closing.push((world.net.now + after, owner, at_client, why));
        }
    }
}

enum Step<S> {
    Open(usize),
    Closed(usize),
    Accept(usize, bool),
    Arrive(usize, bool),
    End(usize),
    Client(usize),
    Own(S),
}

/// Clients, a server, and the connections between them.
pub struct World<E: Ends> {
    /// The server, and what only this kind of world has.
    pub end: E,
    /// The time, the random generator, and the connections.
    pub net: Net,
    /// The clients.
    pub clients: Vec<Client<E::Client>>,
    /// The generator of the applications. Without one they draw from that of the network.
    pub rng: Option<Rng>,
    /// The results so far.
    pub report: Report,
    /// The events of clients whose application is a test.
    pub events: Vec<(Instant, Event)>,
    /// The inputs of the engines, if they are recorded.
    pub(super) log: Log,
    /// The tag of the latest call.
    pub(super) tag: u64,
    /// Operations that were made, and when the next one is due.
    pub(super) operations: u64,
    pub(super) next_operation: Instant,
    left_out: BTreeSet<u64>,
    trace: bool,
}

/// The steps that may come next.
struct Options<S> {
    now: Instant,
    first: Option<Instant>,
    steps: Vec<Step<S>>,
}

impl<S> Options<S> {
    /// Adds a step, unless another one comes before it.
    fn add(&mut self, at: Instant, step: Step<S>) {
        let at = at.max(self.now);
        if self.first.is_none_or(|first| at < first) {
            self.first = Some(at);
            self.steps.clear();
        }
        if self.first == Some(at) {
            self.steps.push(step);
        }
    }
}

impl<E: Ends> World<E> {
    /// A world without clients, for a test.
    pub fn bare(end: E, net: Net) -> Self {
        Self::new(end, net, None, &Less::default(), false, Log::default())
    }

    /// A world without clients, which leaves out some operations; `trace` prints what happens.
    pub(super) fn new(end: E, net: Net, rng: Option<Rng>, less: &Less, trace: bool, log: Log) -> Self {
        Self {
            end,
            net,
            clients: Vec::new(),
            rng,
            report: Report::default(),
            events: Vec::new(),
            log,
            tag: 0,
            operations: 0,
            next_operation: Instant::ZERO,
            left_out: less.operations.clone(),
            trace,
        }
    }

    /// Prints, if this world is traced.
    pub fn trace(&self, text: impl FnOnce() -> String) {
        if self.trace {
            println!("{:>14?} {}", self.net.now, text());
        }
    }

    /// Returns the number of random faults, and of operations.
    pub(super) const fn drawn(&self) -> (u64, u64) {
        (self.net.chaos.drawn, self.operations)
    }

    // ---- the choices of the applications

    /// Returns the generator of the applications.
    pub(super) fn rng(&mut self) -> &mut Rng {
        self.rng.as_mut().unwrap_or(&mut self.net.chaos.rng)
    }

    /// Returns a number below `n` for an application.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.rng().below(n)
    }

    /// Returns one of these for an application.
    pub(super) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        self.rng().of(choices)
    }

    /// Returns true in `n` of a thousand cases.
    pub(super) fn per_mille(&mut self, n: u64) -> bool {
        self.rng().per_mille(n)
    }

    /// Counts an operation, and returns whether it is made. The next one is due after `pause`
    /// milliseconds.
    pub(super) fn begins_operation(&mut self, pause: u64) -> bool {
        self.next_operation = self.net.now + Duration::from_millis(pause);
        self.operations += 1;
        !self.left_out.contains(&(self.operations - 1))
    }

    // ---- what happens next

    /// Returns the earliest time at which something happens, and all steps at that time.
    fn options(&self) -> (Option<Instant>, Vec<Step<E::Step>>) {
        let mut options = Options { now: self.net.now, first: None, steps: Vec::new() };
        let awake = |owner| self.client_of(owner).map_or(Instant::ZERO, |n| self.clients[n].asleep);
        let [first, last] = E::steps(self).map(|steps| steps.into_iter().map(|(at, step)| (at, Step::Own(step))));
        first.for_each(|(at, step)| options.add(at, step));
        for (n, (at, owner, ..)) in self.net.opening.iter().enumerate() {
            options.add((*at).max(awake(*owner)), Step::Open(n));
        }
        for (n, (at, owner, ..)) in self.net.closing.iter().enumerate() {
            options.add((*at).max(awake(*owner)), Step::Closed(n));
        }
        for (n, link) in self.net.links.iter().enumerate() {
            if let Some((at, _)) = &link.until {
                options.add(*at, Step::End(n));
            }
            if link.frozen {
                continue;
            }
            let ([down, up], [reads, server_reads], awake) = (&link.pipes, link.reads, awake(link.owner));
            let mut moves = [
                up.may_accept().then(|| (up.stalled_until().max(awake), Step::Accept(n, true))),
                up.next_arrival().filter(|_| server_reads).map(|at| (at, Step::Arrive(n, true))),
                (down.may_accept() && (reads || !E::HOLDS)).then(|| (down.stalled_until(), Step::Accept(n, false))),
                down.next_arrival().filter(|_| reads).map(|at| (at.max(awake), Step::Arrive(n, false))),
            ];
            if E::HOLDS {
                // The order decides which step a seed draws.
                moves.swap(1, 2);
            }
            moves.into_iter().flatten().for_each(|(at, step)| options.add(at, step));
        }
        for (n, client) in self.clients.iter().enumerate() {
            if let Some(at) = E::timer(self, client) {
                options.add(at.max(client.asleep), Step::Client(n));
            }
        }
        last.for_each(|(at, step)| options.add(at, step));
        (options.first, options.steps)
    }

    /// Returns when the next thing happens.
    pub fn next(&self) -> Option<Instant> {
        self.options().0
    }

    /// Executes the next step if it is due by then. Of all steps at the earliest time, a random one
    /// comes first.
    pub fn step(&mut self, until: Instant) -> bool {
        let (first, mut options) = self.options();
        let Some(first) = first.filter(|at| *at <= until) else { return false };
        self.net.now = first;
        let chosen = self.net.chaos.rng.below(options.len() as u64) as usize;
        match options.swap_remove(chosen) {
            Step::Open(n) => self.open(n),
            Step::Closed(n) => {
                let (_, owner, channel, why) = self.net.closing.swap_remove(n);
                self.at_client(owner, channel, IoEvent::Closed(why));
            }
            Step::Accept(n, up) => self.accept(n, up),
            Step::Arrive(n, up) => self.arrive(n, up),
            Step::End(n) => {
                let (_, why) = self.net.links[n].until.take().expect("it ends by itself");
                self.cut(n, why, Closed::Reset);
            }
            Step::Client(n) => {
                self.net.chaos.steps += 1;
                self.apply(n, Input::Tick);
            }
            Step::Own(step) => E::step(self, step),
        }
        E::look(self);
        true
    }

    /// Steps until so much time has passed, or `done`.
    ///
    /// # Panics
    /// If that takes a million steps.
    pub fn wait(&mut self, most: Duration, done: impl Fn(&Self) -> bool) {
        let until = self.net.now + most;
        for _ in 0..1_000_000 {
            if done(self) {
                return;
            }
            if !self.step(until) {
                self.net.now = until;
                return;
            }
        }
        panic!("still busy at {:?}", self.net.now);
    }

    // ---- the clients

    pub(super) fn client_of(&self, owner: u64) -> Option<usize> {
        self.clients.iter().position(|client| client.number == owner)
    }

    /// Adds a client, whose configuration was drawn from a generator in the state `rng`.
    pub(super) fn add_client(&mut self, client: Client<E::Client>, rng: u64, seed: [u8; 32]) {
        self.log.push(Engine::Client(client.number), self.net.now, || Op::Client { rng, seed });
        self.clients.push(client);
        self.drain(self.clients.len() - 1);
    }

    /// Applies an input to a client, and carries out its outputs.
    pub fn apply(&mut self, n: usize, input: WiredClientInput) -> Option<InputResult> {
        let (number, before) = (self.clients[n].number, self.clients[n].state());
        self.trace(|| format!("client {number} {before:?} <- {input:?}"));
        *self.report.pairs.entry((before, InputKind::of(&input))).or_default() += 1;
        self.log.client(number, self.net.now, &input);
        let applied = self.clients[n].apply(self.net.now, input).ok();
        let after = self.clients[n].state();
        // Its events can come only after the application has the id of the call.
        if !matches!(applied, Some(InputResult::Call(_))) {
            self.drain(n);
        }
        E::moved(self, n, [before, after]);
        applied
    }

    /// Makes a call. `None` if the client refuses it.
    pub fn call<M: Method>(
        &mut self,
        n: usize,
        tag: Option<u64>,
        limit: Option<Duration>,
        call: Call<M>,
    ) -> Option<CallId> {
        self.clients[n].alive.extend(tag);
        let applied = self.apply(n, Input::Command(ClientCommand::Call(call.into_raw())));
        let made = match applied {
            Some(InputResult::Call(call)) => {
                self.clients[n].made(self.net.now, call, tag, limit);
                self.report.calls += 1;
                Some(call)
            }
            _ => {
                tag.map(|tag| self.clients[n].alive.remove(&tag));
                None
            }
        };
        self.drain(n);
        made
    }

    fn drain(&mut self, n: usize) {
        while let Some(action) = self.clients[n].next_action() {
            let owner = self.clients[n].number;
            self.trace(|| format!("client {owner} -> {action:?}"));
            match action {
                Action::Open(channel, endpoint) => self.want_open(n, channel, &endpoint),
                Action::Secure(channel, name) => self.secure(owner, channel, &name),
                Action::Write(channel, bytes) => {
                    if let Some(link) = self.net.link_of(owner, channel) {
                        E::write(self, link, bytes);
                    }
                }
                Action::Close(channel, how) => match self.net.link_of(owner, channel) {
                    Some(link) => E::close(self, link, how),
                    None if self.net.forget(owner, channel) && how == Shutdown::Abort => {
                        E::lost(self, owner, channel, Closed::Aborted, false);
                    }
                    None => {}
                },
                Action::Read(channel, reads) => {
                    if let Some(link) = self.net.link_of(owner, channel) {
                        self.net.links[link].reads[0] = reads;
                    }
                }
                Action::Notice(..) => {}
                Action::Event(event) => {
                    self.clients[n].event(self.net.now, &event, &mut self.report);
                    E::event(self, n, event);
                }
            }
        }
    }

    /// Reports an event of a connection to its client, if that is still there.
    pub(super) fn at_client(&mut self, owner: u64, channel: ConnectionId, event: IoEvent) {
        if let Some(n) = self.client_of(owner) {
            self.apply(n, Input::Event(channel, event));
        }
    }

    // ---- how connections open

    fn want_open(&mut self, n: usize, channel: ConnectionId, endpoint: &Endpoint) {
        let client = &self.clients[n];
        let is_right = match (endpoint, &client.tap) {
            (Endpoint::Origin(origin), Some(tap)) => *origin == tap.origin,
            (Endpoint::Program(_) | Endpoint::Origin(_), None) => true,
            _ => false,
        };
        assert!(is_right, "opens {endpoint:?}");
        let (owner, at) = (client.number, self.net.now + self.net.random(E::ODDS.opening));
        match E::obstacle(self) {
            Err(None) => _ = self.net.hanging.insert((owner, channel)),
            obstacle => self.net.opening.push((at, owner, channel, obstacle.err().flatten())),
        }
    }

    fn open(&mut self, n: usize) {
        let (_, owner, channel, why) = self.net.opening.swap_remove(n);
        if let Some(why) = why.or_else(|| self.connect(owner, channel).err()) {
            return self.at_client(owner, channel, IoEvent::Closed(why));
        }
        self.at_client(owner, channel, IoEvent::Opened(Default::default()));
        E::opened(self);
    }

    /// Connects to the server, and returns the link.
    pub(super) fn connect(&mut self, owner: u64, channel: ConnectionId) -> Result<usize, Closed> {
        let at_server = E::accept(self, owner, channel).ok_or(Closed::Refused)?;
        let n = self.net.connect(owner, channel, at_server);
        self.net.links[n].wrap = E::wrap(self, owner).map(Box::new);
        Ok(n)
    }

    // ---- how they carry

    /// Bytes leave one end of a link.
    fn accept(&mut self, n: usize, up: bool) {
        let (Net { chaos, links, now, .. }, (stalls, chance, longest)) = (&mut self.net, E::ODDS.stall);
        let link = &mut links[n];
        if chaos.hit(stalls[usize::from(up)], chance) {
            let until = *now + Duration::from_millis(1 + chaos.rng.below(longest));
            return link.pipe(up).stall(until);
        }
        let cut = chaos.hit(Fault::Cut, E::ODDS.cut);
        let taken = link.pipe(up).accept(*now, cut, &mut chaos.rng);
        let (owner, at_client, at_server) = (link.owner, link.at_client, link.at_server);
        if link.wrap.is_some() {
            return self.taken_wrapped(n, up, taken);
        }
        E::taken(self, n, up, taken);
        if up {
            self.at_client(owner, at_client, IoEvent::Written(taken));
        } else {
            E::at_server(self, at_server, IoEvent::Written(taken));
        }
    }

    /// Returns whether the next bytes of a link arrive later.
    pub(super) fn delays(&mut self, n: usize, up: bool) -> bool {
        let is_delayed = self.net.chaos.hit(Fault::Delay, E::ODDS.delay);
        if is_delayed {
            let by = Duration::from_millis(1) + self.net.random(5_000);
            self.net.links[n].pipe(up).delay(by);
        }
        is_delayed
    }

    /// Bytes arrive at the other end of a link.
    fn arrive(&mut self, n: usize, up: bool) {
        let Some(is_reset) = E::mishap(self, n, up) else { return };
        self.net.chaos.steps += 1;
        let link = &mut self.net.links[n];
        let (owner, at_client, at_server) = (link.owner, link.at_client, link.at_server);
        let event = match link.pipe(up).arrive() {
            Arrival::Bytes(mut bytes) => {
                if is_reset {
                    let survivors = E::survivors(self, up, bytes.len());
                    bytes.truncate(survivors);
                }
                Some(bytes).filter(|bytes| !bytes.is_empty()).map(IoEvent::Read)
            }
            Arrival::End => Some(IoEvent::ReadClosed),
        };
        let is_wrapped = self.net.links[n].wrap.is_some();
        let at_server = if is_wrapped { self.arrive_wrapped(n, up, event.clone()) } else { at_server };
        match event {
            _ if is_wrapped => {}
            Some(event) if up => E::at_server(self, at_server, event),
            Some(event) => {
                let is_end = event == IoEvent::ReadClosed;
                self.at_client(owner, at_client, event);
                if is_end {
                    E::hung_up(self, owner, at_client);
                }
            }
            None => {}
        }
        let Some(n) = self.net.link_at(at_server) else { return };
        let [down, up] = self.net.links[n].pipes.each_ref().map(|pipe| pipe.ended);
        if is_reset {
            self.cut(n, Closed::Reset, Closed::Reset);
        } else if up && down {
            self.cut(n, E::ended(self), Closed::Eof);
        } else if down && self.client_of(owner).is_none() {
            self.cut(n, Closed::Eof, Closed::Reset);
        }
    }

    // ---- how they end

    /// The server reads from a connection, or does not.
    pub(super) fn read_at_server(&mut self, at_server: ConnectionId, reads: bool) {
        if let Some(n) = self.net.link_at(at_server) {
            self.net.links[n].reads[1] = reads;
        }
    }

    /// The server ends a connection.
    pub(super) fn close_at_server(&mut self, at_server: ConnectionId, how: Shutdown) {
        match self.net.link_at(at_server) {
            Some(n) if how == Shutdown::WriteHalf => self.finish_at_server(n),
            Some(n) if how == Shutdown::Abort => self.cut(n, Closed::Reset, Closed::Aborted),
            _ => {}
        }
    }

    /// The link is lost: the server sees it at once.
    pub(super) fn cut(&mut self, n: usize, client_sees: Closed, server_sees: Closed) {
        let link = self.net.links.swap_remove(n);
        self.trace(|| format!("{:?} of {:?} is cut: {client_sees}", link.at_server, link.owner));
        let [client, server] = link.wrap.as_ref().map_or([true; 2], |wrap| wrap.has());
        if client {
            E::lost(self, link.owner, link.at_client, client_sees, true);
        }
        if server {
            E::at_server(self, link.at_server, IoEvent::Closed(server_sees));
        }
    }

    // ---- the end

    /// Returns the results of the run.
    pub(super) fn results(&mut self) -> Report {
        self.report.steps = self.net.chaos.steps;
        self.report.faults = self.net.chaos.faults.clone();
        std::mem::take(&mut self.report)
    }

    /// Records the counters of a client, if inputs are recorded.
    pub(super) fn log_stats(&mut self, n: usize) {
        let client = &self.clients[n];
        let stats = || Op::Stats(format!("{:?}", client.engine.stats()));
        self.log.push(Engine::Client(client.number), self.net.now, stats);
    }
}
