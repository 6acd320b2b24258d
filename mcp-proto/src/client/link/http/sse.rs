//! HTTP+SSE of 2024-11-05: one event stream for all messages of the server, and a POST for each
//! message of the client (2024-11-05 transports, HTTP with SSE). The server names the URL for the
//! POSTs in an `endpoint` event. Messages wait for that event, and while the stream is down: a
//! response to a POST would have no way back.
//!
//! ```text
//!   Opening ── endpoint ──▶ Open ── break ──▶ Down ── the same endpoint ──▶ Open
//!      │                                       ├───── another endpoint ──▶ Open, a new session
//!      └── anything else: the handshake fails  └───── given up: the session has ended
//! ```

use super::endpoint::resolve;
use super::exchange_end::ExchangeEnd;
use super::stream::NextRound;
use super::{Address, ExchangeRole, ExchangeStage, HttpExchange, HttpLink, HttpRequest, MessageSummary, success};
use crate::client::env::ClientEnv;
use crate::client::handshake::HandshakeEvent;
use crate::client::ids::Purpose;
use crate::client::link::event::LinkEvent;
use crate::client::{EndpointRefresh, HttpTarget, HttpTransport, State, Timer};
use crate::error::{DiagnosticKind, NegotiationCause, StreamEnd};
use crate::exchange::{Closed, ExchangeId, Reach, Sent};
use crate::rpc::{Id, Message};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

/// The stream of a client over HTTP+SSE, and the URL for its POSTs.
#[derive(Debug)]
pub(super) struct SseTransport {
    /// The URL of the stream.
    url: HttpTarget,
    /// Where its connection may lead.
    reach: Reach,
    /// The exchange of the stream, also while it waits for the next attempt.
    stream: Option<ExchangeId>,
    /// Where the client posts messages. `None` before the `endpoint` event of the open stream.
    endpoint: Option<Arc<Address>>,
    /// The latest endpoint of the session.
    session: Option<Arc<Address>>,
    /// How the stream broke last.
    broke: Closed,
    /// While the stream waits for the next attempt: the latest time for it if a call waits.
    resume_by: Option<Instant>,
    /// Whether nothing arrived for long, so that the client has made a ping.
    is_doubted: bool,
}

/// Why a stream without an endpoint is of no use.
enum StreamFailure {
    End(ExchangeEnd),
    /// Its `endpoint` event, for this reason.
    Endpoint(String),
}

/// The transport.
impl HttpLink {
    /// Returns the transport that the client uses.
    pub(in crate::client) const fn transport(&self) -> HttpTransport {
        match self.sse {
            Some(_) => HttpTransport::Sse,
            None => HttpTransport::Streamable,
        }
    }

    /// Returns whether the server refused the latest request of a handshake as a server of HTTP+SSE
    /// does (2026-07-28 streamable-http, HTTP+SSE transport).
    pub(in crate::client) const fn suggests_sse(&self) -> bool {
        self.suggests_sse
    }

    /// Opens the stream of HTTP+SSE, unless it is open. Until its `endpoint` event, messages wait.
    pub(in crate::client) fn open_sse(&mut self, env: &mut ClientEnv) {
        let url = &self.url;
        let sse = self.sse.get_or_insert_with(|| Box::new(SseTransport::new(url.clone())));
        match sse.stream {
            Some(exchange) => {
                if self.exchanges.get(exchange).is_some_and(|http| http.stage == ExchangeStage::AwaitingResume) {
                    env.timers.set(Timer::Resume(exchange), None);
                    self.on_resume(env, exchange);
                }
            }
            None => {
                let exchange = self.exchanges.mint();
                sse.stream = Some(exchange);
                let http = HttpExchange::new(ExchangeRole::Sse, HttpRequest::get(env.version(), None));
                self.begin_http(env, exchange, http, Some(MessageSummary::NOTHING));
                self.limit_attempt(env, exchange);
            }
        }
    }

    /// Leaves HTTP+SSE: the server does not offer it.
    pub(in crate::client) fn leave_sse(&mut self, env: &mut ClientEnv) {
        self.close_stream(env);
        self.sse = None;
    }

    /// Closes the stream. Its messages end with the session.
    pub(super) fn close_stream(&mut self, env: &mut ClientEnv) {
        if let Some(exchange) = self.sse.as_ref().and_then(|sse| sse.stream) {
            self.drop_exchange(env, exchange);
        }
        self.forget_stream();
    }

    /// The stream has ended, and no other one continues it.
    pub(super) fn forget_stream(&mut self) {
        if let Some(sse) = &mut self.sse {
            (sse.stream, sse.endpoint, sse.session, sse.resume_by) = (None, None, None, None);
        }
    }

    /// Returns whether the client waits for an `endpoint` event.
    pub(in crate::client) fn awaits_endpoint(&self) -> bool {
        self.sse.as_ref().is_some_and(|sse| sse.endpoint.is_none())
    }

    /// Returns the exchange of the stream.
    #[cfg(test)]
    pub(in crate::client) fn sse_stream(&self) -> Option<ExchangeId> {
        self.sse.as_ref()?.stream
    }

    /// Returns whether the exchange is the stream.
    pub(super) fn is_sse_stream(&self, exchange: ExchangeId) -> bool {
        self.sse.as_ref().is_some_and(|sse| sse.stream == Some(exchange))
    }

    /// Sets the URL of the stream, against which its `endpoint` is resolved, and where it may lead.
    pub(super) fn set_stream_url(&mut self, url: HttpTarget, reach: Reach) {
        if let Some(sse) = &mut self.sse {
            (sse.url, sse.reach) = (url, reach);
        }
    }

    /// Notes that another exchange continues the stream.
    pub(super) fn set_sse_stream(&mut self, exchange: ExchangeId) {
        if let Some(sse) = &mut self.sse {
            sse.stream = Some(exchange);
        }
    }
}

impl SseTransport {
    const fn new(url: HttpTarget) -> Self {
        let (stream, endpoint, session, resume_by) = (None, None, None, None);
        Self { url, reach: Reach::Any, stream, endpoint, session, broke: Closed::Eof, resume_by, is_doubted: false }
    }

    /// Returns where the client posts messages now.
    pub(super) const fn endpoint(&self) -> Option<&Arc<Address>> {
        self.endpoint.as_ref()
    }
}

/// Messages of the client.
impl HttpLink {
    /// Holds a message until the stream is open. While a call waits, the next attempt to open the
    /// stream does not wait longer than for the response to a call.
    pub(super) fn hold_message(&mut self, env: &mut ClientEnv, exchange: ExchangeId, mut http: HttpExchange) {
        http.hold();
        let is_call = http.call().is_some();
        self.exchanges.insert(exchange, http);
        let Some(sse) = self.sse.as_ref().filter(|_| is_call) else { return };
        if let (Some(stream), Some(by)) = (sse.stream, sse.resume_by)
            && env.timers.get(Timer::Resume(stream)).is_some_and(|at| at > by)
        {
            env.timers.set(Timer::Resume(stream), Some(by));
        }
    }

    /// Posts the messages that were held, in their order.
    fn post_held(&mut self, env: &mut ClientEnv) {
        let held = self.exchanges.iter().filter(|(_, http)| http.stage == ExchangeStage::Held);
        let held: Vec<ExchangeId> = held.map(|(exchange, _)| exchange).collect();
        for exchange in held {
            if let Some(http) = self.exchanges.remove(exchange) {
                self.begin_http(env, exchange, http.released(), None);
            }
        }
    }

    /// Handles the end of the POST of a request. The response to the request arrives on the stream.
    pub(super) fn on_posted(
        &mut self,
        env: &mut ClientEnv,
        exchange: ExchangeId,
        id: Id,
        purpose: Purpose,
        over: ExchangeEnd,
    ) {
        let Some(http) = self.exchanges.get(exchange) else { return };
        match over {
            ExchangeEnd::End if success(http.status()) => drop(self.exchanges.remove(exchange)),
            ExchangeEnd::End if self.is_session_gone(env, http) => self.on_session_gone(env, exchange),
            ExchangeEnd::End => {
                if let Some(http) = self.exchanges.remove(exchange) {
                    self.on_no_response(env, http, StreamEnd::Ended, false);
                }
            }
            ExchangeEnd::Failed { why: Closed::Denied(reason), sent } => {
                self.exchanges.remove(exchange);
                self.on_denied_request(env, id, purpose, sent, reason);
            }
            ExchangeEnd::Failed { sent, why } => {
                self.exchanges.remove(exchange);
                self.on_broken(env, id, purpose, false, (sent, why));
            }
        }
    }
}

/// The stream.
impl HttpLink {
    /// Returns the exchange of the request that a message on the stream answers, since the client
    /// knows each request by the exchange that it was sent on.
    pub(super) fn asked_on(&self, env: &ClientEnv, exchange: ExchangeId, id: &Id) -> ExchangeId {
        if self.sse.is_none() {
            return exchange;
        }
        match self.exchanges.get(exchange).map(|http| &http.role) {
            Some(ExchangeRole::Sse) => env.ids.asked_on(id, env.config.compat.match_text_ids).unwrap_or(exchange),
            _ => exchange,
        }
    }

    /// As [`asked_on`](Self::asked_on), for a message.
    pub(super) fn place_of(&self, env: &ClientEnv, exchange: ExchangeId, message: &Message) -> ExchangeId {
        match message {
            Message::Response(response) => self.asked_on(env, exchange, &response.id),
            Message::Request(_) | Message::Notification(_) | Message::Error(_) => exchange,
        }
    }

    /// Handles an `endpoint` event.
    pub(super) fn on_endpoint(&mut self, env: &mut ClientEnv, exchange: ExchangeId, reference: &[u8]) {
        let Some(sse) = &mut self.sse else { return };
        let compat = &env.config.compat;
        let endpoint = match resolve(&sse.url, reference, compat.endpoint_rule, &compat.endpoint_origin) {
            Ok(target) => {
                // Another origin is one that the application has listed.
                let reach = if target.origin == sse.url.origin { sse.reach } else { Reach::Any };
                Arc::new(Address::new(&target, reach))
            }
            Err(why) => {
                env.diagnose(DiagnosticKind::BadEndpoint, why.clone());
                if self.cut_http(env, exchange) {
                    self.on_stream_over(env, exchange, StreamFailure::Endpoint(why));
                }
                return;
            }
        };
        let is_first = sse.endpoint.is_none();
        let was_open = sse.session.is_some();
        let is_other = is_first && sse.session.as_ref().is_some_and(|session| *session != endpoint);
        sse.endpoint = Some(endpoint.clone());
        sse.session = Some(endpoint);
        sse.resume_by = None;
        env.timers.set(Timer::Answer(exchange), None);
        let Some(http) = self.exchanges.get_mut(exchange) else { return };
        http.stream.advance();
        let has_cursor = http.stream.cursor.is_some();
        let is_new = is_other && env.config.compat.endpoint_refresh == EndpointRefresh::NewSession;
        if is_new || env.state() == State::Lapsed {
            return self.events.push_back(LinkEvent::SessionReplaced);
        }
        if is_first && was_open && !has_cursor {
            self.events.push_back(LinkEvent::ChangesMissed);
        }
        self.post_held(env);
    }

    /// Handles the silence of the stream. It is the only way for responses, so the client makes a
    /// ping before it gives up the connection and, with it, usually the session.
    pub(super) fn on_stream_silent(&mut self, env: &mut ClientEnv, exchange: ExchangeId) {
        let Some(sse) = &mut self.sse else { return };
        if env.state() == State::Ready && !core::mem::replace(&mut sse.is_doubted, true) {
            env.timers.set(Timer::Idle(exchange), Some(env.now + env.config.ping_timeout));
            return self.events.push_back(LinkEvent::SessionDoubted);
        }
        if self.cut_http(env, exchange) {
            let over = ExchangeEnd::Failed { sent: Sent::Maybe, why: Closed::Timeout };
            self.on_stream_over(env, exchange, StreamFailure::End(over));
        }
    }

    /// Ends the stream after an event that is no message, which the configuration does not
    /// tolerate.
    pub(super) fn reject_sse(&mut self, env: &mut ClientEnv, exchange: ExchangeId) {
        if self.cut_http(env, exchange) {
            let over = ExchangeEnd::Failed { sent: Sent::Maybe, why: Closed::Aborted };
            self.on_stream_over(env, exchange, StreamFailure::End(over));
        }
    }

    /// Notes that something arrived on the stream.
    pub(super) fn on_stream_alive(&mut self) {
        if let Some(sse) = &mut self.sse {
            sse.is_doubted = false;
        }
    }

    /// Handles the end of the stream, or of an attempt to open it.
    pub(super) fn on_sse_end(&mut self, env: &mut ClientEnv, exchange: ExchangeId, over: ExchangeEnd) {
        self.on_stream_over(env, exchange, StreamFailure::End(over));
    }

    fn on_stream_over(&mut self, env: &mut ClientEnv, exchange: ExchangeId, failure: StreamFailure) {
        self.end_timers(env, exchange);
        let (Some(http), Some(sse)) = (self.exchanges.get(exchange), &mut self.sse) else { return };
        let (goes_on, end) = match &failure {
            StreamFailure::End(ExchangeEnd::Failed { why, .. }) => (!why.is_refusal(), StreamEnd::Closed(why.clone())),
            StreamFailure::End(ExchangeEnd::End) => Self::end_of_attempt(http),
            // The next stream would name it again.
            StreamFailure::Endpoint(_) => (false, StreamEnd::Ended),
        };
        env.drop_cached();
        let had_endpoint = sse.endpoint.take().is_some();
        sse.is_doubted = false;
        sse.broke = match &end {
            StreamEnd::Closed(why) => why.clone(),
            _ => Closed::Eof,
        };
        match env.state() {
            State::Ready => {
                if goes_on && matches!(self.schedule_resume(env, exchange, end.clone()), NextRound::Scheduled) {
                    return;
                }
                let again = self.give_up_stream(env, exchange, &end);
                self.events.push_back(LinkEvent::StreamLost(end, again));
            }
            State::Lapsed => drop(self.give_up_stream(env, exchange, &end)),
            _ => {
                let event = match failure {
                    StreamFailure::Endpoint(why) => {
                        HandshakeEvent::NoEndpoint(Box::new(NegotiationCause::BadEndpoint(why)))
                    }
                    StreamFailure::End(over) if had_endpoint => match over {
                        ExchangeEnd::Failed { sent, why } => HandshakeEvent::Closed(sent, why),
                        ExchangeEnd::End => HandshakeEvent::Closed(Sent::Maybe, Closed::Eof),
                    },
                    StreamFailure::End(over) => HandshakeEvent::NoEndpoint(Box::new(no_endpoint(http, over, end))),
                };
                self.close_stream(env);
                self.events.push_back(LinkEvent::Handshake(event));
            }
        }
    }

    /// Stops the attempts to open the stream, temporarily if the application watches changes and
    /// another attempt can succeed. The session has ended: the endpoint of the next stream
    /// continues none.
    fn give_up_stream(&mut self, env: &mut ClientEnv, exchange: ExchangeId, end: &StreamEnd) -> Option<Duration> {
        let again = !env.watch.is_empty() && !matches!(end, StreamEnd::Closed(why) if why.is_refusal());
        if let Some(sse) = &mut self.sse {
            sse.session = None;
        }
        let give_up = |http: &mut HttpExchange| http.stream.backoff.give_up(end.retry_after());
        let wait = self.exchanges.get_mut(exchange).map(give_up).filter(|_| again);
        match wait {
            Some(wait) => self.schedule_retry(env, exchange, wait),
            None => self.close_stream(env),
        }
        wait
    }

    /// Returns how the stream broke last.
    pub(in crate::client) fn stream_end(&self) -> Closed {
        self.sse.as_ref().map_or(Closed::Eof, |sse| sse.broke.clone())
    }

    /// Stores the time of the next attempt if a call waits.
    pub(super) fn set_resume_by(&mut self, by: Instant) {
        if let Some(sse) = &mut self.sse {
            sse.resume_by = Some(by);
        }
    }
}

/// Returns the reason why a server does not offer HTTP+SSE.
fn no_endpoint(http: &HttpExchange, over: ExchangeEnd, end: StreamEnd) -> NegotiationCause {
    match over {
        ExchangeEnd::Failed { why: Closed::Denied(reason), .. } => NegotiationCause::Denied(reason),
        ExchangeEnd::Failed { why, .. } => NegotiationCause::Closed(why),
        ExchangeEnd::End if http.has_failed() => NegotiationCause::Http(Box::new(http.to_error())),
        ExchangeEnd::End => NegotiationCause::NoEndpoint(end),
    }
}
