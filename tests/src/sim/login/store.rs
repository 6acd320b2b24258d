//! The store that processes share: one record, its version, and two leases.

use mcp_proto::auth::{Lease, Purpose, Record, SaveFault, StepId, Stored, Version};
use std::collections::{BTreeMap, VecDeque};

/// A process, by its number. None is used again.
pub(super) type ProcessId = u64;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Store {
    record: Option<Box<Record>>,
    version: u64,
    held: BTreeMap<Purpose, ProcessId>,
    waiting: VecDeque<(ProcessId, StepId, Purpose)>,
}

impl Store {
    pub(super) fn stored(&self) -> Stored {
        let version = if self.record.is_some() { Version(self.version) } else { Version::ABSENT };
        Stored { record: self.record.clone(), version }
    }

    pub(super) fn record(&self) -> Option<&Record> {
        self.record.as_deref()
    }

    pub(super) fn save(&mut self, expected: Version, record: Option<Box<Record>>) -> Result<Version, SaveFault> {
        let stored = self.stored();
        if stored.version != expected {
            return Err(SaveFault::Conflict(stored));
        }
        self.version += 1;
        self.record = record;
        Ok(self.stored().version)
    }

    /// Takes a lease, or waits for it.
    pub(super) fn lease(&mut self, process: ProcessId, step: StepId, purpose: Purpose) -> Lease {
        if self.held.contains_key(&purpose) {
            self.waiting.push_back((process, step, purpose));
            return Lease::Waiting;
        }
        self.held.insert(purpose, process);
        Lease::Held
    }

    /// Releases a lease. Returns who has it now, and the step that waited for it.
    pub(super) fn release(&mut self, process: ProcessId, purpose: Purpose) -> Option<(ProcessId, StepId)> {
        self.waiting.retain(|waiting| (waiting.0, waiting.2) != (process, purpose));
        if self.held.get(&purpose) != Some(&process) {
            return None;
        }
        self.held.remove(&purpose);
        let next = self.waiting.iter().position(|waiting| waiting.2 == purpose)?;
        let (process, step, _) = self.waiting.remove(next)?;
        self.held.insert(purpose, process);
        Some((process, step))
    }

    /// Returns whether nothing is held and nothing waits.
    pub(super) fn is_at_rest(&self) -> bool {
        self.held.is_empty() && self.waiting.is_empty()
    }
}
