//! How a lane ends its channel, or goes on after an exchange: the steps down, and the timer for each. The ladder that ends a program is
//! MCP 2025-11-25, lifecycle, shutdown.

use super::{Due, Lane, LaneOutput, Side};
use crate::exchange::{ExchangeId, Shutdown};

impl Lane {
    /// The answer to an HTTP request is said. The channel goes on if the codec read the whole request and both sides want to.
    pub(super) fn answered(&mut self) {
        self.exchange = None;
        let distinct = self.sequence < ExchangeId::MAX_SEQUENCE;
        if !self.eof && distinct && self.conn.keep_alive() {
            self.arm(self.limits.idle_timeout, Due::Idle);
        } else {
            self.half_close();
        }
    }

    pub(super) fn half_close(&mut self) {
        self.ending = Some(Shutdown::WriteHalf);
        self.outputs.push_back(LaneOutput::Close(Shutdown::WriteHalf));
        if self.open {
            self.arm_end();
        }
    }

    /// A client's ladder runs from the moment it is told to end. A server gives its last answer the time it needs as long as some of it
    /// is accepted.
    pub(super) fn arm_end(&mut self) {
        match self.side {
            Side::DuplexClient { program: true } => self.arm(self.limits.exit_timeout, Due::Exit),
            Side::HttpServer | Side::DuplexServer if self.unsent > 0 => self.arm(self.limits.idle_timeout, Due::Linger),
            _ => self.arm(self.limits.linger_timeout, Due::Linger),
        }
    }

    pub(super) fn abort_channel(&mut self) {
        if self.gone.is_some() || self.ending == Some(Shutdown::Abort) {
            return;
        }
        self.ending = Some(Shutdown::Abort);
        self.timer = None;
        self.unsent = 0;
        self.taken = 0;
        self.outputs.clear();
        self.outputs.push_back(LaneOutput::Close(Shutdown::Abort));
    }
}
