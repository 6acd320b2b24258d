//! What comes in on the HTTP exchanges of a client: heads, events and messages, and where they belong. What the end of an exchange means is
//! `exchange_end.rs`.

use super::exchange_end::ExchangeEnd;
use super::{Http, Role, Stage, auth, success};
use crate::client::era::tells_of_era;
use crate::client::ids::{Match, Purpose};
use crate::client::{Client, SseDecode, State, Timer};
use crate::error::DiagnosticKind;
use crate::exchange::{Closed, Data, ExchangeEvent, ExchangeId, Inbound, Sent, SseEvent};
use crate::rpc::{ErrorObject, Id, InvalidKind, InvalidMessage, Message, Payload, Response, code};
use crate::time::Instant;
use alloc::format;
use alloc::vec::Vec;

impl Client {
    pub(in crate::client::link) fn on_http(&mut self, exchange: ExchangeId, fact: ExchangeEvent) {
        if !self.exchanges.http(exchange).is_some_and(Http::is_live) {
            return;
        }
        match fact {
            ExchangeEvent::Inbound(Inbound::End) => self.on_exchange_end(exchange, ExchangeEnd::End),
            ExchangeEvent::Inbound(item) => self.on_http_item(exchange, item),
            ExchangeEvent::Failed { sent, why } => self.on_exchange_end(exchange, ExchangeEnd::Failed { sent, why }),
            ExchangeEvent::Repeated => {
                self.exchanges.on_connected(exchange);
                if let Some(call) = self.exchanges.http(exchange).and_then(Http::call) {
                    self.mark_reached(call);
                }
            }
            ExchangeEvent::Waiting => self.exchanges.on_waiting(exchange),
            ExchangeEvent::Opened(_) => self.exchanges.on_connected(exchange),
            ExchangeEvent::From(_)
            | ExchangeEvent::ReadClosed
            | ExchangeEvent::Unsent(_)
            | ExchangeEvent::Unsendable { .. } => {}
        }
    }

    fn on_http_item(&mut self, exchange: ExchangeId, item: Inbound) {
        if matches!(self.state(), State::Closing | State::Terminated) {
            return self.on_closing_item(exchange, item);
        }
        self.sign_of_life(exchange);
        // What is answered was sent, also if the driver did not report that.
        self.exchanges.on_connected(exchange);
        let (limits, now) = (&self.config.limits.client, self.now);
        let (most_items, most_bytes) = (limits.drain_items, limits.drain_bytes);
        let Some(http) = self.exchanges.http_mut(exchange) else { return };
        if !http.wants_body() {
            http.drained = (http.drained.0 + 1, http.drained.1 + size(&item));
        }
        if http.drained.0 > most_items || http.drained.1 > most_bytes {
            return self.finish(exchange);
        }
        let ignores = http.is_decided() && !http.has_failed();
        match item {
            Inbound::Message(_) | Inbound::Invalid(_) | Inbound::Batch(_) if ignores => {}
            Inbound::Response(head) => {
                http.head = Some(head);
                self.on_response_head(exchange, now);
            }
            Inbound::Body(bytes) => {
                let room = InvalidMessage::HEAD - http.body.len().min(InvalidMessage::HEAD);
                http.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
                // Neither the rest of a long page nor a body without a type is of use to anyone.
                let is_enough = if http.has_failed() { bytes.len() >= room } else { http.wants_body() };
                if is_enough {
                    self.finish(exchange);
                }
            }
            Inbound::Event(SseEvent { id, retry, data }) => {
                if let (Role::Request(_, Purpose::Listen), Some(retry)) = (&http.role, retry) {
                    self.set_subscription_retry(retry);
                }
                self.note_event(exchange, id.as_deref(), retry, &data);
                match data {
                    Data::None => {}
                    Data::Message(message) => self.on_http_message(exchange, message),
                    Data::Batch(batch) => self.on_http_batch(exchange, batch),
                    Data::Bad(defect) => self.on_http_defect(exchange, defect),
                    Data::Other { event, .. } => self.diagnose(DiagnosticKind::ControlEvent, event),
                }
            }
            Inbound::Message(message) => self.on_http_message(exchange, message),
            Inbound::Invalid(defect) => self.on_http_defect(exchange, defect),
            Inbound::Batch(batch) => self.on_http_batch(exchange, batch),
            Inbound::Comment => {}
            item @ (Inbound::Request(_) | Inbound::Reject(_) | Inbound::End) => self.on_items(exchange, item),
        }
    }

    fn on_response_head(&mut self, exchange: ExchangeId, now: Instant) {
        let Some(http) = self.exchanges.http_mut(exchange) else { return };
        if success(http.status()) {
            // Its credentials are good. Those that a stream goes on with later may have expired by then.
            http.tried = auth::Tried::default();
        }
        if http.is_stream() {
            http.stream.on_open(now);
            if matches!(http.role, Role::Listener | Role::Request(..)) {
                self.timers.set(Timer::Answer(exchange), None);
            }
        }
        self.note_offer(exchange);
        if self.exchanges.http(exchange).is_some_and(|http| http.role == Role::Listener) {
            self.on_listener_head(exchange);
        }
        let Some(http) = self.exchanges.http(exchange) else { return };
        if http.is_other_type() {
            self.finish(exchange);
        } else if http.is_decided() && http.role != Role::Delete {
            let until = self.now + self.config.limits.client.drain_time;
            self.timers.set(Timer::Answer(exchange), Some(until));
        }
    }

    /// What is still to come of a response is not waited for.
    pub(super) fn finish(&mut self, exchange: ExchangeId) {
        if self.cut_http(exchange) {
            self.on_exchange_end(exchange, ExchangeEnd::End);
        }
    }

    fn on_http_batch(&mut self, exchange: ExchangeId, batch: Vec<Result<Message, InvalidMessage>>) {
        if !self.version().is_some_and(|version| version.rules().batches) {
            self.diagnose(DiagnosticKind::UnexpectedBatch, format!("{} messages", batch.len()));
        }
        for element in batch {
            match element {
                Ok(message) => self.on_http_message(exchange, message),
                Err(defect) => self.on_http_defect(exchange, defect),
            }
        }
    }

    fn on_http_message(&mut self, exchange: ExchangeId, message: Message) {
        let is_gone = self.exchanges.http(exchange).is_some_and(|http| self.is_session_gone(http));
        let Some(http) = self.exchanges.http_mut(exchange) else { return };
        // What stands in the body of a refusal is no message of the stream.
        if !http.has_failed() {
            http.any_message = true;
        }
        if is_gone && matches!(message, Message::Response(Response { payload: Payload::Result(_), .. })) {
            return self.diagnose(DiagnosticKind::UnexpectedResponse, "a result with HTTP 404: the session has ended");
        }
        match (message, http.has_failed().then(|| http.status())) {
            (Message::Error(error), Some(status)) => self.on_http_error(exchange, status, None, error),
            (Message::Response(Response { id, payload: Payload::Error(error) }), Some(status)) => {
                self.on_http_error(exchange, status, Some(&id), error);
            }
            (message, None) => {
                self.note_use(exchange, &message);
                self.on_message(exchange, message);
            }
            (message, Some(_)) => self.on_message(exchange, message),
        }
    }

    /// A JSON-RPC error in the body of an HTTP error: the answer to what was posted, unless it names something else, or the status says more.
    /// Of a GET it is that only if it names the request: else it tells of the attempt.
    fn on_http_error(&mut self, exchange: ExchangeId, status: u16, id: Option<&Id>, error: ErrorObject) {
        let lenient = self.config.match_text_ids;
        let found = id.map(|id| self.ids.find(id, exchange, lenient).1);
        let Some(http) = self.exchanges.http_mut(exchange) else { return };
        // A challenge is answered first; and of a session that has ended a 404 tells, whatever stands in it, but for a method that the
        // server does not know.
        let gone = status == 404 && http.in_session && error.code != code::METHOD_NOT_FOUND;
        let names_other = match found {
            Some(found) => !matches!(found, Match::Pending { .. }),
            None => http.is_get(),
        };
        let is_handshake = matches!(http.role, Role::Request(_, Purpose::Discover | Purpose::Initialize));
        let says_more = matches!(status, 401 | 403) || is_handshake && !tells_of_era(status);
        match http.role.clone() {
            Role::Request(id, purpose) if !gone && !names_other && !says_more => {
                self.complete_request(exchange, &id, purpose, Ok(Payload::Error(error)));
            }
            _ => http.error = Some(error),
        }
    }

    fn on_http_defect(&mut self, exchange: ExchangeId, defect: InvalidMessage) {
        // Of an answer to a notification nothing is wanted.
        let is_event = self.exchanges.http(exchange).is_some_and(|http| http.is_stream() && http.wants_body());
        if let Some(http) = self.exchanges.http_mut(exchange)
            && defect.kind != InvalidKind::Denied
        {
            http.last_defect = Some(defect.clone());
        }
        self.on_defect(exchange, defect);
        if is_event && self.config.sse_decode == SseDecode::Reject && self.exchanges.http(exchange).is_some() {
            self.reject_stream(exchange);
        }
    }

    /// The response has come: what follows it is read for a while, then dropped.
    pub(in crate::client) fn answered(&mut self, exchange: ExchangeId) {
        let time = self.config.limits.client.drain_time;
        let until = self.now + time;
        let Some(http) = self.exchanges.http_mut(exchange) else { return };
        if !matches!(http.role, Role::Request(..)) {
            return;
        }
        http.role = Role::Answered;
        self.timers.set(Timer::Answer(exchange), None);
        self.timers.set(Timer::Idle(exchange), None);
        if time.is_zero() {
            self.drop_exchange(exchange);
        } else {
            self.timers.set(Timer::Drain(exchange), Some(until));
        }
    }

    /// The head of a response, or the answer to a message, has not come in time.
    pub(in crate::client) fn on_answer_timeout(&mut self, exchange: ExchangeId) {
        let sent = self.exchanges.http(exchange).map_or(Sent::Maybe, Http::sent);
        if self.cut_http(exchange) {
            self.on_exchange_end(exchange, ExchangeEnd::Failed { sent, why: Closed::Timeout });
        }
    }

    /// Ends an exchange on the wire, of which something is still to be made. Whether there was one.
    pub(super) fn cut_http(&mut self, exchange: ExchangeId) -> bool {
        let Some(http) = self.exchanges.http_mut(exchange).filter(|http| http.is_live()) else { return false };
        http.stage = Stage::Over;
        self.out.abort(exchange);
        true
    }
}

/// The bytes of an item, roughly.
fn size(item: &Inbound) -> usize {
    let of = |message: &Message| match message {
        Message::Request(request) => request.params.as_ref().map_or(0, |params| params.as_bytes().len()),
        Message::Notification(note) => note.params.as_ref().map_or(0, |params| params.as_bytes().len()),
        Message::Response(Response { payload: Payload::Result(result), .. }) => result.as_bytes().len(),
        Message::Response(_) | Message::Error(_) => 0,
    };
    match item {
        Inbound::Body(bytes) | Inbound::Event(SseEvent { data: Data::Other { data: bytes, .. }, .. }) => bytes.len(),
        Inbound::Message(message) | Inbound::Event(SseEvent { data: Data::Message(message), .. }) => of(message),
        _ => 0,
    }
}
