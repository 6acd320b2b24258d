//! The world of one run: its server, the application of the server, and its clients.

use super::super::accept;
use super::super::app::{self, Application, Deed};
use super::super::both::host::{Done, Host, TIMEOUT};
use super::super::client::Client;
use super::super::digest::log::Log;
use super::super::net::{Net, Odds};
use super::super::scenario::{Scenario, Settings};
use super::super::world::Ends;
use super::relay::Relay;
use super::{Fault, Rng, Transport, World};
use bytes::Bytes;
use mcp_proto::client::{ClientConfig, EndpointRefresh, Event, HttpMode, Policy, Repeat, Termination};
use mcp_proto::exchange::{Action, Closed, ConnectionId, Headers, IoEvent};
use mcp_proto::input::{Input, RequestKey, ServerCommand, WiredServerInput};
use mcp_proto::rpc::Object;
use mcp_proto::server::{self, ServerCommands, ServerConfig, Sessions, SsePaths};
use mcp_proto::wired::{Kind, WiredClient, WiredServer};
use mcp_proto::{Instant, ProtocolVersion, Versions};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A step of the server or its application.
pub enum Step {
    /// Its timer fires.
    Tick,
    /// A task does the next thing.
    Task(RequestKey),
    /// Another server starts.
    Start,
}

/// The server and its application.
pub struct Beside {
    pub(super) transport: Transport,
    /// How many clients there are at first, and how many operations they make.
    pub(super) clients: u64,
    pub(super) operations: u64,
    pub(super) server: WiredServer,
    /// The time of the restart, if the server has ended.
    pub(super) up: Option<Instant>,
    config: Arc<ServerConfig>,
    pub(super) app: Application,
    /// What each run of a handler did.
    done: BTreeMap<u64, Done>,
    relays: BTreeMap<ConnectionId, Relay>,
    /// The number of the latest client.
    numbers: u64,
}

impl Ends for Beside {
    type Client = Host;
    type Step = Step;
    const ODDS: Odds = Odds {
        connect: (&[Fault::Refused, Fault::Hang], 100),
        opening: 20,
        stall: ([Fault::SlowReader, Fault::StallUp], 24, 60_000),
        cut: 40,
        delay: 20,
        half_close: (Fault::EndDown, 4),
        reset: ([Fault::ResetDown, Fault::ResetUp], 8),
    };

    fn steps(world: &World) -> [Vec<(Instant, Step)>; 2] {
        let end = &world.end;
        let mut steps: Vec<_> = end.server.poll_timeout().map(|at| (at, Step::Tick)).into_iter().collect();
        steps.extend(end.app.tasks.iter().map(|(key, task)| (task.next, Step::Task(*key))));
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
            Step::Start => world.come_up(),
        }
    }

    fn accept(world: &mut World, _owner: u64, _at_client: ConnectionId) -> Option<ConnectionId> {
        let at_server = accept(&mut world.end.server, world.net.now, Kind::HttpServer)?;
        world.end.relays.insert(at_server, Relay::default());
        Some(at_server)
    }

    fn at_server(world: &mut World, at_server: ConnectionId, event: IoEvent) {
        if matches!(event, IoEvent::Closed(_)) {
            world.end.relays.remove(&at_server);
        }
        world.apply_to_server(Input::Event(at_server, event));
    }

    fn opened(world: &mut World) {
        world.drain_server();
    }

    fn event(world: &mut World, n: usize, event: Event) {
        let ends_with_connection = matches!(event, Event::Terminated(Termination::Closed(_)));
        let is_sse = world.end.transport == Transport::Sse;
        assert!(!(is_sse && ends_with_connection), "a client over HTTP+SSE ends with no connection");
        world.clients[n].check(event, &mut world.end.done, &mut world.report);
    }

    fn write(world: &mut World, n: usize, bytes: Bytes) {
        let link = &mut world.net.links[n];
        let relay = world.end.relays.get_mut(&link.at_server);
        let bytes = match (world.end.transport, relay) {
            (Transport::WebSocket, Some(relay)) => relay.web_socket(&mut world.net.chaos, true, &bytes),
            _ => bytes,
        };
        world.net.links[n].pipe(true).write(bytes);
    }
}

impl World {
    /// A world at its beginning; `trace` prints what happens.
    pub(super) fn begin<S: Settings>(scenario: &Scenario<S>, transport: Transport, clients: u64, trace: bool) -> Self {
        let mut rng = Rng::new(scenario.seed);
        let app = Application::new(app::marked_router());
        let config = Arc::new(configure_server(app.router.config(), &mut rng));
        let net = Net::new(scenario.chaos(Rng::new(rng.draw())), scenario.capacity);
        let end = Beside {
            transport,
            clients,
            operations: scenario.operations,
            server: WiredServer::new(Arc::clone(&config), rng.seed(), Instant::ZERO),
            up: None,
            config,
            app,
            done: BTreeMap::new(),
            relays: BTreeMap::new(),
            numbers: 0,
        };
        let mut world = Self::new(end, net, Some(rng), &scenario.less, trace, Log::default());
        (0..clients).for_each(|_| world.add_host());
        world
    }

    /// Adds a client.
    pub(super) fn add_host(&mut self) {
        self.end.numbers += 1;
        let (transport, state) = (self.end.transport, self.rng().state());
        let (config, older) = configure_client(transport, self.rng());
        let (seed, own) = (self.rng().seed(), Rng::new(self.rng().draw()));
        let number = self.end.numbers;
        self.trace(|| format!("client {number}, {older:?}"));
        let host = Host::new(0, &config, older, Sessions::Optional, own);
        let engine = WiredClient::new(Arc::new(config), seed, self.net.now);
        // The bytes of these transports are those of no exchange that the tap knows.
        let mut client = Client::new(number, engine, host);
        client.tap = None;
        self.add_client(client, state, seed);
    }

    // ---- the server

    /// Applies an input to the server, and carries out its outputs.
    pub(super) fn apply_to_server(&mut self, input: WiredServerInput) {
        self.trace(|| format!("server <- {input:?}"));
        let _ = self.end.server.apply(self.net.now, input);
        self.drain_server();
    }

    pub(super) fn drain_server(&mut self) {
        while let Some(action) = self.end.server.poll_output() {
            self.trace(|| format!("server -> {action:?}"));
            match action {
                Action::Open(..) | Action::Secure(..) | Action::Notice(..) => panic!("a server emits no {action:?}"),
                Action::Read(channel, reads) => self.read_at_server(channel, reads),
                Action::Write(channel, bytes) => self.server_writes(channel, bytes),
                Action::Close(channel, how) => self.close_at_server(channel, how),
                Action::Event(event) => self.server_event(event),
            }
        }
    }

    fn server_writes(&mut self, at_server: ConnectionId, bytes: Bytes) {
        let Some(n) = self.net.link_at(at_server) else { return };
        let owner = self.net.links[n].owner;
        let may_move = self
            .client_of(owner)
            .is_some_and(|n| self.clients[n].config().compat.endpoint_refresh == EndpointRefresh::Continue);
        let chaos = &mut self.net.chaos;
        let bytes = match (self.end.transport, self.end.relays.get_mut(&at_server)) {
            (Transport::WebSocket, Some(relay)) => relay.web_socket(chaos, false, &bytes),
            (Transport::Sse, Some(relay)) => relay.sse(chaos, may_move, &bytes),
            (_, None) => bytes,
        };
        self.net.links[n].pipe(false).write(bytes);
    }

    fn server_event(&mut self, event: server::Event) {
        match event {
            server::Event::Request(responder, incoming) => {
                let key = responder.key();
                self.report.handled += 1;
                if let Some(answer) = self.end.app.request(responder, incoming, self.net.now) {
                    return self.apply_to_server(Input::Command(answer));
                }
                let mark = self.end.app.tasks[&key].mark;
                self.end.done.insert(mark.run, Done::begun(mark));
            }
            server::Event::Cancelled(key) => _ = self.end.app.tasks.remove(&key),
            server::Event::Terminated => {
                assert!(
                    self.end.app.tasks.is_empty(),
                    "tasks that were not cancelled: {:?}",
                    self.end.app.tasks.keys()
                );
            }
            _ => {}
        }
    }

    fn act(&mut self, key: RequestKey) {
        let Some(task) = self.end.app.tasks.get_mut(&key) else { return };
        let mark = task.mark;
        match task.act(self.net.now) {
            Deed::Note(key, note, number) => {
                let told = self.end.server.notify(self.net.now, key, note).is_ok();
                self.end.done.get_mut(&mark.run).expect("it runs").said.extend(number.filter(|_| told));
                self.drain_server();
            }
            Deed::Answer(responder, _) if self.net.chaos.hit(Fault::SlowHandler, 400) => {
                let until = self.net.now + Duration::from_secs(20 + self.below(60));
                if let Some(task) = self.end.app.tasks.get_mut(&key) {
                    task.resume(*responder, until);
                }
            }
            Deed::Answer(responder, outcome) => {
                let task = self.end.app.tasks.remove(&key).expect("it acts");
                self.end.done.get_mut(&mark.run).expect("it runs").answered = !task.asks();
                self.apply_to_server(Input::Command(ServerCommand::Respond(responder.write(outcome))));
            }
        }
    }

    /// The server is gone without a word, and another one starts at its address later.
    pub(super) fn crash(&mut self) {
        if self.end.up.is_some() {
            return;
        }
        self.net.chaos.count(Fault::Crash);
        self.end.server = WiredServer::new(Arc::clone(&self.end.config), [0; 32], self.net.now);
        self.end.server.shutdown(self.net.now, Duration::ZERO);
        while self.end.server.poll_output().is_some() {}
        self.end.app.tasks.clear();
        while !self.net.links.is_empty() {
            self.cut(0, Closed::Reset, Closed::Reset);
        }
        self.end.relays.clear();
        self.end.up = Some(self.net.now + Duration::from_millis(self.below(5_000)));
    }

    fn come_up(&mut self) {
        self.end.up = None;
        let seed = self.rng().seed();
        self.end.server = WiredServer::new(Arc::clone(&self.end.config), seed, self.net.now);
    }
}

fn configure_server(mut config: ServerConfig, rng: &mut Rng) -> ServerConfig {
    config.sse = Some(SsePaths::default());
    config.web_socket = true;
    config.keep_alive = Some(Duration::from_secs(rng.of(&[5, 15])));
    let limits = &mut config.limits.server;
    limits.page_size = 3;
    limits.ask_timeout = Duration::from_secs(60);
    limits.max_unsent = rng.of(&[16 << 10, 1 << 20]);
    limits.max_queued_events = usize::MAX;
    config
}

/// Returns the configuration of a client, and its revision, if that is a legacy one.
fn configure_client(transport: Transport, rng: &mut Rng) -> (ClientConfig, Option<ProtocolVersion>) {
    let older = rng.of(&[
        Some(ProtocolVersion::V2024_11_05),
        Some(ProtocolVersion::V2025_06_18),
        Some(ProtocolVersion::V2025_11_25),
        None,
    ]);
    let (url, older) = match transport {
        Transport::Sse => ("http://localhost/sse", Some(older.unwrap_or(ProtocolVersion::V2025_11_25))),
        Transport::WebSocket => ("ws://localhost/mcp", older),
    };
    let mut config = ClientConfig::url(url).expect("a url").with_elicitation();
    config.capabilities.elicitation.get_or_insert_default().form = Some(Object::new());
    config.policy = if older.is_some() { Policy::Legacy } else { Policy::Modern };
    config.versions = older.map_or_else(Versions::all, |version| Versions::new([version]));
    if rng.per_mille(300) {
        config.policy = Policy::Auto;
    }
    config.http_mode = rng.of(&[HttpMode::Auto, HttpMode::Sse, HttpMode::Sse]);
    config.compat.endpoint_refresh = rng.of(&[EndpointRefresh::NewSession, EndpointRefresh::Continue]);
    config.timeout = Some(TIMEOUT);
    config.headers = Headers::new().with("X-App", "of ours");
    config.watch.tools = rng.per_mille(500);
    config.repeat = rng.of(&[Repeat::Safe, Repeat::Safe, Repeat::Never, Repeat::Always]);
    config.ping = rng.per_mille(150).then_some(Duration::from_secs(10));
    config.limits.client.max_calls = 12;
    config.limits.client.max_queued_events = usize::MAX;
    config.limits.frame.ping_interval = Some(Duration::from_secs(rng.of(&[20, 60])));
    (config, older)
}
