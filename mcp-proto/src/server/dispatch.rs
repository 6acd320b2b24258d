//! Dispatch of requests and notifications. The only place that matches on the methods that the
//! engine serves itself. A transport determines the column of the matrix for a request, and carries
//! out the result.
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
//! | `resources/subscribe`, `resources/unsubscribe`, `logging/setLevel` | -32601 | -32600 | the engine responds |
//! | `tasks/get`, `tasks/update`, `tasks/cancel` | the engine responds | -32600 | the application |
//! | the same but `update`, with `tasks/list` and `tasks/result`, on 2025-11-25 | the application | -32600 | the engine responds |
//! | any other              | the application      | -32600                 | the application     |
//!
//! What the server does not declare is answered with -32601, and without [`ServerConfig::tasks`]
//! the application gets the requests about tasks. If the application decides on the
//! resources that clients watch, it receives `resources/subscribe`, and `subscriptions/listen` with
//! URIs.
//!
//! An open request that has half of the metadata of 2026-07-28 is answered with -32602. So is every
//! one on a server without a legacy revision, except `initialize`: -32022.

use super::era::{AdmittedRequest, AwaitTarget, Caller, RequestParts, Transport};
use super::keys::SessionRef;
use super::listen::SubscriptionRequest;
use super::response::ErrorReply;
use super::session::{Session, SessionTerms};
use super::store::SessionChange;
use super::watching::{SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE};
use super::{ExchangeId, Life, Server, tasks};
use crate::error::DiagnosticKind;
use crate::input::Watch;
use crate::model::tasks::undeclared;
use crate::rpc::{Id, InvalidKind, InvalidMessage, Message, Notification, Object, RawJson, Request, code};
use crate::version::ProtocolVersion;
use alloc::format;

/// The origin of a request.
#[derive(Clone, Copy)]
pub(super) struct RequestContext {
    pub(super) exchange: ExchangeId,
    /// The legacy session of the request. On a duplex connection also that of a modern request.
    pub(super) session: Option<SessionRef>,
    /// Whether it is an element of a batch.
    pub(super) in_batch: bool,
}

/// The handling of a modern request.
pub(super) enum Modern {
    /// The application answers the request.
    Run(AdmittedRequest),
    /// The engine responds with this result.
    Reply(Object),
    /// The request opens a subscription, with this filter.
    Listen(Watch),
    /// The application decides on the subscription.
    Ask(AdmittedRequest),
}

/// The handling of a legacy request before `initialize`.
pub(super) enum Open {
    /// The engine responds with an empty result.
    Pong,
    /// The transport negotiates with these params, and opens the session.
    Initialize(Object),
}

/// The handling of a legacy request with a negotiated revision.
#[expect(
    clippy::large_enum_variant,
    reason = "it is taken apart at once; a box would be one allocation more a request"
)]
pub(super) enum Legacy {
    /// The application answers the request.
    Run(AdmittedRequest),
    /// The engine responds with this result.
    Reply(Object),
}

/// What is left to do for a message.
pub(super) enum Element {
    Request(Request),
    /// Bytes that are no message.
    Invalid(InvalidMessage),
    /// The message was handled: it has no response.
    Done,
}

/// Returns whether a legacy request over HTTP is open: it has no session, since it opens one.
pub(super) fn opens_session(method: &str) -> bool {
    method == "initialize"
}

impl Server {
    /// The first column of the matrix.
    pub(super) fn dispatch_modern(
        &mut self,
        context: RequestContext,
        version: ProtocolVersion,
        over: Transport,
        request: Request,
        parts: RequestParts,
    ) -> Result<Modern, ErrorReply> {
        parts.check_log_level()?;
        match &*request.method {
            method @ ("initialize" | "ping" | SUBSCRIBE | UNSUBSCRIBE | SET_LEVEL) => Err(ErrorReply::method(method)),
            method @ "server/discover" => {
                let result = self.shared.config.discover(over);
                Ok(Modern::Reply(self.shared.complete(version, method, result, "complete")))
            }
            method @ (tasks::GET | tasks::UPDATE | tasks::CANCEL)
                if self.asks_store_about(context, method, &parts)? =>
            {
                let admitted =
                    self.admit_request(context, |caller| parts.admit_modern(request, version, caller, false, false))?;
                Ok(Modern::Run(AdmittedRequest { awaits: Some(AwaitTarget::Store), ..admitted }))
            }
            method @ (tasks::GET | tasks::UPDATE | tasks::CANCEL) if self.shared.config.tasks => {
                let result = self.task_request(context.exchange, method, &parts)?;
                Ok(Modern::Reply(self.shared.complete(version, method, result, "complete")))
            }
            "subscriptions/listen" => {
                let mut filter = self.shared.config.filter(&parts.params)?;
                if !filter.tasks.is_empty() && !parts.declares_tasks() {
                    return Err(ErrorReply::of(DiagnosticKind::MissingCapability, undeclared()));
                }
                self.keep_own_tasks(context.exchange, &mut filter);
                if filter.uris.is_empty() || !self.shared.config.admit_watch {
                    return Ok(Modern::Listen(filter));
                }
                let admitted =
                    self.admit_request(context, |caller| parts.admit_modern(request, version, caller, false, false))?;
                Ok(Modern::Ask(admitted))
            }
            _ => {
                let (takes_unasked, has_tasks) = (self.shared.config.compat.unasked_answers, self.shared.config.tasks);
                let admitted = self.admit_request(context, |caller| {
                    parts.admit_modern(request, version, caller, takes_unasked, has_tasks)
                })?;
                Ok(Modern::Run(admitted))
            }
        }
    }

    /// The second column of the matrix.
    pub(super) fn dispatch_open(&self, request: &Request, parts: RequestParts) -> Result<Open, ErrorReply> {
        let serves_legacy = self.shared.config.serves_legacy();
        match &*request.method {
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
        negotiated: &SessionTerms,
        request: Request,
        parts: RequestParts,
    ) -> Result<Legacy, ErrorReply> {
        match &*request.method {
            "initialize" if context.in_batch => {
                Err(invalid(DiagnosticKind::UnexpectedBatch, "`initialize` must not be part of a batch"))
            }
            "initialize" => Err(invalid(DiagnosticKind::SecondInitialize, "the session is initialized already")),
            "ping" => Ok(Legacy::Reply(Object::new())),
            method @ "server/discover" => Err(ErrorReply::method(method)),
            SET_LEVEL => self.set_level(context.session, &parts.params).map(|()| Legacy::Reply(Object::new())),
            method @ (SUBSCRIBE | UNSUBSCRIBE) => {
                let (session, uri) = self.watched_uri(context.session, method, &parts.params)?;
                if method == UNSUBSCRIBE {
                    self.wire.unwatch(session, &uri);
                    self.wire.note_change(session, SessionChange::Unwatch(uri));
                } else if self.shared.config.admit_watch {
                    let admitted =
                        self.admit_request(context, |caller| parts.admit_legacy(request, negotiated, caller, false))?;
                    return Ok(Legacy::Run(admitted));
                } else {
                    self.wire.watch(session, &uri)?;
                    self.wire.note_change(session, SessionChange::Watch(uri));
                }
                Ok(Legacy::Reply(Object::new()))
            }
            method => {
                let has_tasks = self.shared.config.tasks && negotiated.version.rules().tasks;
                let mut awaits = None;
                let is_about_tasks = matches!(method, tasks::GET | tasks::CANCEL | tasks::RESULT)
                    || method == tasks::LIST && self.shared.config.admit;
                if has_tasks && is_about_tasks && self.asks_about_task(context.exchange, method, &parts.params) {
                    awaits = Some(AwaitTarget::Store);
                } else if has_tasks {
                    if let Some(result) = self.legacy_task_request(context.exchange, method, &parts.params) {
                        return result.map(Legacy::Reply);
                    }
                    if method == tasks::RESULT {
                        awaits = Some(AwaitTarget::Task(self.awaited_task(context.exchange, &parts.params)?));
                    }
                }
                let admitted =
                    self.admit_request(context, |caller| parts.admit_legacy(request, negotiated, caller, has_tasks))?;
                Ok(Legacy::Run(AdmittedRequest { awaits, ..admitted }))
            }
        }
    }

    /// Returns whether a request of 2026-07-28 about a task has to ask the store.
    fn asks_store_about(
        &self,
        context: RequestContext,
        method: &str,
        parts: &RequestParts,
    ) -> Result<bool, ErrorReply> {
        if !self.shared.config.tasks || !self.asks_about_task(context.exchange, method, &parts.params) {
            return Ok(false);
        }
        match parts.declares_tasks() {
            true => Ok(true),
            false => Err(ErrorReply::of(DiagnosticKind::MissingCapability, undeclared())),
        }
    }

    /// Admits a request for the application, if the limits allow it.
    fn admit_request(
        &mut self,
        context: RequestContext,
        admit: impl FnOnce(Caller) -> Result<AdmittedRequest, ErrorReply>,
    ) -> Result<AdmittedRequest, ErrorReply> {
        let RequestContext { exchange, session, .. } = context;
        let http_session = session.and_then(SessionRef::http);
        let client = self.wire.env.client_on(exchange, http_session);
        if self.life != Life::Serving {
            return Err(ErrorReply::full("the server is shutting down"));
        }
        self.requests.make_room_for_request(&mut self.wire, &client, session, exchange)?;
        let mut caller = self.wire.env.caller(exchange);
        caller.session = http_session;
        let admitted = admit(caller)?;
        self.requests.make_room_for_size(&mut self.wire, &client, &admitted)?;
        Ok(admitted)
    }

    /// Opens a subscription, if the server accepts requests.
    pub(super) fn listen(
        &mut self,
        x: ExchangeId,
        id: Id,
        filter: Watch,
        version: ProtocolVersion,
    ) -> Result<(), ErrorReply> {
        let wanted = SubscriptionRequest { exchange: x, id, version, filter, reply_to: None };
        if self.life != Life::Serving {
            return Err(ErrorReply::full("the server is shutting down"));
        }
        self.listens.open(&mut self.wire, &mut self.requests, wanted)
    }

    /// Handles a message that has no response. `session`: the legacy session that it belongs to, if
    /// it belongs to any.
    pub(super) fn on_element(
        &mut self,
        exchange: ExchangeId,
        session: Option<SessionRef>,
        element: Result<Message, InvalidMessage>,
    ) -> Element {
        match element {
            Ok(Message::Request(request)) => return Element::Request(request),
            Ok(Message::Notification(notification)) => self.on_notification(exchange, session, notification),
            Ok(Message::Response(response)) => match session {
                Some(session) if self.forward_answer(None, session, &response) => {}
                Some(session) => self.requests.on_response(&mut self.wire, session, response),
                None => self.wire.env.diagnose(DiagnosticKind::UnexpectedResponse, ""),
            },
            Ok(Message::Error(error)) => self.wire.env.diagnose(DiagnosticKind::IdlessError, &format!("{error}")),
            Err(defect) => return Element::Invalid(defect),
        }
        Element::Done
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
        match &*method {
            "notifications/initialized" => {
                if let Some(session) = session {
                    self.listens.session_is_ready(&mut self.wire, session);
                }
            }
            "notifications/cancelled" if self.is_cancelled_elsewhere(session, params.as_ref()) => {}
            "notifications/cancelled" => match self.requests.find_cancelled(&mut self.wire, session, params.as_ref()) {
                Some(key) if self.listens.forget(&mut self.wire, key) => {}
                Some(key) => self.requests.cancel(&mut self.wire, key, true),
                None => {}
            },
            // No request of the engine carries a progress token.
            "notifications/progress" => self.wire.env.diagnose(DiagnosticKind::UnknownProgress, ""),
            _ => self.wire.env.queue.notification(exchange, method, params.as_ref()),
        }
    }
}

impl Server {
    /// Returns whether a cancellation names a request that another server may run, and passes it
    /// on.
    fn is_cancelled_elsewhere(&mut self, session: Option<SessionRef>, params: Option<&RawJson>) -> bool {
        let id = Object::read_opt(params).ok().and_then(|params| params.id("requestId"));
        let Some(id) = id.filter(|id| id.size() <= self.shared.config.limits.frame.max_id) else { return false };
        let is_here = session.and_then(|session| self.wire.session(session)).is_some_and(|here| here.has_used(&id));
        !is_here && self.cancel_elsewhere(session, &id)
    }
}

/// Returns an error if the session has used this id before.
pub(super) fn check_id(session: Option<&Session>, id: &Id) -> Result<(), ErrorReply> {
    match session.is_some_and(|session| session.has_used(id)) {
        true => Err(invalid(DiagnosticKind::DuplicateRequestId, "a request with this id was sent before")),
        false => Ok(()),
    }
}

/// The error for a batch on a revision without batches.
pub(super) fn no_batches() -> ErrorReply {
    invalid(DiagnosticKind::UnexpectedBatch, InvalidKind::UnexpectedBatch.as_str())
}

fn invalid(kind: DiagnosticKind, text: &'static str) -> ErrorReply {
    ErrorReply::new(kind, code::INVALID_REQUEST, text)
}
