//! The state that every object of a client acts on: the environment, the link, and the calls with
//! what they depend on. An object owns its own state, and gets this one as an argument.

use super::answer_tasks::AnswerTasks;
use super::ask::ServerQuestions;
use super::call_table::{CallClock, CallOwner, CallStage, CallState, CallTable, Errand, InputState, size};
use super::env::ClientEnv;
use super::ids::Purpose;
use super::link::Link;
use super::tools::ToolIndex;
use super::{ClientConfig, Repeat, State, pings};
use crate::call::{CallOptions, RawCall};
use crate::error::{Refusal, WaitReason};
use crate::exchange::Sent;
use crate::input::CallId;
use crate::rpc::{EncodeError, Object};
use crate::time::Instant;
use alloc::sync::Arc;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Ctx {
    pub(super) env: ClientEnv,
    pub(super) link: Link,
    pub(super) calls: CallTable,
    pub(super) questions: ServerQuestions,
    pub(super) answer_tasks: AnswerTasks,
    /// The tools of the server, as far as the client knows them.
    pub(super) tools: ToolIndex,
}

impl Ctx {
    pub(super) fn new(config: Arc<ClientConfig>, seed: [u8; 32], now: Instant) -> Self {
        Self {
            link: Link::new(&config.target, seed),
            env: ClientEnv::new(config, seed, now),
            calls: CallTable::default(),
            questions: ServerQuestions::default(),
            answer_tasks: AnswerTasks::default(),
            tools: ToolIndex::default(),
        }
    }

    /// Returns why the client does not accept a call now.
    pub(super) fn refusal(&self, raw: &RawCall) -> Option<Refusal> {
        let limits = &self.env.config.limits.client;
        match &raw.params {
            _ if matches!(self.env.state(), State::Ending | State::Closing | State::Terminated) => {
                Some(Refusal::Closed)
            }
            _ if self.env.state() == State::NoServer => Some(Refusal::NoServer),
            Err(e) => Some(Refusal::Unencodable(e.clone())),
            Ok(_) if self.env.only_calls_tools() && raw.method != super::tools::CALL => Some(Refusal::NotInDialect),
            Ok(params) => {
                let full = self.calls.running() >= limits.max_calls || self.link.is_full(&self.env);
                let is_queued = self.env.state() != State::Ready;
                let too_much = is_queued && self.calls.queued_bytes() + size(params) > limits.max_unsent;
                (full || too_much).then_some(Refusal::Full)
            }
        }
    }

    /// Adds a call, which is not sent yet.
    pub(super) fn admit(&mut self, raw: RawCall, owner: CallOwner) -> CallId {
        let call = self.calls.insert(&mut self.env, raw, owner);
        self.update_clock(call);
        call
    }

    /// Makes a call of the engine, which may run twice. It waits in the queue while calls are held.
    pub(super) fn run_errand(&mut self, errand: Errand, method: &'static str, params: Object) -> CallId {
        let options = CallOptions { repeatable: true, ..CallOptions::default() };
        self.run_own(errand, RawCall { method: method.into(), params: Ok(params), options })
    }

    /// Makes a call of the engine.
    pub(super) fn run_own(&mut self, errand: Errand, raw: RawCall) -> CallId {
        let call = self.admit(raw, CallOwner::Engine(errand));
        if self.env.state() == State::Ready && !self.link.is_holding() {
            let sent = self.send_call(call);
            debug_assert!(sent.is_ok(), "only the call of a tool mirrors arguments");
        }
        call
    }

    /// Sends the first request of a call, or the next one of several rounds, under a new id.
    ///
    /// # Errors
    /// [`EncodeError`] if an argument cannot be mirrored. The call has to end.
    pub(super) fn send_call(&mut self, call: CallId) -> Result<(), EncodeError> {
        let Some(version) = self.env.version() else { return Ok(()) };
        let Some(state) = self.calls.get_mut(call) else { return Ok(()) };
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
            | CallStage::Task(_)
            | CallStage::Mismatched(_) => {}
        }
        params = params.with_all(&state.round);
        state.as_task = self.tools.calls_as_task(&self.env, state);
        if state.as_task {
            params.set("task", Object::new());
        }
        self.tools.mirrored(&self.env, &method, &params)?;
        let id = self.send_request(Purpose::Call(call), &method, params, version);
        if let Some(state) = self.calls.get_mut(call) {
            state.stage = CallStage::Sent(id);
            state.progress = f64::NEG_INFINITY;
        }
        self.note_asked(call);
        self.update_clock(call);
        Ok(())
    }

    /// Cancels the request of a call at the server, with the signal of the transport. `initialize`
    /// and the probe are no calls, so a client never cancels them.
    pub(super) fn signal_cancel(&mut self, call: CallId, reason: Option<&str>) {
        let Some(id) = self.calls.get(call).and_then(CallState::request).cloned() else { return };
        self.send_cancel(&id, reason);
    }

    /// Returns the state that a call waits for, and whether its latest request can have reached the
    /// server.
    pub(super) fn whereabouts(&self, state: &CallState) -> (WaitReason, Sent) {
        match &state.stage {
            CallStage::Queued => (WaitReason::Start, Sent::No),
            CallStage::Sent(id) => self.link.awaited(&self.env, id),
            CallStage::Eliciting(_) => (WaitReason::Elicitation, Sent::Maybe),
            CallStage::Asking { .. } | CallStage::Waiting | CallStage::Task(_) | CallStage::Mismatched(_) => {
                (WaitReason::Response, Sent::Maybe)
            }
        }
    }

    /// Returns whether the client may repeat a call whose response was lost.
    pub(super) fn may_repeat(&self, call: CallId) -> bool {
        let allowed = match self.env.config.repeat {
            Repeat::Safe => self.calls.get(call).is_some_and(|call| self.tools.may_run_twice(&call.raw)),
            Repeat::Always => true,
            Repeat::Never => false,
        };
        allowed && !self.calls.was_repeated(call)
    }

    /// Returns whether a call waits for credentials: for its own request, for the list of tools
    /// that it waits for, or for a request that every call waits for.
    pub(super) fn waits_for_credentials(&self, call: CallId) -> bool {
        let request = self.calls.get(self.calls.awaited(call)).and_then(CallState::request);
        self.link.waits_for_credentials(&self.env, request)
    }

    /// Holds the clock of a call while the client owes the server an answer, web pages, or
    /// credentials. Runs it otherwise.
    pub(super) fn update_clock(&mut self, call: CallId) {
        let held = self.questions.owes_answer(call)
            || self.calls.is_eliciting(call)
            // Each request about the task has a limit of its own.
            || self.calls.task(call).is_some()
            || self.waits_for_credentials(call);
        self.calls.set_clock(&mut self.env, call, if held { CallClock::hold } else { CallClock::run });
    }

    /// Updates the clock of a call. For a call of the engine, updates all clocks, since other calls
    /// may wait for it.
    pub(super) fn update_clocks_of(&mut self, call: CallId) {
        if self.calls.is_own(call) {
            self.update_clocks();
        } else {
            self.update_clock(call);
        }
    }

    /// Updates the clock of every call, as [`update_clock`](Self::update_clock) does for one. Most
    /// questions do not name their call.
    pub(super) fn update_clocks(&mut self) {
        self.calls.ids().into_iter().for_each(|call| self.update_clock(call));
    }
}
