//! What an engine with its channels holds and has done, as numbers: a snapshot for metrics. Numbers only; nothing here is kept or counted.

use crate::error::DiagnosticKind;
use alloc::collections::BTreeMap;
use core::ops::AddAssign;

/// What a client holds at the moment, and what it has done since it was made: from
/// [`WiredClient::stats`](crate::wired::WiredClient::stats). Nothing is taken away by asking. After the end of the client the
/// counters keep their last values, and what is held is zero.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ClientStats {
    /// Calls that have not ended.
    pub calls: usize,
    /// Calls that were accepted, those that have ended included. A refused call is none, and neither is a ping of
    /// [`ClientConfig::ping`](crate::ClientConfig::ping).
    pub calls_made: u64,
    /// Questions of the server that wait for the application's answer.
    pub questions: usize,
    /// HTTP requests that wait for a connection, because
    /// [`FrameLimits::max_connections_per_origin`](crate::limits::FrameLimits::max_connections_per_origin) are in use. The timeouts of their
    /// calls are running. If this is often above zero, raise that maximum.
    pub waiting: usize,
    /// Channels that are open, being opened or being closed.
    pub channels: usize,
    /// What went over all channels, those that are closed included.
    pub traffic: Traffic,
    /// Bytes that were handed to channels and are not reported written.
    pub unsent: usize,
    /// Outputs that wait: for the driver, and with an adapter events for the application.
    pub queued: usize,
    /// Notifications that were not delivered since the application was too slow: the sum of what [`Event::Lost`](crate::client::Event::Lost)
    /// tells, also of those that were not told yet.
    pub lost_notifications: u64,
    /// The same for diagnostics, and for other events that are counted like one.
    pub lost_diagnostics: u64,
    /// What the server did wrong and what of it was dropped, ignored or refused, by kind. Also counts what nobody listened to; not what
    /// the engine itself lost within one input.
    pub diagnostics: BTreeMap<DiagnosticKind, u64>,
    /// How often [`Event::Restarting`](crate::client::Event::Restarting) was told.
    pub restarts: u64,
    /// How often [`Event::Reconnecting`](crate::client::Event::Reconnecting) was told.
    pub reconnects: u64,
    /// How often [`Event::PingMissed`](crate::client::Event::PingMissed) was told.
    pub pings_missed: u64,
    /// Threads that outlived their channel: stuck in the operating system, or about to end. Filled in by a driver that has threads; else
    /// zero.
    pub detached_threads: usize,
}

/// What a server holds at the moment, and what it has done since it was made: from [`SharedServer::stats`](crate::wired::SharedServer::stats) or
/// [`WiredServer::stats`](crate::wired::WiredServer::stats). Nothing is taken away by asking.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ServerStats {
    /// Requests that the application was handed and has not answered.
    pub running: usize,
    /// Handlers whose response has no receiver. A handler counts from its cancellation (by the client, because the client has left, by a
    /// deadline, or with the server) until it returns; a driver that runs handlers adds these, and with mcp-blocking each holds a thread. A
    /// handler also counts while it runs for a client that was cut off and cannot come back for the response; the engine counts these, which
    /// are among `running` too. Handlers that look at [`Cx::is_cancelled`](crate::Cx::is_cancelled) keep this number small.
    pub abandoned_handlers: usize,
    /// Requests that the application was handed, once for each round of one that asks. Not those that the engine answers itself.
    pub requests: u64,
    /// Connections that are open or being closed.
    pub channels: usize,
    /// Sessions of clients of the older revisions over HTTP: see [`Server::sessions`](crate::server::Server::sessions).
    pub sessions: usize,
    /// Streams of clients of the older revisions over HTTP, open or kept: see [`Server::streams`](crate::server::Server::streams).
    pub streams: usize,
    /// What went over all connections, those that are closed included. Of a [`SharedServer`](crate::wired::SharedServer): what it was told of with
    /// [`count`](crate::wired::SharedServer::count).
    pub traffic: Traffic,
    /// Events, or other outputs, that wait.
    pub queued: usize,
    /// Notifications that were not delivered since the application was too slow.
    pub lost_notifications: u64,
    /// Diagnostics that were not delivered since the application was too slow.
    pub lost_diagnostics: u64,
    /// What clients did wrong and what of it was dropped, ignored or refused, by kind. Also counts what nobody listened to; not what the
    /// engine itself lost within one input.
    pub diagnostics: BTreeMap<DiagnosticKind, u64>,
}

/// What went over channels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Traffic {
    /// Bytes that were read, with their framing, also those that were not understood. Not what came after the end of a channel.
    pub bytes_in: u64,
    /// Bytes that were reported written, with their framing. Not those that were written when a channel was aborted.
    pub bytes_out: u64,
    /// Messages that were read: requests, notifications and responses, each element of a batch for itself.
    pub messages_in: u64,
    /// Messages that were handed over to be written, also if that never happened. On HTTP every body and every event that has data.
    pub messages_out: u64,
    /// What was read where a message should be, and is none.
    pub defects_in: u64,
}

impl Traffic {
    /// Whether nothing is counted.
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
