//! The results of runs with both engines.

use super::super::report::{InputKind, add_up, rare, rare_pairs};
use super::fault::Fault;
use mcp_proto::client::State;
use std::collections::BTreeMap;

/// Where a server is in its life.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Life {
    /// It serves.
    Serving,
    /// It accepts no more requests, and some run.
    Draining,
    /// It has ended.
    Ended,
}

/// The kinds of input of a wired server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "the names are those of the inputs")]
pub enum ServerInputKind {
    Accept,
    Bytes,
    Eof,
    Written,
    Closed,
    Respond,
    Notify,
    Publish,
    Admit,
    Revoke,
    Shutdown,
    Tick,
}

/// The results of one or many runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Steps that counted.
    pub steps: u64,
    /// Calls made.
    pub calls: u64,
    /// Calls that ended with a result.
    pub completed: u64,
    /// Those whose response followed after their stream had broken off.
    pub resumed: u64,
    /// Requests that the server's application was handed.
    pub handled: u64,
    /// Sessions that were opened.
    pub sessions: u64,
    /// Sessions that ended because they were idle.
    pub idled: u64,
    /// Events that were kept.
    pub kept: u64,
    /// Events that were written once more.
    pub replayed: u64,
    /// Questions of the server that were answered.
    pub answered: u64,
    /// Clients that learnt that the tools changed.
    pub told: u64,
    /// Faults injected.
    pub faults: BTreeMap<Fault, u64>,
    /// Statuses of responses.
    pub statuses: BTreeMap<u16, u64>,
    /// The inputs of a client in each state.
    pub pairs: BTreeMap<(State, InputKind), u64>,
    /// The inputs of the server in each state.
    pub server_pairs: BTreeMap<(Life, ServerInputKind), u64>,
}

impl Life {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Serving, Self::Draining, Self::Ended];
}

impl ServerInputKind {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Accept,
        Self::Bytes,
        Self::Eof,
        Self::Written,
        Self::Closed,
        Self::Respond,
        Self::Notify,
        Self::Publish,
        Self::Admit,
        Self::Revoke,
        Self::Shutdown,
        Self::Tick,
    ];
}

impl Report {
    /// Adds another report to this one.
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.calls += other.calls;
        self.completed += other.completed;
        self.resumed += other.resumed;
        self.handled += other.handled;
        self.sessions += other.sessions;
        self.idled += other.idled;
        self.kept += other.kept;
        self.replayed += other.replayed;
        self.answered += other.answered;
        self.told += other.told;
        add_up(&mut self.faults, &other.faults);
        add_up(&mut self.statuses, &other.statuses);
        add_up(&mut self.pairs, &other.pairs);
        add_up(&mut self.server_pairs, &other.server_pairs);
    }

    /// The rare events: faults below `faults` times, pairs of a state and an input of either engine
    /// below `pairs` times.
    pub fn missing(&self, faults: u64, pairs: u64) -> Vec<String> {
        let mut missing = rare(&self.faults, &Fault::ALL, faults);
        missing.extend(rare_pairs(&self.pairs, &super::super::web::Report::STATES, &InputKind::ALL, pairs));
        missing.extend(rare_pairs(&self.server_pairs, &Life::ALL, &ServerInputKind::ALL, pairs));
        missing
    }
}
