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
//! A request about a task waits until the store has replied. A server that finds a task of a lost
//! one ends it, or runs its handler again if that may be.

mod adopted;
mod lost;
mod requests;
mod watched;

pub(in crate::server) use watched::WatchedTask;

use super::record::{StoredStage, TaskRecord, TaskRequest};
use super::{TaskEntry, TaskStage};
use crate::error::DiagnosticKind;
use crate::input::RequestKey;
use crate::rpc::{ErrorObject, Id, code, error_response};
use crate::server::env::ServerEnv;
use crate::server::keys::{ReplyTo, TaskKey};
use crate::server::requests::Requests;
use crate::server::response::SerializedResponse;
use crate::server::running::RequestStage;
use crate::server::store::{
    Incarnation, News, PrincipalDigest, StoreError, StoreReply, StoreRequest, TaskDigest, Then,
};
use crate::server::wire::Wire;
use crate::server::{Event, Server};
use crate::version::Era;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;
use hmac_sha256::Hash;

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
    /// Its server is lost: the request then reads what has become of it.
    Settle,
    Cancel,
    /// The last answer, or a lost server: this server works on it.
    Adopt,
    /// Some answers.
    Answer,
}

/// What a server knows of the version of a task in the store.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(in crate::server) struct StoredVersion {
    /// The version that the store has confirmed.
    pub(super) kept: u64,
    /// Another one is on its way.
    pub(super) is_asked: bool,
    /// Hashes of the records that were sent as the next version, until the store has confirmed one.
    pub(super) sent: Vec<[u8; 32]>,
    /// It has the end of the task.
    pub(super) has_end: bool,
}

/// The number of unconfirmed records of a task that are remembered.
const SENT: usize = 16;

impl StoredVersion {
    /// A record is sent as the next version.
    fn sends(&mut self, record: &Bytes) {
        self.is_asked = true;
        if self.sent.len() >= SENT {
            self.sent.remove(0);
        }
        self.sent.push(Hash::hash(record));
    }

    /// Returns whether this version and this record are what was sent, and had no reply.
    fn has_sent(&self, version: u64, record: &Bytes) -> bool {
        version == self.kept + 1 && self.sent.contains(&Hash::hash(record))
    }
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

    /// Returns whether the store does not have something that a client waits for: a new task, or
    /// the end of one.
    pub(in crate::server) fn has_unkept_tasks(&self) -> bool {
        let is_unkept = |task: &TaskEntry| !self.shows_task(task);
        !self.tasks.created.is_empty() || self.tasks.iter().any(|(_, task)| is_unkept(task))
    }

    /// Returns the time until the end of a task.
    fn rest_of(&self, record: &TaskRecord) -> Duration {
        let now = self.now.unix(self.config.origin_unix);
        let end = record.created + record.ttl;
        let keep = self.config.limits.server.task_keep;
        if record.has_ended() { end.max(now + keep).saturating_sub(now) } else { end.saturating_sub(now) + keep }
    }

    fn put_task(
        &mut self,
        record: &TaskRecord,
        encoded: Bytes,
        version: u64,
        owner: Option<Incarnation>,
        then: Then,
    ) -> bool {
        let request = StoreRequest::PutTask {
            task: TaskDigest::of(&record.id),
            version,
            record: encoded,
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
    /// The store may have other tasks than this server knows: each is written once more.
    pub(in crate::server) fn all_tasks_are_unstored(&mut self) {
        let all: Vec<TaskKey> = self.wire.env.tasks.iter().map(|(key, _)| key).collect();
        all.into_iter().for_each(|key| self.wire.env.task_is_unstored(key));
    }

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
            let encoded = record.encode();
            let is_asked = self.wire.env.put_task(&record, encoded.clone(), version, owner, Then::TaskPut(key));
            match self.wire.env.tasks.get_mut(key).filter(|_| is_asked) {
                Some(task) => task.stored.sends(&encoded),
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
                task.stored.sent.clear();
                if is_new {
                    self.answer_created(key);
                }
                if self.wire.env.tasks.unstored.contains(&key) {
                    return;
                }
                if has_ended {
                    self.wire.env.tasks.end_is_kept(key);
                    self.tell_tasks();
                }
                if has_ended || is_asking && !self.requests.awaits(key) {
                    self.let_go_of_task(key);
                }
                if has_ended || is_asking {
                    self.task_is_news(TaskDigest::of(&id));
                }
            }
            Err(_) if !is_new => drop(self.wire.env.tasks.unstored.insert(key)),
            Err(_) => self.let_go_of_task(key),
            // It is this server's still: a reply was lost, or the store has gone back in time.
            Ok(StoreReply::Task { version, owner, record })
                if owner == own || owner.is_none() && task.stored.has_sent(version, &record) =>
            {
                task.stored.kept = version;
                task.stored.sent.clear();
                self.wire.env.tasks.unstored.insert(key);
            }
            Ok(StoreReply::Missing) => {
                task.stored.kept = 0;
                self.wire.env.tasks.unstored.insert(key);
            }
            // Another server has changed it.
            Ok(_) => {
                self.wire.env.diagnose(DiagnosticKind::Fenced, "a task");
                let displaced = self.requests.displace_waiting(key);
                self.let_go_of_task(key);
                displaced.into_iter().for_each(|request| self.ask_about_task(request));
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

    /// This server has nothing to do with a task any more: the store has it, or has not taken it.
    /// Then its request fails.
    pub(in crate::server) fn let_go_of_task(&mut self, key: TaskKey) {
        if let Some(CreatedTask { reply_to, id, batch, .. }) = self.wire.env.tasks.created.remove(&key) {
            let bytes = error_response(Some(&id), &ErrorObject::new(code::INTERNAL_ERROR, AWAY));
            let response = SerializedResponse::new(bytes, Some(code::INTERNAL_ERROR));
            self.wire.reply(reply_to, SerializedResponse { batch, ..response });
            self.end_if_quiet(reply_to);
        }
        self.requests.withdraw_task_questions(&mut self.wire, key);
        let waiting = self.requests.take_waiting(key);
        if let Some(request) = self.wire.env.tasks.get(key).and_then(TaskEntry::request)
            && let Some(running) = self.requests.forget(&mut self.wire, request)
            && matches!(running.stage, RequestStage::Handler)
        {
            self.wire.env.emit(Event::Cancelled(request));
        }
        self.listens.watch_in_store(&mut self.wire.env, key);
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

    /// A task has changed in a way that others wait for: the other servers are told, too.
    fn task_is_news(&mut self, task: TaskDigest) {
        self.wire.env.say(News::Task(task));
        self.ask_for_those_who_wait(task);
    }

    /// Another server has changed a task, which may be known here.
    pub(in crate::server) fn task_is_outdated(&mut self, task: TaskDigest) {
        self.ask_for_those_who_wait(task);
        if let Some(key) = self.wire.env.tasks.digests.get(&task).copied() {
            // The next write tells whether it is this server's still.
            self.wire.env.task_is_unstored(key);
        }
    }

    /// Reads a task again for the requests and the subscriptions that wait for a change of it.
    fn ask_for_those_who_wait(&mut self, task: TaskDigest) {
        let waiting = self.wire.env.tasks.awaited.remove(&task).unwrap_or_default();
        waiting.into_iter().for_each(|request| self.ask_about_task(request));
        self.wire.env.read_watched_task(task);
    }

    /// Drops the copy of a task that another request here has changed.
    fn forget_copy(&mut self, id: &str) {
        if let Some(key) = self.wire.env.tasks.key_of(id) {
            self.let_go_of_task(key);
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
        let waits = |stage: &RequestStage| matches!(stage, RequestStage::Result(task) if *task == key);
        let waiting = self.iter().filter(|(_, running)| waits(&running.stage));
        let waiting: Vec<RequestKey> = waiting.map(|(request, _)| request).collect();
        for request in &waiting {
            if let Some(running) = self.get_mut(*request) {
                running.stage = RequestStage::Store;
            }
        }
        waiting
    }

    /// Another server carries the questions of a task now: the requests that have waited for it
    /// here wait for its end only. Otherwise both servers would take it from each other for ever.
    fn displace_waiting(&mut self, key: TaskKey) -> Vec<RequestKey> {
        let waiting = self.take_waiting(key);
        for request in &waiting {
            if let Some(running) = self.get_mut(*request) {
                running.stage = RequestStage::Displaced;
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
                state: entry.state().cloned(),
                origin: entry.incoming.first.as_ref().map_or(0, |first| first.key.number()),
            }
        });
        Some(task.record(request))
    }
}
