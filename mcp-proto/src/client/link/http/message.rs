//! POSTs whose response is only a status: notifications, and the client's responses to requests of
//! the server (2025-11-25 and 2026-07-28, sending messages to the server). An accepted notification
//! has a limited time for its delivery after the client has closed.

use super::exchange_end::ExchangeEnd;
use super::{ExchangeRole, ExchangeStage, HttpExchange, HttpLink, HttpRequest, MessageSummary, success};
use crate::client::env::ClientEnv;
use crate::client::link::event::LinkEvent;
use crate::client::{State, Timer};
use crate::error::{CallError, DiagnosticKind};
use crate::exchange::{Closed, ExchangeId, Inbound};
use crate::input::NotificationId;
use crate::rpc::Object;
use crate::version::ProtocolVersion;
use alloc::boxed::Box;
use alloc::string::ToString;
use bytes::Bytes;
use core::time::Duration;

/// How often an answer is repeated, and the waits before the first time and at most: half a minute
/// in all, in which a store or a server behind a proxy fails over.
const ANSWERS: u32 = 6;
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LAST_WAIT: Duration = Duration::from_secs(16);

impl HttpLink {
    /// Posts a notification.
    pub(in crate::client) fn post_notification(
        &mut self,
        env: &mut ClientEnv,
        method: &str,
        params: Option<&Object>,
        body: Bytes,
        id: Option<NotificationId>,
    ) {
        let Some(version) = env.version() else { return };
        let role = match method {
            "notifications/initialized" => ExchangeRole::Initialized,
            "notifications/cancelled" => ExchangeRole::Cancelled,
            _ => ExchangeRole::Notification(id),
        };
        if role == ExchangeRole::Cancelled && self.has_many(env, &role) {
            return env.diagnose(DiagnosticKind::DroppedNotification, "the server has not accepted those before it");
        }
        self.post_message(env, role, Some(version), MessageSummary { method, params }, body);
    }

    /// Posts the response to a request of the server.
    pub(in crate::client) fn post_response(&mut self, env: &mut ClientEnv, body: Bytes) {
        if self.has_many(env, &ExchangeRole::Response) {
            return env.diagnose(DiagnosticKind::DroppedResponse, "the server has not taken those before it");
        }
        self.post_message(env, ExchangeRole::Response, env.version(), MessageSummary::NOTHING, body);
    }

    /// Returns whether the number of open exchanges with this role has reached the maximum number
    /// of calls. A server that accepts none of them must not fill the memory of its client.
    fn has_many(&self, env: &ClientEnv, role: &ExchangeRole) -> bool {
        self.exchanges.iter().filter(|(_, http)| http.role == *role).count()
            >= env.config.limits.client.max_calls.max(1)
    }

    /// Posts a message whose response is only a status.
    fn post_message(
        &mut self,
        env: &mut ClientEnv,
        role: ExchangeRole,
        version: Option<ProtocolVersion>,
        described: MessageSummary<'_>,
        body: Bytes,
    ) {
        let exchange = self.exchanges.mint();
        env.timers.set(Timer::Answer(exchange), env.config.timeout.map(|limit| env.now + limit));
        // Sending it twice is harmless. A server that never receives it reports no changes.
        let repeatable = role == ExchangeRole::Initialized;
        let sent = HttpRequest::post(version, body, repeatable);
        self.begin_http(env, exchange, HttpExchange::new(role, sent), Some(described));
    }

    /// Handles the end of the exchange of a notification or response. The server has accepted it if
    /// the status is 2xx, whatever the body is.
    pub(super) fn on_message_end(&mut self, env: &mut ClientEnv, exchange: ExchangeId, over: ExchangeEnd) {
        let Some(http) = self.exchanges.get(exchange) else { return };
        let is_closing = matches!(env.state(), State::Closing | State::Terminated);
        if !is_closing && over == ExchangeEnd::End && self.is_session_gone(env, http) {
            let (role, is_notification) = (http.role.clone(), http.is_notification());
            if !is_notification || !self.lacks_route(&role) {
                return self.on_session_gone(env, exchange);
            }
        }
        if !is_closing && self.repeats_answer(env, exchange, &over) {
            return;
        }
        let Some(http) = self.exchanges.remove(exchange) else { return };
        let (failure, outcome) = match over {
            ExchangeEnd::End if success(http.status()) => (None, Ok(())),
            ExchangeEnd::End => (Some(http.to_error().to_string()), Err(CallError::Http(Box::new(http.to_error())))),
            ExchangeEnd::Failed { why: Closed::Denied(reason), sent } => {
                env.diagnose(DiagnosticKind::Denied, Closed::Denied(reason.clone()).to_string());
                (None, Err(CallError::Denied { sent, reason }))
            }
            ExchangeEnd::Failed { why, sent } => (Some(why.to_string()), Err(CallError::Closed { sent, why })),
        };
        if let Some(why) = failure {
            let kind = match http.role {
                ExchangeRole::Response => DiagnosticKind::DroppedResponse,
                _ => DiagnosticKind::DroppedNotification,
            };
            env.diagnose(kind, why);
        }
        match http.role {
            ExchangeRole::Notification(Some(id)) => self.events.push_back(LinkEvent::NotificationEnded(id, outcome)),
            ExchangeRole::Initialized if !is_closing => {
                if outcome.is_ok() {
                    self.has_route();
                }
                self.on_initialized_taken(env);
            }
            _ => {}
        }
    }

    /// Repeats an answer to the server, after a wait, if the server or a proxy could not take it. A
    /// server takes the first one only, and would wait for an answer that is lost.
    fn repeats_answer(&mut self, env: &mut ClientEnv, exchange: ExchangeId, over: &ExchangeEnd) -> bool {
        let Some(http) = self.exchanges.get_mut(exchange) else { return false };
        let is_busy = match over {
            ExchangeEnd::End => matches!(http.status(), 429 | 502..=504),
            ExchangeEnd::Failed { why: Closed::Denied(_) | Closed::Unauthorized(_), .. } => false,
            ExchangeEnd::Failed { .. } => true,
        };
        if http.role != ExchangeRole::Response || !is_busy || http.stream.answered >= ANSWERS {
            return false;
        }
        let at_least = http.head.as_ref().and_then(|head| head.headers.retry_after()).unwrap_or_default();
        let wait = (FIRST_WAIT * (1 << http.stream.answered)).max(at_least.min(LAST_WAIT));
        http.stream.answered += 1;
        http.stage = ExchangeStage::AwaitingResume;
        env.timers.set(Timer::Resume(exchange), Some(env.now + wait));
        true
    }

    /// Handles an item while the client is closing. Only the status of the response to a
    /// notification counts.
    pub(super) fn on_closing_item(&mut self, env: &mut ClientEnv, exchange: ExchangeId, item: Inbound) {
        if let (Some(http), Inbound::Response(head)) = (self.exchanges.get_mut(exchange), item) {
            http.head = Some(head);
            // The server may keep the stream open without limit.
            if http.is_stream() {
                self.finish(env, exchange);
            }
        }
    }

    /// Ends an exchange of a closing client. The exchange is dropped, unless it carries a
    /// notification and the application requested the end: the server then has some time to accept
    /// it. The DELETE of a session continues.
    pub(in crate::client) fn end(&mut self, env: &mut ClientEnv, exchange: ExchangeId, requested: bool) {
        match self.exchanges.get(exchange) {
            Some(http) if http.is_delete() => {}
            Some(http) if requested && http.is_notification() && http.is_live() => {
                if http.is_decided() {
                    return self.finish(env, exchange);
                }
                let until = env.now + env.config.limits.client.session_end_time;
                env.timers.set(Timer::Answer(exchange), Some(until));
            }
            _ => self.drop_exchange(env, exchange),
        }
    }

    /// Reports a notification that the server did not accept.
    pub(in crate::client) fn lose_notification(&mut self, env: &mut ClientEnv, http: &HttpExchange, error: CallError) {
        if http.is_notification() {
            env.diagnose(DiagnosticKind::DroppedNotification, error.to_string());
        }
        if let ExchangeRole::Notification(Some(id)) = http.role {
            self.events.push_back(LinkEvent::NotificationEnded(id, Err(error)));
        }
    }
}
