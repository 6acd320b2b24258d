//! State that the parts of a client share: the configuration, the time, the phase of the client,
//! the timers, the ids of requests, random numbers, and the queue of outputs.

use super::cache::ResultCache;
use super::handshake::Phase;
use super::ids::Ids;
use super::login::Login;
use super::{ClientConfig, Event, IdPolicy, Output, Policy, State, Target, Timer};
use crate::call::SkippedList;
use crate::error::{Diagnostic, DiagnosticKind, StreamPlace, excerpt};
use crate::event_queue::EventQueue;
use crate::exchange::{Dialect, WsDialect};
use crate::input::Watch;
use crate::model::lifecycle::{ServerInfo, meta};
use crate::model::logging::LogLevel;
use crate::model::tasks;
use crate::rpc::{Message, Object, Response};
use crate::seed::Seed;
use crate::time::{Instant, Timers};
use crate::version::{Era, ProtocolVersion};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::sync::Arc;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct ClientEnv {
    pub(super) config: Arc<ClientConfig>,
    /// The latest instant that the driver has passed to the engine.
    pub(super) now: Instant,
    /// The phase of the client. Only the negotiation and the end of the client change it.
    pub(super) phase: Phase,
    pub(super) timers: Timers<Timer>,
    pub(super) ids: Ids,
    pub(super) seed: Seed,
    pub(super) out: EventQueue<Output>,
    pub(super) login: Login,
    /// Absent unless it is configured.
    pub(super) cache: Option<Box<ResultCache>>,
    /// The changes that the application watches.
    pub(super) watch: Watch,
    /// The tasks that calls wait for and that the client watches.
    pub(super) watched_tasks: BTreeSet<String>,
    /// The level of log messages that the application requests.
    pub(super) log_level: Option<LogLevel>,
    /// The event stream whose event is handled now.
    pub(super) stream: Option<StreamPlace>,
    /// Whether this connection has had the diagnostic of [`note_nulls`](Self::note_nulls).
    pub(super) has_noted_nulls: bool,
    /// The latest [`modern_meta`](Self::modern_meta).
    modern_meta: Option<(ProtocolVersion, Object)>,
}

impl ClientEnv {
    pub(super) fn new(config: Arc<ClientConfig>, seed: [u8; 32], now: Instant) -> Self {
        let limits = &config.limits.client;
        let ids = match (&config.target, config.ws_dialect) {
            (Target::Ws(_), WsDialect::BareTool) => IdPolicy::Counter,
            _ => config.compat.ids,
        };
        let seed = Seed::new(seed);
        Self {
            login: Login::new(&config, &seed, now),
            cache: config.cache.map(|cache| Box::new(ResultCache::new(cache))),
            ids: Ids::new(ids, config.origin_unix, limits.max_retired),
            out: EventQueue::reporting_later(limits.max_queued_events, limits.max_queued_event_bytes),
            watch: Watch::new(),
            watched_tasks: BTreeSet::new(),
            log_level: config.log_level,
            stream: None,
            config,
            now,
            phase: Phase::new(),
            timers: Timers::default(),
            seed,
            has_noted_nulls: false,
            modern_meta: None,
        }
    }

    /// Emits an event.
    pub(super) fn event(&mut self, event: Event) {
        self.out.event(event);
    }

    /// Emits a diagnostic.
    pub(super) fn diagnose(&mut self, kind: DiagnosticKind, detail: impl Into<String>) {
        let diagnostic = Diagnostic::new(kind, excerpt(&detail.into()));
        self.out.diagnostic(Diagnostic { stream: self.stream.clone(), ..diagnostic });
    }

    /// Emits a diagnostic about a response with members that are `null` and count as absent, once a
    /// connection: such a server writes all responses like this.
    pub(super) fn note_nulls(&mut self, message: &Message) {
        if let Message::Response(Response { id, has_nulls: true, .. }) = message
            && !core::mem::replace(&mut self.has_noted_nulls, true)
        {
            self.diagnose(DiagnosticKind::Deviation, alloc::format!("response {id}: a member that is absent is null"));
        }
    }

    /// Emits diagnostics about the elements that cannot be decoded in a list of this name.
    pub(super) fn diagnose_skipped(&mut self, list: &str, skipped: &SkippedList) {
        for detail in skipped.details(list) {
            self.diagnose(DiagnosticKind::InvalidElement, detail);
        }
    }

    /// Returns the state of the client.
    pub(super) const fn state(&self) -> State {
        self.phase.state()
    }

    /// Returns the description that the server sent, once the negotiation succeeded.
    pub(super) const fn server_info(&self) -> Option<&ServerInfo> {
        self.phase.server_info()
    }

    /// Returns the negotiated revision.
    pub(super) fn version(&self) -> Option<ProtocolVersion> {
        self.server_info().map(|info| info.version)
    }

    /// Returns whether the negotiated revision is a legacy one.
    pub(super) fn is_legacy(&self) -> bool {
        self.version().is_some_and(|version| version.era() == Era::Legacy)
    }

    /// Returns whether client and server have the tasks of 2025-11-25 for calls of tools.
    pub(super) fn has_legacy_tasks(&self) -> bool {
        let is_declared = |info: &ServerInfo| info.version.rules().tasks && info.capabilities.has_task_calls();
        self.config.tasks && self.server_info().is_some_and(is_declared)
    }

    /// Returns the capabilities that the client declares when it initializes a session.
    pub(super) fn initialize_capabilities(&self, asked: ProtocolVersion) -> Object {
        let capabilities = self.config.capabilities.lower(asked);
        let declared = capabilities.write();
        if !self.config.answer_as_tasks || !asked.rules().tasks {
            return declared;
        }
        let requests = [
            ("sampling", "createMessage", capabilities.sampling.is_some()),
            ("elicitation", "create", capabilities.elicitation.is_some()),
        ];
        let mut of = Object::new();
        for (area, method, _) in requests.into_iter().filter(|(.., has_it)| *has_it) {
            of.set(area, Object::new().with(method, Object::new()));
        }
        let empty = Object::new();
        declared.with("tasks", Object::new().with("list", &empty).with("cancel", &empty).with("requests", of))
    }

    /// Returns the name of the server, if it says one.
    pub(super) fn server_name(&self) -> &str {
        let named = self.server_info().and_then(|info| info.implementation.as_ref());
        named.map(|named| named.name.as_str()).unwrap_or_default()
    }

    /// Returns whether the negotiated revision is a modern one.
    pub(super) fn is_modern(&self) -> bool {
        self.version().is_some_and(|version| version.era() == Era::Modern)
    }

    /// Returns whether the client uses one duplex exchange. Over HTTP it uses one exchange for each
    /// request.
    pub(super) fn is_duplex(&self) -> bool {
        matches!(self.config.target, Target::Duplex(_) | Target::Ws(_))
    }

    /// Returns whether the dialect of the client has no request but `tools/call`.
    pub(super) fn only_calls_tools(&self) -> bool {
        match self.config.target {
            Target::Duplex(_) | Target::NoServer => false,
            Target::Http(_) => self.config.dialect == Dialect::ToolStream,
            Target::Ws(_) => self.config.ws_dialect == WsDialect::BareTool,
        }
    }

    /// Returns the members of `_meta` that every request of a modern revision carries.
    pub(super) fn modern_meta(&mut self, version: ProtocolVersion) -> Object {
        match &self.modern_meta {
            Some((of, meta)) if *of == version => meta.clone(),
            _ => {
                let mut capabilities = self.config.capabilities.lower(version);
                if self.config.tasks {
                    // The identifier is valid.
                    drop(capabilities.extensions.declare(tasks::EXTENSION, Object::new()));
                }
                let meta = Object::new()
                    .with(meta::PROTOCOL_VERSION, version.as_str())
                    .with(meta::CLIENT_INFO, self.config.info.write(version))
                    .with(meta::CLIENT_CAPABILITIES, capabilities.write());
                self.modern_meta.insert((version, meta)).1.clone()
            }
        }
    }

    /// Returns the newest revision of an era that the policy and the configuration allow.
    pub(super) fn newest(&self, era: Era) -> Option<ProtocolVersion> {
        let allowed = match (self.config.policy, era) {
            // The link answers the probe. Nothing answers `initialize`.
            _ if self.only_calls_tools() => era == Era::Modern,
            (Policy::Auto, _) | (Policy::Legacy, Era::Legacy) | (Policy::Modern, Era::Modern) => true,
            (Policy::Legacy, Era::Modern) | (Policy::Modern, Era::Legacy) => false,
        };
        self.config.versions.newest(era).filter(|_| allowed)
    }

    /// Starts the timer of the acknowledgement. Without it, the server sends nothing for a
    /// subscription.
    pub(super) fn await_acknowledgement(&mut self) {
        let until = self.config.timeout.map(|limit| self.now + limit);
        self.timers.set(Timer::Subscription, until);
    }
}
