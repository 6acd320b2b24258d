//! The options of a server: its threads, and its callbacks.

use crate::events::Told;
use mcp_proto::exchange::{Peer, RequestHead};
use mcp_proto::input::Admission;
use mcp_proto::server::Event;
use mcp_proto::{Denied, MessageHook, WireMessage};
use std::fmt;
use std::sync::Arc;

/// The options of a server, in addition to [`Router::configure`](mcp_proto::Router::configure).
#[must_use]
pub struct Serving {
    pub(crate) threads: usize,
    pub(crate) event: Option<Arc<Told<Event>>>,
    pub(crate) message: Option<MessageHook>,
    pub(crate) admit: Option<Arc<Admit>>,
}

/// Decides on an HTTP request or a connection.
pub(crate) type Admit = dyn Fn(Option<&RequestHead>, &Peer) -> Admission + Send + Sync;

impl Default for Serving {
    fn default() -> Self {
        Self { threads: 256, event: None, message: None, admit: None }
    }
}

impl Serving {
    /// Creates options with the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of handlers that run at once. One client gets at most its share of
    /// them ([`client_shares`](mcp_proto::limits::ServerLimits::client_shares)), a quarter by
    /// default. Further requests wait, up to the limits of the engine. Threads are started on
    /// demand, and end after 10 s without work. Default 256.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets the callback for events, which runs for one at a time, in order, on its own thread:
    /// notifications of clients, diagnostics, opened and ended sessions, events to store for
    /// resumption ([`ServerConfig::store`](mcp_proto::ServerConfig::store)), and the end of the
    /// server. Without a callback all of them are dropped. A panic in it is caught.
    ///
    /// An event to store may be on the wire before the callback receives it. If the callback is too
    /// slow, at most [`max_queued_events`](mcp_proto::limits::ServerLimits::max_queued_events)
    /// notifications and diagnostics wait for it; further ones are counted in an [`Event::Lost`].
    /// Other events are never lost: while too many wait, the server reads nothing from clients.
    pub fn on_event(mut self, told: impl Fn(Event) + Send + Sync + 'static) -> Self {
        self.event = Some(Arc::new(told));
        self
    }

    /// Sets the message hook, which sees every message in both directions before it is handled or
    /// written, and may refuse it. See [`MessageHook`]. It runs on the threads of the connections,
    /// several at once, and delays its connection.
    pub fn on_message(mut self, ask: impl Fn(&WireMessage<'_>) -> Result<(), Denied> + Send + Sync + 'static) -> Self {
        self.message = Some(MessageHook::new(ask));
        self
    }

    /// Sets the callback that admits requests and connections. It runs for every HTTP request, with
    /// its head and before its body is read, and for every connection to a Unix socket, without a
    /// head and before anything is read. It returns the principal of the request or the connection,
    /// or the reason for a refusal. A refused connection is closed. The [`Peer`] has what is known
    /// of the client: its address, which behind a proxy is that of the proxy, or the
    /// [`Credentials`](crate::Credentials) of the process on a Unix socket. For
    /// [`Server::serve_lines`](crate::Server::serve_lines), the callback runs if the peer was
    /// created with [`Peer::unix`] or [`Peer::tcp`]. It does not run for standard input and output.
    ///
    /// It may block for up to [`admit_timeout`](mcp_proto::limits::ServerLimits::admit_timeout). It
    /// has its own threads, up to as many as handlers have. A panic in it refuses. A request with a
    /// forbidden `Host` or path is refused without it, and the preflight request of a browser
    /// ([`ServerConfig::cors`](mcp_proto::ServerConfig::cors)) is answered without it.
    ///
    /// ```
    /// use mcp_blocking::{Admission, Serving};
    ///
    /// let by_token = Serving::new().on_admit(|head, _peer| {
    ///     match head.and_then(|head| head.headers.get("Authorization")) {
    ///         Some("Bearer good") => Admission::Accept(Some("ada".into())),
    ///         _ => Admission::Unauthorized("Bearer".into()),
    ///     }
    /// });
    /// let by_user = Serving::new().on_admit(|_head, peer| match peer.credentials {
    ///     Some(process) if process.uid == 1000 => Admission::Accept(Some("ada".into())),
    ///     _ => Admission::Forbidden(None),
    /// });
    /// # drop((by_token, by_user));
    /// ```
    pub fn on_admit(
        mut self,
        admit: impl Fn(Option<&RequestHead>, &Peer) -> Admission + Send + Sync + 'static,
    ) -> Self {
        self.admit = Some(Arc::new(admit));
        self
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving").field("threads", &self.threads).finish_non_exhaustive()
    }
}
