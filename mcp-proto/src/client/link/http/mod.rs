//! Streamable HTTP, the client's side of every revision: each message is a POST of its own, answered by JSON or by a stream of events
//! (2025-11-25 transports; 2026-07-28 streamable-http). Up to 2025-11-25 there are sessions, streams that are gone on with after a break,
//! and a listener. Here is what goes out and what comes in; what the end of an exchange means is `exchange_end.rs`.

mod auth;
mod connection;
mod exchange_end;
mod incoming;
mod listener;
mod message;
mod repeats;
mod session;
mod stream;

pub(in crate::client) use auth::Challenges;
pub(in crate::client) use session::Session;

use super::{Exchange, Exchanges};
use crate::client::ids::Purpose;
use crate::client::{Client, Target, Timer, headers};
use crate::error::HttpError;
use crate::exchange::{Data, ExchangeId, Headers, RequestHead, ResponseHead, Start};
use crate::frame::{Media, media_type};
use crate::input::{AuthKey, CallId, NotificationId};
use crate::model::headers::{CURSOR, METHOD, NAME, SESSION, VERSION, encode, name_of};
use crate::rpc::{ErrorObject, Id, InvalidMessage, Message, Object, Response};
use crate::seed::Seed;
use crate::version::{Era, ProtocolVersion};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use connection::Connection;
use core::time::Duration;
use repeats::EventKey;
use stream::Stream;

/// What a client over HTTP knows beyond its exchanges.
#[derive(Debug)]
pub(in crate::client) struct HttpState {
    event_key: EventKey,
    pub(super) session: Session,
    pub(super) challenges: Challenges,
    /// Calls wait, since the listener is not open yet.
    pub(super) holding: bool,
    /// The exchange of the listener; resting included.
    pub(super) listener: Option<ExchangeId>,
    /// What the application was last told of the listener.
    pub(super) reported: Reported,
}

/// What the application knows of the listener.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Reported {
    /// It is open, will be, or is not offered.
    Open,
    /// It is lost, and will be tried again.
    Paused,
    /// It is lost.
    Lost,
}

impl HttpState {
    /// Of a client with this seed.
    pub(in crate::client) fn new(seed: &Seed) -> Self {
        Self {
            event_key: EventKey::new(seed),
            session: Session::default(),
            challenges: Challenges::default(),
            holding: false,
            listener: None,
            reported: Reported::Open,
        }
    }
}

/// An HTTP exchange that is not over, or one that is over and is made again.
#[derive(Debug)]
pub(in crate::client) struct Http {
    role: Role,
    stage: Stage,
    sent: Request,
    connection: Connection,
    /// An earlier exchange with the same role was started before it, and may have been sent.
    again: bool,
    /// Whether it named a session.
    in_session: bool,
    /// How many answers to challenges there were when it was sent.
    credentials: u64,
    /// Challenges that were answered for it.
    tried: auth::Tried,
    head: Option<ResponseHead>,
    /// The first bytes of a body that holds no message.
    body: Vec<u8>,
    /// A JSON-RPC error that came with an HTTP error and does not name the request.
    error: Option<ErrorObject>,
    any_message: bool,
    last_defect: Option<InvalidMessage>,
    /// Items after the response, and their bytes.
    drained: (usize, usize),
    stream: Stream,
}

/// What an exchange is for.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Role {
    /// A request whose answer is awaited: its POST, or a GET for the rest of the answer.
    Request(Id, Purpose),
    /// The answer has come, and what follows it is read for a while.
    Answered,
    /// A notification, and its id if it is tracked.
    Notification(Option<NotificationId>),
    /// `notifications/cancelled`, which must not wait behind the request that it is about.
    Cancelled,
    /// `notifications/initialized`, after which the session can be used.
    Initialized,
    /// A response of ours to a request of the server.
    Response,
    /// The GET for what belongs to no request.
    Listener,
    /// The end of a session.
    Delete,
}

/// Where an exchange is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Live,
    /// It is over; the rest of its stream is asked for when a timer fires.
    AwaitingResume,
    /// It is over; it is made again with other credentials.
    Parked(AuthKey),
    /// It is over, and what that means is about to be seen to.
    Over,
}

/// A request as it can be made again: all that does not depend on the session and the credentials.
#[derive(Clone, Debug)]
struct Request {
    method: &'static str,
    headers: Headers,
    body: Bytes,
    repeatable: bool,
}

impl Request {
    /// A message. Both media types are acceptable for the answer, whatever it is to.
    fn post(headers: Headers, body: Bytes, repeatable: bool) -> Self {
        let headers =
            headers.with("Content-Type", "application/json").with("Accept", "application/json, text/event-stream");
        Self { method: "POST", headers, body, repeatable }
    }

    /// An event stream, from this event on.
    fn get(headers: Headers, cursor: Option<&str>) -> Self {
        let mut headers = headers.with("Accept", "text/event-stream");
        if let Some(cursor) = cursor {
            headers.push(CURSOR, cursor);
        }
        Self { method: "GET", headers, body: Bytes::new(), repeatable: true }
    }
}

impl Http {
    fn new(role: Role, sent: Request) -> Self {
        Self {
            role,
            stage: Stage::Live,
            sent,
            connection: Connection::Unreported,
            again: false,
            in_session: false,
            credentials: 0,
            tried: auth::Tried::default(),
            head: None,
            body: Vec::new(),
            error: None,
            any_message: false,
            last_defect: None,
            drained: (0, 0),
            stream: Stream::default(),
        }
    }

    /// Whether there is an exchange on the wire.
    pub(in crate::client) fn is_live(&self) -> bool {
        self.stage == Stage::Live
    }

    /// Whether it is started though as many connections are open as may be.
    const fn is_urgent(&self) -> bool {
        matches!(self.role, Role::Response | Role::Cancelled | Role::Delete)
    }

    /// Whether it ends a session.
    pub(in crate::client) fn is_delete(&self) -> bool {
        self.role == Role::Delete
    }

    /// Whether it carries a notification.
    const fn is_notification(&self) -> bool {
        matches!(self.role, Role::Notification(_) | Role::Cancelled | Role::Initialized)
    }

    /// Whether the answer to a request is yet to come.
    pub(in crate::client) const fn awaits_answer(&self) -> bool {
        matches!(self.role, Role::Request(..))
    }

    /// Whether it asks for a stream, or for the rest of one.
    fn is_get(&self) -> bool {
        self.sent.method == "GET"
    }

    /// Whether it carries a message.
    fn is_post(&self) -> bool {
        self.sent.method == "POST"
    }

    fn status(&self) -> u16 {
        self.head.as_ref().map_or(0, |head| head.status)
    }

    fn has_failed(&self) -> bool {
        self.head.as_ref().is_some_and(|head| !success(head.status))
    }

    /// Whether the response is an event stream.
    fn is_stream(&self) -> bool {
        let stream = |head: &ResponseHead| success(head.status) && media_type(&head.headers) == Media::EventStream;
        self.head.as_ref().is_some_and(stream)
    }

    /// Whether it is there for what stands in the body of a success.
    const fn wants_body(&self) -> bool {
        matches!(self.role, Role::Request(..) | Role::Listener)
    }

    /// Whether a success has a body of a type that cannot be what is wanted. One without a type may still be empty.
    fn is_other_type(&self) -> bool {
        let Some(head) = self.head.as_ref().filter(|head| self.wants_body() && success(head.status)) else {
            return false;
        };
        let is_fine = match media_type(&head.headers) {
            Media::EventStream => true,
            Media::Json => self.is_post(),
            Media::Other => false,
        };
        !is_fine && head.headers.get("content-type").is_some_and(|kind| !kind.is_empty())
    }

    /// Whether the head has said what matters: the rest can only add to the text of an error.
    fn is_decided(&self) -> bool {
        self.head.is_some() && (self.has_failed() || !self.wants_body() || self.is_other_type())
    }

    /// The call that it is for.
    pub(in crate::client) fn call(&self) -> Option<CallId> {
        match self.role {
            Role::Request(_, Purpose::Call(call)) => Some(call),
            _ => None,
        }
    }

    /// Whether this is the response to its own request.
    fn is_answer(&self, data: &Data) -> bool {
        match (&self.role, data) {
            (Role::Request(own, _), Data::Message(Message::Response(Response { id, .. }))) => id == own,
            _ => false,
        }
    }

    /// What an error status comes to.
    fn to_error(&self) -> HttpError {
        let location = self.head.as_ref().and_then(|head| head.headers.get("location")).map(ToOwned::to_owned);
        HttpError {
            error: self.error.clone(),
            auth: self.hints(),
            location: location.filter(|_| (300..400).contains(&self.status())),
            retry_after: self.head.as_ref().and_then(retry_after),
            body_head: Bytes::copy_from_slice(&self.body),
            ..HttpError::new(self.status())
        }
    }
}

/// What goes out.
impl Client {
    /// Posts a request.
    pub(super) fn post_request(
        &mut self,
        exchange: ExchangeId,
        (id, purpose): (Id, Purpose),
        (method, params): (&str, Option<&Object>),
        body: Bytes,
        version: ProtocolVersion,
    ) {
        let repeatable = match purpose {
            Purpose::Call(call) => self.is_repeatable(call),
            Purpose::Discover | Purpose::Initialize | Purpose::Ping | Purpose::Listen => true,
        };
        let mut headers = match purpose {
            Purpose::Initialize => Headers::new(),
            _ => metadata(version, method, params),
        };
        let mirrored = params.map(|params| self.mirrored(method, params, version));
        for (name, value) in mirrored.and_then(Result::ok).unwrap_or_default() {
            headers.push(&name, value);
        }
        let limit = if purpose == Purpose::Listen { self.config.timeout } else { None };
        self.timers.set(Timer::Answer(exchange), limit.map(|limit| self.now + limit));
        self.begin_http(exchange, Http::new(Role::Request(id, purpose), Request::post(headers, body, repeatable)));
    }

    /// The fields of what is neither a request nor a notification.
    fn bare_headers(&self) -> Headers {
        self.version().map_or_else(Headers::new, |version| metadata(version, "", None))
    }

    /// Starts an exchange. All requests go through here, so that none lacks the fields that the others have.
    fn begin_http(&mut self, exchange: ExchangeId, mut http: Http) {
        let Target::Http(target) = &self.config.target else { return };
        let is_initialize = matches!(http.role, Role::Request(_, Purpose::Initialize));
        let session = self.http_state.session.id().filter(|_| !is_initialize);
        let mut headers = Headers::new().with("Host", target.authority());
        let own = headers::own(&self.config.headers);
        for (name, value) in own.filter(|(name, _)| self.http_state.challenges.credentials().get(name).is_none()) {
            headers.push(name, value);
        }
        let fields = [self.http_state.challenges.credentials(), &http.sent.headers];
        for (name, value) in fields.into_iter().flat_map(Headers::iter) {
            headers.push(name, value);
        }
        if let Some(id) = session {
            headers.push(SESSION, id);
        }
        http.stream.begin(self.now);
        http.in_session = session.is_some();
        http.credentials = self.http_state.challenges.answered();
        let head = RequestHead { method: http.sent.method.into(), target: target.path.clone(), headers };
        let (origin, body, repeatable) = (target.origin.clone(), http.sent.body.clone(), http.sent.repeatable);
        let urgent = http.is_urgent();
        self.exchanges.insert(exchange, Exchange::Http(Box::new(http)));
        self.out.start(exchange, Start::Http { origin, head, body, repeatable, urgent });
    }

    /// Makes a request again in place of an exchange that is over: `sent`, and what is known of the answer so far.
    fn begin_again(&mut self, old: ExchangeId, sent: Option<Request>) -> Option<ExchangeId> {
        let Some(Exchange::Http(http)) = self.exchanges.remove(&old) else { return None };
        let exchange = self.exchanges.mint();
        let Http { role, sent: before, tried, any_message, last_defect, stream, .. } = *http;
        if let Role::Request(id, _) = &role {
            self.ids.move_to(id, exchange);
        }
        let again = Http::new(role, sent.unwrap_or(before));
        let again = Http { again: true, tried, any_message, last_defect, stream, ..again };
        self.begin_http(exchange, again);
        Some(exchange)
    }

    /// Whether calls wait for the listener.
    pub(in crate::client) const fn is_holding(&self) -> bool {
        self.http_state.holding
    }

    /// The client ends: nothing waits any more.
    pub(in crate::client) fn end_http_state(&mut self) {
        self.http_state.holding = false;
        self.http_state.listener = None;
        self.http_state.challenges.clear();
    }
}

impl Exchanges {
    /// Returns the state of an exchange that is open and over HTTP.
    pub(super) fn http_mut(&mut self, exchange: ExchangeId) -> Option<&mut Http> {
        match self.get_mut(&exchange)? {
            Exchange::Http(http) => Some(http),
            Exchange::Duplex(_) => None,
        }
    }

    /// As [`http_mut`](Self::http_mut).
    pub(super) fn http(&self, exchange: ExchangeId) -> Option<&Http> {
        match self.get(&exchange)? {
            Exchange::Http(http) => Some(http),
            Exchange::Duplex(_) => None,
        }
    }
}

/// The fields that tell of the message. `Mcp-Method` and what goes with it exist from 2026-07-28 on.
fn metadata(version: ProtocolVersion, method: &str, params: Option<&Object>) -> Headers {
    let mut fields = Headers::new().with(VERSION, version.as_str());
    if version.era() == Era::Modern {
        fields.push(METHOD, encode(method));
        if let Some(name) = params.and_then(|params| name_of(method, params)) {
            fields.push(NAME, encode(&name));
        }
    }
    fields
}

/// `Retry-After` in seconds (RFC 9110 section 10.2.3). A date is not read, since an engine has no calendar that it could trust.
fn retry_after(head: &ResponseHead) -> Option<Duration> {
    let seconds = head.headers.get("retry-after")?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

const fn success(status: u16) -> bool {
    status >= 200 && status < 300
}
