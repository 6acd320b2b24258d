//! Servers that share a store, and the clients of all of them. A load balancer sends each request
//! to any server. The store is that in memory; what is between it and the servers loses, delays and
//! doubles replies, the store forgets, servers are killed or sleep, and their clocks run apart.

mod application;
mod check;
mod client;
mod node;
mod operations;
mod store;
mod task;
mod world;

use super::campaign::{self, Violation};
use super::fault::Fault;
use super::report::Report;
use super::rng::Rng;
use super::scenario::{self, Less};
use mcp_proto::client::State;
use world::World;

/// Everything that determines a run.
pub type Scenario = scenario::Scenario<Settings>;

/// What only this world has.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// The number of servers at the beginning.
    pub nodes: u64,
    /// Whether events are sent before the store has them.
    pub behind: bool,
    /// By how many seconds the clocks of two servers differ, and by how many thousandths they run
    /// apart.
    pub apart: (u64, u64),
    /// The longest time of a request to the store and of a reply, in milliseconds.
    pub latency: u64,
    /// A fault that happens more often than the others.
    pub favourite: Option<Fault>,
}

impl scenario::Settings for Settings {
    const NAME: &'static str = "nodes";
    const STATES: &'static [State] = &[];

    fn from_seed(seed: u64) -> Scenario {
        let mut rng = Rng::new(seed ^ 0x6e6f_6465);
        let faults = if seed.is_multiple_of(5) { 0 } else { rng.of(&[20, 60, 150]) };
        let menu = Fault::menu(Self::NAME);
        let settings = Self {
            nodes: 2 + rng.below(2),
            behind: rng.per_mille(200),
            apart: if faults > 0 { rng.of(&[(0, 0), (1, 10), (20, 100)]) } else { (0, 0) },
            latency: rng.of(&[1, 20, 200]),
            favourite: (faults > 0 && rng.per_mille(600)).then(|| rng.of(&menu)),
        };
        let operations = 30 + rng.below(150);
        Scenario { seed, operations, faults, capacity: 1, less: Less::default(), settings }
    }

    fn attempt(scenario: &Scenario, trace: bool) -> Result<Report, Violation> {
        campaign::attempt(|| World::begin(scenario, trace), World::run, World::drawn)
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        vec![
            ("nodes", self.nodes.to_string()),
            ("behind", self.behind.to_string()),
            ("apart", format!("{} {}", self.apart.0, self.apart.1)),
            ("latency", self.latency.to_string()),
        ]
    }

    fn read(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "nodes" => self.nodes = value.parse().ok().filter(|n| (1..=10).contains(n))?,
            "behind" => self.behind = value.parse().ok()?,
            "apart" => {
                let (seconds, rate) = value.split_once(' ')?;
                self.apart = (seconds.parse().ok()?, rate.parse().ok().filter(|rate| *rate < 500)?);
            }
            "latency" => self.latency = value.parse().ok().filter(|latency| *latency > 0)?,
            _ => return None,
        }
        Some(())
    }

    fn simpler(&self) -> Vec<Self> {
        let few = Self { nodes: 2, ..self.clone() };
        let exact = Self { apart: (0, 0), ..self.clone() };
        let quick = Self { latency: 1, ..self.clone() };
        let stored = Self { behind: false, ..self.clone() };
        vec![few, exact, quick, stored]
    }
}
