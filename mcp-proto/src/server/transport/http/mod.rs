//! HTTP exchanges: each request is an exchange of its own (2025-11-25 transports; 2026-07-28
//! streamable-http). Both eras share the endpoint. The engine refuses a request for faults of its
//! head before it reads the body. It decides the status before it writes anything. This file
//! contains the parts that both eras share. `modern.rs` and `legacy.rs` are the eras. `streams.rs`
//! and `sessions.rs` hold the state that outlives an exchange.

mod accept;
mod away;
mod cors;
mod credentials;
mod document;
mod evict;
mod exchange;
mod forwarded;
mod headers;
mod history;
mod hosts;
mod legacy;
mod modern;
mod posted;
mod respond;
mod sessions;
mod shared;
mod sse;
mod streams;
mod tail;
mod tool_stream;
mod web_socket;

pub(in crate::server) use exchange::Http;
pub(in crate::server) use forwarded::ForwardedItem;
pub(crate) use respond::unavailable;
pub(in crate::server) use sessions::HttpState;
use shared::SharedSession;
pub(in crate::server) use streams::Place;
pub(in crate::server) use streams::ResponseStream;
pub(in crate::server) use tail::Opening;
use tail::Tail;

use super::Binding;
use crate::error::DiagnosticKind;
use crate::exchange::{ExchangeId, Headers, Inbound, Outbound, RequestHead};
use crate::frame::{Media, media_of};
use crate::http_support::HttpSupport;
use crate::input::Admission;
use crate::rpc::{ErrorObject, code};
use crate::server::env::ServerEnv;
use crate::server::keys::{ServerTimer, SessionRef};
use crate::server::rights::ClientRights;
use crate::server::{Life, Output, Server, Sessions};
use accept::Accepts;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use bytes::Bytes;
use exchange::ResponseStage;
use headers::names_modern;
use sse::PathUse;
use streams::StreamStart;

impl Server {
    pub(in crate::server) fn open_http(&mut self, x: ExchangeId, head: RequestHead) {
        let Some(support) = HttpSupport::get() else {
            return self.wire.env.diagnose(DiagnosticKind::UnknownExchange, "HTTP is not compiled in");
        };
        let accepts = Accepts::of(&head.headers);
        let http = Http {
            head: Arc::new(head),
            accepts,
            rights: ClientRights::default(),
            stage: ResponseStage::Reading,
            upgrade: None,
            read_closed: false,
            _support: support,
        };
        let head = http.head.clone();
        let peer = self.wire.http.sender.take_if(|(of, _)| *of == x).map(|(_, peer)| peer).unwrap_or_default();
        self.wire.env.unread.remove(&x);
        if !self.enter(x, Arc::clone(&peer), Binding::Http(http)) {
            self.wire.env.leave_unread(x);
            let response = self.shared.config.for_page(&head, unavailable("the server is busy"));
            return self.wire.env.queue.push(Output::Send(x, response));
        }
        let path = path_of(&head);
        let config = &self.shared.config;
        let is_document = self.wire.env.document.as_ref().is_some_and(|document| document.path == path);
        let foreign = || if is_document { config.foreign_host(&head) } else { config.stranger(&head) };
        if let Some((why, name)) = config.distant(&peer).or_else(foreign) {
            self.wire.env.diagnose(DiagnosticKind::ForeignHost, &name);
            return self.wire.env.refuse_head(x, 403, why);
        }
        if is_document {
            return self.wire.env.answer_document(x, &head);
        }
        if self.shared.config.place(path).is_none() {
            return self.wire.env.refuse_head(x, 404, "nothing is served at this path");
        }
        if let Some(headers) = self.shared.config.preflight(&head) {
            return self.wire.env.answer_with(x, 204, headers, Bytes::new());
        }
        if self.shared.config.place(path) == Some(PathUse::Mcp) && !self.checks_upgrade(x, &head) {
            return;
        }
        if self.shared.config.admit {
            let key = self.requests.mint_admit_key();
            self.wire.env.ask_admission(x, key, peer, Some(head));
            if let Some(http) = self.wire.env.http(x) {
                http.stage = ResponseStage::Admitting { key, early: None };
            }
        } else {
            self.wire.env.hide_credentials(x);
            if head.headers.get("expect").is_some() {
                self.wire.env.send(x, Outbound::Continue);
            }
        }
    }

    /// The application has decided about the admission of a request.
    pub(in crate::server) fn http_admission(&mut self, x: ExchangeId, admission: Admission) {
        let Some(http) = self.wire.env.http(x) else { return };
        let ResponseStage::Admitting { early, .. } = &mut http.stage else { return };
        let early = early.take();
        let challenge = |challenge: Option<String>| match challenge {
            Some(challenge) => Headers::new().with("WWW-Authenticate", challenge),
            None => Headers::new(),
        };
        let rights: ClientRights = match self.shared.config.within_scopes(admission) {
            Admission::Accept(principal) => principal.into(),
            Admission::Granted(access) => access.into(),
            Admission::Denied(denial) => return self.wire.env.deny(x, &denial),
            Admission::Unauthorized(with) => {
                return self.wire.env.refuse(x, 401, challenge(Some(with)), "credentials are needed");
            }
            Admission::Forbidden(with) => {
                return self.wire.env.refuse(x, 403, challenge(with), "the credentials do not suffice");
            }
        };
        let principal = rights.principal.clone();
        (http.rights, http.stage) = (rights, ResponseStage::Reading);
        if !self.wire.env.counts_as(x, principal.as_ref()) {
            return self.wire.env.refuse_busy(x, None, "the client has taken its share of the server");
        }
        self.wire.env.hide_credentials(x);
        self.wire.env.send(x, Outbound::Continue);
        early.into_iter().for_each(|item| self.http_item(x, *item));
    }

    pub(in crate::server) fn http_item(&mut self, x: ExchangeId, item: Inbound) {
        let Some(http) = self.wire.env.http(x) else { return };
        if let Inbound::Reject(defect) = item {
            let has_status = match http.stage {
                ResponseStage::Admitting { .. }
                | ResponseStage::Reading
                | ResponseStage::Answering
                | ResponseStage::Storing(_) => false,
                ResponseStage::Carrying(stream) => self.wire.http.stream(stream).is_some_and(ResponseStream::has_begun),
                ResponseStage::Tailing | ResponseStage::Written(_) => true,
            };
            if has_status {
                // The status has been sent.
                self.wire.env.diagnose(DiagnosticKind::BadRequest, defect.why);
                return self.abort(x);
            }
            self.wire.env.http_reject(x, &defect);
            return self.drop_exchange(x);
        }
        match &mut http.stage {
            ResponseStage::Reading => {
                // The end of the body follows.
                http.stage = ResponseStage::Answering;
                let (head, accepts) = (http.head.clone(), http.accepts);
                if let Some(item) = self.await_session(x, &head, item) {
                    self.http_request(x, &head, accepts, item);
                }
            }
            ResponseStage::Admitting { early: early @ None, .. } => *early = Some(Box::new(item)),
            // The end of the body, and anything that a client appends to it.
            ResponseStage::Admitting { .. }
            | ResponseStage::Answering
            | ResponseStage::Storing(_)
            | ResponseStage::Carrying(_)
            | ResponseStage::Tailing
            | ResponseStage::Written(_) => {}
        }
    }

    /// The client has closed its sending side. A legacy client that has sent a request may still
    /// read the response.
    pub(in crate::server) fn http_read_closed(&mut self, x: ExchangeId) {
        if self.wire.env.duplex(x).is_some() {
            // The stream of HTTP+SSE answers no request.
            return self.abort(x);
        }
        let stays = match self.wire.env.http(x).map(|http| &http.stage) {
            Some(ResponseStage::Carrying(stream)) => {
                let stream = *stream;
                self.wire.http.stream(stream).is_some_and(ResponseStream::may_be_awaited)
            }
            // It may read the response when the store has replied.
            Some(ResponseStage::Written(_) | ResponseStage::Storing(_) | ResponseStage::Tailing) | None => true,
            Some(ResponseStage::Admitting { .. } | ResponseStage::Reading | ResponseStage::Answering) => false,
        };
        if !stays {
            return self.abort(x);
        }
        if let Some(http) = self.wire.env.http(x) {
            http.read_closed = true;
        }
        if let Some(SessionRef::Http(session)) =
            self.wire.target_on(x).and_then(|reply_to| self.wire.session_of(reply_to))
        {
            self.requests.time_questions_of(&mut self.wire, session);
        }
    }

    fn http_request(&mut self, x: ExchangeId, head: &Arc<RequestHead>, accepts: Accepts, item: Inbound) {
        if let Some(accepted) = self.wire.env.http(x).and_then(|http| http.upgrade.take()) {
            return self.open_web_socket(x, head, &accepted);
        }
        match self.shared.config.place(path_of(head)) {
            Some(PathUse::SseStream) => return self.open_sse(x, head, accepts),
            Some(PathUse::SseMessages) => return self.sse_message(x, head, item),
            Some(PathUse::Mcp) | None => {}
        }
        let is_older = self.shared.config.serves_legacy() && !names_modern(head);
        let has_sessions = is_older && self.shared.config.sessions != Sessions::Off;
        match &*head.method {
            "POST" if !is_json(head) => {
                self.wire.env.refuse(x, 415, Headers::new(), "the content type must be application/json")
            }
            "POST" if !accepts.json && !accepts.events => {
                self.wire.env.refuse(
                    x,
                    406,
                    Headers::new(),
                    "the answer is JSON or an event stream, and neither is accepted",
                );
            }
            "POST" => self.post(x, head, item),
            "GET" if has_sessions && !accepts.events => {
                self.wire.env.refuse(x, 406, Headers::new(), "the answer is an event stream, which is not accepted");
            }
            "GET" if has_sessions => self.get(x, head),
            "DELETE" if has_sessions => self.delete(x, head),
            _ => {
                let allow = if has_sessions { "GET, POST, DELETE" } else { "POST" };
                self.wire.env.refuse(x, 405, Headers::new().with("Allow", allow), "the method is not served here");
            }
        }
    }

    fn post(&mut self, x: ExchangeId, head: &RequestHead, item: Inbound) {
        match item {
            Inbound::Message(message) => self.message(x, head, message),
            Inbound::Batch(elements) => self.legacy_batch(x, head, elements),
            Inbound::Invalid(defect) => self.bad_message(x, head, &defect),
            Inbound::End => {
                let error = ErrorObject::new(code::PARSE_ERROR, "the body is empty");
                self.wire.env.diagnose(DiagnosticKind::BadMessage, "the body is empty");
                self.wire.env.respond_error(x, 400, Headers::new(), None, &error);
            }
            _ => self.wire.env.refuse(x, 415, Headers::new(), "the content type must be application/json"),
        }
    }

    /// Returns whether the server accepts requests.
    fn is_serving(&self) -> bool {
        self.life == Life::Serving
    }
}

impl HttpState {
    /// Sends a keep-alive comment on an event stream.
    pub(in crate::server) fn on_keep_alive(&mut self, env: &mut ServerEnv, x: ExchangeId) {
        let Some(exchange) = env.exchanges.get_mut(&x) else { return };
        // A client that reads nothing would not receive it.
        let reads = exchange.load.total() == 0;
        let stream = match exchange.binding.http().map(|http| &http.stage) {
            // The stream of HTTP+SSE.
            None | Some(ResponseStage::Tailing) => None,
            Some(ResponseStage::Carrying(stream)) => Some(*stream),
            Some(
                ResponseStage::Admitting { .. }
                | ResponseStage::Reading
                | ResponseStage::Answering
                | ResponseStage::Storing(_)
                | ResponseStage::Written(_),
            ) => return,
        };
        if stream.is_some_and(|stream| self.claim_late(env, stream, x)) {
            return;
        }
        match stream.map(|stream| self.open_events(env, stream, None)) {
            Some(StreamStart::Event) => return,
            Some(StreamStart::Head | StreamStart::Nothing) | None => {}
        }
        if reads {
            env.send_comment(x);
        }
        let next = env.config.keep_alive.map(|after| env.again(after));
        env.timers.set(ServerTimer::KeepAlive(x), next);
    }
}

/// Returns the path of a request.
fn path_of(head: &RequestHead) -> &str {
    head.target.split(['?', '#']).next().unwrap_or_default()
}

/// Returns whether the content type is JSON and nothing else. Parameters do not matter.
fn is_json(head: &RequestHead) -> bool {
    let mut claims = head.headers.all("Content-Type").map(media_of).peekable();
    claims.peek().is_some() && claims.all(|media| media == Media::Json)
}
