//! The subscription to changes of the tools (2026-07-28 subscriptions): one `subscriptions/listen` request that is open as long as the
//! application wants to know, on every transport. What the older revisions have in its place is the listener of HTTP, and nothing at all on a
//! duplex connection. It is optional: nothing that happens to it ends a call.

use super::backoff::{Backoff, Brought, LONG, Round, Serves};
use super::ids::Purpose;
use super::{Client, Event, StreamOf, Timer};
use crate::error::{DiagnosticKind, StreamEnd};
use crate::exchange::ExchangeId;
use crate::model::lifecycle::meta;
use crate::rpc::{Id, Object, Payload, code};
use crate::time::Instant;
use crate::version::Era;
use alloc::format;
use alloc::string::{String, ToString};
use core::time::Duration;

/// The state of the subscription.
#[derive(Debug, Default)]
pub(super) struct Subscription {
    /// The request that is open; its id names the subscription.
    open: Option<Open>,
    backoff: Backoff,
    /// What the request that is open has brought.
    brought: Brought,
    /// There was one before.
    was_open: bool,
    /// It was given up, and that was told.
    is_lost_reported: bool,
    /// The id of the last one that the server ended: it may say so twice, in two ways.
    ended: Option<Id>,
}

#[derive(Debug)]
struct Open {
    id: Id,
    since: Instant,
    /// The server has said what it will tell.
    is_acknowledged: bool,
}

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const TOOLS: &str = "notifications/tools/list_changed";

impl Client {
    /// The two sides have agreed: what the application wants to know of is asked for.
    pub(super) fn begin_watching(&mut self) {
        let Some(info) = self.server_info() else { return };
        let version = info.version;
        let told = info.capabilities.tools.as_ref();
        let told = told.and_then(|tools| tools.optional("listChanged").ok().flatten()).unwrap_or(false);
        if !self.config.watch_tools {
            return;
        }
        match version.era() {
            // Whoever agrees a second time may have missed something, and has no other way to know.
            Era::Legacy if self.subscription.was_open => self.report_tools_gap(),
            Era::Legacy => self.subscription.was_open = true,
            Era::Modern if told => {
                self.subscription.backoff = Backoff::default();
                self.subscribe();
            }
            Era::Modern => {}
        }
    }

    fn subscribe(&mut self) {
        let Some(version) = self.version() else { return };
        let filter = Object::new().with("toolsListChanged", true);
        let params = Object::new().with("notifications", filter);
        let id = self.send_request(Purpose::Listen, "subscriptions/listen", params, version);
        self.subscription.brought = Brought::Nothing;
        self.subscription.open = Some(Open { id, since: self.now, is_acknowledged: false });
        self.await_acknowledgement();
    }

    /// The acknowledgement must come in time: without it nothing comes after it either.
    pub(super) fn await_acknowledgement(&mut self) {
        let until = self.config.timeout.map(|limit| self.now + limit);
        self.timers.set(Timer::Subscription, until);
    }

    /// The wait before another attempt is over, or that for the acknowledgement.
    pub(super) fn on_subscription_timer(&mut self) {
        match &self.subscription.open {
            None if self.server_info().is_some() => self.subscribe(),
            None => {}
            Some(open) => {
                let id = open.id.clone();
                self.send_cancel(&id, Some("timed out"));
                self.ids.retire(&id);
                self.on_subscription_end(StreamEnd::Idle, None);
            }
        }
    }

    /// The client ends. Over a pipe the server is told so (2026-07-28 subscriptions): there are servers that wait for their subscriptions to end
    /// before they do.
    pub(super) fn unsubscribe(&mut self) {
        if let (true, Some(open)) = (self.is_duplex(), &self.subscription.open) {
            let id = open.id.clone();
            self.send_cancel(&id, None);
        }
    }

    /// The connection is another one, or none: nothing of the subscription outlives it.
    pub(super) fn end_watching(&mut self) {
        self.timers.set(Timer::Subscription, None);
        if let Some(open) = self.subscription.open.take() {
            self.ids.retire(&open.id);
        }
    }

    /// The answer to `subscriptions/listen`: the server ends it, or refuses it.
    pub(super) fn on_listened(&mut self, id: &Id, answer: Payload) {
        self.ids.retire(id);
        match answer {
            Payload::Error(error) if is_final(error.code) => self.on_subscription_refused(StreamEnd::Error(error)),
            Payload::Error(error) => self.on_subscription_end(StreamEnd::Error(error), None),
            Payload::Result(_) => {
                self.subscription.ended = Some(id.clone());
                self.on_subscription_end(StreamEnd::Ended, None);
            }
        }
    }

    /// `notifications/cancelled` that names a subscription: the server ends it so, or has ended it. Whether it does.
    pub(super) fn ends_subscription(&mut self, exchange: ExchangeId, id: &Id) -> bool {
        if self.is_repeated_end(id) {
            return true;
        }
        let is_it = self.subscription.open.as_ref().is_some_and(|open| open.id == *id);
        if !is_it || self.ids.exchange(id) != Some(exchange) {
            return false;
        }
        self.answered(exchange);
        self.ids.retire(id);
        self.subscription.ended = Some(id.clone());
        self.on_subscription_end(StreamEnd::Ended, None);
        true
    }

    /// Whether this only says once more that a subscription has ended.
    pub(super) fn is_repeated_end(&mut self, id: &Id) -> bool {
        self.subscription.ended.take_if(|ended| ended == id).is_some()
    }

    /// The server does not offer it: it is not asked again. One that had it may have it again.
    pub(super) fn on_subscription_refused(&mut self, why: StreamEnd) {
        if self.subscription.was_open {
            return self.on_subscription_end(why, None);
        }
        self.turn_subscription_off(why.to_string());
    }

    /// It is not asked for again.
    pub(super) fn turn_subscription_off(&mut self, why: String) {
        self.end_watching();
        self.diagnose(DiagnosticKind::ListenerOff, why);
    }

    /// The server named a wait on the stream of it.
    #[cfg(feature = "http")]
    pub(super) fn set_subscription_retry(&mut self, retry: Duration) {
        self.subscription.backoff.set_retry(retry);
    }

    /// It has ended, its id is retired. It is opened again after a while, `at_least` what the server wants it to be.
    pub(super) fn on_subscription_end(&mut self, cause: StreamEnd, at_least: Option<Duration>) {
        let Some(open) = self.subscription.open.take() else { return };
        let lasted = self.now.since(open.since);
        let lasting = open.is_acknowledged && lasted >= LONG;
        let brought = self.subscription.brought;
        let brought = if lasting { brought.max(Brought::Progress) } else { brought };
        let round = Round { serves: Serves::Listener, brought, lasted, retry_after: at_least };
        let random = self.seed.next_u64();
        let again = match self.subscription.backoff.next(self.config.resume, round, random) {
            Some((attempt, wait)) => {
                self.out.soft(Event::Reconnecting {
                    stream: StreamOf::Listener,
                    attempt,
                    wait,
                    cause,
                    last_event: None,
                });
                wait
            }
            None => {
                let wait = self.subscription.backoff.give_up();
                if !core::mem::replace(&mut self.subscription.is_lost_reported, true) {
                    self.out.event(Event::ListenerLost { cause, again: Some(wait) });
                }
                wait
            }
        };
        self.timers.set(Timer::Subscription, Some(self.now + again));
    }

    /// A notification that may belong to a subscription. Whether it was one, and is seen to. On every transport the id says to which one; one
    /// that the application has made itself, with a call, has the id of that call.
    pub(super) fn on_subscribed(&mut self, exchange: ExchangeId, method: &str, params: &Object) -> bool {
        if self.version().is_none() || self.is_legacy() {
            return false;
        }
        let of = params.optional_object(meta::META).ok().flatten().and_then(|meta| meta.id(meta::SUBSCRIPTION_ID));
        let Some(of) = of else {
            let is_bare = matches!(method, ACKNOWLEDGED | TOOLS);
            if is_bare {
                self.diagnose(DiagnosticKind::BadSubscription, format!("{method} of no subscription"));
            }
            return is_bare;
        };
        let ours = self.subscription.open.as_ref().filter(|open| open.id == of).map(|open| open.is_acknowledged);
        match (method, ours.filter(|_| self.ids.exchange(&of) == Some(exchange))) {
            (ACKNOWLEDGED, Some(false)) => self.on_acknowledged(&of, params),
            (TOOLS, Some(true)) => {
                self.subscription.brought = Brought::Message;
                self.out.soft(Event::ToolsChanged);
            }
            (_, None) if self.ids.call(&of, Some(exchange)).is_some() => return false,
            _ => self.diagnose(DiagnosticKind::BadSubscription, format!("{method} of subscription {of}")),
        }
        true
    }

    /// What the server will tell, which may be less than was asked for.
    fn on_acknowledged(&mut self, id: &Id, params: &Object) {
        let Some(open) = &mut self.subscription.open else { return };
        open.is_acknowledged = true;
        self.timers.set(Timer::Subscription, None);
        self.subscription.brought = self.subscription.brought.max(Brought::Progress);
        let filter = params.optional_object("notifications").ok().flatten().unwrap_or_default();
        if !filter.optional("toolsListChanged").ok().flatten().unwrap_or(false) {
            self.diagnose(DiagnosticKind::BadSubscription, "the server does not tell of changed tools");
            self.send_cancel(id, None);
            return self.end_watching();
        }
        self.subscription.is_lost_reported = false;
        let was_open = core::mem::replace(&mut self.subscription.was_open, true);
        if was_open || self.subscription.backoff.attempts() > 0 {
            self.report_tools_gap();
        }
    }

    /// There was a time in which a change would have been missed.
    pub(super) fn report_tools_gap(&mut self) {
        if self.config.watch_tools {
            self.out.soft(Event::ToolsChanged);
        }
    }
}

/// Whether a server that answers so will not answer otherwise: it does not know the request, or does not want one like it.
const fn is_final(code: i64) -> bool {
    matches!(
        code,
        code::METHOD_NOT_FOUND
            | code::INVALID_REQUEST
            | code::INVALID_PARAMS
            | code::HEADER_MISMATCH
            | code::MISSING_CLIENT_CAPABILITY
            | code::UNSUPPORTED_VERSION
    )
}
