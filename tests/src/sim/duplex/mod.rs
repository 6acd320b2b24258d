//! Clients and a server over lines or HTTP. On lines, messages are lost, repeated and damaged as
//! well, and the program exits.

mod end;
mod run;

pub use end::Duplex;
pub use run::Side;

use super::app;
use super::campaign::{self, Violation};
use super::digest::log::Log;
use super::report::Report;
use super::rng::Rng;
use super::scenario::{self, Less};
use mcp_proto::client::{Policy, State};
use mcp_proto::exchange::Program;
use mcp_proto::wired::Kind;
use mcp_proto::{ClientConfig, Router, ServerConfig};
use std::time::Duration;

/// A server, its clients, and their links.
pub type World = super::world::World<Duplex>;

/// Everything that determines a run.
pub type Scenario = scenario::Scenario<Settings>;

/// The protocol on the links of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// Lines, to a program.
    Lines,
    /// Streamable HTTP.
    Http,
}

/// The settings of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// The protocol.
    pub transport: Transport,
    /// How the clients negotiate.
    pub policy: Policy,
    /// How many clients share the server.
    pub clients: usize,
    /// Whether the clients ping the server.
    pub ping: bool,
    /// Whether the clients have tasks.
    pub tasks: bool,
}

impl scenario::Settings for Settings {
    const NAME: &'static str = "duplex";
    const KEY: &'static str = "seed";
    const STATES: &'static [State] =
        &[State::Probing, State::Initializing, State::Ready, State::Ending, State::Closing, State::Terminated];

    fn from_seed(seed: u64) -> Scenario {
        let mut rng = Rng::new(seed ^ 0x5ce_a210);
        let transport = if rng.per_mille(300) { Transport::Http } else { Transport::Lines };
        let policy = match (transport, rng.below(3)) {
            (Transport::Lines, 1) => Policy::Legacy,
            (Transport::Http, _) | (_, 2) => Policy::Modern,
            (Transport::Lines, _) => Policy::Auto,
        };
        let capacity = [1, 64, 1024, 16 << 10, 1 << 20][(rng.below(41) as usize).div_ceil(10)];
        let faults = rng.of(&[0, 40, 100]);
        let (clients, operations) = (1 + rng.below(3) as usize, 5 + rng.below(50));
        let settings = Self { transport, policy, clients, ping: rng.per_mille(200), tasks: rng.per_mille(400) };
        Scenario { seed, operations, faults, capacity, less: Less::default(), settings }
    }

    fn attempt(scenario: &Scenario, trace: bool) -> Result<Report, Violation> {
        campaign::attempt(|| World::begin(scenario, trace, Log::default()), World::run, World::drawn)
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let transport = format!("{:?}", self.transport).to_lowercase();
        let policy = format!("{:?}", self.policy).to_lowercase();
        vec![
            ("transport", transport),
            ("policy", policy),
            ("clients", self.clients.to_string()),
            ("ping", self.ping.to_string()),
            ("tasks", self.tasks.to_string()),
        ]
    }

    fn read(&mut self, key: &str, value: &str) -> Option<()> {
        match (key, value) {
            ("transport", "lines") => self.transport = Transport::Lines,
            ("transport", "http") => self.transport = Transport::Http,
            ("policy", "auto") => self.policy = Policy::Auto,
            ("policy", "legacy") => self.policy = Policy::Legacy,
            ("policy", "modern") => self.policy = Policy::Modern,
            ("clients", _) => self.clients = value.parse().ok().filter(|n| (1..=1000).contains(n))?,
            ("ping", _) => self.ping = value.parse().ok()?,
            ("tasks", _) => self.tasks = value.parse().ok()?,
            _ => return None,
        }
        Some(())
    }

    fn simpler(&self) -> Vec<Self> {
        let [one, no_ping, no_tasks] = [(); 3].map(|()| self.clone());
        vec![Self { clients: 1, ..one }, Self { ping: false, ..no_ping }, Self { tasks: false, ..no_tasks }]
    }
}

impl Settings {
    /// Returns the kind of the connections at the server.
    pub(super) const fn kind(&self) -> Kind {
        match self.transport {
            Transport::Lines => Kind::Lines,
            Transport::Http => Kind::HttpServer,
        }
    }

    /// Returns the configuration of the clients.
    pub(super) fn client(&self) -> ClientConfig {
        let mut config = match self.transport {
            Transport::Lines => ClientConfig::program(Program::new("sim").arg(app::SECRET).env("TOKEN", app::SECRET)),
            Transport::Http => {
                ClientConfig::url(&format!("http://localhost/mcp?api_key={}", app::SECRET)).expect("a url")
            }
        };
        config.policy = self.policy;
        config.ping = self.ping.then_some(Duration::from_secs(5));
        config.ping_timeout = Duration::from_secs(30);
        config = config.with_elicitation();
        config.tasks = self.tasks;
        config.limits.client.max_calls = 16;
        config.limits.client.max_queued_events = usize::MAX;
        config
    }
}

/// Returns the configuration of the server.
pub(super) fn server(router: &Router) -> ServerConfig {
    let mut config = router.config();
    config.limits.server.page_size = 3;
    config.limits.server.ask_timeout = Duration::from_secs(60);
    config.limits.server.task_ttl = Duration::from_secs(60);
    config.limits.server.task_keep = Duration::from_secs(10);
    config.limits.server.max_tasks = 12;
    config
}
