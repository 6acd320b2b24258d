//! What a supervisor tells its driver and the application.

use super::{Generation, ListFault, ListHealth, ListKind, Ticket};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use mcp_proto::client::{ClientConfig, Termination};
use mcp_proto::error::{CallError, StreamEnd};
use mcp_proto::peer_text::Visible;
use mcp_proto::time::Instant;

/// An instruction of a [`Supervisor`](super::Supervisor) for its driver, in order.
#[derive(Clone, PartialEq, Debug)]
#[must_use]
pub enum Output<K> {
    /// Resolve the configuration of a server, and report it with
    /// [`Supervisor::resolved`](super::Supervisor::resolved). Emitted before each attempt to
    /// connect, if the specification [asks for it](super::ServerSpec::resolve). Without a report
    /// within [`ClientConfig::connect_timeout`] the attempt has failed.
    Resolve {
        /// The server.
        key: K,
        /// The client that is to be connected.
        generation: Generation,
        /// The configuration of the specification.
        config: Arc<ClientConfig>,
    },
    /// Start a client with this configuration. Report
    /// [`Supervisor::ready`](super::Supervisor::ready) after each successful negotiation, and
    /// [`Supervisor::ended`](super::Supervisor::ended) once it has ended and its connections are
    /// closed.
    Connect {
        /// The server.
        key: K,
        /// The client.
        generation: Generation,
        /// Its configuration.
        config: Arc<ClientConfig>,
    },
    /// Close a client, and report its end with [`Supervisor::ended`](super::Supervisor::ended).
    /// Emitted once for each client at most, and not after its end.
    Close(Generation),
    /// Load all pages of a list, and report them with
    /// [`Supervisor::loaded`](super::Supervisor::loaded). An earlier load of the same list by the
    /// same client has been given up, or belongs to an earlier session: do not report it any more.
    /// Limit what a load holds: a server can send any number of pages.
    Load {
        /// The client.
        generation: Generation,
        /// The list.
        list: ListKind,
    },
    /// Make a call on this client, and report its end with
    /// [`Supervisor::finished`](super::Supervisor::finished), or
    /// [`Supervisor::not_begun`](super::Supervisor::not_begun).
    Run {
        /// The call.
        ticket: Ticket,
        /// The client.
        generation: Generation,
        /// The time that is left for it. `None` is no limit.
        timeout: Option<Duration>,
    },
    /// The call has ended with the outcome that was reported last.
    End {
        /// The call.
        ticket: Ticket,
    },
    /// The call ends without a result: it does not run, or not again. Whatever a client still
    /// returns for it is not its result.
    Refuse {
        /// The call.
        ticket: Ticket,
        /// Why.
        why: CallRefusal,
    },
    /// Something that the application may want to know.
    Event(Event<K>),
}

/// An event of a [`Supervisor`](super::Supervisor) for the application.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Event<K> {
    /// The server is connected. Emitted again after a reconnection.
    Up {
        /// The server.
        key: K,
        /// The client.
        generation: Generation,
    },
    /// The server is not connected any more, or could not be. The next attempt begins after a
    /// delay. Calls wait for it.
    Reconnecting {
        /// The server.
        key: K,
        /// The number of the next attempt since the server was connected, from 1 on.
        attempt: u32,
        /// The delay.
        wait: Duration,
        /// What happened.
        cause: Cause,
    },
    /// The server is down: calls fail at once. Emitted again after each probe that fails.
    Down {
        /// The server.
        key: K,
        /// When the next probe begins. `None` if there is none.
        next: Option<Instant>,
        /// What happened last.
        cause: Cause,
    },
    /// A list of the server has other elements than before.
    Listed {
        /// The server.
        key: K,
        /// The list.
        list: ListKind,
    },
    /// A list that the connected server has cannot be loaded. The supervisor tries again. Not
    /// emitted again for this list before it was loaded, or the server was connected again; not
    /// emitted for a list whose method the server does not have, which is empty.
    NotListed {
        /// The server.
        key: K,
        /// The list, and the error.
        fault: ListFault,
    },
    /// The callback of the application was slow: events were dropped. The state of each server is
    /// in its [`Health`]. Emitted by adapters.
    Lost {
        /// Number of events.
        events: u64,
    },
    /// The recording of the supervisor has ended. The supervisor continues.
    RecordingEnded {
        /// Why: the error of its writer, for example.
        why: String,
    },
    /// All clients are closed, after [`Supervisor::close`](super::Supervisor::close), or the time
    /// for that is over. The last output.
    Closed {
        /// Number of clients whose end was not reported in time.
        left: usize,
    },
}

/// Why a server is not connected, or cannot be used as a whole. Its `Display` has
/// [escapes](mcp_proto::error#text-of-a-peer).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// The client ended, or could not connect.
    Ended(Termination),
    /// A call could not reach the server.
    Unreachable(CallError),
    /// The server refused three calls in a row with HTTP 400 or 404, the last one with this error.
    /// Another client takes the place of the connected one, with another session: once, until a
    /// call is answered.
    CallsRefused(CallError),
    /// The client has lost its session, and still exists.
    SessionLost(StreamEnd),
    /// The server did not respond to this number of pings in a row.
    Unresponsive {
        /// The number.
        pings: u32,
    },
    /// The application could not resolve the configuration. The text is its own.
    Unresolved(String),
    /// The application did not resolve the configuration in time.
    ResolveTimeout,
    /// The application asked for a new connection.
    Requested,
    /// The server is connected, and a list of it cannot be loaded. Only in [`Health::cause`].
    NotListed(ListFault),
}

impl Cause {
    /// Returns the time for which the server asked not to be tried again, as sent (`Retry-After`,
    /// RFC 9110 section 10.2.3). The next attempt of the supervisor, or the next load of the list,
    /// does not begin before it, at most 5 min, unless the application
    /// [asks](super::Supervisor::reconnect) for an attempt.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Ended(Termination::Negotiation(why)) => why.retry_after(),
            Self::Ended(Termination::Closed(why)) => why.retry_after(),
            Self::Unreachable(error) | Self::CallsRefused(error) => error.retry_after(),
            Self::NotListed(fault) => fault.error.retry_after(),
            Self::SessionLost(end) => end.retry_after(),
            Self::Ended(Termination::Requested)
            | Self::Unresponsive { .. }
            | Self::Unresolved(_)
            | Self::ResolveTimeout
            | Self::Requested => None,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(Termination::Requested) => f.write_str("the client was closed"),
            Self::Ended(Termination::Negotiation(why)) => why.fmt(f),
            Self::Ended(Termination::Closed(why)) => why.fmt(f),
            Self::Unreachable(why) => why.fmt(f),
            Self::CallsRefused(why) => write!(f, "three calls in a row were refused: {why}"),
            Self::SessionLost(why) => why.fmt(f),
            Self::Unresponsive { pings } => write!(f, "the server did not respond to {pings} pings"),
            Self::Unresolved(why) => write!(f, "the configuration cannot be resolved: {}", Visible(why)),
            Self::ResolveTimeout => f.write_str("the configuration was not resolved in time"),
            Self::Requested => f.write_str("a new connection was requested"),
            Self::NotListed(fault) => fault.fmt(f),
        }
    }
}

/// Why a call ended without a result of its server.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum CallRefusal {
    /// There is no server of this key.
    Unknown,
    /// The server is down.
    Unavailable {
        /// Since when.
        since: Instant,
        /// When it is probed next. `None` if only the application can ask for an attempt.
        next: Option<Instant>,
        /// What happened last.
        cause: Cause,
    },
    /// The server did not connect within the time for the call.
    Timeout {
        /// The time.
        after: Duration,
    },
    /// [`Supervision::max_waiting`](super::Supervision::max_waiting) calls wait for the server.
    Full,
    /// The server was replaced while the call ran. The old server may have run it.
    Replaced,
    /// The server was removed. It may have run the call.
    Removed,
    /// The supervisor is closed.
    Closed,
}

impl fmt::Display for CallRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("there is no such server"),
            Self::Unavailable { cause, .. } => write!(f, "the server is down: {cause}"),
            Self::Timeout { after } => write!(f, "the server did not connect within {} ms", after.as_millis()),
            Self::Full => f.write_str("too many calls wait for the server"),
            Self::Replaced => f.write_str("the server was replaced"),
            Self::Removed => f.write_str("the server was removed"),
            Self::Closed => f.write_str("the supervisor is closed"),
        }
    }
}

impl core::error::Error for CallRefusal {}

/// The error of a call through a supervisor. Its `Display` has
/// [escapes](mcp_proto::error#text-of-a-peer).
#[derive(Clone, PartialEq, Debug)]
pub enum SupervisedError {
    /// The call was refused, or lost its server.
    Refused(CallRefusal),
    /// The error of the call on its client, the second one if it ran twice.
    Call(CallError),
}

impl fmt::Display for SupervisedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => why.fmt(f),
            Self::Call(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for SupervisedError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Refused(_) => None,
            Self::Call(error) => error.source(),
        }
    }
}

/// The state of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ServerState {
    /// Not connected, since nothing has asked for it
    /// ([`ConnectWhen::OnDemand`](super::ConnectWhen::OnDemand)).
    Idle,
    /// An attempt to connect runs. With `probe`, the server counts as down until it succeeds.
    Connecting {
        /// The client.
        generation: Generation,
        /// Whether the server was down before.
        probe: bool,
    },
    /// Connected.
    Ready {
        /// The client.
        generation: Generation,
        /// Since when.
        since: Instant,
    },
    /// The next attempt begins at this time.
    Waiting {
        /// The time.
        until: Instant,
    },
    /// Down.
    Down {
        /// Since when.
        since: Instant,
        /// When it is probed next.
        next: Option<Instant>,
    },
}

/// The state of a server, with its history.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Health {
    /// The state.
    pub state: ServerState,
    /// The first list that cannot be loaded, of a server that is connected. Otherwise what happened
    /// when the server was not connected last, and `None` if that never was.
    pub cause: Option<Cause>,
    /// The state of each list, in the order of [`ListKind::ALL`].
    pub lists: Vec<ListHealth>,
    /// What happened since the specification was given.
    pub counters: Counters,
    /// Number of calls that wait for a connection now.
    pub waiting: usize,
}

/// What happened to a server and its calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Number of attempts to connect.
    pub attempts: u64,
    /// Number of attempts that failed. A connection that ended counts as one as well, if the server
    /// has not answered a request since at least three handshakes.
    pub failures: u64,
    /// Number of connections that ended, without those that the application ended, and those that
    /// count as failures.
    pub losses: u64,
    /// Number of calls that ran.
    pub calls: u64,
    /// Number of calls that ran a second time.
    pub retries: u64,
}
