//! Sessions of servers up to 2025-11-25 (transports, session management). Every later request
//! carries the id from the response to `initialize`. A 404 response to such a request means that
//! the session has ended, and the client makes one new handshake for all requests. If the server
//! answers 404 to `notifications/initialized` in that session too, it has no route for
//! notifications, and the client goes on. The client ends a session that it no longer needs with
//! DELETE. 2026-07-28 has no sessions, and the client ignores an id that such a server sends.

use super::{ExchangeRole, HttpExchange, HttpLink, HttpRequest, MessageSummary, ReportedState, success};
use crate::client::Timer;
use crate::client::env::ClientEnv;
use crate::client::ids::Purpose;
use crate::client::link::event::{DiscardedMessage, LinkEvent, SessionLoss};
use crate::error::{CallError, DiagnosticKind};
use crate::exchange::ExchangeId;
use crate::model::headers::{SESSION, is_session_id};
use crate::rpc::Message;
use crate::time::Instant;
use crate::version::ProtocolVersion;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use core::time::Duration;

/// Maximum number of handshakes in a row, each after the end of a session, without a response to a
/// call.
const MAX_BARREN: u32 = 2;

/// Minimum duration of a session that was useful even without a response to a call.
const LASTING: Duration = Duration::from_secs(30);

/// The state of the sessions of an HTTP client. At most one session is open.
#[derive(Debug, Default)]
pub(in crate::client) struct SessionState {
    id: Option<String>,
    /// The id in the response to `initialize`, until the client accepts the response.
    offered: Option<String>,
    /// Number of sessions that ended since the last response to a call, or since one that lasted
    /// [`LASTING`], which counts.
    barren: u32,
    /// Whether the server has a route for notifications.
    route: NotificationRoute,
    /// When the session began.
    since: Option<Instant>,
    /// The revision for the DELETE of a closing client. `None` if it sends none.
    deletes: Option<ProtocolVersion>,
}

/// Whether a server accepts notifications, as far as a 404 to `notifications/initialized` tells: it
/// may mean that the session has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum NotificationRoute {
    /// Nothing says otherwise.
    #[default]
    Assumed,
    /// The server answered 404 in one session.
    Doubted,
    /// It did so in the next session too.
    Missing,
}

impl SessionState {
    /// Returns the id of the session, if there is one.
    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }
}

impl HttpLink {
    /// Notes what the head of a response to the handshake says. Other responses are ignored. The
    /// session id of `initialize` is kept until the client accepts the response. The status says
    /// whether the server may be one of HTTP+SSE.
    pub(super) fn note_handshake(&mut self, exchange: ExchangeId) {
        let Some(http) = self.exchanges.get(exchange) else { return };
        let ExchangeRole::Request(_, purpose) = http.role else { return };
        if matches!(purpose, Purpose::Discover | Purpose::Initialize) {
            self.suggests_sse = matches!(http.status(), 400 | 404 | 405);
        }
        if purpose == Purpose::Initialize {
            let head = http.head.as_ref().filter(|head| success(head.status));
            self.session.offered = head.and_then(|head| head.headers.get(SESSION)).map(ToOwned::to_owned);
        }
    }

    /// Notes that a call in the session got a response: the session was useful.
    pub(super) fn note_use(&mut self, env: &ClientEnv, exchange: ExchangeId, message: &Message) {
        let Message::Response(response) = message else { return };
        // Over HTTP+SSE, the POST of the request has usually ended.
        let is_call = self.exchanges.get(exchange).is_some_and(|http| http.call().is_some());
        if is_call || self.sse.is_some() && env.ids.call(&response.id, None).is_some() {
            self.session.barren = 0;
        }
    }

    /// Begins the session of an accepted response to `initialize`.
    pub(in crate::client) fn begin_session(&mut self, env: &mut ClientEnv) {
        (self.session.id, self.session.since) = (None, Some(env.now));
        let Some(id) = self.session.offered.take() else { return };
        if is_session_id(&id) {
            self.session.id = Some(id);
        } else {
            env.diagnose(DiagnosticKind::BadSession, "an id that is too long, or not of visible ASCII characters");
        }
    }

    /// Returns whether the response means that the session of the request has ended. A response to
    /// a GET proves nothing: some servers respond to every GET with 404.
    pub(super) fn is_session_gone(&self, env: &ClientEnv, http: &HttpExchange) -> bool {
        env.is_legacy() && http.status() == 404 && http.in_session && http.is_post()
    }

    /// Handles a request that the server refused because its session has ended. All exchanges that
    /// named the session end with it, so it is the current one.
    pub(super) fn on_session_gone(&mut self, env: &mut ClientEnv, exchange: ExchangeId) {
        let Some(http) = self.exchanges.remove(exchange) else { return };
        let error = http.to_error();
        let (mut request, mut notification) = (None, None);
        match http.role {
            ExchangeRole::Request(id, purpose) | ExchangeRole::Posted(id, purpose) => {
                env.ids.retire(&id);
                request = Some((id, purpose));
            }
            ExchangeRole::Response => env.diagnose(DiagnosticKind::DroppedResponse, "HTTP 404: the session has ended"),
            role => {
                env.diagnose(DiagnosticKind::DroppedNotification, "HTTP 404: the session has ended");
                if let ExchangeRole::Notification(id) = role {
                    notification = id;
                }
            }
        }
        self.events.push_back(LinkEvent::SessionLost(Box::new(SessionLoss { request, notification, error })));
    }

    /// Counts the end of a session. Returns whether the client may open another one.
    pub(in crate::client) fn may_renew(&mut self, env: &ClientEnv) -> bool {
        let lasted = self.session.since.is_some_and(|since| env.now - since >= LASTING);
        self.session.barren = if lasted { 1 } else { self.session.barren + 1 };
        self.session.barren <= MAX_BARREN
    }

    /// Returns whether a 404 to this notification means that the server has no route for
    /// notifications, and not that the session has ended.
    pub(super) fn lacks_route(&mut self, role: &ExchangeRole) -> bool {
        let route = &mut self.session.route;
        if *role == ExchangeRole::Initialized {
            *route = match route {
                NotificationRoute::Assumed => NotificationRoute::Doubted,
                NotificationRoute::Doubted | NotificationRoute::Missing => NotificationRoute::Missing,
            };
        }
        *route == NotificationRoute::Missing
    }

    /// The server has accepted `notifications/initialized`.
    pub(super) fn has_route(&mut self) {
        self.session.route = NotificationRoute::Assumed;
    }

    /// The session has ended. The client discards its exchanges next. `keeps_stream`: the stream of
    /// HTTP+SSE serves the next session.
    pub(in crate::client) fn end_session(&mut self, env: &mut ClientEnv, keeps_stream: bool) {
        self.session.id = None;
        self.leave_listener(env);
        if !keeps_stream {
            self.close_stream(env);
        }
        self.reported = ReportedState::Open;
    }

    /// Ends an exchange of a session that has ended. Returns its purpose.
    pub(in crate::client) fn discard(&mut self, env: &mut ClientEnv, exchange: ExchangeId) -> DiscardedMessage {
        let role = self.exchanges.get(exchange).map(|http| http.role.clone());
        if role == Some(ExchangeRole::Sse) {
            return DiscardedMessage::Other;
        }
        let request = self.exchanges.get(exchange).and_then(HttpExchange::request);
        let unsent = request.is_some_and(|(id, _)| self.is_unsent(env, id));
        self.drop_exchange_since(env, exchange, CallError::SessionEnded);
        match role {
            Some(ExchangeRole::Request(id, Purpose::Call(call)) | ExchangeRole::Posted(id, Purpose::Call(call))) => {
                DiscardedMessage::Call { call, id, unsent }
            }
            Some(ExchangeRole::Response) => DiscardedMessage::Response,
            _ => DiscardedMessage::Other,
        }
    }

    /// Requests the DELETE of the session, if there is one, once no other exchange is open.
    pub(in crate::client) fn delete_session_last(&mut self, version: Option<ProtocolVersion>) {
        self.session.deletes = version.filter(|_| self.session.id.is_some());
    }

    /// Sends the DELETE of the session, if it was requested. The DELETE is best effort, and limited
    /// in time. Returns whether it was sent.
    pub(in crate::client) fn delete_session(&mut self, env: &mut ClientEnv) -> bool {
        let Some(version) = self.session.deletes.take() else { return false };
        let exchange = self.exchanges.mint();
        let http = HttpExchange::new(ExchangeRole::Delete, HttpRequest::delete(version));
        self.begin_http(env, exchange, http, Some(MessageSummary::NOTHING));
        let limit = env.config.limits.client.session_end_time;
        env.timers.set(Timer::Drain(exchange), Some(env.now + limit));
        true
    }
}
