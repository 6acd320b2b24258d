//! The subscription to changes of the tools (2026-07-28 subscriptions): one `subscriptions/listen`
//! request on any transport. It is open as long as the application wants to receive the changes. In
//! older revisions the listener of HTTP takes its place. A duplex connection of an older revision
//! has neither. The subscription is optional: its failure never ends a call.

use super::backoff::{Backoff, Brought, LONG, Round, Serves};
use super::env::Env;
use super::ids::Purpose;
use super::link::Link;
use super::{Client, Event, StreamOf, Timer};
use crate::error::{DiagnosticKind, StreamEnd};
use crate::exchange::ExchangeId;
use crate::input::Change;
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
    /// The open request. Its id names the subscription.
    open: Option<OpenSubscription>,
    backoff: Backoff,
    /// The result of the open request so far.
    brought: Brought,
    /// Whether there was a subscription before.
    was_open: bool,
    /// Whether the client gave up the subscription and reported this.
    is_lost_reported: bool,
    /// The id of the last subscription that the server ended. The server may report the end twice,
    /// in two ways.
    ended: Option<Id>,
}

/// The open `subscriptions/listen` request.
#[derive(Debug)]
struct OpenSubscription {
    id: Id,
    since: Instant,
    /// Whether the server has acknowledged the subscription.
    is_acknowledged: bool,
}

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const TOOLS: &str = "notifications/tools/list_changed";

impl Subscription {
    /// Ends the subscription, which does not outlive its connection.
    pub(super) fn end(&mut self, env: &mut Env) {
        env.timers.set(Timer::Subscription, None);
        if let Some(open) = self.open.take() {
            env.ids.retire(&open.id);
        }
    }

    /// Handles the response to `subscriptions/listen`: the server ends or refuses the subscription.
    pub(super) fn on_listened(&mut self, env: &mut Env, id: &Id, answer: Payload) {
        env.ids.retire(id);
        match answer {
            Payload::Error(error) if is_final(error.code) => self.on_refused(env, StreamEnd::Error(error)),
            Payload::Error(error) => self.on_end(env, StreamEnd::Error(error), None),
            Payload::Result(_) => {
                self.ended = Some(id.clone());
                self.on_end(env, StreamEnd::Ended, None);
            }
        }
    }

    /// Returns the request to cancel when the client ends: the one of an open subscription on a
    /// duplex connection (2026-07-28 subscriptions). Some servers wait for the end of their
    /// subscriptions before they exit.
    pub(super) fn to_cancel(&self, env: &Env) -> Option<Id> {
        self.open.as_ref().filter(|_| env.is_duplex()).map(|open| open.id.clone())
    }

    /// Handles a `notifications/cancelled` with which the server ends a subscription, or repeats
    /// its end. Returns whether the notification names a subscription.
    pub(super) fn on_cancelled(&mut self, env: &mut Env, link: &mut Link, exchange: ExchangeId, id: &Id) -> bool {
        if self.is_repeated_end(id) {
            return true;
        }
        let is_it = self.open.as_ref().is_some_and(|open| open.id == *id);
        if !is_it || env.ids.exchange(id) != Some(exchange) {
            return false;
        }
        link.answered(env, exchange);
        env.ids.retire(id);
        self.ended = Some(id.clone());
        self.on_end(env, StreamEnd::Ended, None);
        true
    }

    /// Returns whether a message only repeats the end of a subscription.
    pub(super) fn is_repeated_end(&mut self, id: &Id) -> bool {
        self.ended.take_if(|ended| ended == id).is_some()
    }

    /// Handles a refusal of the server, which does not offer the subscription. The client does not
    /// request it again, unless the server offered it before.
    pub(super) fn on_refused(&mut self, env: &mut Env, why: StreamEnd) {
        if self.was_open {
            return self.on_end(env, why, None);
        }
        self.turn_off(env, why.to_string());
    }

    /// Ends the subscription. The client does not request it again.
    pub(super) fn turn_off(&mut self, env: &mut Env, why: String) {
        self.end(env);
        env.diagnose(DiagnosticKind::ListenerOff, why);
    }

    /// Stores the delay that the server named on the stream of the subscription.
    pub(super) fn set_retry(&mut self, retry: Duration) {
        self.backoff.set_retry(retry);
    }

    /// Handles the end of the subscription. Its id is retired. The client opens it again after a
    /// delay of `at_least` the duration that the server requested.
    pub(super) fn on_end(&mut self, env: &mut Env, cause: StreamEnd, at_least: Option<Duration>) {
        let Some(open) = self.open.take() else { return };
        let lasted = env.now.since(open.since);
        let lasting = open.is_acknowledged && lasted >= LONG;
        let brought = self.brought;
        let brought = if lasting { brought.max(Brought::Progress) } else { brought };
        let round = Round { serves: Serves::Listener, brought, lasted, retry_after: at_least };
        let random = env.seed.next_u64();
        let again = match self.backoff.next(env.config.resume, round, random) {
            Some((attempt, wait)) => {
                env.event(Event::Reconnecting { stream: StreamOf::Listener, attempt, wait, cause, last_event: None });
                wait
            }
            None => {
                let wait = self.backoff.give_up();
                if !core::mem::replace(&mut self.is_lost_reported, true) {
                    env.event(Event::ListenerLost { cause, again: Some(wait) });
                }
                wait
            }
        };
        env.timers.set(Timer::Subscription, Some(env.now + again));
    }
}

impl Client {
    /// Subscribes to the changes that the application wants to receive, after a successful
    /// negotiation.
    pub(super) fn begin_watching(&mut self) {
        let Some(info) = self.env.server_info() else { return };
        let version = info.version;
        let told = info.capabilities.announces_tools();
        if !self.env.config.watch.tools {
            return;
        }
        match version.era() {
            // After a second negotiation the client may have missed a change. It has no other way
            // to detect this.
            Era::Legacy if self.subscription.was_open => self.env.report_tools_gap(),
            Era::Legacy => self.subscription.was_open = true,
            Era::Modern if told => {
                self.subscription.backoff = Backoff::default();
                self.subscribe();
            }
            Era::Modern => {}
        }
    }

    fn subscribe(&mut self) {
        let Some(version) = self.env.version() else { return };
        let filter = Object::new().with("toolsListChanged", true);
        let params = Object::new().with("notifications", filter);
        let id = self.send_request(Purpose::Listen, "subscriptions/listen", params, version);
        self.subscription.brought = Brought::Nothing;
        self.subscription.open = Some(OpenSubscription { id, since: self.env.now, is_acknowledged: false });
        self.env.await_acknowledgement();
    }

    /// Handles the end of the delay before another attempt, or of the time limit for the
    /// acknowledgement.
    pub(super) fn on_subscription_timer(&mut self) {
        match &self.subscription.open {
            None if self.env.server_info().is_some() => self.subscribe(),
            None => {}
            Some(open) => {
                let id = open.id.clone();
                self.send_cancel(&id, Some("timed out"));
                self.env.ids.retire(&id);
                self.subscription.on_end(&mut self.env, StreamEnd::Idle, None);
            }
        }
    }

    /// Handles a notification that may belong to a subscription. Returns whether it does and needs
    /// no further handling. On every transport the notification contains the id of its
    /// subscription. If the application opened the subscription with a call, it has the id of that
    /// call.
    pub(super) fn on_subscribed(&mut self, exchange: ExchangeId, method: &str, params: &Object) -> bool {
        if self.env.version().is_none() || self.env.is_legacy() {
            return false;
        }
        let of = params.optional_object(meta::META).ok().flatten().and_then(|meta| meta.id(meta::SUBSCRIPTION_ID));
        let Some(of) = of else {
            let is_bare = matches!(method, ACKNOWLEDGED | TOOLS);
            if is_bare {
                self.env.diagnose(DiagnosticKind::BadSubscription, format!("{method} of no subscription"));
            }
            return is_bare;
        };
        let ours = self.subscription.open.as_ref().filter(|open| open.id == of).map(|open| open.is_acknowledged);
        match (method, ours.filter(|_| self.env.ids.exchange(&of) == Some(exchange))) {
            (ACKNOWLEDGED, Some(false)) => self.on_acknowledged(&of, params),
            (TOOLS, Some(true)) => {
                self.subscription.brought = Brought::Message;
                self.env.event(Event::Changed(Change::Tools));
            }
            (_, None) if self.env.ids.call(&of, Some(exchange)).is_some() => return false,
            _ => self.env.diagnose(DiagnosticKind::BadSubscription, format!("{method} of subscription {of}")),
        }
        true
    }

    /// Handles the acknowledgement. The server may acknowledge less than the client requested.
    fn on_acknowledged(&mut self, id: &Id, params: &Object) {
        let Some(open) = &mut self.subscription.open else { return };
        open.is_acknowledged = true;
        self.env.timers.set(Timer::Subscription, None);
        self.subscription.brought = self.subscription.brought.max(Brought::Progress);
        let filter = params.optional_object("notifications").ok().flatten().unwrap_or_default();
        if !filter.optional("toolsListChanged").ok().flatten().unwrap_or(false) {
            self.env.diagnose(DiagnosticKind::BadSubscription, "the server does not tell of changed tools");
            self.send_cancel(id, None);
            return self.subscription.end(&mut self.env);
        }
        self.subscription.is_lost_reported = false;
        let was_open = core::mem::replace(&mut self.subscription.was_open, true);
        if was_open || self.subscription.backoff.attempts() > 0 {
            self.env.report_tools_gap();
        }
    }
}

/// Returns whether an error is final. The server does not know the request, or accepts none like
/// it.
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
