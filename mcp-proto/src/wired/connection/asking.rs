//! What the pool of a client looks at in the connection of an HTTP connection.

use super::{Answer, Connection, ConnectionOutput, LATE_REPORT, Side};

impl Connection {
    /// HTTP client: whether it can carry another request now.
    pub(in crate::wired) fn is_idle(&self) -> bool {
        let free = self.exchange.is_none() && self.unsent <= LATE_REPORT;
        self.side == Side::HttpClient && self.open && free && !self.eof && self.gone.is_none() && self.ending.is_none()
    }

    /// HTTP client: whether a byte of the answer to the latest request came.
    pub(in crate::wired) fn is_answering(&self) -> bool {
        self.answer != Answer::Awaited
    }

    /// Whether [`poll_output`](Self::poll_output) is about to hand out the first bytes of the exchange.
    pub(in crate::wired) fn has_first_write(&self) -> bool {
        self.open && !self.handed && matches!(self.outputs.front(), Some(ConnectionOutput::Write(_)))
    }

    /// HTTP client: whether an event stream is open on it.
    pub(in crate::wired) fn is_streaming(&self) -> bool {
        self.exchange.is_some() && self.answer == Answer::Stream
    }
}
