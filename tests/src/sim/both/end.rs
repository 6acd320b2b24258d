//! The world of one run: its server, its clients, and the malicious peer.

use super::super::accept;
use super::super::app::{self, Application, Task};
use super::super::client::Client;
use super::super::digest::log::{Engine, Log, Op};
use super::super::net::{Link, Net, Odds};
use super::super::secured::{self, Keys, Wrap};
use super::super::world::Ends;
use super::host::{Done, Host};
use super::watch::{Peer, Watch};
use super::{Fault, Life, Rng, Scenario, ServerInputKind, World};
use bytes::Bytes;
use mcp_proto::Instant;
use mcp_proto::client::{Event, State};
use mcp_proto::exchange::{Closed, ConnectionId, IoEvent};
use mcp_proto::input::{Admission, AdmitToken, Answer, Input, RequestKey};
use mcp_proto::server::ServerConfig;
use mcp_proto::wired::{Kind, WiredClient, WiredServer};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The number and the principal of the malicious peer.
pub(super) const RAW: u64 = 1_000_000;

/// A step of the server or its application.
pub enum Step {
    /// Its timer fires.
    Tick,
    /// A task does the next thing.
    Task(RequestKey),
    /// The application decides about a request.
    Admit(usize),
    /// Another server starts.
    Start,
}

/// The server, its application, and the malicious peer.
pub struct Both {
    pub(super) scenario: Scenario,
    pub(super) server: WiredServer,
    pub(super) life: Life,
    /// The time of the restart, if the server has ended.
    pub(super) up: Option<Instant>,
    /// Until then the server refuses new connections.
    pub(super) closed_until: Instant,
    /// The time by which a server that shuts down must have ended.
    pub(super) drain_until: Instant,
    pub(super) config: Arc<ServerConfig>,
    pub(super) app: Application,
    /// Late responses to cancelled requests.
    pub(super) late: VecDeque<Answer>,
    pub(super) cancelled: Vec<Task>,
    /// The ids of the latest web pages that clients were asked to open.
    pub(super) pages: VecDeque<String>,
    pub(super) admits: Vec<(Instant, AdmitToken, Admission)>,
    /// What each run of a handler did.
    pub(super) done: BTreeMap<u64, Done>,
    pub(super) watch: Watch,
    /// The number of the latest client.
    pub(super) numbers: u64,
    /// The latest connection of the malicious peer.
    pub(super) raw_channel: u64,
    /// The configurations of TLS, if the connections have it.
    keys: Option<Keys>,
}

impl Ends for Both {
    type Client = Host;
    type Step = Step;
    const ODDS: Odds = Odds {
        connect: (&[Fault::Refused, Fault::Hang], 250),
        opening: 20,
        stall: ([Fault::SlowReader, Fault::StallUp], 24, 60_000),
        cut: 40,
        delay: 20,
        half_close: (Fault::EndDown, 30),
        reset: ([Fault::ResetDown, Fault::ResetUp], 30),
    };
    const HOLDS: bool = true;

    fn steps(world: &World) -> [Vec<(Instant, Step)>; 2] {
        let end = &world.end;
        let mut steps: Vec<_> = end.server.poll_timeout().map(|at| (at, Step::Tick)).into_iter().collect();
        steps.extend(end.app.tasks.iter().map(|(key, task)| (task.next, Step::Task(*key))));
        steps.extend(end.admits.iter().enumerate().map(|(n, (at, ..))| (*at, Step::Admit(n))));
        steps.extend(end.up.map(|at| (at, Step::Start)));
        [Vec::new(), steps]
    }

    fn step(world: &mut World, step: Step) {
        match step {
            Step::Tick => {
                world.net.chaos.steps += 1;
                world.apply_to_server(Input::Tick);
            }
            Step::Task(key) => world.act(key),
            Step::Admit(n) => world.admit(n),
            Step::Start => world.come_up(),
        }
    }

    fn accept(world: &mut World, owner: u64, _at_client: ConnectionId) -> Option<ConnectionId> {
        world.count_server(ServerInputKind::Accept);
        world.log.push(Engine::Server, world.net.now, || Op::Accept);
        let at_server = accept(&mut world.end.server, world.net.now, Kind::HttpServer)?;
        let principal = world.client_of(owner).map_or(RAW, |n| world.clients[n].own.principal);
        let principal = world.end.scenario.settings.admit.then_some(principal);
        world.end.watch.open(at_server, Peer { number: owner, principal });
        Some(at_server)
    }

    fn wrap(world: &mut World, owner: u64) -> Option<Wrap> {
        Wrap::new(world.end.scenario.settings.road, world.end.keys.as_ref(), owner != RAW)
    }

    fn at_server(world: &mut World, at_server: ConnectionId, event: IoEvent) {
        let is_closed = matches!(event, IoEvent::Closed(_));
        if is_closed {
            world.end.watch.gone(at_server);
        }
        world.apply_to_server(Input::Event(at_server, event));
        if is_closed {
            world.check_disconnected(at_server);
        }
    }

    fn opened(world: &mut World) {
        world.drain_server();
    }

    fn event(world: &mut World, n: usize, event: Event) {
        secured::check_event(world.end.scenario.settings.road, &event);
        world.clients[n].check(event, &mut world.end.done, &mut world.report);
    }

    fn moved(world: &mut World, n: usize, moves: [State; 2]) {
        if moves[0] != State::Lapsed && moves[1] == State::Lapsed {
            world.burst(n);
        }
    }

    fn write(world: &mut World, n: usize, bytes: Bytes) {
        let link = &mut world.net.links[n];
        if world.end.watch.is_idle(link.at_server) && world.net.chaos.hit(Fault::DeadAtWrite, 200) {
            link.doomed = true;
        }
        if link.wrap.as_ref().is_none_or(|wrap| wrap.leads_to_server()) {
            world.end.watch.says(link.at_server, &bytes);
        }
        world.send(n, true, bytes);
    }

    fn look(world: &mut World) {
        world.look();
    }

    fn taken(world: &mut World, n: usize, up: bool, bytes: usize) {
        let link = &mut world.net.links[n];
        if !up {
            link.unsent -= bytes;
        } else if !link.pipe(true).may_accept() && world.net.chaos.hit(Fault::EndUp, 25) {
            link.pipe(true).end();
        }
    }
}

impl World {
    /// A world at its beginning; `trace` prints what happens.
    pub(in crate::sim) fn begin(scenario: &Scenario, trace: bool, mut log: Log) -> Self {
        let mut rng = Rng::new(scenario.seed);
        let app = Application::new(app::marked_router());
        let config = Arc::new(super::server::configure(app.router.config(), scenario, &mut rng));
        let net = Net::new(scenario.chaos(Rng::new(rng.draw())), scenario.capacity);
        let seed = rng.seed();
        log.push(Engine::Server, Instant::ZERO, || Op::Server(seed));
        let end = Both {
            scenario: scenario.clone(),
            server: WiredServer::new(Arc::clone(&config), seed, Instant::ZERO),
            life: Life::Serving,
            up: None,
            closed_until: Instant::ZERO,
            drain_until: Instant::ZERO,
            watch: Watch::new(scenario, config.limits.server.history_keep),
            config,
            app,
            late: VecDeque::new(),
            cancelled: Vec::new(),
            pages: VecDeque::new(),
            admits: Vec::new(),
            done: BTreeMap::new(),
            numbers: 0,
            raw_channel: 0,
            keys: scenario.settings.road.is_tls().then(Keys::default),
        };
        let mut world = Self::new(end, net, Some(rng), &scenario.less, trace, log);
        (0..scenario.settings.clients).for_each(|_| world.add_host());
        world
    }

    pub(super) fn add_host(&mut self) {
        self.end.numbers += 1;
        let principal = 1 + self.below(3);
        let state = self.rng().state();
        let scenario = self.end.scenario.clone();
        let (config, older) = super::host::configure(&scenario, self.rng());
        let (seed, own) = (self.rng().seed(), Rng::new(self.rng().draw()));
        let number = self.end.numbers;
        self.trace(|| format!("client {number} of principal {principal}, {older:?}"));
        let host = Host::new(principal, &config, older, scenario.settings.sessions, own);
        let engine = WiredClient::new(Arc::new(config), seed, self.net.now);
        self.add_client(Client::new(number, engine, host), state, seed);
        if self.per_mille(800) {
            self.burst(self.clients.len() - 1);
        }
    }

    // ---- the connections of the server

    pub(super) fn server_writes(&mut self, at_server: ConnectionId, bytes: Bytes) {
        self.end.watch.hears(self.net.now, at_server, &bytes);
        if let Some(n) = self.net.link_at(at_server) {
            let link = &mut self.net.links[n];
            link.unsent += bytes.len();
            self.send(n, false, bytes);
        }
    }

    /// A pooled connection ends while it is idle.
    pub(super) fn dead_idle(&mut self) {
        let idle = |link: &Link| !link.frozen && link.owner != RAW && self.end.watch.is_idle(link.at_server);
        let idle: Vec<usize> = (0..self.net.links.len()).filter(|n| idle(&self.net.links[*n])).collect();
        if let Some(n) = idle.get(self.below(idle.len() as u64) as usize) {
            self.net.chaos.count(Fault::DeadIdle);
            let why = if self.per_mille(500) { Closed::Eof } else { Closed::Reset };
            self.cut(*n, why, Closed::Reset);
        }
    }
}
