//! What the end of an HTTP exchange means: the table of statuses and ends, by what the exchange was for and by the era
//! (2025-11-25 transports; 2026-07-28 streamable-http). Every way out ends or repeats whatever waited for it.

use super::stream::Next;
use super::{Http, Role, Stage};
use crate::client::ids::Purpose;
use crate::client::link::Exchange;
use crate::client::{Client, Repeat, State};
use crate::error::{CallError, StreamEnd};
use crate::exchange::{Closed, ExchangeId, Sent};
use crate::frame::{Media, media_type};
use crate::input::CallId;
use crate::rpc::{DecodeError, Id};
use crate::version::Era;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::{String, ToString};

/// How an exchange ended.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum ExchangeEnd {
    End,
    Failed { sent: Sent, why: Closed },
}

impl Client {
    pub(super) fn on_exchange_end(&mut self, exchange: ExchangeId, over: ExchangeEnd) {
        self.end_timers(exchange);
        if let Some(http) = self.exchanges.http_mut(exchange) {
            http.stage = Stage::Over;
        }
        let is_closing = matches!(self.state(), State::Closing | State::Terminated);
        let is_decided = self.exchanges.http(exchange).is_some_and(Http::is_decided);
        let over = match over {
            // A body that breaks or stalls takes nothing back of what the head said.
            ExchangeEnd::Failed { why, .. } if is_decided && !matches!(why, Closed::Denied(_)) => ExchangeEnd::End,
            over => over,
        };
        if !is_closing && over == ExchangeEnd::End && self.park_if_challenged(exchange) {
            return;
        }
        let Some(http) = self.exchanges.http(exchange) else { return };
        match http.role.clone() {
            Role::Initialized | Role::Notification(_) | Role::Cancelled => self.on_message_end(exchange, over),
            _ if is_closing => {
                self.exchanges.remove(&exchange);
            }
            Role::Request(id, purpose) => self.on_request_end(exchange, id, purpose, over),
            Role::Listener => self.on_listener_exchange_end(exchange, over),
            Role::Response => self.on_message_end(exchange, over),
            Role::Answered | Role::Delete => {
                self.exchanges.remove(&exchange);
            }
        }
        self.terminate_if_done();
    }

    /// A listener or a subscription has ended by itself.
    pub(super) fn on_stream_end(&mut self, exchange: ExchangeId, end: StreamEnd) {
        self.end_timers(exchange);
        let Some(http) = self.exchanges.http(exchange) else { return };
        match http.role.clone() {
            Role::Listener => self.on_listener_end(exchange, end, None),
            Role::Request(id, Purpose::Listen) => {
                self.exchanges.remove(&exchange);
                self.ids.retire(&id);
                self.on_subscription_end(end, None);
            }
            _ => {}
        }
    }

    fn on_request_end(&mut self, exchange: ExchangeId, id: Id, purpose: Purpose, over: ExchangeEnd) {
        let Some(http) = self.exchanges.http(exchange) else { return };
        let is_attempt = http.is_get();
        match over {
            ExchangeEnd::Failed { why: Closed::Denied(reason), sent } => {
                self.exchanges.remove(&exchange);
                self.ids.retire(&id);
                self.on_denied_request(&id, purpose, sent, reason);
            }
            ExchangeEnd::End if self.is_session_gone(http) => self.on_session_gone(exchange),
            over if is_attempt || http.is_stream() && self.is_resumable(http) => {
                let (goes_on, end, at_least) = match over {
                    ExchangeEnd::Failed { why, .. } => (true, StreamEnd::Closed(why), None),
                    ExchangeEnd::End => Self::end_of_attempt(http),
                };
                // Without a cursor a GET would be a listener.
                let goes_on = goes_on && http.stream.cursor.is_some();
                if goes_on && matches!(self.schedule_resume(exchange, end.clone(), at_least), Next::Scheduled) {
                    return;
                }
                if let Some(Exchange::Http(http)) = self.exchanges.remove(&exchange) {
                    self.on_no_response(*http, end);
                }
            }
            over => {
                let Some(Exchange::Http(http)) = self.exchanges.remove(&exchange) else { return };
                let lost = match &over {
                    ExchangeEnd::Failed { sent, .. } => *sent == Sent::Maybe,
                    ExchangeEnd::End => http.is_stream(),
                };
                if let Purpose::Call(call) = purpose
                    && lost
                    && self.is_modern()
                    && self.may_repeat(call)
                {
                    return self.repeat(call, &id);
                }
                match over {
                    ExchangeEnd::Failed { sent, why } => {
                        self.ids.retire(&id);
                        self.on_broken(purpose, sent, why);
                    }
                    ExchangeEnd::End => self.on_no_response(*http, StreamEnd::Ended),
                }
            }
        }
    }

    fn on_denied_request(&mut self, id: &Id, purpose: Purpose, sent: Sent, reason: String) {
        match purpose {
            Purpose::Call(call) => self.end(call, Err(CallError::Denied { sent, reason })),
            Purpose::Discover | Purpose::Initialize => self.on_handshake_denied(reason),
            Purpose::Ping => self.on_ping_denied(id, &reason),
            Purpose::Listen => self.turn_subscription_off(reason),
        }
    }

    fn on_broken(&mut self, purpose: Purpose, sent: Sent, why: Closed) {
        match purpose {
            Purpose::Call(call) => self.end(call, Err(CallError::Closed { sent, why })),
            Purpose::Ping => self.on_ping_lost(),
            Purpose::Discover | Purpose::Initialize => self.on_handshake_closed(sent == Sent::Maybe, why),
            Purpose::Listen => self.on_subscription_end(StreamEnd::Closed(why), None),
        }
    }

    /// All was said, and the response was not in it.
    pub(super) fn on_no_response(&mut self, http: Http, end: StreamEnd) {
        let Role::Request(id, purpose) = http.role.clone() else { return };
        self.ids.retire(&id);
        match purpose {
            Purpose::Call(call) => {
                let error = call_error(http, id, end);
                self.end(call, Err(error));
            }
            Purpose::Ping => self.on_ping_lost(),
            Purpose::Listen if http.has_failed() => match Self::end_of_attempt(&http) {
                (true, end, at_least) => self.on_subscription_end(end, at_least),
                (false, end, _) => self.on_subscription_refused(end),
            },
            Purpose::Listen => self.on_subscription_end(end, None),
            Purpose::Discover | Purpose::Initialize if http.has_failed() => {
                self.on_handshake_status(http.to_error());
            }
            Purpose::Discover | Purpose::Initialize => {
                let cause = match call_error(http, id, end) {
                    CallError::Decode(e) => e,
                    other => DecodeError::new(other.to_string()),
                };
                self.on_handshake_defect(cause);
            }
        }
    }

    fn is_modern(&self) -> bool {
        self.version().is_some_and(|version| version.era() == Era::Modern)
    }

    /// Whether a call may run twice.
    pub(super) fn is_repeatable(&self, call: CallId) -> bool {
        self.calls.get(&call).is_some_and(|call| call.raw.options.repeatable || self.catalogue.is_repeatable(&call.raw))
    }

    /// Whether a call whose answer was lost may be made once more.
    pub(super) fn may_repeat(&self, call: CallId) -> bool {
        let allowed = match self.config.repeat {
            Repeat::Safe => self.is_repeatable(call),
            Repeat::Always => true,
            Repeat::Never => false,
        };
        allowed && !self.was_repeated(call)
    }

    /// Whether the call was made a second time, or has ended.
    pub(super) fn was_repeated(&self, call: CallId) -> bool {
        self.calls.get(&call).is_none_or(|call| call.repeated)
    }

    /// Makes a call once more, under a new id.
    pub(super) fn repeat(&mut self, call: CallId, id: &Id) {
        self.ids.retire(id);
        self.requeue(call, true);
        self.send_queued();
    }
}

/// What a call comes to whose answer holds no response.
fn call_error(http: Http, id: Id, end: StreamEnd) -> CallError {
    let attempts = http.stream.backoff.attempts();
    let is_attempt = http.is_get();
    let no_response = |http: &Http| CallError::NoResponse { id, attempts, any_message: http.any_message, cause: end };
    match (&http.head, &http.last_defect) {
        // A challenge is one wherever it comes.
        (_, _) if is_attempt && !matches!(http.status(), 401 | 403) => no_response(&http),
        _ if http.has_failed() => CallError::Http(Box::new(http.to_error())),
        (_, Some(defect)) => CallError::Decode(DecodeError::new(defect.to_string())),
        (Some(head), None) if !http.is_stream() && !http.any_message => {
            // JSON that holds nothing at all is of no type that could be told.
            let content_type = head.headers.get("content-type").filter(|_| media_type(&head.headers) != Media::Json);
            CallError::ContentType { status: head.status, content_type: content_type.map(ToOwned::to_owned) }
        }
        _ => no_response(&http),
    }
}
