//! Incoming events of the link: messages of the server, and the other events of exchanges.

use super::env::ClientEnv;
use super::handshake::HandshakeEvent;
use super::ids::{Match, Purpose};
use super::link::{DiscardedMessage, HttpLink, LinkEvent, ParkedKind, SessionLoss};
use super::pings::Pings;
use super::{Client, ControlEvent, Event, OnMalformed, State, Termination, Timer, tasks, watching};
use crate::error::{CallError, DiagnosticKind, NegotiationCause, NegotiationError, Stage, StreamEnd};
use crate::exchange::{Closed, ExchangeEvent, ExchangeId, Sent};
use crate::input::{AuthToken, CallId};
use crate::rpc::{DecodeError, Id, InvalidKind, InvalidMessage, Message, Object, Payload, RawJson};
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
        self.cx.env.stream = self.cx.link.place(exchange);
        self.cx.link.handle(&mut self.cx.env, exchange, event);
        self.run_link();
        self.cx.env.stream = None;
    }

    /// Handles the events of the link, until there are no more.
    pub(super) fn run_link(&mut self) {
        loop {
            while let Some(event) = self.cx.link.next_event() {
                self.on_link_event(event);
            }
            if !self.cx.link.step(&mut self.cx.env) {
                return self.terminate_if_done();
            }
        }
    }

    /// Uses the link over HTTP, and handles the resulting events before the queued ones.
    pub(super) fn with_http<R>(&mut self, f: impl FnOnce(&mut HttpLink, &mut ClientEnv) -> R) -> Option<R> {
        let waiting = self.cx.link.take_events();
        let result = self.cx.link.http_mut().map(|http| f(http, &mut self.cx.env));
        while let Some(event) = self.cx.link.next_event() {
            self.on_link_event(event);
        }
        self.cx.link.put_events(waiting);
        result
    }

    fn on_link_event(&mut self, event: LinkEvent) {
        match event {
            LinkEvent::Message(exchange, message) => self.on_message(exchange, message),
            LinkEvent::Invalid(exchange, defect) => self.on_defect(exchange, defect),
            LinkEvent::Refused(exchange, id, purpose, error) => {
                self.complete_request(exchange, &id, purpose, Ok(Payload::Error(error)));
            }
            LinkEvent::RequestDenied(exchange, id, reason) => {
                self.fail_request(exchange, &id, ResponseFailure::Denied { sent: Sent::No, reason });
            }
            LinkEvent::NotificationDenied(reason) => self.notifications.on_denied(&mut self.cx.env, reason),
            LinkEvent::Written { written, with_unsent } => {
                self.notifications.on_written(&mut self.cx.env, written, with_unsent);
            }
            LinkEvent::OutputEnded => self.on_output_ended(),
            LinkEvent::Failed(sent, why) => self.on_duplex_failed(sent, why),
            LinkEvent::Reached(call) => self.cx.calls.mark_reached(call),
            LinkEvent::CallEnded { call, id, is_lost, error } => {
                self.cx.env.ids.retire(&id);
                if is_lost && self.cx.may_repeat(call) {
                    self.cx.calls.requeue(call, true);
                    self.send_queued();
                } else {
                    self.end(call, Err(error));
                }
            }
            LinkEvent::Handshake(event) => self.on_handshake(event),
            LinkEvent::PingLost => self.pings.on_lost(&mut self.cx.env),
            LinkEvent::PingDenied(id, reason) => self.pings.on_denied(&mut self.cx.env, &id, &reason),
            LinkEvent::SubscriptionEnded(id, end) => self.subscription.on_end(&mut self.cx, &id, end),
            LinkEvent::SubscriptionRetry(retry) => self.subscription.set_retry(retry),
            LinkEvent::NotificationEnded(id, outcome) => self.notifications.end(&mut self.cx.env, id, outcome),
            LinkEvent::SessionLost(loss) => self.on_session_lost(*loss),
            LinkEvent::SessionReplaced => {
                self.discard_session(true, &self.cx.link.lost_with_stream());
                self.begin();
            }
            LinkEvent::StreamLost(cause, again) => self.on_stream_lost(cause, again),
            LinkEvent::Released => self.send_queued(),
            LinkEvent::ChangesMissed => {
                self.cx.env.drop_cached();
                self.resources.report_missed(&mut self.cx.env);
            }
            LinkEvent::SessionDoubted => Pings::ask_for_session(&mut self.cx),
            LinkEvent::Parked(parked, challenge) => {
                self.on_parked(parked);
                if let Some((key, challenge, calls)) = challenge {
                    let targets = calls.into_iter().filter(|call| !self.cx.calls.is_own(*call)).collect();
                    self.cx.env.event(Event::AuthNeeded { token: AuthToken::new(key), challenge, targets });
                }
            }
            LinkEvent::Resumed(purpose) => match purpose {
                Purpose::Call(call) => self.cx.update_clocks_of(call),
                Purpose::Discover | Purpose::Initialize => self.on_handshake(HandshakeEvent::Resumed),
                Purpose::Ping => self.pings.arm_pong(&mut self.cx.env),
                Purpose::Listen => self.cx.env.await_acknowledgement(),
            },
            LinkEvent::Authorized => self.cx.update_clocks(),
        }
    }

    /// Handles a request that waits for credentials. Only the total limits run meanwhile.
    fn on_parked(&mut self, parked: ParkedKind) {
        match parked {
            ParkedKind::Request(Purpose::Discover | Purpose::Initialize) => {
                self.handshake.hold_clock(&mut self.cx.env);
                self.cx.update_clocks();
            }
            ParkedKind::Request(Purpose::Call(call)) => self.cx.update_clocks_of(call),
            ParkedKind::Request(Purpose::Ping) => self.cx.env.timers.set(Timer::Ping, None),
            ParkedKind::Request(Purpose::Listen) => self.cx.env.timers.set(Timer::Subscription, None),
            ParkedKind::Response => self.cx.update_clocks(),
            ParkedKind::Listener => drop(self.with_http(HttpLink::release)),
            ParkedKind::Other => {}
        }
    }

    /// Handles the end of a session: the client ends all its exchanges, and opens another session.
    fn on_session_lost(&mut self, loss: SessionLoss) {
        let SessionLoss { request, notification, error } = loss;
        match request {
            // It has not run, so the client may repeat it, once.
            Some((_, Purpose::Call(call))) if !self.cx.calls.was_repeated(call) => self.cx.calls.requeue(call, false),
            Some((_, Purpose::Call(call))) => self.end(call, Err(CallError::Http(Box::new(error.clone())))),
            Some((_, Purpose::Ping)) => self.pings.on_lost(&mut self.cx.env),
            Some((_, Purpose::Discover | Purpose::Initialize | Purpose::Listen)) | None => {}
        }
        if let Some(id) = notification {
            self.notifications.end(&mut self.cx.env, id, Err(CallError::Http(Box::new(error.clone()))));
        }
        let Some(http) = self.cx.link.http_mut() else { return };
        if !http.may_renew(&self.cx.env) {
            let cause = NegotiationCause::Http(Box::new(error));
            let why = self.handshake.error(&self.cx.env, Stage::Initialize, cause);
            return self.shut(Termination::Negotiation(why));
        }
        if self.cx.env.version().is_none() {
            return;
        }
        self.discard_session(false, &CallError::SessionEnded);
        self.begin();
    }

    /// Handles the end of the stream of HTTP+SSE, and of its session.
    fn on_stream_lost(&mut self, cause: StreamEnd, again: Option<Duration>) {
        self.discard_session(true, &self.cx.link.lost_with_stream());
        self.cx.env.event(Event::ListenerLost { cause: cause.clone(), again, ends_session: true });
        let waiting = self.cx.calls.queued(true);
        if cause.retry_after().is_some_and(|after| !after.is_zero()) {
            // A stream for the calls that wait would come before the time the server has asked for.
            let cause = NegotiationCause::NoEndpoint(cause);
            let (after, first, earlier) = (Duration::ZERO, None, Vec::new());
            let why = NegotiationError { stage: Stage::Endpoint, cause, after, first, earlier };
            waiting.into_iter().for_each(|call| self.end(call, Err(CallError::Negotiation(why.clone()))));
        } else if !waiting.is_empty() {
            self.begin();
        }
    }

    /// Ends a session, and the requests and responses on its exchanges. Calls end with `error`.
    fn discard_session(&mut self, keeps_stream: bool, error: &CallError) {
        self.forget_subscriptions();
        self.pings.end(&mut self.cx.env);
        self.end_eliciting_calls();
        self.cx.questions.withdraw_all(&mut self.cx.env);
        self.cx.answer_tasks.clear(&mut self.cx.env);
        self.with_http(|http, env| http.end_session(env, keeps_stream));
        for exchange in self.cx.link.http().map(HttpLink::ids).unwrap_or_default() {
            match self.with_http(|http, env| http.discard(env, exchange)) {
                Some(DiscardedMessage::Call { call, id, unsent }) => self.discard_call(call, &id, unsent, error),
                Some(DiscardedMessage::Response) => {
                    self.cx.env.diagnose(DiagnosticKind::DroppedResponse, "the session has ended");
                }
                Some(DiscardedMessage::Other) | None => {}
            }
        }
        // Over HTTP+SSE, an exchange ends before the response to its request.
        for (call, id) in self.cx.calls.sent() {
            self.discard_call(call, &id, false, error);
        }
        // The questions of the server were withdrawn.
        self.cx.update_clocks();
        self.cx.env.phase.lapse();
    }

    /// Ends a call in a session that has ended, or queues it for the next session. A request that
    /// waited for credentials, a connection or a stream has not run (`unsent`).
    fn discard_call(&mut self, call: CallId, id: &Id, unsent: bool, error: &CallError) {
        self.cx.env.ids.retire(id);
        if self.cx.may_repeat(call) || unsent && !self.cx.calls.was_repeated(call) {
            self.cx.calls.requeue(call, !unsent);
        } else {
            self.end(call, Err(error.clone()));
        }
    }

    /// Handles a message of the server, on any exchange.
    fn on_message(&mut self, exchange: ExchangeId, message: Message) {
        self.cx.env.note_nulls(&message);
        match message {
            Message::Response(response) => self.on_response(exchange, &response.id, response.payload),
            Message::Request(request) => self.on_request(exchange, request),
            Message::Notification(notification) => {
                self.on_notification(exchange, notification.method, notification.params);
            }
            Message::Error(error) => {
                self.cx.env.diagnose(DiagnosticKind::IdlessError, error.to_string());
                self.on_handshake(HandshakeEvent::Idless(error));
            }
        }
    }

    fn on_response(&mut self, exchange: ExchangeId, id: &Id, payload: Payload) {
        let (id, found) = self.cx.env.ids.find(id, exchange, self.cx.env.config.compat.match_text_ids);
        match found {
            Match::Pending { pending, deviating } => {
                if deviating {
                    self.cx.env.diagnose(DiagnosticKind::TextId, id.to_string());
                }
                self.complete_request(exchange, &id, pending.purpose, Ok(payload));
            }
            Match::Retired if self.subscription.is_repeated_end(&id) => {}
            Match::Retired => {
                // It is of no use a second time.
                self.cx.env.ids.forget(&id);
                self.cx.cancel_late_task(&payload);
                self.cx.env.diagnose(DiagnosticKind::LateAnswer, id.to_string());
            }
            Match::Unknown => self.cx.env.diagnose(DiagnosticKind::UnknownId, id.to_string()),
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
        self.cx.link.answered(&mut self.cx.env, exchange);
        match (purpose, answer) {
            (Purpose::Call(call), Ok(payload)) => self.on_called(call, payload),
            (Purpose::Call(call), Err(ResponseFailure::Unreadable(e))) => self.end(call, Err(CallError::Decode(e))),
            (Purpose::Call(call), Err(ResponseFailure::Denied { sent, reason })) => {
                self.end(call, Err(CallError::Denied { sent, reason }));
            }
            (Purpose::Ping, Err(ResponseFailure::Denied { sent: Sent::No, reason })) => {
                self.pings.on_denied(&mut self.cx.env, id, &reason)
            }
            (Purpose::Ping, _) => self.pings.on_pong(&mut self.cx.env, id),
            (Purpose::Listen, answer) => self.subscription.on_response(&mut self.cx, id, answer),
            (Purpose::Discover | Purpose::Initialize, answer) => {
                self.cx.env.ids.retire(id);
                self.on_handshake(match answer {
                    Ok(payload) if purpose == Purpose::Discover => HandshakeEvent::Discovered(payload),
                    Ok(payload) => HandshakeEvent::Initialized(payload),
                    Err(ResponseFailure::Unreadable(e)) => HandshakeEvent::Invalid(e),
                    Err(ResponseFailure::Denied { reason, .. }) => HandshakeEvent::Denied(reason),
                });
            }
        }
    }

    fn on_notification(&mut self, exchange: ExchangeId, method: Cow<'static, str>, params: Option<RawJson>) {
        let read = || Object::read_opt(params.as_ref()).unwrap_or_default();
        let cx = &mut self.cx;
        // Whatever the notification belongs to.
        if cx.env.cache.is_some()
            && let Some(Ok(change)) = watching::change(&method, &read())
        {
            cx.env.drop_changed(&change);
        }
        match (&*method, cx.env.state()) {
            ("notifications/progress", _) => cx.calls.on_progress(&mut cx.env, exchange, &read()),
            ("notifications/cancelled", _) => self.on_cancelled(exchange, &read()),
            ("notifications/elicitation/complete", State::Ready) if cx.env.has_elicitation_ids() => {
                if let Some(id) = self.elicitations.on_notification(&mut cx.env, &read()) {
                    self.on_page_complete(&id);
                }
            }
            (tasks::CHANGED, State::Ready) if cx.env.config.tasks && cx.env.is_modern() => {
                self.on_task_told(exchange, &method, &read());
            }
            (tasks::STATUS, State::Ready) if cx.env.has_legacy_tasks() => {
                self.on_task_told(exchange, &method, &read());
            }
            (method, State::Ready) if self.subscription.on_notification(cx, exchange, method, &read()) => {}
            ("notifications/message", State::Ready) => self.logging.on_message(cx, exchange, read()),
            (method, State::Ready)
                if cx.env.is_legacy()
                    && let Some(change) = watching::change(method, &read()) =>
            {
                match change {
                    Ok(change) => cx.env.event(Event::Changed(change)),
                    Err(e) => cx.env.diagnose(DiagnosticKind::BadParams, format!("{method}: {e}")),
                }
            }
            (_, State::Ready) => cx.env.out.notification(method, params),
            (_, _) => cx.env.diagnose(DiagnosticKind::DroppedNotification, method),
        }
    }

    /// Handles bytes that are no message.
    fn on_defect(&mut self, exchange: ExchangeId, defect: InvalidMessage) {
        let head = String::from_utf8_lossy(&defect.head[..defect.head.len().min(200)]).into_owned();
        if defect.kind == InvalidKind::Denied {
            self.cx.env.diagnose(DiagnosticKind::Denied, format!("{defect}: {head}"));
            return self.on_denied(exchange, &defect);
        }
        if let Some(control) = ControlEvent::of(&self.cx.env, &defect) {
            return self.cx.env.event(Event::Control(Box::new(control)));
        }
        self.cx.env.diagnose(DiagnosticKind::BadMessage, format!("{defect}: {head}"));
        if self.cx.env.config.compat.malformed == OnMalformed::Fatal && !defect.is_notification() {
            self.shut(Termination::Closed(Closed::Broken(defect.to_string())));
            return self.drop_duplex();
        }
        if let Some(id) = &defect.id
            && self.cx.env.config.compat.fail_on_defect
            && !defect.has_method
        {
            self.fail_request(exchange, id, ResponseFailure::Unreadable(DecodeError::new(defect.to_string())));
        }
    }

    /// Handles a message of the server that a hook denied. If it is a request, the client sends an
    /// error response. If it is a response, its request ends.
    fn on_denied(&mut self, exchange: ExchangeId, defect: &InvalidMessage) {
        match &defect.id {
            Some(id) if defect.has_method => {
                self.cx.reply(exchange, id, Err(defect.to_error()));
            }
            Some(id) => {
                let reason = String::from_utf8_lossy(&defect.head).into_owned();
                self.fail_request(exchange, id, ResponseFailure::Denied { sent: Sent::Maybe, reason });
            }
            None => {}
        }
    }

    /// Completes a request, if it is pending, with a failure in place of its response.
    fn fail_request(&mut self, exchange: ExchangeId, id: &Id, why: ResponseFailure) {
        let lenient = self.cx.env.config.compat.match_text_ids;
        if let (id, Match::Pending { pending, .. }) = self.cx.env.ids.find(id, exchange, lenient) {
            self.complete_request(exchange, &id, pending.purpose, Err(why));
        }
    }
}
