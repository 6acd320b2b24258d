//! What a client is told once, when it is made.

use super::Restart;
#[cfg(feature = "http")]
use super::url::{BadUrl, HttpTarget};
use crate::exchange::{Endpoint, Headers, Program};
use crate::hook::MessageHook;
use crate::limits::Limits;
use crate::model::lifecycle::{ClientCapabilities, Implementation};
use crate::rpc::Object;
use crate::version::{ProtocolVersion, Versions};
use alloc::string::String;
use core::time::Duration;

/// The configuration of a [`Client`](super::Client). Start from [`new`](Self::new) and set fields.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct ClientConfig {
    /// Where the server is.
    pub target: Target,
    /// Who we are. Default: this crate's name and version.
    pub info: Implementation,
    /// What we can do for the server. Default: nothing. An adapter declares what callbacks are registered for.
    pub capabilities: ClientCapabilities,
    /// Which eras may be tried. Default [`Policy::Auto`].
    pub policy: Policy,
    /// The revisions we support. Default: all.
    pub versions: Versions,
    /// What an earlier client found out about this server: it is tried first, and everything is probed anew if it proves wrong.
    pub verdict: Option<Verdict>,
    /// How long a call waits for its answer; `None` without limit. Default 30 s.
    pub timeout: Option<Duration>,
    /// Whether progress starts a call's clock anew. Default off.
    pub reset_on_progress: bool,
    /// The limit in total of calls for which `reset_on_progress` is on and that set no other. Default 10 min.
    pub max_total: Duration,
    /// Maximum time of a whole start, until negotiation has succeeded: starting the program or opening connections, the probe,
    /// `initialize`, all retries, and the second start after a probe. Time in which the application looks for credentials does not count.
    /// A start that takes longer ends the client with
    /// [`NegotiationCause::StartTimeout`](crate::error::NegotiationCause::StartTimeout); ending its program then takes at most
    /// [`Limits::end_time`]. The maximum also holds for each start of [`restart`](Self::restart) and for each new session. Default 60 s: a
    /// package runner may have to download the server first.
    pub connect_timeout: Duration,
    /// How long the probe `server/discover` may go unanswered on a duplex channel before the server counts as legacy. Default 10 s.
    pub probe_timeout: Duration,
    /// How long `initialize` may go unanswered, and the probe over HTTP, where silence tells nothing of the era. Default 30 s.
    pub initialize_timeout: Duration,
    /// How often the server is asked whether it is alive, with a ping that is no call; at least 10 ms. Counted from the moment that the
    /// two sides agree, then from the answer to the ping before it, or from when that was given up: there are never two. One that
    /// goes unanswered is [`Event::PingMissed`](super::Event::PingMissed), and ends nothing. Default `None`: never.
    pub ping: Option<Duration>,
    /// How long the answer to such a ping is waited for. Default 10 s.
    pub ping_timeout: Duration,
    /// Whether the client starts a program a second time, with `initialize` as the first message, after it exited during the probe or after
    /// the `initialize` that followed a refused probe. Some servers of older revisions exit on a request they do not know. The client does
    /// not do so after exit status 126 or 127, nor if [`policy`](Self::policy) or [`verdict`](Self::verdict) make the probe unnecessary. A
    /// connection to a Unix socket is opened again in the same way. `false` suits a server whose start has effects that must not happen
    /// twice. Default `true`.
    pub restart_after_probe: bool,
    /// Whether and how a server that ends by itself is started anew. Default `None`: the client ends with it.
    pub restart: Option<Restart>,
    /// Fields of our own that go with every HTTP request. [`header`](Self::header) adds one and checks it; what it would refuse is not
    /// sent. Default none.
    pub headers: Headers,
    /// Whether and when the listener is opened, over which an older HTTP server sends what belongs to no call: notifications, and the
    /// questions of some servers. Default [`ListenerStart::AfterInitialized`]; 2026-07-28 has none.
    pub listener: ListenerStart,
    /// How long the listener may take to open before it is given up. Calls that are made meanwhile wait, since servers ask questions of a
    /// call on it, but for 1 s at most. Default [`ListenerTime::Quarter`].
    pub listener_start: ListenerTime,
    /// How long a listener, or the subscription in its place, may be silent before it is opened anew; bytes that mean nothing count as a
    /// sign of life. `None`: for ever, so that a connection that is dead without a word is never found out. Default 5 min, several times
    /// what servers let pass between two signs of life.
    pub listener_idle: Option<Duration>,
    /// What the end of an open listener leads to. Default [`ListenerEnd::Resume`].
    pub listener_end: ListenerEnd,
    /// Whether and how often the client resumes a broken event stream. Default [`Resume::Progress`]. The timeout of a call also bounds the
    /// stream of its response.
    pub resume: Resume,
    /// What an event that is no message does to its stream. Default [`SseDecode::Skip`].
    pub sse_decode: SseDecode,
    /// Whether changes of the tools are wanted: [`Event::ToolsChanged`](super::Event::ToolsChanged). A server of 2026-07-28 is asked for
    /// them; up to 2025-11-25 a listener that was given up is tried again for their sake. Default off.
    pub watch_tools: bool,
    /// Whether challenges of the server are put to the application: [`Event::AuthNeeded`](super::Event::AuthNeeded). Without it a request
    /// that is answered 401 or 403 ends with that. Default off.
    pub authorize: bool,
    /// Whether every 403 is such a challenge, not only one that says `insufficient_scope`. Default off.
    pub retry_plain_403: bool,
    /// Which calls are made a second time after their answer was lost. Default [`Repeat::Safe`].
    pub repeat: Repeat,
    /// Whether the server is told of a cancelled call. Default yes, as the era demands; `LocalOnly` only stops waiting.
    pub cancel_signal: CancelSignal,
    /// How ids of requests are made. Default [`IdPolicy::Counter`].
    pub ids: IdPolicy,
    /// What a line that is no message does. Default [`Malformed::Skip`].
    pub malformed: Malformed,
    /// Whether a string id that is the decimal of a pending integer id matches it, if no pending string id does. Default yes.
    pub match_text_ids: bool,
    /// Whether a bad line that still shows the id of a pending call fails that call at once. Default yes.
    pub fail_on_defect: bool,
    /// The Unix time of [`Instant::ZERO`](crate::Instant::ZERO), where something needs the calendar. Default zero.
    pub origin_unix: Duration,
    /// Sees and may refuse every message. Default: none.
    pub on_message: Option<MessageHook>,
    /// The bounds.
    pub limits: Limits,
}

/// Where a server is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// At the other end of a duplex channel.
    Duplex(Endpoint),
    /// Behind a URL.
    #[cfg(feature = "http")]
    Http(HttpTarget),
}

/// Which eras a client tries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// Modern first, then legacy.
    #[default]
    Auto,
    /// Only `initialize`.
    Legacy,
    /// Only `server/discover`.
    Modern,
}

/// What was found out about a server; can be stored, and given to a later client of the same server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// The revision agreed on, which implies the era.
    pub version: ProtocolVersion,
}

/// Whether and when the listener is opened (2025-11-25 transports, listening for messages from the server).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ListenerStart {
    /// Once `notifications/initialized` was answered: servers refuse it before that.
    #[default]
    AfterInitialized,
    /// Once `initialize` was answered.
    BeforeInitialized,
    /// Never.
    Never,
}

/// How long the listener may take to open.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ListenerTime {
    /// A quarter of [`ClientConfig::timeout`], at least 1 ms, at most 1 s; 1 s where that has no limit.
    #[default]
    Quarter,
    /// So long.
    After(Duration),
    /// As long as it takes.
    Unlimited,
}

/// What the end of an open listener leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ListenerEnd {
    /// It is opened again, as [`ClientConfig::resume`] has it.
    #[default]
    Resume,
    /// [`Event::ListenerLost`](super::Event::ListenerLost), and it stays closed.
    Stop,
    /// It stays closed, without a word: for servers that drop it as a habit.
    Ignore,
}

/// How often a client resumes a broken event stream (2025-11-25 transports, resumability).
///
/// A *round* is one exchange of a stream; the first response is the first round. A round *delivers* if it brings a response, a notification,
/// or a request other than `ping`. It *advances* if it only brings another new event id; on a listener also if it brings anything at all, or
/// is open for 10 s. Else it is *empty*, as after a connection that failed or a status such as 503. An event whose id and data equal those of
/// one of the last 16 events of the stream that have an id is a repeat: it is dispatched, and is nothing new.
///
/// The wait before a round is never shorter than the server's `retry` (default 1 s) or `Retry-After` (in seconds; a date is ignored), each
/// taken as at least 10 ms and at most 5 min.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Resume {
    /// Two empty rounds in a row end the stream; any other round resets that count. The wait is `retry` after the first two rounds in a row
    /// that are shorter than 10 s, and doubles with each further one; a longer round resets the doubling. The ceiling is 1 s after a round
    /// that delivered, after any other 5 s on a call and 30 s on a listener or subscription, or `retry` if that is longer. To each wait
    /// at most a tenth is added at random.
    #[default]
    Progress,
    /// Maximum number of attempts for the response to a request, whatever they bring; on a listener or subscription, of attempts in a row
    /// that deliver nothing. The wait is the time that the server named, without doubling and without jitter.
    Strict(u32),
    /// No attempt: what breaks off is over.
    Never,
}

/// What an event that is no message does to its stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SseDecode {
    /// It is skipped, with a diagnostic; a call that gets no other answer ends with the reason.
    #[default]
    Skip,
    /// It ends the stream, and the call that the stream serves.
    Reject,
}

/// Which calls are made a second time, once, after their answer was lost: over HTTP with a connection or stream of 2026-07-28, or with a
/// session of an older revision. A stream of an older one is gone on with ([`Resume`]), or its call ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Repeat {
    /// Those that cannot have run, and those that may run twice: of a method that only reads, marked as
    /// [`repeatable`](crate::Call::repeatable), or of a tool that the server calls read-only or idempotent.
    #[default]
    Safe,
    /// All. They may run twice.
    Always,
    /// Only those that the server refused because of a session that has ended.
    Never,
}

/// What becomes known of a cancellation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CancelSignal {
    /// The server is told, by the means of the era.
    #[default]
    IoEvent,
    /// Nobody is told; a late answer is ignored.
    LocalOnly,
}

/// How ids are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IdPolicy {
    /// 1, 2, 3, …
    #[default]
    Counter,
    /// Strings: milliseconds since 1970, ten bits of node, twelve bits of sequence, as one decimal number.
    Snowflake {
        /// Which of several clients this is; ten bits count.
        node: u16,
    },
}

/// What bytes that are no message do to the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Malformed {
    /// They are skipped, with a diagnostic.
    #[default]
    Skip,
    /// They end the connection.
    Fatal,
}

impl ClientConfig {
    /// A client of the server at `target`.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            info: Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")),
            capabilities: ClientCapabilities::default(),
            policy: Policy::Auto,
            versions: Versions::all(),
            verdict: None,
            timeout: Some(Duration::from_secs(30)),
            reset_on_progress: false,
            max_total: Duration::from_secs(600),
            connect_timeout: Duration::from_secs(60),
            probe_timeout: Duration::from_secs(10),
            initialize_timeout: Duration::from_secs(30),
            ping: None,
            ping_timeout: Duration::from_secs(10),
            restart_after_probe: true,
            restart: None,
            headers: Headers::new(),
            listener: ListenerStart::AfterInitialized,
            listener_start: ListenerTime::Quarter,
            listener_idle: Some(Duration::from_secs(300)),
            listener_end: ListenerEnd::Resume,
            resume: Resume::Progress,
            sse_decode: SseDecode::Skip,
            watch_tools: false,
            authorize: false,
            retry_plain_403: false,
            repeat: Repeat::Safe,
            cancel_signal: CancelSignal::IoEvent,
            ids: IdPolicy::Counter,
            malformed: Malformed::Skip,
            match_text_ids: true,
            fail_on_defect: true,
            origin_unix: Duration::ZERO,
            on_message: None,
            limits: Limits::default(),
        }
    }

    /// A client of a program that it starts.
    pub fn program(program: Program) -> Self {
        Self::new(Target::Duplex(Endpoint::Program(program)))
    }

    /// A client of the server behind a Unix domain socket at this path: messages by line, as over standard input and output.
    pub fn unix(path: impl Into<String>) -> Self {
        Self::new(Target::Duplex(Endpoint::Unix(path.into())))
    }

    /// A client of whatever is at the other end of a channel that the driver holds.
    pub fn given() -> Self {
        Self::new(Target::Duplex(Endpoint::Given))
    }

    /// A client of the server at this URL.
    ///
    /// # Errors
    /// [`BadUrl`] if it is not an absolute `http:` or `https:` URL, or names a user.
    #[cfg(feature = "http")]
    pub fn url(url: &str) -> Result<Self, BadUrl> {
        HttpTarget::parse(url).map(Target::Http).map(Self::new)
    }

    /// Declares that the user can be asked, by form.
    #[must_use]
    pub fn with_elicitation(mut self) -> Self {
        self.capabilities.elicitation = Some(Object::new());
        self
    }
}
