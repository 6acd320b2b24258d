//! What an application says about its servers, and about all of them.

use super::catalogue::{Catalogue, Lists};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use mcp_proto::client::ClientConfig;

/// A server that a [`Supervisor`](super::Supervisor) keeps connected.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ServerSpec {
    /// The configuration of its clients. They watch the [`lists`](Self::lists) as well.
    pub config: Arc<ClientConfig>,
    /// When the first client connects. Default at once.
    pub connect: ConnectWhen,
    /// Whether the application resolves the configuration before each attempt to connect:
    /// credentials that expire, or values of the environment. The timeout of calls is always that
    /// of [`config`](Self::config). Default off. See [`Output::Resolve`](super::Output::Resolve).
    pub resolve: bool,
    /// When a call of a tool runs a second time. Default where that is safe.
    pub retry: RetryTool,
    /// The lists that the supervisor keeps. Default all.
    #[cfg_attr(feature = "record", serde(with = "mcp_proto::record::value"))]
    pub lists: Lists,
    /// The lists as they were in an earlier run of the application. They are stale until the server
    /// has connected. Default nothing.
    #[cfg_attr(feature = "record", serde(with = "mcp_proto::record::value"))]
    pub catalogue: Catalogue,
}

impl ServerSpec {
    /// Creates a specification with the defaults.
    pub fn new(config: impl Into<Arc<ClientConfig>>) -> Self {
        Self {
            config: config.into(),
            connect: ConnectWhen::AtOnce,
            resolve: false,
            retry: RetryTool::Safe,
            lists: Lists::ALL,
            catalogue: Catalogue::default(),
        }
    }
}

/// When the first client of a server connects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum ConnectWhen {
    /// As soon as the server is added.
    AtOnce,
    /// At the first call, or when the application asks for it. Until then the server has the
    /// [`catalogue`](ServerSpec::catalogue) of its specification.
    OnDemand,
}

/// When a call of a tool runs a second time, after its connection ended. Never if the server asked
/// for a pause when the client resumed the stream of the response (`Retry-After`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum RetryTool {
    /// If the server cannot have received the first request, or declares that the tool changes
    /// nothing (`readOnlyHint`), or that a second call has no further effect (`idempotentHint`).
    Safe,
    /// After each end of a connection. The tool may run twice.
    Always,
    /// Never.
    Never,
}

/// How a [`Supervisor`](super::Supervisor) treats all of its servers.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Supervision {
    /// The delays before the attempts to connect again: before the first one, the second, and so
    /// on, each at least 1 ms, and at least what the server asks for ([`Cause::retry_after`]).
    /// After one more failure the server is down. A server that has answered no request since three
    /// handshakes fails with the end of its connection as well. Default 500 ms, 1 s, 2 s, 4 s.
    ///
    /// [`Cause::retry_after`]: super::Cause::retry_after
    pub waits: Vec<Duration>,
    /// Whether each delay is longer by a random part, at most a quarter of it, so that many servers
    /// do not reconnect at once. Default on.
    pub jitter: bool,
    /// Maximum number of attempts to connect to one server within [`within`](Self::within). One
    /// more, and the server is down. Default 5.
    pub max_attempts: usize,
    /// The period within which attempts count. Default 30 s.
    pub within: Duration,
    /// What becomes of a server that is down. Default a probe after 30 s, and after twice the time
    /// each time, at most 5 min (and the random part). A probe does not begin before the server
    /// permits it either.
    pub when_down: WhenDown,
    /// Number of pings in a row without a response after which a server counts as lost, at least 1.
    /// Pings are sent if the configuration of the server says so
    /// ([`ClientConfig::ping`](mcp_proto::ClientConfig::ping)). Default 3.
    pub max_missed_pings: u32,
    /// Maximum number of calls that wait for one server to connect. Default 1,024.
    pub max_waiting: usize,
    /// Maximum time for clients to close: before another one takes their place, and when the
    /// supervisor is closed. After it the supervisor no longer waits. Default 30 s.
    pub close_timeout: Duration,
}

impl Default for Supervision {
    fn default() -> Self {
        Self {
            waits: vec![500, 1000, 2000, 4000].into_iter().map(Duration::from_millis).collect(),
            jitter: true,
            max_attempts: 5,
            within: Duration::from_secs(30),
            when_down: WhenDown::Probe { first: Duration::from_secs(30), max: Duration::from_secs(300) },
            max_missed_pings: 3,
            max_waiting: 1024,
            close_timeout: Duration::from_secs(30),
        }
    }
}

/// What becomes of a server that is down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum WhenDown {
    /// One attempt to connect after a time, which doubles with each attempt that fails.
    Probe {
        /// The time before the first attempt, at least 1 ms.
        first: Duration,
        /// Maximum time before an attempt, without the random part.
        max: Duration,
    },
    /// No attempt, until the application asks for one.
    GiveUp,
}
