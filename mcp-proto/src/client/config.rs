//! The configuration of a client, fixed at its creation.

use super::cache::Cache;
use super::compat::ClientCompat;
use super::proxy::Proxies;
use super::validate::ResultValidation;
use crate::auth::AuthConfig;
use crate::exchange::{Dialect, Endpoint, Headers, Program, WsDialect};
use crate::fetch::{BadUrl, HttpTarget, Redirects, WsTarget};
use crate::hook::MessageHook;
use crate::input::Watch;
use crate::limits::Limits;
use crate::model::capabilities::{ClientCapabilities, ElicitationCapability};
use crate::model::lifecycle::Implementation;
use crate::model::logging::LogLevel;
use crate::telemetry::Telemetry;
use crate::version::{ProtocolVersion, Versions};
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::sync::Arc;
use core::time::Duration;

/// The configuration of a [`Client`](super::Client). Start from [`new`](Self::new) and set fields.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ClientConfig {
    /// The address of the server.
    pub target: Target,
    /// Name and version of this client. Default: this crate's name and version.
    pub info: Implementation,
    /// The capabilities that the client declares. Default: none. An adapter declares those for
    /// which callbacks are registered.
    #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
    pub capabilities: ClientCapabilities,
    /// The eras that the client may try. Default [`Policy::Auto`].
    pub policy: Policy,
    /// The HTTP transports that the client may try. Default [`HttpMode::Auto`]. Without effect on a
    /// duplex connection.
    pub http_mode: HttpMode,
    /// How the client speaks over HTTP. With [`Dialect::ToolStream`] the client is ready at once,
    /// sends nothing before a call, and can only call tools. [`policy`](Self::policy),
    /// [`http_mode`](Self::http_mode), [`verdict`](Self::verdict) and [`ping`](Self::ping) have no
    /// effect then, and [`versions`](Self::versions) must contain 2026-07-28. Default
    /// [`Dialect::Mcp`].
    pub dialect: Dialect,
    /// How the client speaks over a WebSocket. With [`WsDialect::BareTool`] the client is ready
    /// when the connection is open, and can only call tools. The same settings have no effect as
    /// with [`dialect`](Self::dialect), nor has [`ClientCompat::ids`]: the ids are numbers that
    /// count up. Default [`WsDialect::JsonRpc`].
    pub ws_dialect: WsDialect,
    /// The revisions that the client supports. Default: all.
    #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
    pub versions: Versions,
    /// The result of an earlier negotiation with this server. The client tries it first, and
    /// negotiates from the beginning if it proves wrong.
    pub verdict: Option<Verdict>,
    /// Whether calls of tools take a task as the result: the extension
    /// `io.modelcontextprotocol/tasks` of 2026-07-28, which the client then declares, and the tasks
    /// of 2025-11-25. Such a call stays one call: the client asks for the state of the task, puts
    /// its questions, and ends with its outcome. Its timeout limits each request about the task,
    /// and [`max_total`](crate::Call::max_total) or the time of the task the whole. The end of a
    /// call before that cancels the task. Default no: a task is then no valid result.
    pub tasks: bool,
    /// Whether a server of 2025-11-25 may make a task of a question: it gets a task at once, and
    /// fetches the answer of the application later. At most 64 at a time. Default no: the answer is
    /// the response.
    pub answer_as_tasks: bool,
    /// Maximum time from a call to its response. `None`: no limit. Default 30 s.
    pub timeout: Option<Duration>,
    /// Whether progress restarts the timeout of a call. Default off.
    pub reset_on_progress: bool,
    /// Maximum total time of a call for which `reset_on_progress` is on, unless the call sets its
    /// own. Default 10 min.
    pub max_total: Duration,
    /// Maximum time of a whole start, until negotiation has succeeded. It includes starting the
    /// program or opening connections, the probe, `initialize`, all retries, and the second start
    /// after a probe. Time in which the application obtains credentials does not count. A start
    /// that takes longer ends the client with
    /// [`NegotiationCause::StartTimeout`](crate::error::NegotiationCause::StartTimeout). Its
    /// program then has at most [`Limits::end_time`] to end, which an adapter does not wait for.
    /// The maximum also holds for each new session. Default 60 s: a package runner may have to
    /// download the server first.
    pub connect_timeout: Duration,
    /// Maximum time for the response to the probe `server/discover`, before the client treats the
    /// server as legacy. It is at most half of what is left of
    /// [`connect_timeout`](Self::connect_timeout), so that there is time for `initialize`. Without
    /// effect if nothing can follow the probe, as under [`Policy::Modern`]. A late response changes
    /// nothing. Default 10 s.
    pub probe_timeout: Duration,
    /// Maximum time for the response to `initialize`. Default 30 s.
    pub initialize_timeout: Duration,
    /// The interval of pings that check whether the server is alive, at least 10 ms. A ping is not
    /// a call. The interval starts when negotiation succeeds, then at the response to the previous
    /// ping or at its timeout. There are never two open pings. A ping without a response causes
    /// [`Event::PingMissed`](super::Event::PingMissed), and ends nothing. Default `None`: never.
    pub ping: Option<Duration>,
    /// Maximum time for the response to such a ping. Default 10 s.
    pub ping_timeout: Duration,
    /// Whether the client starts a program a second time, with `initialize` as the first message,
    /// after the program exited during the probe or after the `initialize` that followed a refused
    /// probe, or responded to that with an error. Some servers of older revisions exit on a request
    /// that they do not know, and some take it for the beginning of the session. The client does
    /// not do so after exit status 126 or 127, nor after an error that names the revisions of the
    /// server (`-32602` or `-32022`), nor if [`policy`](Self::policy) or [`verdict`](Self::verdict)
    /// make the probe unnecessary. The first program has ended before. A connection to a Unix
    /// socket or a WebSocket is opened again in the same way. `false` suits a server whose start
    /// has effects that must not happen twice. Default `true`.
    pub restart_after_probe: bool,
    /// The application's header fields of every HTTP request. [`header`](Self::header) adds one and
    /// checks it. The client does not send a field that this check would refuse. Default none.
    pub headers: Headers,
    /// The redirects that the client follows over HTTP, and for the handshake of a WebSocket. The
    /// URL at which a POST or a handshake succeeds after redirects replaces that of the
    /// [`target`](Self::target) from then on. If nothing can be reached there any more, the client
    /// returns to the target. Default up to five within the origin.
    pub redirects: Redirects,
    /// The forward proxies. Default none. An adapter reads those of its environment, unless its
    /// option `environment_proxies` is off, or this field names one.
    pub proxies: Proxies,
    /// Whether the client asks for compressed HTTP responses, with the feature `gzip`; without it
    /// this has no effect. Off, a compressed response fails its exchange. Default on. A
    /// [redacted recording](crate::record) turns it off, since it cannot mask what a compressed
    /// body contains.
    pub compression: bool,
    /// Maximum silence of a listener, or of the subscription in its place, before the client opens
    /// it again. Bytes without a meaning also count as a sign of life. `None`: no limit, so the
    /// client never detects a connection that is dead without a close. Default 5 min, several times
    /// the interval at which servers send signs of life.
    pub listener_idle: Option<Duration>,
    /// Whether and how often the client resumes a broken event stream. Default
    /// [`Resume::Progress`]. The timeout of a call also bounds the stream of its response.
    pub resume: Resume,
    /// The changes that the application watches from the start:
    /// [`Event::Changed`](super::Event::Changed). [`Client::watch`](super::ClientCommands::watch)
    /// replaces them. URIs beyond [`max_watched`](crate::limits::ClientLimits::max_watched) are
    /// dropped, with a diagnostic. Default none.
    pub watch: Watch,
    /// The types of events that the application handles itself, beside those of the protocol
    /// ([`Event::Control`](super::Event::Control)). The type `message` is none, and `endpoint` is
    /// none on the stream of HTTP+SSE. An event of another type is ignored, with a diagnostic. On a
    /// duplex connection these are the values of the member `type` of JSON objects that are no
    /// JSON-RPC messages, of up to 8 KiB. Default none.
    pub control: BTreeSet<String>,
    /// The level of log messages that the application requests from the start.
    /// [`Client::log_level`](super::ClientCommands::log_level) replaces it. Log messages are
    /// deprecated since 2026-07-28. Default none.
    pub log_level: Option<LogLevel>,
    /// Whether the application answers challenges of the server:
    /// [`Event::AuthNeeded`](super::Event::AuthNeeded). Otherwise a response 401 or 403 is the end
    /// of its request. Default off.
    pub authorize: bool,
    /// How the client obtains and keeps credentials by itself, over HTTP and for the handshake of a
    /// WebSocket: [`Event::Auth`](super::Event::Auth). Without effect on other connections.
    /// [`authorize`](Self::authorize) has no effect beside it. With a field `Authorization` or
    /// `DPoP` in [`headers`](Self::headers) beside it the client sends nothing, and ends at once
    /// with [`AuthError::OwnCredentials`](crate::error::AuthError::OwnCredentials). Default `None`.
    pub auth: Option<Arc<AuthConfig>>,
    /// The calls that the client sends a second time after their response was lost. Default
    /// [`Repeat::Safe`].
    pub repeat: Repeat,
    /// The cache of results. Default `None`: every call asks the server.
    pub cache: Option<Cache>,
    /// The Unix time of [`Instant::ZERO`](crate::Instant::ZERO), for purposes that need the
    /// calendar. Default zero.
    pub origin_unix: Duration,
    /// The hook that sees every message and may refuse it. Default: none.
    #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
    pub on_message: Option<MessageHook>,
    /// The telemetry of calls, which the driver calls: the engine does not. Default: none.
    #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
    pub observe: Option<Telemetry>,
    /// The validation of the results of tools. Default `None`: the client delivers them as they
    /// are.
    ///
    /// ```
    /// use mcp_proto::client::{ClientConfig, ResultValidation};
    ///
    /// let mut config = ClientConfig::given();
    /// # #[cfg(feature = "schema")] {
    /// config.validate = Some(ResultValidation::reject(mcp_proto::schema::validator()));
    /// # }
    /// # drop(config);
    /// ```
    pub validate: Option<ResultValidation>,
    /// Settings for servers that deviate from the specification or from most others.
    pub compat: ClientCompat,
    /// The limits.
    pub limits: Limits,
}

/// The address of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Target {
    /// At the other end of a duplex connection.
    Duplex(Endpoint),
    /// Behind a URL.
    Http(#[cfg_attr(feature = "record", serde(with = "crate::record::value"))] HttpTarget),
    /// Behind the URL of a WebSocket.
    Ws(#[cfg_attr(feature = "record", serde(with = "crate::record::value"))] WsTarget),
    /// None: see [`ClientConfig::fetcher`].
    NoServer,
}

impl Target {
    /// Returns the host and the port of its URL, if it has one.
    pub(super) fn authority(&self) -> Option<String> {
        match self {
            Self::Http(target) => Some(target.authority()),
            Self::Ws(target) => Some(target.authority()),
            Self::Duplex(_) | Self::NoServer => None,
        }
    }
}

/// The eras that a client tries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum Policy {
    /// Modern first, then legacy.
    #[default]
    Auto,
    /// Only `initialize`.
    Legacy,
    /// Only `server/discover`.
    Modern,
}

/// The HTTP transports that a client tries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum HttpMode {
    /// Streamable HTTP first. If the server refuses it with status 400, 404 or 405 in every era
    /// that the policy allows, HTTP+SSE of 2024-11-05.
    #[default]
    Auto,
    /// Only Streamable HTTP.
    Streamable,
    /// Only HTTP+SSE of 2024-11-05.
    Sse,
}

/// A transport of MCP over HTTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum HttpTransport {
    /// Streamable HTTP: each message is a POST of its own, and its response is JSON or an event
    /// stream.
    #[default]
    Streamable,
    /// HTTP+SSE of 2024-11-05: one event stream for all messages of the server, and a POST for each
    /// message of the client.
    Sse,
}

/// The result of a negotiation with a server. An application can store it, and give it to a later
/// client of the same server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct Verdict {
    /// The negotiated revision, which implies the era.
    pub version: ProtocolVersion,
    /// The transport over HTTP. Without meaning on a duplex connection.
    pub transport: HttpTransport,
}

impl Verdict {
    /// Returns the verdict for a server of this revision, on a duplex connection or over Streamable
    /// HTTP.
    pub const fn new(version: ProtocolVersion) -> Self {
        Self { version, transport: HttpTransport::Streamable }
    }
}

/// How often a client resumes a broken event stream (2025-11-25 transports, resumability).
///
/// A *round* is one exchange of a stream. The first response is the first round. A round *delivers*
/// if it brings a response, a notification, or a request other than `ping`. It *advances* if it
/// only brings another new event id. A round of a listener also advances if it brings any byte, or
/// is open for 10 s. Otherwise it is *empty*, as after a connection that failed or a status such as
/// 503. An event is a repeat if its id and data equal those of one of the last 16 events of the
/// stream that have an id. The client dispatches a repeat, but it does not count as new.
///
/// The wait before a round is never shorter than the server's `retry` (default 1 s) or
/// `Retry-After` (in seconds; a date is ignored), each limited to the range from 10 ms to 5 min.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum Resume {
    /// Two empty rounds in a row end the stream. Any other round resets that count. The wait is
    /// `retry` after the first two rounds in a row that are shorter than 10 s, and doubles with
    /// each further one. A longer round resets the doubling. The ceiling is 1 s after a round that
    /// delivered. After any other round it is 5 s on a call and 30 s on a listener or subscription.
    /// If `retry` is longer, it is the ceiling. The client adds at most a tenth at random to each
    /// wait.
    #[default]
    Progress,
    /// Maximum number of attempts for the response to a request, whatever they bring. On a listener
    /// or subscription: maximum number of attempts in a row that deliver nothing. The wait is the
    /// time that the server named, without doubling and without jitter.
    Strict(u32),
    /// No attempt: a broken stream has ended.
    Never,
}

/// The calls that the client sends a second time, once, after their response was lost. Over HTTP it
/// was lost with a connection or stream of 2026-07-28, or with a session of an older revision. The
/// client resumes a stream of an older revision ([`Resume`]), or its call ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum Repeat {
    /// Calls that cannot have run, and calls that may run twice. The latter are calls of a method
    /// that only reads, calls marked as [`repeatable`](crate::Call::repeatable), and calls of a
    /// tool that the server declares read-only or idempotent.
    #[default]
    Safe,
    /// All calls. They may run twice.
    Always,
    /// Only calls that the server refused because of a session that has ended.
    Never,
}

impl ClientConfig {
    /// Returns the configuration of a client of the server at `target`.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            info: Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")),
            capabilities: ClientCapabilities::default(),
            policy: Policy::Auto,
            http_mode: HttpMode::Auto,
            dialect: Dialect::Mcp,
            ws_dialect: WsDialect::JsonRpc,
            versions: Versions::all(),
            verdict: None,
            tasks: false,
            answer_as_tasks: false,
            timeout: Some(Duration::from_secs(30)),
            reset_on_progress: false,
            max_total: Duration::from_secs(600),
            connect_timeout: Duration::from_secs(60),
            probe_timeout: Duration::from_secs(10),
            initialize_timeout: Duration::from_secs(30),
            ping: None,
            ping_timeout: Duration::from_secs(10),
            restart_after_probe: true,
            headers: Headers::new(),
            redirects: Redirects::default(),
            proxies: Proxies::none(),
            compression: true,
            listener_idle: Some(Duration::from_secs(300)),
            resume: Resume::Progress,
            watch: Watch::new(),
            control: BTreeSet::new(),
            log_level: None,
            authorize: false,
            auth: None,
            repeat: Repeat::Safe,
            cache: None,
            origin_unix: Duration::ZERO,
            on_message: None,
            observe: None,
            validate: None,
            compat: ClientCompat::default(),
            limits: Limits::default(),
        }
    }

    /// Returns the configuration of a client of a program that it starts.
    pub fn program(program: Program) -> Self {
        Self::new(Target::Duplex(Endpoint::Program(program)))
    }

    /// Returns the configuration of a client of the server behind a Unix domain socket at this
    /// path. Each message is a line, as over standard input and output.
    pub fn unix(path: impl Into<String>) -> Self {
        Self::new(Target::Duplex(Endpoint::Unix(path.into())))
    }

    /// Returns the configuration of a client over a connection that the driver already has.
    pub fn given() -> Self {
        Self::new(Target::Duplex(Endpoint::Given))
    }

    /// Returns the configuration of a client without a server, which only makes
    /// [fetches](crate::ClientCommands::fetch). It opens connections for them, negotiates nothing,
    /// and refuses calls and notifications with [`Refusal::NoServer`](crate::Refusal::NoServer).
    pub fn fetcher() -> Self {
        Self::new(Target::NoServer)
    }

    /// Returns the configuration of a client of the server at this URL. A `ws:` URL needs the
    /// feature `ws`.
    ///
    /// # Errors
    /// [`BadUrl`] if it is not an absolute `http:`, `https:`, `ws:` or `wss:` URL, or names a user.
    pub fn url(url: &str) -> Result<Self, BadUrl> {
        let http = HttpTarget::parse(url).map(Target::Http);
        http.or_else(|_| WsTarget::parse(url).map(Target::Ws)).map(Self::new)
    }

    /// Declares that the server can request input of the user, by form.
    #[must_use]
    pub fn with_elicitation(mut self) -> Self {
        self.capabilities.elicitation = Some(ElicitationCapability::default());
        self
    }
}
