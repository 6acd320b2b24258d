//! What runs came to (steps, calls, faults, and which client was told what in which state), and what was said in them.

use super::link::Fault;
use mcp_proto::client::{self, State};
use mcp_proto::exchange::{Action, ChannelId};
use mcp_proto::input::{ClientCommand, Input, Wire, WiredClientInput};
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
    /// Servers that ended and were started anew.
    pub restarts: u64,
    /// Pings that were missed.
    pub pings_missed: u64,
    /// Faults injected.
    pub faults: BTreeMap<Fault, u64>,
    /// What a client was told in which state.
    pub pairs: BTreeMap<(State, InputKind), u64>,
}

/// The kinds of input of a wired client.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "the names are those of the inputs")]
pub enum InputKind {
    Opened,
    Bytes,
    Eof,
    Written,
    Closed,
    Call,
    Cancel,
    Answer,
    Notify,
    Close,
    Tick,
}

impl InputKind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Opened,
        Self::Bytes,
        Self::Eof,
        Self::Written,
        Self::Closed,
        Self::Call,
        Self::Cancel,
        Self::Answer,
        Self::Notify,
        Self::Close,
        Self::Tick,
    ];

    pub(super) fn of(input: &WiredClientInput) -> Self {
        match input {
            Input::Fact(_, Wire::Opened(_)) => Self::Opened,
            Input::Fact(_, Wire::Bytes(_)) => Self::Bytes,
            Input::Fact(_, Wire::Eof) => Self::Eof,
            Input::Fact(_, Wire::Written(_)) => Self::Written,
            Input::Fact(_, Wire::Closed(_)) => Self::Closed,
            Input::Command(ClientCommand::Call(_)) => Self::Call,
            Input::Command(ClientCommand::Cancel(..)) => Self::Cancel,
            Input::Command(ClientCommand::Answer(..) | ClientCommand::Authorize(..)) => Self::Answer,
            Input::Command(ClientCommand::Notify(..)) => Self::Notify,
            Input::Command(ClientCommand::Close) => Self::Close,
            Input::Tick => Self::Tick,
        }
    }
}

impl Report {
    /// The states of a client.
    pub const STATES: [State; 7] = [
        State::Probing,
        State::Initializing,
        State::Ready,
        State::Ending,
        State::Restarting,
        State::Closing,
        State::Terminated,
    ];

    /// Adds another report to this one.
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.calls += other.calls;
        self.completed += other.completed;
        self.restarts += other.restarts;
        self.pings_missed += other.pings_missed;
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
        let mut missing: Vec<String> =
            Fault::ALL.iter().filter(|f| few(self.faults.get(f), faults)).map(|f| format!("{f:?}")).collect();
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

/// What a client said, consecutive writes to one channel joined: where bytes are cut is nobody's business.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Transcript(Vec<Said>);

#[derive(Clone, PartialEq, Debug)]
enum Said {
    Write(ChannelId, Vec<u8>),
    Other(String),
}

impl Transcript {
    /// Adds what a client said.
    pub fn push(&mut self, action: &Action<client::Event>) {
        match (action, self.0.last_mut()) {
            (Action::Write(channel, bytes), Some(Said::Write(last, text))) if last == channel => {
                text.extend_from_slice(bytes);
            }
            (Action::Write(channel, bytes), _) => self.0.push(Said::Write(*channel, bytes.to_vec())),
            (other, _) => self.0.push(Said::Other(format!("{other:?}"))),
        }
    }

    /// How many things were said.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing was.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
