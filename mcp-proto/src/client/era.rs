//! The negotiation of the revision: `server/discover` first, then `initialize` (requirements of
//! 2026-07-28 versioning and stdio backward compatibility, and the lifecycle of the older
//! revisions). This module contains all transitions of [`Phase`], except those to the end, in
//! `mod.rs` and `ended.rs`.
//!
//! ```text
//!   (begin)
//!                 ┌── response names a mutual modern revision ──────────────────▶ Ready
//!   Probing ──────┤   response or -32022 names only mutual legacy ones ┐
//!      ▲          └── any other error, silence, or the program exited ─┤  (policy Auto)
//!      │ verdict was legacy, and server refused initialize;            │
//!      │ or -32022 to initialize names a mutual modern one; once       ▼
//!      └────────────────────────────────────────────────────── Initializing ────▶ Ready
//!                                                                 │    ▲
//!                     over HTTP, 400, 404 or 405 in every era:    ▼    │ once
//!                                              the stream of HTTP+SSE is opened
//! ```

use super::call_table::CallStage;
use super::ids::Purpose;
use super::link::{HttpLink, Link};
use super::phase::{After, HandshakeEvent, Phase};
use super::{Client, Event, HttpMode, HttpTransport, State, Target, Termination, Timer, Verdict};
use crate::error::HttpError;
use crate::error::{CallError, DiagnosticKind, NegotiationCause, NegotiationError, Stage};
use crate::exchange::{Closed, Endpoint, ExitStatus, Sent};
use crate::input::CallId;
use crate::model::capabilities::{self, ServerCapabilities};
use crate::model::lifecycle::{self, Implementation, ServerInfo, meta};
use crate::rpc::{DecodeError, ErrorObject, Object, Payload, RawJson, code};
use crate::version::{Era, ProtocolVersion};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

impl Client {
    /// Begins the negotiation. The policy, the revisions and the verdict determine the first
    /// request.
    pub(super) fn begin(&mut self) {
        self.starting.begin(&mut self.cx.env);
        let modern = self.cx.env.newest(Era::Modern);
        let legacy = self.cx.env.newest(Era::Legacy);
        let verdict = self.learnt.or(self.cx.env.config.verdict);
        let verdict = verdict.filter(|verdict| self.cx.env.config.versions.contains(verdict.version));
        let known = verdict.map(|verdict| verdict.version);
        let is_sse = !self.cx.env.is_duplex()
            && !self.cx.env.only_calls_tools()
            && match self.cx.env.config.http_mode {
                HttpMode::Auto => verdict.is_some_and(|verdict| verdict.transport == HttpTransport::Sse),
                HttpMode::Streamable => false,
                HttpMode::Sse => true,
            };
        if self.cx.env.state() == State::Lapsed
            && let Some(version) = known
        {
            if is_sse {
                self.open_sse();
            }
            return self.initialize(version, After::Session, false);
        }
        if is_sse && let Some(newest) = legacy {
            self.open_sse();
            return match known.filter(|version| version.era() == Era::Legacy) {
                Some(version) => self.initialize(version, After::SseVerdict, false),
                None => self.initialize(newest, After::Else, false),
            };
        }
        let known_legacy = known.filter(|version| version.era() == Era::Legacy && legacy.is_some());
        match (known_legacy, modern, legacy) {
            (Some(version), _, _) => {
                self.open_duplex();
                self.initialize(version, After::Verdict, false);
            }
            (None, Some(_), _) | (None, None, Some(_)) => {
                self.open_duplex();
                self.begin_unknown(modern, legacy);
            }
            (None, None, None) => {
                let asked = ProtocolVersion::ALL[0];
                self.cx.env.phase = Phase::Initializing { asked, after: After::Else, corrected: false };
                self.fail(Stage::Connect, NegotiationCause::NoMutualVersion(Vec::new()));
            }
        }
    }

    /// Sends the first request of a negotiation without a verdict.
    fn begin_unknown(&mut self, modern: Option<ProtocolVersion>, legacy: Option<ProtocolVersion>) {
        match (modern, legacy) {
            (Some(version), _) => self.probe(version, false, false),
            (None, Some(version)) => self.initialize(version, After::Else, false),
            (None, None) => {}
        }
    }

    /// Opens the stream of HTTP+SSE. The next message waits for its `endpoint` event.
    fn open_sse(&mut self) {
        self.starting.try_sse();
        if let Some(http) = self.cx.link.http_mut() {
            http.open_sse(&mut self.cx.env);
        }
    }

    fn open_duplex(&mut self) {
        if self.cx.env.is_duplex() {
            self.cx.link.open(&mut self.cx.env);
        }
    }

    fn probe(&mut self, asked: ProtocolVersion, last_resort: bool, corrected: bool) {
        self.cx.env.phase = Phase::Probing { asked, last_resort, corrected };
        self.arm_handshake();
        self.cx.send_request(Purpose::Discover, "server/discover", Object::new(), asked);
    }

    fn initialize(&mut self, asked: ProtocolVersion, after: After, corrected: bool) {
        self.cx.env.phase = Phase::Initializing { asked, after, corrected };
        self.arm_handshake();
        let params = Object::new()
            .with("protocolVersion", asked.as_str())
            .with("capabilities", self.cx.env.config.capabilities.lower(asked).write())
            .with("clientInfo", self.cx.env.config.info.write(asked));
        self.cx.send_request(Purpose::Initialize, "initialize", params, asked);
    }

    /// Starts or restarts the clock of the probe or the handshake.
    fn arm_handshake(&mut self) {
        self.starting.resume(&mut self.cx.env);
        let limit = match self.cx.env.state() {
            State::Probing => self.probe_limit(),
            _ => Some(self.cx.env.config.initialize_timeout),
        };
        self.starting.limit(&mut self.cx.env, limit);
    }

    /// Returns the time limit of a probe, which leaves as much time for `initialize`. `None` if
    /// nothing can follow the probe.
    fn probe_limit(&self) -> Option<Duration> {
        self.cx.env.newest(Era::Legacy).filter(|_| !self.is_last_resort())?;
        let left = self.cx.env.timers.get(Timer::Start).map(|due| due.since(self.cx.env.now) / 2);
        Some(left.map_or(self.cx.env.config.probe_timeout, |left| left.min(self.cx.env.config.probe_timeout)))
    }

    /// Begins the pending step again, on a connection with other credentials.
    fn on_reopen(&mut self) {
        self.retire_handshake();
        self.cx.link.open(&mut self.cx.env);
        match self.cx.env.phase {
            Phase::Probing { asked, last_resort, corrected } => self.probe(asked, last_resort, corrected),
            Phase::Initializing { asked, after, corrected } => self.initialize(asked, after, corrected),
            _ => {}
        }
    }

    /// Handles an event of the handshake. The client ignores it if no handshake is pending.
    pub(super) fn on_handshake(&mut self, event: HandshakeEvent) {
        match event {
            HandshakeEvent::Discovered(answer) => self.on_discovered(answer),
            HandshakeEvent::Initialized(answer) => self.on_initialized(answer),
            HandshakeEvent::Idless(error) => self.on_idless_error(error),
            HandshakeEvent::Invalid(why) => self.on_handshake_defect(why),
            HandshakeEvent::Denied(reason) => self.on_handshake_denied(reason),
            HandshakeEvent::Refused { tells_of_era, error } => self.on_handshake_refused(tells_of_era, error),
            HandshakeEvent::Closed(sent, why) => self.on_handshake_closed(sent == Sent::Maybe, why),
            HandshakeEvent::NoEndpoint(cause) => self.on_no_endpoint(*cause),
            HandshakeEvent::Timeout => self.on_handshake_timeout(),
            HandshakeEvent::StartTimeout => self.on_start_timeout(),
            HandshakeEvent::Resumed => self.arm_handshake(),
            HandshakeEvent::Reopen => self.on_reopen(),
        }
    }

    /// Handles the response to `server/discover`.
    fn on_discovered(&mut self, answer: Payload) {
        let Phase::Probing { asked, .. } = self.cx.env.phase else { return };
        match answer {
            Payload::Result(result) => match read_discover(&result, asked) {
                Ok((theirs, info)) => {
                    let meta = Object::read(&result).and_then(|result| result.object(meta::META)).unwrap_or_default();
                    self.note_deviation(&result, meta.get(meta::SERVER_INFO));
                    self.choose(&theirs, Some(info));
                }
                Err(e) => self.fall_back(NegotiationCause::Decode(e)),
            },
            Payload::Error(error) => match supported(&error) {
                Some(theirs) if error.code == code::UNSUPPORTED_VERSION => self.choose(&theirs, None),
                _ if matches!(error.code, code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY) => {
                    // Only a modern server sends this error. The client neither falls back nor
                    // corrects its request.
                    self.fail(Stage::Discover, NegotiationCause::Rpc(error));
                }
                _ => self.fall_back(NegotiationCause::Rpc(error)),
            },
        }
    }

    /// Chooses a revision from the list of a modern server. `info` is set if the server accepted
    /// the revision of the probe.
    fn choose(&mut self, theirs: &[String], info: Option<ServerInfo>) {
        let modern = self
            .cx
            .env
            .config
            .versions
            .mutual(Era::Modern, theirs)
            .filter(|_| self.cx.env.newest(Era::Modern).is_some());
        let legacy = self
            .cx
            .env
            .config
            .versions
            .mutual(Era::Legacy, theirs)
            .filter(|_| self.cx.env.newest(Era::Legacy).is_some());
        match (modern, info, legacy) {
            (Some(version), Some(info), _) => self.ready(ServerInfo { version, ..info }),
            // The server refused the revision of the probe and names one that the client has. The
            // client probes with it once, even if it is the same revision: the refusal then had
            // another reason.
            (Some(version), None, _) if !self.is_corrected() => self.probe(version, self.is_last_resort(), true),
            (_, _, Some(version)) => self.initialize(version, After::Else, true),
            (_, _, None) => self.fail(Stage::Discover, NegotiationCause::NoMutualVersion(theirs.to_vec())),
        }
    }

    /// Falls back to `initialize` if that is allowed, since the server does not appear to be
    /// modern.
    fn fall_back(&mut self, why: NegotiationCause) {
        match self.cx.env.newest(Era::Legacy) {
            Some(version) if !self.is_last_resort() => {
                self.cx.env.diagnose(DiagnosticKind::FellBackToLegacy, format!("{}: {why}", Stage::Discover));
                if !self.cx.env.is_duplex() {
                    self.starting.note_refusal(Stage::Discover, &why);
                }
                self.initialize(version, After::Probe, false);
            }
            _ => self.fall_back_to_sse(Stage::Discover, why),
        }
    }

    /// Tries HTTP+SSE, the last transport, if the server may offer it: it refused Streamable HTTP
    /// with status 400, 404 or 405 and without an error of 2026-07-28 (2026-07-28 streamable-http,
    /// HTTP+SSE transport). Otherwise the negotiation has failed.
    fn fall_back_to_sse(&mut self, stage: Stage, why: NegotiationCause) {
        let is_new_session = matches!(self.cx.env.phase, Phase::Initializing { after: After::Session, .. });
        let may = self.cx.env.config.http_mode == HttpMode::Auto
            && self.cx.link.http().is_some_and(HttpLink::suggests_sse)
            && !is_new_session;
        match self.cx.env.newest(Era::Legacy) {
            Some(version) if may && self.starting.try_sse() => {
                self.cx.env.diagnose(DiagnosticKind::FellBackToSse, format!("{stage}: {why}"));
                self.starting.note_refusal(stage, &why);
                self.open_sse();
                self.initialize(version, After::Else, false);
            }
            _ => self.fail(stage, why),
        }
    }

    /// Handles the failure of the stream of HTTP+SSE before its `endpoint` event.
    fn on_no_endpoint(&mut self, why: NegotiationCause) {
        self.retire_handshake();
        let is_verdict = matches!(self.cx.env.phase, Phase::Initializing { after: After::SseVerdict, .. });
        match why {
            // The verdict was for another server, unless this one cannot be reached at all.
            NegotiationCause::Http(_) | NegotiationCause::NoEndpoint(_)
                if is_verdict && self.cx.env.config.http_mode == HttpMode::Auto =>
            {
                self.starting.note_refusal(Stage::Endpoint, &why);
                if let Some(http) = self.cx.link.http_mut() {
                    http.leave_sse(&mut self.cx.env);
                }
                self.begin_unknown(self.cx.env.newest(Era::Modern), self.cx.env.newest(Era::Legacy));
            }
            why => self.fail(Stage::Endpoint, why),
        }
    }

    const fn is_corrected(&self) -> bool {
        matches!(self.cx.env.phase, Phase::Probing { corrected: true, .. })
    }

    const fn is_last_resort(&self) -> bool {
        matches!(self.cx.env.phase, Phase::Probing { last_resort: true, .. })
    }

    /// Handles the response to `initialize`.
    fn on_initialized(&mut self, answer: Payload) {
        let Phase::Initializing { asked, after, corrected } = self.cx.env.phase else { return };
        match answer {
            Payload::Result(result) => match read_initialize(&result) {
                Ok((theirs, info)) => match self.accept_legacy(&theirs) {
                    Some(version) => {
                        let server_info = Object::read(&result).ok().and_then(|result| result.get("serverInfo"));
                        self.note_deviation(&result, server_info);
                        self.cx.env.phase = Phase::Ready(ServerInfo { version, ..info.clone() });
                        if let Some(http) = self.cx.link.http_mut() {
                            http.begin_session(&mut self.cx.env);
                            http.before_initialized(&mut self.cx.env);
                        }
                        self.cx.send_notification("notifications/initialized", &Object::new(), None);
                        self.ready(ServerInfo { version, ..info });
                    }
                    None => {
                        let theirs = [theirs].to_vec();
                        self.fail(Stage::Initialize, NegotiationCause::NoMutualVersion(theirs));
                    }
                },
                Err(e) => self.fail(Stage::Initialize, NegotiationCause::Decode(e)),
            },
            Payload::Error(error) => {
                let theirs = supported(&error).unwrap_or_default();
                let legacy =
                    self.cx.env.config.versions.mutual(Era::Legacy, &theirs).filter(|v| *v != asked && !corrected);
                let newest = self.cx.env.newest(Era::Modern);
                let named = self.cx.env.config.versions.mutual(Era::Modern, &theirs).filter(|_| newest.is_some());
                let modern = match after {
                    After::Verdict => named.or(newest),
                    After::Probe => named.filter(|_| error.code == code::UNSUPPORTED_VERSION),
                    After::SpoiltProbe | After::Session | After::SseVerdict | After::Else => None,
                };
                let tells_why =
                    !theirs.is_empty() && matches!(error.code, code::INVALID_PARAMS | code::UNSUPPORTED_VERSION);
                match (legacy, modern) {
                    (Some(version), _) => self.initialize(version, after, true),
                    (None, Some(version)) => self.probe(version, true, false),
                    (None, None) if after == After::Probe && !tells_why && self.may_start_again() => {
                        self.end_spoilt(asked, error);
                    }
                    (None, None) => self.fall_back_to_sse(Stage::Initialize, NegotiationCause::Rpc(error)),
                }
            }
        }
    }

    /// Ends a server that has refused `initialize` after the probe, to start it a second time: some
    /// take the probe for the beginning of the session.
    fn end_spoilt(&mut self, asked: ProtocolVersion, why: ErrorObject) {
        self.cx.env.diagnose(
            DiagnosticKind::FellBackToLegacy,
            format!("{}: {why}; the server is started a second time", Stage::Initialize),
        );
        self.starting.note_refusal(Stage::Initialize, &NegotiationCause::Rpc(why));
        self.cx.env.phase = Phase::Initializing { asked, after: After::SpoiltProbe, corrected: false };
        self.cx.env.timers.set(Timer::Handshake, None);
        if let Link::Duplex(duplex) = &mut self.cx.link {
            duplex.send_end(&mut self.cx.env);
        }
    }

    /// Returns the revision with which the server responded to `initialize`. It may differ from the
    /// revision of the request. It must be one that the client has, and one that has the handshake.
    fn accept_legacy(&self, theirs: &str) -> Option<ProtocolVersion> {
        self.cx.env.config.versions.mutual(Era::Legacy, &[theirs])
    }

    /// Emits a diagnostic if the server says of itself something that is taken as it is meant.
    fn note_deviation(&mut self, result: &RawJson, info: Option<RawJson>) {
        let capabilities = Object::read(result).ok().and_then(|result| result.get("capabilities"));
        if let Some(detail) = lifecycle::deviation("serverInfo", info.as_ref(), capabilities.as_ref()) {
            self.cx.env.diagnose(DiagnosticKind::Deviation, detail);
        }
    }

    fn ready(&mut self, info: ServerInfo) {
        self.starting.end(&mut self.cx.env);
        let transport = self.cx.link.http().map(HttpLink::transport).unwrap_or_default();
        self.learnt = Some(Verdict { version: info.version, transport });
        self.cx.env.phase = Phase::Ready(info.clone());
        self.cx.env.event(Event::Ready(Box::new(info)));
        self.cx.calls.mismatched().iter().for_each(|call| drop(self.cx.calls.set_stage(*call, CallStage::Queued)));
        self.stop_refreshing();
        self.cx.tools.clear();
        self.pings.begin(&mut self.cx.env);
        self.logging.begin(&mut self.cx);
        self.begin_watching();
        self.send_queued();
    }

    /// Handles an unreadable response to the probe or the handshake.
    fn on_handshake_defect(&mut self, why: DecodeError) {
        match self.cx.env.state() {
            State::Probing => self.fall_back(NegotiationCause::Decode(why)),
            State::Initializing => self.fail(Stage::Initialize, NegotiationCause::Decode(why)),
            State::Ready | State::Lapsed | State::Ending | State::Closing | State::Terminated => {}
        }
    }

    /// Ends the negotiation, since a hook denied a message of the probe or the handshake. Another
    /// attempt would bypass the hook.
    fn on_handshake_denied(&mut self, reason: String) {
        let stage = if self.cx.env.state() == State::Initializing { Stage::Initialize } else { Stage::Discover };
        self.fail(stage, NegotiationCause::Denied(reason));
    }

    /// Handles an HTTP error that refuses the probe or the handshake without a response. Unless the
    /// refusal `tells` of the era of the server, it ends the negotiation.
    fn on_handshake_refused(&mut self, tells: bool, why: Box<HttpError>) {
        // Only a modern server sends these errors, even if they do not name the request.
        let is_modern = |error: &&ErrorObject| {
            matches!(error.code, code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY | code::UNSUPPORTED_VERSION)
        };
        let modern = why.error.as_ref().filter(is_modern).cloned();
        match (&self.cx.env.phase, modern) {
            (Phase::Probing { .. }, Some(error)) if tells => self.on_discovered(Payload::Error(error)),
            (Phase::Initializing { .. }, Some(error)) if tells => self.on_initialized(Payload::Error(error)),
            (Phase::Probing { .. }, None) if tells => self.fall_back(NegotiationCause::Http(why)),
            (Phase::Probing { .. }, _) => self.fail(Stage::Discover, NegotiationCause::Http(why)),
            (Phase::Initializing { after: After::Verdict, .. }, None) if tells => match self.cx.env.newest(Era::Modern)
            {
                Some(version) => self.probe(version, true, false),
                None => self.fall_back_to_sse(Stage::Initialize, NegotiationCause::Http(why)),
            },
            (_, None) if tells => self.fall_back_to_sse(Stage::Initialize, NegotiationCause::Http(why)),
            _ => self.fail(Stage::Initialize, NegotiationCause::Http(why)),
        }
    }

    /// Handles an error without an id. If the probe is pending, its sender is an older server that
    /// could not read the probe.
    fn on_idless_error(&mut self, error: ErrorObject) {
        if let (Phase::Probing { .. }, true) = (&self.cx.env.phase, self.cx.env.is_duplex()) {
            self.retire_handshake();
            self.fall_back(NegotiationCause::Rpc(error));
        }
    }

    fn on_handshake_timeout(&mut self) {
        match self.cx.env.state() {
            // The server was not asked yet: it has as much time again. The limits of the connection
            // and of the start hold.
            State::Probing if !self.cx.env.is_duplex() && !self.cx.link.has_reached_server() => {
                let again = self.starting.step().max(Duration::from_secs(1));
                self.starting.limit(&mut self.cx.env, Some(again));
            }
            State::Probing => {
                self.retire_handshake();
                self.drop_http_exchanges();
                self.fall_back(NegotiationCause::Timeout(self.starting.step()));
            }
            State::Initializing => {
                let stage = if self.awaits_endpoint() { Stage::Endpoint } else { Stage::Initialize };
                self.fail(stage, NegotiationCause::Timeout(self.cx.env.config.initialize_timeout));
            }
            State::Ready | State::Lapsed | State::Ending | State::Closing | State::Terminated => {}
        }
    }

    /// Handles the end of the duplex exchange, or of the output of the server, before the
    /// negotiation has ended. The exchange is already removed.
    fn on_handshake_closed(&mut self, opened: bool, why: Closed) {
        self.retire_handshake();
        match (&self.cx.env.phase, self.cx.env.newest(Era::Legacy)) {
            (Phase::Initializing { after: After::SpoiltProbe, .. }, Some(version)) => {
                self.open_duplex();
                self.initialize(version, After::Else, false);
            }
            // Some servers exit after an unknown first message, some of them after a response. The
            // client starts a new process once and sends `initialize`.
            (
                Phase::Probing { last_resort: false, .. } | Phase::Initializing { after: After::Probe, .. },
                Some(version),
            ) if opened && self.may_start_again() && !has_no_command(&why) => {
                self.cx.env.diagnose(DiagnosticKind::FellBackToLegacy, format!("{why}; it is started a second time"));
                let stage = if self.cx.env.state() == State::Probing { Stage::Discover } else { Stage::Initialize };
                self.starting.set_first_end(stage, why);
                self.open_duplex();
                self.initialize(version, After::Else, false);
            }
            (Phase::Probing { .. }, _) if opened => self.fail(Stage::Discover, NegotiationCause::Closed(why)),
            (Phase::Initializing { .. }, _) if opened => self.fail(Stage::Initialize, NegotiationCause::Closed(why)),
            _ => self.fail(Stage::Connect, NegotiationCause::Closed(why)),
        }
    }

    /// Fails the negotiation, since the whole start took too long.
    fn on_start_timeout(&mut self) {
        let stage = match &self.cx.env.phase {
            _ if self.awaits_endpoint() => Stage::Endpoint,
            _ if !self.cx.link.has_reached_server() => Stage::Connect,
            Phase::Probing { .. } => Stage::Discover,
            Phase::Initializing { .. } => Stage::Initialize,
            Phase::Ready(_) | Phase::Lapsed | Phase::Ending(_) | Phase::Closing(_) | Phase::Terminated => return,
        };
        self.fail(stage, NegotiationCause::StartTimeout(self.cx.env.config.connect_timeout));
    }

    /// Ends the calls that wait for a new session, since the client could not open one. The next
    /// call tries again.
    fn on_renewal_failed(&mut self, why: &NegotiationError) {
        self.starting.end(&mut self.cx.env);
        // A late response to the abandoned handshake must not reach the next one.
        self.drop_http_exchanges();
        self.cx.env.phase = Phase::Lapsed;
        let calls: Vec<CallId> = self.cx.calls.iter().map(|(call, _)| call).collect();
        for call in calls {
            self.end(call, Err(CallError::Negotiation(why.clone())));
        }
    }

    fn fail(&mut self, stage: Stage, cause: NegotiationCause) {
        let renews = matches!(self.cx.env.phase, Phase::Initializing { after: After::Session, .. });
        match cause {
            cause if renews && !matches!(cause, NegotiationCause::NoMutualVersion(_)) => {
                self.retire_handshake();
                let why = self.starting.error(&self.cx.env, stage, cause);
                self.on_renewal_failed(&why);
            }
            cause => {
                let why = self.starting.error(&self.cx.env, stage, cause);
                self.shut(Termination::Negotiation(why));
            }
        }
    }

    /// Ends all exchanges over HTTP.
    fn drop_http_exchanges(&mut self) {
        let Some(http) = self.cx.link.http_mut() else { return };
        http.ids().into_iter().for_each(|exchange| http.drop_exchange(&mut self.cx.env, exchange));
    }

    /// Returns whether the client may start the server a second time, after a probe: not over HTTP,
    /// nor on a connection that the driver gave.
    fn may_start_again(&self) -> bool {
        let config = &self.cx.env.config;
        self.cx.env.is_duplex() && config.target != Target::Duplex(Endpoint::Given) && config.restart_after_probe
    }

    /// Returns whether the handshake waits for the `endpoint` event of HTTP+SSE.
    fn awaits_endpoint(&self) -> bool {
        self.cx.link.http().is_some_and(HttpLink::awaits_endpoint)
    }

    /// Retires the id of the pending handshake request. The client never cancels such a request.
    fn retire_handshake(&mut self) {
        self.cx.env.ids.retire_handshake();
    }
}

/// Returns whether a shell or launcher could not run its command: it exits with status 126 or 127
/// then (POSIX.1-2024, Shell Command Language, 2.8.2). The command would fail again.
const fn has_no_command(why: &Closed) -> bool {
    matches!(why, Closed::Exited(ExitStatus { code: Some(126 | 127), .. }))
}

fn read_discover(result: &RawJson, asked: ProtocolVersion) -> Result<(Vec<String>, ServerInfo), DecodeError> {
    let object = Object::read(result)?;
    if let Some(kind) = object.optional::<String>("resultType")?.filter(|kind| kind != "complete") {
        return Err(DecodeError::new(format!("`resultType` is {kind}")));
    }
    let theirs = object.required("supportedVersions")?;
    let meta = object.optional_object(meta::META)?.unwrap_or_default();
    let info = ServerInfo {
        version: asked,
        implementation: meta.optional_object(meta::SERVER_INFO)?.map(Implementation::read).transpose()?,
        capabilities: ServerCapabilities::read(
            capabilities::read_member(&object)?.ok_or_else(|| DecodeError::new("`capabilities` is missing"))?,
        ),
        instructions: object.optional("instructions")?,
    };
    Ok((theirs, info))
}

fn read_initialize(result: &RawJson) -> Result<(String, ServerInfo), DecodeError> {
    let object = Object::read(result)?;
    let theirs: String = object.required("protocolVersion")?;
    let info = ServerInfo {
        version: ProtocolVersion::ALL[0],
        implementation: object.optional_object("serverInfo")?.map(Implementation::read).transpose()?,
        capabilities: ServerCapabilities::read(capabilities::read_member(&object)?.unwrap_or_default()),
        instructions: object.optional("instructions")?,
    };
    Ok((theirs, info))
}

/// Returns the revisions that an error names in `data.supported`. `None` if it names none that the
/// client can read.
fn supported(error: &ErrorObject) -> Option<Vec<String>> {
    Object::read(error.data.as_ref()?).ok()?.optional("supported").ok()?
}
