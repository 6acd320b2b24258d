//! Calls, from the command to the one event that ends each, and their clocks.

use super::call_table::{CallClock, CallOwner, CallStage, CallState, CallTable, Errand, InputState};
use super::env::ClientEnv;
use super::{Client, Event, State, Timer, tasks};
use crate::call::{RawCall, RawResult};
use crate::client::call_table::CallReach;
use crate::error::{CallError, DiagnosticKind, Refusal, RefusedCommand};
use crate::exchange::{ExchangeId, Sent};
use crate::input::CallId;
use crate::model::Progress;
use crate::model::capabilities::Extensions;
use crate::model::lifecycle::{ServerInfo, meta};
use crate::model::skipped;
use crate::rpc::{DecodeError, JsonKind, Object, Payload, RawJson};
use crate::version::{Era, ProtocolVersion};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

impl Client {
    pub(super) fn on_call(&mut self, raw: RawCall) -> Result<CallId, RefusedCommand<RawCall>> {
        if let Some(why) = self.cx.refusal(&raw) {
            return Err(RefusedCommand { value: raw, why });
        }
        if let Some(call) = self.cx.answer_cached(&raw) {
            return Ok(call);
        }
        let call = self.cx.admit(raw, CallOwner::Application);
        self.send_admitted(call);
        Ok(call)
    }

    /// Sends a call as soon as the phase of the client permits.
    pub(super) fn send_admitted(&mut self, call: CallId) {
        match self.state() {
            State::Ready if !self.cx.link.is_holding() => self.send_call(call),
            State::Lapsed => self.begin(),
            _ => {}
        }
    }

    /// Sends the calls that were made before the negotiation ended, in the order of the calls.
    pub(super) fn send_queued(&mut self) {
        if self.cx.link.is_holding() {
            return;
        }
        // The level of log messages, and the subscriptions, come before what may depend on them.
        let (own, others): (Vec<CallId>, Vec<CallId>) =
            self.cx.calls.queued(true).into_iter().partition(|call| self.cx.calls.is_own(*call));
        for call in own.into_iter().chain(others) {
            self.send_call(call);
        }
    }

    fn send_call(&mut self, call: CallId) {
        if self.attach(call) {
            return;
        }
        if let Err(e) = self.cx.send_call(call) {
            self.end(call, Err(CallError::Refused(Refusal::Unencodable(e))));
        }
    }

    /// Sends the next request of a round: the delay is over, or the application answered the last
    /// question.
    pub(super) fn on_round(&mut self, call: CallId) {
        match self.cx.calls.task(call) {
            Some(_) => self.on_poll(call),
            None if self.state() == State::Ready => self.send_call(call),
            None => {}
        }
    }

    /// Handles the response to the request of a call.
    pub(super) fn on_called(&mut self, call: CallId, answer: Payload) {
        let Self { cx, refresh, elicitations, .. } = self;
        let Some(version) = cx.env.version() else { return };
        let result = match answer {
            Payload::Error(error) if refresh.on_error(cx, call, &error) => return,
            Payload::Error(error) if elicitations.on_error(cx, call, &error) => return,
            Payload::Error(error) => return self.end(call, Err(CallError::Rpc(error))),
            Payload::Result(result) => result,
        };
        let state = cx.calls.get(call);
        let kind = match version.era() {
            Era::Legacy if state.is_some_and(|state| state.as_task) && tasks::is_created(&result) => {
                Ok(ResultType::Task)
            }
            Era::Legacy => Ok(ResultType::Complete),
            Era::Modern => result_type(
                &result,
                |kind| state.is_some_and(|state| state.accepts(&cx.env, kind)),
                state.is_some_and(|state| state.takes_task(&cx.env)),
            ),
        };
        match kind {
            Ok(ResultType::Complete) => self.complete(call, result, version),
            Ok(ResultType::Task) => self.on_task(call, &result, version),
            Ok(ResultType::InputRequired(result)) => self.on_input_required(call, &result),
            Err(e) => self.end(call, Err(CallError::Decode(e))),
        }
    }

    /// Ends a call with a result, unless that is not valid.
    pub(super) fn complete(&mut self, call: CallId, result: RawJson, version: ProtocolVersion) {
        let Self { cx, .. } = self;
        let state = cx.calls.get(call);
        let json = cx.tools.learn_from(&mut cx.env, state, result);
        let valid = cx.tools.validate(&mut cx.env, state, &json, version);
        let method = state.map(|state| state.raw.method.clone()).unwrap_or_default();
        let outcome = valid.map(|()| RawResult::new(json, version)).map_err(CallError::InvalidResult);
        if let Ok(result) = &outcome {
            cx.env.diagnose_skipped(&method, &skipped::in_result(&method, result));
        }
        self.end(call, outcome);
    }

    /// Ends a call and delivers its outcome to its owner. No other function ends one.
    pub(super) fn end(&mut self, call: CallId, outcome: Result<RawResult, CallError>) {
        let Self { cx, .. } = self;
        let Some(state) = cx.calls.remove(call) else { return };
        for timer in [Timer::Call(call), Timer::Total(call), Timer::Round(call), Timer::Elicitation(call)] {
            cx.env.timers.set(timer, None);
        }
        cx.questions.withdraw_of(&mut cx.env, call);
        let mut was_last_mismatched = false;
        let (mut step, mut was_task) = (None, false);
        match state.stage {
            CallStage::Sent(id) => {
                // Over HTTP, the client ends the exchange and no longer resumes its response.
                if let Some(exchange) = cx.env.ids.exchange(&id).filter(|_| !cx.env.is_duplex()) {
                    cx.link.abandon(&mut cx.env, exchange);
                }
                cx.env.ids.retire(&id);
            }
            CallStage::Asking { questions, .. } => {
                for (_, question) in questions {
                    if let InputState::Open(key) = question {
                        cx.questions.withdraw(&mut cx.env, key);
                    }
                }
            }
            CallStage::Eliciting(pages) => {
                let open = pages.into_iter().filter_map(|page| page.consent);
                open.for_each(|key| cx.questions.withdraw(&mut cx.env, key));
            }
            CallStage::Task(task) => (step, was_task) = (task.withdraw(cx), true),
            CallStage::Mismatched(_) => was_last_mismatched = cx.calls.mismatched().is_empty(),
            CallStage::Queued | CallStage::Waiting => {}
        }
        if let Some(own) = step {
            self.on_cancel(own, None);
        }
        // A client that ends has closed its subscription, and opens no other one.
        if was_task && self.subscription.is_open() {
            self.listen_for_tasks();
        }
        let Self { cx, .. } = self;
        let outcome = cx.settle_cached(call, outcome);
        let reached = state.reached > CallReach::No || state.rounds > 0;
        let outcome = outcome.map_err(|error| if reached { may_have_run(error) } else { error });
        match state.owner {
            CallOwner::Application => {
                cx.env.event(Event::Ended { call, outcome });
                if was_last_mismatched {
                    self.stop_refreshing();
                }
            }
            CallOwner::Engine(Errand::Page) => self.on_page(outcome),
            CallOwner::Engine(Errand::Task(of)) => self.on_task_step(of, call, outcome),
            CallOwner::Engine(Errand::Cancellation | Errand::Abandoned) => {}
            CallOwner::Engine(Errand::Resource) => self.resources.on_end(cx, call, outcome),
            CallOwner::Engine(Errand::Level) => self.logging.on_end(cx, call, outcome),
        }
    }

    /// Handles the end of the call for a page of the list of tools.
    fn on_page(&mut self, outcome: Result<RawResult, CallError>) {
        for (call, error) in self.refresh.on_page(&mut self.cx, outcome) {
            match error {
                None => self.send_admitted(call),
                Some(error) => self.end(call, Err(CallError::Rpc(*error))),
            }
        }
    }

    /// Stops the fetch of the list of tools, which no call needs any more.
    pub(super) fn stop_refreshing(&mut self) {
        if let Some(page) = self.refresh.stop() {
            self.on_cancel(page, None);
        }
    }

    pub(super) fn on_cancel(&mut self, call: CallId, reason: Option<String>) {
        // One that is abandoned has ended already.
        if !self.cx.calls.is_abandoned(call) {
            self.stop(call, reason.clone().as_deref(), CallError::Cancelled { reason });
        }
    }

    pub(super) fn on_call_timeout(&mut self, call: CallId, timer: Timer) {
        let Some(state) = self.cx.calls.get(call) else { return };
        let after = match (timer, state.clock) {
            (Timer::Call(_), CallClock::Running { limit, .. } | CallClock::Still { limit, .. }) => limit,
            (Timer::Elicitation(_), _) => self.cx.env.config.limits.client.elicitation_timeout,
            _ => state.total.unwrap_or_default(),
        };
        let (awaited, sent) = self.cx.whereabouts(state);
        self.stop(call, Some("timed out"), CallError::Timeout { after, sent, awaited });
    }

    /// Ends a call before its outcome, at the server too.
    fn stop(&mut self, call: CallId, reason: Option<&str>, error: CallError) {
        if self.abandon(call, &error) {
            return;
        }
        if !self.cx.calls.is_abandoned(call) {
            self.cancel_task(call);
            self.cx.signal_cancel(call, reason);
        }
        self.end(call, Err(error));
    }
}

impl CallState {
    /// Returns whether the call takes a task as the result (2026-07-28).
    fn takes_task(&self, env: &ClientEnv) -> bool {
        let is_declared = |info: &ServerInfo| info.capabilities.extensions.contains(tasks::EXTENSION);
        env.config.tasks && self.raw.method == super::tools::CALL && env.server_info().is_some_and(is_declared)
    }

    /// Returns whether the call accepts this kind of result, and both sides declared its extension
    /// (2026-07-28 basic, `resultType`).
    fn accepts(&self, env: &ClientEnv, kind: &str) -> bool {
        self.raw.options.result_type.as_ref().is_some_and(|accepted| {
            let ours = &env.config.capabilities.extensions;
            let theirs = env.server_info().map(|info| &info.capabilities.extensions);
            let is_declared = |extensions: &Extensions| extensions.contains(&accepted.extension);
            accepted.result_type == kind && is_declared(ours) && theirs.is_some_and(is_declared)
        })
    }
}

impl CallTable {
    /// Handles `notifications/progress`. The token is the id of the request to which the progress
    /// belongs.
    pub(super) fn on_progress(&mut self, env: &mut ClientEnv, exchange: ExchangeId, params: &Object) {
        let token = params.id(meta::PROGRESS_TOKEN);
        // Servers up to 2025-11-25 may send progress on any stream of the session.
        let anywhere = !env.is_duplex() && env.is_legacy();
        let on = Some(exchange).filter(|_| !anywhere);
        let call = token.as_ref().and_then(|token| env.ids.call(token, on));
        let Some(call) = call.filter(|call| self.wants_token(env, *call)) else {
            let token = token.map_or_else(|| "no token".to_string(), |token| token.to_string());
            return env.diagnose(DiagnosticKind::UnknownProgress, token);
        };
        let progress = match Progress::read(params) {
            Ok(progress) => progress,
            Err(e) => return env.diagnose(DiagnosticKind::BadParams, format!("notifications/progress: {e}")),
        };
        let Some(state) = self.get_mut(call) else { return };
        if progress.progress <= state.progress {
            return env.diagnose(DiagnosticKind::StaleProgress, format!("{} for {call:?}", progress.progress));
        }
        state.progress = progress.progress;
        if state.owner == CallOwner::Engine(Errand::Abandoned) {
            return;
        }
        let tell = state.raw.options.progress && progress.progress > state.told;
        state.told = state.told.max(progress.progress);
        if Self::resets(env, state) {
            self.set_clock(env, call, CallClock::restart);
        }
        if tell {
            env.event(Event::Progress { call, progress });
        }
    }
}

enum ResultType {
    Complete,
    Task,
    InputRequired(Object),
}

/// Returns the kind of a result. A missing kind counts as complete (an older server). A kind that
/// is neither known nor accepted makes the response invalid: a task too, unless it `takes_task`.
fn result_type(
    json: &RawJson,
    accepts: impl FnOnce(&str) -> bool,
    takes_task: bool,
) -> Result<ResultType, DecodeError> {
    // A call of any method may return something else.
    let Ok(object) = Object::read(json) else { return Ok(ResultType::Complete) };
    match object.kind("resultType") {
        None | Some(JsonKind::Null) => Ok(ResultType::Complete),
        Some(_) => match &*object.required_str("resultType")? {
            "complete" => Ok(ResultType::Complete),
            "input_required" => Ok(ResultType::InputRequired(object)),
            other if accepts(other) => Ok(ResultType::Complete),
            tasks::KIND if takes_task => Ok(ResultType::Task),
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
