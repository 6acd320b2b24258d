//! HTTP exchanges of 2026-07-28 (Streamable HTTP): one POST, one answer. No sessions, no GET, no request of ours.
//! Metadata is checked first, then headers, then the revision, then the method: what decides the status comes before anything is written.

use super::super::config::Hosts;
use super::super::era::{Parts, Rejection};
use super::super::{Event, Server};
use super::Binding;
use crate::error::DiagnosticKind;
use crate::exchange::{Body, ExchangeId, Headers, HttpDefect, Item, Outgoing, Peer, RequestHead, ResponseHead};
use crate::rpc::{
    Defect, DefectKind, ErrorObject, Message, Notification, Object, Request, code, error_response, result_response,
};
use crate::version::Era;
use alloc::format;
use alloc::string::{String, ToString};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

/// The state of an HTTP exchange whose answer is owed.
#[derive(Debug)]
pub(in super::super) struct Http {
    head: RequestHead,
    /// Its message was read.
    read: bool,
    /// The answer streams: its status is on the wire.
    streams: bool,
}

const VERSION: &str = "MCP-Protocol-Version";
const METHOD: &str = "Mcp-Method";
const NAME: &str = "Mcp-Name";

impl Server {
    pub(in super::super) fn open_http(&mut self, x: ExchangeId, head: RequestHead) {
        self.enter(x, Peer::default(), Binding::Http(Http { head, read: false, streams: false }));
    }

    /// A request that was refused before it became an exchange.
    pub(in super::super) fn http_reject(&mut self, x: ExchangeId, defect: &HttpDefect) {
        self.diagnose(DiagnosticKind::HttpDefect, defect.why);
        let outgoing = text(defect.status, defect.why);
        self.queue.push(super::super::Output::Send(x, outgoing));
    }

    pub(in super::super) fn http_item(&mut self, x: ExchangeId, item: Item) {
        let Some(http) = self.http(x) else { return };
        if let Item::Reject(defect) = item {
            if http.streams {
                // The status is on the wire already.
                self.diagnose(DiagnosticKind::HttpDefect, defect.why);
                return self.abort(x);
            }
            self.http_reject(x, &defect);
            return self.drop_exchange(x);
        }
        if http.read {
            // The end of the body, and whatever a client appends to it.
            return;
        }
        http.read = true;
        let head = http.head.clone();
        if let Some(name) = self.stranger(&head) {
            self.diagnose(DiagnosticKind::ForeignHost, &name);
            return self.http_plain(x, 403, Headers::new(), "this host or origin is not served");
        }
        if head.method != "POST" {
            let refusal = Headers::new().with("Allow", "POST");
            return self.http_plain(x, 405, refusal, "only POST is served here");
        }
        if !is_json(&head) {
            return self.http_plain(x, 415, Headers::new(), "the content type must be application/json");
        }
        match item {
            Item::Message(Message::Request(request)) => self.http_request(x, &head, request),
            Item::Message(Message::Notification(notification)) => self.http_notification(x, &head, notification),
            Item::Message(Message::Response(_) | Message::Error(_)) => {
                self.diagnose(DiagnosticKind::UnexpectedResponse, "");
                self.http_error(
                    x,
                    400,
                    &ErrorObject::new(code::INVALID_REQUEST, "this revision has no answers of clients"),
                );
            }
            Item::Batch(_) => {
                let error = ErrorObject::new(code::INVALID_REQUEST, DefectKind::UnexpectedBatch.as_str());
                self.diagnose(DiagnosticKind::UnexpectedBatch, "");
                self.http_error(x, 400, &error);
            }
            Item::BadMessage(defect) => self.http_defect(x, &defect),
            Item::End => self.http_error(x, 400, &ErrorObject::new(code::PARSE_ERROR, "the body is empty")),
            _ => self.http_plain(x, 415, Headers::new(), "the content type must be application/json"),
        }
    }

    /// The host that a request names, or that it comes from, if it is none of ours.
    fn stranger(&self, head: &RequestHead) -> Option<String> {
        let hosts = &self.shared.config.hosts;
        let served = |host: Option<&str>| *hosts == Hosts::Any || host.is_some_and(|host| hosts.allows(host));
        let host = head.headers.all("Host").find(|host| !served(host_of(host)));
        let origin =
            || head.headers.all("Origin").find(|origin| !served(origin.split_once("://").and_then(|o| host_of(o.1))));
        host.or_else(origin).map(Into::into)
    }

    fn http_request(&mut self, x: ExchangeId, head: &RequestHead, request: Request) {
        let id = request.id.clone();
        if let Err(Rejection { error, kind, metadata }) = self.http_judge(x, head, request) {
            self.diagnose(kind, &error.message);
            // Metadata that is missing or malformed is refused with 400, unlike other wrong params.
            let status = if metadata { 400 } else { status_of(Some(error.code)) };
            self.http_full(x, status, json(), error_response(Some(&id), &error));
        }
    }

    /// Metadata, then headers, then the revision, then the method.
    fn http_judge(&mut self, x: ExchangeId, head: &RequestHead, request: Request) -> Result<(), Rejection> {
        let parts = Parts::of(&request)?;
        if !parts.is_modern() {
            return Err(self.without_metadata(head, &parts, &request.method));
        }
        let named = parts.named_version()?;
        check_headers(head, &named, &request.method, &parts.params)?;
        let version = self.shared.config.modern_version(&named, false)?;
        match request.method.as_str() {
            "server/discover" => {
                let result = self.shared.complete(version, self.shared.config.discover(false), "complete");
                self.http_answer(x, result_response(&request.id, &result), None);
            }
            method @ ("initialize" | "ping") => return Err(Rejection::method(method)),
            _ => {
                self.admit(x)?;
                let admitted = parts.admit_modern(request, version, Peer::default())?;
                self.run(x, admitted, None);
            }
        }
        Ok(())
    }

    /// A request that does not name its revision: of the legacy era, which is not served over HTTP, or incomplete.
    fn without_metadata(&self, head: &RequestHead, parts: &Parts, method: &str) -> Rejection {
        let header = head.headers.get(VERSION).map(str::trim);
        let requested = parts.params.optional::<String>("protocolVersion").ok().flatten();
        let modern = header.and_then(Era::of_name) == Some(Era::Modern);
        if parts.is_half_modern() || modern {
            return parts.named_version().err().unwrap_or_else(|| Rejection::method(method));
        }
        match (header, requested) {
            (None, None) if method != "initialize" => mismatch(format!("the header {VERSION} is missing")),
            (header, requested) => {
                let requested = requested.or_else(|| header.map(str::to_string)).unwrap_or_default();
                self.shared.config.unsupported(&requested, false)
            }
        }
    }

    /// A notification is accepted without an answer. Cancelling is closing the exchange, so `notifications/cancelled` has nothing to name.
    fn http_notification(&mut self, x: ExchangeId, head: &RequestHead, notification: Notification) {
        let Notification { method, params } = notification;
        if differs(head, METHOD, &method) {
            let error =
                ErrorObject::new(code::HEADER_MISMATCH, format!("the header {METHOD} is not the method of the body"));
            self.diagnose(DiagnosticKind::HeaderMismatch, &error.message);
            return self.http_error(x, 400, &error);
        }
        match method.as_str() {
            "notifications/initialized" => {}
            "notifications/cancelled" => {
                self.diagnose(DiagnosticKind::UnknownCancel, "over HTTP a request is cancelled by closing it")
            }
            "notifications/progress" => self.diagnose(DiagnosticKind::UnknownProgress, ""),
            _ => self.queue.notification(Event::Notification { exchange: x, method, params }),
        }
        self.http_full(x, 202, Headers::new(), Bytes::new());
    }

    fn http_defect(&mut self, x: ExchangeId, defect: &Defect) {
        let head = String::from_utf8_lossy(&defect.head);
        let denied = defect.kind == DefectKind::Denied;
        let kind = if denied { DiagnosticKind::Denied } else { DiagnosticKind::BadMessage };
        self.diagnose(kind, &format!("{}: {head}", defect.kind.as_str()));
        let id = defect.id.as_ref().filter(|_| defect.has_method);
        let error = defect.to_error();
        // A request that was refused was well-formed, and is answered like one that failed.
        let status = if denied && id.is_some() { status_of(Some(error.code)) } else { 400 };
        self.http_full(x, status, json(), error_response(id, &error));
    }

    /// The answer of a request: one JSON object, or the last event if notifications went before it.
    pub(in super::super) fn http_answer(&mut self, x: ExchangeId, message: Bytes, code: Option<i64>) {
        let Some(http) = self.http(x) else { return };
        if http.streams {
            self.send(x, Outgoing::Event { id: None, retry: None, data: message });
            self.send(x, Outgoing::End);
            return self.drop_exchange(x);
        }
        self.http_full(x, status_of(code), json(), message);
    }

    /// A notification of a request. The first makes the answer a stream.
    pub(in super::super) fn http_note(&mut self, x: ExchangeId, note: Bytes) {
        let Some(http) = self.http(x) else { return };
        if !core::mem::replace(&mut http.streams, true) {
            let headers = Headers::new()
                .with("Content-Type", "text/event-stream")
                .with("Cache-Control", "no-cache")
                .with("X-Accel-Buffering", "no");
            self.send(x, Outgoing::Response { head: ResponseHead { status: 200, headers }, body: Body::Stream });
        }
        self.send(x, Outgoing::Event { id: None, retry: None, data: note });
    }

    /// An error that belongs to no request.
    fn http_error(&mut self, x: ExchangeId, status: u16, error: &ErrorObject) {
        self.http_full(x, status, json(), error_response(None, error));
    }

    fn http_plain(&mut self, x: ExchangeId, status: u16, headers: Headers, why: &'static str) {
        self.diagnose(DiagnosticKind::HttpDefect, why);
        self.http_full(
            x,
            status,
            headers.with("Content-Type", "text/plain; charset=utf-8"),
            Bytes::from_static(why.as_bytes()),
        );
    }

    /// The whole answer, after which nothing is left of the exchange.
    fn http_full(&mut self, x: ExchangeId, status: u16, headers: Headers, body: Bytes) {
        self.send(x, Outgoing::Response { head: ResponseHead { status, headers }, body: Body::Full(body) });
        self.drop_exchange(x);
    }

    fn http(&mut self, x: ExchangeId) -> Option<&mut Http> {
        match &mut self.exchanges.get_mut(&x)?.binding {
            Binding::Http(http) => Some(http),
            Binding::Duplex(_) => None,
        }
    }
}

/// The status of an answer that is not streamed.
const fn status_of(code: Option<i64>) -> u16 {
    match code {
        Some(code::METHOD_NOT_FOUND) => 404,
        Some(code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY | code::UNSUPPORTED_VERSION) => 400,
        _ => 200,
    }
}

fn json() -> Headers {
    Headers::new().with("Content-Type", "application/json")
}

fn text(status: u16, why: &'static str) -> Outgoing {
    let headers = Headers::new().with("Content-Type", "text/plain; charset=utf-8");
    Outgoing::Response { head: ResponseHead { status, headers }, body: Body::Full(Bytes::from_static(why.as_bytes())) }
}

/// Whether the body claims to be JSON; parameters after the type do not matter.
fn is_json(head: &RequestHead) -> bool {
    let media = head.headers.get("Content-Type").and_then(|value| value.split(';').next()).map(str::trim);
    media.is_some_and(|media| media.eq_ignore_ascii_case("application/json"))
}

/// The standard headers of a request must be there and say what the body says (2026-07-28, Streamable HTTP: server validation).
fn check_headers(head: &RequestHead, version: &str, method: &str, params: &Object) -> Result<(), Rejection> {
    check_header(head, VERSION, version)?;
    check_header(head, METHOD, method)?;
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return Ok(()),
    };
    match params.optional::<String>(key).ok().flatten() {
        Some(name) => check_header(head, NAME, &name),
        // A body without a name is wrong by itself, which the router says.
        None => Ok(()),
    }
}

fn check_header(head: &RequestHead, header: &'static str, body: &str) -> Result<(), Rejection> {
    if head.headers.get(header).is_none() {
        return Err(mismatch(format!("the header {header} is missing")));
    }
    if differs(head, header, body) {
        return Err(mismatch(format!("the header {header} does not say what the body says")));
    }
    Ok(())
}

/// Whether any field of this name is malformed, or says something else than the body. An absent header says nothing.
fn differs(head: &RequestHead, header: &'static str, body: &str) -> bool {
    let decode = if header == NAME { decoded } else { plain };
    head.headers.all(header).any(|value| decode(value).as_deref() != Some(body))
}

/// A value as it stands, white space around it removed; `None` if it holds what a header must not hold.
fn plain(value: &str) -> Option<String> {
    let value = value.trim_matches([' ', '\t']);
    value.bytes().all(|byte| (0x20..0x7f).contains(&byte) || byte == b'\t').then(|| value.into())
}

/// A value that may be wrapped as `=?base64?…?=`.
fn decoded(value: &str) -> Option<String> {
    let value = plain(value)?;
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(wrapped) => STANDARD.decode(wrapped).ok().and_then(|bytes| String::from_utf8(bytes).ok()),
        None => Some(value),
    }
}

fn mismatch(text: String) -> Rejection {
    Rejection::new(DiagnosticKind::HeaderMismatch, code::HEADER_MISMATCH, text)
}

/// The host of an authority, without its port and brackets.
fn host_of(authority: &str) -> Option<&str> {
    let authority = authority.trim();
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    // Anything else after the host could make another host of it.
    let is_port = port.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    (port.is_empty() || is_port).then_some(host)
}
