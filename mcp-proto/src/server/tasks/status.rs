//! What clients learn of tasks that have changed.

use super::TaskEntry;
use crate::exchange::ExchangeId;
use crate::input::{RequestKey, Watch};
use crate::model::tasks::TaskStatus;
use crate::rpc::notification;
use crate::server::Server;
use crate::server::env::ServerEnv;
use crate::server::keys::{ReplyTo, TaskKey};
use crate::server::store::TaskDigest;
use crate::version::Era;
use alloc::collections::BTreeMap;

/// The notification of 2025-11-25.
const STATUS: &str = "notifications/tasks/status";

impl ServerEnv {
    pub(super) fn say_in_task(&mut self, key: TaskKey, text: &str) {
        let unix = self.now.unix(self.config.origin_unix);
        if let Some(task) = self.tasks.get_mut(key).filter(|task| !task.has_ended()) {
            task.say(text, unix);
            self.task_is_unstored(key);
            self.tasks.changed.insert(key);
        }
    }

    /// A task has changed without a new stage.
    pub(super) fn touch_task(&mut self, key: TaskKey) {
        let unix = self.now.unix(self.config.origin_unix);
        if let Some(task) = self.tasks.get_mut(key) {
            task.touch(unix);
            self.task_is_unstored(key);
            self.tasks.changed.insert(key);
        }
    }
}

impl ServerEnv {
    /// Leaves out of a filter the tasks that the client of an exchange may not have. `is_made`:
    /// whether a server has made the id of a task, which may be one of the store.
    pub(in crate::server) fn keep_own_tasks(&self, x: ExchangeId, filter: &mut Watch, is_made: impl Fn(&str) -> bool) {
        if !filter.tasks.is_empty() {
            let (principal, shares) = (self.rights(x).principal, self.config.shares_tasks() && self.node.is_some());
            let is_here = |id: &str| self.tasks.find(id, principal.as_ref()).is_some();
            let may_be_elsewhere = |id: &str| shares && self.tasks.key_of(id).is_none() && is_made(id);
            filter.tasks.retain(|id| is_here(id) || may_be_elsewhere(id));
        }
    }

    /// Adds a subscription to the watchers of the tasks in its filter. Returns them, those that are
    /// here and those of the store: its client was told of no state yet.
    pub(in crate::server) fn watched_tasks(
        &mut self,
        key: RequestKey,
        filter: &Watch,
    ) -> (BTreeMap<TaskKey, u64>, BTreeMap<TaskDigest, u64>) {
        let (mut here, mut stored) = (BTreeMap::new(), BTreeMap::new());
        for id in &filter.tasks {
            match self.tasks.key_of(id) {
                Some(task) => {
                    self.tasks.watch(task, key);
                    here.insert(task, 0);
                }
                None => drop(stored.insert(self.watch_stored_task(id, key), 0)),
            }
        }
        (here, stored)
    }
}

impl Server {
    /// Tells the clients of tasks that have changed: their subscriptions and sessions, and those
    /// that wait for a result. Questions go out to clients of 2025-11-25.
    pub(in crate::server) fn tell_tasks(&mut self) {
        while let Some(key) = self.wire.env.tasks.changed.pop_first() {
            let env = &self.wire.env;
            if !env.tasks.get(key).is_some_and(|task| env.shows_task(task)) {
                continue;
            }
            for listen in self.wire.env.tasks.watchers(key) {
                self.listens.tell_subscription(&mut self.wire, listen);
            }
            let Some(task) = self.wire.env.tasks.get(key) else { continue };
            if task.version.era() == Era::Modern {
                continue;
            }
            let (status, has_ended) = (task.task().status, task.has_ended());
            self.tell_session(key);
            if has_ended {
                for reply_to in self.requests.finish_task_results(&mut self.wire, key) {
                    self.end_if_quiet(reply_to);
                }
            } else if status == TaskStatus::InputRequired {
                self.requests.send_task_questions(&mut self.wire, key);
            }
        }
    }

    /// Tells the session that has created a task of a change, if it can be reached now. It need not
    /// be told (2025-11-25, task notifications).
    fn tell_session(&mut self, key: TaskKey) {
        let Some(task) = self.wire.env.tasks.get_mut(key).filter(|task| task.told < task.changes) else { return };
        task.told = task.changes;
        let to = ReplyTo::Task(task.session);
        let note = notification(STATUS, Some(&TaskEntry::task(task).write(task.version)));
        if self.wire.has_room(to, note.len()) {
            self.wire.send(to, note);
        }
    }
}
