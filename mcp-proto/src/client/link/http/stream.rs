//! Event streams that break before the response is complete. The client resumes such a stream with
//! a GET that names the last event (2025-11-25 transports, resumability and redelivery). 2026-07-28
//! has no resumption. Each stream has its own state: the client never uses the cursor or the delay
//! of one stream for another.

use super::repeats::{EventKey, Novelty, Repeats};
use super::{ExchangeRole, ExchangeStage, HttpExchange, HttpLink, HttpRequest, success};
use crate::auth::Tried;
use crate::client::backoff::{Backoff, Brought, LONG, Round, Serves};
use crate::client::env::ClientEnv;
use crate::client::ids::Purpose;
use crate::client::{Event, StreamOf, Timer};
use crate::error::{DiagnosticKind, StreamEnd, StreamPlace};
use crate::exchange::{Data, ExchangeId};
use crate::frame::{Media, media_type};
use crate::rpc::Message;
use crate::time::Instant;
use alloc::borrow::ToOwned;
use alloc::sync::Arc;
use core::time::Duration;

/// The state of a stream across its exchanges.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The id of the last event that had one.
    pub(super) cursor: Option<Arc<str>>,
    pub(super) backoff: Backoff,
    repeats: Repeats,
    /// The content that the exchange on the wire has delivered.
    brought: Brought,
    /// When the exchange on the wire began.
    began: Instant,
    /// When its response head proved to be an event stream.
    opened: Option<Instant>,
    /// Whether an earlier exchange was an event stream.
    was_open: bool,
    /// How often an answer to the server was repeated.
    pub(super) answered: u32,
}

impl Stream {
    /// Begins an exchange: the first one, or a later one.
    pub(super) fn begin(&mut self, now: Instant) {
        self.was_open = self.was_open();
        (self.brought, self.began, self.opened) = (Brought::Nothing, now, None);
    }

    pub(super) fn on_open(&mut self, now: Instant) {
        self.opened = Some(now);
    }

    /// Notes the id of an event. Returns whether it is an id and fits. An empty id clears the last
    /// one (WHATWG HTML section 9.2.6). The stream cannot be resumed from an id that is too long.
    fn on_id(&mut self, id: &str, most: usize) -> bool {
        let fits = !id.is_empty() && id.len() <= most;
        self.cursor = Some(id).filter(|_| fits).map(Arc::from);
        fits
    }

    /// Notes an event.
    fn on_event(&mut self, key: &EventKey, id: Option<&str>, data: &Data) {
        // An event without an id is never a repeat. It is no progress unless its data delivers.
        let novelty = id.map_or(Novelty::OtherData, |id| self.repeats.add(key, id, data));
        if novelty != Novelty::Repeat && delivers(data) {
            self.brought = Brought::Message;
        } else if novelty == Novelty::NewId {
            self.advance();
        }
    }

    pub(super) fn advance(&mut self) {
        self.brought = self.brought.max(Brought::Progress);
    }

    pub(super) const fn is_open(&self) -> bool {
        self.opened.is_some()
    }

    /// Returns whether the stream is open, or was open on an earlier exchange.
    pub(super) const fn was_open(&self) -> bool {
        self.was_open || self.opened.is_some()
    }

    /// Returns the summary of the exchange on the wire, which has ended.
    fn round(&self, now: Instant, serves: Serves, retry_after: Option<Duration>) -> Round {
        let lasting = serves != Serves::Request && self.opened.is_some_and(|at| now.since(at) >= LONG);
        let brought = if lasting { self.brought.max(Brought::Progress) } else { self.brought };
        Round { serves, brought, lasted: now.since(self.began), retry_after }
    }
}

/// Returns whether an event delivers content of the stream. A ping only requests a response, and an
/// error without an id answers no request.
fn delivers(data: &Data) -> bool {
    let message = |message: &Message| match message {
        Message::Request(request) => request.method != "ping",
        Message::Notification(_) | Message::Response(_) => true,
        Message::Error(_) => false,
    };
    match data {
        Data::Message(one) => message(one),
        Data::Batch(elements) => elements.iter().flatten().any(message),
        Data::None | Data::Invalid(_) | Data::Other { .. } => false,
    }
}

/// The consequence of the end of a stream, or of an attempt to resume it.
pub(super) enum NextRound {
    /// The client resumes the stream after a delay. The timer is armed.
    Scheduled,
    /// The client does not resume the stream.
    Over,
}

impl HttpLink {
    /// Returns the position in the stream that is open on this exchange.
    pub(in crate::client::link) fn place(&self, exchange: ExchangeId) -> Option<StreamPlace> {
        let http = self.exchanges.get(exchange).filter(|http| http.stream.is_open())?;
        Some(StreamPlace { url: Arc::clone(self.addresses.shown()), last_event: http.stream.cursor.clone() })
    }

    /// Returns the purpose of the stream on this exchange.
    pub(super) fn purpose(&self, exchange: ExchangeId) -> StreamOf {
        match self.exchanges.get(exchange).map(|http| &http.role) {
            Some(ExchangeRole::Listener | ExchangeRole::Sse | ExchangeRole::Request(_, Purpose::Listen)) => {
                StreamOf::Listener
            }
            Some(ExchangeRole::Request(_, Purpose::Call(call))) => StreamOf::Call(*call),
            _ => StreamOf::Own,
        }
    }

    /// Notes that an item arrived on an exchange.
    pub(super) fn sign_of_life(&mut self, env: &mut ClientEnv, exchange: ExchangeId) {
        let idle = env.config.listener_idle;
        let now = env.now;
        let Some(http) = self.exchanges.get_mut(exchange).filter(|http| http.stream.is_open()) else { return };
        match http.role {
            ExchangeRole::Listener | ExchangeRole::Sse => http.stream.advance(),
            ExchangeRole::Request(_, Purpose::Listen) => {}
            _ => return,
        }
        if http.role == ExchangeRole::Sse {
            self.on_stream_alive();
        }
        env.timers.set(Timer::Idle(exchange), idle.map(|idle| now + idle));
    }

    /// Notes an event on the stream of an exchange: the cursor, the delay before a resumption, and
    /// the delivered content.
    pub(super) fn note_event(
        &mut self,
        env: &mut ClientEnv,
        exchange: ExchangeId,
        id: Option<&str>,
        retry: Option<Duration>,
        data: &Data,
    ) {
        let (legacy, most) = (env.is_legacy(), env.config.limits.frame.max_id);
        let Some(http) = self.exchanges.get_mut(exchange) else { return };
        if http.has_failed() {
            return;
        }
        if let Some(retry) = retry {
            http.stream.backoff.set_retry(retry);
        }
        let fits = id.is_none_or(|id| http.stream.on_id(id, most));
        if let (Some(place), Some(_)) = (&mut env.stream, id) {
            place.last_event.clone_from(&http.stream.cursor);
        }
        if http.is_answer(data) {
            // The stream ends with its response. No later event is compared to it, so its size does
            // not matter.
            http.stream.brought = Brought::Message;
        } else if legacy {
            http.stream.on_event(&self.event_key, id.filter(|_| fits), data);
        }
        if let Some(id) = id.filter(|id| legacy && id.len() > most) {
            let detail = alloc::format!("{} bytes: the stream cannot be resumed from this event", id.len());
            env.diagnose(DiagnosticKind::LongEventId, detail);
        }
    }

    /// Handles the idle timeout of a listener: the connection is dead, or appears to be.
    pub(in crate::client) fn on_idle(&mut self, env: &mut ClientEnv, exchange: ExchangeId) {
        if self.is_sse_stream(exchange) {
            return self.on_stream_silent(env, exchange);
        }
        if self.cut_http(env, exchange) {
            self.on_stream_end(env, exchange, StreamEnd::Idle);
        }
    }

    /// Ends a stream after an event that is no message, which the configuration does not tolerate.
    pub(super) fn reject_stream(&mut self, env: &mut ClientEnv, exchange: ExchangeId) {
        self.end_timers(env, exchange);
        if self.listener == Some(exchange) {
            return self.give_up_listener(env, exchange, StreamEnd::Ended, false);
        }
        if self.is_sse_stream(exchange) {
            return self.reject_sse(env, exchange);
        }
        if self.cut_http(env, exchange)
            && let Some(http) = self.exchanges.remove(exchange)
        {
            self.on_no_response(env, http, StreamEnd::Ended, false);
        }
    }

    /// Returns whether another attempt may follow one that ended so, and how it ended.
    pub(super) fn end_of_attempt(http: &HttpExchange) -> (bool, StreamEnd) {
        let Some(head) = &http.head else { return (true, StreamEnd::Ended) };
        if !success(head.status) {
            let transient = matches!(head.status, 408 | 429 | 502..=504);
            return (transient, StreamEnd::Status { status: head.status, retry_after: head.headers.retry_after() });
        }
        if media_type(&head.headers) != Media::EventStream {
            let kind = head.headers.get("content-type").map(ToOwned::to_owned);
            return (false, StreamEnd::ContentType(kind));
        }
        (true, StreamEnd::Ended)
    }

    /// Schedules the resumption of a stream whose exchange ended before the response was complete.
    /// Returns [`Next::Over`] if no further attempt is allowed.
    pub(super) fn schedule_resume(&mut self, env: &mut ClientEnv, exchange: ExchangeId, cause: StreamEnd) -> NextRound {
        let (random, now, policy) = (env.seed.next_u64(), env.now, env.config.resume);
        let Some(http) = self.exchanges.get_mut(exchange) else { return NextRound::Over };
        let serves = match http.role {
            ExchangeRole::Listener => Serves::Listener,
            ExchangeRole::Sse => Serves::Messages { call_waits: env.ids.has_calls() },
            _ => Serves::Request,
        };
        let round = http.stream.round(now, serves, cause.retry_after());
        let if_call_waits = match serves {
            Serves::Messages { .. } => {
                let round = Round { serves: Serves::Messages { call_waits: true }, ..round };
                http.stream.backoff.clone().next(policy, round, random)
            }
            Serves::Request | Serves::Listener => None,
        };
        let Some((attempt, wait)) = http.stream.backoff.next(policy, round, random) else { return NextRound::Over };
        http.stage = ExchangeStage::AwaitingResume;
        let last_event = http.stream.cursor.as_deref().map(ToOwned::to_owned);
        env.timers.set(Timer::Resume(exchange), Some(now + wait));
        let stream = self.purpose(exchange);
        env.event(Event::Reconnecting { stream, attempt, wait, cause, last_event });
        if let Some((_, wait)) = if_call_waits {
            self.set_resume_by(now + wait);
        }
        NextRound::Scheduled
    }

    /// Schedules a fresh series of attempts for a stream that was given up.
    pub(super) fn schedule_retry(&mut self, env: &mut ClientEnv, exchange: ExchangeId, wait: Duration) {
        self.end_timers(env, exchange);
        if let Some(http) = self.exchanges.get_mut(exchange) {
            http.stage = ExchangeStage::AwaitingResume;
            env.timers.set(Timer::Resume(exchange), Some(env.now + wait));
        }
    }

    /// Resumes a stream after its delay.
    pub(in crate::client) fn on_resume(&mut self, env: &mut ClientEnv, exchange: ExchangeId) {
        let Some(http) = self.exchanges.get(exchange) else { return };
        if http.role == ExchangeRole::Response {
            self.begin_in_place(env, exchange, None);
            return;
        }
        let sent = HttpRequest::get(env.version(), http.stream.cursor.as_deref());
        let (is_listener, is_sse) = (http.role == ExchangeRole::Listener, http.role == ExchangeRole::Sse);
        if let Some(http) = self.exchanges.get_mut(exchange).filter(|_| is_listener || is_sse) {
            // A later attempt is another request. A refresh that failed for a time is tried again,
            // in place of a login.
            http.login.tried = Tried::default();
        }
        let Some(exchange) = self.begin_again(env, exchange, Some(sent), None) else { return };
        if is_listener {
            self.listener = Some(exchange);
        }
        if is_sse {
            self.set_sse_stream(exchange);
        }
        self.limit_attempt(env, exchange);
    }

    /// Limits the time until the response head of an attempt, unless that waits for credentials.
    pub(in crate::client) fn limit_attempt(&mut self, env: &mut ClientEnv, exchange: ExchangeId) {
        if self.exchanges.is_parked(exchange) {
            return;
        }
        let limit = env.config.timeout.unwrap_or(env.config.initialize_timeout);
        env.timers.set(Timer::Answer(exchange), Some(env.now + limit));
    }

    /// Returns whether the client can resume the response to a request.
    pub(super) fn is_resumable(&self, env: &ClientEnv, http: &HttpExchange) -> bool {
        env.is_legacy() && http.stream.cursor.is_some()
    }
}
