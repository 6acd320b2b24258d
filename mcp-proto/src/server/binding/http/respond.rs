//! Responses of HTTP exchanges: one JSON object, an event stream, or an error.

use super::{Http, Stage};
use crate::error::DiagnosticKind;
use crate::exchange::{BadRequest, Body, ExchangeId, Headers, Outbound, ResponseHead};
use crate::rpc::{ErrorObject, Id, code, error_response};
use crate::server::env::Env;
use crate::server::era::ErrorReply;
use crate::server::{Output, Timer};
use alloc::sync::Arc;
use bytes::Bytes;
use core::time::Duration;

/// After what time a client that was refused for want of room may try again, in seconds.
const RETRY_AFTER: &str = "1";

impl Env {
    /// A request that was refused before it became an exchange.
    pub(in crate::server) fn http_reject(&mut self, x: ExchangeId, defect: &BadRequest) {
        self.diagnose(DiagnosticKind::BadRequest, defect.why);
        let response = match defect.status {
            503 => unavailable(defect.why),
            status => error_answer(status, Headers::new(), None, &plain_error(status, defect.why)),
        };
        if self.exchanges.contains_key(&x) {
            return self.send(x, response);
        }
        self.queue.push(Output::Send(x, response));
    }

    /// Answers a request that is not run.
    pub(in crate::server) fn reject(&mut self, x: ExchangeId, id: Option<&Id>, status: u16, rejection: &ErrorReply) {
        let status = rejection.status.unwrap_or(status);
        self.diagnose(rejection.kind, &rejection.error.message);
        let headers = match status {
            503 => Headers::new().with("Retry-After", RETRY_AFTER),
            _ => Headers::new(),
        };
        self.respond_error(x, status, headers, id, &rejection.error);
    }

    /// No room for it now.
    pub(in crate::server) fn refuse_busy(&mut self, x: ExchangeId, id: Option<&Id>, why: &str) {
        self.reject(x, id, 503, &ErrorReply::full(why));
    }

    /// Refuses a request for its head, whatever its body is.
    pub(in crate::server) fn refuse_head(&mut self, x: ExchangeId, status: u16, why: &'static str) {
        self.refuse(x, status, Headers::new().with("Connection", "close"), why);
    }

    /// Refuses a request that was admitted and whose body has not come. Does nothing at any other
    /// stage.
    pub(in crate::server) fn refuse_unread(&mut self, x: ExchangeId, why: &'static str) {
        if self.http(x).is_some_and(|http| matches!(http.stage, Stage::Reading)) {
            self.refuse_head(x, 403, why);
        }
    }

    /// Refuses a request for reasons of HTTP.
    pub(in crate::server) fn refuse(&mut self, x: ExchangeId, status: u16, headers: Headers, why: &'static str) {
        self.diagnose(DiagnosticKind::BadRequest, why);
        self.respond_error(x, status, headers, None, &plain_error(status, why));
    }

    pub(in crate::server) fn respond_error(
        &mut self,
        x: ExchangeId,
        status: u16,
        headers: Headers,
        id: Option<&Id>,
        error: &ErrorObject,
    ) {
        let body = error_response(id, error);
        if status == 200 { self.answer_one(x, headers, body) } else { self.answer_json(x, status, headers, body) }
    }

    /// The one answer to a request: JSON, or the only event of a stream where the client takes
    /// nothing else.
    pub(in crate::server) fn answer_one(&mut self, x: ExchangeId, headers: Headers, body: Bytes) {
        if self.http(x).is_none_or(|http| http.accepts.json) {
            return self.answer_json(x, 200, headers, body);
        }
        self.begin_events(x, headers);
        self.say_last(x, body);
    }

    /// The last event of a stream to which nobody can come back.
    pub(in crate::server) fn say_last(&mut self, x: ExchangeId, data: Bytes) {
        self.send(x, Outbound::Event { id: None, retry: None, data });
        self.send(x, Outbound::End);
        self.end(x);
    }

    pub(in crate::server) fn answer_json(&mut self, x: ExchangeId, status: u16, headers: Headers, body: Bytes) {
        self.answer_with(x, status, headers.with("Content-Type", "application/json"), body);
    }

    /// The whole answer, after which nothing is left of the exchange.
    pub(in crate::server) fn answer_with(&mut self, x: ExchangeId, status: u16, headers: Headers, body: Bytes) {
        if self.http(x).is_some_and(|http| matches!(http.stage, Stage::Admitting { .. } | Stage::Reading)) {
            self.leave_unread(x);
        }
        self.send(x, Outbound::Response { head: ResponseHead { status, headers }, body: Body::Full(body) });
        self.end(x);
    }

    /// An exchange is answered before its request body was read. What comes of the body is ignored.
    /// A driver that drops the body reports no end of it, so at the limit the exchange with the
    /// lowest number is forgotten.
    pub(in crate::server) fn leave_unread(&mut self, x: ExchangeId) {
        self.unread.insert(x);
        if self.unread.len() > self.config.limits.server.max_exchanges {
            self.unread.pop_first();
        }
    }

    /// Accepted, and there is nothing to say to it.
    pub(in crate::server) fn accept(&mut self, x: ExchangeId) {
        self.answer_with(x, 202, Headers::new(), Bytes::new());
    }

    /// Begins an event stream. What sends the first byte of its body follows at once: there are
    /// proxies that hold the head back until then.
    pub(in crate::server) fn begin_events(&mut self, x: ExchangeId, headers: Headers) {
        let headers = headers
            .with("Content-Type", "text/event-stream")
            .with("Cache-Control", "no-cache, no-transform")
            .with("X-Accel-Buffering", "no");
        self.send(x, Outbound::Response { head: ResponseHead { status: 200, headers }, body: Body::Stream });
    }

    /// Says something on an event stream, which then is not silent.
    pub(in crate::server) fn send_on_stream(&mut self, x: ExchangeId, outgoing: Outbound) {
        self.send(x, outgoing);
        self.keep_alive_in(x, self.config.keep_alive);
    }

    /// Writes something on an event stream that tells its client nothing.
    pub(in crate::server) fn send_comment(&mut self, x: ExchangeId) {
        self.send(x, Outbound::Comment(self.config.keep_alive_text.clone()));
    }

    pub(in crate::server) fn keep_alive_in(&mut self, x: ExchangeId, after: Option<Duration>) {
        self.timers.set(Timer::KeepAlive(x), after.map(|after| self.now + after));
    }

    /// Lets go of the head of a request whose response is a stream that stays open: nothing needs
    /// it any more.
    pub(in crate::server) fn drop_head(&mut self, x: ExchangeId) {
        if let Some(http) = self.http(x) {
            http.head = Arc::default();
        }
    }

    /// Whether the client takes an event stream for an answer.
    pub(in crate::server) fn takes_events(&self, x: ExchangeId) -> bool {
        let http = self.exchanges.get(&x).and_then(|exchange| exchange.binding.http());
        http.is_some_and(|http| http.accepts.events)
    }
    pub(in crate::server) fn http(&mut self, x: ExchangeId) -> Option<&mut Http> {
        self.exchanges.get_mut(&x)?.binding.http_mut()
    }
}

/// The answer where there is no room, or no time is left. Whoever gets it finds another connection,
/// and may come back.
pub(crate) fn unavailable(why: &'static str) -> Outbound {
    let headers = Headers::new().with("Retry-After", RETRY_AFTER).with("Connection", "close");
    error_answer(503, headers, None, &plain_error(503, why))
}

/// An answer that says why a request is not served, as JSON-RPC says it.
fn error_answer(status: u16, headers: Headers, id: Option<&Id>, error: &ErrorObject) -> Outbound {
    let head = ResponseHead { status, headers: headers.with("Content-Type", "application/json") };
    Outbound::Response { head, body: Body::Full(error_response(id, error)) }
}

fn plain_error(status: u16, why: &'static str) -> ErrorObject {
    ErrorObject::new(if status < 500 { code::INVALID_REQUEST } else { code::INTERNAL_ERROR }, why)
}
