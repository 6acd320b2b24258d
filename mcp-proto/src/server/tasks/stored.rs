//! Tasks that several servers share through a store. The store has the truth: a server writes each
//! change of a task that it works on under the next version, and drops the task if another one has
//! changed it. A task that waits for its client, or has ended, belongs to no server.
//!
//! ```text
//!             into_task              asks               last answer
//!   request ─────────────▶ working ───────────▶ asking ─────────────▶ working
//!                        owner: here           no owner            owner: where it came
//! ```
//!
//! A request about a task waits until the store has replied. Whoever finds a task whose server is
//! lost ends it, or runs its handler again if that may be.

use super::entry::NewTask;
use super::record::{StoredStage, TaskRecord, TaskRequest};
use super::{RESULT, TaskEnd, TaskEntry, TaskQuestion, TaskSlot, TaskStage};
use crate::error::DiagnosticKind;
use crate::exchange::{ExchangeId, Peer};
use crate::input::{InputAnswer, LegacyInputRequest, RequestKey};
use crate::rpc::{ErrorObject, Id, Object, RawJson, code, error_response, result_response};
use crate::server::client::{Bound, ClientIdentity};
use crate::server::env::ServerEnv;
use crate::server::incoming::{FirstRound, Origin};
use crate::server::keys::{ReplyTo, ServerTimer, TaskKey};
use crate::server::requests::Requests;
use crate::server::response::SerializedResponse;
use crate::server::running::{RequestEntry, RequestStage, ServedRequest, TaskPlace};
use crate::server::state_keys::KeyAge;
use crate::server::store::{
    Incarnation, News, PrincipalDigest, StoreError, StoreReply, StoreRequest, TaskDigest, Then,
};
use crate::server::wire::Wire;
use crate::server::{Context, Event, IncomingRequest, Server, weight};
use crate::version::Era;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

const LOST: &str = "the node that ran this request was lost";
const UNKNOWN: &str = "there is no such task";
const AWAY: &str = "the store of the tasks does not reply";

/// The response of a request that has become a task, until the store has the task.
#[derive(Debug)]
pub(in crate::server) struct CreatedTask {
    pub(in crate::server) reply_to: ReplyTo,
    pub(in crate::server) id: Id,
    pub(in crate::server) batch: Option<u64>,
    pub(in crate::server) message: Bytes,
}

/// A change of a task that a request makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::server) enum TaskChange {
    /// It was answered, cancelled or settled: the request goes on with what the store has then.
    Settle,
    Cancel,
    /// The last answer, or a lost server: this server works on it.
    Adopt,
    /// Some answers.
    Answer,
}

/// What a server knows of the version of a task in the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::server) struct StoredVersion {
    /// The version that the store has confirmed.
    pub(super) kept: u64,
    /// Another one is on its way.
    pub(super) is_asked: bool,
    /// It has the end of the task.
    pub(super) has_end: bool,
}

impl ServerEnv {
    /// A task has changed here: the store gets it.
    pub(in crate::server) fn task_is_unstored(&mut self, key: TaskKey) {
        if self.config.shares_tasks() && self.node.is_some() {
            self.tasks.unstored.insert(key);
        }
    }

    /// Returns whether clients may see a task as it is here. An end that the store does not have
    /// could still be another one.
    pub(in crate::server) fn shows_task(&self, task: &TaskEntry) -> bool {
        !task.has_ended() || task.stored.has_end || self.node.is_none() || !self.config.shares_tasks()
    }

    /// Returns the time until the end of a task.
    fn rest_of(&self, record: &TaskRecord) -> Duration {
        let now = self.now.unix(self.config.origin_unix);
        let end = record.created + record.ttl;
        let keep = self.config.limits.server.task_keep;
        if record.has_ended() { end.max(now + keep).saturating_sub(now) } else { end.saturating_sub(now) + keep }
    }

    fn put_task(&mut self, record: &TaskRecord, version: u64, owner: Option<Incarnation>, then: Then) -> bool {
        let request = StoreRequest::PutTask {
            task: TaskDigest::of(&record.id),
            version,
            record: record.encode(),
            owner,
            principal: record.owner.as_ref().map(PrincipalDigest::of),
            created: record.created_millis(),
            ttl: self.rest_of(record),
        };
        self.ask_store(request, then)
    }
}

/// Tasks that this server works on.
impl Server {
    /// Sends what has changed in tasks to the store.
    pub(in crate::server) fn store_tasks(&mut self) {
        let unstored = core::mem::take(&mut self.wire.env.tasks.unstored);
        for key in unstored {
            let may_send = self.wire.env.node.as_ref().is_some_and(|node| node.may_send());
            let Some(task) = self.wire.env.tasks.get(key) else { continue };
            if task.stored.is_asked || !may_send {
                self.wire.env.tasks.unstored.insert(key);
                continue;
            }
            let Some(record) = self.requests.record_of(&self.wire, key) else { continue };
            let version = task.stored.kept + 1;
            let is_here = match &record.stage {
                StoredStage::Working => true,
                // A client of 2025-11-25 that waits here gets its questions here.
                StoredStage::Asking { .. } => self.requests.awaits(key),
                StoredStage::Ended(_) => false,
            };
            let owner = self.wire.env.node.as_ref().map(|node| node.own()).filter(|_| is_here);
            let is_asked = self.wire.env.put_task(&record, version, owner, Then::TaskPut(key));
            match self.wire.env.tasks.get_mut(key).filter(|_| is_asked) {
                Some(task) => task.stored.is_asked = true,
                None => drop(self.wire.env.tasks.unstored.insert(key)),
            }
        }
    }

    /// The store has a change of a task, or has not.
    pub(in crate::server) fn task_is_put(&mut self, key: TaskKey, result: Result<StoreReply, StoreError>) {
        let own = self.wire.env.node.as_ref().map(|node| node.own());
        let is_new = self.wire.env.tasks.created.contains_key(&key);
        let Some(task) = self.wire.env.tasks.get_mut(key) else { return };
        task.stored.is_asked = false;
        let has_ended = task.has_ended();
        let is_asking = matches!(task.stage(), TaskStage::Asking { .. });
        let id = task.id.clone();
        match result {
            Ok(StoreReply::Done) => {
                task.stored.kept += 1;
                if is_new {
                    self.answer_created(key);
                }
                if self.wire.env.tasks.unstored.contains(&key) {
                    return;
                }
                let digest = TaskDigest::of(&id);
                if has_ended || is_asking {
                    self.wire.env.say(News::Task(digest));
                }
                if has_ended {
                    self.wire.env.tasks.end_is_kept(key);
                    self.tell_tasks();
                }
                if has_ended || is_asking && !self.requests.awaits(key) {
                    self.let_go_of_task(key);
                    self.task_is_outdated(digest);
                }
            }
            Err(_) if !is_new => drop(self.wire.env.tasks.unstored.insert(key)),
            Err(_) => self.refuse_created(key),
            // It is this server's still: a reply was lost, or the store has gone back in time.
            Ok(StoreReply::Task { version, owner, .. }) if owner == own => {
                task.stored.kept = version;
                self.wire.env.tasks.unstored.insert(key);
            }
            Ok(StoreReply::Missing) => {
                task.stored.kept = 0;
                self.wire.env.tasks.unstored.insert(key);
            }
            // Another server has changed it.
            Ok(_) => {
                self.wire.env.diagnose(DiagnosticKind::Fenced, "a task");
                self.let_go_of_task(key);
            }
        }
    }

    /// The store has a new task: its client gets the response.
    fn answer_created(&mut self, key: TaskKey) {
        let Some(created) = self.wire.env.tasks.created.remove(&key) else { return };
        let CreatedTask { reply_to, batch, message, .. } = created;
        self.wire.reply(reply_to, SerializedResponse { batch, ..SerializedResponse::new(message, None) });
        self.end_if_quiet(reply_to);
    }

    /// The store has not kept a new task: its request fails.
    fn refuse_created(&mut self, key: TaskKey) {
        if let Some(CreatedTask { reply_to, id, batch, .. }) = self.wire.env.tasks.created.remove(&key) {
            let bytes = error_response(Some(&id), &ErrorObject::new(code::INTERNAL_ERROR, AWAY));
            let response = SerializedResponse::new(bytes, Some(code::INTERNAL_ERROR));
            self.wire.reply(reply_to, SerializedResponse { batch, ..response });
            self.end_if_quiet(reply_to);
        }
        self.let_go_of_task(key);
    }

    /// This server has nothing to do with a task any more: the store has it.
    fn let_go_of_task(&mut self, key: TaskKey) {
        self.requests.withdraw_task_questions(&mut self.wire, key);
        let waiting = self.requests.take_waiting(key);
        if let Some(request) = self.wire.env.tasks.get(key).and_then(TaskEntry::request)
            && let Some(running) = self.requests.forget(&mut self.wire, request)
            && matches!(running.stage, RequestStage::Handler)
        {
            self.wire.env.emit(Event::Cancelled(request));
        }
        self.wire.env.tasks.unstored.remove(&key);
        self.wire.env.remove_task(key);
        waiting.into_iter().for_each(|request| self.ask_about_task(request));
    }

    /// This server is another node now, or ends: what it works on belongs to others.
    pub(in crate::server) fn lose_tasks(&mut self) {
        if self.shared.config.shares_tasks() {
            let all: Vec<TaskKey> = self.wire.env.tasks.iter().map(|(key, _)| key).collect();
            all.into_iter().for_each(|key| self.let_go_of_task(key));
        }
    }
}

/// Requests about tasks.
impl Server {
    /// Returns whether a request about a task has to ask the store.
    pub(in crate::server) fn asks_about_task(&self, x: ExchangeId, method: &str, params: &Object) -> bool {
        let env = &self.wire.env;
        let principal = env.rights(x).principal;
        let id = params.required_str("taskId").ok();
        let task = id.and_then(|id| env.tasks.find(&id, principal.as_ref()));
        // What a cancellation ends is the task of the store.
        let is_here = method != super::CANCEL && task.is_some_and(|(_, task)| env.shows_task(task));
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
        if incoming.method == super::legacy::LIST {
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

    fn refuse_task_request(&mut self, key: RequestKey, error: &ErrorObject) {
        let Some(running) = self.requests.get(key) else { return };
        let (reply_to, bytes) = (running.reply_to, error_response(Some(&running.id), error));
        self.requests.finish(&mut self.wire, key, bytes, Some(error.code));
        self.end_if_quiet(reply_to);
    }

    fn answer_task_request(&mut self, key: RequestKey, result: Object) {
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

    /// A request goes on with the task that the store has.
    fn go_on_with_task(&mut self, key: RequestKey, record: TaskRecord, version: u64, owner: Option<Incarnation>) {
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
        let unix = self.wire.env.now.unix(self.shared.config.origin_unix);
        let is_over = !record.has_ended() && record.created + record.ttl <= unix;
        if is_over {
            let error = ErrorObject::new(code::INTERNAL_ERROR, "the time of the task is over");
            return self.change_task(key, record, version, TaskChange::Settle, Some(TaskEnd::Outcome(Err(error))));
        }
        let is_modern = record.version.era() == Era::Modern;
        match &*method {
            super::GET if is_modern => self.answer_task_request(key, TaskEntry::view(&record).detailed()),
            super::GET => self.answer_task_request(key, TaskEntry::view(&record).task().write(record.version)),
            super::CANCEL if record.has_ended() && is_modern => self.answer_task_request(key, Object::new()),
            super::CANCEL if record.has_ended() => {
                let error = ErrorObject::new(code::INVALID_PARAMS, "the task has ended already");
                self.refuse_task_request(key, &error);
            }
            super::CANCEL => self.change_task(key, record, version, TaskChange::Cancel, Some(TaskEnd::Cancelled)),
            super::UPDATE => self.update_task(key, record, version),
            RESULT => self.await_task(key, record, version),
            _ => self.refuse_task_request(key, &ErrorObject::new(code::INTERNAL_ERROR, UNKNOWN)),
        }
    }

    /// Changes a task for a request, which goes on once the store has the change.
    fn change_task(
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
        if !self.wire.env.put_task(&record, version + 1, owner, then) {
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
                self.wire.env.say(News::Task(digest));
                self.forget_copy(&record.id);
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
            // Another server was faster: it goes on with what that has made of it.
            (other @ Ok(_), _) => self.task_is_read(key, other),
            (Err(_), _) => self.refuse_task_request(key, &ErrorObject::new(code::INTERNAL_ERROR, AWAY)),
        }
    }

    /// This server works on a task from now on. The request that has caused it goes on.
    fn adopt_for(&mut self, key: RequestKey, record: TaskRecord, version: u64) {
        let Some(running) = self.requests.get(key) else {
            self.requests.adopt(&mut self.wire, record, version, None);
            return;
        };
        let (exchange, method) = (running.exchange, running.request().map(|request| request.method.clone()));
        let id = record.id.clone();
        let task = self.requests.adopt(&mut self.wire, record.clone(), version, Some(exchange));
        match method.as_deref() {
            Some(RESULT) => {
                if let Some(running) = self.requests.get_mut(key) {
                    running.stage = RequestStage::Result(task);
                }
                self.wire.env.tasks.changes(task);
            }
            Some(super::UPDATE) => self.answer_task_request(key, Object::new()),
            // A request that has found the server of the task lost.
            _ => self.go_on_with_task(key, TaskRecord { id, ..record }, version, None),
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
                let name = crate::error::excerpt(&name);
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
        match &record.stage {
            StoredStage::Ended(end) => {
                let Some(running) = self.requests.get(key) else { return };
                let (reply_to, own_id) = (running.reply_to, running.id.clone());
                let (bytes, code) = super::legacy::written(&own_id, &record.id, end);
                self.requests.finish(&mut self.wire, key, bytes, code);
                self.end_if_quiet(reply_to);
            }
            StoredStage::Asking { .. } => self.change_task(key, record, version, TaskChange::Adopt, None),
            StoredStage::Working => {
                let digest = TaskDigest::of(&record.id);
                self.wire.env.tasks.awaited.entry(digest).or_default().insert(key);
                self.wire.env.look_at_tasks();
            }
        }
    }

    /// The store knows whether the server of a task lives.
    pub(in crate::server) fn task_owner_is_known(
        &mut self,
        key: RequestKey,
        (record, version, owner): (TaskRecord, u64, Incarnation),
        result: Result<StoreReply, StoreError>,
    ) {
        match result {
            Ok(StoreReply::NoNode) => self.settle_lost(key, record, version),
            Ok(_) => {
                self.wire.env.is_member_now(owner);
                self.go_on_with_task(key, record, version, Some(owner));
            }
            Err(_) => self.refuse_task_request(key, &ErrorObject::new(code::INTERNAL_ERROR, AWAY)),
        }
    }

    /// The server of a task is lost: its handler runs again here, or it fails.
    fn settle_lost(&mut self, key: RequestKey, record: TaskRecord, version: u64) {
        self.wire.env.diagnose(DiagnosticKind::NodeLost, "a task of it");
        if record.reruns {
            return self.change_task(key, record, version, TaskChange::Adopt, None);
        }
        let error = ErrorObject::new(code::INTERNAL_ERROR, LOST);
        self.change_task(key, record, version, TaskChange::Settle, Some(TaskEnd::Outcome(Err(error))));
    }

    /// Another server has changed a task, which may be known here.
    pub(in crate::server) fn task_is_outdated(&mut self, task: TaskDigest) {
        let waiting = self.wire.env.tasks.awaited.remove(&task).unwrap_or_default();
        waiting.into_iter().for_each(|request| self.ask_about_task(request));
        let here = self.wire.env.tasks.iter().find(|(_, entry)| TaskDigest::of(&entry.id) == task);
        if let Some((key, _)) = here {
            // The next write tells whether it is this server's still.
            self.wire.env.task_is_unstored(key);
        }
    }

    /// Drops the copy of a task that another request here has changed.
    fn forget_copy(&mut self, id: &str) {
        if let Some(key) = self.wire.env.tasks.key_of(id) {
            self.let_go_of_task(key);
        }
    }

    /// Looks again at the tasks that clients wait for.
    pub(in crate::server) fn on_awaited_tasks(&mut self) {
        let awaited = core::mem::take(&mut self.wire.env.tasks.awaited);
        awaited.into_values().flatten().for_each(|request| self.ask_about_task(request));
    }
}

/// Tasks of lost servers.
impl Server {
    /// Asks for tasks of servers that are lost.
    pub(in crate::server) fn sweep_orphans(&mut self) {
        let lease = self.shared.config.limits.server.node_lease;
        if let Some(node) = self.wire.env.node.as_ref().map(|node| node.own()) {
            self.wire.env.ask_store(StoreRequest::Orphans { node, lease }, Then::Orphans);
            self.wire.env.timers.set(ServerTimer::Orphans, Some(self.wire.env.again(lease)));
        }
    }

    /// The store has returned tasks of lost servers.
    pub(in crate::server) fn orphans_are_known(&mut self, tasks: Vec<TaskDigest>) {
        if tasks.is_empty() {
            return;
        }
        for task in tasks {
            self.wire.env.ask_store(StoreRequest::GetTask { task }, Then::Orphan);
        }
        // There may be more.
        let soon = self.wire.env.again(Duration::from_millis(100));
        self.wire.env.timers.set(ServerTimer::Orphans, Some(soon));
    }

    /// The store has returned a task of a lost server.
    pub(in crate::server) fn orphan_is_read(&mut self, result: Result<StoreReply, StoreError>) {
        let Ok(StoreReply::Task { version, record, owner: Some(owner) }) = result else { return };
        let Ok(record) = TaskRecord::decode(&record) else { return };
        if self.wire.env.is_known_member(owner) || record.has_ended() {
            return;
        }
        // No request waits for it.
        self.settle_lost(RequestKey::new(0), record, version);
    }
}

impl ServerEnv {
    /// Looks at awaited tasks in some time.
    fn look_at_tasks(&mut self) {
        if self.timers.get(ServerTimer::AwaitedTasks).is_none() {
            self.timers.set(ServerTimer::AwaitedTasks, Some(self.again(self.config.limits.server.node_renewal)));
        }
    }

    /// Returns whether a node is a member, as far as was known a short time ago.
    fn is_known_member(&self, node: Incarnation) -> bool {
        self.node
            .as_ref()
            .is_some_and(|own| own.own() == node || own.members.get(&node).is_some_and(|at| *at > self.now))
    }

    fn is_member_now(&mut self, node: Incarnation) {
        let until = self.now + self.config.limits.server.node_renewal;
        if let Some(own) = &mut self.node {
            own.members.retain(|_, at| *at > self.now);
            own.members.insert(node, until);
        }
    }
}

impl Requests {
    /// Returns whether a request waits here for the end of a task.
    fn awaits(&self, key: TaskKey) -> bool {
        self.iter().any(|(_, running)| matches!(running.stage, RequestStage::Result(task) if task == key))
    }

    /// Lets the requests that wait here for the end of a task wait for the store instead.
    fn take_waiting(&mut self, key: TaskKey) -> Vec<RequestKey> {
        let waiting =
            self.iter().filter(|(_, running)| matches!(running.stage, RequestStage::Result(task) if task == key));
        let waiting: Vec<RequestKey> = waiting.map(|(request, _)| request).collect();
        for request in &waiting {
            if let Some(running) = self.get_mut(*request) {
                running.stage = RequestStage::Store;
            }
        }
        waiting
    }

    /// Returns what the store has to keep of a task that is here.
    fn record_of(&self, wire: &Wire, key: TaskKey) -> Option<TaskRecord> {
        let task = wire.env.tasks.get(key)?;
        let entry = task.request().and_then(|request| self.get(request)?.entry.as_deref());
        let request = entry.map_or_else(TaskRequest::empty, |entry| {
            let context = &entry.incoming.context;
            TaskRequest {
                params: entry.incoming.params.clone(),
                meta: entry.incoming.meta.clone(),
                declared: match task.version.era() {
                    Era::Modern => None,
                    Era::Legacy => Some((context.client(), context.capabilities())),
                },
                inputs: entry.inputs.clone(),
                rounds: entry.rounds,
                state: entry.state.clone(),
                origin: entry.incoming.first.as_ref().map_or(0, |first| first.origin.key.number()),
            }
        });
        Some(task.record(request))
    }

    /// Takes a task of the store to work on it: its handler runs, or its questions wait for answers.
    fn adopt(&mut self, wire: &mut Wire, record: TaskRecord, stored: u64, x: Option<ExchangeId>) -> TaskKey {
        let key = self.mint_key();
        let task_key = TaskKey(key.number());
        let shared = Arc::clone(self.shared());
        let identity = record.owner.clone().map_or_else(
            || x.map_or(ClientIdentity::Connection(u64::MAX), |x| wire.env.client_on(x, None)),
            ClientIdentity::Principal,
        );
        let slot = TaskSlot::adopted(task_key, record.id.clone(), Arc::clone(&shared));
        let TaskRequest { params, meta, inputs, rounds, state, origin, .. } = record.request.clone();
        let incoming = IncomingRequest {
            method: "tools/call".into(),
            params,
            meta,
            context: Context {
                version: record.version,
                declared: record.request.declaration(record.version),
                peer: Arc::new(Peer::default()),
                http: None,
                principal: record.owner.clone(),
                access: None,
                session: None,
                wants_progress: false,
            },
            inputs: inputs.clone(),
            state: None,
            nonce: None,
            rounds,
            first: Some(FirstRound { shared, origin: Origin { key: RequestKey::new(origin), age: KeyAge::Current } }),
            may_be_task: true,
            wanted_task: None,
            task: Some(slot),
        };
        let id = Id::Text(record.id.as_str().into());
        let size = weight::of_request(&id, None, incoming.params.heap_size(), &incoming);
        let client = wire.env.shares.take(&identity, Bound::Requests, 1);
        wire.env.shares.add(client, Bound::RunningBytes, size);
        wire.env.shares.add(client, Bound::Tasks, 1);
        let running = ServedRequest {
            exchange: x.unwrap_or(ExchangeId(0)),
            client,
            reply_to: ReplyTo::Task(None),
            id,
            version: record.version,
            batch: None,
            token: None,
            log_level: None,
            dropped_logs: 0,
            progress: None,
            held: None,
            since: wire.env.now,
            spent: Duration::ZERO,
            stage: RequestStage::Waiting,
            place: TaskPlace::Taken(task_key),
            entry: Some(Box::new(RequestEntry { incoming, router: None, inputs, rounds, state: state.clone() })),
            size,
        };
        self.table_insert(key, running);
        let new = NewTask {
            id: record.id.clone(),
            owner: record.owner.clone(),
            client,
            version: record.version,
            session: None,
            request: key,
            ttl: record.ttl,
            poll: record.poll,
            reruns: record.reruns,
        };
        let entry = TaskEntry::adopted(new, &record, stored, wire.env.now, wire.env.config.origin_unix);
        wire.env.add_task(task_key, entry);
        match record.stage {
            StoredStage::Asking { questions, state } => {
                let question =
                    |(name, request): (String, LegacyInputRequest)| (name, TaskQuestion { request, sent: None });
                let questions: BTreeMap<String, TaskQuestion> = questions.into_iter().map(question).collect();
                wire.env.adopt_stage(task_key, TaskStage::Asking { request: key, questions, state });
            }
            StoredStage::Working | StoredStage::Ended(_) => self.enter_again(&mut wire.env, key, state),
        }
        task_key
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
