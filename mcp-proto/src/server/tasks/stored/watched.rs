//! Tasks that clients watch at a server that does not work on them. It reads them in the store:
//! when another server says that one has changed, and again in each lease interval, since a change
//! of the status alone is not said.

use super::super::record::TaskRecord;
use crate::input::RequestKey;
use crate::server::Server;
use crate::server::env::ServerEnv;
use crate::server::keys::ServerTimer;
use crate::server::store::{StoreError, StoreReply, StoreRequest, TaskDigest, Then};
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

/// The subscriptions that include a task of the store.
#[derive(Debug)]
pub(in crate::server) struct WatchedTask {
    id: String,
    by: BTreeSet<RequestKey>,
}

impl ServerEnv {
    /// Adds a subscription to the watchers of a task of the store.
    pub(in crate::server) fn watch_stored_task(&mut self, id: &str, by: RequestKey) -> TaskDigest {
        let task = TaskDigest::of(id);
        let watched = || WatchedTask { id: id.into(), by: BTreeSet::new() };
        self.tasks.watched.entry(task).or_insert_with(watched).by.insert(by);
        if self.timers.get(ServerTimer::WatchedTasks).is_none() {
            let at = self.again(self.config.limits.server.node_lease);
            self.timers.set(ServerTimer::WatchedTasks, Some(at));
        }
        task
    }

    /// Removes a subscription from the watchers of a task of the store.
    pub(in crate::server) fn unwatch_stored_task(&mut self, task: TaskDigest, by: RequestKey) {
        if let Some(watched) = self.tasks.watched.get_mut(&task) {
            watched.by.remove(&by);
            if watched.by.is_empty() {
                self.tasks.watched.remove(&task);
            }
        }
    }

    /// Reads a task for its watchers, if it has some. Without a reply it is read again later.
    pub(in crate::server) fn read_watched_task(&mut self, task: TaskDigest) {
        if self.tasks.watched.contains_key(&task) {
            self.ask_store(StoreRequest::GetTask { task }, Then::WatchedTask(task));
        }
    }
}

impl Server {
    /// Reads all watched tasks again.
    pub(in crate::server) fn on_watched_tasks(&mut self) {
        let env = &mut self.wire.env;
        let watched: Vec<TaskDigest> = env.tasks.watched.keys().copied().collect();
        if !watched.is_empty() {
            let at = env.again(env.config.limits.server.node_lease);
            env.timers.set(ServerTimer::WatchedTasks, Some(at));
        }
        watched.into_iter().for_each(|task| env.read_watched_task(task));
    }

    /// The store has returned a watched task, or has not.
    pub(in crate::server) fn watched_task_is_read(&mut self, task: TaskDigest, result: Result<StoreReply, StoreError>) {
        let (Ok(reply), Some(watched)) = (result, self.wire.env.tasks.watched.get(&task)) else { return };
        let by: Vec<RequestKey> = watched.by.iter().copied().collect();
        let unix = self.wire.env.now.unix(self.shared.config.origin_unix);
        let found = match &reply {
            StoreReply::Task { version, record, owner } => {
                let record = TaskRecord::decode(record).ok().filter(|record| record.id == watched.id);
                if let Some((record, owner)) = record.as_ref().zip(*owner) {
                    self.wire.env.doubt_task(record, owner);
                }
                record.map(|found| (*version, found))
            }
            _ => None,
        };
        for listen in by {
            match &found {
                Some((version, record)) => self.listens.tell_stored(&mut self.wire, listen, (task, *version), record),
                None => self.listens.forget_stored(&mut self.wire.env, listen, task),
            }
        }
        // A task that waits for its client has no server that ends it in time.
        if let Some((version, record)) = found
            && record.is_over(unix)
        {
            self.end_late_task(RequestKey::new(0), record, version);
        }
    }
}
