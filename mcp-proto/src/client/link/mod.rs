//! The transport of messages: all on one duplex exchange, or each on an HTTP exchange of its own. A
//! link owns its exchanges and their state. It starts and ends exchanges, and reports
//! [`LinkEvent`]s to the client.

mod challenge;
mod dialect;
mod duplex;
mod event;
mod handshake;
mod http;

pub(super) use duplex::DuplexLink;
pub(super) use event::{DiscardedMessage, LinkEvent, ParkedKind, SessionLoss, SubscriptionEnd};
pub(super) use http::HttpLink;

use super::env::ClientEnv;
use super::ids::Purpose;
use super::{Target, Timer};
use crate::auth::{RequestProof, StepId};
use crate::error::{AuthError, CallError, StreamPlace, WaitReason};
use crate::exchange::{Closed, ExchangeEvent, ExchangeId, Sent};
use crate::http_support::HttpSupport;
use crate::input::{AuthKey, Authorization, CallId, NotificationId};
use crate::rpc::{Id, Object};
use crate::version::ProtocolVersion;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;

/// The link of a client.
#[derive(Debug)]
pub(super) enum Link {
    Duplex(DuplexLink),
    /// Without HTTP, there is no value of this variant, and no code for it in the program.
    Http(HttpSupport, Box<HttpLink>),
}

/// A request that a link sends.
pub(super) struct OutgoingRequest<'a> {
    pub(super) id: Id,
    pub(super) purpose: Purpose,
    pub(super) method: &'a str,
    /// Without `_meta`.
    pub(super) params: &'a Object,
    /// The whole message.
    pub(super) message: Bytes,
    pub(super) version: ProtocolVersion,
    /// Header fields that mirror its arguments.
    pub(super) fields: Vec<(String, String)>,
    /// Whether it may run twice. Only the link over HTTP uses this.
    pub(super) repeatable: bool,
}

impl Link {
    pub(super) fn new(target: &Target, seed: [u8; 32]) -> Self {
        match target {
            Target::Duplex(_) | Target::Ws(_) | Target::NoServer => Self::Duplex(DuplexLink::default()),
            Target::Http(target) => Self::Http(target.support(), Box::new(HttpLink::new(target.clone(), seed))),
        }
    }

    /// Returns the link over HTTP.
    pub(super) fn http(&self) -> Option<&HttpLink> {
        match self {
            Self::Duplex(_) => None,
            Self::Http(_, http) => Some(http),
        }
    }

    pub(super) fn http_mut(&mut self) -> Option<&mut HttpLink> {
        match self {
            Self::Duplex(_) => None,
            Self::Http(_, http) => Some(http),
        }
    }

    /// Starts the duplex exchange.
    pub(super) fn open(&mut self, env: &mut ClientEnv) {
        match self {
            Self::Duplex(duplex) => duplex.open(env),
            Self::Http(..) => {}
        }
    }

    /// Handles the answer of the application to a challenge.
    pub(super) fn authorize(&mut self, env: &mut ClientEnv, key: AuthKey, with: Authorization) {
        match self {
            Self::Duplex(duplex) => duplex.authorize(key, with),
            Self::Http(_, http) => http.authorize(env, key, with),
        }
    }

    /// Handles the end of a run of the login: what waits for it goes out, or ends with this error.
    pub(super) fn settle_login(&mut self, env: &mut ClientEnv, error: Option<&AuthError>) {
        match self {
            Self::Duplex(duplex) => duplex.settle_login(error),
            Self::Http(_, http) => http.settle_login(env, error),
        }
    }

    /// Handles the end of a proof: its request goes out with it, or ends with this error.
    pub(super) fn settle_proof(&mut self, env: &mut ClientEnv, step: StepId, proof: Result<RequestProof, AuthError>) {
        match self {
            Self::Duplex(duplex) => duplex.settle_proof(step, proof),
            Self::Http(_, http) => http.settle_proof(env, step, proof),
        }
    }

    /// Returns whether a call waits for credentials: its own request does, or what every call
    /// depends on.
    pub(super) fn waits_for_credentials(&self, env: &ClientEnv, request: Option<&Id>) -> bool {
        match self {
            Self::Duplex(duplex) => duplex.waits_for_credentials(),
            Self::Http(_, http) => http.waits_for_credentials(env, request),
        }
    }

    /// Handles an event of an exchange. The consequences follow in [`step`](Self::step) and
    /// [`next_event`](Self::next_event).
    pub(super) fn handle(&mut self, env: &mut ClientEnv, exchange: ExchangeId, event: ExchangeEvent) {
        match self {
            Self::Duplex(duplex) => duplex.handle(env, exchange, event),
            Self::Http(_, http) => http.handle(env, exchange, event),
        }
    }

    /// Handles a timer of an exchange that is due.
    pub(super) fn on_timeout(&mut self, env: &mut ClientEnv, timer: Timer) {
        if let Self::Http(_, http) = self {
            http.on_timeout(env, timer);
        }
    }

    /// Returns the next event for the client.
    pub(super) fn next_event(&mut self) -> Option<LinkEvent> {
        self.events().pop_front()
    }

    fn events(&mut self) -> &mut VecDeque<LinkEvent> {
        match self {
            Self::Duplex(duplex) => duplex.events(),
            Self::Http(_, http) => http.events(),
        }
    }

    /// Continues an operation that was begun, once the client has handled all events. Returns
    /// whether there was one.
    pub(super) fn step(&mut self, env: &mut ClientEnv) -> bool {
        match self {
            Self::Duplex(duplex) => duplex.step(env),
            Self::Http(_, http) => http.step(env),
        }
    }

    /// Removes the queued events, so that those of the next operation precede them.
    pub(super) fn take_events(&mut self) -> VecDeque<LinkEvent> {
        core::mem::take(self.events())
    }

    /// Puts back the events of [`take_events`](Self::take_events).
    pub(super) fn put_events(&mut self, events: VecDeque<LinkEvent>) {
        *self.events() = events;
    }

    /// Returns the id of the exchange for the next request.
    pub(super) fn next_exchange(&mut self) -> ExchangeId {
        match self {
            Self::Duplex(duplex) => duplex.next_exchange(),
            Self::Http(_, http) => http.mint(),
        }
    }

    /// Sends a request on an exchange of [`next_exchange`](Self::next_exchange).
    pub(super) fn send_request(&mut self, env: &mut ClientEnv, exchange: ExchangeId, request: OutgoingRequest<'_>) {
        if env.only_calls_tools()
            && let Some(response) = dialect::local_response(&request)
        {
            let event = LinkEvent::Message(exchange, response);
            return match self {
                Self::Duplex(duplex) => duplex.push_when_open(event),
                Self::Http(_, http) => http.events().push_back(event),
            };
        }
        match self {
            Self::Duplex(duplex) => duplex.send(env, exchange, request.message),
            Self::Http(_, http) => http.post_request(env, exchange, request),
        }
    }

    /// Sends a notification. With an `id`, the link reports its delivery.
    pub(super) fn send_notification(
        &mut self,
        env: &mut ClientEnv,
        (method, params): (&str, Option<&Object>),
        message: Bytes,
        id: Option<NotificationId>,
    ) {
        match self {
            // The cancellation of a call, which the dialect does not have.
            Self::Duplex(_) if env.only_calls_tools() => {}
            Self::Duplex(duplex) => {
                if let Some(exchange) = duplex.exchange() {
                    duplex.send(env, exchange, message);
                }
            }
            Self::Http(_, http) => http.post_notification(env, method, params, message, id),
        }
    }

    /// Sends the response to a request of the server that arrived on this exchange.
    pub(super) fn send_response(&mut self, env: &mut ClientEnv, exchange: ExchangeId, message: Bytes) {
        match self {
            // A server of such a dialect asks nothing.
            _ if env.only_calls_tools() => {}
            Self::Duplex(duplex) => duplex.send(env, exchange, message),
            Self::Http(_, http) => http.post_response(env, message),
        }
    }

    /// Handles the response to the request of an exchange. The link reads what follows for a
    /// limited time.
    pub(super) fn answered(&mut self, env: &mut ClientEnv, exchange: ExchangeId) {
        if let Self::Http(_, http) = self {
            http.answered(env, exchange);
        }
    }

    /// Ends the HTTP exchange of a request whose response is no longer needed.
    pub(super) fn abandon(&mut self, env: &mut ClientEnv, exchange: ExchangeId) {
        if let Self::Http(_, http) = self {
            http.abandon(env, exchange);
        }
    }

    /// Returns whether no exchange is open.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Duplex(duplex) => duplex.exchange().is_none(),
            Self::Http(_, http) => http.is_empty(),
        }
    }

    /// Returns whether the driver holds the maximum number of unwritten bytes.
    pub(super) fn is_full(&self, env: &ClientEnv) -> bool {
        match self {
            Self::Duplex(duplex) => duplex.is_full(env),
            Self::Http(..) => false,
        }
    }

    /// Returns whether the number of open HTTP exchanges has reached the maximum number of calls.
    /// Notifications are no calls.
    pub(super) fn has_many_exchanges(&self, env: &ClientEnv) -> bool {
        match self {
            Self::Duplex(_) => false,
            Self::Http(_, http) => http.has_many_exchanges(env),
        }
    }

    /// Returns whether the latest exchange has a connection to the server, or may have one.
    pub(super) fn has_reached_server(&self) -> bool {
        match self {
            Self::Duplex(duplex) => duplex.has_reached_server(),
            Self::Http(_, http) => http.has_reached_server(),
        }
    }

    /// Returns the position in the event stream that is open on this exchange.
    pub(super) fn place(&self, exchange: ExchangeId) -> Option<StreamPlace> {
        self.http()?.place(exchange)
    }

    /// Returns the call whose response arrives on this exchange.
    pub(super) fn call_on(&self, exchange: ExchangeId) -> Option<CallId> {
        self.http()?.call_on(exchange)
    }

    /// Returns whether calls wait until the listener is open.
    pub(super) fn is_holding(&self) -> bool {
        self.http().is_some_and(HttpLink::is_holding)
    }

    /// Returns whether the client waits for the `endpoint` event of HTTP+SSE.
    pub(super) fn awaits_endpoint(&self) -> bool {
        self.http().is_some_and(HttpLink::awaits_endpoint)
    }

    /// Returns whether the server has not begun to process the request with this id. The request
    /// waits for a connection, or was refused and waits for credentials.
    pub(super) fn is_unsent(&self, env: &ClientEnv, id: &Id) -> bool {
        self.http().is_some_and(|http| http.is_unsent(env, id))
    }

    /// Returns the error of a call whose response was to arrive on the stream of HTTP+SSE.
    pub(super) fn lost_with_stream(&self) -> CallError {
        CallError::Closed { sent: Sent::Maybe, why: self.http().map_or(Closed::Eof, HttpLink::stream_end) }
    }

    /// Returns the event that the request with this id awaits, and whether the request may have
    /// reached the server.
    pub(super) fn awaited(&self, env: &ClientEnv, id: &Id) -> (WaitReason, Sent) {
        self.http().map_or((WaitReason::Response, Sent::Maybe), |http| http.awaited(env, id))
    }
}
