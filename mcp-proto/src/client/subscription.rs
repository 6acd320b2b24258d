//! The subscription to changes (2026-07-28 subscriptions): one `subscriptions/listen` request on
//! any transport. It is open as long as the application wants to receive changes. For another set
//! of changes the client opens another one, and ends the old one once the new one is acknowledged,
//! so that no change is lost between them. Over HTTP the two are streams without a common order, so
//! the client reports what may have been on its way on the old one. In older revisions the listener
//! of HTTP takes its place. The subscription is optional: its failure never ends a call.

use super::backoff::{Backoff, Brought, LONG, Round, Serves};
use super::ctx::Ctx;
use super::env::ClientEnv;
use super::ids::Purpose;
use super::incoming::ResponseFailure;
use super::link::SubscriptionEnd;
use super::{Event, StreamOf, Timer, watching};
use crate::error::{DiagnosticKind, StreamEnd};
use crate::exchange::ExchangeId;
use crate::input::{Change, Watch};
use crate::model::lifecycle::meta;
use crate::rpc::{Id, Object, Payload, code};
use crate::time::Instant;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

/// The state of the subscription.
#[derive(Debug, Default)]
pub(super) struct Subscription {
    /// The open request. Its id names the subscription.
    open: Option<OpenSubscription>,
    /// The request that replaces it, until the server acknowledges it.
    next: Option<OpenSubscription>,
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
    /// The id of the last subscription that the client ended. On a duplex connection the server
    /// sends its changes until it learns of the end.
    cancelled: Option<Id>,
}

/// An open `subscriptions/listen` request.
#[derive(Debug)]
struct OpenSubscription {
    id: Id,
    since: Instant,
    /// What the client has requested.
    filter: Watch,
    /// What the server sends. `None`: it has not acknowledged the subscription.
    honoured: Option<Watch>,
}

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

impl OpenSubscription {
    /// The server sends no more changes for it.
    fn lose(&self, env: &mut ClientEnv) {
        if let Some(honoured) = &self.honoured {
            env.drop_watched(honoured);
        }
    }

    /// Returns whether the server may send this change.
    fn covers(&self, change: &Change) -> bool {
        self.honoured.as_ref().is_some_and(|honoured| match change {
            Change::Tools => honoured.tools,
            Change::Prompts => honoured.prompts,
            Change::Resources => honoured.resources,
            // It may be a part of a watched resource, and only the server knows its parts.
            Change::Resource(_) => !honoured.uris.is_empty(),
        })
    }
}

impl Subscription {
    /// Ends the subscription, which does not outlive its connection.
    pub(super) fn end(&mut self, env: &mut ClientEnv) {
        env.timers.set(Timer::Subscription, None);
        for open in [self.open.take(), self.next.take()].into_iter().flatten() {
            open.lose(env);
            env.ids.retire(&open.id);
        }
    }

    /// Returns the requests to cancel when the client ends: those of open subscriptions on a duplex
    /// connection (2026-07-28 subscriptions). Some servers wait for the end of their subscriptions
    /// before they exit.
    pub(super) fn to_cancel(&self, env: &ClientEnv) -> Vec<Id> {
        let open = self.open.iter().chain(&self.next).filter(|_| env.is_duplex());
        open.map(|open| open.id.clone()).collect()
    }

    /// Returns whether a message only repeats the end of a subscription.
    pub(super) fn is_repeated_end(&mut self, id: &Id) -> bool {
        self.ended.take_if(|ended| ended == id).is_some()
    }

    /// Stores the delay that the server named on the stream of a subscription.
    pub(super) fn set_retry(&mut self, retry: Duration) {
        self.backoff.set_retry(retry);
    }

    fn get_mut(&mut self, id: &Id) -> Option<&mut OpenSubscription> {
        [&mut self.open, &mut self.next].into_iter().flatten().find(|open| open.id == *id)
    }

    /// Handles the end of the open subscription. Its id is retired. The client opens it again after
    /// a delay, which is not shorter than the server has asked for.
    fn retry(&mut self, env: &mut ClientEnv, cause: StreamEnd) {
        let Some(open) = self.open.take() else { return };
        open.lose(env);
        let lasted = env.now.since(open.since);
        let lasting = open.honoured.is_some() && lasted >= LONG;
        let brought = self.brought;
        let brought = if lasting { brought.max(Brought::Progress) } else { brought };
        let round = Round { serves: Serves::Listener, brought, lasted, retry_after: cause.retry_after() };
        let random = env.seed.next_u64();
        let again = match self.backoff.next(env.config.resume, round, random) {
            Some((attempt, wait)) => {
                env.event(Event::Reconnecting { stream: StreamOf::Listener, attempt, wait, cause, last_event: None });
                wait
            }
            None => {
                let wait = self.backoff.give_up(round.retry_after);
                if !core::mem::replace(&mut self.is_lost_reported, true) {
                    env.event(Event::ListenerLost { cause, again: Some(wait), ends_session: false });
                }
                wait
            }
        };
        env.timers.set(Timer::Subscription, Some(env.now + again));
    }

    /// Opens a subscription to everything that the application watches and the server announces. It
    /// is the first one, or replaces the open one once the server acknowledges it.
    pub(super) fn subscribe(&mut self, cx: &mut Ctx) {
        let Some(version) = cx.env.version() else { return };
        let filter = cx.env.announced();
        if filter.is_empty() {
            return cx.env.watches(filter);
        }
        let params = Object::new().with("notifications", filter.write());
        let id = cx.send_request(Purpose::Listen, "subscriptions/listen", params, version);
        let opened = OpenSubscription { id, since: cx.env.now, filter, honoured: None };
        if self.open.is_some() {
            self.next = Some(opened);
        } else {
            self.brought = Brought::Nothing;
            self.open = Some(opened);
        }
        cx.env.await_acknowledgement();
    }

    /// Changes the subscription to what the application wants now.
    pub(super) fn change(&mut self, cx: &mut Ctx) {
        let filter = cx.env.announced();
        match &self.open {
            // The client waits before it subscribes again.
            None if cx.env.timers.get(Timer::Subscription).is_some() && !filter.is_empty() => {}
            None => {
                cx.env.timers.set(Timer::Subscription, None);
                self.subscribe(cx);
            }
            // The acknowledgement decides: there are never more than two subscriptions.
            Some(open) if open.honoured.is_none() || self.next.is_some() => {}
            Some(open) if open.filter == filter => {
                let honoured = open.honoured.clone().unwrap_or_default();
                cx.env.watches(honoured);
            }
            Some(_) if filter.is_empty() => {
                self.cancel(cx);
                cx.env.watches(filter);
            }
            Some(_) => self.subscribe(cx),
        }
    }

    /// Ends the open subscription at the server.
    fn cancel(&mut self, cx: &mut Ctx) {
        let Some(open) = self.open.take() else { return };
        cx.send_cancel(&open.id, None);
        cx.env.ids.retire(&open.id);
        self.cancelled = Some(open.id);
    }

    /// Ends the open subscription before another one is open.
    fn give_up(&mut self, cx: &mut Ctx) {
        if let Some(open) = &self.open {
            open.lose(&mut cx.env);
        }
        self.cancel(cx);
    }

    /// Handles the end of the delay before another attempt, or of the time limit for the
    /// acknowledgement.
    pub(super) fn on_timer(&mut self, cx: &mut Ctx) {
        match self.next.as_ref().or(self.open.as_ref()) {
            None if cx.env.server_info().is_some() => self.subscribe(cx),
            None => {}
            Some(silent) => {
                let id = silent.id.clone();
                cx.send_cancel(&id, Some("timed out"));
                cx.env.ids.retire(&id);
                self.on_end(cx, &id, SubscriptionEnd::Ended(StreamEnd::Idle));
            }
        }
    }

    /// Handles the response to `subscriptions/listen`: the server ends or refuses the subscription.
    pub(super) fn on_response(&mut self, cx: &mut Ctx, id: &Id, answer: Result<Payload, ResponseFailure>) {
        cx.env.ids.retire(id);
        let end = match answer {
            Ok(Payload::Error(error)) if is_final(error.code) => SubscriptionEnd::Refused(StreamEnd::Error(error)),
            Ok(Payload::Error(error)) => SubscriptionEnd::Ended(StreamEnd::Error(error)),
            Ok(Payload::Result(_)) => {
                self.ended = Some(id.clone());
                SubscriptionEnd::Ended(StreamEnd::Ended)
            }
            Err(ResponseFailure::Unreadable(_)) => SubscriptionEnd::Ended(StreamEnd::Ended),
            Err(ResponseFailure::Denied { reason, .. }) => SubscriptionEnd::Denied(reason),
        };
        self.on_end(cx, id, end);
    }

    /// Handles a `notifications/cancelled` with which the server ends a subscription, or repeats
    /// its end. Returns whether the notification names a subscription.
    pub(super) fn on_cancelled(&mut self, cx: &mut Ctx, exchange: ExchangeId, id: &Id) -> bool {
        if self.is_repeated_end(id) {
            return true;
        }
        let is_it = self.get_mut(id).is_some();
        if !is_it || cx.env.ids.exchange(id) != Some(exchange) {
            return false;
        }
        cx.link.answered(&mut cx.env, exchange);
        cx.env.ids.retire(id);
        self.ended = Some(id.clone());
        self.on_end(cx, id, SubscriptionEnd::Ended(StreamEnd::Ended));
        true
    }

    /// Handles the end of a subscription. Its id is retired.
    pub(super) fn on_end(&mut self, cx: &mut Ctx, id: &Id, end: SubscriptionEnd) {
        if let Some(next) = self.next.take_if(|next| next.id == *id) {
            return self.on_replacement_end(cx, next, end);
        }
        if self.open.as_ref().is_none_or(|open| open.id != *id) {
            return;
        }
        if let Some(next) = self.next.take() {
            // The one that replaces it is under way. What changes until its acknowledgement is
            // missed.
            if let Some(lost) = self.open.replace(next) {
                lost.lose(&mut cx.env);
            }
            self.brought = Brought::Nothing;
            return;
        }
        match end {
            SubscriptionEnd::Ended(cause) => self.retry(&mut cx.env, cause),
            // It offered the subscription before.
            SubscriptionEnd::Refused(cause) if self.was_open => {
                self.retry(&mut cx.env, cause);
            }
            SubscriptionEnd::Refused(cause) => self.turn_off(cx, cause.to_string()),
            SubscriptionEnd::Denied(reason) => self.turn_off(cx, reason),
        }
    }

    /// Handles the end of the subscription that was to replace the open one. A server may allow
    /// only one at a time.
    fn on_replacement_end(&mut self, cx: &mut Ctx, next: OpenSubscription, end: SubscriptionEnd) {
        cx.env.timers.set(Timer::Subscription, None);
        match end {
            SubscriptionEnd::Denied(reason) => {
                self.give_up(cx);
                self.turn_off(cx, reason);
            }
            SubscriptionEnd::Ended(cause) | SubscriptionEnd::Refused(cause) if cause.retry_after().is_some() => {
                self.give_up(cx);
                self.open = Some(next);
                self.brought = Brought::Nothing;
                self.retry(&mut cx.env, cause);
            }
            SubscriptionEnd::Ended(_) | SubscriptionEnd::Refused(_) => {
                self.give_up(cx);
                self.subscribe(cx);
            }
        }
    }

    /// Ends the subscription. The client does not request it again.
    fn turn_off(&mut self, cx: &mut Ctx, why: String) {
        self.end(&mut cx.env);
        cx.env.diagnose(DiagnosticKind::ListenerOff, why);
        cx.env.watches(Watch::new());
    }

    /// Returns whether there is a subscription, acknowledged or not.
    pub(super) const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Returns whether the server tells of this task.
    pub(super) fn tells_of_task(&self, id: &str) -> bool {
        let honoured = self.open.as_ref().and_then(|open| open.honoured.as_ref());
        honoured.is_some_and(|honoured| honoured.tasks.contains(id))
    }

    /// Returns whether a notification with these params, on this exchange, is one of a subscription
    /// that is open.
    pub(super) fn is_open_on(&self, cx: &Ctx, exchange: ExchangeId, params: &Object) -> bool {
        let open = self.open.iter().chain(&self.next);
        subscription_of(params)
            .is_some_and(|of| cx.env.ids.exchange(&of) == Some(exchange) && open.into_iter().any(|open| open.id == of))
    }

    /// Handles a notification that may belong to a subscription. Returns whether it does and needs
    /// no further handling. On every transport the notification contains the id of its
    /// subscription. If the application opened the subscription with a call, it has the id of that
    /// call.
    pub(super) fn on_notification(
        &mut self,
        cx: &mut Ctx,
        exchange: ExchangeId,
        method: &str,
        params: &Object,
    ) -> bool {
        if !cx.env.is_modern() {
            return false;
        }
        let change = watching::change(method, params);
        let Some(of) = subscription_of(params) else {
            let is_bare = method == ACKNOWLEDGED || change.is_some();
            if is_bare {
                cx.env.diagnose(DiagnosticKind::BadSubscription, format!("{method} of no subscription"));
            }
            return is_bare;
        };
        let is_here = cx.env.ids.exchange(&of) == Some(exchange);
        let is_open = self.open.as_ref().is_some_and(|open| open.id == of);
        let is_over = self.cancelled.as_ref() == Some(&of);
        match (self.get_mut(&of).filter(|_| is_here), change) {
            (Some(open), None) if method == ACKNOWLEDGED && open.honoured.is_none() => {
                self.on_acknowledged(cx, &of, params);
            }
            (Some(open), Some(Ok(change))) if open.covers(&change) => {
                if is_open {
                    self.brought = Brought::Message;
                }
                cx.env.event(Event::Changed(change));
            }
            (None, _) if cx.env.ids.call(&of, Some(exchange)).is_some() => return false,
            // What is still watched comes with the subscription that has replaced it.
            (None, Some(Ok(_))) if is_over => {}
            _ => cx.env.diagnose(DiagnosticKind::BadSubscription, format!("{method} of subscription {of}")),
        }
        true
    }

    /// Handles the acknowledgement. The server may acknowledge less than the client requested.
    fn on_acknowledged(&mut self, cx: &mut Ctx, id: &Id, params: &Object) {
        cx.env.timers.set(Timer::Subscription, None);
        let accepted = params.optional_object("notifications").ok().flatten();
        let accepted = accepted.and_then(|filter| Watch::read(&filter).ok()).unwrap_or_default();
        // The new subscription replaces the old one without a gap, if one connection has both.
        let mut missed = Watch::new();
        let replaces = self.next.take_if(|next| next.id == *id);
        let is_replaced = replaces.is_some();
        if let Some(next) = replaces {
            if !cx.env.is_duplex() {
                missed = self.open.as_ref().and_then(|open| open.honoured.clone()).unwrap_or_default();
            }
            self.cancel(cx);
            self.open = Some(next);
            self.brought = Brought::Nothing;
        }
        let Some(open) = &mut self.open else { return };
        let honoured = open.filter.both(&accepted);
        let filter = open.filter.clone();
        open.honoured = Some(honoured.clone());
        self.brought = self.brought.max(Brought::Progress);
        // A task that has ended is in no acknowledgement.
        if (Watch { tasks: filter.tasks.clone(), ..honoured.clone() }) != filter {
            cx.env.diagnose(DiagnosticKind::BadSubscription, "the server does not tell of all requested changes");
        }
        cx.env.watches(honoured.clone());
        if honoured.is_empty() {
            self.cancel(cx);
        } else {
            self.is_lost_reported = false;
            // What was fetched before may have changed since.
            cx.env.drop_watched(&honoured);
            let was_open = core::mem::replace(&mut self.was_open, true);
            if is_replaced {
                cx.env.report_gap(&honoured.both(&missed));
            } else if was_open || self.backoff.attempts() > 0 {
                cx.env.report_gap(&honoured);
            }
        }
        // The application may have changed its mind meanwhile.
        if filter != cx.env.announced() {
            self.change(cx);
        }
    }
}

/// Returns the id of the subscription that a notification belongs to.
fn subscription_of(params: &Object) -> Option<Id> {
    params.optional_object(meta::META).ok().flatten().and_then(|meta| meta.id(meta::SUBSCRIPTION_ID))
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
