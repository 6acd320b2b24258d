//! What servers tell of tasks without being asked: `notifications/tasks` of a subscription
//! (2026-07-28), and `notifications/tasks/status` (2025-11-25).

use super::AwaitedTask;
use super::awaited::TaskStep;
use crate::client::call_table::CallTable;
use crate::client::{Client, State};
use crate::error::DiagnosticKind;
use crate::exchange::ExchangeId;
use crate::input::CallId;
use crate::model::tasks::TaskState;
use crate::rpc::Object;
use crate::version::{Era, ProtocolVersion};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;

/// The notification of 2026-07-28.
pub(in crate::client) const CHANGED: &str = "notifications/tasks";
/// The notification of 2025-11-25.
pub(in crate::client) const STATUS: &str = "notifications/tasks/status";

impl Client {
    /// Watches the tasks that are asked for seldom, if the server tells of them (2026-07-28).
    pub(in crate::client) fn listen_for_tasks(&mut self) {
        let cx = &mut self.cx;
        if !cx.env.is_modern() || !cx.env.config.tasks || cx.env.state() != State::Ready {
            return;
        }
        let tasks = cx.calls.watched_tasks();
        // A task that has ended stays in the filter as long as another one is watched.
        let watched = &cx.env.watched_tasks;
        if !watched.is_superset(&tasks) || tasks.is_empty() != watched.is_empty() {
            cx.env.watched_tasks = tasks;
            self.subscription.change(cx);
        }
    }

    /// Handles a notification about a task. It is only a hint on 2025-11-25, and the state itself
    /// on 2026-07-28.
    pub(in crate::client) fn on_task_told(&mut self, exchange: ExchangeId, method: &str, params: &Object) {
        let Some(version) = self.cx.env.version() else { return };
        if version.era() == Era::Modern && !self.subscription.is_open_on(&self.cx, exchange, params) {
            return self.cx.env.diagnose(DiagnosticKind::BadSubscription, format!("{method} of no subscription"));
        }
        let state = match TaskState::read(params, version) {
            Ok(state) => state,
            Err(e) => return self.cx.env.diagnose(DiagnosticKind::BadParams, format!("{method}: {e}")),
        };
        if let Some(call) = self.cx.calls.call_of_task(&state.task.id) {
            self.on_told_state(call, state, version);
        }
    }

    fn on_told_state(&mut self, call: CallId, state: TaskState, version: ProtocolVersion) {
        // The request of the engine that is open decides: what it brings is newer, or the same.
        if self.cx.calls.task(call).is_some_and(AwaitedTask::has_step) {
            return;
        }
        match version.era() {
            Era::Modern => self.on_state(call, state, version),
            Era::Legacy => drop(self.take_step(call, TaskStep::Get)),
        }
    }
}

impl CallTable {
    /// Returns the ids of the tasks that are worth a subscription.
    fn watched_tasks(&self) -> BTreeSet<String> {
        let tasks = self.ids().into_iter().filter_map(|call| self.task(call));
        tasks.filter(|task| task.wants_to_be_told()).map(|task| task.id().into()).collect()
    }

    fn call_of_task(&self, id: &str) -> Option<CallId> {
        self.ids().into_iter().find(|call| self.task(*call).is_some_and(|task| task.id() == id))
    }
}
