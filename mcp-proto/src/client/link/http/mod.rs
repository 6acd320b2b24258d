//! MCP over HTTP, the client's side of every revision. With Streamable HTTP each message is a POST
//! of its own, and the response is JSON or an event stream (2025-11-25 transports; 2026-07-28
//! streamable-http). Up to 2025-11-25 there are sessions, streams that the client resumes after a
//! break, and a listener. `sse.rs` has what is different with HTTP+SSE of 2024-11-05. This module
//! sends and receives; `exchange_end.rs` interprets the end of an exchange.

mod address;
mod auth;
mod connection;
mod endpoint;
mod exchange;
mod exchange_end;
mod exchanges;
mod incoming;
mod listener;
mod message;
mod repeats;
mod request;
mod session;
mod sse;
mod stream;
mod tool_stream;

use super::OutgoingRequest;
use super::event::LinkEvent;
use crate::client::env::ClientEnv;
use crate::client::ids::Purpose;
use crate::client::{HttpTarget, Timer};
use crate::error::{AuthError, CallError, DiagnosticKind};
use crate::exchange::{Closed, ExchangeEvent, ExchangeId, Headers, RequestHead, Sent, Start};
use crate::fetch::Hops;
use crate::input::CallId;
use crate::rpc::{InvalidMessage, Message};
use crate::seed::Seed;
use address::{Address, Addresses};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
pub(in crate::client) use auth::LoginUse;
use auth::{Challenges, LOGIN};
pub(super) use exchange::ExchangeRole;
use exchange::ExchangeStage;
pub(in crate::client) use exchange::HttpExchange;
use exchanges::HttpExchanges;
use repeats::EventKey;
use request::{CommonFields, HttpRequest, MessageSummary};
use session::SessionState;
use sse::SseTransport;

/// The link over HTTP.
#[derive(Debug)]
pub(in crate::client) struct HttpLink {
    url: HttpTarget,
    addresses: Addresses,
    /// `None` over Streamable HTTP.
    sse: Option<Box<SseTransport>>,
    /// Whether the server refused the latest request of a handshake as one of HTTP+SSE does.
    suggests_sse: bool,
    exchanges: HttpExchanges,
    event_key: EventKey,
    session: SessionState,
    challenges: Challenges,
    /// Whether calls wait until the listener is open.
    holding: bool,
    /// The exchange of the listener, also while it waits for the next attempt.
    listener: Option<ExchangeId>,
    /// The state of the listener in the last report to the application.
    reported: ReportedState,
    events: VecDeque<LinkEvent>,
    steps: VecDeque<DeferredStep>,
}

/// The rest of an operation that was begun. The client handles all events before the next step,
/// which may depend on its reaction.
#[derive(Debug)]
enum DeferredStep {
    /// An element of a batch.
    Element(ExchangeId, Result<Message, InvalidMessage>),
    /// An event stream delivered an event that is no message, and the configuration does not
    /// tolerate that.
    RejectStream(ExchangeId),
    /// The application refused to answer the challenge that this exchange waits for.
    RefuseParked(ExchangeId),
    /// The login failed that this exchange waits for.
    FailParked(ExchangeId, Box<AuthError>),
    /// Every exchange that waited for the answer to a challenge was handled.
    Authorized,
}

/// The state of the listener as the application knows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum ReportedState {
    /// It is open, will be opened, or is not offered.
    Open,
    /// It is lost, and the client will retry.
    Paused,
    /// It is lost.
    Lost,
}

impl HttpLink {
    /// Creates the link to a server.
    pub(super) fn new(target: HttpTarget, seed: [u8; 32]) -> Self {
        Self {
            addresses: Addresses::new(&target),
            url: target,
            sse: None,
            suggests_sse: false,
            exchanges: HttpExchanges::default(),
            event_key: EventKey::new(&Seed::new(seed)),
            session: SessionState::default(),
            challenges: Challenges::default(),
            holding: false,
            listener: None,
            reported: ReportedState::Open,
            events: VecDeque::new(),
            steps: VecDeque::new(),
        }
    }

    /// Handles an event of an exchange.
    pub(super) fn handle(&mut self, env: &mut ClientEnv, exchange: ExchangeId, event: ExchangeEvent) {
        match self.exchanges.get(exchange) {
            // The driver reported the event before it learned that the exchange had ended.
            None if self.exchanges.was_minted(exchange) => {}
            None => env.diagnose(DiagnosticKind::UnknownExchange, format!("{exchange:?}")),
            Some(_) => self.on_event(env, exchange, event),
        }
    }

    /// Handles a timer that is due.
    pub(super) fn on_timeout(&mut self, env: &mut ClientEnv, timer: Timer) {
        match timer {
            Timer::Drain(exchange) => self.drop_exchange(env, exchange),
            Timer::Answer(exchange) => self.on_answer_timeout(env, exchange),
            Timer::Idle(exchange) => self.on_idle(env, exchange),
            Timer::Resume(exchange) => self.on_resume(env, exchange),
            Timer::Hold => self.release(env),
            Timer::Handshake
            | Timer::Start
            | Timer::ExitGrace
            | Timer::Ping
            | Timer::Call(_)
            | Timer::Total(_)
            | Timer::Round(_)
            | Timer::Elicitation(_)
            | Timer::Fetch(_)
            | Timer::Login
            | Timer::Subscription
            | Timer::AnswerTasks => {}
        }
    }

    pub(super) fn events(&mut self) -> &mut VecDeque<LinkEvent> {
        &mut self.events
    }

    /// Executes the next step. Returns whether there was one.
    pub(super) fn step(&mut self, env: &mut ClientEnv) -> bool {
        let Some(step) = self.steps.pop_front() else { return false };
        match step {
            DeferredStep::Element(exchange, Ok(message)) => self.on_message(env, exchange, message),
            DeferredStep::Element(exchange, Err(defect)) => self.on_defect(env, exchange, defect),
            DeferredStep::RejectStream(exchange) => {
                if self.exchanges.get(exchange).is_some() {
                    self.reject_stream(env, exchange);
                }
            }
            DeferredStep::RefuseParked(exchange) => self.refuse_parked(env, exchange),
            DeferredStep::FailParked(exchange, why) => self.fail_parked(env, exchange, why),
            DeferredStep::Authorized => self.events.push_back(LinkEvent::Authorized),
        }
        true
    }

    pub(super) fn mint(&mut self) -> ExchangeId {
        self.exchanges.mint()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.exchanges.is_empty()
    }

    /// Returns the ids of the exchanges, the oldest first.
    pub(in crate::client) fn ids(&self) -> Vec<ExchangeId> {
        self.exchanges.ids()
    }

    /// Returns whether the number of open exchanges has reached the maximum number of calls.
    pub(super) fn has_many_exchanges(&self, env: &ClientEnv) -> bool {
        self.exchanges.len() >= env.config.limits.client.max_calls.max(1)
    }

    /// Returns whether the latest exchange has a connection to the server, or may have one.
    pub(super) fn has_reached_server(&self) -> bool {
        self.exchanges.iter().next_back().is_none_or(|(_, http)| http.sent() == Sent::Maybe)
    }

    /// Returns the call whose response arrives on this exchange.
    pub(super) fn call_on(&self, exchange: ExchangeId) -> Option<CallId> {
        self.exchanges.get(exchange)?.call()
    }

    /// Ends the HTTP exchange of a request whose response is no longer needed.
    pub(super) fn abandon(&mut self, env: &mut ClientEnv, exchange: ExchangeId) {
        if self.exchanges.get(exchange).is_some_and(HttpExchange::awaits_answer) {
            self.drop_exchange(env, exchange);
        }
    }

    /// Returns the ids of the exchanges on the wire.
    #[cfg(test)]
    pub(in crate::client) fn live(&self) -> Vec<ExchangeId> {
        self.exchanges.iter().filter(|(_, http)| http.is_live()).map(|(exchange, _)| exchange).collect()
    }

    /// Returns whether this exchange awaits a response.
    #[cfg(test)]
    pub(in crate::client) fn awaits(&self, exchange: ExchangeId) -> bool {
        self.exchanges.get(exchange).is_some_and(HttpExchange::awaits_answer)
    }

    /// Stops all timers of an exchange.
    fn end_timers(&mut self, env: &mut ClientEnv, exchange: ExchangeId) {
        for timer in [Timer::Drain(exchange), Timer::Answer(exchange), Timer::Idle(exchange), Timer::Resume(exchange)] {
            env.timers.set(timer, None);
        }
    }

    /// Ends an exchange.
    pub(in crate::client) fn drop_exchange(&mut self, env: &mut ClientEnv, exchange: ExchangeId) {
        let sent = self.exchanges.get(exchange).map_or(Sent::Maybe, HttpExchange::sent);
        self.drop_exchange_since(env, exchange, CallError::Closed { sent, why: Closed::Aborted });
    }

    /// Ends an exchange. A notification on it ends with `error`.
    pub(super) fn drop_exchange_since(&mut self, env: &mut ClientEnv, exchange: ExchangeId, error: CallError) {
        if let Some(http) = self.exchanges.remove(exchange) {
            if http.role == ExchangeRole::Sse {
                self.forget_stream();
            }
            self.end_timers(env, exchange);
            match http.stage {
                ExchangeStage::Live => env.out.abort(exchange),
                ExchangeStage::Signing(step) => env.login.withdraw_proof(step),
                ExchangeStage::Held
                | ExchangeStage::AwaitingResume
                | ExchangeStage::Parked(_)
                | ExchangeStage::Over => {}
            }
            self.lose_notification(env, &http, error);
        }
    }
}

/// Outgoing requests.
impl HttpLink {
    /// Posts a request.
    pub(super) fn post_request(&mut self, env: &mut ClientEnv, exchange: ExchangeId, request: OutgoingRequest<'_>) {
        let OutgoingRequest { id, purpose, method, params, message, version, fields, repeatable } = request;
        let named = Some(version).filter(|_| purpose != Purpose::Initialize && !env.only_calls_tools());
        let limit = if purpose == Purpose::Listen { env.config.timeout } else { None };
        env.timers.set(Timer::Answer(exchange), limit.map(|limit| env.now + limit));
        let sent = HttpRequest::post(named, message, repeatable).mirroring(fields);
        let described = MessageSummary { method, params: Some(params) };
        let role = match self.sse {
            None => ExchangeRole::Request(id, purpose),
            Some(_) => ExchangeRole::Posted(id, purpose),
        };
        self.begin_http(env, exchange, HttpExchange::new(role, sent), Some(described));
    }

    /// Starts an exchange. Every HTTP request starts here, so that each one has the common header
    /// fields. `described`: the message in its body; `None` if that is to be read.
    fn begin_http(
        &mut self,
        env: &mut ClientEnv,
        exchange: ExchangeId,
        mut http: HttpExchange,
        described: Option<MessageSummary<'_>>,
    ) {
        let address = match (http.address.take(), &self.sse) {
            (Some(address), _) => Some(address),
            (None, Some(sse)) if http.is_post() => sse.endpoint().cloned(),
            (None, _) => Some(Arc::clone(self.addresses.current())),
        };
        let Some(address) = address else { return self.hold_message(env, exchange, http) };
        let is_initialize = matches!(http.request(), Some((_, Purpose::Initialize)));
        let is_trusted = self.is_trusted(env, &address);
        let Some((mut http, proof)) = self.prepare_for_login(env, exchange, http, &address) else { return };
        let none = Headers::new();
        let credentials = match &proof {
            Some(proof) => &proof.fields,
            None if env.login.is_on() => env.login.credentials(),
            None => self.challenges.credentials(),
        };
        let common = CommonFields {
            authority: &address.authority,
            own: if is_trusted { &env.config.headers } else { &none },
            credentials: if is_trusted { credentials } else { &none },
            session: self.session.id().filter(|_| !is_initialize),
        };
        http.stream.begin(env.now);
        http.in_session = common.session.is_some() || self.sse.is_some() && !is_initialize;
        http.credentials = self.challenges.answered();
        let headers = match described {
            Some(described) => http.sent.headers(&common, described),
            None => http.sent.headers_again(&common),
        };
        let head = RequestHead { method: http.sent.method.into(), target: Arc::clone(&address.path), headers };
        // Another attempt needs another proof.
        let repeatable = http.sent.repeatable && proof.is_none();
        let (origin, body) = (address.origin.clone(), http.sent.body.clone());
        let reach = address.reach;
        let urgent = http.is_urgent();
        http.address = Some(address);
        self.exchanges.insert(exchange, http);
        env.out.start(exchange, Start::Http { origin, reach, head, body, repeatable, urgent, raw: false });
    }

    /// Repeats a request in place of an exchange that has ended: `sent`, or the same request
    /// without it. The new exchange keeps the state of the response so far. `place`: where it is
    /// redirected to, and from where.
    fn begin_again(
        &mut self,
        env: &mut ClientEnv,
        old: ExchangeId,
        sent: Option<HttpRequest>,
        place: Option<(Arc<Address>, Hops)>,
    ) -> Option<ExchangeId> {
        let http = self.exchanges.remove(old)?;
        let exchange = self.exchanges.mint();
        let has_waited = http.stage == ExchangeStage::Parked(LOGIN);
        let HttpExchange { role, sent: before, tried, login, any_message, last_defect, stream, .. } = http;
        let login = LoginUse { has_waited, ..login };
        if let ExchangeRole::Request(id, _) | ExchangeRole::Posted(id, _) = &role {
            env.ids.move_to(id, exchange);
        }
        // A request in place of another one has no message.
        let described = sent.is_some().then_some(MessageSummary::NOTHING);
        let again = HttpExchange::new(role, sent.unwrap_or(before));
        let (address, hops) = place.map_or_else(Default::default, |(address, hops)| (Some(address), hops));
        let again =
            HttpExchange { again: true, tried, login, any_message, last_defect, stream, address, hops, ..again };
        self.begin_http(env, exchange, again, described);
        Some(exchange)
    }

    /// Returns whether calls wait for the listener.
    pub(in crate::client) const fn is_holding(&self) -> bool {
        self.holding
    }

    /// Handles the end of the client: no request waits for the listener or for credentials any
    /// more.
    pub(in crate::client) fn clear(&mut self) {
        self.holding = false;
        self.listener = None;
        self.forget_stream();
        self.challenges.clear();
    }
}

const fn success(status: u16) -> bool {
    status >= 200 && status < 300
}

/// Returns whether a server of the other era may refuse the handshake with this status. A
/// challenge of the server or of a proxy, a redirect, an overload and a server fault prove nothing
/// about the era, whatever their body contains.
const fn tells_of_era(status: u16) -> bool {
    matches!(status, 400 | 404..=406 | 409..=428 | 430..=499)
}
