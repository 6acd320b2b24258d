//! A deterministic simulation: real clients and a real server over links with virtual time and
//! faults.
//!
//! Nothing here sleeps or reads a clock. A run is a function of its [`Scenario`]. A failing
//! scenario is written to a file, and `cargo run -p mcp-tests --bin replay FILE` repeats it and
//! prints every step. A step counts only if it delivered bytes, fired a timer or injected a fault.

pub mod app;
pub mod both;
pub mod campaign;
pub mod chaos;
pub mod digest;
pub mod less;
pub mod link;
pub mod report;
pub mod rng;
pub mod web;
pub mod world;

pub use link::Fault;
pub use report::Report;
pub use world::World;

use campaign::{Simulation, Tally, Violation};
use less::Less;
use mcp_proto::Instant;
use mcp_proto::client::{Policy, State};
use mcp_proto::exchange::{Action, Closed, ConnectionId, IoEvent};
use mcp_proto::wired::{Kind, WiredServer};
use std::fmt;

/// The number of the first connection that a server refuses.
const FIRST_REFUSED: u64 = 1 << 40;

/// Returns whether a server refused the connection of this number.
pub(crate) const fn is_refused(connection: u64) -> bool {
    connection >= FIRST_REFUSED
}

/// Returns whether an action is one of a connection that a server refuses.
pub(crate) const fn is_of_refused<E>(action: &Action<E>) -> bool {
    match action {
        Action::Open(id, _)
        | Action::Write(id, _)
        | Action::Read(id, _)
        | Action::Close(id, _)
        | Action::Notice(id, _) => is_refused(id.0),
        Action::Event(_) => false,
    }
}

/// Accepts a connection. `None` if the server refuses it: the caller reads no response.
pub(crate) fn accept(server: &mut WiredServer, now: Instant, kind: Kind) -> Option<ConnectionId> {
    let is_over = server.is_terminated();
    let id = server.accept(now, kind, Default::default());
    if !is_refused(id.0) {
        return Some(id);
    }
    server.handle_io(now, id, IoEvent::Closed(Closed::Aborted));
    while is_over && let Some(action) = server.poll_output() {
        assert!(is_of_refused(&action), "{action:?} after the end");
    }
    None
}

/// The protocol on the links of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// Lines, to a program that can be started again.
    Lines,
    /// Streamable HTTP.
    Http,
}

/// Everything that determines a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// The seed of all choices.
    pub seed: u64,
    /// The protocol.
    pub transport: Transport,
    /// How the clients negotiate.
    pub policy: Policy,
    /// How many clients share the server.
    pub clients: usize,
    /// How many operations the applications make, before they close.
    pub operations: u64,
    /// Faults per thousand chances; zero for a clean run.
    pub faults: u64,
    /// Bytes that a link holds in one direction.
    pub capacity: usize,
    /// Whether a server that ends is restarted.
    pub restart: bool,
    /// Whether the clients ping the server.
    pub ping: bool,
    /// The omissions of the run.
    pub less: Less,
}

impl Scenario {
    /// The scenario of a seed.
    pub fn from_seed(seed: u64) -> Self {
        let mut rng = rng::Rng::new(seed ^ 0x5ce_a210);
        let transport = if rng.per_mille(300) { Transport::Http } else { Transport::Lines };
        let policy = match (transport, rng.below(3)) {
            (Transport::Lines, 1) => Policy::Legacy,
            (Transport::Http, _) | (_, 2) => Policy::Modern,
            (Transport::Lines, _) => Policy::Auto,
        };
        let capacity = [1, 64, 1024, 16 << 10, 1 << 20][(rng.below(41) as usize).div_ceil(10)];
        let faults = [0, 40, 100][rng.below(3) as usize];
        let (clients, operations) = (1 + rng.below(3) as usize, 5 + rng.below(50));
        let (restart, ping) = (rng.per_mille(500), rng.per_mille(200));
        let less = Less::default();
        Self { seed, transport, policy, clients, operations, faults, capacity, restart, ping, less }
    }

    /// Whether a client that was in the one state may be in the other after one input.
    pub fn may_follow(&self, before: State, after: State) -> bool {
        match (before, after) {
            (_, State::Restarting) => self.restart && before <= State::Restarting,
            (State::Restarting, State::Probing | State::Initializing) => true,
            (State::Initializing, State::Probing) => true,
            _ => after >= before,
        }
    }

    /// Reads the output of [`Display`](fmt::Display). `None` also for an impossible world: without
    /// clients, or over links without capacity.
    pub fn parse(text: &str) -> Option<Self> {
        let mut scenario = Self::from_seed(0);
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
            let (key, value) = line.split_once('=')?;
            if scenario.less.read(key.trim(), value).is_some() {
                continue;
            }
            let number = || value.trim().parse::<u64>().ok();
            match (key.trim(), value.trim()) {
                ("seed", _) => scenario.seed = number()?,
                ("transport", "lines") => scenario.transport = Transport::Lines,
                ("transport", "http") => scenario.transport = Transport::Http,
                ("policy", "auto") => scenario.policy = Policy::Auto,
                ("policy", "legacy") => scenario.policy = Policy::Legacy,
                ("policy", "modern") => scenario.policy = Policy::Modern,
                ("clients", _) => {
                    scenario.clients = usize::try_from(number()?).ok().filter(|n| (1..=1000).contains(n))?
                }
                ("operations", _) => scenario.operations = number()?,
                ("faults", _) => scenario.faults = number()?,
                ("capacity", _) => scenario.capacity = usize::try_from(number()?).ok().filter(|n| *n > 0)?,
                ("restart", value) => scenario.restart = value.parse().ok()?,
                ("ping", value) => scenario.ping = value.parse().ok()?,
                _ => return None,
            }
        }
        Some(scenario)
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = match self.transport {
            Transport::Lines => "lines",
            Transport::Http => "http",
        };
        let policy = match self.policy {
            Policy::Auto => "auto",
            Policy::Legacy => "legacy",
            Policy::Modern => "modern",
        };
        writeln!(f, "seed = {}\ntransport = {transport}\npolicy = {policy}", self.seed)?;
        writeln!(f, "clients = {}\noperations = {}", self.clients, self.operations)?;
        writeln!(f, "faults = {}\ncapacity = {}", self.faults, self.capacity)?;
        writeln!(f, "restart = {}\nping = {}", self.restart, self.ping)?;
        self.less.fmt(f)
    }
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
    const NAME: &'static str = "duplex";
    type Report = Report;

    fn from_seed(seed: u64) -> Self {
        Self::from_seed(seed)
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn attempt(&self, trace: bool) -> Result<Report, Violation> {
        let run = |world: &mut World| {
            world.run();
            std::mem::take(&mut world.report)
        };
        campaign::attempt(|| World::new(self, trace), run, World::drawn)
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
            Self { restart: false, ..self.clone() },
            Self { ping: false, ..self.clone() },
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
