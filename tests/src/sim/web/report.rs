//! The results of runs over HTTP.

use super::super::report::{InputKind, add_up, rare, rare_pairs};
use super::fault::Fault;
use mcp_proto::client::State;
use std::collections::BTreeMap;

/// The results of one or many runs.
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
    /// Attempts to resume a stream.
    pub resumed: u64,
    /// Handshakes.
    pub handshakes: u64,
    /// Clients that ended by themselves.
    pub ended: u64,
    /// Faults injected.
    pub faults: BTreeMap<Fault, u64>,
    /// The inputs of a client in each state.
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
        add_up(&mut self.faults, &other.faults);
        add_up(&mut self.pairs, &other.pairs);
    }

    /// What occurred too seldom: faults below `faults` times, pairs below `pairs` times.
    pub fn missing(&self, faults: u64, pairs: u64) -> Vec<String> {
        let mut missing = rare(&self.faults, &Fault::ALL, faults);
        missing.extend(rare_pairs(&self.pairs, &Self::STATES, &InputKind::ALL, pairs));
        missing
    }
}
