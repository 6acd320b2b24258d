//! The changes that the application watches, in every revision. Up to 2025-11-25 the server
//! announces changed lists unasked, and the client subscribes to each resource
//! (`resources/subscribe`). From 2026-07-28 on one `subscriptions/listen` request covers both
//! (`subscription.rs`). After a gap the client reports every change that it may have missed.

use super::backoff::Backoff;
use super::call_table::Errand;
use super::ctx::Ctx;
use super::env::ClientEnv;
use super::{Client, Event, State, Timer};
use crate::call::RawResult;
use crate::error::{CallError, DiagnosticKind, Refusal, RefusedCommand};
use crate::input::{CallId, Change, Watch};
use crate::model::lifecycle::ServerInfo;
use crate::rpc::{DecodeError, Object};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;

const TOOLS: &str = "notifications/tools/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";
const UPDATED: &str = "notifications/resources/updated";

/// Maximum number of requests about resources that wait for their response. More would take the
/// connections of an HTTP client from its calls.
const MAX_OPEN: usize = 8;

/// The subscriptions to resources in a session of an older revision.
#[derive(Debug, Default)]
pub(super) struct ResourceSubscriptions {
    /// The URIs that the server has accepted.
    accepted: BTreeSet<String>,
    /// The URIs that the server has refused. The client does not subscribe to them again in this
    /// session.
    refused: BTreeSet<String>,
    /// The URIs whose changes the client may have missed. They are reported once the server accepts
    /// them.
    missed: BTreeSet<String>,
    /// The URIs to subscribe to, and those to unsubscribe from.
    due: BTreeSet<String>,
    /// The requests that wait for their response, with their URI. `true`: subscribes to it.
    open: BTreeMap<CallId, (String, bool)>,
    /// Whether the application waits for [`Event::Watching`].
    is_awaited: bool,
    /// Whether a session has begun before.
    had_session: bool,
}

impl ResourceSubscriptions {
    /// Ends the session. Whatever is watched now may change unnoticed.
    pub(super) fn end_session(&mut self) {
        self.missed.append(&mut self.accepted);
        self.refused.clear();
        self.due.clear();
        self.open.clear();
    }

    /// Begins a session of an older revision.
    fn begin(&mut self, cx: &mut Ctx, had_session: bool) {
        self.update(cx);
        // After a second negotiation the client may have missed a change. It has no other way to
        // detect this. The resources follow when the server has accepted them.
        if had_session {
            let lists = Watch { uris: BTreeSet::new(), tasks: BTreeSet::new(), ..cx.env.watch };
            cx.env.report_gap(&lists);
        }
    }

    /// Reports the changes that were missed, since the listener of HTTP was not open.
    pub(super) fn report_missed(&self, env: &mut ClientEnv) {
        let missed = Watch { uris: self.accepted.clone(), tasks: BTreeSet::new(), ..env.watch };
        env.report_gap(&missed);
    }

    /// Changes the subscriptions to those that the application wants, also after a delay.
    pub(super) fn update(&mut self, cx: &mut Ctx) {
        let wanted = cx.env.announced().uris;
        let Self { accepted, refused, due, is_awaited, .. } = self;
        refused.retain(|uri| wanted.contains(uri));
        *due = accepted.symmetric_difference(&wanted).filter(|uri| !refused.contains(*uri)).cloned().collect();
        *is_awaited = true;
        self.send_next(cx);
    }

    /// Sends the next requests. If there is nothing left, reports what the server accepts.
    fn send_next(&mut self, cx: &mut Ctx) {
        while self.open.len() < MAX_OPEN {
            let Some(uri) = self.due.pop_first() else { break };
            // The end of that request decides.
            if self.open.values().any(|(open, _)| *open == uri) {
                continue;
            }
            let subscribes = cx.env.watch.uris.contains(&uri);
            if subscribes == self.accepted.contains(&uri) {
                continue;
            }
            let method = if subscribes { "resources/subscribe" } else { "resources/unsubscribe" };
            let call = cx.run_errand(Errand::Resource, method, Object::new().with("uri", uri.as_str()));
            self.open.insert(call, (uri, subscribes));
        }
        let is_settled = self.open.is_empty() && self.due.is_empty();
        if is_settled && core::mem::take(&mut self.is_awaited) {
            let watching = Watch { uris: self.accepted.clone(), ..cx.env.announced() };
            cx.env.watches(watching);
        }
    }

    /// Handles the end of a request about a resource.
    pub(super) fn on_end(&mut self, cx: &mut Ctx, call: CallId, outcome: Result<RawResult, CallError>) {
        let Some((uri, subscribes)) = self.open.remove(&call) else { return };
        match outcome {
            Ok(_) if subscribes => {
                self.accepted.insert(uri.clone());
                // It may have changed since it was read.
                let change = Change::Resource(uri.clone());
                cx.env.drop_changed(&change);
                if self.missed.remove(&uri) && cx.env.watch.uris.contains(&uri) {
                    cx.env.event(Event::Changed(change));
                }
            }
            Ok(_) => drop(self.accepted.remove(&uri)),
            Err(e) => {
                cx.env.diagnose(DiagnosticKind::BadSubscription, format!("{uri}: {e}"));
                // The server still announces the resource, or never did. Neither is an end.
                self.accepted.remove(&uri);
                if subscribes {
                    let is_final = matches!(e, CallError::Rpc(_) | CallError::Denied { .. });
                    let place = if is_final { &mut self.refused } else { &mut self.missed };
                    place.insert(uri);
                    if !is_final {
                        let wait = Backoff::default().give_up(e.retry_after());
                        cx.env.timers.set(Timer::Subscription, Some(cx.env.now + wait));
                    }
                }
                return self.send_next(cx);
            }
        }
        // The application may have changed its mind meanwhile.
        self.due.insert(uri);
        self.send_next(cx);
    }
}

/// Returns the change that a notification announces. `None` if it announces none.
pub(super) fn change(method: &str, params: &Object) -> Option<Result<Change, DecodeError>> {
    Some(Ok(match method {
        TOOLS => Change::Tools,
        PROMPTS => Change::Prompts,
        RESOURCES => Change::Resources,
        UPDATED => match params.required("uri") {
            Ok(uri) => Change::Resource(uri),
            Err(e) => return Some(Err(e)),
        },
        _ => return None,
    }))
}

impl ClientEnv {
    /// Begins with the changes of the configuration.
    pub(super) fn take_configured_watch(&mut self) {
        let max = self.config.limits.client.max_watched;
        let mut watch = self.config.watch.clone();
        let dropped = watch.uris.len().saturating_sub(max);
        if dropped > 0 {
            self.diagnose(DiagnosticKind::BadSubscription, format!("{dropped} URIs are beyond the limit"));
            watch.uris = watch.uris.into_iter().take(max).collect();
        }
        self.watch = watch;
    }

    /// Reports what the server announces of the changes that the application watches.
    pub(super) fn watches(&mut self, announced: Watch) {
        self.event(Event::Watching(Watch { tasks: BTreeSet::new(), ..announced }));
    }

    /// Emits the changes that the client may have missed of these.
    pub(super) fn report_gap(&mut self, watched: &Watch) {
        for change in watched.changes() {
            self.drop_changed(&change);
            self.event(Event::Changed(change));
        }
    }

    /// Returns what the server announces of the watched changes, as it has declared.
    pub(super) fn announced(&self) -> Watch {
        let declared = |info: &ServerInfo| self.watch.declared(&info.capabilities);
        let announced = self.server_info().map(declared).unwrap_or_default();
        Watch { tasks: self.watched_tasks.clone(), ..announced }
    }
}

impl Client {
    /// Returns the changes that the application watches. [`Event::Watching`] reports what the
    /// server announces of them.
    pub const fn watched(&self) -> &Watch {
        &self.cx.env.watch
    }

    pub(super) fn on_watch(&mut self, watch: Watch) -> Result<(), RefusedCommand<Watch>> {
        let env = &mut self.cx.env;
        let why = match env.state() {
            State::Closing | State::Terminated => Some(Refusal::Closed),
            State::NoServer => Some(Refusal::NoServer),
            _ if watch.uris.len() > env.config.limits.client.max_watched => Some(Refusal::Full),
            _ => None,
        };
        if let Some(why) = why {
            return Err(RefusedCommand { value: watch, why });
        }
        if env.watch == watch {
            return Ok(());
        }
        env.watch = watch;
        self.resources.missed.retain(|uri| env.watch.uris.contains(uri));
        match env.state() {
            State::Ready if env.is_modern() => self.subscription.change(&mut self.cx),
            State::Ready => self.resources.update(&mut self.cx),
            _ => {}
        }
        Ok(())
    }

    /// Begins to watch after a successful negotiation.
    pub(super) fn begin_watching(&mut self) {
        let had_session = core::mem::replace(&mut self.resources.had_session, true);
        match &self.cx.env {
            env if env.watch.is_empty() && env.watched_tasks.is_empty() => {}
            env if env.is_modern() => self.subscription.subscribe(&mut self.cx),
            _ => self.resources.begin(&mut self.cx, had_session),
        }
    }

    /// Ends the subscriptions with the session, or with the server.
    pub(super) fn forget_subscriptions(&mut self) {
        self.subscription.end(&mut self.cx.env);
        self.cx.env.drop_cached();
        self.resources.end_session();
        self.logging.end_session();
        for call in self.cx.calls.errands() {
            self.end(call, Err(CallError::SessionEnded));
        }
    }
}
