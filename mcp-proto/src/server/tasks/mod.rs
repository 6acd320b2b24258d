//! The tasks of a server: requests that were answered with a task, and whose results are kept until
//! their clients fetch them. One table serves both wires: the extension of
//! 2026-07-28 and the tasks of 2025-11-25.
//!
//! | status | by | next |
//! |---|---|---|
//! | working | [`Note::IntoTask`](crate::input::Note::IntoTask); all questions are answered | input required, or an end |
//! | input required | the handler asks its client | working, or an end |
//! | completed, failed | the outcome of the handler | none |
//! | cancelled | `tasks/cancel`, at once: a later outcome is dropped | none |
//! | failed | its time is over, or the server shuts down | none |
//!
//! While a task has not ended, its request is one of the running [`Requests`](super::requests), as
//! any other whose handler runs or waits, without a place where its response goes. A task belongs
//! to the server: it survives its connection, its session and the router that it began with.

mod commands;
mod entry;
mod legacy;
mod record;
mod slot;
mod status;
mod stored;

pub(super) use commands::{CANCEL, GET, UPDATE};
pub(super) use entry::{QuestionRequest, SentQuestion, TaskEnd, TaskEntry, TaskQuestion, TaskStage};
pub(super) use legacy::{LIST, RESULT};
pub(super) use record::TaskRecord;
pub(crate) use slot::TaskSlot;
pub(super) use stored::TaskChange;

use super::client::{Bound, ClientKey};
use super::env::ServerEnv;
use super::keys::{ServerTimer, TaskKey};
use super::shares::Full;
use crate::input::{Principal, RequestKey};
use crate::server::store::TaskDigest;
use crate::time::Instant;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use stored::{CreatedTask, WatchedTask};

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Tasks {
    table: BTreeMap<TaskKey, TaskEntry>,
    ids: BTreeMap<String, TaskKey>,
    /// The same of those that a store keeps too.
    digests: BTreeMap<TaskDigest, TaskKey>,
    /// When a task ends that has not ended, and when one is removed that has.
    due: BTreeSet<(Instant, TaskKey)>,
    /// Those that have ended, in the order of their ends.
    ended: BTreeSet<(Instant, TaskKey)>,
    /// The subscriptions that include a task.
    watchers: BTreeMap<TaskKey, BTreeSet<RequestKey>>,
    /// Those whose clients are to be told of a change.
    changed: BTreeSet<TaskKey>,
    /// Those whose latest change the store does not have.
    unstored: BTreeSet<TaskKey>,
    /// The responses of requests that have become tasks, until the store has these.
    created: BTreeMap<TaskKey, CreatedTask>,
    /// The requests that wait for the end of a task of another server.
    awaited: BTreeMap<TaskDigest, BTreeSet<RequestKey>>,
    /// The tasks of the store that subscriptions include.
    watched: BTreeMap<TaskDigest, WatchedTask>,
    /// Those of the store whose servers were asked whether they have them, and until when they are
    /// not asked again. At most as many as requests to the store.
    doubted: BTreeMap<TaskDigest, Instant>,
}

impl Tasks {
    pub(super) fn get(&self, key: TaskKey) -> Option<&TaskEntry> {
        self.table.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: TaskKey) -> Option<&mut TaskEntry> {
        self.table.get_mut(&key)
    }

    /// Returns the task with this id, if this principal may have it.
    pub(super) fn find(&self, id: &str, principal: Option<&Principal>) -> Option<(TaskKey, &TaskEntry)> {
        let key = *self.ids.get(id)?;
        let task = self.table.get(&key)?;
        (task.owner.as_ref() == principal).then_some((key, task))
    }

    /// Returns the key of the task with this id.
    fn key_of(&self, id: &str) -> Option<TaskKey> {
        self.ids.get(id).copied()
    }

    /// Tells the clients of a task at the end of this input.
    pub(super) fn changes(&mut self, key: TaskKey) {
        self.changed.insert(key);
    }

    /// A client of 2025-11-25 has asked for the state of a task: it can be asked its questions.
    fn becomes_known(&mut self, key: TaskKey) {
        if let Some(task) = self.table.get_mut(&key).filter(|task| !task.is_known) {
            task.is_known = true;
            self.changed.insert(key);
        }
    }

    /// The store has the end of a task: its clients may see it.
    fn end_is_kept(&mut self, key: TaskKey) {
        if let Some(task) = self.table.get_mut(&key) {
            task.stored.has_end = true;
            self.changed.insert(key);
        }
    }

    /// Returns the tasks, the oldest first.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (TaskKey, &TaskEntry)> {
        self.table.iter().map(|(key, task)| (*key, task))
    }

    /// Returns the tasks after this one, the oldest first.
    pub(super) fn after(&self, key: Option<TaskKey>) -> impl Iterator<Item = (TaskKey, &TaskEntry)> {
        let from = key.map_or(core::ops::Bound::Unbounded, core::ops::Bound::Excluded);
        self.table.range((from, core::ops::Bound::Unbounded)).map(|(key, task)| (*key, task))
    }

    /// Adds a subscription to the watchers of a task.
    pub(super) fn watch(&mut self, key: TaskKey, by: RequestKey) {
        self.watchers.entry(key).or_default().insert(by);
    }

    /// Removes a subscription from the watchers of a task.
    pub(super) fn unwatch(&mut self, key: TaskKey, by: RequestKey) {
        if let Some(watchers) = self.watchers.get_mut(&key) {
            watchers.remove(&by);
            if watchers.is_empty() {
                self.watchers.remove(&key);
            }
        }
    }

    /// Returns the subscriptions that include a task.
    pub(super) fn watchers(&self, key: TaskKey) -> Vec<RequestKey> {
        self.watchers.get(&key).into_iter().flatten().copied().collect()
    }

    /// Returns the questions of a task without an answer: the name of each, what writes its request
    /// under an id, and what carries it now.
    fn open_questions(&self, key: TaskKey) -> Vec<(String, QuestionRequest, Option<SentQuestion>)> {
        let Some(task) = self.table.get(&key) else { return Vec::new() };
        let TaskStage::Asking { questions, .. } = task.stage() else { return Vec::new() };
        let question = |(name, question): (&String, &TaskQuestion)| {
            let request = QuestionRequest { task: task.id.clone(), question: question.request.clone() };
            (name.clone(), request, question.sent)
        };
        questions.iter().map(question).collect()
    }

    /// Notes what carries a question.
    fn question_is_sent(&mut self, key: TaskKey, name: &str, sent: SentQuestion) {
        if let Some(TaskStage::Asking { questions, .. }) = self.table.get_mut(&key).map(TaskEntry::stage_mut)
            && let Some(question) = questions.get_mut(name)
        {
            question.sent = Some(sent);
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
            && self.ids.is_empty()
            && self.digests.is_empty()
            && self.due.is_empty()
            && self.ended.is_empty()
            && self.watchers.is_empty()
            && self.unstored.is_empty()
            && self.created.is_empty()
            && self.awaited.is_empty()
            && self.watched.is_empty()
    }
}

impl ServerEnv {
    /// Takes a place among the tasks for a request of this client, so that it can become one later.
    /// Without room, the task that has ended first makes some. Returns false if there is none.
    pub(super) fn reserve_task(&mut self, client: ClientKey) -> bool {
        let has_room = self.make_room_for_task(client, Bound::Tasks, 1);
        if has_room {
            self.shares.add(client, Bound::Tasks, 1);
        }
        has_room
    }

    /// Checks that a client may take `more` of a bound of tasks. If there is no room, removes tasks
    /// that have ended, the one that ended first at first.
    fn make_room_for_task(&mut self, client: ClientKey, bound: Bound, more: usize) -> bool {
        let Some(identity) = self.shares.client(client).cloned() else { return false };
        if more > bound.share(&self.config.limits.server) {
            return false;
        }
        loop {
            let of = match self.check_share(&identity, bound, more) {
                Ok(()) => return true,
                Err(Full::All) => None,
                Err(Full::Share) => Some(client),
            };
            // The store must have the end of a task first.
            let is_shown = |key: &TaskKey| self.tasks.get(*key).is_some_and(|task| self.shows_task(task));
            let mut ended = self.tasks.ended.iter().map(|(_, key)| *key).filter(is_shown);
            let is_of = |key: &TaskKey| of.is_none() || self.tasks.get(*key).map(|task| task.client) == of;
            let Some(oldest) = ended.find(is_of) else { return false };
            self.remove_task(oldest);
        }
    }

    /// Adds a task, whose place is reserved.
    pub(super) fn add_task(&mut self, key: TaskKey, task: TaskEntry) {
        if task.is_new() {
            self.task_is_unstored(key);
        }
        self.tasks.ids.insert(task.id.clone(), key);
        if self.config.shares_tasks() {
            self.tasks.digests.insert(TaskDigest::of(&task.id), key);
        }
        self.tasks.due.insert((task.due, key));
        self.tasks.table.insert(key, task);
        self.arm_tasks();
    }

    /// A task has ended. It is kept for its time, and for a while after its end, so that its client
    /// can fetch the result.
    pub(super) fn keep_ended_task(&mut self, key: TaskKey, end: TaskEnd) {
        let weight = end.weight();
        let Some(client) = self.tasks.get(key).filter(|task| !task.has_ended()).map(|task| task.client) else { return };
        let end = match self.make_room_for_task(client, Bound::TaskBytes, weight) {
            true => end,
            false => TaskEnd::no_room(),
        };
        let (now, unix) = (self.now, self.now.unix(self.config.origin_unix));
        let keep = now + self.config.limits.server.task_keep;
        let Some(task) = self.tasks.table.get_mut(&key) else { return };
        let before = task.due;
        task.due = task.due.max(keep);
        (task.weight, task.ended) = (end.weight(), Some(now));
        task.set(TaskStage::Ended(end), unix);
        let (due, weight) = (task.due, task.weight);
        self.shares.add(client, Bound::TaskBytes, weight);
        self.tasks.due.remove(&(before, key));
        self.tasks.due.insert((due, key));
        self.tasks.ended.insert((now, key));
        self.task_is_unstored(key);
        self.tasks.changed.insert(key);
        self.arm_tasks();
    }

    /// Removes a task that has ended.
    pub(super) fn remove_task(&mut self, key: TaskKey) {
        let Some(task) = self.tasks.table.remove(&key) else { return };
        self.tasks.ids.remove(&task.id);
        if self.config.shares_tasks() {
            self.tasks.digests.remove(&TaskDigest::of(&task.id));
        }
        self.tasks.due.remove(&(task.due, key));
        if let Some(ended) = task.ended {
            self.tasks.ended.remove(&(ended, key));
        }
        self.tasks.watchers.remove(&key);
        self.tasks.changed.remove(&key);
        self.tasks.unstored.remove(&key);
        self.tasks.created.remove(&key);
        self.shares.give_back(task.client, Bound::TaskBytes, task.weight);
        self.shares.give_back(task.client, Bound::Tasks, 1);
        self.arm_tasks();
    }

    /// Removes the tasks of a principal that have ended.
    pub(super) fn remove_tasks_of(&mut self, principal: &Principal) {
        let is_of = |task: &TaskEntry| task.has_ended() && task.owner.as_ref() == Some(principal);
        let all: Vec<TaskKey> = self.tasks.iter().filter(|(_, task)| is_of(task)).map(|(key, _)| key).collect();
        all.into_iter().for_each(|key| self.remove_task(key));
    }

    /// Returns the tasks whose time is over: those that have ended, and those that have not.
    pub(super) fn due_tasks(&self) -> (Vec<TaskKey>, Vec<TaskKey>) {
        let is_due = |(at, _): &&(Instant, TaskKey)| *at <= self.now;
        let due = self.tasks.due.iter().take_while(is_due).map(|(_, key)| *key);
        due.partition(|key| self.tasks.get(*key).is_none_or(TaskEntry::has_ended))
    }

    fn arm_tasks(&mut self) {
        self.timers.set(ServerTimer::Tasks, self.tasks.due.first().map(|(at, _)| *at));
    }
}
