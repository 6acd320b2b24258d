//! Event streams that break off before all was said, and how the rest of them is asked for: with a GET that names the last event
//! (2025-11-25 transports, resumability and redelivery). 2026-07-28 has nothing of this. Each stream keeps its own state: neither the cursor
//! nor the wait of one stream is ever used for another.

use super::repeats::{EventKey, Novelty, Repeats};
use super::{Http, Request, Role, Stage, retry_after, success};
use crate::client::backoff::{Backoff, Brought, LONG, Round, Serves};
use crate::client::ids::Purpose;
use crate::client::link::Exchange;
use crate::client::{Client, Event, StreamOf, Timer};
use crate::error::{DiagnosticKind, StreamEnd};
use crate::exchange::{Data, ExchangeId};
use crate::frame::{Media, media_type};
use crate::rpc::Message;
use crate::time::Instant;
use alloc::borrow::ToOwned;
use alloc::string::String;
use core::time::Duration;

/// What a stream is from one exchange to the next.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The id of the last event that had one.
    pub(super) cursor: Option<String>,
    pub(super) backoff: Backoff,
    repeats: Repeats,
    /// What the exchange on the wire has brought.
    brought: Brought,
    /// When the exchange on the wire began.
    began: Instant,
    /// When it turned out to be an event stream.
    opened: Option<Instant>,
    /// An exchange before it was one.
    was_open: bool,
}

impl Stream {
    /// An exchange begins, the first or another one.
    pub(super) fn begin(&mut self, now: Instant) {
        self.was_open = self.was_open();
        (self.brought, self.began, self.opened) = (Brought::Nothing, now, None);
    }

    pub(super) fn on_open(&mut self, now: Instant) {
        self.opened = Some(now);
    }

    /// The server named the id of an event. Returns whether it is an id, and fits: an empty one takes the last one back (WHATWG HTML
    /// section 9.2.6), and from one that is too long the stream cannot be resumed.
    fn on_id(&mut self, id: &str, most: usize) -> bool {
        let fits = !id.is_empty() && id.len() <= most;
        self.cursor = Some(id).filter(|_| fits).map(ToOwned::to_owned);
        fits
    }

    /// An event came.
    fn on_event(&mut self, key: &EventKey, id: Option<&str>, data: &Data) {
        // Without an id it is never a repeat, and nothing that is new by itself.
        let novelty = id.map_or(Novelty::OtherData, |id| self.repeats.add(key, id, data));
        if novelty != Novelty::Repeat && delivers(data) {
            self.brought = Brought::Message;
        } else if novelty == Novelty::NewId {
            self.advance();
        }
    }

    fn advance(&mut self) {
        self.brought = self.brought.max(Brought::Progress);
    }

    pub(super) const fn is_open(&self) -> bool {
        self.opened.is_some()
    }

    /// Whether it, or an exchange before it, was open.
    pub(super) const fn was_open(&self) -> bool {
        self.was_open || self.opened.is_some()
    }

    /// The exchange on the wire is over.
    fn round(&self, now: Instant, serves: Serves, retry_after: Option<Duration>) -> Round {
        let lasting = serves == Serves::Listener && self.opened.is_some_and(|at| now.since(at) >= LONG);
        let brought = if lasting { self.brought.max(Brought::Progress) } else { self.brought };
        Round { serves, brought, lasted: now.since(self.began), retry_after }
    }
}

/// Whether an event brings what a stream is there for. A ping only asks for an answer, and an error without an id answers nothing.
fn delivers(data: &Data) -> bool {
    let message = |message: &Message| match message {
        Message::Request(request) => request.method != "ping",
        Message::Notification(_) | Message::Response(_) => true,
        Message::Error(_) => false,
    };
    match data {
        Data::Message(one) => message(one),
        Data::Batch(elements) => elements.iter().flatten().any(message),
        Data::None | Data::Bad(_) | Data::Other { .. } => false,
    }
}

/// What follows the end of a stream, or of an attempt to go on with it.
pub(super) enum Next {
    /// The rest is asked for after a wait; the timer is armed.
    Scheduled,
    /// There is nothing more to be had.
    Over,
}

impl Client {
    /// Something came on an exchange.
    pub(super) fn sign_of_life(&mut self, exchange: ExchangeId) {
        let idle = self.config.listener_idle;
        let now = self.now;
        let Some(http) = self.exchanges.http_mut(exchange).filter(|http| http.stream.is_open()) else { return };
        match http.role {
            Role::Listener => http.stream.advance(),
            Role::Request(_, Purpose::Listen) => {}
            _ => return,
        }
        self.timers.set(Timer::Idle(exchange), idle.map(|idle| now + idle));
    }

    /// An event came on the stream of an exchange: where the stream would be resumed from, when, and what it has brought.
    pub(super) fn note_event(&mut self, exchange: ExchangeId, id: Option<&str>, retry: Option<Duration>, data: &Data) {
        let (legacy, most) = (self.is_legacy(), self.config.limits.frame.max_id);
        let Some(Exchange::Http(http)) = self.exchanges.get_mut(&exchange) else { return };
        if http.has_failed() {
            return;
        }
        if let Some(retry) = retry {
            http.stream.backoff.set_retry(retry);
        }
        let fits = id.is_none_or(|id| http.stream.on_id(id, most));
        if http.is_answer(data) {
            // The stream ends with it: there is nothing to compare it to later, however large it is.
            http.stream.brought = Brought::Message;
        } else if legacy {
            http.stream.on_event(&self.http_state.event_key, id.filter(|_| fits), data);
        }
        if let Some(id) = id.filter(|id| legacy && id.len() > most) {
            let detail = alloc::format!("{} bytes: the stream cannot be resumed from this event", id.len());
            self.diagnose(DiagnosticKind::LongEventId, detail);
        }
    }

    /// Nothing came of a listener for as long as may be: the connection is dead, or looks like it.
    pub(in crate::client) fn on_idle(&mut self, exchange: ExchangeId) {
        if self.cut_http(exchange) {
            self.on_stream_end(exchange, StreamEnd::Idle);
        }
    }

    /// An event that is no message came where that is not borne.
    pub(super) fn reject_stream(&mut self, exchange: ExchangeId) {
        self.end_timers(exchange);
        if self.http_state.listener == Some(exchange) {
            return self.give_up_listener(exchange, StreamEnd::Ended, false);
        }
        if self.cut_http(exchange)
            && let Some(Exchange::Http(http)) = self.exchanges.remove(&exchange)
        {
            self.on_no_response(*http, StreamEnd::Ended);
        }
    }

    /// Whether an attempt that ended so may be followed by another, and how long the server wants it to be.
    pub(super) fn end_of_attempt(http: &Http) -> (bool, StreamEnd, Option<Duration>) {
        let Some(head) = &http.head else { return (true, StreamEnd::Ended, None) };
        if !success(head.status) {
            let transient = matches!(head.status, 408 | 429 | 502..=504);
            return (transient, StreamEnd::Status(head.status), retry_after(head));
        }
        if media_type(&head.headers) != Media::EventStream {
            let kind = head.headers.get("content-type").map(ToOwned::to_owned);
            return (false, StreamEnd::ContentType(kind), None);
        }
        (true, StreamEnd::Ended, None)
    }

    /// The exchange is over before all was said: it rests until the rest is asked for, or that was all.
    pub(super) fn schedule_resume(
        &mut self,
        exchange: ExchangeId,
        cause: StreamEnd,
        at_least: Option<Duration>,
    ) -> Next {
        let (random, now, policy) = (self.seed.next_u64(), self.now, self.config.resume);
        let Some(http) = self.exchanges.http_mut(exchange) else { return Next::Over };
        let serves = if http.role == Role::Listener { Serves::Listener } else { Serves::Request };
        let round = http.stream.round(now, serves, at_least);
        let Some((attempt, wait)) = http.stream.backoff.next(policy, round, random) else { return Next::Over };
        http.stage = Stage::AwaitingResume;
        let stream = match &http.role {
            Role::Listener => StreamOf::Listener,
            Role::Request(_, Purpose::Call(call)) => StreamOf::Call(*call),
            _ => StreamOf::Own,
        };
        let last_event = http.stream.cursor.clone();
        self.timers.set(Timer::Resume(exchange), Some(now + wait));
        self.out.soft(Event::Reconnecting { stream, attempt, wait, cause, last_event });
        Next::Scheduled
    }

    /// The exchange of a stream that was given up rests until it is tried from the beginning.
    pub(super) fn schedule_retry(&mut self, exchange: ExchangeId, wait: Duration) {
        self.end_timers(exchange);
        if let Some(http) = self.exchanges.http_mut(exchange) {
            http.stage = Stage::AwaitingResume;
            self.timers.set(Timer::Resume(exchange), Some(self.now + wait));
        }
    }

    /// The wait is over.
    pub(in crate::client) fn on_resume(&mut self, exchange: ExchangeId) {
        let headers = self.bare_headers();
        let Some(http) = self.exchanges.http(exchange) else { return };
        let sent = Request::get(headers, http.stream.cursor.as_deref());
        let is_listener = http.role == Role::Listener;
        let Some(exchange) = self.begin_again(exchange, Some(sent)) else { return };
        if is_listener {
            self.http_state.listener = Some(exchange);
        }
        self.limit_attempt(exchange);
    }

    /// The head of what was asked for must come in time.
    pub(super) fn limit_attempt(&mut self, exchange: ExchangeId) {
        let limit = self.config.timeout.unwrap_or(self.config.initialize_timeout);
        self.timers.set(Timer::Answer(exchange), Some(self.now + limit));
    }

    /// Whether the answer to a request may come in parts.
    pub(super) fn is_resumable(&self, http: &Http) -> bool {
        self.is_legacy() && http.stream.cursor.is_some()
    }

    pub(super) fn diagnose_listener(&mut self, cause: &StreamEnd) {
        self.diagnose(DiagnosticKind::ListenerOff, alloc::format!("{cause}"));
    }
}
