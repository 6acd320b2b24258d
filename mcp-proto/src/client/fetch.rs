//! HTTP requests of the application that are not MCP, over the connections of the client: the
//! documents of an authorization server, an icon, an image. They carry no field of MCP, and nothing
//! of the client: neither its header fields nor its credentials.

use super::env::ClientEnv;
use super::headers::BadHeader;
use super::{Event, State, Timer};
use crate::auth::StepId;
use crate::error::{DiagnosticKind, Refusal};
use crate::exchange::{
    Closed, ExchangeEvent, ExchangeId, Headers, Inbound, Reach, RedirectRefusal, RequestHead, ResponseHead, Sent, Start,
};
use crate::fetch::{FetchError, FetchId, FetchRequest, FetchResponse, HopFrom, Hops, HttpTarget, is_redirect};
use crate::short_map::ShortMap;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::IpAddr;

/// The fetches of a client.
#[derive(Debug, Default)]
pub(super) struct Fetches {
    open: ShortMap<ExchangeId, Fetch>,
    last: u64,
}

/// What a fetch is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FetchOwner {
    Application(FetchId),
    Login(StepId),
}

#[derive(Debug)]
struct Fetch {
    owner: FetchOwner,
    request: Box<FetchRequest>,
    hops: Hops,
    /// The address that its connection led to, if the driver reported it.
    reached: Option<IpAddr>,
    sent: Sent,
    head: Option<ResponseHead>,
    body: Vec<u8>,
}

/// The bit that the ids of exchanges of fetches have, and no others.
const FETCHES: u64 = 1 << 63;

/// The fields that a request takes along to another origin.
const PLAIN: [&str; 4] = ["accept", "accept-language", "content-type", "user-agent"];

/// The fields that the connection writes.
const FRAMING: [&str; 12] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-authorization",
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
    pub(super) fn begin(&mut self, env: &mut ClientEnv, id: FetchId, request: &FetchRequest) -> Result<(), Refusal> {
        if matches!(env.state(), State::Closing | State::Terminated) {
            return Err(Refusal::Closed);
        }
        if self.open.len() >= env.config.limits.client.max_calls.max(1) {
            return Err(Refusal::Full);
        }
        self.begin_for(env, FetchOwner::Application(id), Box::new(request.clone()));
        Ok(())
    }

    /// Begins a fetch of the login, which has a limit of its own for them.
    pub(super) fn begin_for_login(
        &mut self,
        env: &mut ClientEnv,
        step: StepId,
        request: FetchRequest,
    ) -> Result<(), Refusal> {
        if matches!(env.state(), State::Closing | State::Terminated) {
            return Err(Refusal::Closed);
        }
        self.begin_for(env, FetchOwner::Login(step), Box::new(request));
        Ok(())
    }

    fn begin_for(&mut self, env: &mut ClientEnv, owner: FetchOwner, request: Box<FetchRequest>) {
        let (hops, sent) = (Hops::default(), Sent::No);
        let fetch = Fetch { owner, hops, reached: None, sent, head: None, body: Vec::new(), request };
        let until = env.now + fetch.request.timeout;
        let exchange = self.start(env, fetch);
        env.timers.set(Timer::Fetch(exchange), Some(until));
    }

    fn start(&mut self, env: &mut ClientEnv, fetch: Fetch) -> ExchangeId {
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
    pub(super) fn handle(&mut self, env: &mut ClientEnv, exchange: ExchangeId, event: ExchangeEvent) {
        let Some(fetch) = self.open.get_mut(&exchange) else { return };
        match event {
            ExchangeEvent::Opened(peer) => (fetch.sent, fetch.reached) = (Sent::Maybe, peer.address),
            ExchangeEvent::Repeated => fetch.sent = Sent::Maybe,
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

    fn ended(&mut self, env: &mut ClientEnv, exchange: ExchangeId) {
        let Some(Fetch { request, hops, reached, head: Some(head), .. }) = self.open.get_mut(&exchange) else {
            let why = Closed::Eof;
            return self.end(env, exchange, Err(FetchError::Closed { sent: Sent::Maybe, why }));
        };
        let from = HopFrom { origin: &request.url.origin, address: *reached, reach: request.reach };
        let next = is_redirect(head.status).then(|| -> Result<_, RedirectRefusal> {
            let target =
                hops.follow(request.redirects, (&request.method, &request.url), (head.status, &head.headers))?;
            Ok((from.reach(request.redirects, &target.origin)?, target))
        });
        match next {
            Some(Ok((reach, target))) => self.follow(env, exchange, target, reach),
            Some(Err(why)) => self.answered(env, exchange, Some(why)),
            None => self.answered(env, exchange, None),
        }
    }

    fn follow(&mut self, env: &mut ClientEnv, exchange: ExchangeId, target: HttpTarget, reach: Reach) {
        let Some(mut fetch) = self.open.remove(&exchange) else { return };
        if target.origin != fetch.request.url.origin {
            let is_plain = |name: &str| PLAIN.iter().any(|field| name.eq_ignore_ascii_case(field));
            let kept = fetch.request.headers.iter().filter(|(name, _)| is_plain(name));
            fetch.request.headers = kept.fold(Headers::new(), |all, (name, value)| all.with(name, value));
        }
        (fetch.request.url, fetch.request.reach) = (target, reach);
        (fetch.head, fetch.body, fetch.reached) = (None, Vec::new(), None);
        let until = env.timers.get(Timer::Fetch(exchange));
        env.timers.set(Timer::Fetch(exchange), None);
        let next = self.start(env, fetch);
        env.timers.set(Timer::Fetch(next), until);
    }

    fn answered(&mut self, env: &mut ClientEnv, exchange: ExchangeId, redirect: Option<RedirectRefusal>) {
        let Some(fetch) = self.open.get_mut(&exchange) else { return };
        let Some(ResponseHead { status, headers }) = fetch.head.take() else { return };
        let (body, url) = (core::mem::take(&mut fetch.body).into(), fetch.request.url.url());
        self.end(env, exchange, Ok(FetchResponse { status, headers, body, url, redirect }));
    }

    /// Ends a fetch whose time is over.
    pub(super) fn on_timeout(&mut self, env: &mut ClientEnv, exchange: ExchangeId) {
        let sent = self.open.get(&exchange).map_or(Sent::No, |fetch| fetch.sent);
        self.cut(env, exchange, FetchError::Timeout(sent));
    }

    /// Ends the fetch of this id, which the application no longer wants. The application chooses
    /// the ids, so there may be several.
    pub(super) fn cancel(&mut self, env: &mut ClientEnv, id: FetchId) {
        self.abort(env, |fetch| fetch.owner == FetchOwner::Application(id));
    }

    /// Ends a fetch that the login no longer waits for.
    pub(super) fn cancel_for_login(&mut self, env: &mut ClientEnv, step: StepId) {
        self.abort(env, |fetch| fetch.owner == FetchOwner::Login(step));
    }

    /// Ends all fetches, since the client ends.
    pub(super) fn end_all(&mut self, env: &mut ClientEnv) {
        self.abort(env, |_| true);
    }

    fn abort(&mut self, env: &mut ClientEnv, is_meant: impl Fn(&Fetch) -> bool) {
        let meant = self.open.iter().filter(|(_, fetch)| is_meant(fetch));
        for (exchange, sent) in meant.map(|(exchange, fetch)| (*exchange, fetch.sent)).collect::<Vec<_>>() {
            self.cut(env, exchange, FetchError::Closed { sent, why: Closed::Aborted });
        }
    }

    fn cut(&mut self, env: &mut ClientEnv, exchange: ExchangeId, error: FetchError) {
        env.out.abort(exchange);
        self.end(env, exchange, Err(error));
    }

    fn end(&mut self, env: &mut ClientEnv, exchange: ExchangeId, outcome: Result<FetchResponse, FetchError>) {
        env.timers.set(Timer::Fetch(exchange), None);
        let outcome = outcome.map(Box::new);
        match self.open.remove(&exchange).map(|fetch| fetch.owner) {
            Some(FetchOwner::Application(fetch)) => env.event(Event::Fetched { fetch, outcome }),
            Some(FetchOwner::Login(step)) => env.login.fetched(env.now, step, &outcome),
            None => {}
        }
    }
}
