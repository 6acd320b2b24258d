//! The worlds whose runs are recorded, as their replays see them.

use super::bare::Bare;
use super::log::{Engine, Entry, Op};
use super::pair;
use super::replay::{Act, Setting};
use crate::sim::rng::Rng;
use crate::sim::{app, both, duplex, web};
use mcp_proto::exchange::ConnectionId;
use mcp_proto::input::{Answer, Input};
use mcp_proto::server::{Incoming, Responder};
use mcp_proto::wired::Kind;
use mcp_proto::{ClientConfig, Instant, Router, ServerConfig};
use std::sync::Arc;
use std::time::Duration;

pub(super) fn record_duplex(seed: u64) -> Vec<Entry> {
    let mut world = duplex::World::logged(&duplex::Scenario::from_seed(seed));
    world.run();
    world.log.take()
}

pub(super) fn record_web(seed: u64) -> Vec<Entry> {
    web::record(&web::Scenario::from_seed(seed))
}

pub(super) fn record_both(seed: u64) -> Vec<Entry> {
    let mut world = both::World::logged(&both::Scenario::from_seed(seed));
    world.run();
    world.log.take()
}

pub(super) struct Duplex {
    scenario: duplex::Scenario,
    router: Router,
}

impl Duplex {
    pub(super) fn of(seed: u64) -> Self {
        Self { scenario: duplex::Scenario::from_seed(seed), router: app::router() }
    }
}

impl Setting for Duplex {
    type Task = app::Task;

    fn client(&self, _rng: u64) -> ClientConfig {
        self.scenario.settings.client()
    }

    fn server(&self) -> (ServerConfig, Kind) {
        (duplex::server(&self.router), self.scenario.settings.kind())
    }

    fn take(&self, responder: Responder, incoming: Incoming, _run: u64, now: Instant) -> Result<Self::Task, Answer> {
        app::take(&self.router, responder, incoming, now)
    }

    fn act(&self, task: &mut Self::Task, now: Instant) -> Act {
        match task.act(now) {
            app::Deed::Note(key, note) => Act::Note(key, note),
            app::Deed::Answer(responder, outcome) => Act::Answer(responder, outcome),
        }
    }

    fn late(&self, _task: Self::Task) -> Option<Answer> {
        None
    }
}

/// The server of these runs is a model and no engine.
pub(super) struct Web {
    scenario: web::Scenario,
    both: Both,
}

impl Web {
    pub(super) fn of(seed: u64) -> Self {
        Self { scenario: web::Scenario::from_seed(seed), both: Both::of(seed) }
    }
}

impl Setting for Web {
    type Task = both::app::Task;

    fn client(&self, _rng: u64) -> ClientConfig {
        web::configure(&self.scenario)
    }

    fn server(&self) -> (ServerConfig, Kind) {
        self.both.server()
    }

    fn take(&self, responder: Responder, incoming: Incoming, run: u64, now: Instant) -> Result<Self::Task, Answer> {
        self.both.take(responder, incoming, run, now)
    }

    fn act(&self, task: &mut Self::Task, now: Instant) -> Act {
        self.both.act(task, now)
    }

    fn late(&self, task: Self::Task) -> Option<Answer> {
        self.both.late(task)
    }
}

pub(super) struct Both {
    scenario: both::Scenario,
    router: Router,
}

impl Both {
    pub(super) fn of(seed: u64) -> Self {
        Self { scenario: both::Scenario::from_seed(seed), router: both::app::router() }
    }
}

impl Setting for Both {
    type Task = both::app::Task;

    fn client(&self, rng: u64) -> ClientConfig {
        both::configure_client(&self.scenario, &mut Rng::new(rng))
    }

    fn server(&self) -> (ServerConfig, Kind) {
        let mut rng = Rng::new(self.scenario.seed);
        (both::configure_server(self.router.config(), &self.scenario, &mut rng), Kind::HttpServer)
    }

    fn take(&self, responder: Responder, incoming: Incoming, run: u64, now: Instant) -> Result<Self::Task, Answer> {
        both::app::take(&self.router, responder, incoming, run, now)
    }

    fn act(&self, task: &mut Self::Task, now: Instant) -> Act {
        match task.act(now) {
            both::app::Deed::Note(key, note, _) => Act::Note(key, note),
            both::app::Deed::Answer(responder, outcome) => Act::Answer(responder, outcome),
        }
    }

    fn late(&self, task: Self::Task) -> Option<Answer> {
        task.into_late_answer()
    }
}

/// Passes the inputs of its run to a client at seam B.
pub(super) fn replay_pair(entries: &[Entry], mut each: impl FnMut(usize, &mut dyn Iterator<Item = String>)) {
    let mut client: Option<Bare> = None;
    for (n, Entry(engine, at, op)) in entries.iter().enumerate() {
        assert_eq!(*engine, Engine::Client(0), "there is one engine");
        let now = Instant::ZERO + Duration::from_nanos(*at);
        if let Op::Client { rng, seed } = op {
            client = Some(Bare::new(Arc::new(pair::configure(&mut Rng::new(*rng))), *seed, now));
        }
        let Some(client) = &mut client else { continue };
        match op {
            Op::Wire(exchange, wire) => client.tell(now, Input::Event(ConnectionId(*exchange), wire.wire())),
            Op::Command(command) => client.tell(now, Input::Command(command.command())),
            Op::Tick => client.tell(now, Input::Tick),
            _ => {}
        }
        while client.next_deed().is_some() {}
        each(n, &mut client.take_said().into_lines());
    }
}
