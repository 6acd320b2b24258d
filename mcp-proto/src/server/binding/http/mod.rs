//! HTTP exchanges: each request is an exchange of its own (2025-11-25 transports; 2026-07-28
//! streamable-http). Both eras come to the same endpoint. What is refused for its head alone is
//! refused before its body is read; what decides the status comes before anything is written. Here
//! is what both eras share; `modern.rs` and `legacy.rs` are the eras, `streams.rs` and
//! `sessions.rs` what lasts longer than an exchange.

mod accept;
mod away;
mod cors;
mod headers;
mod history;
mod hosts;
mod legacy;
mod modern;
mod sessions;
mod streams;

pub(in crate::server) use sessions::Web;
pub(in crate::server) use streams::StreamKey;
use streams::{Opening, ResponseStream};

use super::Binding;
use crate::error::DiagnosticKind;
use crate::exchange::{BadRequest, Body, ExchangeId, Headers, Inbound, Outbound, RequestHead, ResponseHead};
use crate::input::{Admission, AdmitKey, Principal};
use crate::rpc::{ErrorObject, Id, code, error_response};
use crate::server::env::Env;
use crate::server::era::ErrorReply;
use crate::server::session::SessionRef;
use crate::server::{Life, Output, Server, Sessions, Timer};
use accept::Accepts;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use bytes::Bytes;
use core::time::Duration;

/// The state of an HTTP exchange whose answer is owed, or not yet written.
#[derive(Debug)]
pub(in crate::server) struct Http {
    head: Arc<RequestHead>,
    /// What the client takes for an answer.
    accepts: Accepts,
    /// From whom it comes, once that was decided.
    principal: Option<Principal>,
    stage: Stage,
    /// The client will send nothing more on its connection. It may have gone.
    read_closed: bool,
}

#[derive(Debug)]
enum Stage {
    /// The application decides from the head. A driver that does not hold the body back has this of
    /// it.
    Admitting { key: AdmitKey, early: Option<Box<Inbound>> },
    /// Its message is awaited.
    Reading,
    /// The engine responds at once.
    Answering,
    /// It carries the response stream of a request, or the stream of a GET.
    Carrying(StreamKey),
    /// All was said; it is not written yet, so that the stream is kept.
    Written(StreamKey),
}

impl Http {
    /// From whom it comes, once that was decided.
    pub(in crate::server) const fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    pub(in crate::server) fn head(&self) -> &RequestHead {
        &self.head
    }

    /// Returns the stream that it carries.
    pub(in crate::server) const fn stream(&self) -> Option<StreamKey> {
        match self.stage {
            Stage::Carrying(stream) => Some(stream),
            Stage::Admitting { .. } | Stage::Reading | Stage::Answering | Stage::Written(_) => None,
        }
    }

    /// The head, and from whom it comes.
    pub(in crate::server) fn origin(&self) -> (Arc<RequestHead>, Option<Principal>) {
        (self.head.clone(), self.principal.clone())
    }
}

/// After what time a client that was refused for want of room may try again, in seconds.
const RETRY_AFTER: &str = "1";

impl Server {
    pub(in crate::server) fn open_http(&mut self, x: ExchangeId, head: RequestHead) {
        let accepts = Accepts::of(&head.headers);
        let http = Http { head: Arc::new(head), accepts, principal: None, stage: Stage::Reading, read_closed: false };
        let head = http.head.clone();
        let peer = self.web.sender.take_if(|(of, _)| *of == x).map(|(_, peer)| peer).unwrap_or_default();
        self.web.unread.remove(&x);
        if !self.enter(x, peer.clone(), Binding::Http(http)) {
            self.leave_unread(x);
            let response = self.shared.config.for_page(&head, unavailable("the server is busy"));
            return self.env.queue.push(Output::Send(x, response));
        }
        if let Some((why, name)) = self.shared.config.distant(&peer).or_else(|| self.shared.config.stranger(&head)) {
            self.env.diagnose(DiagnosticKind::ForeignHost, &name);
            return self.refuse_head(x, 403, why);
        }
        let path = head.target.split(['?', '#']).next().unwrap_or_default();
        if self.shared.config.path.as_deref().is_some_and(|served| served != path) {
            return self.refuse_head(x, 404, "nothing is served at this path");
        }
        if let Some(headers) = self.shared.config.preflight(&head) {
            return self.answer_with(x, 204, headers, Bytes::new());
        }
        if self.shared.config.admit {
            let key = self.ask_admission(x, peer, Some(head));
            if let Some(http) = self.env.http(x) {
                http.stage = Stage::Admitting { key, early: None };
            }
        } else if head.headers.get("expect").is_some() {
            self.env.send(x, Outbound::Continue);
        }
    }

    /// The application has decided about a request.
    pub(in crate::server) fn http_admission(&mut self, x: ExchangeId, admission: Admission) {
        let Some(http) = self.env.http(x) else { return };
        let Stage::Admitting { early, .. } = &mut http.stage else { return };
        let early = early.take();
        let challenge = |challenge: Option<String>| match challenge {
            Some(challenge) => Headers::new().with("WWW-Authenticate", challenge),
            None => Headers::new(),
        };
        match admission {
            Admission::Accept(principal) => {
                http.principal = principal.clone();
                http.stage = Stage::Reading;
                if !self.env.counts_as(x, principal.as_ref()) {
                    return self.refuse_busy(x, None, "the client has taken its share of the server");
                }
                self.env.send(x, Outbound::Continue);
                early.into_iter().for_each(|item| self.http_item(x, *item));
            }
            Admission::Unauthorized(with) => self.refuse(x, 401, challenge(Some(with)), "credentials are needed"),
            Admission::Forbidden(with) => self.refuse(x, 403, challenge(with), "the credentials do not suffice"),
        }
    }

    /// The application did not decide about a request in time.
    pub(in crate::server) fn http_admit_timeout(&mut self, x: ExchangeId) {
        self.refuse_busy(x, None, "the request was not admitted in time");
    }

    /// A request that was refused before it became an exchange.
    pub(in crate::server) fn http_reject(&mut self, x: ExchangeId, defect: &BadRequest) {
        self.env.diagnose(DiagnosticKind::BadRequest, defect.why);
        let response = match defect.status {
            503 => unavailable(defect.why),
            status => error_answer(status, Headers::new(), None, &plain_error(status, defect.why)),
        };
        if self.env.exchanges.contains_key(&x) {
            return self.env.send(x, response);
        }
        self.env.queue.push(Output::Send(x, response));
    }

    pub(in crate::server) fn http_item(&mut self, x: ExchangeId, item: Inbound) {
        let Some(http) = self.env.http(x) else { return };
        if let Inbound::Reject(defect) = item {
            let has_status = match http.stage {
                Stage::Admitting { .. } | Stage::Reading | Stage::Answering => false,
                Stage::Carrying(stream) => self.web.stream(stream).is_some_and(ResponseStream::has_begun),
                Stage::Written(_) => true,
            };
            if has_status {
                // The status is on the wire already.
                self.env.diagnose(DiagnosticKind::BadRequest, defect.why);
                return self.abort(x);
            }
            self.http_reject(x, &defect);
            return self.drop_exchange(x);
        }
        match &mut http.stage {
            Stage::Reading => {
                // What follows is the end of the body.
                http.stage = Stage::Answering;
                let (head, accepts) = (http.head.clone(), http.accepts);
                self.http_request(x, &head, accepts, item);
            }
            Stage::Admitting { early: early @ None, .. } => *early = Some(Box::new(item)),
            // The end of the body, and whatever a client appends to it.
            Stage::Admitting { .. } | Stage::Answering | Stage::Carrying(_) | Stage::Written(_) => {}
        }
    }

    /// The client will send nothing more on the connection. One of the older revisions that has
    /// sent a request may still read its answer.
    pub(in crate::server) fn http_read_closed(&mut self, x: ExchangeId) {
        let stays = match self.env.http(x).map(|http| &http.stage) {
            Some(Stage::Carrying(stream)) => {
                let stream = *stream;
                self.web.stream(stream).is_some_and(ResponseStream::may_be_awaited)
            }
            Some(Stage::Written(_)) | None => true,
            Some(Stage::Admitting { .. } | Stage::Reading | Stage::Answering) => false,
        };
        if !stays {
            return self.abort(x);
        }
        if let Some(http) = self.env.http(x) {
            http.read_closed = true;
        }
        if let Some(SessionRef::Http(session)) = self.reply_to_on(x).and_then(|reply_to| self.session_ref(reply_to)) {
            self.time_questions_of(session);
        }
    }

    fn http_request(&mut self, x: ExchangeId, head: &RequestHead, accepts: Accepts, item: Inbound) {
        let is_older = self.shared.config.serves_legacy() && !legacy::names_modern(head);
        let has_sessions = is_older && self.shared.config.sessions != Sessions::Off;
        match head.method.as_str() {
            "POST" if !is_json(head) => {
                self.refuse(x, 415, Headers::new(), "the content type must be application/json")
            }
            "POST" if !accepts.json && !accepts.events => {
                self.refuse(x, 406, Headers::new(), "the answer is JSON or an event stream, and neither is accepted");
            }
            "POST" => self.post(x, head, item),
            "GET" if has_sessions && !accepts.events => {
                self.refuse(x, 406, Headers::new(), "the answer is an event stream, which is not accepted");
            }
            "GET" if has_sessions => self.get(x, head),
            "DELETE" if has_sessions => self.delete(x, head),
            _ => {
                let allow = if has_sessions { "GET, POST, DELETE" } else { "POST" };
                self.refuse(x, 405, Headers::new().with("Allow", allow), "the method is not served here");
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
                self.env.diagnose(DiagnosticKind::BadMessage, "the body is empty");
                self.respond_error(x, 400, Headers::new(), None, &error);
            }
            _ => self.refuse(x, 415, Headers::new(), "the content type must be application/json"),
        }
    }

    /// Answers a request that is not run.
    fn reject(&mut self, x: ExchangeId, id: Option<&Id>, status: u16, rejection: &ErrorReply) {
        let status = rejection.status.unwrap_or(status);
        self.env.diagnose(rejection.kind, &rejection.error.message);
        let headers = match status {
            503 => Headers::new().with("Retry-After", RETRY_AFTER),
            _ => Headers::new(),
        };
        self.respond_error(x, status, headers, id, &rejection.error);
    }

    /// No room for it now.
    fn refuse_busy(&mut self, x: ExchangeId, id: Option<&Id>, why: &str) {
        self.reject(x, id, 503, &ErrorReply::full(why));
    }

    /// Refuses a request for its head, whatever its body is.
    fn refuse_head(&mut self, x: ExchangeId, status: u16, why: &'static str) {
        self.refuse(x, status, Headers::new().with("Connection", "close"), why);
    }

    /// Refuses a request that was admitted and whose body has not come. Does nothing at any other
    /// stage.
    pub(in crate::server) fn refuse_unread(&mut self, x: ExchangeId, why: &'static str) {
        if self.env.http(x).is_some_and(|http| matches!(http.stage, Stage::Reading)) {
            self.refuse_head(x, 403, why);
        }
    }

    /// Refuses a request for reasons of HTTP.
    fn refuse(&mut self, x: ExchangeId, status: u16, headers: Headers, why: &'static str) {
        self.env.diagnose(DiagnosticKind::BadRequest, why);
        self.respond_error(x, status, headers, None, &plain_error(status, why));
    }

    fn respond_error(&mut self, x: ExchangeId, status: u16, headers: Headers, id: Option<&Id>, error: &ErrorObject) {
        let body = error_response(id, error);
        if status == 200 { self.answer_one(x, headers, body) } else { self.answer_json(x, status, headers, body) }
    }

    /// The one answer to a request: JSON, or the only event of a stream where the client takes
    /// nothing else.
    fn answer_one(&mut self, x: ExchangeId, headers: Headers, body: Bytes) {
        if self.env.http(x).is_none_or(|http| http.accepts.json) {
            return self.answer_json(x, 200, headers, body);
        }
        self.env.begin_events(x, headers);
        self.say_last(x, body);
    }

    /// The last event of a stream to which nobody can come back.
    fn say_last(&mut self, x: ExchangeId, data: Bytes) {
        self.env.send(x, Outbound::Event { id: None, retry: None, data });
        self.env.send(x, Outbound::End);
        self.drop_exchange(x);
    }

    fn answer_json(&mut self, x: ExchangeId, status: u16, headers: Headers, body: Bytes) {
        self.answer_with(x, status, headers.with("Content-Type", "application/json"), body);
    }

    /// The whole answer, after which nothing is left of the exchange.
    fn answer_with(&mut self, x: ExchangeId, status: u16, headers: Headers, body: Bytes) {
        if self.env.http(x).is_some_and(|http| matches!(http.stage, Stage::Admitting { .. } | Stage::Reading)) {
            self.leave_unread(x);
        }
        self.env.send(x, Outbound::Response { head: ResponseHead { status, headers }, body: Body::Full(body) });
        self.drop_exchange(x);
    }

    /// An exchange is answered before its request body was read. What comes of the body is ignored.
    /// A driver that drops the body reports no end of it, so at the limit the exchange with the
    /// lowest number is forgotten.
    fn leave_unread(&mut self, x: ExchangeId) {
        self.web.unread.insert(x);
        if self.web.unread.len() > self.shared.config.limits.server.max_exchanges {
            self.web.unread.pop_first();
        }
    }

    /// Accepted, and there is nothing to say to it.
    fn accept(&mut self, x: ExchangeId) {
        self.answer_with(x, 202, Headers::new(), Bytes::new());
    }

    /// An exchange was silent for long.
    pub(in crate::server) fn on_keep_alive(&mut self, x: ExchangeId) {
        let Some(exchange) = self.env.exchanges.get_mut(&x) else { return };
        // Whoever reads nothing would not see it.
        let reads = exchange.load.total() == 0;
        let Some(http) = exchange.binding.http_mut() else { return };
        match http.stage {
            Stage::Carrying(stream) => match self.web.open_events(&mut self.env, stream, None) {
                Opening::Event => return,
                Opening::Head | Opening::Nothing => {}
            },
            Stage::Admitting { .. } | Stage::Reading | Stage::Answering | Stage::Written(_) => return,
        }
        if reads {
            self.env.send_comment(x);
        }
        let next = self.shared.config.keep_alive.map(|after| self.env.again(after));
        self.env.timers.set(Timer::KeepAlive(x), next);
    }

    /// An HTTP exchange is over: what it carried goes on without it.
    pub(in crate::server) fn leave_http(&mut self, x: ExchangeId) {
        self.env.timers.set(Timer::KeepAlive(x), None);
        match self.env.http(x).map(|http| core::mem::replace(&mut http.stage, Stage::Answering)) {
            Some(Stage::Carrying(stream)) => self.detach(stream, x),
            Some(Stage::Written(stream)) => {
                // Not all of it was written: it is kept for as long as the session is.
                self.env.timers.set(Timer::Keep(stream), None);
                self.detach(stream, x);
            }
            Some(Stage::Admitting { key, .. }) => self.forget_admission(x, key),
            Some(Stage::Reading | Stage::Answering) | None => {}
        }
    }

    /// The server ends. Who has not been answered is told so; event streams that are over need
    /// nothing more.
    pub(in crate::server) fn end_http(&mut self, x: ExchangeId) {
        match self.env.http(x).map(|http| &http.stage) {
            Some(Stage::Admitting { .. } | Stage::Reading | Stage::Answering) => {
                self.env.send(x, unavailable("the server is shutting down"));
            }
            Some(Stage::Carrying(_)) => self.env.queue.push(Output::Abort(x)),
            Some(Stage::Written(_)) | None => {}
        }
    }

    /// Whether the server takes requests at all.
    fn is_serving(&self) -> bool {
        self.life == Life::Serving
    }
}

impl Env {
    /// Begins an event stream. What sends the first byte of its body follows at once: there are
    /// proxies that hold the head back until then.
    pub(in crate::server) fn begin_events(&mut self, x: ExchangeId, headers: Headers) {
        let headers = headers
            .with("Content-Type", "text/event-stream")
            .with("Cache-Control", "no-cache, no-transform")
            .with("X-Accel-Buffering", "no");
        self.send(x, Outbound::Response { head: ResponseHead { status: 200, headers }, body: Body::Stream });
    }

    /// Says something on an event stream, which then is not silent.
    pub(in crate::server) fn send_on_stream(&mut self, x: ExchangeId, outgoing: Outbound) {
        self.send(x, outgoing);
        self.keep_alive_in(x, self.config.keep_alive);
    }

    /// Writes something on an event stream that tells its client nothing.
    pub(in crate::server) fn send_comment(&mut self, x: ExchangeId) {
        self.send(x, Outbound::Comment(self.config.keep_alive_text.clone()));
    }

    pub(in crate::server) fn keep_alive_in(&mut self, x: ExchangeId, after: Option<Duration>) {
        self.timers.set(Timer::KeepAlive(x), after.map(|after| self.now + after));
    }

    /// Lets go of the head of a request whose response is a stream that stays open: nothing needs
    /// it any more.
    pub(in crate::server) fn drop_head(&mut self, x: ExchangeId) {
        if let Some(http) = self.http(x) {
            http.head = Arc::default();
        }
    }

    /// Whether the client takes an event stream for an answer.
    pub(in crate::server) fn takes_events(&self, x: ExchangeId) -> bool {
        let http = self.exchanges.get(&x).and_then(|exchange| exchange.binding.http());
        http.is_some_and(|http| http.accepts.events)
    }
    pub(in crate::server) fn http(&mut self, x: ExchangeId) -> Option<&mut Http> {
        self.exchanges.get_mut(&x)?.binding.http_mut()
    }
}

/// The answer where there is no room, or no time is left. Whoever gets it finds another connection,
/// and may come back.
pub(crate) fn unavailable(why: &'static str) -> Outbound {
    let headers = Headers::new().with("Retry-After", RETRY_AFTER).with("Connection", "close");
    error_answer(503, headers, None, &plain_error(503, why))
}

/// An answer that says why a request is not served, as JSON-RPC says it.
fn error_answer(status: u16, headers: Headers, id: Option<&Id>, error: &ErrorObject) -> Outbound {
    let head = ResponseHead { status, headers: headers.with("Content-Type", "application/json") };
    Outbound::Response { head, body: Body::Full(error_response(id, error)) }
}

fn plain_error(status: u16, why: &'static str) -> ErrorObject {
    ErrorObject::new(if status < 500 { code::INVALID_REQUEST } else { code::INTERNAL_ERROR }, why)
}

/// Whether the body claims to be JSON, and nothing else; parameters after the type do not matter.
fn is_json(head: &RequestHead) -> bool {
    let is_json = |value: &str| {
        value.split(';').next().is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"))
    };
    let mut claims = head.headers.all("Content-Type");
    claims.next().is_some_and(is_json) && claims.all(is_json)
}
