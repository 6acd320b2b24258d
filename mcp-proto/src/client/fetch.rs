//! HTTP requests of the application that are not MCP, over the connections of the client: the
//! documents of an authorization server, an icon, an image. They carry no field of MCP, and nothing
//! of the client: neither its header fields nor its credentials.

use super::env::Env;
use super::headers::BadHeader;
use super::redirect::{Hops, Redirects, is_redirect};
use super::{Client, Event, HttpTarget, State, Timer};
use crate::error::{DiagnosticKind, RedirectRefusal, Refusal, Refused};
use crate::exchange::{
    Closed, ExchangeEvent, ExchangeId, Headers, Inbound, Reach, RequestHead, ResponseHead, Sent, Start,
};
use crate::short_map::ShortMap;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use core::time::Duration;

/// Identifies a fetch of a client. The application chooses it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct FetchId(pub u64);

/// An HTTP request for [`Client::fetch`](super::Client::fetch). Its `Debug` shows no secret of the
/// URL and the fields, and not the body.
#[derive(Clone, PartialEq)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct FetchRequest {
    /// The URL.
    #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
    pub url: HttpTarget,
    /// The method: a token (RFC 9110 section 9.1).
    pub method: String,
    /// The header fields. The connection adds `Host` and what frames the body; a field of these
    /// names is not sent, nor one that cannot be. Default none.
    pub headers: Headers,
    /// The body. Default empty.
    #[cfg_attr(feature = "record", serde(with = "crate::record::value"))]
    pub body: Bytes,
    /// The redirects that are followed. Default: up to five to any origin for a GET, none for
    /// another method. To another origin only `Accept`, `Accept-Language`, `Content-Type` and
    /// `User-Agent` are sent along.
    pub redirects: Redirects,
    /// The addresses to which the connection may lead, also after a redirect. Default
    /// [`Reach::Any`]. Use [`Reach::Public`] for a URL that comes from a peer.
    pub reach: Reach,
    /// Maximum time until the end of the response. Default 30 s.
    pub timeout: Duration,
    /// Maximum length of the body of the response, in bytes. Default 1 MiB. The
    /// [`max_response_body`](crate::limits::FrameLimits::max_response_body) of the client holds as
    /// well.
    pub max_body: usize,
}

impl FetchRequest {
    /// Returns a GET of this URL.
    pub fn get(url: HttpTarget) -> Self {
        Self {
            url,
            method: "GET".into(),
            headers: Headers::new(),
            body: Bytes::new(),
            redirects: Redirects::Follow { max: 5 },
            reach: Reach::Any,
            timeout: Duration::from_secs(30),
            max_body: 1 << 20,
        }
    }

    /// Returns a POST of this body, with its media type. It follows no redirect.
    pub fn post(url: HttpTarget, content_type: &str, body: impl Into<Bytes>) -> Self {
        Self {
            method: "POST".into(),
            headers: Headers::new().with("Content-Type", content_type),
            body: body.into(),
            redirects: Redirects::None,
            ..Self::get(url)
        }
    }
}

impl fmt::Debug for FetchRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, method, headers, body, redirects, reach, timeout, max_body } = self;
        f.debug_struct("FetchRequest")
            .field("url", url)
            .field("method", method)
            .field("headers", headers)
            .field("body", &body.len())
            .field("redirects", redirects)
            .field("reach", reach)
            .field("timeout", timeout)
            .field("max_body", max_body)
            .finish()
    }
}

/// The response to a [`FetchRequest`], whatever its status.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct FetchResponse {
    /// The status.
    pub status: u16,
    /// The header fields.
    pub headers: Headers,
    /// The whole body.
    pub body: Bytes,
    /// The URL that it came from: that of the request, or the last one of its redirects.
    pub url: String,
    /// Why it is a redirect that was not followed.
    pub redirect: Option<RedirectRefusal>,
}

/// Why a [`FetchRequest`] has no response. Its `Display` has
/// [escapes](crate::error#text-of-a-peer).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum FetchError {
    /// It did not begin.
    Refused(Refusal),
    /// The connection failed, or the client was closed.
    Closed {
        /// Whether the request can have reached the server.
        sent: Sent,
        /// How it failed.
        why: Closed,
    },
    /// It took longer than [`FetchRequest::timeout`].
    Timeout(Sent),
    /// The body is longer than [`FetchRequest::max_body`].
    TooLong,
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => why.fmt(f),
            Self::Closed { why, .. } => why.fmt(f),
            Self::Timeout(_) => f.write_str("the response took too long"),
            Self::TooLong => f.write_str("the body of the response is longer than the limit"),
        }
    }
}

impl core::error::Error for FetchError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Closed { why, .. } => Some(why),
            Self::Refused(why) => Some(why),
            Self::Timeout(_) | Self::TooLong => None,
        }
    }
}

impl Client {
    /// Makes an HTTP request of the application, over the connections of the client and within
    /// their limits, also before negotiation and while credentials are sought. Its response is
    /// [`Event::Fetched`] with this id.
    ///
    /// # Errors
    /// [`Refusal::Full`] if as many fetches are open as there may be calls
    /// ([`max_calls`](crate::limits::ClientLimits::max_calls)), [`Refusal::Closed`] after
    /// [`close`](Client::close) or the end.
    pub fn fetch(&mut self, now: Instant, id: FetchId, request: FetchRequest) -> Result<(), Refused<FetchRequest>> {
        self.env.now = self.env.now.max(now);
        self.on_fetch(id, &request).map_err(|why| Refused { value: request, why })
    }

    pub(super) fn on_fetch(&mut self, id: FetchId, request: &FetchRequest) -> Result<(), Refusal> {
        match self.env.state() {
            State::Closing | State::Terminated => Err(Refusal::Closed),
            _ => self.fetches.begin(&mut self.env, id, request),
        }
    }
}

/// The fetches of a client.
#[derive(Debug, Default)]
pub(super) struct Fetches {
    open: ShortMap<ExchangeId, Fetch>,
    last: u64,
}

#[derive(Debug)]
struct Fetch {
    id: FetchId,
    request: Box<FetchRequest>,
    hops: Hops,
    sent: Sent,
    head: Option<ResponseHead>,
    body: Vec<u8>,
}

/// The bit that the ids of exchanges of fetches have, and no others.
const FETCHES: u64 = 1 << 63;

/// The fields that a request takes along to another origin.
const PLAIN: [&str; 4] = ["accept", "accept-language", "content-type", "user-agent"];

/// The fields that the connection writes.
const FRAMING: [&str; 11] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "accept-encoding",
];

impl Fetches {
    /// Returns whether an exchange is one of a fetch.
    pub(super) const fn owns(exchange: ExchangeId) -> bool {
        exchange.0 & FETCHES != 0
    }

    /// Begins a fetch.
    pub(super) fn begin(&mut self, env: &mut Env, id: FetchId, request: &FetchRequest) -> Result<(), Refusal> {
        if self.open.len() >= env.config.limits.client.max_calls.max(1) {
            return Err(Refusal::Full);
        }
        let request = Box::new(request.clone());
        let fetch = Fetch { id, hops: Hops::default(), sent: Sent::No, head: None, body: Vec::new(), request };
        let until = env.now + fetch.request.timeout;
        let exchange = self.start(env, fetch);
        env.timers.set(Timer::Fetch(exchange), Some(until));
        Ok(())
    }

    fn start(&mut self, env: &mut Env, fetch: Fetch) -> ExchangeId {
        self.last += 1;
        let exchange = ExchangeId(FETCHES | self.last);
        let FetchRequest { url, method, headers, body, reach, .. } = &*fetch.request;
        let mut fields = Headers::new().with("Host", url.authority());
        let can_be_sent = |(name, value): &(&str, &str)| match BadHeader::check(name, value) {
            Err(BadHeader::Name(_) | BadHeader::Value { .. }) => false,
            Ok(()) | Err(BadHeader::Reserved(_)) => !FRAMING.iter().any(|field| name.eq_ignore_ascii_case(field)),
        };
        for (name, value) in headers.iter().filter(can_be_sent) {
            fields.push(name, value);
        }
        let head = RequestHead { method: method.clone().into(), target: url.path.as_str().into(), headers: fields };
        let start = Start::Http {
            origin: url.origin.clone(),
            reach: *reach,
            head,
            body: body.clone(),
            repeatable: matches!(&**method, "GET" | "HEAD"),
            urgent: false,
            raw: true,
        };
        self.open.insert(exchange, fetch);
        env.out.start(exchange, start);
        exchange
    }

    /// Handles an event of the exchange of a fetch.
    pub(super) fn handle(&mut self, env: &mut Env, exchange: ExchangeId, event: ExchangeEvent) {
        let Some(fetch) = self.open.get_mut(&exchange) else { return };
        match event {
            ExchangeEvent::Opened(_) | ExchangeEvent::Repeated => fetch.sent = Sent::Maybe,
            ExchangeEvent::Inbound(Inbound::Response(head)) => fetch.head = Some(head),
            ExchangeEvent::Inbound(Inbound::Body(bytes)) => {
                if bytes.len() > fetch.request.max_body.saturating_sub(fetch.body.len()) {
                    self.cut(env, exchange, FetchError::TooLong);
                } else {
                    fetch.body.extend_from_slice(&bytes);
                }
            }
            ExchangeEvent::Inbound(Inbound::End) => self.ended(env, exchange),
            ExchangeEvent::Failed { sent, why } => self.end(env, exchange, Err(FetchError::Closed { sent, why })),
            ExchangeEvent::Inbound(_) => {
                env.diagnose(DiagnosticKind::BadEvent, "an item that this exchange cannot have");
            }
            ExchangeEvent::Waiting
            | ExchangeEvent::From(_)
            | ExchangeEvent::ReadClosed
            | ExchangeEvent::Unsent(_)
            | ExchangeEvent::Unsendable { .. } => {}
        }
    }

    fn ended(&mut self, env: &mut Env, exchange: ExchangeId) {
        let Some(Fetch { request, hops, head: Some(head), .. }) = self.open.get_mut(&exchange) else {
            let why = Closed::Eof;
            return self.end(env, exchange, Err(FetchError::Closed { sent: Sent::Maybe, why }));
        };
        let next = is_redirect(head.status)
            .then(|| hops.follow(request.redirects, (&request.method, &request.url), (head.status, &head.headers)));
        match next {
            Some(Ok(target)) => self.follow(env, exchange, target),
            Some(Err(why)) => self.answered(env, exchange, Some(why)),
            None => self.answered(env, exchange, None),
        }
    }

    fn follow(&mut self, env: &mut Env, exchange: ExchangeId, target: HttpTarget) {
        let Some(mut fetch) = self.open.remove(&exchange) else { return };
        if target.origin != fetch.request.url.origin {
            let is_plain = |name: &str| PLAIN.iter().any(|field| name.eq_ignore_ascii_case(field));
            let kept = fetch.request.headers.iter().filter(|(name, _)| is_plain(name));
            fetch.request.headers = kept.fold(Headers::new(), |all, (name, value)| all.with(name, value));
        }
        fetch.request.url = target;
        (fetch.head, fetch.body) = (None, Vec::new());
        let until = env.timers.get(Timer::Fetch(exchange));
        env.timers.set(Timer::Fetch(exchange), None);
        let next = self.start(env, fetch);
        env.timers.set(Timer::Fetch(next), until);
    }

    fn answered(&mut self, env: &mut Env, exchange: ExchangeId, redirect: Option<RedirectRefusal>) {
        let Some(fetch) = self.open.get_mut(&exchange) else { return };
        let Some(ResponseHead { status, headers }) = fetch.head.take() else { return };
        let (body, url) = (core::mem::take(&mut fetch.body).into(), fetch.request.url.url());
        self.end(env, exchange, Ok(FetchResponse { status, headers, body, url, redirect }));
    }

    /// Ends a fetch whose time is over.
    pub(super) fn on_timeout(&mut self, env: &mut Env, exchange: ExchangeId) {
        let sent = self.open.get(&exchange).map_or(Sent::No, |fetch| fetch.sent);
        self.cut(env, exchange, FetchError::Timeout(sent));
    }

    /// Ends all fetches, since the client ends.
    pub(super) fn end_all(&mut self, env: &mut Env) {
        for exchange in self.open.keys().copied().collect::<Vec<_>>() {
            let sent = self.open.get(&exchange).map_or(Sent::No, |fetch| fetch.sent);
            self.cut(env, exchange, FetchError::Closed { sent, why: Closed::Aborted });
        }
    }

    fn cut(&mut self, env: &mut Env, exchange: ExchangeId, error: FetchError) {
        env.out.abort(exchange);
        self.end(env, exchange, Err(error));
    }

    fn end(&mut self, env: &mut Env, exchange: ExchangeId, outcome: Result<FetchResponse, FetchError>) {
        env.timers.set(Timer::Fetch(exchange), None);
        if let Some(fetch) = self.open.remove(&exchange) {
            env.event(Event::Fetched { fetch: fetch.id, outcome: outcome.map(Box::new) });
        }
    }
}
