//! The state of an HTTP connection that the pool of a client reads.

use super::{Connection, ConnectionOutput, ConnectionRole, LATE_REPORT, ResponseProgress};
use core::net::IpAddr;

impl Connection {
    /// HTTP client: returns whether the connection can carry another request now.
    pub(in crate::wired) fn is_idle(&self) -> bool {
        let free = self.exchange.is_none() && self.unsent <= LATE_REPORT;
        self.role == ConnectionRole::HttpClient
            && self.open
            && free
            && !self.eof
            && self.gone.is_none()
            && self.ending.is_none()
    }

    /// HTTP client: returns whether a byte of the response to the latest request was received.
    pub(in crate::wired) fn is_answering(&self) -> bool {
        self.answer != ResponseProgress::Awaited
    }

    /// Returns whether [`poll_output`](Self::poll_output) is about to return the first bytes of the
    /// exchange.
    pub(in crate::wired) fn has_first_write(&self) -> bool {
        self.open && !self.handed && matches!(self.outputs.front(), Some(ConnectionOutput::Write(_)))
    }

    /// Client: returns the address of the server to which the connection leads. `None` behind a
    /// proxy, and if the driver does not report it.
    pub(in crate::wired) fn address(&self) -> Option<IpAddr> {
        self.peer.as_ref()?.address
    }

    /// HTTP client: returns whether an event stream is open on the connection.
    pub(in crate::wired) fn is_streaming(&self) -> bool {
        self.exchange.is_some() && self.answer == ResponseProgress::Stream
    }
}
