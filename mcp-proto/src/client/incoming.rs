//! Incoming events of the link: messages of the server, and the other events of exchanges.

use super::env::Env;
use super::ids::{Match, Purpose};
use super::link::{Discarded, Link, LinkEvent, Parked, SessionLoss, SubscriptionEnd};
use super::phase::{HandshakeEvent, Phase};
use super::{Client, ControlEvent, Event, Malformed, Repeat, State, Termination, Timer, watching};
use crate::error::{CallError, DiagnosticKind, NegotiationCause, NegotiationError, Stage, StreamEnd};
use crate::exchange::{Closed, ExchangeEvent, ExchangeId, Sent};
use crate::input::{AuthKey, AuthToken, Authorization, CallId};
use crate::rpc::{self, DecodeError, Id, InvalidKind, InvalidMessage, Message, Object, Payload, RawJson};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

/// The reason why a request has no usable response.
pub(super) enum ResponseFailure {
    Unreadable(DecodeError),
    /// A message hook denied the request, or the response.
    Denied {
        sent: Sent,
        reason: String,
    },
}

impl Client {
    /// Handles an event of an SSE stream, whose diagnostics name the stream.
    #[inline(never)]
    pub(super) fn handle_stream_event(&mut self, exchange: ExchangeId, event: ExchangeEvent) {
        self.env.stream = self.link.place(exchange);
        self.link.handle(&mut self.env, exchange, event);
        self.run_link();
        self.env.stream = None;
    }

    /// Handles the events of the link, until there are no more.
    pub(super) fn run_link(&mut self) {
        loop {
            while let Some(event) = self.link.next_event() {
                self.on_link_event(event);
            }
            if !self.link.step(&mut self.env) {
                return self.terminate_if_done();
            }
        }
    }

    /// Uses the link, and handles the resulting events before the queued ones.
    pub(super) fn with_link<R>(&mut self, f: impl FnOnce(&mut Link, &mut Env) -> R) -> R {
        let waiting = self.link.take_events();
        let result = f(&mut self.link, &mut self.env);
        while let Some(event) = self.link.next_event() {
            self.on_link_event(event);
        }
        self.link.put_events(waiting);
        result
    }

    fn on_link_event(&mut self, event: LinkEvent) {
        match event {
            LinkEvent::Message(exchange, message) => self.on_message(exchange, message),
            LinkEvent::Invalid(exchange, defect) => self.on_defect(exchange, defect),
            LinkEvent::Refused(exchange, id, purpose, error) => {
                self.complete_request(exchange, &id, purpose, Ok(Payload::Error(error)));
            }
            LinkEvent::RequestDenied(exchange, id, reason) => self.deny(exchange, &id, Sent::No, reason),
            LinkEvent::NotificationDenied(reason) => self.notifications.on_denied(&mut self.env, reason),
            LinkEvent::Written { written, with_unsent } => {
                self.notifications.on_written(&mut self.env, written, with_unsent);
            }
            LinkEvent::OutputEnded => self.on_output_ended(),
            LinkEvent::Failed(sent, why) => self.on_duplex_failed(sent, why),
            LinkEvent::Reached(call) => self.calls.mark_reached(call),
            LinkEvent::CallEnded { call, id, is_lost, error } => {
                self.env.ids.retire(&id);
                if is_lost && self.may_repeat(call) {
                    self.calls.requeue(call, true);
                    self.send_queued();
                } else {
                    self.end(call, Err(error));
                }
            }
            LinkEvent::Handshake(event) => self.on_handshake(event),
            LinkEvent::PingLost => self.pings.on_lost(&mut self.env),
            LinkEvent::PingDenied(id, reason) => self.pings.on_denied(&mut self.env, &id, &reason),
            LinkEvent::SubscriptionEnded(id, end) => self.on_subscription_end(&id, end),
            LinkEvent::SubscriptionRetry(retry) => self.subscription.set_retry(retry),
            LinkEvent::NotificationEnded(id, outcome) => self.notifications.end(&mut self.env, id, outcome),
            LinkEvent::SessionLost(loss) => self.on_session_lost(*loss),
            LinkEvent::SessionReplaced => self.on_session_replaced(),
            LinkEvent::StreamLost(cause, again) => self.on_stream_lost(cause, again),
            LinkEvent::Released => self.send_queued(),
            LinkEvent::ChangesMissed => self.report_missed(),
            LinkEvent::SessionDoubted => self.ask_for_session(),
            LinkEvent::Parked(parked, challenge) => {
                self.on_parked(parked);
                if let Some((key, challenge, calls)) = challenge {
                    let targets = calls.into_iter().filter(|call| !self.calls.is_own(*call)).collect();
                    self.env.event(Event::AuthNeeded { token: AuthToken::new(key), challenge, targets });
                }
            }
            LinkEvent::Resumed(purpose) => match purpose {
                Purpose::Call(call) => self.update_clocks_of(call),
                Purpose::Discover | Purpose::Initialize => self.on_handshake(HandshakeEvent::Resumed),
                Purpose::Ping => self.pings.arm_pong(&mut self.env),
                Purpose::Listen => self.env.await_acknowledgement(),
            },
            LinkEvent::Authorized => self.update_clocks(),
        }
    }

    /// Handles the response of the application to a challenge.
    pub(super) fn on_authorize(&mut self, key: AuthKey, with: Authorization) {
        self.link.authorize(&mut self.env, key, with);
        self.run_link();
    }

    /// Handles a request that waits for credentials. Only the total limits run meanwhile.
    fn on_parked(&mut self, parked: Parked) {
        match parked {
            Parked::Request(Purpose::Discover | Purpose::Initialize) => {
                self.starting.hold(&mut self.env);
                self.update_clocks();
            }
            Parked::Request(Purpose::Call(call)) => self.update_clocks_of(call),
            Parked::Request(Purpose::Ping) => self.env.timers.set(Timer::Ping, None),
            Parked::Request(Purpose::Listen) => self.env.timers.set(Timer::Subscription, None),
            Parked::Response => self.update_clocks(),
            Parked::Listener => {
                self.with_link(|link, env| link.http_mut().into_iter().for_each(|http| http.release(env)));
            }
            Parked::Other => {}
        }
    }

    /// Updates the clock of a call. For a call of the engine, updates all clocks, since other calls
    /// may wait for it.
    fn update_clocks_of(&mut self, call: CallId) {
        if self.calls.is_own(call) {
            self.update_clocks();
        } else {
            self.update_clock(call);
        }
    }

    /// Handles the end of a session: the client ends all its exchanges, and opens another session.
    fn on_session_lost(&mut self, loss: SessionLoss) {
        let SessionLoss { request, notification, error } = loss;
        match request {
            // It has not run, so the client may repeat it, once.
            Some((_, Purpose::Call(call))) if !self.calls.was_repeated(call) => self.calls.requeue(call, false),
            Some((_, Purpose::Call(call))) => self.end(call, Err(CallError::Http(Box::new(error.clone())))),
            Some((_, Purpose::Ping)) => self.pings.on_lost(&mut self.env),
            Some((_, Purpose::Discover | Purpose::Initialize | Purpose::Listen)) | None => {}
        }
        if let Some(id) = notification {
            self.notifications.end(&mut self.env, id, Err(CallError::Http(Box::new(error.clone()))));
        }
        let Some(http) = self.link.http_mut() else { return };
        if !http.may_renew(&self.env) {
            let cause = NegotiationCause::Http(Box::new(error));
            let why = self.starting.error(&self.env, Stage::Initialize, cause);
            return self.shut(Termination::Negotiation(why));
        }
        if self.env.version().is_none() {
            return;
        }
        self.discard_session(false, &CallError::SessionEnded);
        self.env.phase = Phase::Lapsed;
        self.begin();
    }

    /// Handles a new session of a server that has lost the old one (HTTP+SSE).
    fn on_session_replaced(&mut self) {
        self.discard_session(true, &self.lost_with_stream());
        self.env.phase = Phase::Lapsed;
        self.begin();
    }

    /// Handles the end of the stream of HTTP+SSE, and of its session.
    fn on_stream_lost(&mut self, cause: StreamEnd, again: Option<Duration>) {
        self.discard_session(true, &self.lost_with_stream());
        self.env.phase = Phase::Lapsed;
        self.env.event(Event::ListenerLost { cause: cause.clone(), again, ends_session: true });
        let waiting = self.calls.queued(true);
        if cause.retry_after().is_some_and(|after| !after.is_zero()) {
            // A stream for the calls that wait would come before the time the server has asked for.
            let cause = NegotiationCause::NoEndpoint(cause);
            let (after, first, earlier) = (Duration::ZERO, None, Vec::new());
            let why = NegotiationError { stage: Stage::Endpoint, cause, after, first, earlier };
            for call in waiting {
                self.end(call, Err(CallError::Negotiation(why.clone())));
            }
        } else if !waiting.is_empty() {
            self.begin();
        }
    }

    /// Returns the error of a call whose response was to arrive on the stream of HTTP+SSE.
    fn lost_with_stream(&self) -> CallError {
        let why = self.link.http().map_or(Closed::Eof, super::link::HttpLink::stream_end);
        CallError::Closed { sent: Sent::Maybe, why }
    }

    /// Ends the requests and responses on the exchanges of a session. Calls end with `error`.
    fn discard_session(&mut self, keeps_stream: bool, error: &CallError) {
        self.forget_subscriptions();
        self.pings.end(&mut self.env);
        self.end_eliciting_calls();
        self.questions.withdraw_all(&mut self.env);
        self.with_link(|link, env| link.http_mut().into_iter().for_each(|http| http.end_session(env, keeps_stream)));
        for exchange in self.link.http().map(super::link::HttpLink::ids).unwrap_or_default() {
            let discarded = self.with_link(|link, env| Some(link.http_mut()?.discard(env, exchange)));
            match discarded {
                Some(Discarded::Call { call, id, unsent }) => self.discard_call(call, &id, unsent, error),
                Some(Discarded::Response) => {
                    self.env.diagnose(DiagnosticKind::DroppedResponse, "the session has ended");
                }
                Some(Discarded::Other) | None => {}
            }
        }
        // Over HTTP+SSE, an exchange ends before the response to its request.
        for (call, id) in self.calls.sent() {
            self.discard_call(call, &id, false, error);
        }
        // The questions of the server were withdrawn.
        self.update_clocks();
    }

    /// Ends a call in a session that has ended, or queues it for the next session. A request that
    /// waited for credentials, a connection or a stream has not run (`unsent`).
    fn discard_call(&mut self, call: CallId, id: &Id, unsent: bool, error: &CallError) {
        self.env.ids.retire(id);
        if self.may_repeat(call) || unsent && !self.calls.was_repeated(call) {
            self.calls.requeue(call, !unsent);
        } else {
            self.end(call, Err(error.clone()));
        }
    }

    /// Returns whether the client may repeat a call whose response was lost.
    fn may_repeat(&self, call: CallId) -> bool {
        let allowed = match self.env.config.repeat {
            Repeat::Safe => self.calls.get(call).is_some_and(|call| self.catalogue.is_repeatable(&call.raw)),
            Repeat::Always => true,
            Repeat::Never => false,
        };
        allowed && !self.calls.was_repeated(call)
    }

    /// Makes a ping to find out whether the session still exists. The end of a listener proves
    /// nothing about the session. A client that waits for changes makes no other request that
    /// would.
    fn ask_for_session(&mut self) {
        let Some(version) = self.env.version() else { return };
        let id = self.send_request(Purpose::Ping, "ping", Object::new(), version);
        if let (Some(exchange), Some(http)) = (self.env.ids.exchange(&id), self.link.http_mut()) {
            http.limit_attempt(&mut self.env, exchange);
        }
    }

    /// Handles a message of the server, on any exchange.
    fn on_message(&mut self, exchange: ExchangeId, message: Message) {
        self.env.note_nulls(&message);
        match message {
            Message::Response(response) => self.on_response(exchange, &response.id, response.payload),
            Message::Request(request) => self.on_request(exchange, request),
            Message::Notification(notification) => {
                self.on_notification(exchange, notification.method, notification.params);
            }
            Message::Error(error) => {
                self.env.diagnose(DiagnosticKind::IdlessError, error.to_string());
                self.on_handshake(HandshakeEvent::Idless(error));
            }
        }
    }

    fn on_response(&mut self, exchange: ExchangeId, id: &Id, payload: Payload) {
        let (id, found) = self.env.ids.find(id, exchange, self.env.config.compat.match_text_ids);
        match found {
            Match::Pending { pending, deviating } => {
                if deviating {
                    self.env.diagnose(DiagnosticKind::TextId, id.to_string());
                }
                self.complete_request(exchange, &id, pending.purpose, Ok(payload));
            }
            Match::Retired if self.subscription.is_repeated_end(&id) => {}
            Match::Retired => self.env.diagnose(DiagnosticKind::LateAnswer, id.to_string()),
            Match::Unknown => self.env.diagnose(DiagnosticKind::UnknownId, id.to_string()),
        }
    }

    /// Completes a request with its response, or with a failure in its place.
    fn complete_request(
        &mut self,
        exchange: ExchangeId,
        id: &Id,
        purpose: Purpose,
        answer: Result<Payload, ResponseFailure>,
    ) {
        self.link.answered(&mut self.env, exchange);
        match (purpose, answer) {
            (Purpose::Call(call), Ok(payload)) => self.on_called(call, payload),
            (Purpose::Call(call), Err(ResponseFailure::Unreadable(e))) => self.end(call, Err(CallError::Decode(e))),
            (Purpose::Call(call), Err(ResponseFailure::Denied { sent, reason })) => {
                self.end(call, Err(CallError::Denied { sent, reason }));
            }
            (Purpose::Ping, Err(ResponseFailure::Denied { sent: Sent::No, reason })) => {
                self.pings.on_denied(&mut self.env, id, &reason)
            }
            (Purpose::Ping, _) => self.pings.on_pong(&mut self.env, id),
            (Purpose::Listen, Ok(payload)) => self.on_listened(id, payload),
            (Purpose::Listen, Err(spoilt)) => {
                self.env.ids.retire(id);
                let end = match spoilt {
                    ResponseFailure::Unreadable(_) => SubscriptionEnd::Ended(StreamEnd::Ended),
                    ResponseFailure::Denied { reason, .. } => SubscriptionEnd::Denied(reason),
                };
                self.on_subscription_end(id, end);
            }
            (Purpose::Discover, Ok(payload)) => {
                self.env.ids.retire(id);
                self.on_handshake(HandshakeEvent::Discovered(payload));
            }
            (Purpose::Initialize, Ok(payload)) => {
                self.env.ids.retire(id);
                self.on_handshake(HandshakeEvent::Initialized(payload));
            }
            (Purpose::Discover | Purpose::Initialize, Err(spoilt)) => {
                self.env.ids.retire(id);
                self.on_handshake(match spoilt {
                    ResponseFailure::Unreadable(e) => HandshakeEvent::Invalid(e),
                    ResponseFailure::Denied { reason, .. } => HandshakeEvent::Denied(reason),
                });
            }
        }
    }

    fn on_notification(&mut self, exchange: ExchangeId, method: Cow<'static, str>, params: Option<RawJson>) {
        let read = || Object::read_opt(params.as_ref()).unwrap_or_default();
        match (&*method, self.env.state()) {
            ("notifications/progress", _) => self.on_progress(exchange, &read()),
            ("notifications/cancelled", _) => self.on_cancelled(exchange, &read()),
            ("notifications/elicitation/complete", State::Ready) if self.on_page_complete(&read()) => {}
            (method, State::Ready) if self.on_subscribed(exchange, method, &read()) => {}
            ("notifications/message", State::Ready) => self.on_log(exchange, read()),
            (method, State::Ready)
                if self.env.is_legacy()
                    && let Some(change) = watching::change(method, &read()) =>
            {
                match change {
                    Ok(change) => self.env.event(Event::Changed(change)),
                    Err(e) => self.env.diagnose(DiagnosticKind::BadParams, format!("{method}: {e}")),
                }
            }
            (_, State::Ready) => self.env.out.notification(method, params),
            (
                _,
                State::Probing
                | State::Initializing
                | State::Lapsed
                | State::Ending
                | State::Closing
                | State::Terminated,
            ) => {
                self.env.diagnose(DiagnosticKind::DroppedNotification, method);
            }
        }
    }

    /// Handles bytes that are no message.
    fn on_defect(&mut self, exchange: ExchangeId, defect: InvalidMessage) {
        let head = String::from_utf8_lossy(&defect.head[..defect.head.len().min(200)]).into_owned();
        if defect.kind == InvalidKind::Denied {
            self.env.diagnose(DiagnosticKind::Denied, format!("{defect}: {head}"));
            return self.on_denied(exchange, &defect);
        }
        if let Some(event) = self.control_of(&defect) {
            let control = ControlEvent { stream: None, event, id: None, data: defect.head };
            return self.env.event(Event::Control(Box::new(control)));
        }
        self.env.diagnose(DiagnosticKind::BadMessage, format!("{defect}: {head}"));
        if self.env.config.compat.malformed == Malformed::Fatal && !defect.is_notification() {
            let why = Closed::Broken(defect.to_string());
            return self.cut(Termination::Closed(why));
        }
        let id = defect.id.as_ref().filter(|_| self.env.config.compat.fail_on_defect && !defect.has_method);
        let Some(id) = id else { return };
        if let (id, Match::Pending { pending, .. }) =
            self.env.ids.find(id, exchange, self.env.config.compat.match_text_ids)
        {
            let spoilt = ResponseFailure::Unreadable(DecodeError::new(defect.to_string()));
            self.complete_request(exchange, &id, pending.purpose, Err(spoilt));
        }
    }

    /// Returns the type of an object that is no message, if the application handles it itself.
    fn control_of(&self, defect: &InvalidMessage) -> Option<String> {
        let control = &self.env.config.control;
        if control.is_empty() || !self.env.is_duplex() || defect.kind != InvalidKind::NotJsonRpc {
            return None;
        }
        let object = Object::read(&RawJson::parse(defect.head.clone()).ok()?).ok()?;
        object.optional::<String>("type").ok()?.filter(|kind| control.contains(kind))
    }

    /// Handles a message of the server that a hook denied. If it is a request, the client sends an
    /// error response. If it is a response, its request ends.
    fn on_denied(&mut self, exchange: ExchangeId, defect: &InvalidMessage) {
        match &defect.id {
            Some(id) if defect.has_method => {
                self.link.send_response(&mut self.env, exchange, rpc::error_response(Some(id), &defect.to_error()));
            }
            Some(id) => {
                let reason = String::from_utf8_lossy(&defect.head).into_owned();
                self.deny(exchange, id, Sent::Maybe, reason);
            }
            None => {}
        }
    }

    /// Completes a request after a hook denied it or its response.
    fn deny(&mut self, exchange: ExchangeId, id: &Id, sent: Sent, reason: String) {
        if let (id, Match::Pending { pending, .. }) =
            self.env.ids.find(id, exchange, self.env.config.compat.match_text_ids)
        {
            self.complete_request(exchange, &id, pending.purpose, Err(ResponseFailure::Denied { sent, reason }));
        }
    }

    /// Ends the client at once, without a message to the server.
    fn cut(&mut self, why: Termination) {
        if let Some(exchange) = self.link.duplex() {
            self.shut(why);
            self.drop_exchange(exchange);
        } else {
            self.shut(why);
        }
    }
}
