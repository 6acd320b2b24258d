//! The keys by which the engine finds its sessions and streams, and those of its timers.

use crate::exchange::ExchangeId;
use crate::input::{RequestKey, SessionKey};

/// The key of a stream within an engine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct StreamKey(pub(super) u64);

/// How the engine finds a session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum SessionRef {
    /// The one of a duplex connection.
    Duplex(ExchangeId),
    Http(SessionKey),
}

impl SessionRef {
    /// Returns the key of an HTTP session.
    pub(super) const fn http(self) -> Option<SessionKey> {
        match self {
            Self::Duplex(_) => None,
            Self::Http(session) => Some(session),
        }
    }
}

/// Where the response of a request goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReplyTo {
    /// A duplex connection.
    Duplex(ExchangeId),
    /// The response stream of an HTTP POST. A legacy one can outlive the exchange that brought it.
    Stream(StreamKey),
    /// The request was answered with a task, which keeps its outcome. What is sent beside that goes
    /// to its session (2025-11-25), if it can be reached.
    Task(Option<SessionRef>),
}

/// The key of a task: that of its request, when it became one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct TaskKey(pub(super) u64);

/// The timers of a server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum ServerTimer {
    /// Limit for the first request on a duplex connection.
    Handshake(ExchangeId),
    /// Limit for an exchange that accepts no byte.
    Stall(ExchangeId),
    /// Limit for the requests of a client that has closed its sending side.
    End(ExchangeId),
    /// Limit for a handler.
    Handler(RequestKey),
    /// Limit for the input of a client.
    Ask(RequestKey),
    /// The next keep-alive comment of an event stream.
    KeepAlive(ExchangeId),
    /// Limit for the admission of an HTTP request or a connection.
    Admit(ExchangeId),
    /// The end of the token that opened an exchange which stays open by itself.
    Expiry(ExchangeId),
    /// The end of the time for which a finished stream is kept.
    Keep(StreamKey),
    /// The oldest web page that is not complete is forgotten.
    Elicitations,
    /// The time of a task is over, or a task that has ended is removed.
    Tasks,
    /// The next sweep of idle sessions.
    Sweep,
    /// Limit for the oldest request to the store.
    StoreReply,
    /// The next renewal of the lease of this node.
    StoreRenewal,
    /// The store has failed, and is tried again.
    StoreRetry,
    /// The next look at the streams of other servers.
    Tails,
    /// The next look at the tasks that clients wait for.
    AwaitedTasks,
    /// The next look at the tasks of the store that clients watch.
    WatchedTasks,
    /// The next look for tasks of lost servers.
    Orphans,
    /// The end of the grace period of a shutdown.
    Grace,
}
