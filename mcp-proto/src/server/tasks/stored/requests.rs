//! Requests about tasks that the store has.

use super::super::record::{StoredStage, TaskRecord};
use super::super::{CANCEL, GET, LIST, RESULT, TaskEnd, TaskEntry, UPDATE, legacy};
use super::{AWAY, TaskChange, UNKNOWN};
use crate::error::{DiagnosticKind, excerpt};
use crate::exchange::ExchangeId;
use crate::input::{InputAnswer, RequestKey};
use crate::rpc::{ErrorObject, Object, RawJson, code, error_response, result_response};
use crate::server::running::{RequestStage, ServedRequest};
use crate::server::store::{Incarnation, PrincipalDigest, StoreError, StoreReply, StoreRequest, TaskDigest, Then};
use crate::server::{IncomingRequest, Server};
use crate::version::Era;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;

impl Server {
    /// Returns whether a request about a task has to ask the store.
    pub(in crate::server) fn asks_about_task(&self, x: ExchangeId, method: &str, params: &Object) -> bool {
        let env = &self.wire.env;
        let principal = env.rights(x).principal;
        let id = params.required_str("taskId").ok();
        let task = id.and_then(|id| env.tasks.find(&id, principal.as_ref()));
        // What a cancellation ends is the task of the store.
        let is_here = method != CANCEL && task.is_some_and(|(_, task)| env.shows_task(task));
        self.shared.config.shares_tasks() && env.node.is_some() && !is_here
    }

    /// Asks the store about the tasks of requests that have just begun.
    pub(in crate::server) fn ask_about_tasks(&mut self) {
        self.wire.env.take_asking().into_iter().for_each(|request| self.ask_about_task(request));
    }

    /// Asks the store about the task of a request that waits for it.
    pub(in crate::server) fn ask_about_task(&mut self, key: RequestKey) {
        let Some(incoming) = self.requests.get(key).and_then(ServedRequest::request) else { return };
        let request = match self.task_query(incoming) {
            Ok(request) => request,
            Err(error) => return self.refuse_task_request(key, &error),
        };
        if !self.wire.env.ask_store(request, Then::TaskRead(key)) {
            self.refuse_task_request(key, &ErrorObject::new(code::INTERNAL_ERROR, AWAY));
        }
    }

    fn task_query(&self, incoming: &IncomingRequest) -> Result<StoreRequest, ErrorObject> {
        let bad = |text: &str| ErrorObject::new(code::INVALID_PARAMS, text);
        if incoming.method == LIST {
            let cursor = incoming.params.optional::<String>("cursor").map_err(|_| bad("the cursor is not valid"))?;
            let after = cursor.map(|cursor| read_cursor(&cursor).ok_or_else(|| bad("the cursor is not valid")));
            let principal = incoming.context.principal.as_ref().map(PrincipalDigest::of);
            let count = self.shared.config.limits.server.page_size.max(1).saturating_add(1);
            let principal = principal.ok_or_else(|| bad("the tasks belong to a principal, and there is none"))?;
            return Ok(StoreRequest::ListTasks { principal, after: after.transpose()?, count });
        }
        let id = incoming.params.required_str("taskId").map_err(|e| bad(&format!("{e}")))?;
        // An id that no server has made never reaches the store.
        match self.shared.keys.has_made_session(&id) {
            true => Ok(StoreRequest::GetTask { task: TaskDigest::of(&id) }),
            false => Err(bad(UNKNOWN)),
        }
    }

    pub(super) fn refuse_task_request(&mut self, key: RequestKey, error: &ErrorObject) {
        let Some(running) = self.requests.get(key) else { return };
        let (reply_to, bytes) = (running.reply_to, error_response(Some(&running.id), error));
        self.requests.finish(&mut self.wire, key, bytes, Some(error.code));
        self.end_if_quiet(reply_to);
    }

    pub(super) fn answer_task_request(&mut self, key: RequestKey, result: Object) {
        let Some(running) = self.requests.get(key) else { return };
        let Some(incoming) = running.request() else { return };
        let (reply_to, version) = (running.reply_to, running.version);
        let result = match version.era() {
            Era::Modern => self.shared.complete(version, &incoming.method, result, "complete"),
            Era::Legacy => result,
        };
        let bytes = result_response(&running.id, &result);
        self.requests.finish(&mut self.wire, key, bytes, None);
        self.end_if_quiet(reply_to);
    }

    /// The store has returned what a request about tasks asks for, or has not.
    pub(in crate::server) fn task_is_read(&mut self, key: RequestKey, result: Result<StoreReply, StoreError>) {
        match result {
            Ok(StoreReply::Task { version, record, owner }) => match TaskRecord::decode(&record) {
                Ok(record) => self.go_on_with_task(key, record, version, owner),
                Err(why) => {
                    self.wire.env.diagnose(DiagnosticKind::RecordCorrupt, &format!("{why}"));
                    self.refuse_task_request(key, &ErrorObject::new(code::INVALID_PARAMS, UNKNOWN));
                }
            },
            Ok(StoreReply::Tasks(records)) => self.answer_list(key, &records),
            Ok(_) => self.refuse_task_request(key, &ErrorObject::new(code::INVALID_PARAMS, UNKNOWN)),
            Err(_) => self.refuse_task_request(key, &ErrorObject::new(code::INTERNAL_ERROR, AWAY)),
        }
    }

    fn answer_list(&mut self, key: RequestKey, records: &[Bytes]) {
        let size = self.shared.config.limits.server.page_size.max(1);
        let records: Vec<TaskRecord> = records.iter().filter_map(|record| TaskRecord::decode(record).ok()).collect();
        let has_more = records.len() > size;
        let page = &records[..records.len().min(size)];
        let next = page.last().filter(|_| has_more).map(|last| cursor_after(last.created_millis(), &last.id));
        let tasks: Vec<RawJson> =
            page.iter().map(|record| TaskEntry::view(record).task().write(record.version).into()).collect();
        self.answer_task_request(key, Object::new().with("tasks", tasks).with_opt("nextCursor", next));
    }

    /// Serves a request about a task from its record in the store.
    pub(super) fn go_on_with_task(
        &mut self,
        key: RequestKey,
        record: TaskRecord,
        version: u64,
        owner: Option<Incarnation>,
    ) {
        let Some(incoming) = self.requests.get(key).and_then(ServedRequest::request) else { return };
        let method = incoming.method.clone();
        if incoming.context.principal != record.owner {
            return self.refuse_task_request(key, &ErrorObject::new(code::INVALID_PARAMS, UNKNOWN));
        }
        if let Some(owner) = owner.filter(|owner| !self.wire.env.is_known_member(*owner)) {
            // Its server may be lost.
            let then = Then::TaskOwner(key, Box::new((record, version, owner)));
            if !self.wire.env.ask_store(StoreRequest::IsMember { node: owner }, then) {
                self.refuse_task_request(key, &ErrorObject::new(code::INTERNAL_ERROR, AWAY));
            }
            return;
        }
        if let Some(owner) = owner {
            if self.wire.env.has_lost(&record, owner) {
                return self.settle_lost(key, record, version);
            }
            self.wire.env.doubt_task(&record, owner);
        }
        let unix = self.wire.env.now.unix(self.shared.config.origin_unix);
        if record.is_over(unix) {
            return self.end_late_task(key, record, version);
        }
        let is_modern = record.version.era() == Era::Modern;
        match &*method {
            GET if is_modern => self.answer_task_request(key, TaskEntry::view(&record).detailed()),
            GET => self.answer_task_request(key, TaskEntry::view(&record).task().write(record.version)),
            CANCEL if record.has_ended() && is_modern => self.answer_task_request(key, Object::new()),
            CANCEL if record.has_ended() => {
                let error = ErrorObject::new(code::INVALID_PARAMS, "the task has ended already");
                self.refuse_task_request(key, &error);
            }
            CANCEL => self.change_task(key, record, version, TaskChange::Cancel, Some(TaskEnd::Cancelled)),
            UPDATE => self.update_task(key, record, version),
            RESULT => self.await_task(key, record, version),
            _ => self.refuse_task_request(key, &ErrorObject::new(code::INTERNAL_ERROR, UNKNOWN)),
        }
    }

    /// The time of a task is over.
    pub(super) fn end_late_task(&mut self, key: RequestKey, record: TaskRecord, version: u64) {
        let error = ErrorObject::new(code::INTERNAL_ERROR, "the time of the task is over");
        self.change_task(key, record, version, TaskChange::Settle, Some(TaskEnd::Outcome(Err(error))));
    }

    /// Changes a task for a request, which goes on once the store has the change.
    pub(super) fn change_task(
        &mut self,
        key: RequestKey,
        mut record: TaskRecord,
        version: u64,
        change: TaskChange,
        end: Option<TaskEnd>,
    ) {
        let unix = self.wire.env.now.unix(self.shared.config.origin_unix);
        record.updated = unix;
        if let Some(end) = end {
            record.end(end, unix);
        }
        let owner = match change {
            TaskChange::Adopt => self.wire.env.node.as_ref().map(|node| node.own()),
            TaskChange::Settle | TaskChange::Cancel | TaskChange::Answer => None,
        };
        let then = Then::TaskChange(key, Box::new((record.clone(), version + 1)), change);
        if !self.wire.env.put_task(&record, record.encode(), version + 1, owner, then) {
            self.refuse_task_request(key, &ErrorObject::new(code::INTERNAL_ERROR, AWAY));
        }
    }

    /// The store has the change of a task that a request has made, or has not.
    pub(in crate::server) fn task_is_changed(
        &mut self,
        key: RequestKey,
        record: TaskRecord,
        version: u64,
        change: TaskChange,
        result: Result<StoreReply, StoreError>,
    ) {
        let digest = TaskDigest::of(&record.id);
        match (result, change) {
            (Ok(StoreReply::Done), change) => {
                self.forget_copy(&record.id);
                self.task_is_news(digest);
                match change {
                    TaskChange::Settle => self.go_on_with_task(key, record, version, None),
                    TaskChange::Answer => self.answer_task_request(key, Object::new()),
                    TaskChange::Cancel if record.version.era() == Era::Modern => {
                        self.answer_task_request(key, Object::new());
                    }
                    TaskChange::Cancel => {
                        self.answer_task_request(key, TaskEntry::view(&record).task().write(record.version));
                    }
                    TaskChange::Adopt => self.adopt_for(key, record, version),
                }
            }
            // Another server has changed the task first: the request uses its version.
            (other @ Ok(_), _) => self.task_is_read(key, other),
            (Err(_), _) => {
                // The store may have it: a copy here is written once more, or is none.
                if let Some(task) = self.wire.env.tasks.key_of(&record.id) {
                    self.wire.env.task_is_unstored(task);
                }
                self.refuse_task_request(key, &ErrorObject::new(code::INTERNAL_ERROR, AWAY));
            }
        }
    }

    /// Takes the answers of a client to the questions of a task.
    fn update_task(&mut self, key: RequestKey, mut record: TaskRecord, version: u64) {
        let Some(incoming) = self.requests.get(key).and_then(ServedRequest::request) else { return };
        let bad = |text: String| ErrorObject::new(code::INVALID_PARAMS, text);
        let responses = match incoming.params.object("inputResponses") {
            Ok(responses) => responses,
            Err(e) => return self.refuse_task_request(key, &bad(format!("{e}"))),
        };
        let StoredStage::Asking { questions, state } = &mut record.stage else {
            return self.answer_task_request(key, Object::new());
        };
        let mut is_changed = false;
        for (name, answer) in responses.iter() {
            let Some(question) = questions.get(&*name) else { continue };
            if let Err(e) = InputAnswer::read(question.method, &answer) {
                let name = excerpt(&name);
                return self.refuse_task_request(key, &bad(format!("`inputResponses`: `{name}`: {e}")));
            }
            questions.remove(&*name);
            record.request.inputs.insert(name.into_owned(), Ok(answer.detached()));
            is_changed = true;
        }
        if !is_changed {
            return self.answer_task_request(key, Object::new());
        }
        if !questions.is_empty() {
            return self.change_task(key, record, version, TaskChange::Answer, None);
        }
        record.request.state = state.take();
        record.stage = StoredStage::Working;
        self.change_task(key, record, version, TaskChange::Adopt, None);
    }

    /// A client of 2025-11-25 waits for the end of a task, and for its questions.
    fn await_task(&mut self, key: RequestKey, record: TaskRecord, version: u64) {
        let stage = self.requests.get(key).map(|running| &running.stage);
        let is_displaced = matches!(stage, Some(RequestStage::Displaced));
        match &record.stage {
            StoredStage::Ended(end) => {
                let Some(running) = self.requests.get(key) else { return };
                let (reply_to, own_id) = (running.reply_to, running.id.clone());
                let (bytes, code) = legacy::written(&own_id, &record.id, end);
                self.requests.finish(&mut self.wire, key, bytes, code);
                self.end_if_quiet(reply_to);
            }
            StoredStage::Asking { .. } if !is_displaced => {
                self.change_task(key, record, version, TaskChange::Adopt, None);
            }
            StoredStage::Asking { .. } | StoredStage::Working => {
                let digest = TaskDigest::of(&record.id);
                self.wire.env.tasks.awaited.entry(digest).or_default().insert(key);
                self.wire.env.look_at_tasks();
            }
        }
    }

    /// Looks again at the tasks that clients wait for.
    pub(in crate::server) fn on_awaited_tasks(&mut self) {
        let awaited = core::mem::take(&mut self.wire.env.tasks.awaited);
        awaited.into_values().flatten().for_each(|request| self.ask_about_task(request));
    }
}

/// Returns the cursor for the tasks after this one.
fn cursor_after(created: u64, id: &str) -> String {
    format!("{created}-{}", TaskDigest::of(id))
}

fn read_cursor(cursor: &str) -> Option<(u64, TaskDigest)> {
    let (created, task) = cursor.split_once('-')?;
    Some((created.parse().ok()?, TaskDigest::parse(task).ok()?))
}
