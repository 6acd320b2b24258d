//! Outgoing messages: requests, notifications, responses and cancellations. Also the ends of
//! exchanges.

use super::ids::Purpose;
use super::link::{Link, OutgoingRequest};
use super::phase::Phase;
use super::{CancelSignal, Client, Target, Termination};
use crate::exchange::{Closed, Endpoint, ExchangeId};
use crate::input::NotificationId;
use crate::model::completion;
use crate::model::lifecycle::meta;
use crate::model::logging::LogLevel;
use crate::rpc::{self, Id, Object};
use crate::version::{Era, ProtocolVersion};

impl Client {
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
        let fields = self.catalogue.headers(&self.env, method, &params, version);
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
                    call.is_some_and(|call| self.catalogue.is_repeatable(&call.raw))
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
        if !is_duplex && let Some(exchange) = self.env.ids.exchange(id) {
            self.drop_exchange(exchange);
        }
    }

    /// Ends an exchange. A notification on it ends as aborted.
    pub(super) fn drop_exchange(&mut self, exchange: ExchangeId) {
        let was_duplex = self.with_link(|link, env| link.drop_exchange(env, exchange));
        if was_duplex {
            self.notifications.end_all(&mut self.env, &Closed::Aborted);
        }
        self.terminate_if_done();
    }

    /// Ends all exchanges: a duplex one in order, HTTP ones at once. If the application closed the
    /// client, a notification that is in flight over HTTP has limited time to complete. The client
    /// also drops a connection that is still being opened, since its server has seen nothing. A
    /// program runs already, or will run, and has time to end in order.
    pub(super) fn end_exchanges(&mut self) {
        let is_program = matches!(self.env.config.target, Target::Duplex(Endpoint::Program(_)));
        match &mut self.link {
            Link::Duplex(duplex) => match duplex.exchange() {
                Some(exchange) if !duplex.has_reached_server() && !is_program => self.drop_exchange(exchange),
                Some(_) | None => duplex.send_end(&mut self.env),
            },
            Link::Http(_, http) => {
                let requested = matches!(self.env.phase, Phase::Closing(Termination::Requested));
                for exchange in http.ids() {
                    self.with_link(|link, env| {
                        link.http_mut().into_iter().for_each(|http| http.end(env, exchange, requested));
                    });
                    self.terminate_if_done();
                }
            }
        }
    }
}
