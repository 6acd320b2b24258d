//! Where HTTP requests go: the URL of the configuration, or the one at which redirects ended (RFC
//! 9110 section 15.4). To another origin than that of the configuration goes nothing that belongs
//! to the application.

use super::exchange_end::ExchangeEnd;
use super::{ExchangeRole, HttpExchange, HttpLink};
use crate::client::HttpTarget;
use crate::client::env::ClientEnv;
use crate::error::DiagnosticKind;
use crate::exchange::{Closed, ExchangeId, Origin, Reach, RedirectRefusal, Sent};
use crate::fetch::{HopFrom, Hops, is_redirect};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;

/// Where an HTTP request goes.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Address {
    pub(super) origin: Origin,
    /// The request target.
    pub(super) path: Arc<str>,
    /// The value of `Host`.
    pub(super) authority: String,
    /// Where the connection may lead.
    pub(super) reach: Reach,
}

impl Address {
    pub(super) fn new(target: &HttpTarget, reach: Reach) -> Self {
        let (origin, path) = (target.origin.clone(), target.path.as_str().into());
        Self { origin, path, authority: target.authority(), reach }
    }

    fn target(&self) -> Option<HttpTarget> {
        HttpTarget::from_parts(self.origin.clone(), self.path.to_string(), String::new())
    }
}

/// The addresses of a server.
#[derive(Debug)]
pub(super) struct Addresses {
    configured: Arc<Address>,
    /// The one at which a request succeeded after redirects.
    moved: Option<Arc<Address>>,
    /// The URL of the current one, as text.
    shown: Arc<str>,
}

impl Addresses {
    pub(super) fn new(target: &HttpTarget) -> Self {
        Self { configured: Arc::new(Address::new(target, Reach::Any)), moved: None, shown: target.url().into() }
    }

    /// Returns the current one.
    pub(super) fn current(&self) -> &Arc<Address> {
        self.moved.as_ref().unwrap_or(&self.configured)
    }

    /// Returns the URL of the current one, as text.
    pub(super) const fn shown(&self) -> &Arc<str> {
        &self.shown
    }

    /// Returns whether an address has the origin of the configuration.
    pub(super) fn is_own(&self, address: &Address) -> bool {
        address.origin == self.configured.origin
    }

    fn set(&mut self, moved: Option<Arc<Address>>) {
        self.moved = moved;
        if let Some(target) = self.current().target() {
            self.shown = target.url().into();
        }
    }
}

impl HttpLink {
    /// Returns whether credentials and header fields of the application may go to this address.
    pub(super) fn is_trusted(&self, env: &ClientEnv, address: &Address) -> bool {
        self.addresses.is_own(address) || self.sse.is_some() && env.config.compat.endpoint_origin.lists(&address.origin)
    }

    /// Handles the end of an exchange whose response redirects it. Returns whether another one, or
    /// a new session, has taken its place. Otherwise the redirect is an error of the exchange.
    pub(super) fn follow_redirect(&mut self, env: &mut ClientEnv, exchange: ExchangeId) -> bool {
        let Some(http) = self.exchanges.get_mut(exchange) else { return false };
        let (Some(head), Some(address)) = (&http.head, &http.address) else { return false };
        let Some(current) = address.target() else { return false };
        if !is_redirect(head.status) || http.role == ExchangeRole::Answered {
            return false;
        }
        let mut hops = core::mem::take(&mut http.hops);
        let (redirects, place) = (env.config.redirects, (http.sent.method, &current));
        let next = hops.follow(redirects, place, (head.status, &head.headers));
        let crosses = next.as_ref().is_ok_and(|target| target.origin != current.origin);
        let is_bound = http.in_session || http.sent.resumes();
        let from = HopFrom { origin: &current.origin, address: http.reached, reach: address.reach };
        let next = next.and_then(|target| match crosses && is_bound && (self.sse.is_some() || !http.is_post()) {
            true => Err(RedirectRefusal::Stream),
            false => from.reach(redirects, &target.origin).map(|reach| (target, reach)),
        });
        let (target, reach) = match next {
            Ok(next) => next,
            Err(why) => {
                http.refusal = Some(why);
                return false;
            }
        };
        env.diagnose(DiagnosticKind::Redirected, format!("{} from {} to {}", head.status, current.url(), target.url()));
        let address = Arc::new(Address::new(&target, reach));
        if crosses && http.in_session {
            // The session is only where it began: the server there gets one of its own.
            self.addresses.set(Some(address));
            self.on_session_gone(env, exchange);
            return true;
        }
        if crosses {
            http.sent.mirror_nothing();
        }
        if http.role == ExchangeRole::Sse {
            self.set_stream_url(target, reach);
        }
        self.begin_in_place(env, exchange, Some((address, hops)));
        true
    }

    /// Notes a successful response: the URL at which it was found is that of the server from now
    /// on.
    pub(super) fn note_address(&mut self, exchange: ExchangeId) {
        let Some(http) = self.exchanges.get(exchange).filter(|http| !http.hops.is_empty()) else { return };
        // What a GET was redirected to need not take a POST, except that the stream of HTTP+SSE
        // names the URL for those.
        if http.role == ExchangeRole::Sse || self.sse.is_none() && http.is_post() {
            self.addresses.set(http.address.clone());
        }
    }

    /// Handles the end of an exchange at an address of redirects where nothing can be reached any
    /// more. Returns whether another exchange, or a new session, at the URL of the configuration
    /// has taken its place.
    pub(super) fn return_to_target(&mut self, env: &mut ClientEnv, exchange: ExchangeId, over: &ExchangeEnd) -> bool {
        let Some(http) = self.exchanges.get(exchange) else { return false };
        let is_unreached = match over {
            ExchangeEnd::Failed { sent: Sent::No, why } => !matches!(why, Closed::Denied(_) | Closed::Aborted),
            ExchangeEnd::Failed { .. } | ExchangeEnd::End => false,
        };
        let configured = &self.addresses.configured;
        let is_moved = self.sse.is_none() || http.role == ExchangeRole::Sse;
        let went_elsewhere = http.address.as_ref().is_some_and(|address| address != configured);
        if !is_unreached || !is_moved || !went_elsewhere || !http.hops.is_empty() {
            return false;
        }
        let crosses = http.address.as_ref().is_some_and(|address| address.origin != configured.origin);
        if crosses && (http.in_session && !http.is_post() || http.sent.resumes()) {
            return false;
        }
        self.addresses.set(None);
        if crosses && http.in_session {
            self.on_session_gone(env, exchange);
        } else {
            if http.role == ExchangeRole::Sse {
                self.set_stream_url(self.url.clone(), Reach::Any);
            }
            self.begin_in_place(env, exchange, None);
        }
        true
    }

    /// Repeats the request of an exchange in its place: at this address, or at the usual one.
    pub(super) fn begin_in_place(
        &mut self,
        env: &mut ClientEnv,
        old: ExchangeId,
        place: Option<(Arc<Address>, Hops)>,
    ) -> Option<ExchangeId> {
        let again = self.begin_again(env, old, None, place)?;
        let http = self.exchanges.get(again)?;
        let (role, is_attempt) = (&http.role, http.is_get());
        // A request without a timer of the client, and a resumed response, must not be silent
        // forever.
        let has_timer = HttpExchange::has_timer(role);
        match role {
            ExchangeRole::Listener => self.listener = Some(again),
            ExchangeRole::Sse => self.set_sse_stream(again),
            _ => {}
        }
        if is_attempt || !has_timer {
            self.limit_attempt(env, again);
        }
        Some(again)
    }
}
