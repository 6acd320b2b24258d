//! Calls whose result is a task: the call stays one call. The engine asks for the state of the task
//! as often as the server wants, puts each of its questions to the application once, and ends the
//! call with the outcome. On 2025-11-25 `tasks/result` has the outcome, and carries the questions.
//!
//! | the task is | the engine |
//! |---|---|
//! | working | asks again after the interval |
//! | input required | puts the new questions; sends what is answered (`tasks/update`) |
//! | completed, failed, cancelled | ends the call |
//!
//! A request of the engine that fails for a time is repeated after 1, 2, 4 … 30 s. The call itself
//! has no request then: its timeout limits each request of the engine, and its total time the
//! whole.

use super::call_table::{CallStage, Errand, InputState};
use super::ctx::Ctx;
use super::{Client, Event, Timer};
use crate::call::{CallOptions, RawCall, RawResult};
use crate::error::CallError;
use crate::input::CallId;
use crate::model::tasks::{self, Task, TaskStatus};
use crate::rpc::{DecodeError, ErrorObject, JsonKind, Object, RawJson, code};
use crate::version::{Era, ProtocolVersion};
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

/// The interval between two requests for the state of a task: without a word of the server, the
/// shortest and the longest.
const POLL: Duration = Duration::from_secs(1);
const LEAST_POLL: Duration = Duration::from_millis(50);
const MOST_POLL: Duration = Duration::from_secs(60 * 60);

/// The time of a task whose server and whose caller set none.
const TOTAL: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest delay before a request is repeated that failed for a time.
const LAST_WAIT: Duration = Duration::from_secs(30);

/// A task that a call waits for.
#[derive(Debug)]
pub(super) struct AwaitedTask {
    id: String,
    poll: Duration,
    /// The names of the questions that were put to the application.
    asked: BTreeSet<String>,
    /// Those whose answers the server does not have.
    pub(super) questions: Vec<(String, InputState)>,
    /// The request of the engine that has not ended.
    step: Option<(CallId, TaskStep)>,
    /// Number of requests in a row that failed for a time.
    failures: u32,
}

/// What a request of the engine about a task is for.
#[derive(Clone, PartialEq, Debug)]
enum TaskStep {
    Get,
    /// It carries the answers to these questions.
    Update(Vec<String>),
    /// It waits for the outcome (2025-11-25).
    Result,
}

impl TaskStep {
    const fn method(&self) -> &'static str {
        match self {
            Self::Get => "tasks/get",
            Self::Update(_) => "tasks/update",
            Self::Result => "tasks/result",
        }
    }
}

impl AwaitedTask {
    fn new(task: &Task) -> Self {
        let poll = interval(task);
        Self { id: task.id.clone(), poll, asked: BTreeSet::new(), questions: Vec::new(), step: None, failures: 0 }
    }

    /// Returns whether a request of the engine about it is open.
    pub(super) const fn has_step(&self) -> bool {
        self.step.is_some()
    }

    /// Returns the delay before the next request, with jitter that only lengthens it.
    fn delay(&self, random: u64) -> Duration {
        let delay = match self.failures {
            0 => self.poll,
            n => Duration::from_secs(1 << (n - 1).min(5)).min(LAST_WAIT).max(self.poll),
        };
        let tenth = u64::try_from(delay.as_millis() / 10).unwrap_or(u64::MAX);
        delay + Duration::from_millis(random % tenth.saturating_add(1))
    }

    /// Returns the answers that the server does not have.
    fn answers(&self) -> Vec<(String, Object)> {
        let answer = |(name, state): &(String, InputState)| match state {
            InputState::Answered(answer) => Some((name.clone(), answer.clone())),
            InputState::Open(_) => None,
        };
        self.questions.iter().filter_map(answer).collect()
    }
}

impl AwaitedTask {
    /// Withdraws its questions. Returns its request that has not ended.
    pub(super) fn withdraw(self, cx: &mut Ctx) -> Option<CallId> {
        for (_, state) in self.questions {
            if let InputState::Open(key) = state {
                cx.questions.withdraw(&mut cx.env, key);
            }
        }
        self.step.map(|(own, _)| own)
    }
}

fn interval(task: &Task) -> Duration {
    task.poll.unwrap_or(POLL).clamp(LEAST_POLL, MOST_POLL)
}

impl Client {
    /// Handles a result that is a task.
    pub(super) fn on_task(&mut self, call: CallId, result: &RawJson, version: ProtocolVersion) {
        let task = match read_created(result, version) {
            Ok(task) => task,
            Err(e) => return self.end(call, Err(CallError::Decode(e))),
        };
        let cx = &mut self.cx;
        cx.calls.leave_request(&mut cx.env, call);
        let Some(state) = cx.calls.get_mut(call) else { return };
        state.stage = CallStage::Task(AwaitedTask::new(&task).into());
        if state.total.is_none() {
            let total = task.ttl.unwrap_or(TOTAL);
            state.total = Some(total);
            cx.env.timers.set(Timer::Total(call), Some(cx.env.now + total));
        }
        cx.update_clock(call);
        cx.env.event(Event::Task { call, task });
        self.poll_later(call);
    }

    /// Sets the time of the next request about a task.
    fn poll_later(&mut self, call: CallId) {
        let cx = &mut self.cx;
        let random = cx.env.seed.next_u64();
        let Some(delay) = cx.calls.task(call).map(|task| task.delay(random)) else { return };
        cx.env.timers.set(Timer::Round(call), Some(cx.env.now + delay));
    }

    /// It is time to ask for the state of a task.
    pub(super) fn on_poll(&mut self, call: CallId) {
        self.take_step(call, TaskStep::Get);
    }

    /// The application has answered a question of a task.
    pub(super) fn on_task_answer(&mut self, call: CallId) {
        self.send_answers(call);
    }

    /// Sends the answers that the server does not have, unless a request about the task is open.
    fn send_answers(&mut self, call: CallId) -> bool {
        let answers = self.cx.calls.task(call).map(AwaitedTask::answers).unwrap_or_default();
        let names: Vec<String> = answers.into_iter().map(|(name, _)| name).collect();
        !names.is_empty() && self.take_step(call, TaskStep::Update(names))
    }

    /// Makes a request about a task, unless one is open.
    fn take_step(&mut self, call: CallId, step: TaskStep) -> bool {
        let cx = &mut self.cx;
        let Some(state) = cx.calls.get(call) else { return false };
        let CallStage::Task(task) = &state.stage else { return false };
        if task.has_step() {
            return false;
        }
        let mut params = Object::new().with("taskId", task.id.as_str());
        if let TaskStep::Update(names) = &step {
            let answers = task.answers().into_iter().filter(|(name, _)| names.contains(name));
            let answers: Object = answers.map(|(name, answer)| (name, RawJson::from(answer))).collect();
            params.set("inputResponses", answers);
        }
        // The outcome may take as long as the task.
        let timeout = if step == TaskStep::Result { Some(None) } else { state.raw.options.timeout };
        let options = CallOptions { timeout, repeatable: true, ..CallOptions::default() };
        let raw = RawCall { method: step.method().into(), params: Ok(params), options };
        cx.env.timers.set(Timer::Round(call), None);
        let own = cx.run_own(Errand::Task(call), raw);
        if let Some(task) = cx.calls.task_mut(call) {
            task.step = Some((own, step));
        }
        true
    }

    /// A request about a task has ended.
    pub(super) fn on_task_step(&mut self, call: CallId, own: CallId, outcome: Result<RawResult, CallError>) {
        let Some(task) = self.cx.calls.task_mut(call) else { return };
        let Some((_, step)) = task.step.take_if(|(open, _)| *open == own) else { return };
        match (outcome, step) {
            (Err(error), step) => self.on_failed_step(call, error, &step),
            (Ok(result), TaskStep::Get) => self.on_state(call, &result),
            (Ok(_), TaskStep::Update(names)) => {
                task.failures = 0;
                task.questions.retain(|(name, _)| !names.contains(name));
                if !self.send_answers(call) {
                    self.poll_later(call);
                }
            }
            (Ok(result), TaskStep::Result) => self.complete(call, result.json, result.version),
        }
    }

    fn on_failed_step(&mut self, call: CallId, error: CallError, step: &TaskStep) {
        match error {
            CallError::Rpc(error) if *step == TaskStep::Result && error.code != code::INTERNAL_ERROR => {
                self.end(call, Err(CallError::Rpc(error)));
            }
            CallError::Rpc(error) if error.code == code::INVALID_PARAMS && *step == TaskStep::Get => {
                let id = self.cx.calls.task(call).map(|task| task.id.clone()).unwrap_or_default();
                self.end(call, Err(CallError::TaskLost { id }));
            }
            // The next state tells which answers the server still wants.
            CallError::Rpc(error) if error.code == code::INVALID_PARAMS => self.end(call, Err(CallError::Rpc(error))),
            error if is_temporary(&error) => {
                if let Some(task) = self.cx.calls.task_mut(call) {
                    task.failures = task.failures.saturating_add(1);
                }
                self.poll_later(call);
            }
            error => self.end(call, Err(error)),
        }
    }

    /// Handles the state of a task.
    fn on_state(&mut self, call: CallId, result: &RawResult) {
        let read = Object::read(&result.json).and_then(|object| Ok((Task::read(&object, result.version)?, object)));
        let (state, object) = match read {
            Ok(read) => read,
            Err(e) => return self.end(call, Err(CallError::Decode(e))),
        };
        let Some(task) = self.cx.calls.task_mut(call) else { return };
        (task.failures, task.poll) = (0, interval(&state));
        self.cx.env.event(Event::Task { call, task: state.clone() });
        match (state.status, result.version.era()) {
            (TaskStatus::Working, _) => self.poll_later(call),
            (TaskStatus::InputRequired, Era::Modern) => self.on_task_questions(call, &object),
            (TaskStatus::InputRequired | TaskStatus::Completed | TaskStatus::Failed, Era::Legacy) => {
                self.take_step(call, TaskStep::Result);
            }
            (TaskStatus::Cancelled, _) => self.end(call, Err(CallError::Cancelled { reason: state.message })),
            (TaskStatus::Completed, Era::Modern) => match object.get("result") {
                Some(json) if json.kind() == JsonKind::Object => self.complete(call, json, result.version),
                _ => self.end(call, Err(DecodeError::new("a completed task without `result`").into())),
            },
            (TaskStatus::Failed, Era::Modern) => self.end(call, Err(failure(&object))),
        }
    }

    /// Puts the questions of a task that were not put before.
    fn on_task_questions(&mut self, call: CallId, state: &Object) {
        let requests = match state.object("inputRequests") {
            Ok(requests) => requests,
            Err(e) => return self.end(call, Err(e.into())),
        };
        let Some(task) = self.cx.calls.task_mut(call) else { return };
        // The server does not want the others any more.
        let gone: Vec<InputState> =
            task.questions.extract_if(.., |(name, _)| !requests.contains(name)).map(|(_, state)| state).collect();
        let mut fresh: Vec<(String, RawJson)> = Vec::new();
        for (name, request) in requests.iter() {
            if task.asked.insert(name.clone().into_owned()) {
                fresh.push((name.into_owned(), request));
            }
        }
        for state in gone {
            if let InputState::Open(key) = state {
                self.cx.questions.withdraw(&mut self.cx.env, key);
            }
        }
        for (name, request) in fresh {
            match self.cx.ask_for_task(call, &request) {
                Ok(key) => {
                    if let Some(task) = self.cx.calls.task_mut(call) {
                        task.questions.push((name, InputState::Open(key)));
                    }
                }
                Err(e) => {
                    self.cancel_task(call);
                    return self.end(call, Err(e));
                }
            }
        }
        self.cx.update_clock(call);
        if !self.send_answers(call) {
            self.poll_later(call);
        }
    }

    /// Tells the server that nobody waits for a task any more. A task is not cancelled by the id of
    /// its request.
    pub(super) fn cancel_task(&mut self, call: CallId) {
        let Some(id) = self.cx.calls.task(call).map(|task| task.id.clone()) else { return };
        self.cx.cancel_task_of(&id);
    }
}

impl Ctx {
    /// Cancels the task with this id. Its end is not awaited.
    pub(super) fn cancel_task_of(&mut self, id: &str) {
        if self.env.version().is_some() {
            self.run_errand(Errand::Cancellation, "tasks/cancel", Object::new().with("taskId", id));
        }
    }
}

/// Reads the task in the response to a request.
fn read_created(result: &RawJson, version: ProtocolVersion) -> Result<Task, DecodeError> {
    let object = Object::read(result)?;
    match version.era() {
        Era::Modern => Task::read(&object, version),
        Era::Legacy => Task::read(&object.object("task")?, version),
    }
}

/// Returns the error of a task that has failed.
fn failure(state: &Object) -> CallError {
    let read = || -> Result<ErrorObject, DecodeError> {
        let error = state.object("error")?;
        Ok(ErrorObject { code: error.required("code")?, message: error.required("message")?, data: error.get("data") })
    };
    match read() {
        Ok(error) => CallError::Rpc(error),
        Err(e) => CallError::Decode(e),
    }
}

/// Returns whether a later request may succeed.
fn is_temporary(error: &CallError) -> bool {
    match error {
        CallError::Rpc(error) => error.code == code::INTERNAL_ERROR,
        CallError::Http(error) => matches!(error.status, 408 | 429 | 500..=599),
        CallError::Timeout { .. }
        | CallError::Closed { .. }
        | CallError::NoResponse { .. }
        | CallError::SessionEnded => true,
        _ => false,
    }
}

/// Returns whether a result of 2025-11-25 is a task.
pub(super) fn is_created(result: &RawJson) -> bool {
    Object::read(result).is_ok_and(|object| object.object("task").is_ok_and(|task| task.contains("taskId")))
}

/// The kind of results that are tasks.
pub(super) const KIND: &str = "task";
/// The extension that they belong to.
pub(super) const EXTENSION: &str = tasks::EXTENSION;
