//! The configuration of a [`Server`](super::Server): plain data.

use super::hosts::Hosts;
use crate::hook::MessageHook;
use crate::limits::Limits;
use crate::model::lifecycle::{CacheHints, Implementation, ServerCapabilities};
use crate::version::Versions;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

/// The configuration of a [`Server`](super::Server); [`Router::config`](crate::Router::config)
/// makes one.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Who we are.
    pub info: Implementation,
    /// What we offer.
    pub capabilities: ServerCapabilities,
    /// How to use us, for a language model.
    pub instructions: Option<String>,
    /// The revisions we support. Default: all.
    pub versions: Versions,
    /// How long the answer to `server/discover` may be kept.
    pub discover_cache: CacheHints,
    /// How long a page of `tools/list` may be kept.
    pub list_cache: CacheHints,
    /// The key that seals `requestState`; `None`: one is derived from the seed. Servers that answer
    /// for one another need the same key and the same name in `info`: a state that was sealed under
    /// another name is refused.
    pub state_key: Option<[u8; 32]>,
    /// Whether answers (`inputResponses` of 2026-07-28) that come without a `requestState` reach
    /// the handler, as if it had asked for them. Default no: they are dropped, which is a
    /// diagnostic. This engine seals a state with all that it asks, so a client that answers
    /// questions brings one. Set it only where no handler takes an answer for a proof that its
    /// question was shown to somebody.
    pub unasked_answers: bool,
    /// Whether an id that an earlier, answered request of the same older connection or session used
    /// is accepted. Default yes. If not, the last 1024 ids of each are remembered.
    pub reuse_ids: bool,
    /// Which names an HTTP server answers to, whatever address it is bound to; a request for
    /// another is answered 403. Default: those of loopback, for clients at a loopback address
    /// alone. Behind a proxy the name is the one that the proxy writes in `Host`, which is not
    /// always the one that it was asked for; the `Origin` of a page stays what the browser wrote.
    pub hosts: Hosts,
    /// The addresses of proxies. Requests from one of these come from many clients: the address
    /// tells nothing of the client, and the limits for one client
    /// ([`client_shares`](crate::limits::ServerLimits::client_shares)) do not count them together.
    /// Default: none; an address of loopback is always taken for a proxy.
    pub proxies: Vec<IpAddr>,
    /// The path of the one HTTP endpoint, from its first `/` on, without a query; any other, also
    /// with a `/` more at its end, is answered
    /// 404. `None`: every path is the endpoint, for a server behind something that routes. Default
    ///      `/mcp`.
    pub path: Option<String>,
    /// Whether clients of the older revisions get sessions over HTTP.
    pub sessions: Sessions,
    /// Whether pages of other origins may use an HTTP server from within a browser (the CORS
    /// protocol of the WHATWG Fetch standard): those whose host is among `hosts`; with
    /// [`Hosts::Any`] those are all pages of the web. Default no: then no answer has a CORS field.
    pub cors: bool,
    /// Whether each HTTP request, and each connection of messages both ways that a listener
    /// accepted, is shown as [`Event::Admit`](super::Event::Admit) first, and served only once the
    /// application has admitted it. The body of the request, and everything on the connection, is
    /// not read before. A stream that the driver was given, such as standard input and output, is
    /// not shown ([`PeerKind`](crate::exchange::PeerKind)). With an adapter use its `on_admit`,
    /// which sets this; without it everything shown is refused. Default no.
    pub admit: bool,
    /// How long an event stream may be silent before a comment is written, so that nobody on the
    /// way takes it for dead. `None`: for ever. Default 15 s.
    pub keep_alive: Option<Duration>,
    /// The text of the comments on event streams: `heartbeat` is written as `: heartbeat`. It tells
    /// a client nothing; it is for people and proxies on the way. Each of its lines becomes a
    /// comment line. Default empty: a colon alone.
    pub keep_alive_text: String,
    /// How long a client waits before it comes back for the rest of a stream, as it is told where a
    /// stream begins (`retry`). Default 1 s.
    pub retry: Duration,
    /// How long a request of a session of 2025-11-25 may be without an answer before its answer
    /// becomes a stream, which the client can come back to if it is cut off. A request that is
    /// answered sooner is answered with plain JSON. There are clients that take an event of 1 MiB
    /// at most, and JSON without a limit. Default 500 ms.
    pub stream_after: Duration,
    /// Whether [`Event::Store`](super::Event::Store) tells of every event that is kept for a client
    /// to come back for. Default no.
    pub store: bool,
    /// The Unix time of [`Instant::ZERO`](crate::Instant::ZERO); sealed states carry the calendar
    /// time of their expiry.
    pub origin_unix: Duration,
    /// Sees and may refuse every message. Default: none.
    pub on_message: Option<MessageHook>,
    /// The bounds.
    pub limits: Limits,
}

impl ServerConfig {
    /// A server of this name that offers nothing yet, in every revision.
    pub fn new(info: Implementation) -> Self {
        Self {
            info,
            capabilities: ServerCapabilities::default(),
            instructions: None,
            versions: Versions::all(),
            discover_cache: CacheHints::default(),
            list_cache: CacheHints::default(),
            state_key: None,
            unasked_answers: false,
            reuse_ids: true,
            hosts: Hosts::Loopback,
            proxies: Vec::new(),
            path: Some("/mcp".into()),
            sessions: Sessions::Optional,
            cors: false,
            admit: false,
            keep_alive: Some(Duration::from_secs(15)),
            keep_alive_text: String::new(),
            retry: Duration::from_secs(1),
            stream_after: Duration::from_millis(500),
            store: false,
            origin_unix: Duration::ZERO,
            on_message: None,
            limits: Limits::default(),
        }
    }
}

impl core::fmt::Debug for ServerConfig {
    /// Says whether there is a key, and never shows it.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ServerConfig")
            .field("info", &self.info)
            .field("capabilities", &self.capabilities)
            .field("instructions", &self.instructions)
            .field("versions", &self.versions)
            .field("state_key", &self.state_key.map(|_| "…"))
            .field("unasked_answers", &self.unasked_answers)
            .field("reuse_ids", &self.reuse_ids)
            .field("hosts", &self.hosts)
            .field("proxies", &self.proxies)
            .field("path", &self.path)
            .field("sessions", &self.sessions)
            .field("cors", &self.cors)
            .field("admit", &self.admit)
            .field("keep_alive", &self.keep_alive)
            .field("keep_alive_text", &self.keep_alive_text)
            .field("retry", &self.retry)
            .field("stream_after", &self.stream_after)
            .field("store", &self.store)
            .field("origin_unix", &self.origin_unix)
            .field("on_message", &self.on_message)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Whether clients of the older revisions get sessions over HTTP (2025-11-25 transports, session
/// management). 2026-07-28 has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Sessions {
    /// `initialize` opens a session. A request that names its revision, but no session, is served
    /// by itself, without what needs one: questions to the client, streams that it can come back
    /// to, a stream of its own. One that names neither is answered 400.
    #[default]
    Optional,
    /// `initialize` opens a session, and a request without one is answered 400. So is a
    /// notification without one that names an older revision; one that names neither session nor
    /// revision could be of 2026-07-28, and is accepted (202).
    Required,
    /// There are none: every request is served by itself. One that does not name its revision is of
    /// 2025-03-26.
    Off,
}
