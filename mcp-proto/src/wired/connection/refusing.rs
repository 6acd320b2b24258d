//! The connection of a client that a server has no room for.

use super::{Connection, ConnectionRole, Due};
use crate::frame::Kind;
use crate::limits::FrameLimits;
use crate::time::Instant;
use alloc::sync::Arc;

impl Connection {
    /// Returns a connection that refuses its client. If it `responds`, it sends a whole response
    /// before the client has sent a request, which the client treats as the response to its first
    /// one. Then it ends its sending side and reads the bytes of the client, without parsing them:
    /// unread bytes would make the operating system reset the connection, and the client would lose
    /// the response.
    pub(in crate::wired) fn refusing(
        number: u64,
        kind: Kind,
        responds: bool,
        limits: Arc<FrameLimits>,
        now: Instant,
    ) -> Self {
        let linger_timeout = limits.linger_timeout;
        let mut connection = Self::new(number, kind, ConnectionRole::DuplexServer, limits, now);
        connection.open = true;
        if responds && connection.role == ConnectionRole::HttpServer {
            connection.respond_unavailable();
            connection.half_close();
            connection.arm(linger_timeout, Due::Linger);
        } else {
            connection.abort_channel();
        }
        connection
    }

    fn respond_unavailable(&mut self) {
        self.conn.encode(crate::server::unavailable("the server takes no more connections for now"));
        self.collect();
    }
}
