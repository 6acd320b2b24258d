//! Tasks in memory.

use crate::server::store::{Incarnation, PrincipalDigest, StoreReply, TaskDigest};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

/// The number of orphans that one reply has.
const ORPHANS: usize = 100;

/// See the [module](self).
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Tasks {
    tasks: BTreeMap<TaskDigest, KeptTask>,
    /// The node that looks for orphans, and until when no other does.
    sweeper: Option<(Incarnation, Duration)>,
}

/// A task: see [`StoreRequest::PutTask`](super::StoreRequest::PutTask).
#[derive(Clone, PartialEq, Debug)]
pub(super) struct KeptTask {
    pub(super) until: Duration,
    pub(super) version: u64,
    pub(super) record: Bytes,
    pub(super) owner: Option<Incarnation>,
    /// When it was created, and the principal in whose list it is.
    pub(super) place: (u64, Option<PrincipalDigest>),
}

impl Tasks {
    pub(super) fn expire(&mut self, now: Duration) {
        self.tasks.retain(|_, task| task.until > now);
    }

    pub(super) fn len(&self, now: Duration) -> usize {
        self.tasks.values().filter(|task| task.until > now).count()
    }

    pub(super) fn put(&mut self, task: TaskDigest, put: KeptTask) -> StoreReply {
        let Some(kept) = self.tasks.get_mut(&task) else {
            if put.version > 1 {
                return StoreReply::Missing;
            }
            self.tasks.insert(task, put);
            return StoreReply::Done;
        };
        if kept.version == put.version && kept.record == put.record && kept.owner == put.owner {
            return StoreReply::Done;
        }
        if kept.version + 1 != put.version {
            return kept.reply();
        }
        *kept = put;
        StoreReply::Done
    }

    pub(super) fn get(&self, task: TaskDigest) -> StoreReply {
        self.tasks.get(&task).map_or(StoreReply::Missing, KeptTask::reply)
    }

    pub(super) fn list(
        &self,
        principal: PrincipalDigest,
        after: Option<(u64, TaskDigest)>,
        count: usize,
    ) -> StoreReply {
        let own = self.tasks.iter().filter(|(_, task)| task.place.1 == Some(principal));
        let placed = own.map(|(digest, task)| ((task.place.0, *digest), &task.record));
        let mut placed: Vec<_> = placed.filter(|(place, _)| Some(*place) > after).collect();
        placed.sort_by_key(|(place, _)| *place);
        StoreReply::Tasks(placed.into_iter().take(count).map(|(_, record)| record.clone()).collect())
    }

    pub(super) fn orphans(
        &mut self,
        now: Duration,
        node: Incarnation,
        lease: Duration,
        is_member: impl Fn(Incarnation) -> bool,
    ) -> StoreReply {
        if self.sweeper.is_some_and(|(other, until)| other != node && until > now) {
            return StoreReply::Orphans(Vec::new());
        }
        self.sweeper = Some((node, now + lease));
        let lost = self.tasks.iter().filter(|(_, task)| task.owner.is_some_and(|owner| !is_member(owner)));
        StoreReply::Orphans(lost.map(|(task, _)| *task).take(ORPHANS).collect())
    }
}

impl KeptTask {
    fn reply(&self) -> StoreReply {
        StoreReply::Task { version: self.version, record: self.record.clone(), owner: self.owner }
    }
}
