//! The ends of calls that are tasks, before the outcome. A task is not cancelled by the id of its
//! request, and before its own id has arrived it cannot be cancelled at all.

use super::read_created;
use crate::client::call_table::{CallOwner, CallStage, Errand};
use crate::client::ctx::Ctx;
use crate::client::{Client, Event, Timer};
use crate::error::CallError;
use crate::input::CallId;
use crate::model::tasks::Task;
use crate::rpc::{Object, Payload};

impl Client {
    /// Cancels the task that a call waits for.
    pub(in crate::client) fn cancel_task(&mut self, call: CallId) {
        if let Some(id) = self.cx.calls.task(call).map(|task| task.handle().id.clone()) {
            self.cx.cancel_task_of(&id);
        }
    }

    /// Ends a call for the application whose request asked for a task and has no response
    /// (2025-11-25). The request goes on, since its response has the id that cancels the task.
    /// Returns false if it is no such call.
    pub(in crate::client) fn abandon(&mut self, call: CallId, error: &CallError) -> bool {
        let cx = &mut self.cx;
        let Some(state) = cx.calls.get_mut(call) else { return false };
        if !state.as_task || !matches!(state.stage, CallStage::Sent(_)) || state.owner != CallOwner::Application {
            return false;
        }
        state.owner = CallOwner::Engine(Errand::Abandoned);
        // Another request would make another task.
        state.repeated = true;
        let limit = cx.env.config.max_total;
        cx.env.timers.set(Timer::Total(call), Some(cx.env.now + limit));
        cx.env.timers.set(Timer::Call(call), None);
        cx.questions.withdraw_of(&mut cx.env, call);
        cx.env.event(Event::Ended { call, outcome: Err(error.clone()) });
        true
    }
}

impl Ctx {
    /// Cancels the task with this id. Its end is not awaited.
    pub(super) fn cancel_task_of(&mut self, id: &str) {
        if self.env.version().is_some() {
            self.run_errand(Errand::Cancellation, "tasks/cancel", Object::new().with("taskId", id));
        }
    }

    /// Cancels the task in a response that has come after the end of its call (2026-07-28).
    pub(in crate::client) fn cancel_late_task(&mut self, payload: &Payload) {
        let (Some(version), Payload::Result(result)) = (self.env.version(), payload) else { return };
        let has_kind = |object: Object| object.str("resultType").as_deref() == Some(super::KIND);
        if self.env.config.tasks
            && self.env.is_modern()
            && Object::read(result).is_ok_and(has_kind)
            && let Ok(Task { id, .. }) = read_created(result, version)
        {
            self.cancel_task_of(&id);
        }
    }
}
