//! When and how often a client restarts its server.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

/// The policy for restarting a server that has ended by itself. See
/// [`ClientConfig::restart`](super::ClientConfig::restart).
///
/// The server is a program, or the peer behind a Unix socket. The client cannot open a given
/// channel a second time. It restarts a server only after a successful negotiation. If a program
/// never completes one, the client terminates.
///
/// When the server ends, the calls that were sent to it end with
/// [`CallError::Closed`](crate::CallError::Closed), and the client repeats none of them. It
/// withdraws the questions of the server. Calls that the application makes from then on wait within
/// their time limits. The client sends them after the next successful negotiation.
///
/// The negotiation begins with the revision of the previous one. A new server that cannot be
/// reached, ends or stays silent during that negotiation counts as ended too. If it responds but
/// the negotiation fails, the client terminates. The client does not restart a server if it closed
/// the connection itself ([`Malformed::Fatal`](super::Malformed::Fatal)).
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Restart {
    /// Delays before the first restart, the second, and so on. The last one applies to all later
    /// restarts. An empty list means no delay. Only starts within [`within`](Self::within) count.
    /// After a server has run that long, the client therefore uses the first delay again. Default
    /// 500 ms, 1 s, 2 s, 4 s.
    pub waits: Vec<Duration>,
    /// Maximum random time that the client adds to each delay, so that many clients do not
    /// reconnect at once. In whole milliseconds. Default zero.
    pub jitter: Duration,
    /// Maximum number of starts within [`within`](Self::within), including the first start with a
    /// successful negotiation. If a server ends after this many starts, the client terminates as it
    /// would without restarts. Default 5.
    pub max_starts: usize,
    /// The period within which starts count. Default 30 s.
    pub within: Duration,
}

impl Default for Restart {
    fn default() -> Self {
        Self {
            waits: vec![500, 1000, 2000, 4000].into_iter().map(Duration::from_millis).collect(),
            jitter: Duration::ZERO,
            max_starts: 5,
            within: Duration::from_secs(30),
        }
    }
}
