//! Dispatch: what becomes of a request and of a notification. The only place that matches on the
//! methods that the engine serves itself. A transport finds out which column of the matrix a
//! request is in, and carries out what the column says.
//!
//! The compatibility matrix (2026-07-28 versioning, backward compatibility). A request is *modern*
//! if its `_meta` names its revision, whatever its method is. A legacy request is *open* on a
//! duplex connection before `initialize`, and over HTTP if it is `initialize`. Any other legacy
//! request is *negotiated*: over HTTP by its session or its header.
//!
//! | method                 | modern               | open                   | negotiated          |
//! |------------------------|----------------------|------------------------|---------------------|
//! | `initialize`           | -32601               | negotiates             | -32600              |
//! | `server/discover`      | the engine responds  | -32602, or -32601      | -32601              |
//! | `ping`                 | -32601               | the engine responds    | the engine responds |
//! | `subscriptions/listen` | opens a subscription | -32600                 | the application     |
//! | any other              | the application      | -32600                 | the application     |
//!
//! An open request that has half of the metadata of 2026-07-28 is answered with -32602. So is every
//! one on a server without a legacy revision, except `initialize`: -32022.

use super::era::{Admitted, Caller, ErrorReply, Negotiated, Parts, Transport};
use super::session::SessionRef;
use super::{ExchangeId, Life, Server};
use crate::error::DiagnosticKind;
use crate::rpc::{Id, InvalidKind, Notification, Object, Request, code};
use crate::version::ProtocolVersion;
use alloc::boxed::Box;

/// Where a request comes from.
#[derive(Clone, Copy)]
pub(super) struct RequestContext {
    pub(super) exchange: ExchangeId,
    /// The legacy session that it belongs to. On a duplex connection also that of a modern request.
    pub(super) session: Option<SessionRef>,
    /// Whether it is an element of a batch.
    pub(super) in_batch: bool,
}

/// What becomes of a modern request.
pub(super) enum Modern {
    /// The application answers it.
    Run(Box<Admitted>),
    /// The engine responds with this result.
    Reply(Object),
    /// It opens a subscription, with these params.
    Listen(Object),
}

/// What becomes of a legacy request before `initialize`.
pub(super) enum Open {
    /// The engine responds with an empty result.
    Pong,
    /// The transport negotiates with these params, and opens the session.
    Initialize(Object),
}

/// What becomes of a legacy request with a negotiated revision.
pub(super) enum Legacy {
    /// The application answers it.
    Run(Box<Admitted>),
    /// The engine responds with an empty result.
    Pong,
}

/// Returns whether a legacy request over HTTP is open: it has no session, since it opens one.
#[cfg(feature = "http")]
pub(super) fn opens_session(method: &str) -> bool {
    method == "initialize"
}

impl Server {
    /// Returns an error if the session has used this id before.
    pub(super) fn check_id(&self, session: Option<SessionRef>, id: &Id) -> Result<(), ErrorReply> {
        let session = session.and_then(|session| session.get(&self.env, &self.http));
        match session.is_some_and(|session| session.has_used(id)) {
            true => Err(invalid(DiagnosticKind::DuplicateRequestId, "a request with this id was sent before")),
            false => Ok(()),
        }
    }

    /// The first column of the matrix.
    pub(super) fn dispatch_modern(
        &mut self,
        context: RequestContext,
        version: ProtocolVersion,
        over: Transport,
        request: Request,
        parts: Parts,
    ) -> Result<Modern, ErrorReply> {
        match request.method.as_str() {
            method @ ("initialize" | "ping") => Err(ErrorReply::method(method)),
            method @ "server/discover" => {
                let result = self.shared.config.discover(over);
                Ok(Modern::Reply(self.shared.complete(version, method, result, "complete")))
            }
            "subscriptions/listen" => Ok(Modern::Listen(parts.params)),
            _ => {
                let takes_unasked = self.shared.config.unasked_answers;
                let admitted =
                    self.admit_request(context, |caller| parts.admit_modern(request, version, caller, takes_unasked))?;
                Ok(Modern::Run(admitted))
            }
        }
    }

    /// The second column of the matrix.
    pub(super) fn dispatch_open(&self, request: &Request, parts: Parts) -> Result<Open, ErrorReply> {
        let serves_legacy = self.shared.config.serves_legacy();
        match request.method.as_str() {
            "initialize" if self.life != Life::Serving => Err(ErrorReply::full("the server is shutting down")),
            "initialize" => Ok(Open::Initialize(parts.params)),
            "ping" if serves_legacy => Ok(Open::Pong),
            // A request that is modern, or can be nothing else, lacks the metadata that 2026-07-28
            // demands.
            method if !serves_legacy || parts.is_half_modern() || method == "server/discover" => {
                Err(parts.named_version().err().unwrap_or_else(|| ErrorReply::method(method)))
            }
            _ => Err(invalid(DiagnosticKind::BeforeInitialize, "the connection is not initialized")),
        }
    }

    /// The third column of the matrix.
    pub(super) fn dispatch_negotiated(
        &mut self,
        context: RequestContext,
        negotiated: &Negotiated,
        request: Request,
        parts: Parts,
    ) -> Result<Legacy, ErrorReply> {
        match request.method.as_str() {
            "initialize" if context.in_batch => {
                Err(invalid(DiagnosticKind::UnexpectedBatch, "`initialize` must not be part of a batch"))
            }
            "initialize" => Err(invalid(DiagnosticKind::SecondInitialize, "the session is initialized already")),
            "ping" => Ok(Legacy::Pong),
            method @ "server/discover" => Err(ErrorReply::method(method)),
            _ => {
                let admitted = self.admit_request(context, |caller| parts.admit_legacy(request, negotiated, caller))?;
                Ok(Legacy::Run(admitted))
            }
        }
    }

    /// Admits a request for the application, if the limits allow it.
    fn admit_request(
        &mut self,
        context: RequestContext,
        admit: impl FnOnce(Caller) -> Result<Admitted, ErrorReply>,
    ) -> Result<Box<Admitted>, ErrorReply> {
        let RequestContext { exchange, session, .. } = context;
        let http_session = session.and_then(SessionRef::http);
        let client = self.env.client_on(exchange, http_session);
        self.check_room(&client, session, exchange)?;
        let mut caller = self.caller(exchange);
        caller.session = http_session;
        let admitted = admit(caller)?;
        self.check_size(&client, &admitted)?;
        Ok(Box::new(admitted))
    }

    /// Handles a notification of a client. `session`: the legacy session that it belongs to, if it
    /// belongs to any.
    pub(super) fn on_notification(
        &mut self,
        exchange: ExchangeId,
        session: Option<SessionRef>,
        notification: Notification,
    ) {
        let Notification { method, params } = notification;
        match method.as_str() {
            "notifications/initialized" => {
                if let Some(session) = session {
                    self.session_is_ready(session);
                }
            }
            "notifications/cancelled" => match self.cancelled(session, params.as_ref()) {
                Some(key) if self.forget_listen(key) => {}
                Some(key) => self.cancel(key, true),
                None => {}
            },
            // No request of the engine carries a progress token.
            "notifications/progress" => self.env.diagnose(DiagnosticKind::UnknownProgress, ""),
            _ => self.env.queue.notification(exchange, method, params.as_ref()),
        }
    }
}

/// The error for a batch on a revision without batches.
pub(super) fn no_batches() -> ErrorReply {
    invalid(DiagnosticKind::UnexpectedBatch, InvalidKind::UnexpectedBatch.as_str())
}

fn invalid(kind: DiagnosticKind, text: &'static str) -> ErrorReply {
    ErrorReply::new(kind, code::INVALID_REQUEST, text)
}
