//! Interpretation of the end of an HTTP exchange, by status, kind of end, purpose of the exchange
//! and era (2025-11-25 transports; 2026-07-28 streamable-http). Every branch ends or repeats the
//! request that waited for the exchange.

use super::stream::NextRound;
use super::{ExchangeRole, ExchangeStage, HttpExchange, HttpLink, tells_of_era};
use crate::client::State;
use crate::client::env::ClientEnv;
use crate::client::handshake::HandshakeEvent;
use crate::client::ids::Purpose;
use crate::client::link::event::{LinkEvent, SubscriptionEnd};
use crate::client::login::Challenged;
use crate::error::{CallError, StreamEnd};
use crate::exchange::{Closed, ExchangeId, Sent};
use crate::frame::{Media, media_type};
use crate::rpc::{DecodeError, Id};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::{String, ToString};

/// How an exchange ended.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum ExchangeEnd {
    End,
    Failed { sent: Sent, why: Closed },
}

impl HttpLink {
    pub(super) fn on_exchange_end(&mut self, env: &mut ClientEnv, exchange: ExchangeId, over: ExchangeEnd) {
        self.end_timers(env, exchange);
        if let Some(http) = self.exchanges.get_mut(exchange) {
            http.stage = ExchangeStage::Over;
        }
        let is_closing = matches!(env.state(), State::Closing | State::Terminated);
        let is_decided = self.exchanges.get(exchange).is_some_and(HttpExchange::is_decided);
        let over = match over {
            // A body that breaks or stalls does not change an outcome that the head decided.
            ExchangeEnd::Failed { why, .. }
                if is_decided && !matches!(why, Closed::Denied(_) | Closed::Unauthorized(_)) =>
            {
                ExchangeEnd::End
            }
            over => over,
        };
        let over = match over {
            ExchangeEnd::End if !is_closing => match self.park_if_challenged(env, exchange) {
                Challenged::No => ExchangeEnd::End,
                Challenged::Waits => return,
                Challenged::Failed(why) => ExchangeEnd::Failed { sent: Sent::No, why: Closed::Unauthorized(why) },
            },
            over => over,
        };
        let goes_on = !is_closing
            && match over {
                ExchangeEnd::Failed { why: Closed::Unauthorized(_), .. } => false,
                ExchangeEnd::End => self.follow_redirect(env, exchange),
                ExchangeEnd::Failed { .. } => {
                    self.return_to_target(env, exchange, &over) || self.repeat_proved(env, exchange, &over)
                }
            };
        if goes_on {
            return;
        }
        let Some(http) = self.exchanges.get(exchange) else { return };
        match http.role.clone() {
            ExchangeRole::Initialized | ExchangeRole::Notification(_) | ExchangeRole::Cancelled => {
                self.on_message_end(env, exchange, over)
            }
            _ if is_closing => {
                self.exchanges.remove(exchange);
            }
            ExchangeRole::Request(id, purpose) => self.on_request_end(env, exchange, id, purpose, over),
            ExchangeRole::Posted(id, purpose) => self.on_posted(env, exchange, id, purpose, over),
            ExchangeRole::Listener => self.on_listener_exchange_end(env, exchange, over),
            ExchangeRole::Sse => self.on_sse_end(env, exchange, over),
            ExchangeRole::Response => self.on_message_end(env, exchange, over),
            ExchangeRole::Answered | ExchangeRole::Delete => {
                self.exchanges.remove(exchange);
            }
        }
    }

    /// Handles the end of the stream of a listener or a subscription.
    pub(super) fn on_stream_end(&mut self, env: &mut ClientEnv, exchange: ExchangeId, end: StreamEnd) {
        self.end_timers(env, exchange);
        let Some(http) = self.exchanges.get(exchange) else { return };
        match http.role.clone() {
            ExchangeRole::Listener => self.on_listener_end(env, exchange, end),
            ExchangeRole::Request(id, Purpose::Listen) => {
                self.exchanges.remove(exchange);
                env.ids.retire(&id);
                self.subscription_ended(id, SubscriptionEnd::Ended(end));
            }
            _ => {}
        }
    }

    fn on_request_end(
        &mut self,
        env: &mut ClientEnv,
        exchange: ExchangeId,
        id: Id,
        purpose: Purpose,
        over: ExchangeEnd,
    ) {
        let Some(http) = self.exchanges.get(exchange) else { return };
        let is_attempt = http.is_get();
        match over {
            ExchangeEnd::Failed { why: Closed::Denied(reason), sent } => {
                self.exchanges.remove(exchange);
                self.on_denied_request(env, id, purpose, sent, reason);
            }
            ExchangeEnd::Failed { why: why @ Closed::Unauthorized(_), sent } => {
                self.exchanges.remove(exchange);
                self.on_broken(env, id, purpose, false, (sent, why));
            }
            ExchangeEnd::End if self.is_session_gone(env, http) => self.on_session_gone(env, exchange),
            over if is_attempt || http.is_stream() && self.is_resumable(env, http) => {
                let (goes_on, end) = match over {
                    ExchangeEnd::Failed { why, .. } => (true, StreamEnd::Closed(why)),
                    ExchangeEnd::End => Self::end_of_attempt(http),
                };
                // A GET without a cursor would open a listener.
                let goes_on = goes_on && http.stream.cursor.is_some();
                if goes_on && matches!(self.schedule_resume(env, exchange, end.clone()), NextRound::Scheduled) {
                    return;
                }
                if let Some(http) = self.exchanges.remove(exchange) {
                    self.on_no_response(env, http, end, false);
                }
            }
            over => {
                let Some(http) = self.exchanges.remove(exchange) else { return };
                let lost = match &over {
                    ExchangeEnd::Failed { sent, .. } => *sent == Sent::Maybe,
                    ExchangeEnd::End => http.is_stream(),
                };
                let is_lost = lost && env.is_modern();
                match over {
                    ExchangeEnd::Failed { sent, why } => self.on_broken(env, id, purpose, is_lost, (sent, why)),
                    ExchangeEnd::End => self.on_no_response(env, http, StreamEnd::Ended, is_lost),
                }
            }
        }
    }

    pub(super) fn on_denied_request(
        &mut self,
        env: &mut ClientEnv,
        id: Id,
        purpose: Purpose,
        sent: Sent,
        reason: String,
    ) {
        env.ids.retire(&id);
        self.events.push_back(match purpose {
            Purpose::Call(call) => {
                LinkEvent::CallEnded { call, id, is_lost: false, error: CallError::Denied { sent, reason } }
            }
            Purpose::Discover | Purpose::Initialize => LinkEvent::Handshake(HandshakeEvent::Denied(reason)),
            Purpose::Ping => LinkEvent::PingDenied(id, reason),
            Purpose::Listen => LinkEvent::SubscriptionEnded(id, SubscriptionEnd::Denied(reason)),
        });
    }

    pub(super) fn on_broken(
        &mut self,
        env: &mut ClientEnv,
        id: Id,
        purpose: Purpose,
        is_lost: bool,
        (sent, why): (Sent, Closed),
    ) {
        if let Purpose::Call(call) = purpose {
            let error = CallError::Closed { sent, why };
            return self.events.push_back(LinkEvent::CallEnded { call, id, is_lost, error });
        }
        env.ids.retire(&id);
        self.events.push_back(match purpose {
            Purpose::Discover | Purpose::Initialize => LinkEvent::Handshake(HandshakeEvent::Closed(sent, why)),
            Purpose::Listen if why.is_refusal() => {
                LinkEvent::SubscriptionEnded(id, SubscriptionEnd::Denied(why.to_string()))
            }
            Purpose::Listen => LinkEvent::SubscriptionEnded(id, SubscriptionEnd::Ended(StreamEnd::Closed(why))),
            Purpose::Ping | Purpose::Call(_) => LinkEvent::PingLost,
        });
    }

    /// Handles a complete HTTP response that lacks the JSON-RPC response.
    pub(super) fn on_no_response(&mut self, env: &mut ClientEnv, http: HttpExchange, end: StreamEnd, is_lost: bool) {
        let Some((id, purpose)) = http.request().map(|(id, purpose)| (id.clone(), purpose)) else { return };
        if let Purpose::Call(call) = purpose {
            let error = call_error(http, id.clone(), end);
            return self.events.push_back(LinkEvent::CallEnded { call, id, is_lost, error });
        }
        env.ids.retire(&id);
        self.events.push_back(match purpose {
            Purpose::Ping | Purpose::Call(_) => LinkEvent::PingLost,
            Purpose::Listen if http.has_failed() => LinkEvent::SubscriptionEnded(
                id,
                match Self::end_of_attempt(&http) {
                    (true, end) => SubscriptionEnd::Ended(end),
                    (false, end) => SubscriptionEnd::Refused(end),
                },
            ),
            Purpose::Listen => LinkEvent::SubscriptionEnded(id, SubscriptionEnd::Ended(end)),
            Purpose::Discover | Purpose::Initialize if http.has_failed() => {
                let (tells_of_era, error) = (tells_of_era(http.status()), Box::new(http.to_error()));
                LinkEvent::Handshake(HandshakeEvent::Refused { tells_of_era, error })
            }
            Purpose::Discover | Purpose::Initialize => {
                LinkEvent::Handshake(HandshakeEvent::Invalid(match call_error(http, id, end) {
                    CallError::Decode(e) => e,
                    other => DecodeError::new(other.to_string()),
                }))
            }
        });
    }

    fn subscription_ended(&mut self, id: Id, end: SubscriptionEnd) {
        self.events.push_back(LinkEvent::SubscriptionEnded(id, end));
    }
}

/// Returns the error of a call that got no response.
fn call_error(http: HttpExchange, id: Id, end: StreamEnd) -> CallError {
    let attempts = http.stream.backoff.attempts();
    let is_attempt = http.is_get();
    let no_response =
        |http: &HttpExchange| CallError::NoResponse { id, attempts, any_message: http.any_message, cause: end };
    match (&http.head, &http.last_defect) {
        // A challenge counts as one on a GET as well.
        (_, _) if is_attempt && !matches!(http.status(), 401 | 403) => no_response(&http),
        _ if http.has_failed() => CallError::Http(Box::new(http.to_error())),
        (_, Some(defect)) => CallError::Decode(DecodeError::new(defect.to_string())),
        (Some(head), None) if !http.is_stream() && !http.any_message => {
            // An empty JSON body has the right media type, so the error names none.
            let content_type = head.headers.get("content-type").filter(|_| media_type(&head.headers) != Media::Json);
            CallError::ContentType { status: head.status, content_type: content_type.map(ToOwned::to_owned) }
        }
        _ => no_response(&http),
    }
}
