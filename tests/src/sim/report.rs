//! The results of runs (steps, calls, faults, and the inputs of clients in each state), and their
//! messages.

use super::link::Fault;
use mcp_proto::client::{self, State};
use mcp_proto::exchange::{Action, ConnectionId, IoEvent};
use mcp_proto::input::{ClientCommand, Input, WiredClientInput};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// The results of one or many runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Steps that counted.
    pub steps: u64,
    /// Calls made.
    pub calls: u64,
    /// Calls that ended with a result.
    pub completed: u64,
    /// Servers that ended and were restarted.
    pub restarts: u64,
    /// Pings that were missed.
    pub pings_missed: u64,
    /// Faults injected.
    pub faults: BTreeMap<Fault, u64>,
    /// The inputs of a client in each state.
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
            Input::Event(_, IoEvent::Opened(_)) => Self::Opened,
            Input::Event(_, IoEvent::Read(_)) => Self::Bytes,
            Input::Event(_, IoEvent::ReadClosed) => Self::Eof,
            Input::Event(_, IoEvent::Written(_)) => Self::Written,
            Input::Event(_, IoEvent::Closed(_)) => Self::Closed,
            Input::Command(ClientCommand::Call(_)) => Self::Call,
            Input::Command(ClientCommand::Cancel(..)) => Self::Cancel,
            Input::Command(ClientCommand::Answer(..) | ClientCommand::Authorize(..)) => Self::Answer,
            Input::Command(
                ClientCommand::Notify(..) | ClientCommand::NotifyTracked(..) | ClientCommand::Untrack(_),
            ) => Self::Notify,
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

/// Which of these occurred less than `least` times.
pub(super) fn rare<K: Copy + Ord + Debug>(seen: &BTreeMap<K, u64>, all: &[K], least: u64) -> Vec<String> {
    let few = |key: &&K| seen.get(key).copied().unwrap_or(0) < least;
    all.iter().filter(few).map(|key| format!("{key:?}")).collect()
}

/// Which of these states met which of these inputs less than `least` times.
pub(super) fn rare_pairs<S: Copy + Ord + Debug, I: Copy + Ord + Debug>(
    seen: &BTreeMap<(S, I), u64>,
    states: &[S],
    inputs: &[I],
    least: u64,
) -> Vec<String> {
    let pairs = states.iter().flat_map(|state| inputs.iter().map(move |input| (*state, *input)));
    let few = |pair: &(S, I)| seen.get(pair).copied().unwrap_or(0) < least;
    pairs.filter(few).map(|(state, input)| format!("{state:?} x {input:?}")).collect()
}

/// Adds the numbers of another run.
pub(super) fn add_up<K: Copy + Ord>(to: &mut BTreeMap<K, u64>, more: &BTreeMap<K, u64>) {
    for (key, n) in more {
        *to.entry(*key).or_default() += n;
    }
}

/// The messages of a client, with consecutive writes to one connection joined: the cuts of the
/// bytes do not matter.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Transcript(Vec<Said>);

#[derive(Clone, PartialEq, Debug)]
enum Said {
    Write(ConnectionId, Vec<u8>),
    Other(String),
}

impl Transcript {
    /// Adds a message of a client.
    pub fn push(&mut self, action: &Action<client::Event>) {
        match (action, self.0.last_mut()) {
            // When reading stops depends on how the bytes are cut.
            (Action::Read(..), _) => {}
            (Action::Write(channel, bytes), Some(Said::Write(last, text))) if last == channel => {
                text.extend_from_slice(bytes);
            }
            (Action::Write(channel, bytes), _) => self.0.push(Said::Write(*channel, bytes.to_vec())),
            (other, _) => self.0.push(Said::Other(format!("{other:?}"))),
        }
    }

    /// Returns the number of messages.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing was.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
