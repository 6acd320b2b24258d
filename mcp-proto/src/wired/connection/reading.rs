//! When the driver of a connection reads, and when it waits: no connection holds more than its
//! limits.

use super::{Connection, ConnectionRole};
use crate::exchange::Shutdown;

impl Connection {
    /// Returns whether to read from now on, if that has changed.
    pub(in crate::wired) fn poll_read(&mut self) -> Option<bool> {
        let reads = self.wants_read();
        (self.can_read() && core::mem::replace(&mut self.reads, reads) != reads).then_some(reads)
    }

    /// Returns whether the driver should read. False before the connection is open, and after its
    /// end. False also while a connection of newline-delimited messages waits for its admission.
    ///
    /// False while the connection pauses between two turns, and at two limits. The events that
    /// were not taken, the requests that wait behind an unfinished response, or a body that is held
    /// back reach [`FrameLimits::max_read_ahead`](crate::limits::FrameLimits::max_read_ahead)
    /// bytes. Or they reach 64 KiB while all connections together hold
    /// [`ServerLimits::max_held`](crate::limits::ServerLimits::max_held).
    pub(super) fn wants_read(&self) -> bool {
        let held = if self.holds() { self.conn.buffered() } else { 0 };
        let bound = self.limits.max_read_ahead.max(1);
        let reads = self.can_read() && !(self.role == ConnectionRole::DuplexServer && self.conn.is_held());
        reads && !self.pauses() && !self.waits_for_room() && self.backlog < bound && held < bound
    }

    /// Sets whether the body of the next response is no message: see
    /// [`Start::Http`](crate::exchange::Start::Http).
    pub(in crate::wired) fn reads_raw(&mut self, raw: bool) {
        self.conn.reads_raw(raw);
    }

    fn can_read(&self) -> bool {
        self.open && !self.eof && self.gone.is_none() && self.ending != Some(Shutdown::Abort)
    }
}
