//! The table of the calls that have not ended, with their clocks.

use super::Timer;
use super::env::ClientEnv;
use super::tasks::AwaitedTask;
use crate::call::RawCall;
use crate::input::{CallId, InputKey};
use crate::rpc::{ErrorObject, Id, Object};
use crate::short_map::ShortMap;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

/// The calls that have not ended.
#[derive(Debug, Default)]
pub(super) struct CallTable {
    map: ShortMap<CallId, CallState>,
    last: u64,
    /// Number of calls of the engine.
    own: usize,
}

/// A call that has not ended.
#[derive(Debug)]
pub(super) struct CallState {
    pub(super) raw: RawCall,
    pub(super) owner: CallOwner,
    pub(super) stage: CallStage,
    /// Rounds in which the server asked for input.
    pub(super) rounds: u32,
    /// Members that the rounds add to the params of the request.
    pub(super) round: Object,
    /// Whether the call was sent a second time, after its response was lost.
    pub(super) repeated: bool,
    /// Whether the engine fetched the list of tools for the call.
    pub(super) refreshed: bool,
    /// Whether the client asked for a task as the response (2025-11-25).
    pub(super) as_task: bool,
    pub(super) reached: CallReach,
    pub(super) clock: CallClock,
    /// The limit of the total time. The timeout error reports it.
    pub(super) total: Option<Duration>,
    /// The last progress of the current request.
    pub(super) progress: f64,
    /// The last progress that the application received. Each round restarts the progress on the
    /// wire, but not the progress that the application sees.
    pub(super) told: f64,
}

/// Whether any request of a call may have reached the server, regardless of the latest one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum CallReach {
    No,
    Maybe,
    /// One has, and the call was sent again after the user had opened the web pages that it needs.
    Elicited,
}

/// The owner of a call, which receives its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CallOwner {
    /// The application. The end of the call is an event.
    Application,
    /// The engine. The application sees nothing of the call.
    Engine(Errand),
}

impl CallOwner {
    /// Returns whether the engine made the call.
    const fn is_engine(self) -> bool {
        match self {
            Self::Application | Self::Engine(Errand::Abandoned) => false,
            Self::Engine(_) => true,
        }
    }
}

/// The purpose of a call of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Errand {
    /// A page of the list of tools.
    Page,
    /// The state of the task that this call waits for, answers to its questions, or its outcome.
    Task(CallId),
    /// The end of a task that no call waits for.
    Cancellation,
    /// The request of a call that has ended for the application. Its response may be a task, which
    /// is cancelled then.
    Abandoned,
    /// A subscription to a resource, or its end.
    Resource,
    /// The level of log messages.
    Level,
}

/// The stage of a call.
#[derive(Debug)]
pub(super) enum CallStage {
    /// The call waits for the end of the negotiation.
    Queued,
    /// The client sent the request with this id.
    Sent(Id),
    /// The server asked for input. Each input request has a name and is open or answered.
    Asking { questions: Vec<(String, InputState)> },
    /// The server asked the client to try again later. A timer is armed.
    Waiting,
    /// The server needs these web pages to be complete. The user has to consent to each first.
    Eliciting(Vec<ElicitedPage>),
    /// The result is a task, which has not ended.
    Task(Box<AwaitedTask>),
    /// The server refused the request because of its header fields. The client sends it once more
    /// after it has fetched the list of tools again.
    Mismatched(Box<ErrorObject>),
}

/// A web page that a call needs.
#[derive(Debug)]
pub(super) struct ElicitedPage {
    pub(super) id: String,
    /// The open question for the consent of the user.
    pub(super) consent: Option<InputKey>,
    pub(super) is_complete: bool,
}

/// The state of one input request of a round.
#[derive(Debug)]
pub(super) enum InputState {
    Open(InputKey),
    Answered(Object),
}

impl CallState {
    /// Returns the id of the current request.
    pub(super) const fn request(&self) -> Option<&Id> {
        match &self.stage {
            CallStage::Sent(id) => Some(id),
            CallStage::Queued
            | CallStage::Asking { .. }
            | CallStage::Waiting
            | CallStage::Eliciting(_)
            | CallStage::Task(_)
            | CallStage::Mismatched(_) => None,
        }
    }
}

/// The clock of a call. It runs towards a deadline, is held with time left, or has no limit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum CallClock {
    Unlimited,
    Running { limit: Duration, until: Instant },
    Still { limit: Duration, left: Duration },
}

impl CallTable {
    /// Adds a call, whose clock is held. Returns its id.
    pub(super) fn insert(&mut self, env: &mut ClientEnv, raw: RawCall, owner: CallOwner) -> CallId {
        let call = self.pass();
        let resets = raw.options.reset_on_progress.unwrap_or(env.config.reset_on_progress);
        let total = raw.options.max_total.or(resets.then_some(env.config.max_total));
        env.timers.set(Timer::Total(call), total.map(|total| env.now + total));
        let limit = raw.options.timeout.unwrap_or(env.config.timeout);
        let clock = limit.map_or(CallClock::Unlimited, |limit| CallClock::Still { limit, left: limit });
        let state = CallState {
            raw,
            owner,
            stage: CallStage::Queued,
            rounds: 0,
            round: Object::new(),
            repeated: false,
            refreshed: false,
            as_task: false,
            reached: CallReach::No,
            clock,
            total,
            progress: f64::NEG_INFINITY,
            told: f64::NEG_INFINITY,
        };
        self.own += usize::from(owner.is_engine());
        self.map.insert(call, state);
        call
    }

    /// Returns the id of a call that has ended already.
    pub(super) const fn pass(&mut self) -> CallId {
        self.last += 1;
        CallId(self.last)
    }

    pub(super) fn get(&self, call: CallId) -> Option<&CallState> {
        self.map.get(&call)
    }

    pub(super) fn get_mut(&mut self, call: CallId) -> Option<&mut CallState> {
        self.map.get_mut(&call)
    }

    pub(super) fn remove(&mut self, call: CallId) -> Option<CallState> {
        let state = self.map.remove(&call)?;
        self.own -= usize::from(state.owner.is_engine());
        Some(state)
    }

    /// Returns the number of calls of the application, including those that it has abandoned.
    pub(super) fn running(&self) -> usize {
        self.map.len() - self.own
    }

    /// Returns the oldest call.
    pub(super) fn first(&self) -> Option<(CallId, &CallState)> {
        self.map.iter().next().map(|(call, state)| (*call, state))
    }

    /// Returns the calls, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (CallId, &CallState)> {
        self.map.iter().map(|(call, state)| (*call, state))
    }

    /// Returns the ids of the calls, the oldest first.
    pub(super) fn ids(&self) -> Vec<CallId> {
        self.map.keys().copied().collect()
    }

    /// Returns the ids of the calls that are, or are not, queued.
    pub(super) fn queued(&self, is_queued: bool) -> Vec<CallId> {
        let found = self.iter().filter(|(_, state)| matches!(state.stage, CallStage::Queued) == is_queued);
        found.map(|(call, _)| call).collect()
    }

    /// Returns the calls that wait for the response to a request, with its id.
    pub(super) fn sent(&self) -> Vec<(CallId, Id)> {
        let sent = |(call, state): (CallId, &CallState)| match &state.stage {
            CallStage::Sent(id) => Some((call, id.clone())),
            _ => None,
        };
        self.iter().filter_map(sent).collect()
    }

    /// Returns whether the engine itself made this call.
    pub(super) fn is_own(&self, call: CallId) -> bool {
        self.get(call).is_some_and(|state| matches!(state.owner, CallOwner::Engine(_)))
    }

    /// Returns whether a call has ended for the application, and its request has not.
    pub(super) fn is_abandoned(&self, call: CallId) -> bool {
        self.get(call).is_some_and(|state| state.owner == CallOwner::Engine(Errand::Abandoned))
    }

    /// Returns the calls of the engine that belong to a session.
    pub(super) fn errands(&self) -> Vec<CallId> {
        let is_errand = |state: &CallState| matches!(state.owner, CallOwner::Engine(Errand::Resource | Errand::Level));
        let found = self.iter().filter(|(_, state)| self.own > 0 && is_errand(state));
        found.map(|(call, _)| call).collect()
    }

    /// Lets a call wait for the list of tools, once.
    pub(super) fn mismatch(&mut self, call: CallId, error: ErrorObject) {
        if let Some(state) = self.get_mut(call) {
            state.stage = CallStage::Mismatched(error.into());
            state.refreshed = true;
        }
    }

    /// Returns the calls that wait for the list of tools.
    pub(super) fn mismatched(&self) -> Vec<CallId> {
        let found = self.iter().filter(|(_, state)| matches!(state.stage, CallStage::Mismatched(_)));
        found.map(|(call, _)| call).collect()
    }

    /// Returns the call that must end before this call continues: that for the list of tools, or
    /// this call itself.
    pub(super) fn awaited(&self, call: CallId) -> CallId {
        let waits = self.get(call).is_some_and(|state| matches!(state.stage, CallStage::Mismatched(_)));
        let page = self.iter().find(|(_, state)| waits && state.owner == CallOwner::Engine(Errand::Page));
        page.map_or(call, |(page, _)| page)
    }

    /// Changes the stage of a call. Returns the stage before.
    pub(super) fn set_stage(&mut self, call: CallId, stage: CallStage) -> Option<CallStage> {
        self.get_mut(call).map(|state| core::mem::replace(&mut state.stage, stage))
    }

    /// Retires the id of a request to which the server has responded. The next request of the call
    /// has another id.
    pub(super) fn leave_request(&self, env: &mut ClientEnv, call: CallId) {
        if let Some(CallStage::Sent(id)) = self.get(call).map(|state| &state.stage) {
            env.ids.retire(id);
        }
    }

    /// Stores the answer to a question of a round. Returns whether it was the last one.
    pub(super) fn answer_round(&mut self, call: CallId, key: InputKey, result: &Object) -> bool {
        let questions = match self.get_mut(call).map(|state| &mut state.stage) {
            Some(CallStage::Asking { questions }) => questions,
            Some(CallStage::Task(task)) => &mut task.questions,
            _ => return false,
        };
        let mut open = false;
        for (_, question) in questions {
            match question {
                InputState::Open(k) if *k == key => *question = InputState::Answered(result.clone()),
                InputState::Open(_) => open = true,
                InputState::Answered(_) => {}
            }
        }
        !open
    }

    /// Returns the task that a call waits for.
    pub(super) fn task(&self, call: CallId) -> Option<&AwaitedTask> {
        match &self.get(call)?.stage {
            CallStage::Task(task) => Some(task),
            _ => None,
        }
    }

    pub(super) fn task_mut(&mut self, call: CallId) -> Option<&mut AwaitedTask> {
        match &mut self.get_mut(call)?.stage {
            CallStage::Task(task) => Some(task),
            _ => None,
        }
    }

    /// Returns the web pages that a call waits for.
    pub(super) fn pages_mut(&mut self, call: CallId) -> impl Iterator<Item = &mut ElicitedPage> {
        let pages = match self.get_mut(call).map(|state| &mut state.stage) {
            Some(CallStage::Eliciting(pages)) => Some(pages),
            _ => None,
        };
        pages.into_iter().flatten()
    }

    fn pages(&self) -> impl Iterator<Item = &ElicitedPage> {
        let pages = self.map.values().filter_map(|state| match &state.stage {
            CallStage::Eliciting(pages) => Some(pages),
            _ => None,
        });
        pages.flatten()
    }

    /// Returns the number of web pages that calls wait for.
    pub(super) fn awaited_pages(&self) -> usize {
        self.pages().count()
    }

    /// Returns whether a call waits for the web page with this id.
    pub(super) fn awaits_page(&self, id: &str) -> bool {
        self.pages().any(|page| page.id == id)
    }

    /// Returns the calls that wait for web pages.
    pub(super) fn eliciting(&self) -> Vec<CallId> {
        self.iter().map(|(call, _)| call).filter(|call| self.is_eliciting(*call)).collect()
    }

    /// Returns whether a call waits for web pages.
    pub(super) fn is_eliciting(&self, call: CallId) -> bool {
        self.get(call).is_some_and(|state| matches!(state.stage, CallStage::Eliciting(_)))
    }

    /// Returns the bytes of the params of all calls.
    pub(super) fn queued_bytes(&self) -> usize {
        self.map.values().filter_map(|call| call.raw.params.as_ref().ok()).map(size).sum()
    }

    /// Queues a call again whose response can no longer arrive. `reached`: the server may have run
    /// its request.
    pub(super) fn requeue(&mut self, call: CallId, reached: bool) {
        if let Some(state) = self.map.get_mut(&call) {
            state.stage = CallStage::Queued;
            state.repeated = true;
            state.reached = state.reached.max(if reached { CallReach::Maybe } else { CallReach::No });
        }
    }

    /// Records that a request of a call may have reached the server, regardless of the response to
    /// a later request.
    pub(super) fn mark_reached(&mut self, call: CallId) {
        if let Some(state) = self.map.get_mut(&call) {
            state.reached = state.reached.max(CallReach::Maybe);
        }
    }

    /// Returns whether the call was sent a second time, or has ended.
    pub(super) fn was_repeated(&self, call: CallId) -> bool {
        self.map.get(&call).is_none_or(|call| call.repeated)
    }

    /// Returns whether the call needs progress notifications, for the application or to restart its
    /// clock.
    pub(super) fn wants_token(&self, env: &ClientEnv, call: CallId) -> bool {
        self.map.get(&call).is_some_and(|state| state.raw.options.progress || Self::resets(env, state))
    }

    pub(super) fn resets(env: &ClientEnv, call: &CallState) -> bool {
        call.raw.options.reset_on_progress.unwrap_or(env.config.reset_on_progress)
    }

    /// Delays a call that the server asked to try again without a question.
    pub(super) fn retry_later(&mut self, env: &mut ClientEnv, call: CallId, round: Object) {
        let Some(entry) = self.map.get_mut(&call) else { return };
        let delay = round_delay(entry.rounds);
        entry.stage = CallStage::Waiting;
        entry.round = round;
        let jitter = env.seed.next_u64() % (delay.as_millis() as u64 / 4 + 1);
        env.timers.set(Timer::Round(call), Some(env.now + delay + Duration::from_millis(jitter)));
    }

    /// Changes the clock of a call and its timer.
    pub(super) fn set_clock(
        &mut self,
        env: &mut ClientEnv,
        call: CallId,
        change: impl FnOnce(CallClock, Instant) -> CallClock,
    ) {
        let Some(state) = self.map.get_mut(&call) else { return };
        state.clock = change(state.clock, env.now);
        let until = match state.clock {
            CallClock::Running { until, .. } => Some(until),
            CallClock::Unlimited | CallClock::Still { .. } => None,
        };
        env.timers.set(Timer::Call(call), until);
    }
}

impl CallClock {
    pub(super) fn run(self, now: Instant) -> Self {
        match self {
            Self::Still { limit, left } => Self::Running { limit, until: now + left },
            other => other,
        }
    }

    pub(super) fn hold(self, now: Instant) -> Self {
        match self {
            Self::Running { limit, until } => Self::Still { limit, left: until - now },
            other => other,
        }
    }

    pub(super) fn restart(self, now: Instant) -> Self {
        match self {
            Self::Running { limit, .. } => Self::Running { limit, until: now + limit },
            Self::Still { limit, .. } => Self::Still { limit, left: limit },
            Self::Unlimited => Self::Unlimited,
        }
    }
}

/// Returns the delay before a retry that the server requested without a question, before jitter. It
/// doubles from 100 ms to 5 s.
fn round_delay(round: u32) -> Duration {
    Duration::from_millis(100 << round.min(6)).min(Duration::from_secs(5))
}

pub(super) fn size(params: &Object) -> usize {
    params.slices().map(|(key, value)| key.len() + value.len()).sum()
}
