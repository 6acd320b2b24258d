//! What a client is told once, when it is made.

use super::Restart;
#[cfg(feature = "http")]
use super::url::{BadUrl, HttpTarget};
use crate::exchange::{Endpoint, Program};
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
    /// How long the probe `server/discover` may go unanswered on a duplex channel before the server counts as legacy. Default 10 s.
    pub probe_timeout: Duration,
    /// How long `initialize` may go unanswered. Default 30 s.
    pub initialize_timeout: Duration,
    /// How often the server is asked whether it is alive, with a ping that is no call; at least 10 ms. Counted from the moment that the
    /// two sides agree, then from the answer to the ping before it, or from when that was given up: there are never two. One that
    /// goes unanswered is [`Event::PingMissed`](super::Event::PingMissed), and ends nothing. Default `None`: never.
    pub ping: Option<Duration>,
    /// How long the answer to such a ping is waited for. Default 10 s.
    pub ping_timeout: Duration,
    /// Whether and how a server that ends by itself is started anew. Default `None`: the client ends with it.
    pub restart: Option<Restart>,
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

/// What becomes known of a cancellation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CancelSignal {
    /// The server is told, by the means of the era.
    #[default]
    Wire,
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
            probe_timeout: Duration::from_secs(10),
            initialize_timeout: Duration::from_secs(30),
            ping: None,
            ping_timeout: Duration::from_secs(10),
            restart: None,
            cancel_signal: CancelSignal::Wire,
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
    /// [`BadUrl`] if it is not an absolute `http:` or `https:` URL.
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
