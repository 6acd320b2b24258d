//! Logins under faults: real clients in several processes that share a store, authorization servers
//! that rotate refresh tokens and kill a family at its second use, an identity provider, a guarded
//! server, and users who decline, paste twice, or never answer. The clients obtain their tokens
//! with any grant, bound to a key or not. Everything is in virtual time, and a function of its
//! [`Scenario`]. HTTP itself is not simulated: an exchange ends with a whole response, or without
//! one.
//!
//! The invariants are in `check` and `keys`: a secret reaches only its addressee and is shown
//! nowhere, one renewal of a record is in flight, each call ends once, what was requested never
//! shrinks, a bound token never goes out without a proof, each attempt has a proof of its own, an
//! answer to a step that is not open changes nothing, and at the end no lease, listener, page or
//! timer is left.

mod application;
mod check;
mod issuer;
mod keys;
mod probe;
mod process;
mod servers;
mod settings;
mod steps;
mod store;
mod tokens;
mod user;
mod world;

use super::rng::Rng;
use super::scenario;
use std::time::Duration;

pub use settings::{ClientKind, GrantKind, Settings};
pub use world::day;

/// Everything that determines a run.
pub type Scenario = scenario::Scenario<Settings>;

/// The results of [`day`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Day {
    /// Pages at which a user logged in.
    pub pages: u64,
    /// Renewals of tokens.
    pub refreshes: u64,
    /// The least possible number of renewals, in thousandths.
    pub ideal: u64,
    /// Calls, and those of them that ended with a result.
    pub calls: (u64, u64),
    /// How long it was.
    pub time: Duration,
}
