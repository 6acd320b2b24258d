//! The worlds whose runs are recorded, as their replays see them.

use super::bare::Bare;
use super::log::{Engine, Entry, Log, Op};
use super::pair;
use crate::sim::app::{self, Application};
use crate::sim::rng::Rng;
use crate::sim::{both, duplex, web};
use mcp_proto::wired::Kind;
use mcp_proto::{ClientConfig, ServerConfig};
use std::sync::Arc;

pub(super) fn record_duplex(seed: u64) -> Vec<Entry> {
    let mut world = duplex::World::begin(&duplex::Scenario::from_seed(seed), false, Log::on());
    world.run();
    world.log.take()
}

pub(super) fn record_web(seed: u64) -> Vec<Entry> {
    let mut world = web::Web::<web::Model>::begin(&web::Scenario::from_seed(seed), false, Log::on());
    world.run();
    world.log.take()
}

pub(super) fn record_both(seed: u64) -> Vec<Entry> {
    let mut world = both::World::begin(&both::Scenario::from_seed(seed), false, Log::on());
    world.run();
    world.log.take()
}

/// The rest of a run beside its engines: their configuration, and the application of the server.
pub struct Setting {
    /// Returns the configuration of a client, drawn from a generator in this state.
    pub client: Box<dyn Fn(u64) -> ClientConfig>,
    /// The configuration of the server.
    pub server: Arc<ServerConfig>,
    /// What its connections carry.
    pub kind: Kind,
    /// Its application.
    pub app: Application,
}

impl Setting {
    pub(super) fn duplex(seed: u64) -> Self {
        let settings = duplex::Scenario::from_seed(seed).settings;
        let (app, kind) = (Application::new(app::router()), settings.kind());
        Self { server: Arc::new(duplex::server(&app.router)), kind, app, client: Box::new(move |_| settings.client()) }
    }

    /// The server of these runs is a model and no engine.
    pub(super) fn web(seed: u64) -> Self {
        let scenario = web::Scenario::from_seed(seed);
        Self { client: Box::new(move |_| web::configure(&scenario)), ..Self::both(seed) }
    }

    pub(super) fn both(seed: u64) -> Self {
        let (app, scenario) = (Application::new(app::marked_router()), both::Scenario::from_seed(seed));
        let server = Arc::new(both::configure_server(app.router.config(), &scenario, &mut Rng::new(seed)));
        let client = Box::new(move |rng| both::configure_client(&scenario, &mut Rng::new(rng)));
        Self { client, server, kind: Kind::HttpServer, app }
    }
}

/// Passes the inputs of its run to a client at seam B.
pub(super) fn replay_pair(entries: &[Entry], mut each: impl FnMut(usize, &mut dyn Iterator<Item = String>)) {
    let mut client: Option<Bare> = None;
    for (n, entry) in entries.iter().enumerate() {
        let Entry(Engine::Client(0), _, op) = entry else { panic!("there is one engine") };
        if let Op::Client { rng, seed } = op {
            let config = pair::configure(&mut Rng::new(*rng));
            client = Some(Bare::new(Arc::new(config), *seed, entry.at()));
        }
        let Some(client) = &mut client else { continue };
        if let Some(input) = op.of_client() {
            client.tell(entry.at(), input);
        }
        while client.next_deed().is_some() {}
        each(n, &mut client.take_said().into_lines());
    }
}
