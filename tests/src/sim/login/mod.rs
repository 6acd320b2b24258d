//! Logins under faults: real clients in several processes that share a store, authorization servers
//! that rotate refresh tokens and kill a family at its second use, a guarded server, and users who
//! decline, paste twice, or never answer. Everything is in virtual time, and a function of its
//! [`Scenario`]. HTTP itself is not simulated: an exchange ends with a whole response, or without
//! one.
//!
//! The invariants are in `check`: a secret reaches only its addressee and is shown nowhere, one
//! refresh of a record is in flight, each call ends once, what was requested never shrinks, and at
//! the end no lease, listener, page or timer is left.

mod check;
mod issuer;
mod process;
mod servers;
mod steps;
mod store;
mod world;

use super::campaign::{self, Violation};
use super::report::Report;
use super::rng::Rng;
use super::scenario::{self, Less};
use mcp_proto::auth::FlowState;
use mcp_proto::client::State;
use std::time::Duration;

use world::World;
pub use world::day;

/// Everything that determines a run.
pub type Scenario = scenario::Scenario<Settings>;

/// The settings of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Number of processes that share the store.
    pub processes: u64,
    /// The lifetime of access tokens, in seconds.
    pub lifetime: u64,
    /// Whether refresh tokens rotate.
    pub rotates: bool,
    /// Whether the store may fail. Without it, one refresh of the record is in flight at a time.
    pub store_fails: bool,
    /// Whether redirects name their issuer.
    pub names_issuer: bool,
    /// How far the clock of the second process is ahead, in seconds.
    pub ahead: i64,
}

impl scenario::Settings for Settings {
    const NAME: &'static str = "login";
    const STATES: &'static [State] = &[];
    const LOGIN_STATES: &'static [FlowState] = world::STATES;

    fn from_seed(seed: u64) -> Scenario {
        let mut rng = Rng::new(seed ^ 0x6c6f_6769_6e00);
        let faults = rng.of(&[0, 40, 40, 120]);
        let settings = Self {
            processes: 1 + rng.below(3),
            lifetime: rng.of(&[10, 60, 300, 3600]),
            rotates: rng.per_mille(700),
            store_fails: faults > 0 && rng.per_mille(400),
            names_issuer: rng.per_mille(700),
            ahead: if faults > 0 { rng.of(&[0, 0, -600, 600]) } else { 0 },
        };
        let operations = 5 + rng.below(40);
        Scenario { seed, operations, faults, capacity: 1, less: Less::default(), settings }
    }

    fn attempt(scenario: &Scenario, trace: bool) -> Result<Report, Violation> {
        campaign::attempt(|| World::begin(scenario, trace), World::run, World::drawn)
    }

    fn simpler(&self) -> Vec<Self> {
        let one = Self { processes: 1, ..self.clone() };
        let on_time = Self { ahead: 0, ..self.clone() };
        let sound = Self { store_fails: false, ..self.clone() };
        vec![one, on_time, sound]
    }
}

/// The results of [`day`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Day {
    /// Pages at which a user logged in.
    pub pages: u64,
    /// Refreshes of tokens.
    pub refreshes: u64,
    /// The least possible number of refreshes, in thousandths.
    pub ideal: u64,
    /// Calls, and those of them that ended with a result.
    pub calls: (u64, u64),
    /// How long it was.
    pub time: Duration,
}
