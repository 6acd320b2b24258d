//! Tasks of servers that are lost.

use super::super::TaskEnd;
use super::super::record::{StoredStage, TaskRecord};
use super::{AWAY, LOST, TaskChange};
use crate::error::DiagnosticKind;
use crate::input::RequestKey;
use crate::rpc::{ErrorObject, code};
use crate::server::Server;
use crate::server::env::ServerEnv;
use crate::server::keys::ServerTimer;
use crate::server::store::{Incarnation, NodeItem, StoreError, StoreReply, StoreRequest, TaskDigest, Then};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

/// The number of tasks that the store returns at once.
const BATCH: usize = 100;

impl Server {
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
    pub(super) fn settle_lost(&mut self, key: RequestKey, record: TaskRecord, version: u64) {
        self.wire.env.diagnose(DiagnosticKind::NodeLost, "a task of it");
        if matches!(record.stage, StoredStage::Asking { .. }) {
            // It waits for its client. The server has carried its questions, and ran nothing.
            return self.change_task(key, record, version, TaskChange::Settle, None);
        }
        if record.reruns {
            return self.change_task(key, record, version, TaskChange::Adopt, None);
        }
        let error = ErrorObject::new(code::INTERNAL_ERROR, LOST);
        self.change_task(key, record, version, TaskChange::Settle, Some(TaskEnd::Outcome(Err(error))));
    }

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
        // There may be more.
        let is_full = tasks.len() >= BATCH;
        for task in tasks {
            self.wire.env.ask_store(StoreRequest::GetTask { task }, Then::Orphan);
        }
        if is_full {
            let soon = self.wire.env.again(Duration::from_millis(100));
            self.wire.env.timers.set(ServerTimer::Orphans, Some(soon));
        }
    }

    /// The store has returned a task of a lost server.
    pub(in crate::server) fn orphan_is_read(&mut self, result: Result<StoreReply, StoreError>) {
        let Ok(StoreReply::Task { version, record, owner: Some(owner) }) = result else { return };
        let Ok(record) = TaskRecord::decode(&record) else { return };
        if self.wire.env.has_lost(&record, owner) {
            return self.settle_lost(RequestKey::new(0), record, version);
        }
        if !self.wire.env.is_known_member(owner) && !record.has_ended() {
            // Another server may have taken it meanwhile. No request waits for it.
            let then = Then::TaskOwner(RequestKey::new(0), Box::new((record, version, owner)));
            self.wire.env.ask_store(StoreRequest::IsMember { node: owner }, then);
        }
    }
}

impl Server {
    /// A client has asked another server for a task that this one works on, as the store says.
    pub(in crate::server) fn task_is_doubted(&mut self, task: TaskDigest) {
        if !self.wire.env.tasks.digests.contains_key(&task) {
            self.wire.env.ask_store(StoreRequest::GetTask { task }, Then::Orphan);
        }
    }
}

impl ServerEnv {
    /// Returns whether this server works on a task, as the store says, and does not have it: the
    /// store has gone back to a time before the end of the task.
    pub(super) fn has_lost(&self, record: &TaskRecord, owner: Incarnation) -> bool {
        let is_own = self.node.as_ref().is_some_and(|node| node.own() == owner);
        is_own && !record.has_ended() && self.tasks.key_of(&record.id).is_none()
    }

    /// A client asks for a task that another server works on, as the store says. If it has not
    /// changed for some time, that server looks whether it has the task.
    pub(super) fn doubt_task(&mut self, record: &TaskRecord, owner: Incarnation) {
        let (now, lease) = (self.now, self.config.limits.server.node_lease);
        let task = TaskDigest::of(&record.id);
        let is_recent = record.updated + lease > now.unix(self.config.origin_unix);
        let doubted = &mut self.tasks.doubted;
        if record.has_ended() || is_recent || doubted.get(&task).is_some_and(|until| *until > now) {
            return;
        }
        doubted.retain(|_, until| *until > now);
        if doubted.len() < self.config.limits.server.max_store_requests {
            doubted.insert(task, now + lease);
            let item = NodeItem::Task { task };
            self.ask_store(StoreRequest::Send { node: owner.tag(), item }, Then::Nothing);
        }
    }

    /// Looks at awaited tasks in some time.
    pub(super) fn look_at_tasks(&mut self) {
        if self.timers.get(ServerTimer::AwaitedTasks).is_none() {
            self.timers.set(ServerTimer::AwaitedTasks, Some(self.again(self.config.limits.server.node_renewal)));
        }
    }

    /// Returns whether a node is a member, as far as was known a short time ago.
    pub(super) fn is_known_member(&self, node: Incarnation) -> bool {
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
