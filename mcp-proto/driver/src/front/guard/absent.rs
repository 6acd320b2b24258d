//! Without the feature `auth` no server has a guard: the type has no value.

use super::Task;
use super::shared::Later;
use crate::job::Promise;
use alloc::sync::Arc;
use mcp_proto::exchange::RequestHead;
use mcp_proto::input::{AdmitToken, Principal};
use mcp_proto::time::Instant;

pub(crate) enum Guard {}

impl Guard {
    pub(crate) fn admit(self: &Arc<Self>, _promise: Promise<AdmitToken>, _head: Option<Arc<RequestHead>>) {
        match **self {}
    }

    pub(crate) fn forget(&self, _principal: &Principal) {
        match *self {}
    }
}

#[derive(Default)]
pub(super) struct GuardTasks;

impl GuardTasks {
    pub(super) fn new(_guard: Option<Arc<Guard>>) -> Self {
        Self
    }

    pub(super) const fn wait(&self) -> bool {
        false
    }

    pub(super) const fn next(&mut self) -> Option<Task> {
        None
    }

    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    pub(super) fn handle_timeout(&mut self, _now: Instant) {}

    pub(super) fn end(&mut self, _later: &mut Later) {}
}
