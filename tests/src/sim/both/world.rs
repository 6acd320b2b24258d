//! The world of one run: its possible steps, and their execution.

use super::super::digest::log::{Engine, Log, Op};
use super::app::{self, Task};
use super::host::{Done, Host, TIMEOUT};
use super::net::{Link, Owner};
use super::watch::Watch;
use super::{Chaos, Fault, Rng, Scenario};
use super::{Life, Report};
use mcp_proto::client::State;
use mcp_proto::exchange::{Action, Closed, ConnectionId, ConnectionNotice, IoEvent};
use mcp_proto::input::{
    Admission, AdmitToken, Answer, Applied, ClientCommand, Input, InputAnswer, InputKey, RequestKey, WiredClientInput,
};
use mcp_proto::model::elicitation::ElicitResult;
use mcp_proto::rpc::Object;
use mcp_proto::server::ServerConfig;
use mcp_proto::wired::WiredServer;
use mcp_proto::{Instant, Router, tools};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

enum Next {
    Open(usize),
    Closed(usize),
    Accept(usize, bool),
    Arrive(usize, bool),
    GiveUp(usize),
    Host(usize),
    Server,
    Task(RequestKey),
    Admit(usize),
    Up,
}

/// A server, its clients, the malicious peer, and the connections between them.
pub struct World {
    pub(super) scenario: Scenario,
    pub(super) now: Instant,
    pub(super) chaos: Chaos,
    pub(super) rng: Rng,
    pub(super) trace: bool,
    pub(super) report: Report,
    // The server.
    pub(super) server: WiredServer,
    pub(super) life: Life,
    /// The time of the restart, if the server has ended.
    pub(super) up: Option<Instant>,
    /// Until then the server refuses new connections.
    pub(super) closed_until: Instant,
    /// The time by which a server that shuts down must have ended.
    pub(super) drain_until: Instant,
    pub(super) config: Arc<ServerConfig>,
    pub(super) router: Router,
    pub(super) tasks: BTreeMap<RequestKey, Task>,
    /// Late responses to cancelled requests.
    pub(super) late: VecDeque<Answer>,
    pub(super) cancelled: Vec<Task>,
    pub(super) admits: Vec<(Instant, AdmitToken, Admission)>,
    pub(super) runs: u64,
    pub(super) done: BTreeMap<u64, Done>,
    /// How often each call was handed out in each round.
    pub(super) handed: BTreeMap<(u64, usize), u32>,
    pub(super) watch: Watch,
    // The clients.
    pub(super) hosts: Vec<Host>,
    pub(super) numbers: u64,
    pub(super) tag: u64,
    // The network.
    pub(super) links: Vec<Link>,
    pub(super) opening: Vec<(Instant, Owner, ConnectionId, Option<Closed>)>,
    pub(super) hanging: BTreeSet<(Owner, ConnectionId)>,
    pub(super) closing: Vec<(Instant, Owner, ConnectionId, Closed)>,
    /// The next connection of the malicious peer.
    pub(super) raw_channel: u64,
    /// The inputs of the engines, if they are recorded.
    pub(in crate::sim) log: Log,
    next_operation: Instant,
    operations: u64,
}

impl World {
    /// A world at its beginning; `trace` prints what happens.
    pub fn new(scenario: &Scenario, trace: bool) -> Self {
        Self::with(scenario, trace, Log::default())
    }

    /// A world that records the inputs of its engines.
    pub(in crate::sim) fn logged(scenario: &Scenario) -> Self {
        Self::with(scenario, false, Log::on())
    }

    fn with(scenario: &Scenario, trace: bool, mut log: Log) -> Self {
        let mut rng = Rng::new(scenario.seed);
        let router = app::marked_router();
        let config = Arc::new(super::server::configure(router.config(), scenario, &mut rng));
        let mut chaos = Chaos::new(Rng::new(rng.draw()), scenario.faults);
        chaos.skip.clone_from(&scenario.less.faults);
        let seed = rng.seed();
        log.push(Engine::Server, Instant::ZERO, || Op::Server(seed));
        let mut world = Self {
            scenario: scenario.clone(),
            now: Instant::ZERO,
            chaos,
            trace,
            report: Report::default(),
            server: WiredServer::new(Arc::clone(&config), seed, Instant::ZERO),
            life: Life::Serving,
            up: None,
            closed_until: Instant::ZERO,
            drain_until: Instant::ZERO,
            watch: Watch::new(scenario, config.limits.server.history_keep),
            config,
            router,
            tasks: BTreeMap::new(),
            late: VecDeque::new(),
            cancelled: Vec::new(),
            admits: Vec::new(),
            runs: 0,
            done: BTreeMap::new(),
            handed: BTreeMap::new(),
            hosts: Vec::new(),
            numbers: 0,
            tag: 0,
            links: Vec::new(),
            opening: Vec::new(),
            hanging: BTreeSet::new(),
            closing: Vec::new(),
            raw_channel: 0,
            log,
            next_operation: Instant::ZERO,
            operations: 0,
            rng,
        };
        for _ in 0..scenario.settings.clients {
            world.add_host();
        }
        world
    }

    pub(super) fn trace(&self, text: impl FnOnce() -> String) {
        if self.trace {
            println!("{:>14?} {}", self.now, text());
        }
    }

    // ---- what happens next

    fn options(&self) -> Vec<(Instant, Next)> {
        let mut options = Vec::new();
        for (n, (at, owner, ..)) in self.opening.iter().enumerate() {
            options.push(((*at).max(self.awake(*owner)), Next::Open(n)));
        }
        for (n, (at, owner, ..)) in self.closing.iter().enumerate() {
            options.push(((*at).max(self.awake(*owner)), Next::Closed(n)));
        }
        for (n, link) in self.links.iter().enumerate() {
            options.extend(link.gives_up.map(|at| (at, Next::GiveUp(n))));
            if link.frozen {
                continue;
            }
            let awake = self.awake(link.owner);
            if link.up.may_accept() {
                options.push((link.up.stalled_until().max(awake), Next::Accept(n, true)));
            }
            if link.down.may_accept() && link.reads {
                options.push((link.down.stalled_until(), Next::Accept(n, false)));
            }
            if let (Some(at), true) = (link.up.next_arrival(), link.server_reads) {
                options.push((at, Next::Arrive(n, true)));
            }
            if let (Some(at), true) = (link.down.next_arrival(), link.reads) {
                options.push((at.max(awake), Next::Arrive(n, false)));
            }
        }
        for (n, host) in self.hosts.iter().enumerate() {
            options.extend(host.engine.poll_timeout().map(|at| (at.max(host.asleep), Next::Host(n))));
        }
        options.extend(self.server.poll_timeout().map(|at| (at, Next::Server)));
        options.extend(self.tasks.iter().map(|(key, task)| (task.next, Next::Task(*key))));
        options.extend(self.admits.iter().enumerate().map(|(n, (at, ..))| (*at, Next::Admit(n))));
        options.extend(self.up.map(|at| (at, Next::Up)));
        options
    }

    fn awake(&self, owner: Owner) -> Instant {
        self.host_of(owner).map_or(Instant::ZERO, |n| self.hosts[n].asleep)
    }

    /// When the next thing happens.
    pub(super) fn next(&self) -> Option<Instant> {
        self.options().into_iter().map(|(at, _)| at.max(self.now)).min()
    }

    /// Executes the next step if it is due by then. Of all steps at the earliest time, a random one
    /// comes first.
    pub(super) fn step(&mut self, until: Instant) -> bool {
        let mut options = self.options();
        let first = options.iter().map(|(at, _)| (*at).max(self.now)).min();
        let Some(first) = first.filter(|at| *at <= until) else { return false };
        options.retain(|(at, _)| *at <= first);
        self.now = first;
        let chosen = self.chaos.rng.below(options.len() as u64) as usize;
        match options.swap_remove(chosen).1 {
            Next::Open(n) => self.open(n),
            Next::Closed(n) => {
                let (_, owner, channel, why) = self.closing.swap_remove(n);
                self.handle_event(owner, channel, IoEvent::Closed(why));
            }
            Next::Accept(n, up) => self.accept(n, up),
            Next::Arrive(n, up) => self.arrive(n, up),
            Next::GiveUp(n) => self.cut(n, Closed::Reset, Closed::Reset),
            Next::Host(n) => {
                self.chaos.steps += 1;
                self.tell(n, Input::Tick);
            }
            Next::Server => {
                self.chaos.steps += 1;
                self.tell_server(Input::Tick);
            }
            Next::Task(key) => self.act(key),
            Next::Admit(n) => self.admit(n),
            Next::Up => self.come_up(),
        }
        self.look();
        true
    }

    /// Steps until so much time has passed, or `done`.
    pub(super) fn wait(&mut self, most: Duration, done: impl Fn(&Self) -> bool) {
        let until = self.now + most;
        for _ in 0..400_000 {
            if done(self) {
                return;
            }
            if !self.step(until) {
                self.now = until;
                return;
            }
        }
        panic!("still busy at {:?}", self.now);
    }

    // ---- the clients

    pub(super) fn host_of(&self, owner: Owner) -> Option<usize> {
        let Owner::Host(number) = owner else { return None };
        self.hosts.iter().position(|host| host.number == number)
    }

    pub(super) fn add_host(&mut self) {
        self.numbers += 1;
        let principal = 1 + self.rng.below(3);
        let host = Host::new(self.numbers, principal, &self.scenario, &mut self.rng, self.now, &mut self.log);
        self.trace(|| format!("client {} of principal {principal}, {:?}", host.number, host.older));
        self.hosts.push(host);
        self.drain_host(self.hosts.len() - 1);
        if self.rng.per_mille(800) {
            self.burst(self.hosts.len() - 1);
        }
    }

    /// Applies an input to a client, and carries out its outputs.
    pub(super) fn tell(&mut self, n: usize, input: WiredClientInput) -> Option<Applied> {
        let host = &mut self.hosts[n];
        if self.trace {
            println!("{:>14?} client {} {:?} <- {input:?}", self.now, host.number, host.state());
        }
        let before = host.state();
        self.log.client(host.number, self.now, &input);
        let applied = host.tell(self.now, input, &mut self.report).ok();
        let lapses = before != State::Lapsed && host.state() == State::Lapsed;
        match applied {
            // Its events can come only after the application has the id of the call.
            Some(Applied::Call(_)) => {}
            _ => self.drain_host(n),
        }
        if lapses {
            self.burst(n);
        }
        applied
    }

    pub(super) fn drain_host(&mut self, n: usize) {
        while let Some(action) = self.hosts[n].next_action() {
            let number = self.hosts[n].number;
            self.trace(|| format!("client {number} -> {action:?}"));
            match action {
                Action::Open(channel, _) => self.want_open(Owner::Host(number), channel),
                Action::Write(channel, bytes) => self.client_writes(Owner::Host(number), channel, bytes),
                Action::Close(channel, _) => self.client_closes(Owner::Host(number), channel),
                Action::Read(channel, reads) => self.client_reads(Owner::Host(number), channel, reads),
                Action::Notice(_, ConnectionNotice::Closed(_)) => self.hosts[n].channels += 1,
                Action::Notice(_, ConnectionNotice::Closing(_)) => {}
                Action::Event(event) => self.hosts[n].event(self.now, event, &mut self.done, &mut self.report),
            }
        }
    }

    pub(super) fn some_work(&mut self, n: usize) {
        self.tag += 1;
        let work = self.hosts[n].some_work(self.tag);
        self.work(n, &work);
    }

    pub(super) fn work(&mut self, n: usize, work: &app::Work) -> bool {
        let (call, limit) = self.hosts[n].ask_for(work);
        self.call(n, Some(work.tag), limit, call)
    }

    fn call<M: mcp_proto::Method>(
        &mut self,
        n: usize,
        tag: Option<u64>,
        limit: Option<Duration>,
        call: mcp_proto::Call<M>,
    ) -> bool {
        self.hosts[n].alive.extend(tag);
        let made = match self.tell(n, Input::Command(ClientCommand::Call(call.into_raw()))) {
            Some(Applied::Call(call)) => {
                self.hosts[n].made(self.now, call, tag, limit);
                self.report.calls += 1;
                true
            }
            _ => {
                tag.map(|tag| self.hosts[n].alive.remove(&tag));
                false
            }
        };
        self.drain_host(n);
        made
    }

    // ---- the operations

    /// Runs to the end: the operations, a time without faults in which every client must recover,
    /// then the end of every client, of every session and of the server. After that no state may be
    /// left.
    pub fn run(&mut self) -> Report {
        while self.operations < self.scenario.operations {
            while self.step(self.next_operation) {}
            self.now = self.now.max(self.next_operation);
            self.next_operation = self.now + Duration::from_millis([20, 100, 400, 4_000][self.rng.below(4) as usize]);
            if !self.scenario.less.operations.contains(&self.operations) {
                self.operate();
            }
            self.operations += 1;
            self.look();
        }
        self.wait(Duration::from_secs(150), |world| world.hosts.iter().all(|host| host.alive.is_empty()));
        self.chaos.rate = 0;
        if self.rng.per_mille(300) {
            self.recover();
        }
        self.close_all();
        self.check_rest();
        self.spurious_after_the_end();
        (0..self.hosts.len()).for_each(|n| self.log_stats(n));
        self.log_server_stats();
        self.count()
    }

    fn log_stats(&mut self, n: usize) {
        let host = &self.hosts[n];
        let stats = || Op::Stats(format!("{:?}", host.engine.stats()));
        self.log.push(Engine::Client(host.number), self.now, stats);
    }

    pub(super) fn log_server_stats(&mut self) {
        self.log.push(Engine::Server, self.now, || Op::Stats(format!("{:?}", self.server.stats())));
    }

    /// Returns the number of random faults, and of operations.
    pub(super) fn drawn(&self) -> (u64, u64) {
        (self.chaos.drawn, self.operations)
    }

    fn operate(&mut self) {
        let n = self.rng.below(self.hosts.len() as u64) as usize;
        if self.hosts[n].is_waited_for() && self.rng.per_mille(400) {
            return self.oblige(n, false);
        }
        let odd = matches!(self.hosts[n].state(), State::Probing | State::Initializing | State::Lapsed);
        if odd && self.rng.per_mille(400) {
            return self.burst(n);
        }
        match self.rng.below(100) {
            0..=41 => self.some_work(n),
            42..=48 => {
                self.call(n, None, Some(TIMEOUT), tools::list());
            }
            49..=52 if self.chaos.rate > 0 => {
                self.chaos.count(Fault::Cancel);
                let call = self.hosts[n].some_call();
                self.tell(n, Input::Command(ClientCommand::Cancel(call, Some("no longer wanted".into()))));
            }
            53..=55 => self.publish(),
            56 => {
                self.tell(n, Input::Command(ClientCommand::Notify("acme/note".into(), Object::new())));
            }
            57..=58 => {
                if self.rng.per_mille(400) {
                    self.tell(n, Input::Command(ClientCommand::Close));
                }
                if self.hosts[n].ended.is_some() && self.hosts.len() < 2 * self.scenario.settings.clients as usize {
                    self.add_host();
                }
            }
            59..=62 => self.spurious(n),
            63..=65 => self.spurious_at_server(),
            66..=87 if self.chaos.rate > 0 && self.life == Life::Serving => {
                for _ in 0..=self.rng.below(4) {
                    self.attack();
                }
            }
            88..=91 if self.chaos.rate > 0 => self.dead_idle(),
            92..=96 if self.chaos.rate > 0 => self.mishap(n),
            _ => self.some_work(n),
        }
    }

    /// Something that happens to a whole client, or to the server.
    fn mishap(&mut self, n: usize) {
        match self.rng.below(8) {
            0 | 1 => self.crash(),
            2 | 3 => self.restart(),
            4 | 5 => self.vanish(n),
            _ => {
                self.chaos.count(Fault::Asleep);
                self.hosts[n].asleep = self.now + self.scenario.settings.session_idle * 3 / 2;
            }
        }
    }

    /// A client is gone, and its connections with it, without a word.
    fn vanish(&mut self, n: usize) {
        self.chaos.count(Fault::Vanish);
        self.log_stats(n);
        let host = self.hosts.swap_remove(n);
        let owner = Owner::Host(host.number);
        self.links.iter_mut().filter(|link| link.owner == owner).for_each(|link| link.frozen = true);
        self.opening.retain(|(_, of, ..)| *of != owner);
        self.closing.retain(|(_, of, ..)| *of != owner);
        self.hanging.retain(|(of, _)| *of != owner);
        self.add_host();
    }

    /// Answers a question or a challenge.
    pub(super) fn oblige(&mut self, n: usize, kindly: bool) {
        let host = &mut self.hosts[n];
        if let Some(command) = host.authorize(kindly).or_else(|| host.answer(kindly)) {
            self.tell(n, Input::Command(command));
        }
    }

    /// A client that is not ready, or not any more, is looked at closely.
    pub(super) fn burst(&mut self, n: usize) {
        let lapsed = self.hosts[n].state() == State::Lapsed;
        for _ in 0..self.rng.below(if lapsed { 45 } else { 5 }) {
            match self.rng.below(8) {
                2..=4 | 6 if lapsed && self.rng.per_mille(700) => self.spurious(n),
                0 | 7 => {
                    let call = self.hosts[n].some_call();
                    self.tell(n, Input::Command(ClientCommand::Cancel(call, None)));
                }
                1 | 2 => {
                    let nothing = InputAnswer::Elicitation(ElicitResult::Cancel);
                    self.tell(n, Input::Command(ClientCommand::Answer(InputKey::new(9999), nothing)));
                }
                3 | 4 => {
                    self.tell(n, Input::Command(ClientCommand::Notify("acme/note".into(), Object::new())));
                }
                5 if self.hosts[n].closing || self.rng.per_mille(if lapsed { 400 } else { 200 }) => {
                    self.tell(n, Input::Command(ClientCommand::Close));
                }
                6 => self.spurious(n),
                _ => return self.some_work(n),
            }
        }
    }

    /// Applies an input that no correct driver sends.
    pub(super) fn spurious(&mut self, n: usize) {
        let channel = ConnectionId(1 + self.rng.below(40));
        let known = self.is_known(Owner::Host(self.hosts[n].number), channel);
        let input = match self.rng.below(9) {
            0 => Input::Tick,
            1 => Input::Command(ClientCommand::Cancel(mcp_proto::input::CallId(9999), None)),
            2 => {
                let nothing = InputAnswer::Elicitation(ElicitResult::Cancel);
                Input::Command(ClientCommand::Answer(InputKey::new(9999), nothing))
            }
            3 if !known => Input::Event(channel, IoEvent::Read("late\n".into())),
            4 | 7 if !known => Input::Event(channel, IoEvent::ReadClosed),
            5 if !known => Input::Event(channel, IoEvent::Closed(Closed::Reset)),
            6 if !known => Input::Event(channel, IoEvent::Opened(mcp_proto::exchange::Peer::default())),
            _ => Input::Event(channel, IoEvent::Written(0)),
        };
        self.tell(n, input);
    }

    /// Checks the invariants after each step.
    fn look(&mut self) {
        let now = self.now;
        self.hosts.iter_mut().for_each(|host| host.look(now));
        let limits = &self.config.limits.server;
        assert!(self.server.running() <= limits.max_running_requests, "more requests than the limit");
        assert!(self.watch.open_sessions() <= limits.max_sessions, "more sessions than the limit");
        // A response is never refused, and the stored events are at most the history.
        let most = limits.max_unsent + self.scenario.settings.history_bytes + (64 << 10);
        assert!(self.links.iter().all(|link| link.unsent <= most), "more unsent bytes than the limit");
    }
}
