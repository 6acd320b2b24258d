//! The configuration of a [`Server`](super::Server): plain data.

use super::compat::ServerCompat;
use super::hosts::Hosts;
use super::state_keys::StateKeys;
use super::store::{Durability, Serves};
use crate::auth::Resource;
use crate::exchange::{Dialect, WsDialect};
use crate::hook::MessageHook;
use crate::limits::Limits;
use crate::model::capabilities::ServerCapabilities;
use crate::model::lifecycle::{CacheHints, Implementation};
use crate::schema::Validator;
use crate::telemetry::Telemetry;
use crate::version::Versions;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

/// The configuration of a [`Server`](super::Server). [`Router::config`](crate::Router::config)
/// makes one.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerConfig {
    /// The name and version of the server.
    pub info: Implementation,
    /// The capabilities of the server.
    pub capabilities: ServerCapabilities,
    /// How to use the server, for a language model.
    pub instructions: Option<String>,
    /// The supported revisions. Default: all.
    pub versions: Versions,
    /// How long a client may cache the result of `server/discover`.
    pub discover_cache: CacheHints,
    /// How long a client may cache a page of `tools/list`.
    pub list_cache: CacheHints,
    /// How long a client may cache a page of `resources/list`.
    pub resources_cache: CacheHints,
    /// How long a client may cache a page of `resources/templates/list`.
    pub templates_cache: CacheHints,
    /// How long a client may cache the result of `resources/read`, if its handler did not specify
    /// it.
    pub read_cache: CacheHints,
    /// How long a client may cache a page of `prompts/list`.
    pub prompts_cache: CacheHints,
    /// The keys that seal `requestState`, and that a driver derives the nonces of proofs of
    /// possession from. `None`: both depend on a seed of this process. Servers that answer for one
    /// another need the same keys and the same name in `info`: a state that was sealed under
    /// another name is refused.
    pub state_keys: Option<StateKeys>,
    /// The hosts that an HTTP server answers to, regardless of the address it is bound to. A
    /// request for another host gets 403. Default: the loopback hosts, only for clients at a
    /// loopback address. Behind a proxy the host is the one that the proxy writes in `Host`, which
    /// is not always the one that the client named. The `Origin` of a page stays as the browser
    /// wrote it.
    pub hosts: Hosts,
    /// The addresses of proxies. Requests from one of these come from many clients, so the limits
    /// for one client ([`client_shares`](crate::limits::ServerLimits::client_shares)) do not count
    /// them together. Default: none. A loopback address always counts as a proxy.
    pub proxies: Vec<IpAddr>,
    /// The path of the HTTP endpoint, starting with its first `/`, without a query. Another path
    /// gets 404, even one that only has an additional `/` at its end, except those of
    /// [`sse`](Self::sse) and of the document of [`resource`](Self::resource). `None`: every other
    /// path is the endpoint, for a server behind a router of HTTP requests. Default `/mcp`.
    pub path: Option<String>,
    /// Whether and where an HTTP server also serves HTTP+SSE, the transport of 2024-11-05, for
    /// clients that have no other. Specifications from 2025-03-26 on replace it, and new clients do
    /// not need it. Hosts, origins, admission, CORS and limits apply as at [`path`](Self::path).
    /// Default `None`: not.
    pub sse: Option<SsePaths>,
    /// Whether an HTTP server accepts WebSockets at [`path`](Self::path): one for each client, over
    /// which messages travel in both directions as over standard input and output. It needs the
    /// feature `ws`. Hosts, origins and admission apply to the handshake. Default no.
    pub web_socket: bool,
    /// Whether an HTTP server also serves clients that only call tools, and negotiate nothing. A
    /// POST of `tools/call` is from such a client if it names neither a session nor a revision. The
    /// newest legacy revision among [`versions`](Self::versions) applies to it, so one is needed.
    /// The end of its connection cancels the call. Default [`Dialect::Mcp`]: not.
    pub dialect: Dialect,
    /// Whether the server also serves such clients over WebSockets: those that offer no
    /// subprotocol. The newest legacy revision among [`versions`](Self::versions) applies, so one
    /// is needed. Default [`WsDialect::JsonRpc`]: not.
    pub ws_dialect: WsDialect,
    /// Whether legacy clients get sessions over HTTP.
    pub sessions: Sessions,
    /// Whether pages of other origins may use an HTTP server from within a browser (the CORS
    /// protocol of the WHATWG Fetch standard). These are the pages whose host is among `hosts`.
    /// With [`Hosts::Any`] these are all pages. Default no: then no response has a CORS field.
    pub cors: bool,
    /// Whether the server compresses JSON of more than 1 KiB for an HTTP client that asks for gzip,
    /// and accepts compressed requests, with the feature `gzip`; without it this has no effect. It
    /// never compresses an event stream. Turn it off if a response contains both a secret and text
    /// that an attacker chooses: its length depends on what they have in common. Default on.
    pub compression: bool,
    /// Whether the application admits each HTTP request and each duplex connection that a listener
    /// accepted: the engine emits [`Event::Admit`](super::Event::Admit), and reads neither the body
    /// of the request nor the connection before the decision. Not emitted for a stream that the
    /// driver was given, such as standard input and output
    /// ([`PeerKind`](crate::exchange::PeerKind)). With an adapter use its `on_admit`, which sets
    /// this. Default no.
    pub admit: bool,
    /// The server as OAuth 2.1 sees it. The engine serves its metadata document to everyone who
    /// names an allowed host, at the path of its URL (RFC 9728 section 3.1), and writes the
    /// responses to requests that are [denied](crate::input::Admission::Denied). Whether a token is
    /// valid is decided by the application, or by a [`Verifier`](crate::auth::Verifier), so set
    /// [`admit`](Self::admit) too. Handlers do not see the credentials of requests. Default `None`.
    pub resource: Option<Arc<Resource>>,
    /// Whether the head of a request keeps its credentials when a handler sees it
    /// ([`Context::http`](super::Context::http)), though `resource` is set: the fields
    /// `Authorization`, `DPoP`, `Proxy-Authorization` and `Cookie`. A handler must not pass the
    /// token of a client on to another server. Default no.
    pub keeps_credentials: bool,
    /// Whether the application decides on each resource that a client wants to watch. The engine
    /// then emits its request (`resources/subscribe`, or `subscriptions/listen` with URIs) as
    /// [`Event::Request`](super::Event::Request). The result of the first is an empty object. That
    /// of the second is an object with the accepted filter as `notifications`: the engine opens the
    /// subscription with it. An error refuses the request. A router with
    /// [`on_watch`](crate::Router::on_watch) sets this and answers them. Default no: the engine
    /// accepts every resource, if [`capabilities`](Self::capabilities) declare that clients can
    /// watch them.
    pub admit_watch: bool,
    /// Whether the engine has tasks: the extension `io.modelcontextprotocol/tasks` of 2026-07-28,
    /// and the tasks of 2025-11-25. It declares them, keeps them, and answers the requests about
    /// them. A router with a tool that supports them ([`Tool::task`](crate::Tool::task)) sets this.
    /// Default no.
    pub tasks: bool,
    /// The time without a message after which the server writes a comment on an event stream. It
    /// keeps proxies from closing the stream as dead. `None`: never. Default 15 s.
    pub keep_alive: Option<Duration>,
    /// The text of the comments on event streams, for people and proxies: `heartbeat` is written as
    /// `: heartbeat`. Each of its lines becomes a comment line. Default empty: only a colon.
    pub keep_alive_text: String,
    /// The `retry` of event streams: how long a client waits before it resumes one. Default 1 s.
    pub retry: Duration,
    /// The time after which the response to a request of a 2025-11-25 session becomes an event
    /// stream, which the client can resume. A request that is answered sooner gets plain JSON. Some
    /// clients limit an event to 1 MiB, and JSON not at all. Default 500 ms.
    pub stream_after: Duration,
    /// Whether the engine emits [`Event::Kept`](super::Event::Kept) for every event that is kept
    /// for resumption. Default no.
    pub report_kept: bool,
    /// What a [store](super::store) serves that this server shares with others. The engine then
    /// emits [`Event::Store`](super::Event::Store). It has effect only with
    /// [`state_keys`](Self::state_keys), which all nodes share. With an adapter use its `store`,
    /// which sets this. Default `None`: there is no store.
    pub store: Option<Serves>,
    /// When an event of a stream is sent whose session a store serves. Default
    /// [`Durability::Stored`].
    pub durability: Durability,
    /// The Unix time of [`Instant::ZERO`](crate::Instant::ZERO). Sealed states carry the calendar
    /// time of their expiry.
    pub origin_unix: Duration,
    /// The hook that sees every message and may block it. Default: none.
    pub on_message: Option<MessageHook>,
    /// The telemetry of requests, which the driver calls: the engine does not. Default: none.
    pub observe: Option<Telemetry>,
    /// The validator of a [`Router`](crate::Router), which compiles the schemas of its tools. Set
    /// it with [`Router::configure`](crate::Router::configure): the router of the engine, not
    /// the engine, validates. Arguments that do not match the input schema of their tool do not
    /// reach its handler: from 2025-11-25 on the result has `isError`, before that the answer
    /// is the error `-32602`. Structured content that does not match the output schema is sent
    /// as a result with `isError` and without the structured content, with the diagnostic
    /// `schema-mismatch`, since the tool has run. Not validated are the results of handlers
    /// with `isError`, and those in a revision that does not have the output schema. Default
    /// `None`.
    ///
    /// ```
    /// use mcp_proto::Router;
    ///
    /// let router = Router::new("calc", "1.0");
    /// # #[cfg(feature = "schema")]
    /// let router =
    ///     router.configure(|config| config.validate = Some(mcp_proto::schema::validator()));
    /// # drop(router);
    /// ```
    pub validate: Option<Validator>,
    /// Settings for clients that deviate from the specification or from most others.
    pub compat: ServerCompat,
    /// The limits.
    pub limits: Limits,
}

impl ServerConfig {
    /// Creates the configuration of a server of this name that offers nothing yet, in every
    /// revision.
    pub fn new(info: Implementation) -> Self {
        Self {
            info,
            capabilities: ServerCapabilities::default(),
            instructions: None,
            versions: Versions::all(),
            discover_cache: CacheHints::default(),
            list_cache: CacheHints::default(),
            resources_cache: CacheHints::default(),
            templates_cache: CacheHints::default(),
            read_cache: CacheHints::default(),
            prompts_cache: CacheHints::default(),
            state_keys: None,
            hosts: Hosts::Loopback,
            proxies: Vec::new(),
            path: Some("/mcp".into()),
            sse: None,
            web_socket: false,
            dialect: Dialect::Mcp,
            ws_dialect: WsDialect::JsonRpc,
            sessions: Sessions::Optional,
            cors: false,
            compression: true,
            admit: false,
            resource: None,
            keeps_credentials: false,
            admit_watch: false,
            tasks: false,
            keep_alive: Some(Duration::from_secs(15)),
            keep_alive_text: String::new(),
            retry: Duration::from_secs(1),
            stream_after: Duration::from_millis(500),
            report_kept: false,
            store: None,
            durability: Durability::Stored,
            origin_unix: Duration::ZERO,
            on_message: None,
            observe: None,
            validate: None,
            compat: ServerCompat::default(),
            limits: Limits::default(),
        }
    }
}

impl ServerConfig {
    /// Returns whether the engine uses a store.
    pub(super) const fn has_store(&self) -> bool {
        self.store.is_some() && self.state_keys.is_some()
    }

    /// Returns whether servers share tasks.
    pub(super) fn shares_tasks(&self) -> bool {
        self.has_store() && self.store.is_some_and(Serves::tasks)
    }

    /// Returns whether servers share the sessions of legacy clients.
    pub(super) fn shares_sessions(&self) -> bool {
        self.has_store() && self.store.is_some_and(Serves::sessions)
    }
}

impl core::fmt::Debug for ServerConfig {
    /// Shows whether there are keys, and never a key.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ServerConfig")
            .field("info", &self.info)
            .field("capabilities", &self.capabilities)
            .field("instructions", &self.instructions)
            .field("versions", &self.versions)
            .field("state_keys", &self.state_keys)
            .field("hosts", &self.hosts)
            .field("proxies", &self.proxies)
            .field("path", &self.path)
            .field("sse", &self.sse)
            .field("web_socket", &self.web_socket)
            .field("dialect", &self.dialect)
            .field("ws_dialect", &self.ws_dialect)
            .field("sessions", &self.sessions)
            .field("cors", &self.cors)
            .field("compression", &self.compression)
            .field("admit", &self.admit)
            .field("resource", &self.resource)
            .field("keeps_credentials", &self.keeps_credentials)
            .field("admit_watch", &self.admit_watch)
            .field("tasks", &self.tasks)
            .field("keep_alive", &self.keep_alive)
            .field("keep_alive_text", &self.keep_alive_text)
            .field("retry", &self.retry)
            .field("stream_after", &self.stream_after)
            .field("report_kept", &self.report_kept)
            .field("store", &self.store)
            .field("durability", &self.durability)
            .field("origin_unix", &self.origin_unix)
            .field("on_message", &self.on_message)
            .field("observe", &self.observe)
            .field("validate", &self.validate)
            .field("compat", &self.compat)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The paths of HTTP+SSE (2024-11-05 transports, HTTP with SSE). Each starts with its first `/`,
/// has no query, and differs from the other and from [`ServerConfig::path`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SsePaths {
    /// The path at which a client opens its stream. Default `/sse`.
    pub stream: String,
    /// The path at which a client posts its messages. Default `/messages`.
    pub messages: String,
    /// The reference that the `endpoint` event names, before the query that the server adds.
    /// `None`: [`messages`](Self::messages). Set it if the clients see another path, for example
    /// behind a proxy that removes a prefix. Never an absolute URL: a server does not know the name
    /// by which its clients reach it. Default `None`.
    pub reference: Option<String>,
}

impl Default for SsePaths {
    fn default() -> Self {
        Self { stream: "/sse".into(), messages: "/messages".into(), reference: None }
    }
}

/// Whether legacy clients get sessions over HTTP (2025-11-25 transports, session management).
/// 2026-07-28 has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Sessions {
    /// `initialize` opens a session. A request that names its revision, but no session, is served
    /// without one: the engine sends it no requests, and its streams cannot be resumed. A request
    /// that names neither gets 400.
    #[default]
    Optional,
    /// `initialize` opens a session, and a request without one gets 400. So does a notification
    /// without one that names a legacy revision. One that names neither session nor revision may be
    /// of 2026-07-28, and gets 202.
    Required,
    /// No sessions: every request is served without one. A request that does not name its revision
    /// is of 2025-03-26.
    Off,
}
