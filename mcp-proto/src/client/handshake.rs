//! The negotiation of the revision: `server/discover` first, then `initialize` (requirements of
//! 2026-07-28 versioning and stdio backward compatibility, and the lifecycle of the older
//! revisions). This module contains every transition up to `Ready`, and `handshake/phase.rs` those
//! after it.
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

mod phase;
mod result;
mod start;

pub use phase::State;
pub(super) use phase::{HandshakeEvent, Next, Phase};

use super::ctx::Ctx;
use super::env::ClientEnv;
use super::ids::Purpose;
use super::link::{HttpLink, Link};
use super::{Event, HttpMode, HttpTransport, Target, Timer, Verdict};
use crate::error::{AuthError, DiagnosticKind, HttpError, NegotiationCause, NegotiationError, Stage};
use crate::exchange::{Closed, Endpoint, ExitStatus, Sent};
use crate::model::lifecycle::{ServerInfo, meta};
use crate::rpc::{DecodeError, ErrorObject, Object, Payload, code};
use crate::version::{Era, ProtocolVersion};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use phase::{After, Step};
use result::{note_deviation, read_discover, read_initialize, supported};
use start::StartAttempt;

/// The negotiation with a server, once for each of its sessions.
#[derive(Debug, Default)]
pub(super) struct Handshake {
    /// The current start, or the last one.
    start: StartAttempt,
    /// The result of the last successful negotiation. A new HTTP session begins with it.
    learnt: Option<Verdict>,
}

impl Handshake {
    /// Begins the negotiation. The policy, the revisions and the verdict determine the first
    /// request.
    pub(super) fn begin(&mut self, cx: &mut Ctx) -> Next {
        if cx.env.config.target == Target::NoServer {
            cx.env.phase.set(Step::NoServer);
            return Next::Wait;
        }
        self.start.begin(&mut cx.env);
        if let Some(field) = cx.env.login.other_credentials(&cx.env.config.headers) {
            let why = Closed::Unauthorized(Box::new(AuthError::OwnCredentials { field }));
            return self.fail_at_once(cx, NegotiationCause::Closed(why));
        }
        let legacy = cx.env.newest(Era::Legacy);
        let verdict = self.learnt.or(cx.env.config.verdict);
        let verdict = verdict.filter(|verdict| cx.env.config.versions.contains(verdict.version));
        let known = verdict.map(|verdict| verdict.version);
        let is_sse = !cx.env.is_duplex()
            && !cx.env.only_calls_tools()
            && match cx.env.config.http_mode {
                HttpMode::Auto => verdict.is_some_and(|verdict| verdict.transport == HttpTransport::Sse),
                HttpMode::Streamable => false,
                HttpMode::Sse => true,
            };
        if cx.env.state() == State::Lapsed
            && let Some(version) = known
        {
            if is_sse {
                self.open_sse(cx);
            }
            return self.initialize(cx, version, After::Session, false);
        }
        let known_legacy = known.filter(|version| version.era() == Era::Legacy && legacy.is_some());
        if is_sse && let Some(newest) = legacy {
            self.open_sse(cx);
            return match known_legacy {
                Some(version) => self.initialize(cx, version, After::SseVerdict, false),
                None => self.initialize(cx, newest, After::Else, false),
            };
        }
        if cx.env.newest(Era::Modern).or(legacy).is_some() {
            cx.link.open(&mut cx.env);
        }
        match known_legacy {
            Some(version) => self.initialize(cx, version, After::Verdict, false),
            None => self.begin_unknown(cx),
        }
    }

    /// Sends the first request of a negotiation without a verdict.
    fn begin_unknown(&mut self, cx: &mut Ctx) -> Next {
        match (cx.env.newest(Era::Modern), cx.env.newest(Era::Legacy)) {
            (Some(version), _) => self.probe(cx, version, false, false),
            (None, Some(version)) => self.initialize(cx, version, After::Else, false),
            (None, None) => self.fail_at_once(cx, NegotiationCause::NoMutualVersion(Vec::new())),
        }
    }

    /// Ends a start for which nothing was sent.
    fn fail_at_once(&mut self, cx: &mut Ctx, cause: NegotiationCause) -> Next {
        let asked = ProtocolVersion::ALL[0];
        cx.env.phase.set(Step::Initializing { asked, after: After::Else, corrected: false });
        self.fail(cx, Stage::Connect, cause)
    }

    /// Opens the stream of HTTP+SSE. The next message waits for its `endpoint` event.
    fn open_sse(&mut self, cx: &mut Ctx) {
        self.start.try_sse();
        if let Some(http) = cx.link.http_mut() {
            http.open_sse(&mut cx.env);
        }
    }

    fn probe(&mut self, cx: &mut Ctx, asked: ProtocolVersion, last_resort: bool, corrected: bool) -> Next {
        cx.env.phase.set(Step::Probing { asked, last_resort, corrected });
        self.run_clock(&mut cx.env);
        cx.send_request(Purpose::Discover, "server/discover", Object::new(), asked);
        Next::Wait
    }

    fn initialize(&mut self, cx: &mut Ctx, asked: ProtocolVersion, after: After, corrected: bool) -> Next {
        cx.env.phase.set(Step::Initializing { asked, after, corrected });
        self.run_clock(&mut cx.env);
        let params = Object::new()
            .with("protocolVersion", asked.as_str())
            .with("capabilities", cx.env.initialize_capabilities(asked))
            .with("clientInfo", cx.env.config.info.write(asked));
        cx.send_request(Purpose::Initialize, "initialize", params, asked);
        Next::Wait
    }

    /// Starts or restarts the clock of the probe or the handshake.
    fn run_clock(&mut self, env: &mut ClientEnv) {
        self.start.resume(env);
        let limit = match env.state() {
            State::Probing => probe_limit(env),
            _ => Some(env.config.initialize_timeout),
        };
        self.start.limit(env, limit);
    }

    /// Stops the clock while the application obtains credentials for the pending request.
    pub(super) fn hold_clock(&mut self, env: &mut ClientEnv) {
        self.start.hold(env);
    }

    /// Returns the findings of the last successful negotiation.
    pub(super) const fn verdict(&self) -> Option<Verdict> {
        self.learnt
    }

    /// Returns the error of a negotiation that fails now.
    pub(super) fn error(&self, env: &ClientEnv, stage: Stage, cause: NegotiationCause) -> NegotiationError {
        self.start.error(env, stage, cause)
    }

    /// Handles an event of the handshake. The client ignores it if no handshake is pending.
    pub(super) fn on_event(&mut self, cx: &mut Ctx, event: HandshakeEvent) -> Next {
        match event {
            HandshakeEvent::Discovered(answer) => self.on_discovered(cx, answer),
            HandshakeEvent::Initialized(answer) => self.on_initialized(cx, answer),
            HandshakeEvent::Idless(error) => self.on_idless_error(cx, error),
            HandshakeEvent::Invalid(why) => self.on_invalid(cx, why),
            HandshakeEvent::Denied(reason) => self.on_denied(cx, reason),
            HandshakeEvent::Refused { tells_of_era, error } => self.on_refused(cx, tells_of_era, error),
            HandshakeEvent::Closed(sent, why) => self.on_closed(cx, sent == Sent::Maybe, why),
            HandshakeEvent::NoEndpoint(cause) => self.on_no_endpoint(cx, *cause),
            HandshakeEvent::Timeout => self.on_timeout(cx),
            HandshakeEvent::StartTimeout => self.on_start_timeout(cx),
            HandshakeEvent::Resumed => {
                self.run_clock(&mut cx.env);
                Next::Wait
            }
            HandshakeEvent::Reopen => self.on_reopen(cx),
        }
    }

    /// Handles the response to `server/discover`.
    fn on_discovered(&mut self, cx: &mut Ctx, answer: Payload) -> Next {
        let Step::Probing { asked, .. } = *cx.env.phase.step() else { return Next::Wait };
        match answer {
            Payload::Result(result) => match read_discover(&result, asked) {
                Ok((theirs, info)) => {
                    let meta = Object::read(&result).and_then(|result| result.object(meta::META)).unwrap_or_default();
                    note_deviation(&mut cx.env, &result, meta.get(meta::SERVER_INFO));
                    self.choose(cx, &theirs, Some(info))
                }
                Err(e) => self.fall_back(cx, NegotiationCause::Decode(e)),
            },
            Payload::Error(error) => match supported(&error) {
                Some(theirs) if error.code == code::UNSUPPORTED_VERSION => self.choose(cx, &theirs, None),
                _ if matches!(error.code, code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY) => {
                    // Only a modern server sends this error. The client neither falls back nor
                    // corrects its request.
                    self.fail(cx, Stage::Discover, NegotiationCause::Rpc(error))
                }
                _ => self.fall_back(cx, NegotiationCause::Rpc(error)),
            },
        }
    }

    /// Chooses a revision from the list of a modern server. `info` is set if the server accepted
    /// the revision of the probe.
    fn choose(&mut self, cx: &mut Ctx, theirs: &[String], info: Option<ServerInfo>) -> Next {
        let &Step::Probing { last_resort, corrected, .. } = cx.env.phase.step() else { return Next::Wait };
        let mutual = |era| cx.env.config.versions.mutual(era, theirs).filter(|_| cx.env.newest(era).is_some());
        let (modern, legacy) = (mutual(Era::Modern), mutual(Era::Legacy));
        match (modern, info, legacy) {
            (Some(version), Some(info), _) => self.ready(cx, ServerInfo { version, ..info }),
            // The server refused the revision of the probe and names one that the client has. The
            // client probes with it once, even if it is the same revision: the refusal then had
            // another reason.
            (Some(version), None, _) if !corrected => self.probe(cx, version, last_resort, true),
            (_, _, Some(version)) => self.initialize(cx, version, After::Else, true),
            (_, _, None) => self.fail(cx, Stage::Discover, NegotiationCause::NoMutualVersion(theirs.to_vec())),
        }
    }

    /// Falls back to `initialize` if that is allowed, since the server does not appear to be
    /// modern.
    fn fall_back(&mut self, cx: &mut Ctx, why: NegotiationCause) -> Next {
        match cx.env.newest(Era::Legacy) {
            Some(version) if !is_last_resort(&cx.env) => {
                cx.env.diagnose(DiagnosticKind::FellBackToLegacy, format!("{}: {why}", Stage::Discover));
                if !cx.env.is_duplex() {
                    self.start.note_refusal(Stage::Discover, &why);
                }
                self.initialize(cx, version, After::Probe, false)
            }
            _ => self.fall_back_to_sse(cx, Stage::Discover, why),
        }
    }

    /// Tries HTTP+SSE, the last transport, if the server may offer it: it refused Streamable HTTP
    /// with status 400, 404 or 405 and without an error of 2026-07-28 (2026-07-28 streamable-http,
    /// HTTP+SSE transport). Otherwise the negotiation has failed.
    fn fall_back_to_sse(&mut self, cx: &mut Ctx, stage: Stage, why: NegotiationCause) -> Next {
        let is_new_session = matches!(cx.env.phase.step(), Step::Initializing { after: After::Session, .. });
        let may = cx.env.config.http_mode == HttpMode::Auto
            && cx.link.http().is_some_and(HttpLink::suggests_sse)
            && !is_new_session;
        match cx.env.newest(Era::Legacy) {
            Some(version) if may && self.start.try_sse() => {
                cx.env.diagnose(DiagnosticKind::FellBackToSse, format!("{stage}: {why}"));
                self.start.note_refusal(stage, &why);
                self.open_sse(cx);
                self.initialize(cx, version, After::Else, false)
            }
            _ => self.fail(cx, stage, why),
        }
    }

    /// Handles the failure of the stream of HTTP+SSE before its `endpoint` event.
    fn on_no_endpoint(&mut self, cx: &mut Ctx, why: NegotiationCause) -> Next {
        cx.env.ids.retire_handshake();
        let is_verdict = matches!(cx.env.phase.step(), Step::Initializing { after: After::SseVerdict, .. });
        match why {
            // The verdict was for another server, unless this one cannot be reached at all.
            NegotiationCause::Http(_) | NegotiationCause::NoEndpoint(_)
                if is_verdict && cx.env.config.http_mode == HttpMode::Auto =>
            {
                self.start.note_refusal(Stage::Endpoint, &why);
                if let Some(http) = cx.link.http_mut() {
                    http.leave_sse(&mut cx.env);
                }
                self.begin_unknown(cx)
            }
            why => self.fail(cx, Stage::Endpoint, why),
        }
    }

    /// Handles the response to `initialize`.
    fn on_initialized(&mut self, cx: &mut Ctx, answer: Payload) -> Next {
        let Step::Initializing { asked, after, corrected } = *cx.env.phase.step() else { return Next::Wait };
        match answer {
            Payload::Result(result) => match read_initialize(&result) {
                // The revision may differ from that of the request. It must be one that the client
                // has, and one that has the handshake.
                Ok((theirs, info)) => match cx.env.config.versions.mutual(Era::Legacy, &[&theirs]) {
                    Some(version) => {
                        let server_info = Object::read(&result).ok().and_then(|result| result.get("serverInfo"));
                        note_deviation(&mut cx.env, &result, server_info);
                        self.ready(cx, ServerInfo { version, ..info })
                    }
                    None => self.fail(cx, Stage::Initialize, NegotiationCause::NoMutualVersion([theirs].to_vec())),
                },
                Err(e) => self.fail(cx, Stage::Initialize, NegotiationCause::Decode(e)),
            },
            Payload::Error(error) => {
                let theirs = supported(&error).unwrap_or_default();
                let legacy = cx.env.config.versions.mutual(Era::Legacy, &theirs).filter(|v| *v != asked && !corrected);
                let newest = cx.env.newest(Era::Modern);
                let named = cx.env.config.versions.mutual(Era::Modern, &theirs).filter(|_| newest.is_some());
                let modern = match after {
                    After::Verdict => named.or(newest),
                    After::Probe => named.filter(|_| error.code == code::UNSUPPORTED_VERSION),
                    After::SpoiltProbe | After::Session | After::SseVerdict | After::Else => None,
                };
                let tells_why =
                    !theirs.is_empty() && matches!(error.code, code::INVALID_PARAMS | code::UNSUPPORTED_VERSION);
                match (legacy, modern) {
                    (Some(version), _) => self.initialize(cx, version, after, true),
                    (None, Some(version)) => self.probe(cx, version, true, false),
                    (None, None) if after == After::Probe && !tells_why && may_start_again(&cx.env) => {
                        self.end_spoilt(cx, asked, error)
                    }
                    (None, None) => self.fall_back_to_sse(cx, Stage::Initialize, NegotiationCause::Rpc(error)),
                }
            }
        }
    }

    /// Ends a server that has refused `initialize` after the probe, to start it a second time: some
    /// take the probe for the beginning of the session.
    fn end_spoilt(&mut self, cx: &mut Ctx, asked: ProtocolVersion, why: ErrorObject) -> Next {
        cx.env.diagnose(
            DiagnosticKind::FellBackToLegacy,
            format!("{}: {why}; the server is started a second time", Stage::Initialize),
        );
        self.start.note_refusal(Stage::Initialize, &NegotiationCause::Rpc(why));
        cx.env.phase.set(Step::Initializing { asked, after: After::SpoiltProbe, corrected: false });
        cx.env.timers.set(Timer::Handshake, None);
        if let Link::Duplex(duplex) = &mut cx.link {
            duplex.send_end(&mut cx.env);
        }
        Next::Wait
    }

    /// Ends the negotiation with this revision.
    fn ready(&mut self, cx: &mut Ctx, info: ServerInfo) -> Next {
        cx.env.phase.set(Step::Ready(info.clone()));
        if info.version.era() == Era::Legacy {
            if let Some(http) = cx.link.http_mut() {
                http.begin_session(&mut cx.env);
                http.before_initialized(&mut cx.env);
            }
            cx.send_notification("notifications/initialized", &Object::new(), None);
        }
        self.start.end(&mut cx.env);
        let transport = cx.link.http().map(HttpLink::transport).unwrap_or_default();
        self.learnt = Some(Verdict { version: info.version, transport });
        cx.env.event(Event::Ready(Box::new(info)));
        Next::Ready
    }

    /// Handles an unreadable response to the probe or the handshake.
    fn on_invalid(&mut self, cx: &mut Ctx, why: DecodeError) -> Next {
        match cx.env.state() {
            State::Probing => self.fall_back(cx, NegotiationCause::Decode(why)),
            State::Initializing => self.fail(cx, Stage::Initialize, NegotiationCause::Decode(why)),
            State::NoServer | State::Ready | State::Lapsed | State::Ending | State::Closing | State::Terminated => {
                Next::Wait
            }
        }
    }

    /// Ends the negotiation, since a hook denied a message of the probe or the handshake. Another
    /// attempt would bypass the hook.
    fn on_denied(&mut self, cx: &mut Ctx, reason: String) -> Next {
        let stage = if cx.env.state() == State::Initializing { Stage::Initialize } else { Stage::Discover };
        self.fail(cx, stage, NegotiationCause::Denied(reason))
    }

    /// Handles an HTTP error that refuses the probe or the handshake without a response. Unless the
    /// refusal `tells` of the era of the server, it ends the negotiation.
    fn on_refused(&mut self, cx: &mut Ctx, tells: bool, why: Box<HttpError>) -> Next {
        // Only a modern server sends these errors, even if they do not name the request.
        let is_modern = |error: &&ErrorObject| {
            matches!(error.code, code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY | code::UNSUPPORTED_VERSION)
        };
        let modern = why.error.as_ref().filter(is_modern).cloned();
        match (cx.env.phase.step(), modern) {
            (Step::Probing { .. }, Some(error)) if tells => self.on_discovered(cx, Payload::Error(error)),
            (Step::Initializing { .. }, Some(error)) if tells => self.on_initialized(cx, Payload::Error(error)),
            (Step::Probing { .. }, None) if tells => self.fall_back(cx, NegotiationCause::Http(why)),
            (Step::Probing { .. }, _) => self.fail(cx, Stage::Discover, NegotiationCause::Http(why)),
            (Step::Initializing { after: After::Verdict, .. }, None) if tells => match cx.env.newest(Era::Modern) {
                Some(version) => self.probe(cx, version, true, false),
                None => self.fall_back_to_sse(cx, Stage::Initialize, NegotiationCause::Http(why)),
            },
            (_, None) if tells => self.fall_back_to_sse(cx, Stage::Initialize, NegotiationCause::Http(why)),
            _ => self.fail(cx, Stage::Initialize, NegotiationCause::Http(why)),
        }
    }

    /// Handles an error without an id. If the probe is pending, its sender is an older server that
    /// could not read the probe.
    fn on_idless_error(&mut self, cx: &mut Ctx, error: ErrorObject) -> Next {
        if cx.env.state() != State::Probing || !cx.env.is_duplex() {
            return Next::Wait;
        }
        cx.env.ids.retire_handshake();
        self.fall_back(cx, NegotiationCause::Rpc(error))
    }

    fn on_timeout(&mut self, cx: &mut Ctx) -> Next {
        match cx.env.state() {
            // The server was not asked yet: it has as much time again. The limits of the connection
            // and of the start hold.
            State::Probing if !cx.env.is_duplex() && !cx.link.has_reached_server() => {
                let again = self.start.step().max(Duration::from_secs(1));
                self.start.limit(&mut cx.env, Some(again));
                Next::Wait
            }
            State::Probing => {
                cx.env.ids.retire_handshake();
                drop_http_exchanges(cx);
                self.fall_back(cx, NegotiationCause::Timeout(self.start.step()))
            }
            State::Initializing => {
                let stage = if cx.link.awaits_endpoint() { Stage::Endpoint } else { Stage::Initialize };
                self.fail(cx, stage, NegotiationCause::Timeout(cx.env.config.initialize_timeout))
            }
            State::NoServer | State::Ready | State::Lapsed | State::Ending | State::Closing | State::Terminated => {
                Next::Wait
            }
        }
    }

    /// Handles the end of the duplex exchange, or of the output of the server, before the
    /// negotiation has ended. The exchange is already removed.
    fn on_closed(&mut self, cx: &mut Ctx, opened: bool, why: Closed) -> Next {
        cx.env.ids.retire_handshake();
        match (cx.env.phase.step(), cx.env.newest(Era::Legacy)) {
            (Step::Initializing { after: After::SpoiltProbe, .. }, Some(version)) => {
                cx.link.open(&mut cx.env);
                self.initialize(cx, version, After::Else, false)
            }
            // Some servers exit after an unknown first message, some of them after a response. The
            // client starts a new process once and sends `initialize`.
            (
                Step::Probing { last_resort: false, .. } | Step::Initializing { after: After::Probe, .. },
                Some(version),
            ) if opened && may_start_again(&cx.env) && !has_no_command(&why) => {
                cx.env.diagnose(DiagnosticKind::FellBackToLegacy, format!("{why}; it is started a second time"));
                let stage = if cx.env.state() == State::Probing { Stage::Discover } else { Stage::Initialize };
                self.start.set_first_end(stage, why);
                cx.link.open(&mut cx.env);
                self.initialize(cx, version, After::Else, false)
            }
            (Step::Probing { .. }, _) if opened => self.fail(cx, Stage::Discover, NegotiationCause::Closed(why)),
            (Step::Initializing { .. }, _) if opened => self.fail(cx, Stage::Initialize, NegotiationCause::Closed(why)),
            _ => self.fail(cx, Stage::Connect, NegotiationCause::Closed(why)),
        }
    }

    /// Fails the negotiation, since the whole start took too long.
    fn on_start_timeout(&mut self, cx: &mut Ctx) -> Next {
        let stage = match cx.env.phase.step() {
            _ if cx.link.awaits_endpoint() => Stage::Endpoint,
            _ if !cx.link.has_reached_server() => Stage::Connect,
            Step::Probing { .. } => Stage::Discover,
            Step::Initializing { .. } => Stage::Initialize,
            Step::NoServer | Step::Ready(_) | Step::Lapsed | Step::Ending(_) | Step::Closing(_) | Step::Terminated => {
                return Next::Wait;
            }
        };
        self.fail(cx, stage, NegotiationCause::StartTimeout(cx.env.config.connect_timeout))
    }

    /// Begins the pending step again, on a connection with other credentials.
    fn on_reopen(&mut self, cx: &mut Ctx) -> Next {
        cx.env.ids.retire_handshake();
        cx.link.open(&mut cx.env);
        match *cx.env.phase.step() {
            Step::Probing { asked, last_resort, corrected } => self.probe(cx, asked, last_resort, corrected),
            Step::Initializing { asked, after, corrected } => self.initialize(cx, asked, after, corrected),
            _ => Next::Wait,
        }
    }

    /// Ends the negotiation without success. The client of a server that has ended its session may
    /// try again later.
    fn fail(&mut self, cx: &mut Ctx, stage: Stage, cause: NegotiationCause) -> Next {
        let why = self.error(&cx.env, stage, cause);
        let renews = matches!(cx.env.phase.step(), Step::Initializing { after: After::Session, .. });
        if !renews || matches!(why.cause, NegotiationCause::NoMutualVersion(_)) {
            return Next::Failed(why);
        }
        cx.env.ids.retire_handshake();
        self.start.end(&mut cx.env);
        // A late response to the abandoned handshake must not reach the next one.
        drop_http_exchanges(cx);
        cx.env.phase.lapse();
        Next::Lapsed(why)
    }
}

/// Returns the time limit of a probe, which leaves as much time for `initialize`. `None` if nothing
/// can follow the probe.
fn probe_limit(env: &ClientEnv) -> Option<Duration> {
    env.newest(Era::Legacy).filter(|_| !is_last_resort(env))?;
    let left = env.timers.get(Timer::Start).map(|due| due.since(env.now) / 2);
    Some(left.map_or(env.config.probe_timeout, |left| left.min(env.config.probe_timeout)))
}

const fn is_last_resort(env: &ClientEnv) -> bool {
    matches!(env.phase.step(), Step::Probing { last_resort: true, .. })
}

/// Ends all exchanges over HTTP.
fn drop_http_exchanges(cx: &mut Ctx) {
    let Some(http) = cx.link.http_mut() else { return };
    http.ids().into_iter().for_each(|exchange| http.drop_exchange(&mut cx.env, exchange));
}

/// Returns whether the client may start the server a second time, after a probe: not over HTTP, nor
/// on a connection that the driver gave.
fn may_start_again(env: &ClientEnv) -> bool {
    env.is_duplex() && env.config.target != Target::Duplex(Endpoint::Given) && env.config.restart_after_probe
}

/// Returns whether a shell or launcher could not run its command: it exits with status 126 or 127
/// then (POSIX.1-2024, Shell Command Language, 2.8.2). The command would fail again.
const fn has_no_command(why: &Closed) -> bool {
    matches!(why, Closed::Exited(ExitStatus { code: Some(126 | 127), .. }))
}
