//! Challenges of a server: a request that is answered 401 or 403 waits until the application has answered the challenge, and is then made
//! once more, byte for byte (2025-11-25 authorization; RFC 9110 section 11). One challenge is one question, however many requests wait for
//! it. No request is made a second time for the same status, so nothing loops.

use super::{Http, Role, Stage};
use crate::client::ids::Purpose;
use crate::client::link::Exchanges;
use crate::client::{Client, Event, Timer, headers};
use crate::error::AuthHints;
use crate::exchange::{ExchangeId, Headers};
use crate::input::{AuthKey, AuthToken, Authorization, CallId, Challenge};
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::exchange_end::ExchangeEnd;

/// The challenges that wait for the application, and the credentials that it gave.
#[derive(Debug, Default)]
pub(in crate::client) struct Challenges {
    open: BTreeMap<AuthKey, Challenge>,
    /// Exchanges that wait and that no call can go on without: the handshake, and our answers to questions of the server, of which it is
    /// not known which call they are for.
    common: Vec<ExchangeId>,
    last: u64,
    credentials: Headers,
    answered: u64,
}

/// For which statuses a request was made once more, since it was last accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Tried {
    unauthorized: bool,
    forbidden: bool,
}

impl Challenges {
    /// The fields that go with every request.
    pub(super) const fn credentials(&self) -> &Headers {
        &self.credentials
    }

    /// How many challenges were answered with credentials.
    pub(super) const fn answered(&self) -> u64 {
        self.answered
    }

    /// No challenge waits any more.
    pub(in crate::client) fn clear(&mut self) {
        self.open.clear();
        self.common.clear();
    }
}

impl Tried {
    fn mark(&mut self, status: u16) {
        match status {
            401 => self.unauthorized = true,
            _ => self.forbidden = true,
        }
    }

    const fn has(self, status: u16) -> bool {
        if status == 401 { self.unauthorized } else { self.forbidden }
    }
}

impl Http {
    /// What the answer says of credentials.
    pub(super) fn hints(&self) -> AuthHints {
        let Some(head) = &self.head else { return AuthHints::default() };
        AuthHints {
            www_authenticate: head.headers.all("www-authenticate").map(ToOwned::to_owned).collect(),
            auth_server: head.headers.get("mcp-auth-server").map(ToOwned::to_owned),
        }
    }
}

impl Exchanges {
    /// Returns the exchanges that wait for the answer to this challenge.
    fn parked(&self, key: AuthKey) -> Vec<ExchangeId> {
        let waits = |exchange: &&ExchangeId| self.http(**exchange).is_some_and(|http| http.stage == Stage::Parked(key));
        self.keys().filter(waits).copied().collect()
    }

    /// Returns whether an exchange waits for credentials.
    fn is_parked(&self, exchange: ExchangeId) -> bool {
        self.http(exchange).is_some_and(|http| matches!(http.stage, Stage::Parked(_)))
    }
}

impl Client {
    /// Whether the response is a challenge that is answered before its request ends; the request waits for that then.
    pub(super) fn park_if_challenged(&mut self, exchange: ExchangeId) -> bool {
        let Some(http) = self.exchanges.http(exchange) else { return false };
        if !self.is_challenge(http) {
            return false;
        }
        let (status, challenge) = (http.status(), Challenge::new(http.status(), http.hints()));
        let is_stale = http.credentials < self.http_state.challenges.answered;
        let found = self.http_state.challenges.open.iter().find(|(_, open)| **open == challenge).map(|(key, _)| *key);
        let key = found.unwrap_or(AuthKey(self.http_state.challenges.last + 1));
        if let Some(http) = self.exchanges.http_mut(exchange) {
            http.tried.mark(status);
            http.stage = Stage::Parked(key);
        }
        if is_stale {
            // It was on its way when other credentials came.
            self.unpark(exchange);
            return true;
        }
        if found.is_none() {
            self.http_state.challenges.last = key.0;
            self.http_state.challenges.open.insert(key, challenge.clone());
        }
        self.hold(exchange);
        if found.is_none() {
            let calls =
                self.exchanges.parked(key).into_iter().filter_map(|exchange| self.exchanges.http(exchange)?.call());
            let targets = calls.filter(|call| !self.is_own(*call)).collect();
            self.out.event(Event::AuthNeeded { token: AuthToken::new(key), challenge, targets });
        }
        true
    }

    fn is_challenge(&self, http: &Http) -> bool {
        let answerable = match http.status() {
            401 => true,
            403 if self.config.retry_plain_403 => true,
            403 => http.hints().www_authenticate.iter().any(|hint| hint.contains("insufficient_scope")),
            _ => false,
        };
        let waits = !matches!(http.role, Role::Answered | Role::Delete);
        self.config.authorize && answerable && waits && !http.tried.has(http.status())
    }

    /// Nothing runs out while the application looks for credentials, but the total limits.
    fn hold(&mut self, exchange: ExchangeId) {
        match self.exchanges.http(exchange).map(|http| http.role.clone()) {
            Some(Role::Request(_, Purpose::Discover | Purpose::Initialize)) => {
                self.hold_start();
                self.hold_all(exchange);
            }
            Some(Role::Request(_, Purpose::Call(call))) => self.update_clocks_of(call),
            Some(Role::Request(_, Purpose::Ping)) => self.timers.set(Timer::Ping, None),
            Some(Role::Request(_, Purpose::Listen)) => self.timers.set(Timer::Subscription, None),
            Some(Role::Response) => self.hold_all(exchange),
            Some(Role::Listener) => self.release(),
            _ => {}
        }
    }

    /// Whatever call there is may wait for this exchange.
    fn hold_all(&mut self, exchange: ExchangeId) {
        let mut common = core::mem::take(&mut self.http_state.challenges.common);
        common.retain(|exchange| self.exchanges.is_parked(*exchange));
        common.push(exchange);
        self.http_state.challenges.common = common;
        self.update_clocks();
    }

    pub(in crate::client) fn on_authorize(&mut self, key: AuthKey, with: Authorization) {
        if self.http_state.challenges.open.remove(&key).is_none() {
            return;
        }
        let parked = self.exchanges.parked(key);
        match with {
            Authorization::Headers(credentials) => {
                let fields = headers::own(&credentials);
                self.http_state.challenges.credentials =
                    fields.fold(Headers::new(), |all, (name, value)| all.with(name, value));
                self.http_state.challenges.answered += 1;
                for exchange in parked {
                    self.unpark(exchange);
                }
            }
            Authorization::Refuse => {
                for exchange in parked {
                    if let Some(http) = self.exchanges.http_mut(exchange) {
                        http.stage = Stage::Over;
                        self.on_exchange_end(exchange, ExchangeEnd::End);
                    }
                }
            }
        }
        self.update_clocks();
    }

    fn unpark(&mut self, exchange: ExchangeId) {
        let Some(again) = self.begin_again(exchange, None) else { return };
        let Some(http) = self.exchanges.http(again) else { return };
        let (role, is_attempt) = (http.role.clone(), http.is_get());
        match role {
            Role::Request(_, Purpose::Call(call)) => self.update_clocks_of(call),
            Role::Request(_, Purpose::Discover | Purpose::Initialize) => self.arm_handshake(),
            Role::Request(_, Purpose::Ping) => self.arm_pong(),
            Role::Request(_, Purpose::Listen) => self.await_acknowledgement(),
            Role::Listener => self.http_state.listener = Some(again),
            _ => {}
        }
        // What is no request with a clock of its own, and the rest of an answer, must not be silent for ever.
        let has_clock = matches!(role, Role::Request(_, purpose) if purpose != Purpose::Listen);
        if is_attempt || !has_clock {
            self.limit_attempt(again);
        }
    }

    /// Whether a call waits for credentials: its own request does, or something that it cannot go on without.
    pub(in crate::client) fn waits_for_credentials(&self, call: CallId) -> bool {
        let challenges = &self.http_state.challenges;
        let waits_for = self.catalogue.awaited(call).unwrap_or(call);
        let own = self.calls.get(&waits_for).and_then(|call| self.ids.exchange(call.request()?));
        !challenges.open.is_empty()
            && own.iter().chain(&challenges.common).any(|exchange| self.exchanges.is_parked(*exchange))
    }
}
