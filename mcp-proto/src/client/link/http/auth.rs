//! Challenges of a server. A request that got 401 or 403 waits until the application has answered
//! the challenge. The client then repeats the request once, byte for byte (2025-11-25
//! authorization; RFC 9110 section 11). The client reports one challenge once, however many
//! requests wait for it. It repeats no request twice for the same status, so there is no loop.
//!
//! With a login, a request whose token is bound to a key waits for the signature of its proof
//! before each attempt: it is held back, and goes out with the proof as the same exchange.

use super::address::Address;
use super::connection::ConnectionReport;
use super::exchange_end::ExchangeEnd;
use super::exchanges::HttpExchanges;
use super::{DeferredStep, ExchangeRole, ExchangeStage, HttpExchange, HttpLink};
use crate::auth::{Generation, Reaction, Refused, RequestProof, StepId, Tried};
use crate::client::State;
use crate::client::env::ClientEnv;
use crate::client::headers;
use crate::client::ids::Purpose;
use crate::client::link::challenge::is_challenge;
use crate::client::link::event::{LinkEvent, ParkedKind};
use crate::client::login::Challenged;
use crate::error::{AuthError, AuthHints};
use crate::exchange::{Closed, ExchangeId, Headers, Sent};
use crate::input::{AuthKey, Authorization, Challenge};
use crate::rpc::Id;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The challenges that wait for the application, and its latest credentials.
#[derive(Debug, Default)]
pub(in crate::client) struct Challenges {
    open: BTreeMap<AuthKey, Challenge>,
    /// Exchanges that wait for credentials and that every call depends on: the handshake, and
    /// responses to questions of the server. The client does not know the call of such a question.
    common: Vec<ExchangeId>,
    last: u64,
    credentials: Headers,
    answered: u64,
    /// Whether an exchange may wait for the login.
    login_waits: bool,
}

/// The key of exchanges that wait for the login. No challenge has it.
pub(super) const LOGIN: AuthKey = AuthKey::new(0);

/// What an exchange has to do with the login.
#[derive(Clone, Debug, Default)]
pub(in crate::client) struct LoginUse {
    /// The credentials that its request carried.
    pub(in crate::client) generation: Generation,
    pub(in crate::client) tried: Tried,
    /// Whether it has waited for the login, so that it goes out as things are.
    pub(in crate::client) has_waited: bool,
    /// The proof for the next attempt, once it is signed.
    pub(in crate::client) proof: Option<RequestProof>,
    /// Whether the latest attempt carried a proof.
    pub(super) is_proved: bool,
    /// Whether it was repeated since a dead connection lost it with its proof.
    pub(super) is_repeated: bool,
}

impl Challenges {
    /// Returns the credentials, which every request carries.
    pub(super) const fn credentials(&self) -> &Headers {
        &self.credentials
    }

    /// Returns the number of challenges that were answered with credentials.
    pub(super) const fn answered(&self) -> u64 {
        self.answered
    }

    /// Drops all challenges.
    pub(in crate::client) fn clear(&mut self) {
        self.open.clear();
        self.common.clear();
        self.login_waits = false;
    }
}

impl HttpExchange {
    /// Returns the parts of the response that concern credentials.
    pub(super) fn hints(&self) -> AuthHints {
        let Some(head) = &self.head else { return AuthHints::default() };
        AuthHints {
            www_authenticate: head.headers.all("www-authenticate").map(ToOwned::to_owned).collect(),
            auth_server: head.headers.get("mcp-auth-server").map(ToOwned::to_owned),
        }
    }
}

impl HttpExchanges {
    /// Returns the exchanges that wait for the answer to this challenge.
    fn parked(&self, key: AuthKey) -> Vec<ExchangeId> {
        let waits = |http: &HttpExchange| http.stage == ExchangeStage::Parked(key);
        self.iter().filter(|(_, http)| waits(http)).map(|(exchange, _)| exchange).collect()
    }

    /// Returns whether an exchange waits for credentials.
    pub(super) fn is_parked(&self, exchange: ExchangeId) -> bool {
        self.get(exchange).is_some_and(|http| matches!(http.stage, ExchangeStage::Parked(_)))
    }
}

impl HttpLink {
    /// Handles a response that may be a challenge: of the login, or one that the application may
    /// answer. In that case, the request waits for the answer and does not end.
    pub(super) fn park_if_challenged(&mut self, env: &mut ClientEnv, exchange: ExchangeId) -> Challenged {
        let Some(http) = self.exchanges.get(exchange) else { return Challenged::No };
        if env.login.is_on() {
            return self.refuse_login(env, exchange);
        }
        if !self.is_challenge(env, http) {
            return Challenged::No;
        }
        let (status, challenge) = (http.status(), Challenge::new(http.status(), http.hints()));
        let is_stale = http.credentials < self.challenges.answered;
        let found = self.challenges.open.iter().find(|(_, open)| **open == challenge).map(|(key, _)| *key);
        let key = found.unwrap_or(AuthKey::new(self.challenges.last + 1));
        if let Some(http) = self.exchanges.get_mut(exchange) {
            http.tried.mark(status);
            http.stage = ExchangeStage::Parked(key);
        }
        if is_stale {
            // The request was on its way when new credentials arrived.
            self.unpark(env, exchange);
            return Challenged::Waits;
        }
        if found.is_none() {
            self.challenges.last = key.number();
            self.challenges.open.insert(key, challenge.clone());
        }
        let parked = self.hold(env, exchange);
        let challenge = found.is_none().then(|| {
            let parked = self.exchanges.parked(key).into_iter();
            (key, challenge, parked.filter_map(|exchange| self.exchanges.get(exchange)?.call()).collect())
        });
        self.events.push_back(LinkEvent::Parked(parked, challenge));
        Challenged::Waits
    }

    /// Gives the login a response that may refuse the credentials of its request.
    fn refuse_login(&mut self, env: &mut ClientEnv, exchange: ExchangeId) -> Challenged {
        let Some(http) = self.exchanges.get(exchange) else { return Challenged::No };
        let is_trusted = http.address.as_ref().is_none_or(|address| self.is_trusted(env, address));
        if !is_trusted || matches!(http.role, ExchangeRole::Answered | ExchangeRole::Delete) {
            return Challenged::No;
        }
        let hints = http.hints();
        // Only a demand for more scopes is about an operation.
        let operation = if http.status() == 403 { http.sent.operation() } else { String::new() };
        let refused = Refused {
            status: http.status(),
            fields: &hints.www_authenticate,
            auth_server: hints.auth_server.as_deref(),
            sent: http.login.generation,
            operation: &operation,
        };
        let mut tried = http.login.tried;
        let Some(reaction) = env.login.refuse(env.now, &refused, &mut tried) else { return Challenged::No };
        if let Some(http) = self.exchanges.get_mut(exchange) {
            http.login.tried = tried;
        }
        match reaction {
            Reaction::Wait => self.park_for_login(env, exchange),
            Reaction::Again => self.unpark(env, exchange),
            Reaction::Final(why) => return Challenged::Failed(Box::new(why)),
        }
        Challenged::Waits
    }

    /// Lets an exchange wait for the login: one that was refused, or one that has not begun.
    pub(super) fn park_for_login(&mut self, env: &mut ClientEnv, exchange: ExchangeId) {
        self.end_timers(env, exchange);
        if let Some(http) = self.exchanges.get_mut(exchange) {
            http.stage = ExchangeStage::Parked(LOGIN);
        }
        self.challenges.login_waits = true;
        let parked = self.hold(env, exchange);
        self.events.push_back(LinkEvent::Parked(parked, None));
    }

    /// Handles the end of a run of the login: what waits for it goes out, or ends with this error.
    pub(in crate::client) fn settle_login(&mut self, env: &mut ClientEnv, error: Option<&AuthError>) {
        if !core::mem::take(&mut self.challenges.login_waits) {
            return;
        }
        for exchange in self.exchanges.parked(LOGIN) {
            match error {
                None => self.unpark(env, exchange),
                Some(why) => self.steps.push_back(DeferredStep::FailParked(exchange, Box::new(why.clone()))),
            }
        }
        self.steps.push_back(DeferredStep::Authorized);
    }

    /// Prepares an exchange for the login. Returns it with the proof that it carries, unless it
    /// waits: for the login, or for the signature of its proof, while its limits of time run.
    pub(super) fn prepare_for_login(
        &mut self,
        env: &mut ClientEnv,
        exchange: ExchangeId,
        mut http: HttpExchange,
        address: &Arc<Address>,
    ) -> Option<(HttpExchange, Option<RequestProof>)> {
        let proof = http.login.proof.take().filter(|proof| proof.generation == env.login.generation());
        if env.login.is_on() && proof.is_none() && self.is_trusted(env, address) {
            let waits = env.login.must_wait(env.now) && !http.login.has_waited && !http.is_delete();
            if waits {
                http.connection = ConnectionReport::Waiting;
                self.exchanges.insert(exchange, http);
                self.park_for_login(env, exchange);
                return None;
            }
            if let Some(step) = env.login.prove(env.now, http.sent.method, &address.origin, &address.path) {
                (http.stage, http.connection) = (ExchangeStage::Signing(step), ConnectionReport::Waiting);
                http.address = Some(Arc::clone(address));
                self.exchanges.insert(exchange, http);
                return None;
            }
        }
        (http.login.generation, http.login.has_waited) = (env.login.generation(), false);
        http.login.is_proved = proof.is_some();
        Some((http, proof))
    }

    /// Handles the end of a proof: its exchange goes out with it, or ends with this error.
    pub(in crate::client) fn settle_proof(
        &mut self,
        env: &mut ClientEnv,
        step: StepId,
        proof: Result<RequestProof, AuthError>,
    ) {
        let mut waiting = self.exchanges.iter().filter(|(_, http)| http.stage == ExchangeStage::Signing(step));
        let Some((exchange, sent)) = waiting.next().map(|(exchange, http)| (exchange, http.sent())) else { return };
        drop(waiting);
        match proof {
            Ok(proof) => {
                let Some(mut http) = self.exchanges.remove(exchange) else { return };
                http.login.proof = Some(proof);
                self.begin_http(env, exchange, http.released(), None);
            }
            Err(why) => {
                let why = Closed::Unauthorized(Box::new(why));
                self.on_exchange_end(env, exchange, ExchangeEnd::Failed { sent, why });
            }
        }
    }

    /// Repeats a request that a dead connection lost with its proof, once. The driver repeats those
    /// without a proof. Returns whether it does.
    pub(super) fn repeat_proved(&mut self, env: &mut ClientEnv, exchange: ExchangeId, over: &ExchangeEnd) -> bool {
        let is_dead = matches!(over, ExchangeEnd::Failed { why: Closed::Eof | Closed::Reset | Closed::Broken(_), .. });
        let Some(http) = self.exchanges.get_mut(exchange).filter(|_| is_dead) else { return false };
        let is_lost = http.login.is_proved && http.sent.repeatable && http.head.is_none();
        if !is_lost || http.role == ExchangeRole::Answered || core::mem::replace(&mut http.login.is_repeated, true) {
            return false;
        }
        if let Some(call) = http.call() {
            self.events.push_back(LinkEvent::Reached(call));
        }
        self.begin_in_place(env, exchange, None);
        true
    }

    /// Ends an exchange that waited for the login.
    pub(super) fn fail_parked(&mut self, env: &mut ClientEnv, exchange: ExchangeId, why: Box<AuthError>) {
        if self.exchanges.is_parked(exchange) {
            self.on_exchange_end(env, exchange, ExchangeEnd::Failed { sent: Sent::No, why: Closed::Unauthorized(why) });
        }
    }

    fn is_challenge(&self, env: &ClientEnv, http: &HttpExchange) -> bool {
        // A server that gets no credentials cannot ask for them.
        let is_trusted = http.address.as_ref().is_none_or(|address| self.is_trusted(env, address));
        let waits = is_trusted && !matches!(http.role, ExchangeRole::Answered | ExchangeRole::Delete);
        let fields = http.head.iter().flat_map(|head| head.headers.all("www-authenticate"));
        waits && is_challenge(env, http.status(), fields, http.tried)
    }

    /// Returns the kind of message that now waits for credentials. Only the total limits run while
    /// the application obtains them.
    fn hold(&mut self, env: &ClientEnv, exchange: ExchangeId) -> ParkedKind {
        match self.exchanges.get(exchange).map(|http| http.role.clone()) {
            Some(ExchangeRole::Request(_, purpose) | ExchangeRole::Posted(_, purpose)) => {
                if matches!(purpose, Purpose::Discover | Purpose::Initialize) {
                    self.hold_all(exchange);
                }
                ParkedKind::Request(purpose)
            }
            Some(ExchangeRole::Response) => {
                self.hold_all(exchange);
                ParkedKind::Response
            }
            Some(ExchangeRole::Listener) => ParkedKind::Listener,
            // Everything waits for the stream: the handshake, or every call.
            Some(ExchangeRole::Sse) => {
                self.hold_all(exchange);
                if env.state() == State::Ready {
                    ParkedKind::Response
                } else {
                    ParkedKind::Request(Purpose::Initialize)
                }
            }
            _ => ParkedKind::Other,
        }
    }

    /// Notes that every call may wait for this exchange.
    fn hold_all(&mut self, exchange: ExchangeId) {
        let mut common = core::mem::take(&mut self.challenges.common);
        common.retain(|exchange| self.exchanges.is_parked(*exchange));
        common.push(exchange);
        self.challenges.common = common;
    }

    /// Handles the answer of the application to a challenge.
    pub(in crate::client) fn authorize(&mut self, env: &mut ClientEnv, key: AuthKey, with: Authorization) {
        if self.challenges.open.remove(&key).is_none() {
            return;
        }
        let parked = self.exchanges.parked(key);
        match with {
            Authorization::Headers(credentials) => {
                let fields = headers::own(&credentials);
                self.challenges.credentials = fields.fold(Headers::new(), |all, (name, value)| all.with(name, value));
                self.challenges.answered += 1;
                for exchange in parked {
                    self.unpark(env, exchange);
                }
            }
            Authorization::Refuse => self.steps.extend(parked.into_iter().map(DeferredStep::RefuseParked)),
        }
        self.steps.push_back(DeferredStep::Authorized);
    }

    /// Ends an exchange with the refusal that it was parked for.
    pub(super) fn refuse_parked(&mut self, env: &mut ClientEnv, exchange: ExchangeId) {
        if let Some(http) = self.exchanges.get_mut(exchange) {
            http.stage = ExchangeStage::Over;
            self.on_exchange_end(env, exchange, ExchangeEnd::End);
        }
    }

    fn unpark(&mut self, env: &mut ClientEnv, exchange: ExchangeId) {
        let Some(again) = self.begin_in_place(env, exchange, None) else { return };
        let resumed = match self.exchanges.get(again).map(|http| &http.role) {
            Some(ExchangeRole::Request(_, purpose) | ExchangeRole::Posted(_, purpose)) => *purpose,
            Some(ExchangeRole::Sse) if env.state() != State::Ready => Purpose::Initialize,
            _ => return,
        };
        self.events.push_back(LinkEvent::Resumed(resumed));
    }

    /// Returns whether a call waits for credentials: its own request does, or an exchange that
    /// every call depends on.
    pub(in crate::client) fn waits_for_credentials(&self, env: &ClientEnv, request: Option<&Id>) -> bool {
        let own = request.and_then(|id| env.ids.exchange(id));
        (!self.challenges.open.is_empty() || self.challenges.login_waits)
            && own.iter().chain(&self.challenges.common).any(|exchange| self.exchanges.is_parked(*exchange))
    }
}
