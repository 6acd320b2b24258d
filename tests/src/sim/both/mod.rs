//! Both engines over HTTP under faults: real clients of every revision and of several principals,
//! one real server with an application, and a malicious peer, over connections that are cut,
//! delayed, stalled, refused and reset. Everything is in virtual time, and a function of its
//! [`Scenario`].
//!
//! The invariants are in three independent places. `watch` reads the output of the server on each
//! connection and compares it with the reported storage. `host` is the application of one client,
//! and compares its events with the actions of the handlers. Each client has the `Tap` of the runs
//! over HTTP, which reads the output of that client.

pub mod app;
pub mod fault;
mod host;
mod net;
mod raw;
pub mod report;
mod rest;
mod server;
mod watch;
mod world;

pub use fault::{Chaos, Fault};
pub use report::Report;
pub use world::World;

use super::campaign::{self, Simulation, Tally, Violation};
use super::less::Less;
use super::rng::Rng;
use mcp_proto::ClientConfig;
use mcp_proto::server::{ServerConfig, Sessions};
use std::fmt;
use std::time::Duration;

/// Everything that determines a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// The seed of all choices.
    pub seed: u64,
    /// How many clients there are at once.
    pub clients: u64,
    /// The number of operations of the applications before all of them close.
    pub operations: u64,
    /// Faults per thousand chances; zero for a clean run.
    pub faults: u64,
    /// Bytes that a link holds in one direction.
    pub capacity: usize,
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
    /// The omissions of the run.
    pub less: Less,
}

impl Scenario {
    /// The scenario of a seed.
    pub fn from_seed(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x626f_7468);
        let mut of = |choices: &[u64]| choices[rng.below(choices.len() as u64) as usize];
        Self {
            seed,
            clients: of(&[1, 2, 3, 4]),
            operations: of(&[60, 120, 240]),
            faults: of(&[0, 40, 40, 100]),
            capacity: of(&[64, 1024, 16 << 10, 1 << 20]) as usize,
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
            less: Less::default(),
        }
    }

    /// Reads the output of [`Display`](fmt::Display). Values that follow from the seed are not
    /// written.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        let seed = lines.next()?.strip_prefix("both = ")?.trim().parse().ok()?;
        let mut scenario = Self::from_seed(seed);
        for line in lines {
            let (key, value) = line.split_once('=')?;
            if scenario.less.read(key.trim(), value).is_some() {
                continue;
            }
            let number = value.trim().parse::<u64>().ok()?;
            match key.trim() {
                "clients" => scenario.clients = Some(number).filter(|n| (1..=1000).contains(n))?,
                "operations" => scenario.operations = number,
                "faults" => scenario.faults = number,
                "capacity" => scenario.capacity = usize::try_from(number).ok().filter(|n| *n > 0)?,
                _ => return None,
            }
        }
        Some(scenario)
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "both = {}\nclients = {}", self.seed, self.clients)?;
        writeln!(f, "operations = {}\nfaults = {}\ncapacity = {}", self.operations, self.faults, self.capacity)?;
        self.less.fmt(f)
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

/// Runs one scenario to its end, and adds its results to `report`. With `trace`, every step is
/// printed.
///
/// # Panics
/// If a standing property is violated. The scenario is written to a file first, and the command
/// that repeats it is printed.
pub fn run(scenario: &Scenario, report: &mut Report, trace: bool) {
    campaign::run(scenario, report, trace);
}

impl Simulation for Scenario {
    const NAME: &'static str = "both";
    type Report = Report;

    fn from_seed(seed: u64) -> Self {
        Self::from_seed(seed)
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn attempt(&self, trace: bool) -> Result<Report, Violation> {
        campaign::attempt(|| World::new(self, trace), World::run, World::drawn)
    }

    fn operations(&mut self) -> &mut u64 {
        &mut self.operations
    }

    fn less(&mut self) -> &mut Less {
        &mut self.less
    }

    fn simpler(&self) -> Vec<Self> {
        vec![
            Self { clients: 1, ..self.clone() },
            Self { faults: 0, ..self.clone() },
            Self { capacity: 1 << 20, ..self.clone() },
        ]
    }
}

impl Tally for Report {
    fn steps(&self) -> u64 {
        self.steps
    }

    fn add(&mut self, other: &Self) {
        self.add(other);
    }

    fn missing(&self, faults: u64, pairs: u64) -> Vec<String> {
        self.missing(faults, pairs)
    }
}
