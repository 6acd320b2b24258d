//! The changes that the application watches, in every revision. Up to 2025-11-25 the server
//! announces changed lists unasked, and the client subscribes to each resource
//! (`resources/subscribe`). From 2026-07-28 on one `subscriptions/listen` request covers both
//! (`subscription.rs`). After a gap the client reports every change that it may have missed.

use super::call_table::{CallOwner, Errand};
use super::env::Env;
use super::phase::Phase;
use super::{Client, Event, Timer};
use crate::call::{RawCall, RawResult};
use crate::error::{CallError, DiagnosticKind, Refusal, Refused};
use crate::input::{CallId, Change, Watch};
use crate::rpc::{DecodeError, Object};
use crate::version::Era;
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
pub(super) struct Resources {
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

impl Resources {
    /// Ends the session. Whatever is watched now may change unnoticed.
    fn end_session(&mut self) {
        self.missed.append(&mut self.accepted);
        self.refused.clear();
        self.due.clear();
        self.open.clear();
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

impl Env {
    /// Emits the changes that the client may have missed of these.
    pub(super) fn report_gap(&mut self, watched: &Watch) {
        for change in watched.changes() {
            self.event(Event::Changed(change));
        }
    }

    /// Returns what the server announces of the watched changes, as it has declared.
    pub(super) fn announced(&self) -> Watch {
        self.server_info().map(|info| self.watch.declared(&info.capabilities)).unwrap_or_default()
    }
}

impl Client {
    /// Returns the changes that the application watches. [`Event::Watching`] reports what the
    /// server announces of them.
    pub const fn watched(&self) -> &Watch {
        &self.env.watch
    }

    /// Begins with the changes of the configuration.
    pub(super) fn take_configured_watch(&mut self) {
        let max = self.env.config.limits.client.max_watched;
        let mut watch = self.env.config.watch.clone();
        let dropped = watch.uris.len().saturating_sub(max);
        if dropped > 0 {
            self.env.diagnose(DiagnosticKind::BadSubscription, format!("{dropped} URIs are beyond the limit"));
            watch.uris = watch.uris.into_iter().take(max).collect();
        }
        self.env.watch = watch;
    }

    pub(super) fn on_watch(&mut self, watch: Watch) -> Result<(), Refused<Watch>> {
        let why = match self.env.phase {
            Phase::Closing(_) | Phase::Terminated => Some(Refusal::Closed),
            _ if watch.uris.len() > self.env.config.limits.client.max_watched => Some(Refusal::Full),
            _ => None,
        };
        if let Some(why) = why {
            return Err(Refused { value: watch, why });
        }
        if self.env.watch == watch {
            return Ok(());
        }
        self.env.watch = watch;
        let uris = &self.env.watch.uris;
        self.resources.missed.retain(|uri| uris.contains(uri));
        if let Phase::Ready(info) = &self.env.phase {
            match info.version.era() {
                Era::Legacy => self.watch_legacy(),
                Era::Modern => self.change_subscription(),
            }
        }
        Ok(())
    }

    /// Begins to watch after a successful negotiation.
    pub(super) fn begin_watching(&mut self) {
        let had_session = core::mem::replace(&mut self.resources.had_session, true);
        if self.env.watch.is_empty() {
            return;
        }
        if self.env.is_modern() {
            return self.subscribe();
        }
        self.watch_legacy();
        // After a second negotiation the client may have missed a change. It has no other way to
        // detect this. The resources follow when the server has accepted them.
        if had_session {
            let lists = Watch { uris: BTreeSet::new(), ..self.env.watch };
            self.env.report_gap(&lists);
        }
    }

    /// Reports the changes that were missed, since the listener of HTTP was not open.
    pub(super) fn report_missed(&mut self) {
        let uris = self.resources.accepted.clone();
        let missed = Watch { uris, ..self.env.watch };
        self.env.report_gap(&missed);
    }

    /// Ends the subscriptions with the session, or with the server.
    pub(super) fn forget_subscriptions(&mut self) {
        self.subscription.end(&mut self.env);
        self.resources.end_session();
        self.logging.end_session();
        for call in self.calls.errands() {
            self.end(call, Err(CallError::SessionEnded));
        }
    }

    /// Changes the subscriptions to those that the application wants.
    fn watch_legacy(&mut self) {
        let wanted = self.env.announced().uris;
        let Resources { accepted, refused, due, is_awaited, .. } = &mut self.resources;
        refused.retain(|uri| wanted.contains(uri));
        *due = accepted.symmetric_difference(&wanted).filter(|uri| !refused.contains(*uri)).cloned().collect();
        *is_awaited = true;
        self.subscribe_next();
    }

    /// Sends the next requests. If there is nothing left, reports what the server accepts.
    fn subscribe_next(&mut self) {
        while self.resources.open.len() < MAX_OPEN {
            let Some(uri) = self.resources.due.pop_first() else { break };
            // The end of that request decides.
            if self.resources.open.values().any(|(open, _)| *open == uri) {
                continue;
            }
            let subscribes = self.env.watch.uris.contains(&uri);
            if subscribes == self.resources.accepted.contains(&uri) {
                continue;
            }
            let method = if subscribes { "resources/subscribe" } else { "resources/unsubscribe" };
            let mut raw = RawCall {
                method: method.into(),
                params: Ok(Object::new().with("uri", uri.as_str())),
                options: crate::call::CallOptions::default(),
            };
            raw.options.repeatable = true;
            let call = self.admit(raw, CallOwner::Engine(Errand::Resource));
            self.resources.open.insert(call, (uri, subscribes));
            self.send_admitted(call);
        }
        let is_settled = self.resources.open.is_empty() && self.resources.due.is_empty();
        if is_settled && core::mem::take(&mut self.resources.is_awaited) {
            let uris = self.resources.accepted.clone();
            let watching = Watch { uris, ..self.env.announced() };
            self.env.event(Event::Watching(watching));
        }
    }

    /// Handles the end of a request about a resource.
    pub(super) fn on_resource(&mut self, call: CallId, outcome: Result<RawResult, CallError>) {
        let Some((uri, subscribes)) = self.resources.open.remove(&call) else { return };
        match outcome {
            Ok(_) if subscribes => {
                self.resources.accepted.insert(uri.clone());
                if self.resources.missed.remove(&uri) && self.env.watch.uris.contains(&uri) {
                    self.env.event(Event::Changed(Change::Resource(uri.clone())));
                }
            }
            Ok(_) => drop(self.resources.accepted.remove(&uri)),
            Err(e) => {
                self.env.diagnose(DiagnosticKind::BadSubscription, format!("{uri}: {e}"));
                // The server still announces the resource, or never did. Neither is an end.
                self.resources.accepted.remove(&uri);
                if subscribes {
                    let is_final = matches!(e, CallError::Rpc(_) | CallError::Denied { .. });
                    let place = if is_final { &mut self.resources.refused } else { &mut self.resources.missed };
                    place.insert(uri.clone());
                    if !is_final {
                        let wait = self.subscription.give_up(e.retry_after());
                        self.env.timers.set(Timer::Subscription, Some(self.env.now + wait));
                    }
                }
                return self.subscribe_next();
            }
        }
        // The application may have changed its mind meanwhile.
        self.resources.due.insert(uri);
        self.subscribe_next();
    }

    /// Tries again to subscribe to the resources whose requests had no response.
    pub(super) fn retry_resources(&mut self) {
        self.watch_legacy();
    }
}
