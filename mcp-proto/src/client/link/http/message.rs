//! What is posted and has no answer but a status: notifications, and our responses to requests of the server (2025-11-25 and 2026-07-28,
//! sending messages to the server). A notification that was accepted outlives the close of the client for a while.

use super::exchange_end::ExchangeEnd;
use super::{Http, Request, Role, metadata, success};
use crate::client::era::Phase;
use crate::client::link::Exchange;
use crate::client::{Client, State, Termination, Timer};
use crate::error::{CallError, DiagnosticKind};
use crate::exchange::{Closed, ExchangeId, Headers, Inbound};
use crate::input::NotificationId;
use crate::rpc::Object;
use alloc::boxed::Box;
use alloc::string::ToString;
use bytes::Bytes;

impl Client {
    /// Posts a notification.
    pub(in crate::client) fn post_notification(
        &mut self,
        method: &str,
        params: Option<&Object>,
        body: Bytes,
        id: Option<NotificationId>,
    ) {
        let Some(version) = self.version() else { return };
        let role = match method {
            "notifications/initialized" => Role::Initialized,
            "notifications/cancelled" => Role::Cancelled,
            _ => Role::Notification(id),
        };
        if role == Role::Cancelled && self.has_many(&role) {
            return self.diagnose(DiagnosticKind::DroppedNotification, "the server has not accepted those before it");
        }
        self.post_message(role, metadata(version, method, params), body);
    }

    /// Posts the response to a request of the server.
    pub(in crate::client) fn post_response(&mut self, body: Bytes) {
        if self.has_many(&Role::Response) {
            return self.diagnose(DiagnosticKind::DroppedResponse, "the server has not taken those before it");
        }
        self.post_message(Role::Response, self.bare_headers(), body);
    }

    /// Returns whether as many exchanges with this role are open as calls may be. A server that accepts none of them must not fill the
    /// memory of its client.
    fn has_many(&self, role: &Role) -> bool {
        let has_role = |exchange: &&Exchange| matches!(exchange, Exchange::Http(http) if http.role == *role);
        self.exchanges.values().filter(has_role).count() >= self.config.limits.client.max_calls.max(1)
    }

    /// Posts what has no answer but a status.
    fn post_message(&mut self, role: Role, headers: Headers, body: Bytes) {
        let exchange = self.exchanges.mint();
        self.timers.set(Timer::Answer(exchange), self.config.timeout.map(|limit| self.now + limit));
        // To say it twice does no harm, and a server that never hears it tells nothing of changes.
        let repeatable = role == Role::Initialized;
        self.begin_http(exchange, Http::new(role, Request::post(headers, body, repeatable)));
    }

    /// A notification or a response of ours was taken, or was not. Any 2xx with any body is a yes.
    pub(super) fn on_message_end(&mut self, exchange: ExchangeId, over: ExchangeEnd) {
        let Some(http) = self.exchanges.http(exchange) else { return };
        let is_closing = matches!(self.state(), State::Closing | State::Terminated);
        if !is_closing && over == ExchangeEnd::End && self.is_session_gone(http) {
            return self.on_session_gone(exchange);
        }
        let Some(Exchange::Http(http)) = self.exchanges.remove(&exchange) else { return };
        let (failure, outcome) = match over {
            ExchangeEnd::End if success(http.status()) => (None, Ok(())),
            ExchangeEnd::End => (Some(http.to_error().to_string()), Err(CallError::Http(Box::new(http.to_error())))),
            ExchangeEnd::Failed { why: Closed::Denied(reason), sent } => {
                self.diagnose(DiagnosticKind::Denied, Closed::Denied(reason.clone()).to_string());
                (None, Err(CallError::Denied { sent, reason }))
            }
            ExchangeEnd::Failed { why, sent } => (Some(why.to_string()), Err(CallError::Closed { sent, why })),
        };
        if let Some(why) = failure {
            let kind = match http.role {
                Role::Response => DiagnosticKind::DroppedResponse,
                _ => DiagnosticKind::DroppedNotification,
            };
            self.diagnose(kind, why);
        }
        match http.role {
            Role::Notification(Some(id)) => self.end_notification(id, outcome),
            Role::Initialized if !is_closing => self.on_initialized_taken(),
            _ => {}
        }
    }

    /// The client is closing: of the answer to a notification the status counts.
    pub(super) fn on_closing_item(&mut self, exchange: ExchangeId, item: Inbound) {
        if let (Some(http), Inbound::Response(head)) = (self.exchanges.http_mut(exchange), item) {
            http.head = Some(head);
            // It may go on for as long as it likes.
            if http.is_stream() {
                self.finish(exchange);
            }
        }
    }

    /// The client is closing: an exchange is dropped, unless the application asked for that and it carries a notification, which has some
    /// time left.
    pub(in crate::client) fn end_http(&mut self, exchange: ExchangeId) {
        let requested = matches!(self.phase, Phase::Closing(Termination::Requested));
        match self.exchanges.http(exchange) {
            Some(http) if requested && http.is_notification() && http.is_live() => {
                if http.is_decided() {
                    return self.finish(exchange);
                }
                let until = self.now + self.config.limits.client.session_end_time;
                self.timers.set(Timer::Answer(exchange), Some(until));
            }
            _ => self.drop_exchange(exchange),
        }
    }

    /// A notification was not taken.
    pub(in crate::client) fn lose_notification(&mut self, http: &Http, error: CallError) {
        if http.is_notification() {
            self.diagnose(DiagnosticKind::DroppedNotification, error.to_string());
        }
        if let Role::Notification(Some(id)) = http.role {
            self.end_notification(id, Err(error));
        }
    }
}
