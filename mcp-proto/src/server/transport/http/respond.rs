//! Responses of HTTP exchanges: one JSON object, an event stream, or an error.

use super::{Http, ResponseStage};
use crate::error::DiagnosticKind;
use crate::exchange::{BadRequest, Body, ExchangeId, Headers, Outbound, ResponseHead};
use crate::rpc::{ErrorObject, Id, Message, Object, Payload, Response, code, error_response, parse};
use crate::server::Output;
use crate::server::env::ServerEnv;
use crate::server::keys::ServerTimer;
use crate::server::response::ErrorReply;
use alloc::format;
use alloc::sync::Arc;
use bytes::Bytes;
use core::time::Duration;

/// The fields of a JSON response.
const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];

/// The fields of an event stream, which some proxies would hold back.
const EVENTS: &[(&str, &str)] =
    &[("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache, no-transform"), ("X-Accel-Buffering", "no")];

/// The `Retry-After` of a response without room, in seconds.
const RETRY_AFTER: &str = "1";

impl ServerEnv {
    /// Refuses a request that the codec rejected.
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

    /// Responds to a request that does not run.
    pub(in crate::server) fn reject(&mut self, x: ExchangeId, id: Option<&Id>, status: u16, rejection: &ErrorReply) {
        let status = rejection.status.unwrap_or(status);
        self.diagnose(rejection.kind, &rejection.error.message);
        let headers = match status {
            503 => Headers::new().with("Retry-After", RETRY_AFTER),
            _ => Headers::new(),
        };
        self.respond_error(x, status, headers, id, &rejection.error);
    }

    /// Refuses a request above a limit.
    pub(in crate::server) fn refuse_busy(&mut self, x: ExchangeId, id: Option<&Id>, why: &str) {
        self.reject(x, id, 503, &ErrorReply::full(why));
    }

    /// Refuses a request for its head.
    pub(in crate::server) fn refuse_head(&mut self, x: ExchangeId, status: u16, why: &'static str) {
        self.refuse(x, status, Headers::new().with("Connection", "close"), why);
    }

    /// Refuses a request that was admitted and whose body has not arrived. Does nothing in any
    /// other state.
    pub(in crate::server) fn refuse_unread(&mut self, x: ExchangeId, why: &'static str) {
        if self.http(x).is_some_and(|http| matches!(http.stage, ResponseStage::Reading)) {
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

    /// Sends the only message of a response: as JSON, or as the only event of a stream if the
    /// client accepts nothing else.
    pub(in crate::server) fn answer_one(&mut self, x: ExchangeId, headers: Headers, body: Bytes) {
        if self.http(x).is_none_or(|http| http.accepts.json) {
            return self.answer_json(x, 200, headers, body);
        }
        self.begin_events(x, headers);
        self.say_last(x, body);
    }

    /// Sends the last event of a stream that cannot be resumed.
    pub(in crate::server) fn say_last(&mut self, x: ExchangeId, data: Bytes) {
        self.send(x, Outbound::Event { event: None, id: None, retry: None, data });
        self.send(x, Outbound::End);
        self.end(x);
    }

    pub(in crate::server) fn answer_json(&mut self, x: ExchangeId, status: u16, headers: Headers, body: Bytes) {
        self.answer_with(x, status, headers.with_fixed(JSON), body);
    }

    /// Sends a whole response, and removes the exchange.
    pub(in crate::server) fn answer_with(&mut self, x: ExchangeId, status: u16, headers: Headers, body: Bytes) {
        if self
            .http(x)
            .is_some_and(|http| matches!(http.stage, ResponseStage::Admitting { .. } | ResponseStage::Reading))
        {
            self.leave_unread(x);
        }
        self.send(x, Outbound::Response { head: ResponseHead { status, headers }, body: Body::Full(body) });
        self.end(x);
    }

    /// An exchange is answered before its request body was read. The engine ignores the body. A
    /// driver that drops the body reports no end of it, so at the limit the exchange with the
    /// lowest number is forgotten.
    pub(in crate::server) fn leave_unread(&mut self, x: ExchangeId) {
        self.unread.insert(x);
        if self.unread.len() > self.config.limits.server.max_exchanges {
            self.unread.pop_first();
        }
    }

    /// Responds 202: the message has no response.
    pub(in crate::server) fn accept(&mut self, x: ExchangeId) {
        self.answer_with(x, 202, Headers::new(), Bytes::new());
    }

    /// Begins an event stream. The caller sends the first byte of the body at once: some proxies
    /// hold the head back until then.
    pub(in crate::server) fn begin_events(&mut self, x: ExchangeId, headers: Headers) {
        let headers = headers.with_fixed(EVENTS);
        self.send(x, Outbound::Response { head: ResponseHead { status: 200, headers }, body: Body::Stream });
    }

    /// Sends on an event stream, and restarts its keep-alive timer.
    pub(in crate::server) fn send_on_stream(&mut self, x: ExchangeId, outgoing: Outbound) {
        self.send(x, outgoing);
        self.keep_alive_in(x, self.config.keep_alive);
    }

    /// Sends a comment on an event stream.
    pub(in crate::server) fn send_comment(&mut self, x: ExchangeId) {
        self.send(x, Outbound::Comment(self.config.keep_alive_text.clone()));
    }

    pub(in crate::server) fn keep_alive_in(&mut self, x: ExchangeId, after: Option<Duration>) {
        self.timers.set(ServerTimer::KeepAlive(x), after.map(|after| self.now + after));
    }

    /// Drops the head of a request whose response is a stream that stays open.
    pub(in crate::server) fn drop_head(&mut self, x: ExchangeId) {
        let dropped = Arc::clone(&self.dropped_head);
        if let Some(http) = self.http(x) {
            http.head = dropped;
        }
    }

    /// The server terminates. Answers a request that has no response; aborts an open event stream.
    pub(in crate::server) fn end_http(&mut self, x: ExchangeId) {
        match self.http(x).map(|http| &http.stage) {
            Some(
                ResponseStage::Admitting { .. }
                | ResponseStage::Reading
                | ResponseStage::Answering
                | ResponseStage::Storing(_),
            ) => {
                self.send(x, unavailable("the server is shutting down"));
            }
            Some(ResponseStage::Carrying(_) | ResponseStage::Tailing) => self.queue.push(Output::Abort(x)),
            Some(ResponseStage::Written(_)) | None => {}
        }
    }

    /// Returns whether the client accepts an event stream as the response.
    pub(in crate::server) fn takes_events(&self, x: ExchangeId) -> bool {
        let http = self.exchanges.get(&x).and_then(|exchange| exchange.binding.http());
        http.is_some_and(|http| http.accepts.events)
    }

    pub(in crate::server) fn http(&mut self, x: ExchangeId) -> Option<&mut Http> {
        self.exchanges.get_mut(&x)?.binding.http_mut()
    }
}

/// Returns the response of a server without room or about to end. It closes the connection, so that
/// the client retries on another.
pub(crate) fn unavailable(why: &'static str) -> Outbound {
    let headers = Headers::new().with("Retry-After", RETRY_AFTER).with("Connection", "close");
    error_answer(503, headers, None, &plain_error(503, why))
}

/// Returns the status of a response that is not streamed.
pub(super) const fn status_of(code: Option<i64>) -> u16 {
    match code {
        Some(code::METHOD_NOT_FOUND) => 404,
        Some(code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY | code::UNSUPPORTED_VERSION) => 400,
        _ => 200,
    }
}

/// Returns the field `Retry-After` for the error `429`, if that says when.
pub(super) fn retry_after(error: &Bytes) -> Headers {
    let data = match parse(error.clone(), u32::MAX) {
        Ok(Message::Response(Response { payload: Payload::Error(error), .. })) => error.data,
        Ok(_) | Err(_) => None,
    };
    let data = data.and_then(|data| Object::read(&data).ok());
    match data.and_then(|data| data.optional::<u64>("retryAfterMs").ok().flatten()) {
        Some(millis) => Headers::new().with("Retry-After", format!("{}", millis.div_ceil(1000).max(1))),
        None => Headers::new(),
    }
}

/// Returns an error response with a JSON-RPC error.
fn error_answer(status: u16, headers: Headers, id: Option<&Id>, error: &ErrorObject) -> Outbound {
    let head = ResponseHead { status, headers: headers.with_fixed(JSON) };
    Outbound::Response { head, body: Body::Full(error_response(id, error)) }
}

fn plain_error(status: u16, why: &'static str) -> ErrorObject {
    ErrorObject::new(if status < 500 { code::INVALID_REQUEST } else { code::INTERNAL_ERROR }, why)
}
