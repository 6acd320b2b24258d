//! Sessions of servers up to 2025-11-25 (transports, session management): the id that `initialize` brought goes with every request; a 404
//! to one that carried it says that the session has ended, and one new handshake is made for all; a session that is no longer needed is
//! ended with DELETE. 2026-07-28 has no sessions, and an id that such a server sends means nothing.

use super::{Http, Reported, Request, Role, metadata, success};
use crate::client::era::{After, Phase};
use crate::client::ids::Purpose;
use crate::client::link::Exchange;
use crate::client::{Client, Termination, Timer};
use crate::error::{CallError, DiagnosticKind, NegotiationCause, NegotiationError, Stage};
use crate::exchange::ExchangeId;
use crate::input::CallId;
use crate::model::headers::{SESSION, is_session_id};
use crate::rpc::Message;
use crate::time::Instant;
use crate::version::ProtocolVersion;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

/// How many sessions in a row may end without a request that was answered.
const MAX_BARREN: u32 = 3;

/// A session that lasted for so long was of use, even if nothing was asked in it.
const LASTING: Duration = Duration::from_secs(30);

/// The session of a client.
#[derive(Debug, Default)]
pub(in crate::client) struct Session {
    id: Option<String>,
    /// What the answer to `initialize` carries, until it is accepted.
    offered: Option<String>,
    /// Sessions that ended since a call was answered, but those that lasted.
    barren: u32,
    /// When it began.
    since: Option<Instant>,
    /// The client is closing, and ends the session in this revision.
    deletes: Option<ProtocolVersion>,
}

impl Session {
    /// The id of the session, if there is one.
    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }
}

impl Client {
    /// The session id in the head of an answer to `initialize` is kept until the answer is accepted; others are not looked at.
    pub(super) fn note_offer(&mut self, exchange: ExchangeId) {
        let Some(http) = self.exchanges.http(exchange) else { return };
        if matches!(http.role, Role::Request(_, Purpose::Initialize)) {
            let head = http.head.as_ref().filter(|head| success(head.status));
            self.http_state.session.offered = head.and_then(|head| head.headers.get(SESSION)).map(ToOwned::to_owned);
        }
    }

    /// A session in which a call is answered is of use.
    pub(super) fn note_use(&mut self, exchange: ExchangeId, message: &Message) {
        let is_call = self.exchanges.http(exchange).is_some_and(|http| http.call().is_some());
        if is_call && matches!(message, Message::Response(_)) {
            self.http_state.session.barren = 0;
        }
    }

    /// The answer to `initialize` is accepted: its session begins.
    pub(in crate::client) fn begin_session(&mut self) {
        (self.http_state.session.id, self.http_state.session.since) = (None, Some(self.now));
        let Some(id) = self.http_state.session.offered.take() else { return };
        if is_session_id(&id) {
            self.http_state.session.id = Some(id);
        } else {
            self.diagnose(DiagnosticKind::BadSession, "an id that is too long, or not of visible ASCII characters");
        }
    }

    /// Whether the answer says that the session of the request has ended. A GET proves nothing: there are servers that answer every one so.
    pub(super) fn is_session_gone(&self, http: &Http) -> bool {
        self.is_legacy() && http.status() == 404 && http.in_session && http.is_post()
    }

    /// A request was refused since its session has ended. All exchanges that named it end with it, so it is the one that there is.
    pub(super) fn on_session_gone(&mut self, exchange: ExchangeId) {
        let Some(Exchange::Http(http)) = self.exchanges.remove(&exchange) else { return };
        match http.role.clone() {
            Role::Request(id, purpose) => {
                self.ids.retire(&id);
                match purpose {
                    // It has not run, so it may be made again, once.
                    Purpose::Call(call) if !self.was_repeated(call) => self.requeue(call, false),
                    Purpose::Call(call) => self.end(call, Err(CallError::Http(Box::new(http.to_error())))),
                    Purpose::Ping => self.on_ping_lost(),
                    Purpose::Discover | Purpose::Initialize | Purpose::Listen => {}
                }
            }
            Role::Response => self.diagnose(DiagnosticKind::DroppedResponse, "HTTP 404: the session has ended"),
            Role::Notification(Some(id)) => {
                self.diagnose(DiagnosticKind::DroppedNotification, "HTTP 404: the session has ended");
                self.end_notification(id, Err(CallError::Http(Box::new(http.to_error()))));
            }
            _ => self.diagnose(DiagnosticKind::DroppedNotification, "HTTP 404: the session has ended"),
        }
        self.renew_session(&http);
    }

    /// Ends all that belonged to the session, and makes a new one.
    fn renew_session(&mut self, http: &Http) {
        let lasted = self.http_state.session.since.is_some_and(|since| self.now - since >= LASTING);
        self.http_state.session.barren = if lasted { 0 } else { self.http_state.session.barren + 1 };
        if self.http_state.session.barren > MAX_BARREN {
            let cause = NegotiationCause::Http(Box::new(http.to_error()));
            let why = self.negotiation_error(Stage::Initialize, cause);
            return self.shut(Termination::Negotiation(why));
        }
        let Some(version) = self.version() else { return };
        self.end_session();
        self.begin_start();
        self.initialize(version, After::Session, false);
    }

    /// The session is gone: whatever waits on its streams is settled.
    fn end_session(&mut self) {
        self.http_state.session.id = None;
        self.end_pings();
        self.withdraw_all();
        self.leave_listener();
        self.http_state.reported = Reported::Open;
        let open: Vec<ExchangeId> = self.exchanges.keys().copied().collect();
        for exchange in open {
            let role = self.exchanges.http(exchange).map(|http| http.role.clone());
            let unsent = matches!(&role, Some(Role::Request(id, _)) if self.is_unsent(id));
            self.drop_exchange_since(exchange, CallError::SessionEnded);
            match role {
                Some(Role::Request(id, Purpose::Call(call))) => {
                    self.ids.retire(&id);
                    // What waited for credentials or for a connection has not run.
                    if self.may_repeat(call) || unsent && !self.was_repeated(call) {
                        self.requeue(call, !unsent);
                    } else {
                        self.end(call, Err(CallError::SessionEnded));
                    }
                }
                Some(Role::Response) => self.diagnose(DiagnosticKind::DroppedResponse, "the session has ended"),
                // Of a notification it was said where its exchange was dropped.
                Some(Role::Notification(_) | Role::Cancelled | Role::Initialized) => {}
                Some(Role::Request(..) | Role::Answered | Role::Listener | Role::Delete) | None => {}
            }
        }
        // Questions were withdrawn.
        self.update_clocks();
    }

    /// A new session could not be had. The calls that wait for it end; the next one tries again.
    pub(in crate::client) fn on_renewal_failed(&mut self, why: &NegotiationError) {
        self.end_start();
        // A handshake that went unanswered is over: the next one must not meet its answer.
        let open: Vec<ExchangeId> = self.exchanges.keys().copied().collect();
        for exchange in open {
            self.drop_exchange(exchange);
        }
        self.phase = Phase::Lapsed;
        let calls: Vec<CallId> = self.calls.keys().copied().collect();
        for call in calls {
            self.end(call, Err(CallError::Negotiation(why.clone())));
        }
    }

    /// The session is to be ended at the server, if there is one, once no other exchange is open.
    pub(in crate::client) fn delete_session_last(&mut self, version: Option<ProtocolVersion>) {
        self.http_state.session.deletes = version.filter(|_| self.http_state.session.id.is_some());
    }

    /// Ends the session at the server, if that is to be done: best effort, and bounded. Whether it is begun.
    pub(in crate::client) fn delete_session(&mut self) -> bool {
        let Some(version) = self.http_state.session.deletes.take() else { return false };
        let exchange = self.exchanges.mint();
        let headers = metadata(version, "", None);
        let sent = Request { method: "DELETE", headers, body: Bytes::new(), repeatable: true };
        self.begin_http(exchange, Http::new(Role::Delete, sent));
        let limit = self.config.limits.client.session_end_time;
        self.timers.set(Timer::Drain(exchange), Some(self.now + limit));
        true
    }
}
