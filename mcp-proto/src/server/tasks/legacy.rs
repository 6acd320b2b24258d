//! Tasks of 2025-11-25: `tasks/list`, a `tasks/cancel` that answers with the task, and
//! `tasks/result`, which waits for the end and carries the questions of the task to its client.

use super::commands::{CANCEL, GET};
use super::{TaskEnd, TaskEntry, TaskQuestion, TaskStage};
use crate::exchange::ExchangeId;
use crate::input::RequestKey;
use crate::model::tasks::relate;
use crate::rpc::{ErrorObject, Id, Object, RawJson, code, error_response, notification, result_response};
use crate::server::Server;
use crate::server::keys::{ReplyTo, SessionRef, TaskKey};
use crate::server::requests::Requests;
use crate::server::response::ErrorReply;
use crate::server::running::RequestStage;
use crate::server::wire::Wire;
use alloc::string::String;
use alloc::vec::Vec;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

pub(in crate::server) const LIST: &str = "tasks/list";
pub(in crate::server) const RESULT: &str = "tasks/result";

impl Server {
    /// Handles a request of 2025-11-25 about tasks, but for `tasks/result`. `None`: it is another
    /// method.
    pub(in crate::server) fn legacy_task_request(
        &mut self,
        x: ExchangeId,
        method: &str,
        params: &Object,
    ) -> Option<Result<Object, ErrorReply>> {
        match method {
            GET => Some(self.task_of(x, params).map(|(key, task)| {
                self.wire.env.tasks.becomes_known(key);
                task
            })),
            // Without admission the server does not know whose tasks it would list.
            LIST if self.shared.config.admit => Some(self.list_tasks(x, params)),
            CANCEL => Some(self.task_of(x, params).and_then(|(key, _)| self.cancel_legacy_task(key))),
            _ => None,
        }
    }

    /// Returns the task that `tasks/result` names.
    pub(in crate::server) fn awaited_task(&self, x: ExchangeId, params: &Object) -> Result<TaskKey, ErrorReply> {
        self.task_of(x, params).map(|(key, _)| key)
    }

    fn task_of(&self, x: ExchangeId, params: &Object) -> Result<(TaskKey, Object), ErrorReply> {
        let principal = self.wire.env.rights(x).principal;
        let key = self.wire.env.task_named(params, principal.as_ref())?;
        let task = self.wire.env.tasks.get(key).map(|task| task.task().write(task.version));
        Ok((key, task.unwrap_or_default()))
    }

    fn cancel_legacy_task(&mut self, key: TaskKey) -> Result<Object, ErrorReply> {
        if self.wire.env.tasks.get(key).is_some_and(TaskEntry::has_ended) {
            return Err(ErrorReply::params("the task has ended already"));
        }
        self.requests.cancel_task(&mut self.wire, key);
        Ok(self.wire.env.tasks.get(key).map(|task| task.task().write(task.version)).unwrap_or_default())
    }

    /// Returns a page of the tasks of a principal, the oldest first.
    fn list_tasks(&self, x: ExchangeId, params: &Object) -> Result<Object, ErrorReply> {
        let bad = || ErrorReply::params("the cursor is not valid");
        let cursor = params.optional::<String>("cursor").map_err(|_| bad())?;
        let after = cursor.map(|cursor| read_cursor(&cursor).ok_or_else(bad)).transpose()?;
        let principal = self.wire.env.rights(x).principal;
        let size = self.shared.config.limits.server.page_size.max(1);
        let own = self.wire.env.tasks.after(after).filter(|(_, task)| task.owner == principal);
        let mut page: Vec<(TaskKey, Object)> =
            own.take(size.saturating_add(1)).map(|(key, task)| (key, task.task().write(task.version))).collect();
        let has_more = page.len() > size;
        page.truncate(size);
        let next = page.last().filter(|_| has_more).map(|(key, _)| cursor_after(*key));
        let tasks: Vec<RawJson> = page.into_iter().map(|(_, task)| task.into()).collect();
        Ok(Object::new().with("tasks", tasks).with_opt("nextCursor", next))
    }
}

/// Returns the cursor for the tasks after this one.
fn cursor_after(key: TaskKey) -> String {
    URL_SAFE_NO_PAD.encode(key.0.to_be_bytes())
}

fn read_cursor(cursor: &str) -> Option<TaskKey> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    Some(TaskKey(u64::from_be_bytes(bytes.try_into().ok()?)))
}

impl Requests {
    /// Answers those that wait for the result of a task that has ended. Returns where.
    pub(super) fn finish_task_results(&mut self, wire: &mut Wire, key: TaskKey) -> Vec<ReplyTo> {
        let Some(TaskStage::Ended(end)) = wire.env.tasks.get(key).map(TaskEntry::stage) else { return Vec::new() };
        let (end, id) = (end.clone(), wire.env.tasks.get(key).map(|task| task.id.clone()).unwrap_or_default());
        let mut answered = Vec::new();
        for (request, own_id, reply_to) in self.waiting_for(key) {
            let (bytes, code) = written(&own_id, &id, &end);
            self.finish(wire, request, bytes, code);
            answered.push(reply_to);
        }
        answered
    }

    /// Returns the requests that wait for the result of a task.
    fn waiting_for(&self, key: TaskKey) -> Vec<(RequestKey, Id, ReplyTo)> {
        let waits = |stage: &RequestStage| matches!(stage, RequestStage::Result(task) if *task == key);
        let waiting = self.iter().filter(|(_, running)| waits(&running.stage));
        waiting.map(|(request, running)| (request, running.id.clone(), running.reply_to)).collect()
    }

    /// Sends the questions of a task that no client can see: on a request that waits for its
    /// result, or else to the session that has created it, if that can be reached now. A client
    /// that has not yet asked for the task takes a question for one of something else, and answers
    /// it by itself.
    pub(super) fn send_task_questions(&mut self, wire: &mut Wire, key: TaskKey) {
        let waiting = self.waiting_for(key).into_iter().map(|(_, _, reply_to)| reply_to);
        let own = wire.env.tasks.get(key).filter(|task| task.is_known).map(|task| ReplyTo::Task(task.session));
        let Some(to) = waiting.chain(own).find(|to| wire.session_of(*to).is_some() && wire.carries_questions(*to))
        else {
            return;
        };
        let (at, Some(session_ref)) = (wire.target_of_questions(to), wire.session_of(to)) else { return };
        for (name, request, sent) in wire.env.tasks.open_questions(key) {
            if let Some((before, id, via)) = sent {
                if wire.carries_questions(via) {
                    continue;
                }
                if let Some(session) = wire.session_mut(before) {
                    session.close_question(id);
                }
            }
            let Some(running) = wire.env.tasks.get(key).and_then(TaskEntry::request) else { return };
            let Some(session) = wire.session_mut(session_ref) else { return };
            let id = session.open_question(running);
            wire.send(at, request.write(id));
            wire.env.tasks.question_is_sent(key, &name, (session_ref, id, to));
        }
    }

    /// A client has answered a request of the engine that belongs to a task.
    pub(in crate::server) fn on_task_input(
        &mut self,
        wire: &mut Wire,
        key: TaskKey,
        (session, id): (SessionRef, i64),
        outcome: Result<RawJson, ErrorObject>,
    ) {
        let Some(TaskStage::Asking { questions, .. }) = wire.env.tasks.get(key).map(TaskEntry::stage) else { return };
        let is_it = |question: &TaskQuestion| {
            question.sent.is_some_and(|(in_session, as_id, _)| (in_session, as_id) == (session, id))
        };
        let Some(name) = questions.iter().find(|(_, question)| is_it(question)).map(|(name, _)| name.clone()) else {
            return;
        };
        self.take_task_answer(wire, key, name, outcome);
    }

    /// The questions of a task need no answer any more.
    pub(super) fn withdraw_task_questions(&mut self, wire: &mut Wire, key: TaskKey) {
        for (_, _, sent) in wire.env.tasks.open_questions(key) {
            let Some((session_ref, id, via)) = sent else { continue };
            let Some(session) = wire.session_mut(session_ref) else { continue };
            if session.close_question(id).is_some() {
                let params = Object::new().with("requestId", id);
                let at = wire.target_of_questions(via);
                wire.send(at, notification("notifications/cancelled", Some(&params)));
            }
        }
    }
}

/// Returns the response to `tasks/result`: what the request itself would have got, with the task.
pub(super) fn written(own_id: &Id, task: &str, end: &TaskEnd) -> (bytes::Bytes, Option<i64>) {
    let error = |error: &ErrorObject| (error_response(Some(own_id), error), Some(error.code));
    match end {
        TaskEnd::Outcome(Ok(result)) => {
            let mut result = Object::read(result).unwrap_or_default();
            relate(&mut result, task);
            (result_response(own_id, &result), None)
        }
        TaskEnd::Outcome(Err(why)) => error(why),
        TaskEnd::Cancelled => error(&ErrorObject::new(code::INVALID_PARAMS, "the task was cancelled")),
    }
}
