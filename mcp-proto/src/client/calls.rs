//! Calls, from the command to the one event that ends each, and their clocks.

use super::call_table::{CallClock, CallOwner, CallStage, CallState, CallTable, Errand, InputState, size};
use super::ids::Purpose;
use super::phase::Phase;
use super::{Client, Event, Termination, Timer, pings, refresh};
use crate::call::{RawCall, RawResult};
use crate::error::{Awaited, CallError, DiagnosticKind, Refusal, Refused};
use crate::exchange::{Closed, ExchangeId, Sent};
use crate::input::CallId;
use crate::model::Progress;
use crate::model::capabilities::Extensions;
use crate::model::lifecycle::meta;
use crate::model::skipped;
use crate::rpc::{DecodeError, JsonKind, Object, Payload, RawJson};
use crate::version::Era;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

impl Client {
    pub(super) fn on_call(&mut self, raw: RawCall) -> Result<CallId, Refused<RawCall>> {
        if let Some(why) = self.refusal(&raw) {
            return Err(Refused { value: raw, why });
        }
        let call = self.admit(raw, CallOwner::Application);
        self.send_admitted(call);
        Ok(call)
    }

    /// Adds a call. [`send_admitted`](Self::send_admitted) sends it.
    pub(super) fn admit(&mut self, raw: RawCall, owner: CallOwner) -> CallId {
        let call = self.calls.insert(&mut self.env, raw, owner);
        self.update_clock(call);
        call
    }

    /// Sends a call as soon as the phase of the client permits.
    pub(super) fn send_admitted(&mut self, call: CallId) {
        match self.env.phase {
            Phase::Ready(_) if !self.link.is_holding() => self.send_call(call),
            Phase::Lapsed => self.begin(),
            _ => {}
        }
    }

    fn refusal(&self, raw: &RawCall) -> Option<Refusal> {
        match &self.env.phase {
            Phase::Closing(_) | Phase::Terminated | Phase::Ending(_) => return Some(Refusal::Closed),
            Phase::Probing { .. } | Phase::Initializing { .. } | Phase::Ready(_) | Phase::Lapsed => {}
        }
        match &raw.params {
            Err(e) => Some(Refusal::Unencodable(e.clone())),
            Ok(_) if self.env.only_calls_tools() && raw.method != refresh::CALL => Some(Refusal::NotInDialect),
            Ok(params) => {
                let full = self.running() >= self.env.config.limits.client.max_calls || self.link.is_full(&self.env);
                let queued = !matches!(self.env.phase, Phase::Ready(_));
                let too_much =
                    queued && self.calls.queued_bytes() + size(params) > self.env.config.limits.client.max_unsent;
                (full || too_much).then_some(Refusal::Full)
            }
        }
    }

    /// Sends the calls that were made before the negotiation ended, in the order of the calls.
    pub(super) fn send_queued(&mut self) {
        if self.link.is_holding() {
            return;
        }
        // The level of log messages, and the subscriptions, come before what may depend on them.
        let (own, others): (Vec<CallId>, Vec<CallId>) =
            self.calls.queued(true).into_iter().partition(|call| self.calls.is_own(*call));
        for call in own.into_iter().chain(others) {
            self.send_call(call);
        }
    }

    /// Sends the first request of a call, or the next one of several rounds, under a new id.
    fn send_call(&mut self, call: CallId) {
        let Some(version) = self.env.version() else { return };
        let Some(state) = self.calls.get_mut(call) else { return };
        let method = match (&*state.raw.method, version.era()) {
            ("ping", era) => pings::method(era).into(),
            _ => state.raw.method.clone(),
        };
        let mut params = state.raw.params.clone().unwrap_or_default();
        match core::mem::replace(&mut state.stage, CallStage::Queued) {
            CallStage::Asking { questions } => {
                let mut responses = Object::new();
                for (name, question) in questions {
                    if let InputState::Answered(result) = question {
                        responses.set(&name, result);
                    }
                }
                state.round = Object::new().with("inputResponses", responses).with_all(&state.round);
            }
            CallStage::Queued
            | CallStage::Sent(_)
            | CallStage::Waiting
            | CallStage::Eliciting(_)
            | CallStage::Mismatched(_) => {}
        }
        params = params.with_all(&state.round);
        if let Err(e) = self.catalogue.headers(&self.env, &method, &params, version) {
            return self.end(call, Err(CallError::Refused(Refusal::Unencodable(e))));
        }
        let id = self.send_request(Purpose::Call(call), &method, params, version);
        if let Some(state) = self.calls.get_mut(call) {
            state.stage = CallStage::Sent(id);
            state.progress = f64::NEG_INFINITY;
        }
        self.update_clock(call);
    }

    /// Handles the response to the request of a call.
    pub(super) fn on_called(&mut self, call: CallId, answer: Payload) {
        let Some(version) = self.env.version() else { return };
        let result = match answer {
            Payload::Error(error) if self.refreshes(call, &error) => return,
            Payload::Error(error) if self.on_pages_required(call, &error) => return,
            Payload::Error(error) => return self.end(call, Err(CallError::Rpc(error))),
            Payload::Result(result) => result,
        };
        let kind = match version.era() {
            Era::Legacy => Ok(ResultType::Complete),
            Era::Modern => result_type(&result, |kind| self.accepts_result(call, kind)),
        };
        match kind {
            Ok(ResultType::Complete) => {
                let state = self.calls.get(call);
                let json = self.catalogue.learn(&mut self.env, state, result, version);
                let valid = self.catalogue.validate(&mut self.env, state, &json, version);
                let method = state.map(|state| state.raw.method.clone()).unwrap_or_default();
                let outcome = valid.map(|()| RawResult { json, version }).map_err(CallError::InvalidResult);
                if let Ok(result) = &outcome {
                    self.env.diagnose_skipped(&method, &skipped::in_result(&method, result));
                }
                self.end(call, outcome);
            }
            Ok(ResultType::InputRequired(result)) => self.on_input_required(call, &result),
            Err(e) => self.end(call, Err(CallError::Decode(e))),
        }
    }

    /// Returns whether the call accepts this kind of result, and both sides declared its extension
    /// (2026-07-28 basic, `resultType`).
    fn accepts_result(&self, call: CallId, kind: &str) -> bool {
        let accepted = self.calls.get(call).and_then(|state| state.raw.options.result_type.as_ref());
        accepted.is_some_and(|accepted| {
            let ours = &self.env.config.capabilities.extensions;
            let theirs = self.env.server_info().map(|info| &info.capabilities.extensions);
            let is_declared = |extensions: &Extensions| extensions.contains(&accepted.extension);
            accepted.result_type == kind && is_declared(ours) && theirs.is_some_and(is_declared)
        })
    }

    /// Ends a call and delivers its outcome to its owner. No other function ends one.
    pub(super) fn end(&mut self, call: CallId, outcome: Result<RawResult, CallError>) {
        let Some(state) = self.calls.remove(call) else { return };
        for timer in [Timer::Call(call), Timer::Total(call), Timer::Round(call), Timer::Elicitation(call)] {
            self.env.timers.set(timer, None);
        }
        self.questions.withdraw_of(&mut self.env, call);
        match state.stage {
            CallStage::Sent(id) => {
                // Over HTTP, the client ends the exchange and no longer resumes its response.
                if let Some(exchange) = self.env.ids.exchange(&id).filter(|_| !self.env.is_duplex()) {
                    self.link.abandon(&mut self.env, exchange);
                }
                self.env.ids.retire(&id);
            }
            CallStage::Asking { questions, .. } => {
                for (_, question) in questions {
                    if let InputState::Open(key) = question {
                        self.questions.withdraw(&mut self.env, key);
                    }
                }
            }
            CallStage::Eliciting(pages) => {
                let open = pages.into_iter().filter_map(|page| page.consent);
                open.for_each(|key| self.questions.withdraw(&mut self.env, key));
            }
            CallStage::Queued | CallStage::Waiting | CallStage::Mismatched(_) => {}
        }
        let reached = state.reached || state.rounds > 0;
        let outcome = outcome.map_err(|error| if reached { may_have_run(error) } else { error });
        match state.owner {
            CallOwner::Application => {
                self.env.event(Event::Ended { call, outcome });
                if let Some(fetch) = self.catalogue.leave(call) {
                    self.on_cancel(fetch, None);
                }
            }
            CallOwner::Engine(Errand::Page) => self.on_page(outcome),
            CallOwner::Engine(Errand::Resource) => self.on_resource(call, outcome),
            CallOwner::Engine(Errand::Level) => self.on_level(call, outcome),
        }
    }

    pub(super) fn on_cancel(&mut self, call: CallId, reason: Option<String>) {
        self.signal_cancel(call, reason.as_deref());
        self.end(call, Err(CallError::Cancelled { reason }));
    }

    pub(super) fn on_call_timeout(&mut self, call: CallId, timer: Timer) {
        let Some(state) = self.calls.get(call) else { return };
        let after = match (timer, state.clock) {
            (Timer::Call(_), CallClock::Running { limit, .. } | CallClock::Still { limit, .. }) => limit,
            (Timer::Elicitation(_), _) => self.env.config.limits.client.elicitation_timeout,
            _ => state.total.unwrap_or_default(),
        };
        let (awaited, sent) = self.whereabouts(state);
        self.signal_cancel(call, Some("timed out"));
        self.end(call, Err(CallError::Timeout { after, sent, awaited }));
    }

    /// Cancels the request of a call at the server, with the signal of the transport. `initialize`
    /// and the probe are no calls, so a client never cancels them.
    fn signal_cancel(&mut self, call: CallId, reason: Option<&str>) {
        let Some(CallStage::Sent(id)) = self.calls.get(call).map(|call| &call.stage) else { return };
        let id = id.clone();
        self.send_cancel(&id, reason);
    }

    /// Returns the state that a call waits for, and whether its latest request can have reached the
    /// server.
    fn whereabouts(&self, state: &CallState) -> (Awaited, Sent) {
        match &state.stage {
            CallStage::Queued => (Awaited::Start, Sent::No),
            CallStage::Sent(id) => self.link.awaited(&self.env, id),
            CallStage::Eliciting(_) => (Awaited::Elicitation, Sent::Maybe),
            CallStage::Asking { .. } | CallStage::Waiting | CallStage::Mismatched(_) => {
                (Awaited::Response, Sent::Maybe)
            }
        }
    }

    /// Ends every call, since no response can arrive any more.
    pub(super) fn end_all_calls(&mut self, why: &Termination) {
        while let Some((call, state)) = self.calls.first() {
            let (_, sent) = self.whereabouts(state);
            let error = match why {
                // Too many sessions ended in a row.
                Termination::Negotiation(_) if sent == Sent::Maybe => CallError::SessionEnded,
                Termination::Negotiation(e) => CallError::Negotiation(e.clone()),
                Termination::Requested => CallError::Closed { sent, why: Closed::Aborted },
                Termination::Closed(why) => CallError::Closed { sent, why: why.clone() },
            };
            self.end(call, Err(error));
        }
    }

    /// Handles `notifications/progress`. The token is the id of the request to which the progress
    /// belongs.
    pub(super) fn on_progress(&mut self, exchange: ExchangeId, params: &Object) {
        let token = params.id(meta::PROGRESS_TOKEN);
        // Servers up to 2025-11-25 may send progress on any stream of the session.
        let anywhere = !self.env.is_duplex() && self.env.is_legacy();
        let on = Some(exchange).filter(|_| !anywhere);
        let call = token.as_ref().and_then(|token| self.env.ids.call(token, on));
        let Some(call) = call.filter(|call| self.calls.wants_token(&self.env, *call)) else {
            let token = token.map_or_else(|| "no token".to_string(), |token| token.to_string());
            return self.env.diagnose(DiagnosticKind::UnknownProgress, token);
        };
        let progress = match Progress::read(params) {
            Ok(progress) => progress,
            Err(e) => return self.env.diagnose(DiagnosticKind::BadParams, format!("notifications/progress: {e}")),
        };
        let Some(state) = self.calls.get_mut(call) else { return };
        if progress.progress <= state.progress {
            return self.env.diagnose(DiagnosticKind::StaleProgress, format!("{} for {call:?}", progress.progress));
        }
        state.progress = progress.progress;
        let tell = state.raw.options.progress && progress.progress > state.told;
        state.told = state.told.max(progress.progress);
        if self.calls.get(call).is_some_and(|state| CallTable::resets(&self.env, state)) {
            self.calls.set_clock(&mut self.env, call, CallClock::restart);
        }
        if tell {
            self.env.event(Event::Progress { call, progress });
        }
    }

    /// Sends the next request of a round: the delay is over, or the application answered the last
    /// question.
    pub(super) fn on_round(&mut self, call: CallId) {
        if let Phase::Ready(_) = self.env.phase {
            self.send_call(call);
        }
    }

    /// Returns whether a call waits for credentials: for its own request, for the list of tools
    /// that it waits for, or for a request that every call waits for.
    pub(super) fn waits_for_credentials(&self, call: CallId) -> bool {
        let waits_for = self.catalogue.awaited(call).unwrap_or(call);
        let request = self.calls.get(waits_for).and_then(CallState::request);
        self.link.waits_for_credentials(&self.env, request)
    }

    /// Holds the clock of a call while the client owes the server an answer, web pages, or
    /// credentials. Runs it otherwise.
    pub(super) fn update_clock(&mut self, call: CallId) {
        let held =
            self.questions.owes_answer(call) || self.calls.is_eliciting(call) || self.waits_for_credentials(call);
        self.calls.set_clock(&mut self.env, call, if held { CallClock::hold } else { CallClock::run });
    }

    /// Updates the clock of every call, as [`update_clock`](Self::update_clock) does for one. Most
    /// questions do not name their call.
    pub(super) fn update_clocks(&mut self) {
        let calls: Vec<CallId> = self.calls.iter().map(|(call, _)| call).collect();
        for call in calls {
            self.update_clock(call);
        }
    }
}

enum ResultType {
    Complete,
    InputRequired(Object),
}

/// Returns the kind of a result. A missing kind counts as complete (an older server). A kind that
/// is neither known nor accepted makes the response invalid.
fn result_type(json: &RawJson, accepts: impl FnOnce(&str) -> bool) -> Result<ResultType, DecodeError> {
    // A call of any method may return something else.
    let Ok(object) = Object::read(json) else { return Ok(ResultType::Complete) };
    match object.kind("resultType") {
        None | Some(JsonKind::Null) => Ok(ResultType::Complete),
        Some(_) => match &*object.required_str("resultType")? {
            "complete" => Ok(ResultType::Complete),
            "input_required" => Ok(ResultType::InputRequired(object)),
            other if accepts(other) => Ok(ResultType::Complete),
            other => Err(DecodeError::new(format!("unknown `resultType` {other}"))),
        },
    }
}

/// Returns the error of a call whose earlier request reached the server. The call may have run,
/// even if its last request did not reach the server.
fn may_have_run(mut error: CallError) -> CallError {
    match error {
        CallError::Timeout { ref mut sent, .. }
        | CallError::Closed { ref mut sent, .. }
        | CallError::Denied { ref mut sent, .. } => {
            *sent = Sent::Maybe;
            error
        }
        CallError::Negotiation(_) => CallError::SessionEnded,
        CallError::Refused(Refusal::Unencodable(e)) => CallError::NotRepeated(e),
        error => error,
    }
}
