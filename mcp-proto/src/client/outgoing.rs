//! Outgoing messages: requests, notifications, responses and cancellations.

use super::CancelSignal;
use super::ctx::Ctx;
use super::ids::Purpose;
use super::link::OutgoingRequest;
use crate::exchange::ExchangeId;
use crate::input::NotificationId;
use crate::model::completion;
use crate::model::lifecycle::meta;
use crate::model::logging::LogLevel;
use crate::rpc::{self, ErrorObject, Id, Object};
use crate::version::{Era, ProtocolVersion};

impl Ctx {
    /// Sends a request. Returns its id.
    pub(super) fn send_request(
        &mut self,
        purpose: Purpose,
        method: &str,
        mut params: Object,
        version: ProtocolVersion,
    ) -> Id {
        completion::lower_params(method, &mut params, version);
        let exchange = self.link.next_exchange();
        let id = self.env.ids.mint(self.env.now, purpose, exchange);
        let (params, meta) = self.split_meta(params, &id, purpose, version);
        let message = match meta.is_empty() {
            true => rpc::request(&id, method, (!params.is_empty()).then_some(&params)),
            false => rpc::request_with_meta(&id, method, &params, &meta),
        };
        let fields = self.tools.mirrored(&self.env, method, &params);
        let request = OutgoingRequest {
            id: id.clone(),
            purpose,
            method,
            params: &params,
            message,
            version,
            fields: fields.unwrap_or_default(),
            repeatable: match purpose {
                // A duplex link never repeats a request: the tool need not be looked up.
                Purpose::Call(call) => {
                    let call = self.calls.get(call).filter(|_| !self.env.is_duplex());
                    call.is_some_and(|call| self.tools.may_run_twice(&call.raw))
                }
                Purpose::Discover | Purpose::Initialize | Purpose::Ping | Purpose::Listen => true,
            },
        };
        self.link.send_request(&mut self.env, exchange, request);
        id
    }

    /// Returns the params of a request without `_meta`, and its `_meta`: with the members that the
    /// era demands, and with the progress token if the call requests progress. These members
    /// replace those of the application.
    fn split_meta(
        &mut self,
        mut params: Object,
        id: &Id,
        purpose: Purpose,
        version: ProtocolVersion,
    ) -> (Object, Object) {
        let own = params.remove(meta::META).and_then(|meta| Object::read(&meta).ok()).unwrap_or_default();
        let mut member = match version.era() {
            Era::Legacy => own,
            Era::Modern if self.env.only_calls_tools() => own,
            Era::Modern if own.is_empty() => self.env.modern_meta(version),
            Era::Modern => own.with_all(&self.env.modern_meta(version)),
        };
        member.remove(meta::PROGRESS_TOKEN);
        if let Some(level) = self.log_level_of(purpose, version) {
            member.set(meta::LOG_LEVEL, level.as_str());
        }
        if let Purpose::Call(call) = purpose
            && self.calls.wants_token(&self.env, call)
        {
            member.set(meta::PROGRESS_TOKEN, id);
        }
        (params, member)
    }

    /// Returns the level of log messages that a request names: that of its call, or that of the
    /// application. A subscription has none (2026-07-28, logging: per-request log level).
    fn log_level_of(&self, purpose: Purpose, version: ProtocolVersion) -> Option<LogLevel> {
        match (version.era(), purpose) {
            (Era::Legacy, _) | (Era::Modern, Purpose::Listen) => None,
            (Era::Modern, _) if self.env.only_calls_tools() => None,
            (Era::Modern, Purpose::Call(call)) => {
                let own = self.calls.get(call).and_then(|call| call.raw.options.log_level);
                own.or(self.env.log_level)
            }
            (Era::Modern, Purpose::Discover | Purpose::Initialize | Purpose::Ping) => self.env.log_level,
        }
    }

    /// Sends a notification. With an `id`, the client reports its delivery.
    pub(super) fn send_notification(&mut self, method: &str, params: &Object, id: Option<NotificationId>) {
        let params = (!params.is_empty()).then_some(params);
        let message = rpc::notification(method, params);
        self.link.send_notification(&mut self.env, (method, params), message, id);
    }

    /// Cancels a request at the server.
    pub(super) fn send_cancel(&mut self, id: &Id, reason: Option<&str>) {
        let (is_legacy, is_duplex) = (self.env.is_legacy(), self.env.is_duplex());
        let has_begun = !self.link.is_unsent(&self.env, id);
        if self.env.config.compat.cancel_signal == CancelSignal::Server && has_begun && (is_legacy || is_duplex) {
            let params = Object::new().with("requestId", id).with_opt("reason", reason);
            self.send_notification("notifications/cancelled", &params, None);
        }
        // From 2026-07-28 on, closing the response stream is the only cancellation signal over
        // HTTP. Before that, it is no signal, and only frees the connection.
        if let (Some(exchange), Some(http)) = (self.env.ids.exchange(id), self.link.http_mut()) {
            http.drop_exchange(&mut self.env, exchange);
        }
    }

    /// Sends the response to a request of the server.
    pub(super) fn reply(&mut self, exchange: ExchangeId, id: &Id, result: Result<Object, ErrorObject>) {
        let message = match result {
            Ok(result) => rpc::result_response(id, &result),
            Err(error) => rpc::error_response(Some(id), &error),
        };
        self.link.send_response(&mut self.env, exchange, message);
    }
}
