//! What runs over HTTP came to.

use super::super::report::InputKind;
use super::fault::Fault;
use mcp_proto::client::State;
use std::collections::BTreeMap;

/// What a run, or many, came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Steps that counted.
    pub steps: u64,
    /// Calls made.
    pub calls: u64,
    /// Calls that ended with a result.
    pub completed: u64,
    /// Requests written.
    pub requests: u64,
    /// Attempts to go on with a stream.
    pub resumed: u64,
    /// Handshakes.
    pub handshakes: u64,
    /// Clients that ended by themselves.
    pub ended: u64,
    /// Faults injected.
    pub faults: BTreeMap<Fault, u64>,
    /// What a client was told in which state.
    pub pairs: BTreeMap<(State, InputKind), u64>,
}

impl Report {
    /// The states that a client over HTTP has.
    pub const STATES: [State; 6] =
        [State::Probing, State::Initializing, State::Ready, State::Lapsed, State::Closing, State::Terminated];

    /// Adds another report to this one.
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.calls += other.calls;
        self.completed += other.completed;
        self.requests += other.requests;
        self.resumed += other.resumed;
        self.handshakes += other.handshakes;
        self.ended += other.ended;
        for (fault, n) in &other.faults {
            *self.faults.entry(*fault).or_default() += n;
        }
        for (pair, n) in &other.pairs {
            *self.pairs.entry(*pair).or_default() += n;
        }
    }

    /// What occurred too seldom: faults below `faults` times, pairs below `pairs` times.
    pub fn missing(&self, faults: u64, pairs: u64) -> Vec<String> {
        let few = |n: Option<&u64>, least: u64| n.copied().unwrap_or(0) < least;
        let rare = Fault::ALL.iter().filter(|fault| few(self.faults.get(fault), faults));
        let mut missing: Vec<String> = rare.map(|fault| format!("{fault:?}")).collect();
        for state in Self::STATES {
            for kind in InputKind::ALL {
                if few(self.pairs.get(&(state, kind)), pairs) {
                    missing.push(format!("{state:?} x {kind:?}"));
                }
            }
        }
        missing
    }
}
