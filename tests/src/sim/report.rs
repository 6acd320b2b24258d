//! The results of runs (steps, calls, faults, and the inputs of the engines in each state), and the
//! messages of clients.

use super::fault::Fault;
use mcp_proto::auth::FlowState;
use mcp_proto::client::{self, State};
use mcp_proto::exchange::{Action, ConnectionId, IoEvent};
use mcp_proto::input::{ClientCommand, Input, ServerCommand, WiredClientInput, WiredServerInput};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Defines an enum with a list of its variants.
macro_rules! listed {
    ($(#[$meta:meta])+ $name:ident { $($(#[$doc:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$meta])+
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum $name {
            $($(#[$doc])* $variant),+
        }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];
        }
    };
}

listed! {
    /// The kinds of input of a wired client.
    #[expect(missing_docs, reason = "the names are those of the inputs")]
    InputKind { Opened, Bytes, Eof, Written, Closed, Call, Cancel, Answer, Notify, Close, Tick }
}

listed! {
    /// The kinds of input of a wired server.
    #[expect(missing_docs, reason = "the names are those of the inputs")]
    ServerInputKind {
        Accept, Bytes, Eof, Written, Closed, Respond, Notify, Publish, Admit, Revoke, Shutdown, Tick
    }
}

listed! {
    /// The kinds of input of a login: first the answers to its steps.
    #[expect(missing_docs, reason = "the names are those of the inputs")]
    LoginInput {
        Leased, Loaded, Saved, Listening, Redirected, Declined, KeyMade, Signed, Asserted, Fetched, Refused, Call,
        Login, Logout, Close, Tick
    }
}

listed! {
    /// Where a server is in its life.
    Life {
        /// It serves.
        Serving,
        /// It accepts no more requests, and some run.
        Draining,
        /// It has ended.
        Ended,
    }
}

impl LoginInput {
    /// The number of those that answer a step.
    pub(super) const STEPS: usize = 9;
}

impl InputKind {
    pub(super) const fn of(input: &WiredClientInput) -> Self {
        match input {
            Input::Event(_, IoEvent::Opened(_) | IoEvent::Secured) => Self::Opened,
            Input::Event(_, IoEvent::Read(_)) => Self::Bytes,
            Input::Event(_, IoEvent::ReadClosed) => Self::Eof,
            Input::Event(_, IoEvent::Written(_)) => Self::Written,
            Input::Event(_, IoEvent::Closed(_)) => Self::Closed,
            Input::Command(ClientCommand::Call(_)) => Self::Call,
            Input::Command(ClientCommand::Cancel(..)) => Self::Cancel,
            Input::Command(
                ClientCommand::Answer(..)
                | ClientCommand::Auth(_)
                | ClientCommand::Authorize(..)
                | ClientCommand::Elicited(_),
            ) => Self::Answer,
            Input::Command(
                ClientCommand::Notify(..)
                | ClientCommand::NotifyTracked(..)
                | ClientCommand::Untrack(_)
                | ClientCommand::Watch(_)
                | ClientCommand::LogLevel(_)
                | ClientCommand::Fetch(..)
                | ClientCommand::CancelFetch(_)
                | ClientCommand::Login
                | ClientCommand::Logout
                | ClientCommand::CredentialsChanged
                | ClientCommand::RootsChanged,
            ) => Self::Notify,
            Input::Command(ClientCommand::Close) => Self::Close,
            Input::Tick => Self::Tick,
        }
    }
}

impl ServerInputKind {
    pub(super) const fn of(input: &WiredServerInput) -> Self {
        match input {
            Input::Event(_, IoEvent::Read(_)) => Self::Bytes,
            Input::Event(_, IoEvent::ReadClosed) => Self::Eof,
            Input::Event(_, IoEvent::Written(_)) => Self::Written,
            Input::Event(_, IoEvent::Closed(_) | IoEvent::Opened(_) | IoEvent::Secured) => Self::Closed,
            Input::Command(ServerCommand::Respond(_)) => Self::Respond,
            Input::Command(ServerCommand::Notify(..)) => Self::Notify,
            Input::Command(ServerCommand::Publish(_) | ServerCommand::Elicited(_)) => Self::Publish,
            Input::Command(ServerCommand::Admit(..)) => Self::Admit,
            Input::Command(ServerCommand::Revoke(_)) => Self::Revoke,
            Input::Command(ServerCommand::Shutdown(_)) => Self::Shutdown,
            Input::Command(ServerCommand::Stored(..) | ServerCommand::Arrived(_)) => panic!("there is no store"),
            Input::Tick => Self::Tick,
        }
    }
}

/// Defines [`Report`] from the numbers in it.
macro_rules! report {
    ($($(#[$doc:meta])+ $number:ident,)+) => {
        /// The results of one or many runs.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Report {
            $($(#[$doc])+ pub $number: u64,)+
            /// Faults injected.
            pub faults: BTreeMap<Fault, u64>,
            /// Statuses of the responses of a server over HTTP.
            pub statuses: BTreeMap<u16, u64>,
            /// The inputs of a client in each state.
            pub pairs: BTreeMap<(State, InputKind), u64>,
            /// The inputs of the server in each state.
            pub server_pairs: BTreeMap<(Life, ServerInputKind), u64>,
            /// The inputs of a login in each state.
            pub login_pairs: BTreeMap<(FlowState, LoginInput), u64>,
        }

        impl Report {
            /// Returns the numbers with their names.
            pub const fn numbers(&self) -> [(&'static str, u64); [$(stringify!($number)),+].len()] {
                [$((stringify!($number), self.$number)),+]
            }

            /// Adds another report to this one.
            pub fn add(&mut self, other: &Self) {
                $(self.$number += other.$number;)+
                add_up(&mut self.faults, &other.faults);
                add_up(&mut self.statuses, &other.statuses);
                add_up(&mut self.pairs, &other.pairs);
                add_up(&mut self.server_pairs, &other.server_pairs);
                add_up(&mut self.login_pairs, &other.login_pairs);
            }
        }
    };
}

report! {
    /// Steps that counted.
    steps,
    /// Calls made.
    calls,
    /// Calls that ended with a result.
    completed,
    /// Pings that were missed.
    pings_missed,
    /// Requests written.
    requests,
    /// Attempts to resume a stream. With both engines, calls whose response followed after their
    /// stream had broken off.
    resumed,
    /// Handshakes.
    handshakes,
    /// Clients that ended by themselves.
    ended,
    /// Requests that the server's application was handed.
    handled,
    /// Sessions that were opened.
    sessions,
    /// Sessions that ended because they were idle.
    idled,
    /// Events that were kept.
    kept,
    /// Events that were written once more.
    replayed,
    /// Questions of the server that were answered.
    answered,
    /// Events about a change of the tools.
    changes,
    /// States of tasks that callers were told.
    tasks,
    /// Handshakes of TLS that a client completed.
    secured,
    /// Tunnels that a client used.
    tunnels,
    /// Connections whose end one side saw as a truncation of TLS.
    truncations,
    /// Connections that one side ended for another failure of TLS.
    tls_failures,
    /// Pages at which a user logged in, or declined.
    pages,
    /// Refreshes of tokens.
    refreshes,
    /// Tokens that were issued without a user.
    grants,
    /// Proofs of possession of a key.
    proofs,
    /// Registrations of clients.
    registrations,
}

/// Adds the numbers of another run.
fn add_up<K: Copy + Ord>(to: &mut BTreeMap<K, u64>, more: &BTreeMap<K, u64>) {
    for (key, n) in more {
        *to.entry(*key).or_default() += n;
    }
}

/// Returns which of these occurred less than `least` times.
pub(super) fn rare<K: Copy + Ord + Debug>(
    seen: &BTreeMap<K, u64>,
    all: impl IntoIterator<Item = K>,
    least: u64,
) -> Vec<String> {
    let few = |key: &K| seen.get(key).copied().unwrap_or(0) < least;
    all.into_iter().filter(few).map(|key| format!("{key:?}")).collect()
}

/// Returns all pairs of a state and an input.
pub(super) fn pairs<S: Copy, I: Copy>(states: &[S], inputs: &[I]) -> Vec<(S, I)> {
    states.iter().flat_map(|state| inputs.iter().map(move |input| (*state, *input))).collect()
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
