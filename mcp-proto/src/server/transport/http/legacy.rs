//! The legacy revisions over HTTP (2025-03-26 to 2025-11-25): POST, GET and DELETE, within a
//! session or without one. A JSON-RPC error of a well-formed request has status 200: there 404
//! means that a session has ended, and nothing else.

use super::headers::{VERSION, names_modern};
use super::respond::status_of;
use crate::error::DiagnosticKind;
use crate::exchange::{ExchangeId, Headers, RequestHead};
use crate::input::SessionKey;
use crate::model::headers::{CURSOR, SESSION, is_session_id};
use crate::rpc::{
    ErrorObject, Id, InvalidKind, InvalidMessage, Message, Notification, Object, Request, code, error_response,
    result_response, write_batch,
};
use crate::server::dispatch::{Element, Legacy, Open, RequestContext, check_id, no_batches, opens_session};
use crate::server::era::{RequestParts, Transport};
use crate::server::keys::{ReplyTo, SessionRef};
use crate::server::response::ErrorReply;
use crate::server::session::SessionTerms;
use crate::server::{Server, ServerConfig, SessionEnd, Sessions, UnknownEvent};
use crate::version::{Era, ProtocolVersion};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;

/// The rules of a legacy message.
#[derive(Clone, Debug)]
struct Under {
    /// `None`: it belongs to no session.
    session: Option<SessionKey>,
    negotiated: SessionTerms,
}

impl Server {
    /// Handles the one message of a POST.
    pub(super) fn message(&mut self, x: ExchangeId, head: &RequestHead, message: Message) {
        match message {
            Message::Request(request) => {
                let id = request.id.clone();
                if let Err(rejection) = self.request(x, head, request) {
                    let status = status_of(Some(rejection.error.code));
                    self.wire.env.reject(x, Some(&id), status, &rejection);
                }
            }
            Message::Notification(notification) => self.notification(x, head, notification),
            Message::Response(response) => match self.answered_session(x, head) {
                Ok(session) if self.forward_answer(Some(x), SessionRef::Http(session), &response) => {}
                Ok(session) => {
                    self.requests.on_response(&mut self.wire, SessionRef::Http(session), response);
                    self.wire.env.accept(x);
                }
                Err(rejection) => self.wire.env.reject(x, None, 400, &rejection),
            },
            Message::Error(error) => match self.answered_session(x, head) {
                Ok(_) => {
                    self.wire.env.diagnose(DiagnosticKind::IdlessError, &format!("{error}"));
                    self.wire.env.accept(x);
                }
                Err(rejection) => self.wire.env.reject(x, None, 400, &rejection),
            },
        }
    }

    /// Finds the column of the compatibility matrix for a request: by its metadata, then by its
    /// method, then by its header fields.
    fn request(&mut self, x: ExchangeId, head: &RequestHead, mut request: Request) -> Result<(), ErrorReply> {
        let parts = self.wire.env.parts(&mut request)?;
        if parts.is_modern() {
            return self.modern_request(x, head, request, parts);
        }
        if parts.is_half_modern() || names_modern(head) || !self.shared.config.serves_legacy() {
            return Err(self.shared.config.incomplete(head, &parts, &request.method));
        }
        let dialect = self.shared.config.dialect_rules(head, &request.method);
        let is_dialect = dialect.is_some();
        let under = match (opens_session(&request.method), dialect) {
            (true, _) => self.session_named(x, head),
            (false, Some(negotiated)) => Some(Under { session: None, negotiated }),
            (false, None) => Some(self.rules_of(x, head)?),
        };
        let id = request.id.clone();
        let Some(under) = under else {
            return match self.dispatch_open(&request, parts)? {
                Open::Initialize(params) => self.initialize(x, &id, &params),
                Open::Pong => {
                    self.wire.env.answer_one(x, Headers::new(), result_response(&id, &Object::new()));
                    Ok(())
                }
            };
        };
        match self.dispatch_under(x, &under, request, parts, false) {
            Ok(Legacy::Run(admitted)) => {
                let stream =
                    self.wire.http.open_stream(&mut self.wire.env, x, under.session, under.negotiated.version, false);
                if is_dialect {
                    self.wire.http.speak_dialect(stream);
                }
                self.requests.run(&mut self.wire, ReplyTo::Stream(stream), x, admitted, None);
                Ok(())
            }
            Ok(Legacy::Reply(result)) => {
                self.wire.env.answer_one(x, Headers::new(), result_response(&id, &result));
                Ok(())
            }
            Err(rejection) => {
                let status = if rejection.error.code == code::INVALID_REQUEST { 400 } else { 200 };
                Err(ErrorReply { status: rejection.status.or(Some(status)), ..rejection })
            }
        }
    }

    fn dispatch_under(
        &mut self,
        x: ExchangeId,
        under: &Under,
        request: Request,
        parts: RequestParts,
        in_batch: bool,
    ) -> Result<Legacy, ErrorReply> {
        let session = under.session.map(SessionRef::Http);
        check_id(session.and_then(|session| self.wire.session(session)), &request.id)?;
        let context = RequestContext { exchange: x, session, in_batch };
        self.dispatch_negotiated(context, &under.negotiated, request, parts)
    }

    /// Negotiates, and opens a session unless they are off.
    fn initialize(&mut self, x: ExchangeId, id: &Id, params: &Object) -> Result<(), ErrorReply> {
        let (negotiated, result) = self.shared.config.initialize(params, Transport::Http)?;
        self.wire.env.note_deviation(params);
        let mut headers = Headers::new();
        if self.shared.config.sessions != Sessions::Off {
            if self.wire.http.needs_sweep(&self.wire.env) {
                self.sweep_sessions();
            }
            let changes = self.listens.changes();
            let keys = self.shared.config.shares_sessions().then_some(&self.shared.keys);
            let (key, name) = self.wire.http.open_session(&mut self.wire.env, x, negotiated, changes, keys)?;
            headers.push(SESSION, name);
            let body = result_response(id, &result);
            if let Some((headers, body)) = self.keep_session(x, key, id, (headers, body)) {
                self.wire.env.answer_one(x, headers, body);
            }
            return Ok(());
        }
        self.wire.env.answer_one(x, headers, result_response(id, &result));
        Ok(())
    }

    /// Returns the session that an `initialize` names, if it is open.
    fn session_named(&mut self, x: ExchangeId, head: &RequestHead) -> Option<Under> {
        let session = self.find_session(x, head.headers.get(SESSION).map(str::trim)?)?;
        let negotiated = self.wire.session(SessionRef::Http(session))?.negotiated()?.clone();
        Some(Under { session: Some(session), negotiated })
    }

    /// Returns the rules of a message: those of its session, or of the revision that its header
    /// names.
    fn rules_of(&mut self, x: ExchangeId, head: &RequestHead) -> Result<Under, ErrorReply> {
        let version = self.shared.config.named_version(head)?;
        if let Some((session, negotiated)) = self.session_in(x, head, version)? {
            return Ok(Under { session: Some(session), negotiated });
        }
        let version = match (self.shared.config.sessions, version) {
            (Sessions::Required, _) => return Err(missing_session()),
            (Sessions::Optional, None) => {
                return Err(bad_request(
                    "Missing session ID; a request without one names its revision (MCP-Protocol-Version)",
                ));
            }
            (Sessions::Optional | Sessions::Off, Some(version)) => version,
            (Sessions::Off, None) => self.shared.config.older_version(ProtocolVersion::V2025_03_26.as_str())?,
        };
        // Without a session nothing is known of the capabilities of the client.
        Ok(Under { session: None, negotiated: SessionTerms::assumed(version) })
    }

    /// Returns the session that a request names, with the result of its negotiation. `None`: it
    /// names none. `version`: the revision that the request names, which must be the negotiated one
    /// (2025-11-25 transports, protocol version header).
    fn session_in(
        &mut self,
        x: ExchangeId,
        head: &RequestHead,
        version: Option<ProtocolVersion>,
    ) -> Result<Option<(SessionKey, SessionTerms)>, ErrorReply> {
        let Some(session) = self.named_session(x, head)? else { return Ok(None) };
        let negotiated = self.wire.session(SessionRef::Http(session)).and_then(|session| session.negotiated().cloned());
        let negotiated = negotiated.ok_or_else(unknown_session)?;
        match version.filter(|version| *version != negotiated.version) {
            Some(other) => Err(other_version(other, negotiated.version)),
            None => Ok(Some((session, negotiated))),
        }
    }

    /// Returns the session that a request names. `None`: it names none.
    fn named_session(&mut self, x: ExchangeId, head: &RequestHead) -> Result<Option<SessionKey>, ErrorReply> {
        let mut named = head.headers.all(SESSION).map(str::trim);
        let Some(first) = named.next().filter(|_| self.shared.config.sessions != Sessions::Off) else {
            return Ok(None);
        };
        if !is_session_id(first) || named.any(|other| other != first) {
            return Err(bad_request("Invalid session ID"));
        }
        self.find_session(x, first).map(Some).ok_or_else(unknown_session)
    }

    /// Returns the session that a response of a client belongs to. It is an error without one.
    fn answered_session(&mut self, x: ExchangeId, head: &RequestHead) -> Result<SessionKey, ErrorReply> {
        if !self.shared.config.serves_legacy() || names_modern(head) {
            let text = "this revision has no answers of clients";
            return Err(ErrorReply::new(DiagnosticKind::UnexpectedResponse, code::INVALID_REQUEST, text));
        }
        self.session_for(x, head)
    }

    fn notification(&mut self, x: ExchangeId, head: &RequestHead, notification: Notification) {
        let is_modern = names_modern(head) || !self.shared.config.serves_legacy();
        let has_session = head.headers.get(SESSION).is_some();
        let needs_session = self.shared.config.sessions == Sessions::Required && head.headers.get(VERSION).is_some();
        if is_modern || !has_session && !needs_session {
            return match self.shared.config.check_version(head) {
                Ok(()) => self.modern_notification(x, head, notification),
                Err(rejection) => self.wire.env.reject(x, None, 400, &rejection),
            };
        }
        match self.rules_of(x, head) {
            Ok(under) => {
                // Accept it first: it may be the cancellation of the last request.
                self.wire.env.accept(x);
                self.on_notification(x, under.session.map(SessionRef::Http), notification);
            }
            Err(rejection) => self.wire.env.reject(x, None, 400, &rejection),
        }
    }

    /// Handles a batch of 2025-03-26. Its responses leave together, unless a message has to be sent
    /// before.
    pub(super) fn legacy_batch(
        &mut self,
        x: ExchangeId,
        head: &RequestHead,
        elements: Vec<Result<Message, InvalidMessage>>,
    ) {
        let is_modern = names_modern(head) || !self.shared.config.serves_legacy();
        let under = if is_modern { Err(no_batches()) } else { self.rules_of(x, head) };
        let under = under.and_then(|under| match under.negotiated.version.rules().batches {
            true => Ok(under),
            false => Err(no_batches()),
        });
        let under = match under {
            Ok(under) => under,
            Err(rejection) => return self.wire.env.reject(x, None, 400, &rejection),
        };
        let is_garbage = elements.iter().all(|element| element.as_ref().is_err_and(|defect| !defect.is_notification()));
        let (mut answers, mut stream) = (Vec::new(), None);
        for element in elements {
            // An element may have terminated the server.
            if self.is_terminated() {
                return;
            }
            let session = under.session.map(SessionRef::Http);
            match self.on_element(x, session, element) {
                Element::Request(mut request) => {
                    let id = request.id.clone();
                    let dispatch = self.wire.env.parts(&mut request).and_then(|parts| match parts.is_modern() {
                        true => Err(no_batches()),
                        false => self.dispatch_under(x, &under, request, parts, true),
                    });
                    match dispatch {
                        Ok(Legacy::Run(admitted)) => {
                            let version = under.negotiated.version;
                            let key = *stream.get_or_insert_with(|| {
                                self.wire.http.open_stream(&mut self.wire.env, x, under.session, version, true)
                            });
                            self.wire.http.run_in_batch(key);
                            self.requests.run(&mut self.wire, ReplyTo::Stream(key), x, admitted, None);
                        }
                        Ok(Legacy::Reply(result)) => answers.push(result_response(&id, &result)),
                        Err(ErrorReply { error, kind, .. }) => {
                            self.wire.env.diagnose(kind, &error.message);
                            answers.push(error_response(Some(&id), &error));
                        }
                    }
                }
                Element::Invalid(defect) => {
                    self.wire.env.diagnose(DiagnosticKind::BadMessage, &legible(&defect));
                    match (&defect.id, session) {
                        (Some(id), _) if defect.has_method => {
                            answers.push(error_response(Some(id), &defect.to_error()));
                        }
                        // A response to an invalid response could be taken for one to a request.
                        (_, Some(session)) if self.forward_unreadable(session, &defect) => {}
                        (_, Some(session)) => self.requests.on_unreadable_answer(&mut self.wire, session, &defect),
                        (_, None) => {}
                    }
                }
                Element::Done => {}
            }
        }
        match stream {
            Some(stream) => self.wire.http.batch_is_read(&mut self.wire.env, stream, answers),
            None if !answers.is_empty() => self.wire.env.answer_one(x, Headers::new(), write_batch(&answers)),
            None if is_garbage => {
                let error = ErrorObject::new(code::INVALID_REQUEST, "nothing in the array is a message");
                self.wire.env.respond_error(x, 400, Headers::new(), None, &error);
            }
            None => self.wire.env.accept(x),
        }
    }

    /// Handles bytes that are not a message.
    pub(super) fn bad_message(&mut self, x: ExchangeId, head: &RequestHead, defect: &InvalidMessage) {
        let denied = defect.kind == InvalidKind::Denied;
        let kind = if denied { DiagnosticKind::Denied } else { DiagnosticKind::BadMessage };
        self.wire.env.diagnose(kind, &legible(defect));
        if defect.is_notification() {
            return self.wire.env.accept(x);
        }
        if !defect.has_method
            && let Ok(session) = self.session_for(x, head)
        {
            let session = SessionRef::Http(session);
            if !self.forward_unreadable(session, defect) {
                self.requests.on_unreadable_answer(&mut self.wire, session, defect);
            }
        }
        let id = defect.id.as_ref().filter(|_| defect.has_method);
        let error = defect.to_error();
        // A blocked request was well-formed, and has the status of one that failed.
        let status = if denied && id.is_some() { status_of(Some(error.code)) } else { 400 };
        self.wire.env.respond_error(x, status, Headers::new(), id, &error);
    }

    /// GET: opens the session's own stream, or resumes one that was cut off.
    pub(super) fn get(&mut self, x: ExchangeId, head: &RequestHead) {
        let session = match self.session_for(x, head) {
            Ok(session) => session,
            Err(rejection) => return self.wire.env.reject(x, None, 400, &rejection),
        };
        let replays = self.shared.config.compat.unknown_event == UnknownEvent::ReplayFromOldest;
        let mut cursors = head.headers.all(CURSOR).map(str::trim);
        // An empty cursor counts as no cursor (WHATWG HTML section 9.2.4).
        let cursor = cursors.next().filter(|cursor| !cursor.is_empty());
        let attached = match cursor {
            Some(cursor) if cursors.any(|other| other != cursor) => Err(bad_request("there is more than one cursor")),
            None if !self.is_serving() => Err(bad_request("the server is shutting down")),
            cursor if self.open_shared(x, session, cursor) => return,
            None => self.attach_own(x, session, false),
            Some(cursor) => match self.attach_after(x, session, cursor) {
                Err(_) if replays && self.is_serving() => self.attach_own(x, session, true),
                attached => attached,
            },
        };
        match attached {
            Ok(()) => {}
            // The shutdown has ended these streams, which is no fault of the client.
            Err(_) if !self.is_serving() => self.wire.env.refuse_busy(x, None, "the server is shutting down"),
            Err(rejection) => self.wire.env.reject(x, None, 400, &rejection),
        }
    }

    /// DELETE: ends the session.
    pub(super) fn delete(&mut self, x: ExchangeId, head: &RequestHead) {
        match self.session_for(x, head) {
            Ok(session) if self.drop_session(x, session) => {}
            Ok(session) => {
                self.answer_delete(x);
                self.end_session(session, SessionEnd::Deleted);
            }
            Err(rejection) => self.wire.env.reject(x, None, 400, &rejection),
        }
    }

    /// Responds to DELETE: the session has ended.
    pub(super) fn answer_delete(&mut self, x: ExchangeId) {
        self.wire.env.answer_json(x, 200, Headers::new(), Bytes::from_static(br#"{"success":true}"#));
    }

    /// Returns the session of a GET, a DELETE or a response, which need one.
    fn session_for(&mut self, x: ExchangeId, head: &RequestHead) -> Result<SessionKey, ErrorReply> {
        let version = self.shared.config.named_version(head)?;
        self.session_in(x, head, version)?.map(|(session, _)| session).ok_or_else(missing_session)
    }
}

impl ServerConfig {
    /// Returns the legacy revision that a head names. `None`: it names none.
    fn named_version(&self, head: &RequestHead) -> Result<Option<ProtocolVersion>, ErrorReply> {
        let mut named = head.headers.all(VERSION).map(str::trim);
        let Some(first) = named.next() else { return Ok(None) };
        if named.any(|other| other != first) {
            return Err(bad_request("the request names more than one revision"));
        }
        self.older_version(first).map(Some)
    }

    /// Returns the revision of this name, if it is a supported legacy one.
    fn older_version(&self, name: &str) -> Result<ProtocolVersion, ErrorReply> {
        let version = ProtocolVersion::parse(name)
            .filter(|version| version.era() == Era::Legacy && self.versions.contains(*version));
        version.ok_or_else(|| {
            let rejection = self.unsupported(name, Transport::Http);
            ErrorReply { status: Some(400), ..rejection }
        })
    }

    /// Checks that a head names no unsupported revision.
    fn check_version(&self, head: &RequestHead) -> Result<(), ErrorReply> {
        match head.headers.get(VERSION).map(str::trim).filter(|_| names_modern(head)) {
            Some(name) => self.modern_version(name, Transport::Http).map(drop),
            None => self.named_version(head).map(drop),
        }
    }
}

pub(super) fn bad_request(why: &str) -> ErrorReply {
    ErrorReply { status: Some(400), ..ErrorReply::new(DiagnosticKind::BadSession, code::INVALID_REQUEST, why) }
}

pub(super) fn missing_session() -> ErrorReply {
    bad_request("Missing session ID")
}

/// The error for a revision other than that of the session.
fn other_version(named: ProtocolVersion, agreed: ProtocolVersion) -> ErrorReply {
    let text = format!("the session speaks {}, and the request names {}", agreed.as_str(), named.as_str());
    let data = Object::new().with("supported", alloc::vec![agreed.as_str()]).with("requested", named.as_str());
    let mut rejection = ErrorReply::new(DiagnosticKind::UnsupportedVersion, code::UNSUPPORTED_VERSION, text);
    rejection.error.data = Some(data.into());
    ErrorReply { status: Some(400), ..rejection }
}

/// The error for a session that has ended, was never opened, or belongs to another principal. It
/// does not distinguish these cases.
pub(super) fn unknown_session() -> ErrorReply {
    ErrorReply { status: Some(404), ..bad_request("Session not found") }
}

fn legible(defect: &InvalidMessage) -> String {
    format!("{}: {}", defect.kind.as_str(), String::from_utf8_lossy(&defect.head))
}
