//! Incoming items on the HTTP exchanges of a client: heads, events and messages, and the requests
//! that they belong to. `exchange_end.rs` interprets the end of an exchange.

use super::exchange_end::ExchangeEnd;
use super::{DeferredStep, ExchangeRole, ExchangeStage, HttpExchange, HttpLink, success, tells_of_era};
use crate::auth::{NONCE_FIELD, Tried};
use crate::client::env::ClientEnv;
use crate::client::ids::{Match, Purpose};
use crate::client::link::challenge::TriedStatuses;
use crate::client::link::event::LinkEvent;
use crate::client::{ControlEvent, Event, SseDecode, State, Timer};
use crate::error::DiagnosticKind;
use crate::exchange::{Closed, Data, ExchangeEvent, ExchangeId, Inbound, Sent, SseEvent};
use crate::rpc::{ErrorObject, Id, InvalidKind, InvalidMessage, Message, Payload, Response, code};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

impl HttpLink {
    pub(super) fn on_event(&mut self, env: &mut ClientEnv, exchange: ExchangeId, event: ExchangeEvent) {
        if !self.exchanges.get(exchange).is_some_and(HttpExchange::is_live) {
            return;
        }
        match event {
            ExchangeEvent::Inbound(Inbound::End) => self.on_exchange_end(env, exchange, ExchangeEnd::End),
            ExchangeEvent::Inbound(item) => self.on_item(env, exchange, item),
            ExchangeEvent::Failed { sent, why } => {
                self.on_exchange_end(env, exchange, ExchangeEnd::Failed { sent, why })
            }
            ExchangeEvent::Repeated => {
                self.exchanges.on_connected(exchange);
                if let Some(call) = self.exchanges.get(exchange).and_then(HttpExchange::call) {
                    self.events.push_back(LinkEvent::Reached(call));
                }
            }
            ExchangeEvent::Waiting => self.exchanges.on_waiting(exchange),
            ExchangeEvent::Opened(peer) => {
                self.exchanges.on_connected(exchange);
                if env.login.is_on() {
                    let address = self.exchanges.get(exchange).and_then(|http| http.address.as_ref());
                    if address.is_some_and(|address| self.is_trusted(env, address)) {
                        env.login.reached(peer.address);
                    }
                }
                if let Some(http) = self.exchanges.get_mut(exchange) {
                    http.reached = peer.address;
                }
            }
            ExchangeEvent::From(_)
            | ExchangeEvent::ReadClosed
            | ExchangeEvent::Unsent(_)
            | ExchangeEvent::Unsendable { .. } => {}
        }
    }

    fn on_item(&mut self, env: &mut ClientEnv, exchange: ExchangeId, item: Inbound) {
        if matches!(env.state(), State::Closing | State::Terminated) {
            return self.on_closing_item(env, exchange, item);
        }
        self.sign_of_life(env, exchange);
        // A response proves that the request was sent, even if the driver did not report that.
        self.exchanges.on_connected(exchange);
        if self.is_misplaced(env, exchange, &item) {
            env.diagnose(DiagnosticKind::MisplacedResponse, "in the body of its POST");
            return match item {
                Inbound::Message(message) | Inbound::Event(SseEvent { data: Data::Message(message), .. }) => {
                    self.on_message(env, exchange, message)
                }
                _ => {}
            };
        }
        let (limits, now) = (&env.config.limits.client, env.now);
        let (most_items, most_bytes) = (limits.drain_items, limits.drain_bytes);
        let Some(http) = self.exchanges.get_mut(exchange) else { return };
        if !http.wants_body() {
            http.drained = (http.drained.0 + 1, http.drained.1 + size(&item));
        }
        if http.drained.0 > most_items || http.drained.1 > most_bytes {
            return self.finish(env, exchange);
        }
        let ignores = http.is_decided() && !http.has_failed();
        match item {
            Inbound::Message(_) | Inbound::Invalid(_) | Inbound::Batch(_) if ignores => {}
            Inbound::Response(head) => {
                http.head = Some(head);
                self.on_response_head(env, exchange, now);
            }
            Inbound::Body(bytes) => {
                let room = InvalidMessage::HEAD - http.body.len().min(InvalidMessage::HEAD);
                http.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
                // The client needs neither the rest of a long error page nor a body without a media
                // type.
                let is_enough = if http.has_failed() { bytes.len() >= room } else { http.wants_body() };
                if is_enough {
                    self.finish(env, exchange);
                }
            }
            Inbound::Event(SseEvent { id, retry, data }) => {
                if let (ExchangeRole::Request(_, Purpose::Listen), Some(retry)) = (&http.role, retry) {
                    self.events.push_back(LinkEvent::SubscriptionRetry(retry));
                }
                let is_refused = http.has_failed();
                self.note_event(env, exchange, id.as_deref(), retry, &data);
                match data {
                    Data::None => {}
                    Data::Message(message) => self.on_message(env, exchange, message),
                    Data::Batch(batch) => self.on_batch(env, exchange, batch),
                    Data::Invalid(defect) => self.on_defect(env, exchange, defect),
                    // The body of a refusal is not the stream, whatever its media type.
                    Data::Other { event, data }
                        if event == "endpoint" && !is_refused && self.is_sse_stream(exchange) =>
                    {
                        self.on_endpoint(env, exchange, &data);
                    }
                    Data::Other { event, data } if self.on_dialect_event(env, exchange, &event, &data) => {}
                    Data::Other { event, data } if env.config.control.contains(&event) => {
                        let stream = Some(self.purpose(exchange));
                        env.event(Event::Control(Box::new(ControlEvent { stream, event, id, data })));
                    }
                    Data::Other { event, .. } => env.diagnose(DiagnosticKind::ControlEvent, event),
                }
            }
            Inbound::Message(message) => self.on_message(env, exchange, message),
            Inbound::Invalid(defect) => self.on_defect(env, exchange, defect),
            Inbound::Batch(batch) => self.on_batch(env, exchange, batch),
            Inbound::Comment => {}
            Inbound::Request(_) | Inbound::Reject(_) | Inbound::End => {
                env.diagnose(DiagnosticKind::BadEvent, "an item that this exchange cannot have");
            }
        }
    }

    /// HTTP+SSE: returns whether an item in the body of a POST is the response to its request. Some
    /// servers write it there.
    fn is_misplaced(&self, env: &ClientEnv, exchange: ExchangeId, item: &Inbound) -> bool {
        let (Inbound::Message(message) | Inbound::Event(SseEvent { data: Data::Message(message), .. })) = item else {
            return false;
        };
        let (Message::Response(response), Some(http)) = (message, self.exchanges.get(exchange)) else { return false };
        matches!(http.role, ExchangeRole::Posted(..))
            && success(http.status())
            && env.ids.asked_on(&response.id, env.config.compat.match_text_ids) == Some(exchange)
    }

    fn on_response_head(&mut self, env: &mut ClientEnv, exchange: ExchangeId, now: Instant) {
        let Some(http) = self.exchanges.get_mut(exchange) else { return };
        if success(http.status()) {
            // The server accepted the credentials. They may have expired when the client resumes
            // the stream.
            http.tried = TriedStatuses::default();
            (http.login.tried, http.login.is_repeated) = (Tried::default(), false);
            self.note_address(exchange);
        }
        self.note_nonce(env, exchange);
        let Some(http) = self.exchanges.get_mut(exchange) else { return };
        if http.is_stream() {
            http.stream.on_open(now);
            if matches!(http.role, ExchangeRole::Listener | ExchangeRole::Request(..)) {
                env.timers.set(Timer::Answer(exchange), None);
            }
        }
        self.note_handshake(exchange);
        if self.exchanges.get(exchange).is_some_and(|http| http.role == ExchangeRole::Listener) {
            self.on_listener_head(env, exchange);
        }
        let Some(http) = self.exchanges.get(exchange) else { return };
        if http.is_other_type() {
            self.finish(env, exchange);
        } else if http.is_decided() && http.role != ExchangeRole::Delete {
            let until = env.now + env.config.limits.client.drain_time;
            env.timers.set(Timer::Answer(exchange), Some(until));
        }
    }

    /// Notes the nonce for the proofs of later requests.
    fn note_nonce(&self, env: &mut ClientEnv, exchange: ExchangeId) {
        let Some(http) = self.exchanges.get(exchange).filter(|_| env.login.is_on()) else { return };
        if let (Some(address), Some(head)) = (&http.address, &http.head)
            && self.is_trusted(env, address)
        {
            env.login.note_nonce(&address.origin, head.headers.get(NONCE_FIELD));
        }
    }

    /// Ends an exchange without waiting for the rest of the response.
    pub(super) fn finish(&mut self, env: &mut ClientEnv, exchange: ExchangeId) {
        if self.cut_http(env, exchange) {
            self.on_exchange_end(env, exchange, ExchangeEnd::End);
        }
    }

    fn on_batch(&mut self, env: &mut ClientEnv, exchange: ExchangeId, batch: Vec<Result<Message, InvalidMessage>>) {
        if !env.version().is_some_and(|version| version.rules().batches) {
            env.diagnose(DiagnosticKind::UnexpectedBatch, format!("{} messages", batch.len()));
        }
        self.steps.extend(batch.into_iter().map(|element| DeferredStep::Element(exchange, element)));
    }

    pub(super) fn on_message(&mut self, env: &mut ClientEnv, exchange: ExchangeId, message: Message) {
        env.note_nulls(&message);
        let is_gone = self.exchanges.get(exchange).is_some_and(|http| self.is_session_gone(env, http));
        let Some(http) = self.exchanges.get_mut(exchange) else { return };
        // A message in the body of a refusal is no message of the stream.
        if !http.has_failed() {
            http.any_message = true;
        }
        if is_gone && matches!(message, Message::Response(Response { payload: Payload::Result(_), .. })) {
            return env.diagnose(DiagnosticKind::UnexpectedResponse, "a result with HTTP 404: the session has ended");
        }
        match (message, http.has_failed().then(|| http.status())) {
            (Message::Error(error), Some(status)) => self.on_error(env, exchange, status, None, error),
            (Message::Response(Response { id, payload: Payload::Error(error), .. }), Some(status)) => {
                self.on_error(env, exchange, status, Some(&id), error);
            }
            (message, None) => {
                let exchange = self.place_of(env, exchange, &message);
                self.note_use(env, exchange, &message);
                self.events.push_back(LinkEvent::Message(exchange, message));
            }
            (message, Some(_)) => self.events.push_back(LinkEvent::Message(exchange, message)),
        }
    }

    /// Handles a JSON-RPC error in the body of an HTTP error. On a POST, the error answers the
    /// request unless its `id` names another one, or the status takes precedence. On a GET, the
    /// error answers the request only if its `id` matches; otherwise it describes the failed
    /// attempt.
    fn on_error(
        &mut self,
        env: &mut ClientEnv,
        exchange: ExchangeId,
        status: u16,
        id: Option<&Id>,
        error: ErrorObject,
    ) {
        let lenient = env.config.compat.match_text_ids;
        let found = id.map(|id| env.ids.find(id, exchange, lenient).1);
        let Some(http) = self.exchanges.get_mut(exchange) else { return };
        // A challenge takes precedence. In a session, a 404 means that the session has ended,
        // whatever its body contains, unless the error is an unknown method.
        let gone = status == 404 && http.in_session && error.code != code::METHOD_NOT_FOUND;
        let names_other = match found {
            Some(found) => !matches!(found, Match::Pending { .. }),
            None => http.is_get(),
        };
        let is_handshake = matches!(http.request(), Some((_, Purpose::Discover | Purpose::Initialize)));
        let says_more = matches!(status, 401 | 403) || is_handshake && !tells_of_era(status);
        match http.role.clone() {
            ExchangeRole::Request(id, purpose) | ExchangeRole::Posted(id, purpose)
                if !gone && !names_other && !says_more =>
            {
                self.events.push_back(LinkEvent::Refused(exchange, id, purpose, error));
            }
            _ => http.error = Some(error),
        }
    }

    pub(super) fn on_defect(&mut self, env: &mut ClientEnv, exchange: ExchangeId, defect: InvalidMessage) {
        // The client needs nothing from the response to a notification.
        let is_event = self.exchanges.get(exchange).is_some_and(|http| http.is_stream() && http.wants_body());
        if let Some(http) = self.exchanges.get_mut(exchange)
            && defect.kind != InvalidKind::Denied
        {
            http.last_defect = Some(defect.clone());
        }
        let place = defect.id.as_ref().filter(|_| !defect.has_method).map(|id| self.asked_on(env, exchange, id));
        self.events.push_back(LinkEvent::Invalid(place.unwrap_or(exchange), defect));
        if is_event && env.config.compat.sse_decode == SseDecode::Reject {
            self.steps.push_front(DeferredStep::RejectStream(exchange));
        }
    }

    /// Handles the response to a request. The client reads what follows for a limited time, then
    /// drops the exchange.
    pub(in crate::client::link) fn answered(&mut self, env: &mut ClientEnv, exchange: ExchangeId) {
        let time = env.config.limits.client.drain_time;
        let until = env.now + time;
        let Some(http) = self.exchanges.get_mut(exchange) else { return };
        if !http.awaits_answer() {
            return;
        }
        if matches!(http.stage, ExchangeStage::Held | ExchangeStage::Signing(_) | ExchangeStage::Parked(_)) {
            // Over HTTP+SSE a server can answer what it has refused, or not received.
            self.drop_exchange(env, exchange);
            return self.events.push_back(LinkEvent::Authorized);
        }
        http.role = ExchangeRole::Answered;
        env.timers.set(Timer::Answer(exchange), None);
        env.timers.set(Timer::Idle(exchange), None);
        if time.is_zero() {
            self.drop_exchange(env, exchange);
        } else {
            env.timers.set(Timer::Drain(exchange), Some(until));
        }
    }

    /// Handles the timeout of a response head, or of the response to a message.
    pub(super) fn on_answer_timeout(&mut self, env: &mut ClientEnv, exchange: ExchangeId) {
        let sent = self.exchanges.get(exchange).map_or(Sent::Maybe, HttpExchange::sent);
        if self.cut_http(env, exchange) {
            self.on_exchange_end(env, exchange, ExchangeEnd::Failed { sent, why: Closed::Timeout });
        }
    }

    /// Aborts an exchange whose end is still to be handled: it is on the wire, or held back.
    /// Returns whether there was one.
    pub(super) fn cut_http(&mut self, env: &mut ClientEnv, exchange: ExchangeId) -> bool {
        let Some(http) = self.exchanges.get_mut(exchange) else { return false };
        match http.stage {
            ExchangeStage::Live => env.out.abort(exchange),
            ExchangeStage::Held => {}
            ExchangeStage::Signing(step) => env.login.withdraw_proof(step),
            ExchangeStage::AwaitingResume | ExchangeStage::Parked(_) | ExchangeStage::Over => return false,
        }
        http.stage = ExchangeStage::Over;
        true
    }
}

/// Returns the approximate size of an item in bytes.
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
