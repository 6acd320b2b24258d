//! What a listener does after an accept has failed.

use core::time::Duration;
use std::io::{self, ErrorKind};

/// Delay before the next accept if the system has no room for another connection.
const REST: Duration = Duration::from_millis(50);

/// What to do after an accept has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AcceptRetry {
    /// Accept again: the peer disconnected before it was accepted, or the call was interrupted.
    Again,
    /// Wait until the listener is readable: it does not block, and no peer waits.
    Readable,
    /// Accept again after this time. The system has no descriptor or memory left, and connections
    /// that end free some. Without the delay the listener would spin.
    After(Duration),
}

impl AcceptRetry {
    /// Returns what to do after this error.
    pub fn of(e: &io::Error) -> Self {
        match e.kind() {
            ErrorKind::Interrupted | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset => Self::Again,
            ErrorKind::WouldBlock => Self::Readable,
            _ => Self::After(REST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: B-189
    #[test]
    fn only_an_exhausted_system_delays_the_next_accept() {
        let after = |kind: ErrorKind| AcceptRetry::of(&kind.into());
        for kind in [ErrorKind::OutOfMemory, ErrorKind::Other, ErrorKind::InvalidInput] {
            assert_eq!(after(kind), AcceptRetry::After(REST), "{kind:?}");
        }
        for kind in [ErrorKind::ConnectionAborted, ErrorKind::Interrupted] {
            assert_eq!(after(kind), AcceptRetry::Again, "{kind:?}");
        }
        assert_eq!(after(ErrorKind::WouldBlock), AcceptRetry::Readable);
    }
}
