//! How requests and answers travel: everything on one duplex exchange, or each request on an HTTP exchange of its own.

mod duplex;
mod exchanges;
#[cfg(feature = "http")]
mod http;
#[cfg(not(feature = "http"))]
mod no_http;

#[cfg(feature = "http")]
pub(super) use http::HttpState;

pub(super) use exchanges::Exchanges;

use super::ids::{Match, Purpose};
use super::{CancelSignal, Client, Event, State, Target, Termination, Timer};
use crate::error::{CallError, DiagnosticKind, StreamEnd};
use crate::exchange::{Closed, Endpoint, ExchangeEvent, ExchangeId, Inbound, Outbound, Sent};
use crate::input::{CallId, NotificationId};
use crate::model::lifecycle::meta;
use crate::rpc::{self, DecodeError, Id, InvalidKind, InvalidMessage, Message, Object, Payload, RawJson};
use crate::version::{Era, ProtocolVersion};
#[cfg(feature = "http")]
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;

/// An exchange that is not over. With a duplex target there is one at a time.
#[derive(Debug)]
pub(super) enum Exchange {
    /// The connection itself.
    Duplex(Duplex),
    /// One request and its answer.
    #[cfg(feature = "http")]
    Http(Box<http::Http>),
}

/// The state of a duplex exchange.
#[derive(Debug, Default)]
pub(super) struct Duplex {
    /// Whether it was ever open: else the server has seen nothing.
    pub(super) opened: bool,
    /// Bytes handed over and not written.
    unsent: usize,
    /// Bytes written, as far as the driver reported them one after the other.
    written: u64,
    /// Whether we said that we have said all.
    sent_end: bool,
}

impl Exchange {
    /// Whether there is one on the wire: one over HTTP may only be waiting to be made again.
    fn is_live(&self) -> bool {
        match self {
            Self::Duplex(_) => true,
            #[cfg(feature = "http")]
            Self::Http(http) => http.is_live(),
        }
    }

    /// Whether anything of it can have reached the server.
    fn sent(&self) -> Sent {
        match self {
            Self::Duplex(_) => Sent::Maybe,
            #[cfg(feature = "http")]
            Self::Http(http) => http.sent(),
        }
    }
}

/// What came in place of an answer.
enum ResponseFailure {
    Unreadable(DecodeError),
    /// A hook refused the request, or the answer.
    Denied {
        sent: Sent,
        reason: String,
    },
}

impl Client {
    pub(super) fn on_fact(&mut self, exchange: ExchangeId, fact: ExchangeEvent) {
        match self.exchanges.get(&exchange) {
            // What was on its way when the exchange was ended.
            None if self.exchanges.was_minted(exchange) => {}
            None => self.diagnose(DiagnosticKind::UnknownExchange, format!("{exchange:?}")),
            Some(Exchange::Duplex(_)) => self.on_duplex(exchange, fact),
            #[cfg(feature = "http")]
            Some(Exchange::Http(_)) => self.on_http(exchange, fact),
        }
    }

    /// Sends a request, and returns its id.
    pub(super) fn send_request(
        &mut self,
        purpose: Purpose,
        method: &str,
        params: Object,
        version: ProtocolVersion,
    ) -> Id {
        let exchange = self.duplex().unwrap_or_else(|| self.exchanges.mint());
        let id = self.ids.mint(self.now, purpose, exchange);
        let params = self.with_meta(params, &id, purpose, version);
        let message = rpc::request(&id, method, params.as_ref());
        match self.exchanges.get(&exchange) {
            Some(_) => self.send_message(exchange, message),
            #[cfg(feature = "http")]
            None => {
                let request = (method, params.as_ref());
                self.post_request(exchange, (id.clone(), purpose), request, message, version);
            }
            #[cfg(not(feature = "http"))]
            None => {}
        }
        id
    }

    /// Adds what the era demands to the `_meta` of a request, and the progress token if progress is wanted: our own, whatever stood there.
    fn with_meta(&self, mut params: Object, id: &Id, purpose: Purpose, version: ProtocolVersion) -> Option<Object> {
        let mut member = params.remove(meta::META).and_then(|meta| Object::read(&meta).ok()).unwrap_or_default();
        if version.era() == Era::Modern {
            for (key, value) in self.modern_meta(version).iter() {
                member.set(key, value.clone());
            }
        }
        member.remove(meta::PROGRESS_TOKEN);
        if let Purpose::Call(call) = purpose
            && self.wants_token(call)
        {
            member.set(meta::PROGRESS_TOKEN, RawJson::from(id));
        }
        if !member.is_empty() {
            params.set(meta::META, member.into());
        }
        (!params.is_empty()).then_some(params)
    }

    /// Sends a notification. `id`: its end is reported.
    pub(super) fn send_notification(&mut self, method: &str, params: &Object, id: Option<NotificationId>) {
        let params = (!params.is_empty()).then_some(params);
        let message = rpc::notification(method, params);
        match self.duplex() {
            Some(exchange) => self.send_message(exchange, message),
            #[cfg(feature = "http")]
            None => self.post_notification(method, params, message, id),
            #[cfg(not(feature = "http"))]
            None => {
                let _ = id;
            }
        }
    }

    /// Says the response to a request of the server that came on `exchange`.
    pub(super) fn send_response(&mut self, exchange: ExchangeId, message: Bytes) {
        #[cfg(feature = "http")]
        if !self.is_duplex() {
            return self.post_response(message);
        }
        self.send_message(exchange, message);
    }

    /// Says a message on a duplex exchange, unless we have said all there: then nobody would hear it.
    pub(super) fn send_message(&mut self, exchange: ExchangeId, message: Bytes) {
        if matches!(self.exchanges.get(&exchange), Some(Exchange::Duplex(Duplex { sent_end: false, .. }))) {
            self.out.send(exchange, Outbound::Message(message));
        }
    }

    /// Tells the server that a call is of no interest any more, by the means of the transport. `initialize` and the probe are no calls, so
    /// they are never named.
    pub(super) fn signal_cancel(&mut self, call: CallId, reason: Option<&str>) {
        let Some(super::calls::Stage::Sent(id)) = self.calls.get(&call).map(|call| &call.stage) else { return };
        let id = id.clone();
        self.send_cancel(&id, reason);
    }

    /// Tells the server that the answer to this request is of no interest any more.
    pub(super) fn send_cancel(&mut self, id: &Id, reason: Option<&str>) {
        let is_legacy = self.is_legacy();
        let has_begun = !self.is_unsent(id);
        if self.config.cancel_signal == CancelSignal::IoEvent && has_begun && (is_legacy || self.is_duplex()) {
            let params = Object::new().with("requestId", id).with_opt("reason", reason);
            self.send_notification("notifications/cancelled", &params, None);
        }
        // From 2026-07-28 on closing the response stream is the signal over HTTP, and there is no softer way. Before that it is none, and
        // frees the connection.
        if !self.is_duplex()
            && let Some(exchange) = self.ids.exchange(id)
        {
            self.drop_exchange(exchange);
        }
    }

    /// Nothing is waited for on this exchange.
    fn end_timers(&mut self, exchange: ExchangeId) {
        for timer in [Timer::Drain(exchange), Timer::Answer(exchange), Timer::Idle(exchange), Timer::Resume(exchange)] {
            self.timers.set(timer, None);
        }
    }

    /// Ends an exchange from our side.
    pub(super) fn drop_exchange(&mut self, exchange: ExchangeId) {
        let sent = self.exchanges.get(&exchange).map_or(Sent::Maybe, Exchange::sent);
        self.drop_exchange_since(exchange, CallError::Closed { sent, why: Closed::Aborted });
    }

    /// Ends an exchange from our side, for a reason that a notification on it ends with.
    pub(super) fn drop_exchange_since(&mut self, exchange: ExchangeId, error: CallError) {
        if let Some(state) = self.exchanges.remove(&exchange) {
            self.end_timers(exchange);
            if state.is_live() {
                self.out.abort(exchange);
            }
            match state {
                Exchange::Duplex(_) => self.end_notifications(&Closed::Aborted),
                #[cfg(feature = "http")]
                Exchange::Http(http) => self.lose_notification(&http, error),
            }
            #[cfg(not(feature = "http"))]
            drop(error);
            self.terminate_if_done();
        }
    }

    /// Ends an exchange over HTTP on which an answer is awaited that nobody wants any more.
    pub(super) fn abandon(&mut self, exchange: ExchangeId) {
        #[cfg(feature = "http")]
        if matches!(self.exchanges.get(&exchange), Some(Exchange::Http(http)) if http.awaits_answer()) {
            self.drop_exchange(exchange);
        }
        #[cfg(not(feature = "http"))]
        let _ = exchange;
    }

    /// Ends all exchanges: a duplex one in order, HTTP ones at once. If the application closed the client, a notification that is on its way
    /// over HTTP has some time left. A connection that is still being made is dropped too: its other side has seen nothing. A program is
    /// running by then, or about to, and is given the time to end in order.
    pub(super) fn end_exchanges(&mut self) {
        let is_program = matches!(self.config.target, Target::Duplex(Endpoint::Program(_)));
        let all: Vec<ExchangeId> = self.exchanges.keys().copied().collect();
        for exchange in all {
            match self.exchanges.get_mut(&exchange) {
                Some(Exchange::Duplex(Duplex { opened: false, .. })) if !is_program => self.drop_exchange(exchange),
                Some(Exchange::Duplex(duplex)) => duplex.send_end(exchange, &mut self.out),
                #[cfg(feature = "http")]
                Some(Exchange::Http(http)) if http.is_delete() => {}
                #[cfg(feature = "http")]
                Some(Exchange::Http(_)) => self.end_http(exchange),
                None => {}
            }
        }
    }

    /// Whether as many HTTP exchanges are open as calls may be: for notifications, which are no calls.
    pub(super) fn has_many_exchanges(&self) -> bool {
        self.exchanges.len() >= self.config.limits.client.max_calls.max(1) && !self.is_duplex()
    }

    /// Whether as much was handed over as may be. What waits on an exchange that has ended is nobody's any more.
    pub(super) fn is_full(&self) -> bool {
        let unsent = self.duplex().and_then(|exchange| self.exchanges.get(&exchange));
        let most = self.config.limits.client.max_unsent;
        matches!(unsent, Some(Exchange::Duplex(Duplex { sent_end: false, unsent, .. })) if *unsent >= most)
    }

    /// A message from the server, on whatever exchange.
    fn on_message(&mut self, exchange: ExchangeId, message: Message) {
        match message {
            Message::Response(response) => self.on_response(exchange, &response.id, response.payload),
            Message::Request(request) => self.on_request(exchange, request),
            Message::Notification(notification) => {
                self.on_notification(exchange, notification.method, notification.params);
            }
            Message::Error(error) => {
                self.diagnose(DiagnosticKind::IdlessError, error.to_string());
                self.on_idless_error(error);
            }
        }
    }

    fn on_response(&mut self, exchange: ExchangeId, id: &Id, payload: Payload) {
        let (id, found) = self.ids.find(id, exchange, self.config.match_text_ids);
        match found {
            Match::Pending { pending, deviating } => {
                if deviating {
                    self.diagnose(DiagnosticKind::TextId, id.to_string());
                }
                self.complete_request(exchange, &id, pending.purpose, Ok(payload));
            }
            Match::Retired if self.is_repeated_end(&id) => {}
            Match::Retired => self.diagnose(DiagnosticKind::LateAnswer, id.to_string()),
            Match::Unknown => self.diagnose(DiagnosticKind::UnknownId, id.to_string()),
        }
    }

    /// The request with this id has its answer, or something in place of it.
    fn complete_request(
        &mut self,
        exchange: ExchangeId,
        id: &Id,
        purpose: Purpose,
        answer: Result<Payload, ResponseFailure>,
    ) {
        self.answered(exchange);
        match (purpose, answer) {
            (Purpose::Call(call), Ok(payload)) => self.on_called(call, payload),
            (Purpose::Call(call), Err(ResponseFailure::Unreadable(e))) => self.end(call, Err(CallError::Decode(e))),
            (Purpose::Call(call), Err(ResponseFailure::Denied { sent, reason })) => {
                self.end(call, Err(CallError::Denied { sent, reason }));
            }
            (Purpose::Ping, Err(ResponseFailure::Denied { sent: Sent::No, reason })) => {
                self.on_ping_denied(id, &reason)
            }
            (Purpose::Ping, _) => self.on_pong(id),
            (Purpose::Listen, Ok(payload)) => self.on_listened(id, payload),
            (Purpose::Listen, Err(spoilt)) => {
                self.ids.retire(id);
                match spoilt {
                    ResponseFailure::Unreadable(_) => self.on_subscription_end(StreamEnd::Ended, None),
                    ResponseFailure::Denied { reason, .. } => self.turn_subscription_off(reason),
                }
            }
            (Purpose::Discover, Ok(payload)) => {
                self.ids.retire(id);
                self.on_discovered(payload);
            }
            (Purpose::Initialize, Ok(payload)) => {
                self.ids.retire(id);
                self.on_initialized(payload);
            }
            (Purpose::Discover | Purpose::Initialize, Err(spoilt)) => {
                self.ids.retire(id);
                match spoilt {
                    ResponseFailure::Unreadable(e) => self.on_handshake_defect(e),
                    ResponseFailure::Denied { reason, .. } => self.on_handshake_denied(reason),
                }
            }
        }
    }

    fn on_notification(&mut self, exchange: ExchangeId, method: String, params: Option<RawJson>) {
        let read = || Object::read_opt(params.as_ref()).unwrap_or_default();
        match (method.as_str(), self.state()) {
            ("notifications/progress", _) => self.on_progress(exchange, &read()),
            ("notifications/cancelled", _) => self.on_cancelled(exchange, &read()),
            (method, State::Ready) if self.on_subscribed(exchange, method, &read()) => {}
            ("notifications/tools/list_changed", State::Ready) if self.is_legacy() => {
                self.out.soft(Event::ToolsChanged)
            }
            (_, State::Ready) => self.out.notification(method, params),
            (
                _,
                State::Probing
                | State::Initializing
                | State::Lapsed
                | State::Ending
                | State::Restarting
                | State::Closing
                | State::Terminated,
            ) => {
                self.diagnose(DiagnosticKind::DroppedNotification, method);
            }
        }
    }

    /// Bytes where a message should be.
    fn on_defect(&mut self, exchange: ExchangeId, defect: InvalidMessage) {
        let head = String::from_utf8_lossy(&defect.head[..defect.head.len().min(200)]).into_owned();
        if defect.kind == InvalidKind::Denied {
            self.diagnose(DiagnosticKind::Denied, format!("{defect}: {head}"));
            return self.on_denied(exchange, &defect);
        }
        self.diagnose(DiagnosticKind::BadMessage, format!("{defect}: {head}"));
        if self.config.malformed == super::Malformed::Fatal {
            let why = Closed::Broken(defect.to_string());
            return self.cut(Termination::Closed(why));
        }
        let id = defect.id.as_ref().filter(|_| self.config.fail_on_defect && !defect.has_method);
        let Some(id) = id else { return };
        if let (id, Match::Pending { pending, .. }) = self.ids.find(id, exchange, self.config.match_text_ids) {
            let spoilt = ResponseFailure::Unreadable(DecodeError::new(defect.to_string()));
            self.complete_request(exchange, &id, pending.purpose, Err(spoilt));
        }
    }

    /// A message of the server that a hook refused: who waits for it, on either side, is told.
    fn on_denied(&mut self, exchange: ExchangeId, defect: &InvalidMessage) {
        match &defect.id {
            Some(id) if defect.has_method => {
                self.send_response(exchange, rpc::error_response(Some(id), &defect.to_error()));
            }
            Some(id) => {
                let reason = String::from_utf8_lossy(&defect.head).into_owned();
                self.deny(exchange, id, Sent::Maybe, reason);
            }
            None => {}
        }
    }

    /// A hook refused a request of ours, or the answer to it.
    fn deny(&mut self, exchange: ExchangeId, id: &Id, sent: Sent, reason: String) {
        if let (id, Match::Pending { pending, .. }) = self.ids.find(id, exchange, self.config.match_text_ids) {
            self.complete_request(exchange, &id, pending.purpose, Err(ResponseFailure::Denied { sent, reason }));
        }
    }

    /// Ends everything at once, without a word to the server.
    fn cut(&mut self, why: Termination) {
        if let Some(exchange) = self.duplex() {
            self.shut(why);
            self.drop_exchange(exchange);
        } else {
            self.shut(why);
        }
    }

    fn on_items(&mut self, exchange: ExchangeId, item: Inbound) {
        match item {
            Inbound::Message(message) => self.on_message(exchange, message),
            Inbound::Batch(batch) => {
                let legal = self.version().is_none_or(|version| version.rules().batches);
                if !legal {
                    self.diagnose(DiagnosticKind::UnexpectedBatch, format!("{} messages", batch.len()));
                }
                for element in batch {
                    // An element may have ended the connection; what follows it is not heard.
                    match self.state() {
                        State::Probing | State::Initializing | State::Ready => {}
                        State::Lapsed | State::Ending | State::Restarting | State::Closing | State::Terminated => {
                            return;
                        }
                    }
                    match element {
                        Ok(message) => self.on_message(exchange, message),
                        Err(defect) => self.on_defect(exchange, defect),
                    }
                }
            }
            Inbound::Invalid(defect) => self.on_defect(exchange, defect),
            Inbound::Request(_)
            | Inbound::Response(_)
            | Inbound::Body(_)
            | Inbound::Event(_)
            | Inbound::Comment
            | Inbound::End
            | Inbound::Reject(_) => {
                self.diagnose(DiagnosticKind::BadEvent, "an item that this exchange cannot have");
            }
        }
    }
}
