//! The handshake of a WebSocket (RFC 6455 section 4.1): the URL, which redirects change, and the
//! credentials that a server demands before it opens a connection.

use super::challenge::{TriedStatuses, is_challenge};
use super::event::{LinkEvent, ParkedKind};
use super::http::LoginUse;
use crate::auth::{Reaction, Refused, RequestProof, StepId, Tried};
use crate::client::env::ClientEnv;
use crate::client::handshake::HandshakeEvent;
use crate::client::ids::Purpose;
use crate::client::{HttpTarget, State, Target, WsTarget, headers};
use crate::error::{AuthError, AuthHints, DiagnosticKind};
use crate::exchange::{Closed, Headers, Reach, RequestHead, Sent, Start, UpgradeRefusal};
use crate::fetch::{HopFrom, Hops, is_redirect};
use crate::input::{AuthKey, Authorization, Challenge};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// What the responses of a server to the handshake have changed.
#[derive(Debug, Default)]
pub(super) struct WsHandshake {
    /// Where redirects have led. `None` at the URL of the configuration.
    moved: Option<WsTarget>,
    /// Where a connection to the current URL may lead.
    reach: Reach,
    /// The URLs that redirected the current handshake.
    hops: Hops,
    /// The challenge that waits for the application, and the response that it was in.
    challenge: Option<(AuthKey, Box<UpgradeRefusal>)>,
    /// Number of challenges so far.
    challenges: u64,
    /// The latest credentials.
    credentials: Headers,
    /// The challenges that were answered since the last connection that opened.
    tried: TriedStatuses,
    login: LoginUse,
    /// Whether it waits for the login, or for its proof.
    login_waits: bool,
    /// The step that signs its proof.
    signing: Option<StepId>,
}

/// Returns the start of an exchange with this server. To another origin than that of the
/// configuration goes nothing that belongs to the application.
pub(super) fn start(env: &ClientEnv, configured: &WsTarget, mut handshake: Option<&mut WsHandshake>) -> Start {
    let config = &env.config;
    let proof = handshake.as_mut().and_then(|handshake| handshake.login.proof.take());
    let handshake = handshake.as_deref();
    let target = handshake.and_then(|handshake| handshake.moved.as_ref()).unwrap_or(configured);
    let mut headers = Headers::new().with("Host", target.authority());
    if target.origin == configured.origin {
        let none = Headers::new();
        let credentials = match &proof {
            Some(proof) => &proof.fields,
            None if env.login.is_on() => env.login.credentials(),
            None => handshake.map_or(&none, |handshake| &handshake.credentials),
        };
        let own = headers::own(&config.headers).filter(|(name, _)| credentials.get(name).is_none());
        credentials.iter().chain(own).for_each(|(name, value)| headers.push(name, value));
    }
    let head = RequestHead { method: "GET".into(), target: target.path.as_str().into(), headers };
    let reach = handshake.map_or(Reach::Any, |handshake| handshake.reach);
    Start::WebSocket { origin: target.origin.clone(), reach, head, dialect: config.ws_dialect }
}

impl WsHandshake {
    /// The connection is open.
    pub(super) fn succeeded(&mut self) {
        (self.tried, self.hops) = (TriedStatuses::default(), Hops::default());
        self.login.tried = Tried::default();
    }

    /// Handles a response that opened no connection. Returns how the negotiation goes on, if it
    /// does: somewhere else, or with credentials.
    pub(super) fn refused(&mut self, env: &mut ClientEnv, response: &mut Box<UpgradeRefusal>) -> Option<LinkEvent> {
        if is_redirect(response.status) {
            return self.follow(env, response).then_some(LinkEvent::Handshake(HandshakeEvent::Reopen));
        }
        if env.login.is_on() {
            return self.refuse_login(env, response);
        }
        let challenges = response.challenges.iter().map(String::as_str);
        if !self.is_trusted(env) || !is_challenge(env, response.status, challenges, self.tried) {
            return None;
        }
        self.tried.mark(response.status);
        self.challenges += 1;
        let key = AuthKey::new(self.challenges);
        let hints = AuthHints { www_authenticate: response.challenges.clone(), auth_server: None };
        let challenge = Challenge::new(response.status, hints);
        let purpose = if env.state() == State::Probing { Purpose::Discover } else { Purpose::Initialize };
        self.challenge = Some((key, response.clone()));
        Some(LinkEvent::Parked(ParkedKind::Request(purpose), Some((key, challenge, Vec::new()))))
    }

    /// Gives the login a response that may refuse the credentials of the handshake.
    fn refuse_login(&mut self, env: &mut ClientEnv, response: &UpgradeRefusal) -> Option<LinkEvent> {
        if !self.is_trusted(env) {
            return None;
        }
        let refused = Refused {
            status: response.status,
            fields: &response.challenges,
            auth_server: None,
            sent: self.login.generation,
            operation: "GET",
        };
        env.login.reached(response.address);
        env.login.note_nonce(&self.target(env)?.origin, response.dpop_nonce.as_deref());
        Some(match env.login.refuse(env.now, &refused, &mut self.login.tried)? {
            Reaction::Wait => {
                self.login_waits = true;
                Self::parked(env)
            }
            Reaction::Again => LinkEvent::Handshake(HandshakeEvent::Reopen),
            Reaction::Final(why) => LinkEvent::Failed(Sent::No, Closed::Unauthorized(Box::new(why))),
        })
    }

    /// Returns whether the handshake has to wait for the login, or for its proof.
    pub(super) fn waits_for_login(&mut self, env: &mut ClientEnv) -> bool {
        let has_waited = core::mem::take(&mut self.login.has_waited);
        self.signing.take().into_iter().for_each(|step| env.login.withdraw_proof(step));
        let proof = self.login.proof.take();
        let is_trusted = self.is_trusted(env);
        self.login.proof = proof.filter(|proof| is_trusted && proof.generation == env.login.generation());
        self.login_waits = false;
        if is_trusted && self.login.proof.is_none() {
            self.login_waits = env.login.must_wait(env.now) && !has_waited;
            if !self.login_waits {
                self.signing = self.prove(env);
                self.login_waits = self.signing.is_some();
            }
        }
        self.login.generation = env.login.generation();
        self.login_waits
    }

    /// Begins the proof of the handshake, which is an HTTP request.
    fn prove(&self, env: &mut ClientEnv) -> Option<StepId> {
        let target = self.target(env)?;
        env.login.prove(env.now, "GET", &target.origin, &target.path)
    }

    /// Handles the end of a proof. Returns how the negotiation goes on, if it waited for this one.
    pub(super) fn settle_proof(&mut self, step: StepId, proof: Result<RequestProof, AuthError>) -> Option<LinkEvent> {
        self.signing.take_if(|open| *open == step)?;
        self.login_waits = false;
        Some(match proof {
            Ok(proof) => {
                self.login.proof = Some(proof);
                LinkEvent::Handshake(HandshakeEvent::Reopen)
            }
            Err(why) => LinkEvent::Failed(Sent::No, Closed::Unauthorized(Box::new(why))),
        })
    }

    /// Returns the event of a handshake that waits for the login.
    pub(super) fn parked(env: &ClientEnv) -> LinkEvent {
        let purpose = if env.state() == State::Probing { Purpose::Discover } else { Purpose::Initialize };
        LinkEvent::Parked(ParkedKind::Request(purpose), None)
    }

    /// Handles the end of a run of the login. Returns how the negotiation goes on, if it waited.
    pub(super) fn settle_login(&mut self, error: Option<&AuthError>) -> Option<LinkEvent> {
        if !core::mem::take(&mut self.login_waits) {
            return None;
        }
        self.login.has_waited = true;
        Some(match error {
            None => LinkEvent::Handshake(HandshakeEvent::Reopen),
            Some(why) => LinkEvent::Failed(Sent::No, Closed::Unauthorized(Box::new(why.clone()))),
        })
    }

    /// Moves to where a response redirects the handshake. Returns false, and notes the reason in
    /// the response, if the client does not go there.
    fn follow(&mut self, env: &mut ClientEnv, response: &mut UpgradeRefusal) -> bool {
        let Some(current) = self.target(env) else { return false };
        let Some(http) = as_http(&current) else { return false };
        let mut fields = Headers::new();
        if let Some(location) = &response.location {
            fields.push("Location", with_http_scheme(location));
        }
        let redirects = env.config.redirects;
        let from = HopFrom { origin: &current.origin, address: response.address, reach: self.reach };
        let next = self.hops.follow(redirects, ("GET", &http), (response.status, &fields));
        match next.and_then(|next| from.reach(redirects, &next.origin).map(|reach| (next, reach))) {
            Ok((next, reach)) => {
                let Some(mut next) = WsTarget::from_parts(next.origin, next.path, String::new()) else { return false };
                next.original = next.url();
                let detail = format!("{} from {} to {}", response.status, current.url(), next.original);
                env.diagnose(DiagnosticKind::Redirected, detail);
                (self.moved, self.reach) = (Some(next), reach);
                true
            }
            Err(why) => {
                response.redirect = Some(why);
                false
            }
        }
    }

    /// Handles the end of a connection that could not be opened. Returns how the negotiation goes
    /// on, if it does: at the URL of the configuration, if a connection was open where redirects
    /// led.
    pub(super) fn unreached(&mut self) -> Option<LinkEvent> {
        let was_open = self.hops.is_empty();
        let was_moved = was_open && self.moved.take().is_some();
        if was_moved {
            self.reach = Reach::Any;
        }
        was_moved.then_some(LinkEvent::Handshake(HandshakeEvent::Reopen))
    }

    /// Returns the current URL.
    fn target(&self, env: &ClientEnv) -> Option<WsTarget> {
        match (&self.moved, &env.config.target) {
            (Some(target), _) | (None, Target::Ws(target)) => Some(target.clone()),
            (None, _) => None,
        }
    }

    /// Returns whether the current URL has the origin of the configuration.
    pub(super) fn is_trusted(&self, env: &ClientEnv) -> bool {
        match (&self.moved, &env.config.target) {
            (Some(moved), Target::Ws(configured)) => moved.origin == configured.origin,
            _ => true,
        }
    }

    /// Handles the answer of the application to a challenge. Returns how the negotiation goes on.
    /// `None` if the challenge is not open.
    pub(super) fn authorize(&mut self, key: AuthKey, with: Authorization) -> Option<Result<LinkEvent, Closed>> {
        let (_, response) = self.challenge.take_if(|(open, _)| *open == key)?;
        Some(match with {
            Authorization::Headers(given) => {
                let fields = headers::own(&given);
                self.credentials = fields.fold(Headers::new(), |all, (name, value)| all.with(name, value));
                Ok(LinkEvent::Handshake(HandshakeEvent::Reopen))
            }
            Authorization::Refuse => Err(Closed::NotUpgraded(response)),
        })
    }

    /// Returns whether the connection waits for credentials, and every call with it.
    pub(super) fn waits_for_credentials(&self) -> bool {
        self.challenge.is_some() || self.login_waits
    }
}

/// Returns the URL of the HTTP request that the handshake is (RFC 6455 section 3).
fn as_http(target: &WsTarget) -> Option<HttpTarget> {
    HttpTarget::from_parts(target.origin.clone(), target.path.clone(), String::new())
}

/// Returns the target of a redirect with the scheme of HTTP: servers name either.
fn with_http_scheme(location: &str) -> String {
    let location = location.trim();
    match location.split_once(':') {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("ws") => format!("http:{rest}"),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("wss") => format!("https:{rest}"),
        _ => location.to_string(),
    }
}
