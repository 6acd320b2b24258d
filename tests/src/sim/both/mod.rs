//! Both engines over HTTP under faults: real clients of every revision and of several principals,
//! one real server with an application, and a malicious peer, over connections that are cut,
//! delayed, stalled, refused and reset. Everything is in virtual time, and a function of its
//! [`Scenario`].
//!
//! The invariants are in three independent places. `watch` reads the output of the server on each
//! connection and compares it with the reported storage. `host` is the application of one client,
//! and compares its events with the actions of the handlers. Each client has the `Tap` of the runs
//! over HTTP, which reads the output of that client.

mod end;
pub(super) mod host;
mod raw;
mod rest;
mod run;
mod server;
mod watch;

pub use end::Both;

use super::campaign::{self, Violation};
use super::digest::log::Log;
use super::fault::Fault;
use super::report::{Life, Report, ServerInputKind};
use super::rng::Rng;
use super::scenario::{self, Less};
use super::secured::Road;
use super::web;
use mcp_proto::ClientConfig;
use mcp_proto::client::State;
use mcp_proto::server::{ServerConfig, Sessions};
use std::time::Duration;

/// A server, its clients, the malicious peer, and the connections between them.
pub type World = super::world::World<Both>;

/// Everything that determines a run.
pub type Scenario = scenario::Scenario<Settings>;

/// The settings of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// How many clients there are at once.
    pub clients: u64,
    /// Whether the server admits requests by their credentials, so that there are principals.
    pub admit: bool,
    /// Whether the server has sessions.
    pub sessions: Sessions,
    /// How many events a session keeps.
    pub history_events: usize,
    /// How many bytes of events a session keeps.
    pub history_bytes: usize,
    /// Bytes that may wait to be written to one client.
    pub max_unsent: usize,
    /// How long a session lasts without a request.
    pub session_idle: Duration,
    /// How long a handler may take.
    pub handler_deadline: Option<Duration>,
    /// How long a request may be without an answer before its answer becomes a stream.
    pub stream_after: Duration,
    /// The time after which a client reconnects.
    pub retry: Duration,
    /// How clients reach the server.
    pub road: Road,
}

impl scenario::Settings for Settings {
    const NAME: &'static str = "both";
    const STATES: &'static [State] = web::Settings::STATES;
    const SERVES: bool = true;

    fn from_seed(seed: u64) -> Scenario {
        let mut rng = Rng::new(seed ^ 0x626f_7468);
        let mut of = |choices: &[u64]| rng.of(choices);
        let (clients, operations, faults) = (of(&[1, 2, 3, 4]), of(&[60, 120, 240]), of(&[0, 40, 40, 100]));
        let capacity = of(&[64, 1024, 16 << 10, 1 << 20]) as usize;
        let settings = Self {
            clients,
            admit: of(&[0, 1, 1]) == 1,
            sessions: match of(&[0, 0, 0, 0, 0, 0, 0, 1, 1, 2]) {
                0 => Sessions::Optional,
                1 => Sessions::Required,
                _ => Sessions::Off,
            },
            history_events: of(&[4, 20, 1000, 1000]) as usize,
            history_bytes: of(&[4 << 10, 64 << 10, 1 << 20]) as usize,
            max_unsent: of(&[4 << 10, 1 << 20]) as usize,
            session_idle: Duration::from_secs(of(&[60, 120, 240])),
            handler_deadline: Some(of(&[0, 0, 25])).filter(|n| *n > 0).map(Duration::from_secs),
            stream_after: Duration::from_millis(of(&[0, 50, 500])),
            retry: Duration::from_millis(of(&[20, 500, 3000])),
            road: Road::Plain,
        };
        Scenario { seed, operations, faults, capacity, less: Less::default(), settings }
    }

    fn attempt(scenario: &Scenario, trace: bool) -> Result<Report, Violation> {
        campaign::attempt(|| World::begin(scenario, trace, Log::default()), World::run, World::drawn)
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        vec![("clients", self.clients.to_string())]
    }

    fn read(&mut self, key: &str, value: &str) -> Option<()> {
        self.clients = value.parse().ok().filter(|n| key == "clients" && (1..=1000).contains(n))?;
        Some(())
    }

    fn simpler(&self) -> Vec<Self> {
        vec![Self { clients: 1, ..self.clone() }]
    }
}

/// The configuration of a client of a scenario.
pub(super) fn configure_client(scenario: &Scenario, rng: &mut Rng) -> ClientConfig {
    host::configure(scenario, rng).0
}

/// The configuration of the server of a scenario.
pub(super) fn configure_server(config: ServerConfig, scenario: &Scenario, rng: &mut Rng) -> ServerConfig {
    server::configure(config, scenario, rng)
}
