//! Calls: from the command to the one event that ends each, and the clocks in between.

use super::era::Phase;
use super::ids::Purpose;
use super::{Client, Event, Termination, Timer, pings};
use crate::call::{RawCall, RawResult};
use crate::error::{Awaited, CallError, DiagnosticKind, Refusal, Refused};
use crate::exchange::{Closed, ExchangeId, Sent};
use crate::input::{CallId, InputKey};
use crate::model::Progress;
use crate::model::lifecycle::meta;
use crate::rpc::{DecodeError, Id, Object, Payload, RawJson};
use crate::time::Instant;
use crate::version::Era;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

/// A call that has not ended.
#[derive(Debug)]
pub(super) struct CallState {
    pub(super) raw: RawCall,
    pub(super) owner: CallOwner,
    pub(super) stage: Stage,
    /// Rounds in which the server asked.
    pub(super) rounds: u32,
    /// What the rounds add to the params of the request.
    round: Object,
    /// It was made a second time, after its answer was lost.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "an answer alone is lost over HTTP only"))]
    pub(super) repeated: bool,
    /// A request of it may have reached the server, whatever became of the latest one.
    reached: bool,
    clock: Clock,
    /// The limit in total, for the error.
    total: Option<Duration>,
    /// The last progress of the request that is out.
    progress: f64,
    /// The last progress that the application saw; a later round begins anew on the wire, but not for the application.
    told: f64,
}

/// The party that made a call, which receives its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CallOwner {
    /// The application. The end of the call is an event.
    Application,
    /// The engine, which fetches a list of tools. The application sees nothing of the call.
    #[cfg(feature = "http")]
    Engine,
}

/// Where a call is.
#[derive(Debug)]
pub(super) enum Stage {
    /// The two sides have not agreed yet.
    Queued,
    /// The request is out under this id.
    Sent(Id),
    /// The server asked; these are its questions by name, each open or answered.
    Asking { questions: Vec<(String, Question)>, state: Option<RawJson> },
    /// The server asked to try again; a timer is armed.
    Waiting { state: RawJson },
    /// The request was refused for its header fields; it is made once more when the list of tools was fetched anew.
    #[cfg(feature = "http")]
    Mismatched(crate::rpc::ErrorObject),
}

/// A question of a round.
#[derive(Debug)]
pub(super) enum Question {
    Open(InputKey),
    Answered(Object),
}

impl CallState {
    /// The id of the request that is out.
    #[cfg(feature = "http")]
    pub(super) const fn request(&self) -> Option<&Id> {
        match &self.stage {
            Stage::Sent(id) => Some(id),
            Stage::Queued | Stage::Asking { .. } | Stage::Waiting { .. } | Stage::Mismatched(_) => None,
        }
    }
}

/// The clock of a call: it runs towards a deadline, stands still with time left, or has no limit.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Clock {
    Unlimited,
    Running { limit: Duration, until: Instant },
    Still { limit: Duration, left: Duration },
}

impl Client {
    pub(super) fn on_call(&mut self, raw: RawCall) -> Result<CallId, Refused<RawCall>> {
        if let Some(why) = self.refusal(&raw) {
            return Err(Refused { value: raw, why });
        }
        let call = self.admit(raw, CallOwner::Application);
        self.send_admitted(call);
        Ok(call)
    }

    /// Adds a call to the table. [`send_admitted`](Self::send_admitted) sends it.
    pub(super) fn admit(&mut self, raw: RawCall, owner: CallOwner) -> CallId {
        self.next_call += 1;
        let call = CallId(self.next_call);
        let resets = raw.options.reset_on_progress.unwrap_or(self.config.reset_on_progress);
        let total = raw.options.max_total.or(resets.then_some(self.config.max_total));
        self.timers.set(Timer::Total(call), total.map(|total| self.now + total));
        let limit = raw.options.timeout.unwrap_or(self.config.timeout);
        let clock = limit.map_or(Clock::Unlimited, |limit| Clock::Still { limit, left: limit });
        let state = CallState {
            raw,
            owner,
            stage: Stage::Queued,
            rounds: 0,
            round: Object::new(),
            repeated: false,
            reached: false,
            clock,
            total,
            progress: f64::NEG_INFINITY,
            told: f64::NEG_INFINITY,
        };
        self.calls.insert(call, state);
        self.update_clock(call);
        call
    }

    /// Sends a call as soon as that is possible.
    pub(super) fn send_admitted(&mut self, call: CallId) {
        match self.phase {
            Phase::Ready(_) if !self.is_holding() => self.send_call(call),
            Phase::Lapsed => self.begin(),
            _ => {}
        }
    }

    fn refusal(&self, raw: &RawCall) -> Option<Refusal> {
        match &self.phase {
            Phase::Ending(_) if self.can_restart() => {}
            Phase::Closing(_) | Phase::Terminated | Phase::Ending(_) => return Some(Refusal::Closed),
            Phase::Probing { .. }
            | Phase::Initializing { .. }
            | Phase::Ready(_)
            | Phase::Lapsed
            | Phase::Restarting => {}
        }
        match &raw.params {
            Err(e) => Some(Refusal::Unencodable(e.clone())),
            Ok(params) => {
                let full = self.running() >= self.config.limits.client.max_calls || self.is_full();
                let queued = !matches!(self.phase, Phase::Ready(_));
                let too_much = queued && self.queued_bytes() + size(params) > self.config.limits.client.max_unsent;
                (full || too_much).then_some(Refusal::Full)
            }
        }
    }

    fn queued_bytes(&self) -> usize {
        self.calls.values().filter_map(|call| call.raw.params.as_ref().ok()).map(size).sum()
    }

    /// Sends what was called before the two sides agreed, in the order of the calls.
    pub(super) fn send_queued(&mut self) {
        if self.is_holding() {
            return;
        }
        let queued = |(id, call): (&CallId, &CallState)| matches!(call.stage, Stage::Queued).then_some(*id);
        let calls: Vec<CallId> = self.calls.iter().filter_map(queued).collect();
        for call in calls {
            self.send_call(call);
        }
    }

    /// Sends the request of a call, or the next one of several rounds, under a new id.
    fn send_call(&mut self, call: CallId) {
        let Some(version) = self.version() else { return };
        let Some(state) = self.calls.get_mut(&call) else { return };
        let method = match (&*state.raw.method, version.era()) {
            ("ping", era) => pings::method(era).into(),
            _ => state.raw.method.clone(),
        };
        let mut params = state.raw.params.clone().unwrap_or_default();
        match core::mem::replace(&mut state.stage, Stage::Queued) {
            Stage::Asking { questions, state: remembered } => {
                let mut responses = Object::new();
                for (name, question) in questions {
                    if let Question::Answered(result) = question {
                        responses.set(&name, result.into());
                    }
                }
                state.round = Object::new().with("inputResponses", responses).with_opt("requestState", remembered);
            }
            Stage::Waiting { state: remembered } => state.round = Object::new().with("requestState", remembered),
            Stage::Queued | Stage::Sent(_) => {}
            #[cfg(feature = "http")]
            Stage::Mismatched(_) => {}
        }
        for (key, value) in state.round.iter() {
            params.set(key, value.clone());
        }
        if let Err(e) = self.mirrored(&method, &params, version) {
            return self.end(call, Err(CallError::Refused(Refusal::Unencodable(e))));
        }
        let id = self.send_request(Purpose::Call(call), &method, params, version);
        if let Some(state) = self.calls.get_mut(&call) {
            state.stage = Stage::Sent(id);
            state.progress = f64::NEG_INFINITY;
        }
        self.update_clock(call);
    }

    /// A call whose answer cannot come any more is to be made once more. `reached`: its request may have run.
    #[cfg(feature = "http")]
    pub(super) fn requeue(&mut self, call: CallId, reached: bool) {
        if let Some(state) = self.calls.get_mut(&call) {
            state.stage = Stage::Queued;
            state.repeated = true;
            state.reached |= reached;
        }
    }

    /// A request of a call may have reached the server, whatever the answer to a later one says.
    #[cfg(feature = "http")]
    pub(super) fn mark_reached(&mut self, call: CallId) {
        if let Some(state) = self.calls.get_mut(&call) {
            state.reached = true;
        }
    }

    /// Whether progress of this call is wanted: by the application, or to start its clock anew.
    pub(super) fn wants_token(&self, call: CallId) -> bool {
        self.calls.get(&call).is_some_and(|state| state.raw.options.progress || self.resets(state))
    }

    fn resets(&self, call: &CallState) -> bool {
        call.raw.options.reset_on_progress.unwrap_or(self.config.reset_on_progress)
    }

    /// The answer to the request of a call.
    pub(super) fn on_called(&mut self, call: CallId, answer: Payload) {
        let Some(version) = self.version() else { return };
        let outcome = match answer {
            Payload::Error(error) if self.refreshes(call, &error) => return,
            Payload::Error(error) => Err(CallError::Rpc(error)),
            Payload::Result(json) => match version.era() {
                Era::Legacy => Ok(RawResult { json: self.learn_tools(call, json, version), version }),
                Era::Modern => match result_type(&json) {
                    Ok(ResultType::Complete) => Ok(RawResult { json: self.learn_tools(call, json, version), version }),
                    Ok(ResultType::InputRequired(result)) => return self.on_input_required(call, &result),
                    Err(e) => Err(CallError::Decode(e)),
                },
            },
        };
        self.end(call, outcome);
    }

    /// Ends a call and delivers its outcome to its owner. No other function ends one.
    pub(super) fn end(&mut self, call: CallId, outcome: Result<RawResult, CallError>) {
        let Some(state) = self.calls.remove(&call) else { return };
        for timer in [Timer::Call(call), Timer::Total(call), Timer::Round(call)] {
            self.timers.set(timer, None);
        }
        self.withdraw_of(call);
        match state.stage {
            Stage::Sent(id) => {
                // What is to be had of an answer that rests is not asked for any more.
                if let Some(exchange) = self.ids.exchange(&id).filter(|_| !self.is_duplex()) {
                    self.abandon(exchange);
                }
                self.ids.retire(&id);
            }
            Stage::Asking { questions, .. } => {
                for (_, question) in questions {
                    if let Question::Open(key) = question {
                        self.withdraw(key);
                    }
                }
            }
            Stage::Queued | Stage::Waiting { .. } => {}
            #[cfg(feature = "http")]
            Stage::Mismatched(_) => {}
        }
        let reached = state.reached || state.rounds > 0;
        let outcome = outcome.map_err(|error| if reached { may_have_run(error) } else { error });
        match state.owner {
            CallOwner::Application => {
                self.out.event(Event::Ended { call, outcome });
                self.leave_catalogue(call);
            }
            #[cfg(feature = "http")]
            CallOwner::Engine => self.on_page(outcome),
        }
    }

    pub(super) fn on_cancel(&mut self, call: CallId, reason: Option<String>) {
        self.signal_cancel(call, reason.as_deref());
        self.end(call, Err(CallError::Cancelled { reason }));
    }

    pub(super) fn on_call_timeout(&mut self, call: CallId, timer: Timer) {
        let Some(state) = self.calls.get(&call) else { return };
        let after = match (timer, state.clock) {
            (Timer::Call(_), Clock::Running { limit, .. } | Clock::Still { limit, .. }) => limit,
            _ => state.total.unwrap_or_default(),
        };
        let (awaited, sent) = self.whereabouts(state);
        self.signal_cancel(call, Some("timed out"));
        self.end(call, Err(CallError::Timeout { after, sent, awaited }));
    }

    /// What a call waits for, and whether its latest request can have reached the server.
    fn whereabouts(&self, state: &CallState) -> (Awaited, Sent) {
        match &state.stage {
            Stage::Queued => (Awaited::Start, Sent::No),
            Stage::Sent(id) => self.awaited(id),
            Stage::Asking { .. } | Stage::Waiting { .. } => (Awaited::Response, Sent::Maybe),
            #[cfg(feature = "http")]
            Stage::Mismatched(_) => (Awaited::Response, Sent::Maybe),
        }
    }

    /// Ends every call that was sent, since its answer cannot come any more. What was never sent waits for the next server.
    pub(super) fn end_sent_calls(&mut self, why: &Closed) {
        let sent = |(id, call): (&CallId, &CallState)| (!matches!(call.stage, Stage::Queued)).then_some(*id);
        let calls: Vec<CallId> = self.calls.iter().filter_map(sent).collect();
        for call in calls {
            self.end(call, Err(CallError::Closed { sent: Sent::Maybe, why: why.clone() }));
        }
    }

    /// Ends every call, since no answer can come any more.
    pub(super) fn end_all_calls(&mut self, why: &Termination) {
        while let Some((&call, state)) = self.calls.first_key_value() {
            let (_, sent) = self.whereabouts(state);
            let error = match why {
                // Too many sessions ended one after the other.
                Termination::Negotiation(_) if sent == Sent::Maybe => CallError::SessionEnded,
                Termination::Negotiation(e) => CallError::Negotiation(e.clone()),
                Termination::Requested => CallError::Closed { sent, why: Closed::Aborted },
                Termination::Closed(why) => CallError::Closed { sent, why: why.clone() },
            };
            self.end(call, Err(error));
        }
    }

    /// `notifications/progress`. The token is the id of the request it belongs to.
    pub(super) fn on_progress(&mut self, exchange: ExchangeId, params: &Object) {
        let token = params.id(meta::PROGRESS_TOKEN);
        // Servers up to 2025-11-25 may say it on any stream of the session.
        let anywhere = !self.is_duplex() && self.is_legacy();
        let on = Some(exchange).filter(|_| !anywhere);
        let call = token.as_ref().and_then(|token| self.ids.call(token, on));
        let Some(call) = call.filter(|call| self.wants_token(*call)) else {
            let token = token.map_or_else(|| "no token".to_string(), |token| token.to_string());
            return self.diagnose(DiagnosticKind::UnknownProgress, token);
        };
        let progress = match Progress::read(params) {
            Ok(progress) => progress,
            Err(e) => return self.diagnose(DiagnosticKind::BadParams, format!("notifications/progress: {e}")),
        };
        let Some(state) = self.calls.get_mut(&call) else { return };
        if progress.progress <= state.progress {
            return self.diagnose(DiagnosticKind::StaleProgress, format!("{} for {call:?}", progress.progress));
        }
        state.progress = progress.progress;
        let tell = state.raw.options.progress && progress.progress > state.told;
        state.told = state.told.max(progress.progress);
        if self.calls.get(&call).is_some_and(|state| self.resets(state)) {
            self.set_clock(call, Clock::restart);
        }
        if tell {
            self.out.event(Event::Progress { call, progress });
        }
    }

    /// A call that was told to try again without a question.
    pub(super) fn retry_later(&mut self, call: CallId, state: RawJson) {
        let Some(entry) = self.calls.get_mut(&call) else { return };
        let delay = round_delay(entry.rounds);
        entry.stage = Stage::Waiting { state };
        let jitter = self.seed.next_u64() % (delay.as_millis() as u64 / 4 + 1);
        self.timers.set(Timer::Round(call), Some(self.now + delay + Duration::from_millis(jitter)));
    }

    /// The time has come, or the last question of the round was answered.
    pub(super) fn on_round(&mut self, call: CallId) {
        if let Phase::Ready(_) = self.phase {
            self.send_call(call);
        }
    }

    /// A call's clock stands still while we owe the server an answer, or credentials.
    pub(super) fn update_clock(&mut self, call: CallId) {
        let held = self.owes_answer(call) || self.waits_for_credentials(call);
        self.set_clock(call, if held { Clock::hold } else { Clock::run });
    }

    /// As [`update_clock`](Self::update_clock) for every call: most questions do not say which call they belong to.
    pub(super) fn update_clocks(&mut self) {
        let calls: Vec<CallId> = self.calls.keys().copied().collect();
        for call in calls {
            self.update_clock(call);
        }
    }

    fn set_clock(&mut self, call: CallId, change: impl FnOnce(Clock, Instant) -> Clock) {
        let Some(state) = self.calls.get_mut(&call) else { return };
        state.clock = change(state.clock, self.now);
        let until = match state.clock {
            Clock::Running { until, .. } => Some(until),
            Clock::Unlimited | Clock::Still { .. } => None,
        };
        self.timers.set(Timer::Call(call), until);
    }
}

impl Clock {
    fn run(self, now: Instant) -> Self {
        match self {
            Self::Still { limit, left } => Self::Running { limit, until: now + left },
            other => other,
        }
    }

    fn hold(self, now: Instant) -> Self {
        match self {
            Self::Running { limit, until } => Self::Still { limit, left: until - now },
            other => other,
        }
    }

    fn restart(self, now: Instant) -> Self {
        match self {
            Self::Running { limit, .. } => Self::Running { limit, until: now + limit },
            Self::Still { limit, .. } => Self::Still { limit, left: limit },
            Self::Unlimited => Self::Unlimited,
        }
    }
}

enum ResultType {
    Complete,
    InputRequired(Object),
}

/// How long a call that was told to try again without a question waits, before jitter: doubling from 100 ms to 5 s.
fn round_delay(round: u32) -> Duration {
    Duration::from_millis(100 << round.min(6)).min(Duration::from_secs(5))
}

/// What kind of result it is. Absent counts as complete (an older server), an unknown one makes the answer invalid.
fn result_type(json: &RawJson) -> Result<ResultType, DecodeError> {
    if json.kind() != crate::rpc::JsonKind::Object {
        return Ok(ResultType::Complete);
    }
    let object = Object::read(json)?;
    match object.optional::<String>("resultType")?.as_deref() {
        None | Some("complete") => Ok(ResultType::Complete),
        Some("input_required") => Ok(ResultType::InputRequired(object)),
        Some(other) => Err(DecodeError::new(format!("unknown `resultType` {other}"))),
    }
}

/// The end of a call of which an earlier request reached the server: that the last one did not makes nothing safe.
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

fn size(params: &Object) -> usize {
    params.iter().map(|(key, value)| key.len() + value.as_bytes().len()).sum()
}
