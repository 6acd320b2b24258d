//! Snapshots for metrics: what an engine and its connections hold, and what they have done. This
//! module only defines the numbers; it counts nothing.

use crate::error::DiagnosticKind;
use alloc::collections::BTreeMap;
use core::ops::AddAssign;

/// What a client holds now, and what it has done since it was created.
/// [`WiredClient::stats`](crate::wired::WiredClient::stats) returns it and resets nothing. After
/// the end of the client, the counters keep their last values and the gauges are zero.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ClientStats {
    /// Calls that have not ended.
    pub calls: usize,
    /// Accepted calls, including those that have ended. Neither a refused call nor a ping of
    /// [`ClientConfig::ping`](crate::ClientConfig::ping) counts.
    pub calls_made: u64,
    /// Requests of the server that wait for the application's answer.
    pub questions: usize,
    /// HTTP requests that wait for a connection, because
    /// [`max_connections_per_origin`](crate::limits::FrameLimits::max_connections_per_origin)
    /// are in use. The timeouts of their calls are running. If this is often above zero, raise that
    /// maximum.
    pub waiting: usize,
    /// Connections that are open, opening or closing.
    pub channels: usize,
    /// Traffic of all connections, including closed ones.
    pub traffic: Traffic,
    /// Bytes that the driver was given to write and has not reported written.
    pub unsent: usize,
    /// Outputs that wait for the driver and, with an adapter, events that wait for the application.
    pub queued: usize,
    /// Notifications that were dropped because the application was too slow: the sum of
    /// [`Event::Lost`](crate::client::Event::Lost), including losses not emitted yet.
    pub lost_notifications: u64,
    /// The same for diagnostics, and for events that count as diagnostics.
    pub lost_diagnostics: u64,
    /// Diagnostics about the server, by kind. Includes those that the application did not receive,
    /// except those that the engine dropped within one input.
    pub diagnostics: BTreeMap<DiagnosticKind, u64>,
    /// Emitted [`Event::Reconnecting`](crate::client::Event::Reconnecting) events.
    pub reconnects: u64,
    /// Emitted [`Event::PingMissed`](crate::client::Event::PingMissed) events.
    pub pings_missed: u64,
    /// Threads that outlived their connection: blocked in the operating system, or about to end. A
    /// driver with threads sets it; otherwise it is zero.
    pub detached_threads: usize,
}

/// What a server holds now, and what it has done since it was created.
/// [`SharedServer::stats`](crate::wired::SharedServer::stats) and
/// [`WiredServer::stats`](crate::wired::WiredServer::stats) return it and reset nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ServerStats {
    /// Requests that the application received and has not answered.
    pub running: usize,
    /// Handlers whose response has no receiver. A handler counts from its cancellation (by the
    /// client, by its disconnect, at a deadline or at a shutdown) until it returns. A driver that
    /// runs handlers adds these; with mcp-blocking each holds a thread, whose place another
    /// handler may use (`abandoned_threads` of its options).
    /// A handler also counts while it runs for a disconnected client that cannot resume; the
    /// engine counts these, and they are part of `running` too. Handlers that check
    /// [`Cx::is_cancelled`](crate::Cx::is_cancelled) keep this number small.
    pub abandoned_handlers: usize,
    /// Handlers that wait for a thread. They are part of `running`. A driver with a bounded number
    /// of threads sets it; otherwise it is zero.
    pub waiting_handlers: usize,
    /// Requests that the application received, once for each round. Requests that the engine
    /// answers itself do not count.
    pub requests: u64,
    /// Connections that are open or closing.
    pub channels: usize,
    /// Sessions of legacy HTTP clients: see [`Server::sessions`](crate::server::Server::sessions).
    pub sessions: usize,
    /// Open or kept streams of legacy HTTP clients: see
    /// [`Server::streams`](crate::server::Server::streams).
    pub streams: usize,
    /// Traffic of all connections, including closed ones. A
    /// [`SharedServer`](crate::wired::SharedServer) knows what was reported to it with
    /// [`exchange`](crate::wired::SharedServer::exchange).
    pub traffic: Traffic,
    /// Outputs that wait for the driver.
    pub queued: usize,
    /// Notifications that were dropped because the application was too slow.
    pub lost_notifications: u64,
    /// Diagnostics that were dropped because the application was too slow.
    pub lost_diagnostics: u64,
    /// Diagnostics about clients, by kind. Includes those that the application did not receive,
    /// except those that the engine dropped within one input.
    pub diagnostics: BTreeMap<DiagnosticKind, u64>,
}

/// Bytes and messages on connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Traffic {
    /// Bytes read, including framing and bytes that could not be parsed. Bytes after the end of a
    /// connection do not count.
    pub bytes_in: u64,
    /// Bytes reported written, including framing. Bytes written while a connection was aborted do
    /// not count.
    pub bytes_out: u64,
    /// Messages read: requests, notifications and responses. Each element of a batch counts.
    pub messages_in: u64,
    /// Messages that the driver was given to write, even if it never wrote them. On HTTP, each body
    /// and each event with data counts.
    pub messages_out: u64,
    /// Invalid messages read.
    pub defects_in: u64,
}

impl Traffic {
    /// Returns whether all counts are zero.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, more: Self) {
        self.bytes_in += more.bytes_in;
        self.bytes_out += more.bytes_out;
        self.messages_in += more.messages_in;
        self.messages_out += more.messages_out;
        self.defects_in += more.defects_in;
    }
}
