//! How the two sides agree: `server/discover` first, then `initialize` (requirements of 2026-07-28 versioning and stdio backward
//! compatibility, and the lifecycle of the older revisions). All transitions of [`Phase`] are here, but for the end in `mod.rs` and the way
//! to a new start in `restart.rs`.
//!
//! ```text
//!   (begin, or a wait of Restarting is over)
//!                 ┌── answer names a mutual modern revision ────────────────────▶ Ready
//!   Probing ──────┤   answer or -32022 names only mutual legacy ones ──┐
//!      ▲          └── any other error, silence, or the program died ───┤  (policy Auto)
//!      │ verdict was legacy, and initialize was refused;               │
//!      │ or -32022 to initialize names a mutual modern one; once       ▼
//!      └────────────────────────────────────────────────────── Initializing ────▶ Ready
//! ```

use super::ids::Purpose;
use super::link::{Duplex, Exchange};
use super::{Client, Event, Policy, State, Target, Termination, Timer, Verdict};
#[cfg(feature = "http")]
use crate::error::HttpError;
use crate::error::{DiagnosticKind, NegotiationCause, Stage};
use crate::exchange::{Closed, Endpoint, ExchangeId, Start};
use crate::model::lifecycle::{Implementation, ServerCapabilities, ServerInfo, meta};
use crate::rpc::{DecodeError, ErrorObject, Object, Payload, RawJson, code};
use crate::version::{Era, ProtocolVersion};
#[cfg(feature = "http")]
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The life of a client.
#[derive(Debug)]
pub(super) enum Phase {
    /// `server/discover` was sent.
    Probing {
        /// The revision it named.
        asked: ProtocolVersion,
        /// Whether `initialize` was refused before: then there is nothing left to fall back to.
        last_resort: bool,
        /// Whether the server's list of revisions was followed once.
        corrected: bool,
    },
    /// `initialize` was sent.
    Initializing {
        /// The revision it named.
        asked: ProtocolVersion,
        /// What led to it, which decides what is left to try.
        after: After,
        /// Whether the server's list of revisions was followed once.
        corrected: bool,
    },
    Ready(ServerInfo),
    /// The session has ended, and another could not be had; the next call tries again.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "there are sessions over HTTP only"))]
    Lapsed,
    /// The server has closed its output; its exit status is awaited for a moment.
    Ending(ServerInfo),
    /// The server has ended; a timer is armed for the next one.
    Restarting,
    Closing(Termination),
    Terminated,
}

/// What led to `initialize`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum After {
    /// A verdict: if it is refused, the server is probed.
    Verdict,
    /// A probe that proved nothing. If `initialize` is refused by a server that names a modern revision of ours, it has understood the
    /// probe all the same; and if the server exits, it may be the probe that it did not survive.
    Probe,
    /// The end of a session: if there is no new one now, there may be later.
    Session,
    /// Nothing that leaves another way.
    Else,
}

impl Phase {
    pub(super) const fn state(&self) -> State {
        match self {
            Self::Probing { .. } => State::Probing,
            Self::Initializing { .. } => State::Initializing,
            Self::Ready(_) => State::Ready,
            Self::Lapsed => State::Lapsed,
            Self::Ending(_) => State::Ending,
            Self::Restarting => State::Restarting,
            Self::Closing(_) => State::Closing,
            Self::Terminated => State::Terminated,
        }
    }
}

impl Client {
    /// The first step: what the policy, the revisions and the verdict allow.
    pub(super) fn begin(&mut self) {
        self.begin_start();
        let modern = self.newest(Era::Modern);
        let legacy = self.newest(Era::Legacy);
        let known = self
            .restarts
            .learnt()
            .or(self.config.verdict)
            .map(|verdict| verdict.version)
            .filter(|version| self.config.versions.contains(*version));
        if self.phase.state() == State::Lapsed
            && let Some(version) = known
        {
            return self.initialize(version, After::Session, false);
        }
        let known_legacy = known.filter(|version| version.era() == Era::Legacy && legacy.is_some());
        match (known_legacy, modern, legacy) {
            (Some(version), _, _) => {
                self.open_duplex();
                self.initialize(version, After::Verdict, false);
            }
            (None, Some(version), _) => {
                self.open_duplex();
                self.probe(version, false, false);
            }
            (None, None, Some(version)) => {
                self.open_duplex();
                self.initialize(version, After::Else, false);
            }
            (None, None, None) => {
                let asked = ProtocolVersion::ALL[0];
                self.phase = Phase::Initializing { asked, after: After::Else, corrected: false };
                self.fail(Stage::Connect, NegotiationCause::NoMutualVersion(Vec::new()));
            }
        }
    }

    /// The newest revision of an era that the policy and the configuration allow.
    fn newest(&self, era: Era) -> Option<ProtocolVersion> {
        let allowed = match (self.config.policy, era) {
            (Policy::Auto, _) | (Policy::Legacy, Era::Legacy) | (Policy::Modern, Era::Modern) => true,
            (Policy::Legacy, Era::Modern) | (Policy::Modern, Era::Legacy) => false,
        };
        self.config.versions.newest(era).filter(|_| allowed)
    }

    pub(super) fn is_duplex(&self) -> bool {
        matches!(self.config.target, Target::Duplex(_))
    }

    fn open_duplex(&mut self) {
        let endpoint = match &self.config.target {
            Target::Duplex(endpoint) => endpoint.clone(),
            #[cfg(feature = "http")]
            Target::Http(_) => return,
        };
        self.count_start();
        let exchange = self.exchanges.mint();
        self.exchanges.insert(exchange, Exchange::Duplex(Duplex::default()));
        self.out.start(exchange, Start::Duplex(endpoint));
    }

    fn probe(&mut self, asked: ProtocolVersion, last_resort: bool, corrected: bool) {
        self.phase = Phase::Probing { asked, last_resort, corrected };
        self.arm_handshake();
        self.send_request(Purpose::Discover, "server/discover", Object::new(), asked);
    }

    pub(super) fn initialize(&mut self, asked: ProtocolVersion, after: After, corrected: bool) {
        self.phase = Phase::Initializing { asked, after, corrected };
        self.arm_handshake();
        let params = Object::new()
            .with("protocolVersion", asked.as_str())
            .with("capabilities", self.config.capabilities.write(asked))
            .with("clientInfo", self.config.info.write(asked));
        self.send_request(Purpose::Initialize, "initialize", params, asked);
    }

    /// The clock of the probe or the handshake starts, or starts anew.
    pub(super) fn arm_handshake(&mut self) {
        let is_probe = self.phase.state() == State::Probing && self.is_duplex();
        let limit = if is_probe { self.config.probe_timeout } else { self.config.initialize_timeout };
        self.timers.set(Timer::Handshake, Some(self.now + limit));
        self.resume_start();
    }

    /// The answer to `server/discover`.
    pub(super) fn on_discovered(&mut self, answer: Payload) {
        let Phase::Probing { asked, .. } = self.phase else { return };
        match answer {
            Payload::Result(result) => match read_discover(&result, asked) {
                Ok((theirs, info)) => self.choose(&theirs, Some(info)),
                Err(e) => self.fall_back(NegotiationCause::Decode(e)),
            },
            Payload::Error(error) => match supported(&error) {
                Some(theirs) if error.code == code::UNSUPPORTED_VERSION => self.choose(&theirs, None),
                _ if matches!(error.code, code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY) => {
                    // A recognised modern error: the server is modern, so there is no falling back, and nothing to correct either.
                    self.fail(Stage::Discover, NegotiationCause::Rpc(error));
                }
                _ => self.fall_back(NegotiationCause::Rpc(error)),
            },
        }
    }

    /// The server is modern and has these revisions. `info` is there if it accepted the one asked for.
    fn choose(&mut self, theirs: &[String], info: Option<ServerInfo>) {
        let modern = self.config.versions.mutual(Era::Modern, theirs).filter(|_| self.newest(Era::Modern).is_some());
        let legacy = self.config.versions.mutual(Era::Legacy, theirs).filter(|_| self.newest(Era::Legacy).is_some());
        match (modern, info, legacy) {
            (Some(version), Some(info), _) => self.ready(ServerInfo { version, ..info }),
            // It refused the one asked for, and names one that we have: once, also if it is the same, which was then not the reason.
            (Some(version), None, _) if !self.is_corrected() => self.probe(version, self.is_last_resort(), true),
            (_, _, Some(version)) => self.initialize(version, After::Else, true),
            (_, _, None) => self.fail(Stage::Discover, NegotiationCause::NoMutualVersion(theirs.to_vec())),
        }
    }

    /// The server is not modern, as far as can be told: `initialize` if that is allowed.
    fn fall_back(&mut self, why: NegotiationCause) {
        match self.newest(Era::Legacy) {
            Some(version) if !self.is_last_resort() => {
                self.diagnose(DiagnosticKind::FellBackToLegacy, format!("{}: {why}", Stage::Discover));
                self.initialize(version, After::Probe, false);
            }
            _ => self.fail(Stage::Discover, why),
        }
    }

    const fn is_corrected(&self) -> bool {
        matches!(self.phase, Phase::Probing { corrected: true, .. })
    }

    const fn is_last_resort(&self) -> bool {
        matches!(self.phase, Phase::Probing { last_resort: true, .. })
    }

    /// The answer to `initialize`.
    pub(super) fn on_initialized(&mut self, answer: Payload) {
        let Phase::Initializing { asked, after, corrected } = self.phase else { return };
        match answer {
            Payload::Result(result) => match read_initialize(&result) {
                Ok((theirs, info)) => match self.accept_legacy(&theirs) {
                    Some(version) => {
                        self.phase = Phase::Ready(ServerInfo { version, ..info.clone() });
                        if !self.is_duplex() {
                            self.begin_session();
                            self.before_initialized();
                        }
                        self.send_notification("notifications/initialized", &Object::new(), None);
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
                let legacy = self.config.versions.mutual(Era::Legacy, &theirs).filter(|v| *v != asked && !corrected);
                let newest = self.newest(Era::Modern);
                let named = self.config.versions.mutual(Era::Modern, &theirs).filter(|_| newest.is_some());
                let modern = match after {
                    After::Verdict => named.or(newest),
                    After::Probe => named.filter(|_| error.code == code::UNSUPPORTED_VERSION),
                    After::Session | After::Else => None,
                };
                match (legacy, modern) {
                    (Some(version), _) => self.initialize(version, after, true),
                    (None, Some(version)) => self.probe(version, true, false),
                    (None, None) => self.fail(Stage::Initialize, NegotiationCause::Rpc(error)),
                }
            }
        }
    }

    /// A server may answer `initialize` with another revision; it must be one of ours, and one that has the handshake.
    fn accept_legacy(&self, theirs: &str) -> Option<ProtocolVersion> {
        self.config.versions.mutual(Era::Legacy, &[theirs])
    }

    fn ready(&mut self, info: ServerInfo) {
        self.end_start();
        self.restarts.learn(Verdict { version: info.version });
        self.phase = Phase::Ready(info.clone());
        self.out.event(Event::Ready(info));
        self.forget_tools(true);
        self.begin_pings();
        self.begin_watching();
        self.send_queued();
    }

    /// An answer to the probe or the handshake that cannot be read.
    pub(super) fn on_handshake_defect(&mut self, why: DecodeError) {
        match self.phase.state() {
            State::Probing => self.fall_back(NegotiationCause::Decode(why)),
            State::Initializing => self.fail(Stage::Initialize, NegotiationCause::Decode(why)),
            State::Ready | State::Lapsed | State::Ending | State::Restarting | State::Closing | State::Terminated => {}
        }
    }

    /// A hook refused a message of the probe or the handshake. Trying something else would go round what it stands for.
    pub(super) fn on_handshake_denied(&mut self, reason: String) {
        let stage = if self.phase.state() == State::Initializing { Stage::Initialize } else { Stage::Discover };
        self.fail(stage, NegotiationCause::Denied(reason));
    }

    /// An HTTP status in place of an answer to the probe or the handshake. What says nothing about the server's era ends the negotiation.
    #[cfg(feature = "http")]
    pub(super) fn on_handshake_status(&mut self, why: HttpError) {
        let tells = tells_of_era(why.status);
        // Only these errors are a modern server's for sure, also where they do not name the request.
        let is_modern = |error: &&ErrorObject| {
            matches!(error.code, code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY | code::UNSUPPORTED_VERSION)
        };
        let modern = why.error.as_ref().filter(is_modern).cloned();
        match (&self.phase, modern) {
            (Phase::Probing { .. }, Some(error)) if tells => self.on_discovered(Payload::Error(error)),
            (Phase::Initializing { .. }, Some(error)) if tells => self.on_initialized(Payload::Error(error)),
            (Phase::Probing { .. }, None) if tells => self.fall_back(NegotiationCause::Http(Box::new(why))),
            (Phase::Probing { .. }, _) => self.fail(Stage::Discover, NegotiationCause::Http(Box::new(why))),
            (Phase::Initializing { after: After::Verdict, .. }, None) if tells => match self.newest(Era::Modern) {
                Some(version) => self.probe(version, true, false),
                None => self.fail(Stage::Initialize, NegotiationCause::Http(Box::new(why))),
            },
            _ => self.fail(Stage::Initialize, NegotiationCause::Http(Box::new(why))),
        }
    }

    /// An error that names no request, while the probe is out: an older server that could not read it.
    pub(super) fn on_idless_error(&mut self, error: ErrorObject) {
        if let (Phase::Probing { .. }, true) = (&self.phase, self.is_duplex()) {
            self.retire_handshake();
            self.fall_back(NegotiationCause::Rpc(error));
        }
    }

    pub(super) fn on_handshake_timeout(&mut self) {
        match self.phase.state() {
            State::Probing if self.is_duplex() => {
                self.retire_handshake();
                self.fall_back(NegotiationCause::Timeout(self.config.probe_timeout));
            }
            State::Probing => self.fail(Stage::Discover, NegotiationCause::Timeout(self.config.initialize_timeout)),
            State::Initializing => {
                self.fail(Stage::Initialize, NegotiationCause::Timeout(self.config.initialize_timeout))
            }
            State::Ready | State::Lapsed | State::Ending | State::Restarting | State::Closing | State::Terminated => {}
        }
    }

    /// The duplex exchange ended, or its other side said all, before the two had agreed. `exchange` is gone already.
    pub(super) fn on_handshake_closed(&mut self, opened: bool, why: Closed) {
        self.retire_handshake();
        let again = matches!(&self.config.target, Target::Duplex(endpoint) if *endpoint != Endpoint::Given);
        match (&self.phase, self.newest(Era::Legacy)) {
            // Servers exist that exit on a first message they do not know, some with an answer. They get a new process and `initialize`,
            // once. One that was agreed with before knows the message: it has ended for another reason.
            (
                Phase::Probing { last_resort: false, .. } | Phase::Initializing { after: After::Probe, .. },
                Some(version),
            ) if opened && again && self.restarts.learnt().is_none() && self.may_start_again(&why) => {
                self.diagnose(DiagnosticKind::FellBackToLegacy, format!("{why}; it is started a second time"));
                let stage = if self.phase.state() == State::Probing { Stage::Discover } else { Stage::Initialize };
                self.note_first_end(stage, why);
                self.open_duplex();
                self.initialize(version, After::Else, false);
            }
            (Phase::Probing { .. }, _) if opened => self.fail(Stage::Discover, NegotiationCause::Closed(why)),
            (Phase::Initializing { .. }, _) if opened => self.fail(Stage::Initialize, NegotiationCause::Closed(why)),
            _ => self.fail(Stage::Connect, NegotiationCause::Closed(why)),
        }
    }

    pub(super) fn fail(&mut self, stage: Stage, cause: NegotiationCause) {
        let renews = matches!(self.phase, Phase::Initializing { after: After::Session, .. });
        match cause {
            cause if renews && !matches!(cause, NegotiationCause::NoMutualVersion(_)) => {
                self.retire_handshake();
                let why = self.negotiation_error(stage, cause);
                self.on_renewal_failed(&why);
            }
            // It was agreed with before: it is gone, and that need not be the end.
            NegotiationCause::Closed(why) if self.restarts.learnt().is_some() => self.lost(why),
            NegotiationCause::Timeout(_) | NegotiationCause::StartTimeout(_) if self.restarts.learnt().is_some() => {
                if let Some(exchange) = self.duplex() {
                    self.drop_exchange(exchange);
                }
                self.lost(Closed::Timeout);
            }
            cause => {
                let why = self.negotiation_error(stage, cause);
                self.shut(Termination::Negotiation(why));
            }
        }
    }

    /// The request of the handshake that is out is no longer waited for. It is never named in a cancellation.
    fn retire_handshake(&mut self) {
        self.ids.retire_handshake();
    }

    /// The members of `_meta` that every request of a modern revision carries.
    pub(super) fn modern_meta(&self, version: ProtocolVersion) -> Object {
        Object::new()
            .with(meta::PROTOCOL_VERSION, version.as_str())
            .with(meta::CLIENT_INFO, self.config.info.write(version))
            .with(meta::CLIENT_CAPABILITIES, self.config.capabilities.write(version))
    }

    pub(super) fn duplex(&self) -> Option<ExchangeId> {
        let last = self.exchanges.keys().next_back().copied();
        last.filter(|_| self.is_duplex())
    }

    /// Whether the two sides have agreed on an older revision.
    pub(super) fn is_legacy(&self) -> bool {
        self.version().is_some_and(|version| version.era() == Era::Legacy)
    }

    /// The negotiated revision.
    pub(super) fn version(&self) -> Option<ProtocolVersion> {
        self.server_info().map(|info| info.version)
    }
}

/// Whether the refusal of the probe or the handshake with this status may come from a server of the other era. A challenge, a redirect, an
/// overload and a fault of the server tell nothing, whatever stands in the body.
#[cfg(feature = "http")]
pub(super) const fn tells_of_era(status: u16) -> bool {
    matches!(status, 400 | 404..=407 | 409..=428 | 430..=499)
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
        capabilities: ServerCapabilities::read(object.object("capabilities")?),
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
        capabilities: ServerCapabilities::read(object.optional_object("capabilities")?.unwrap_or_default()),
        instructions: object.optional("instructions")?,
    };
    Ok((theirs, info))
}

/// The revisions that an error names in `data.supported`; `None` if it names none that can be read.
fn supported(error: &ErrorObject) -> Option<Vec<String>> {
    Object::read(error.data.as_ref()?).ok()?.optional("supported").ok()?
}
