//! The end of a connection: its steps, and the timer for each. The steps that end a program are MCP
//! 2025-11-25, lifecycle, shutdown.

use super::{Connection, ConnectionOutput, ConnectionRole, Due};
use crate::error::{Diagnostic, DiagnosticKind};
use crate::exchange::{Closed, Shutdown};

impl Connection {
    /// The response to our request is complete. The report that the request was written may come
    /// after it. The connection treats a few unreported bytes as written, since a second connection
    /// for every such race would be worse. Many unreported bytes mean that the server responded
    /// early. Until they are written, the client does not use the connection again.
    pub(super) fn complete(&mut self) {
        self.exchange = None;
        let late = self.conn.buffered();
        if late > 0 {
            self.report_late();
        }
        if late > 0 || self.eof || self.gone.is_some() || !self.conn.keep_alive() {
            self.abort_channel();
        } else if self.unsent > 0 {
            self.arm(self.limits.linger_timeout, Due::Linger);
        } else {
            self.arm_idle();
        }
    }

    pub(super) fn half_close(&mut self) {
        self.ending = Some(Shutdown::WriteHalf);
        self.outputs.push_back(ConnectionOutput::Close(Shutdown::WriteHalf));
        if self.open {
            self.arm_end();
        }
    }

    /// The steps of a client run from the start of the end. A server waits for its last response as
    /// long as the peer accepts bytes of it.
    pub(super) fn arm_end(&mut self) {
        match self.role {
            ConnectionRole::DuplexClient { program: true } => self.arm(self.limits.exit_timeout, Due::Exit),
            ConnectionRole::HttpServer if self.unsent > 0 => self.arm_paced(0, self.limits.write_stall, Due::Write),
            ConnectionRole::DuplexServer if self.unsent > 0 => self.arm(self.limits.idle_timeout, Due::Linger),
            ConnectionRole::WsClient | ConnectionRole::WsServer => self.arm(self.limits.linger_timeout, Due::Linger),
            _ => self.arm(self.limits.linger_timeout, Due::Linger),
        }
    }

    pub(super) fn abort_channel(&mut self) {
        if self.gone.is_some() || self.ending == Some(Shutdown::Abort) {
            return;
        }
        self.unwritten(&Closed::Aborted);
        self.ending = Some(Shutdown::Abort);
        self.timer = None;
        self.unsent = 0;
        self.taken = 0;
        self.outputs.clear();
        self.outputs.push_back(ConnectionOutput::Close(Shutdown::Abort));
    }

    pub(super) fn late_bytes(&mut self) {
        if self.ending.is_none() {
            self.report_late();
            self.abort_channel();
        }
    }

    /// Contains no number of bytes: that depends on how the bytes were split.
    pub(super) fn report_late(&mut self) {
        let detail = "bytes came after the response";
        self.diagnostics.push_back(Diagnostic::new(DiagnosticKind::LateBytes, detail));
    }
}
