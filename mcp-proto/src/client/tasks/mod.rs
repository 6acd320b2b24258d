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
//! whole. A server that is asked seldom may tell of changes meanwhile, which never replaces the
//! requests.

mod attach;
mod awaited;
mod cancel;
mod told;

pub(super) use awaited::AwaitedTask;
pub(super) use told::{CHANGED, STATUS};

use super::call_table::{CallOwner, CallStage, Errand, InputState};
use super::{Client, Event, State, Timer};
use crate::call::{CallOptions, RawCall, RawResult};
use crate::error::CallError;
use crate::input::CallId;
use crate::model::tasks::{self, Task, TaskHandle, TaskState, TaskStatus, TaskUpdate};
use crate::rpc::{DecodeError, ErrorObject, Object, RawJson, code};
use crate::version::{Era, ProtocolVersion};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use awaited::TaskStep;
use core::time::Duration;

/// The time of a task whose server and whose caller set none.
const TOTAL: Duration = Duration::from_secs(24 * 60 * 60);

impl Client {
    /// Handles a result that is a task.
    pub(super) fn on_task(&mut self, call: CallId, result: &RawJson, version: ProtocolVersion) {
        let task = match read_created(result, version) {
            Ok(task) => task,
            Err(e) => return self.end(call, Err(CallError::Decode(e))),
        };
        let cx = &mut self.cx;
        cx.calls.leave_request(&mut cx.env, call);
        let Some(state) = cx.calls.get(call) else { return };
        if state.owner == CallOwner::Engine(Errand::Abandoned) {
            cx.cancel_task_of(&task.id);
            return self.end(call, Err(CallError::Cancelled { reason: None }));
        }
        let handle = cx.handle(&task, version);
        if state.raw.options.detach {
            let task = Some(Box::new(handle));
            return self.end(call, Ok(RawResult { task, ..RawResult::new(result.clone(), version) }));
        }
        self.await_task(call, handle);
        self.cx.tell_task(call, task);
        self.poll_later(call);
        self.listen_for_tasks();
    }

    /// Lets a call wait for a task.
    fn await_task(&mut self, call: CallId, handle: TaskHandle) {
        let cx = &mut self.cx;
        let Some(state) = cx.calls.get_mut(call) else { return };
        if state.total.is_none() {
            let total = handle.ttl.unwrap_or(TOTAL);
            state.total = Some(total);
            cx.env.timers.set(Timer::Total(call), Some(cx.env.now + total));
        }
        state.stage = CallStage::Task(AwaitedTask::new(handle).into());
        cx.update_clock(call);
    }

    /// Sets the time of the next request about a task.
    fn poll_later(&mut self, call: CallId) {
        let cx = &mut self.cx;
        let random = cx.env.seed.next_u64();
        let Some(task) = cx.calls.task(call) else { return };
        let is_told = self.subscription.tells_of_task(task.id());
        cx.env.timers.set(Timer::Round(call), Some(cx.env.now + task.delay(is_told, random)));
    }

    /// It is time to ask for the state of a task.
    pub(super) fn on_poll(&mut self, call: CallId) {
        self.take_step(call, TaskStep::Get);
    }

    /// Sends the answers that the server does not have, unless a request about the task is open.
    pub(super) fn send_answers(&mut self, call: CallId) -> bool {
        let names = self.cx.calls.task(call).map(AwaitedTask::answered).unwrap_or_default();
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
        // The outcome may take as long as the task.
        let timeout = if step == TaskStep::Result { Some(None) } else { state.raw.options.timeout };
        let options = CallOptions { timeout, repeatable: true, ..CallOptions::default() };
        let raw = RawCall { method: step.method().into(), params: Ok(task.params(&step)), options };
        cx.env.timers.set(Timer::Round(call), None);
        let own = cx.run_own(Errand::Task(call), raw);
        if let Some(task) = cx.calls.task_mut(call) {
            task.begin(own, step);
        }
        if self.state() == State::Lapsed {
            self.begin();
        }
        true
    }

    /// A request about a task has ended.
    pub(super) fn on_task_step(&mut self, call: CallId, own: CallId, outcome: Result<RawResult, CallError>) {
        let Some(task) = self.cx.calls.task_mut(call) else { return };
        let Some(step) = task.end(own) else { return };
        match (outcome, step) {
            (Err(error), step) => self.on_failed_step(call, error, &step),
            (Ok(result), TaskStep::Get) => {
                match Object::read(&result.json).and_then(|object| TaskState::read(&object, result.version)) {
                    Ok(state) => self.on_state(call, state, result.version),
                    Err(e) => self.give_up(call, CallError::Decode(e)),
                }
            }
            (Ok(_), TaskStep::Update(names)) => {
                task.are_taken(&names);
                if !self.send_answers(call) {
                    self.poll_later(call);
                }
            }
            (Ok(result), TaskStep::Result) => self.complete(call, result.json, result.version),
        }
    }

    fn on_failed_step(&mut self, call: CallId, error: CallError, step: &TaskStep) {
        match (error, step) {
            // It is the error of the call itself.
            (CallError::Rpc(error), TaskStep::Result) => self.end(call, Err(CallError::Rpc(error))),
            (CallError::Rpc(error), TaskStep::Get) if error.code == code::INVALID_PARAMS => {
                let id = self.cx.calls.task(call).map(|task| task.id().into()).unwrap_or_default();
                self.end(call, Err(CallError::TaskLost { id }));
            }
            (error, _) if is_temporary(&error) => {
                if let Some(task) = self.cx.calls.task_mut(call) {
                    task.fails();
                }
                // The next state tells which answers the server still wants.
                self.poll_later(call);
            }
            (error, _) => self.give_up(call, error),
        }
    }

    /// Ends a call whose task the client cannot follow any more.
    fn give_up(&mut self, call: CallId, error: CallError) {
        self.cancel_task(call);
        self.end(call, Err(error));
    }

    /// Handles the state of a task.
    fn on_state(&mut self, call: CallId, state: TaskState, version: ProtocolVersion) {
        let TaskState { task, outcome, questions } = state;
        let Some(awaited) = self.cx.calls.task_mut(call) else { return };
        awaited.is_seen(&task);
        let (status, message) = (task.status, task.message.clone());
        self.cx.tell_task(call, task);
        match (status, version.era(), outcome) {
            (TaskStatus::Working, Era::Legacy, _) => self.poll_later(call),
            (TaskStatus::Working | TaskStatus::InputRequired, Era::Modern, _) => {
                self.on_task_questions(call, questions);
            }
            (TaskStatus::InputRequired | TaskStatus::Completed | TaskStatus::Failed, Era::Legacy, _) => {
                self.take_step(call, TaskStep::Result);
            }
            (TaskStatus::Cancelled, _, _) => self.end(call, Err(CallError::Cancelled { reason: message })),
            (TaskStatus::Completed | TaskStatus::Failed, Era::Modern, Some(Ok(result))) => {
                self.complete(call, result, version);
            }
            (TaskStatus::Completed | TaskStatus::Failed, Era::Modern, Some(Err(error))) => {
                self.end(call, Err(CallError::Rpc(error)));
            }
            (TaskStatus::Completed | TaskStatus::Failed, Era::Modern, None) => {
                self.end(call, Err(DecodeError::new("a task that has ended without an outcome").into()));
            }
        }
    }

    /// Puts the questions of a task that were not put before, and withdraws those that it does not
    /// ask any more.
    fn on_task_questions(&mut self, call: CallId, requests: Vec<(String, RawJson)>) {
        let Some(task) = self.cx.calls.task_mut(call) else { return };
        let (gone, fresh) = task.is_asked(requests);
        for state in gone {
            if let InputState::Open(key) = state {
                self.cx.questions.withdraw(&mut self.cx.env, key);
            }
        }
        for (name, request) in fresh {
            match self.cx.ask_for_task(call, &request) {
                Ok(key) => {
                    if let Some(task) = self.cx.calls.task_mut(call) {
                        task.asks(name, key);
                    }
                }
                Err(error) => return self.give_up(call, error),
            }
        }
        self.cx.update_clock(call);
        if !self.send_answers(call) {
            self.poll_later(call);
        }
    }
}

impl super::ctx::Ctx {
    /// Returns the handle of a task of this server.
    fn handle(&self, task: &Task, version: ProtocolVersion) -> TaskHandle {
        TaskHandle::new(task, self.env.server_name(), self.env.config.target.authority(), version)
    }

    /// Tells the application of the state of the task that a call waits for.
    fn tell_task(&mut self, call: CallId, task: Task) {
        let Some(awaited) = self.calls.task(call) else { return };
        let update = TaskUpdate { task, handle: awaited.handle().clone() };
        self.env.event(Event::Task { call, update: update.into() });
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

/// Returns whether a later request may succeed.
fn is_temporary(error: &CallError) -> bool {
    match error {
        CallError::Rpc(ErrorObject { code, .. }) => *code == code::INTERNAL_ERROR,
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
