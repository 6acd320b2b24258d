//! A task as both sides see it. The [calls](crate::tasks) about tasks are types of the protocol.

mod handle;

pub use handle::{TaskHandle, TaskUpdate};

use crate::rpc::{DecodeError, Object, RawJson};
use crate::version::{Era, ProtocolVersion};
use alloc::format;
use alloc::string::String;
use core::time::Duration;

/// The status of a task. It begins as [`Working`](Self::Working); the last three are final.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskStatus {
    /// The request is being handled.
    Working,
    /// The server waits for input of the client.
    InputRequired,
    /// There is a result. On 2026-07-28 it may have `isError`.
    Completed,
    /// The request failed with a JSON-RPC error; on 2025-11-25 also with a result that has
    /// `isError`.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl TaskStatus {
    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns whether it never changes again.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    fn read(name: &str) -> Option<Self> {
        let all = [Self::Working, Self::InputRequired, Self::Completed, Self::Failed, Self::Cancelled];
        all.into_iter().find(|status| status.as_str() == name)
    }
}

/// A task, as its server describes it.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Task {
    /// Its id. A client that has it may read the task, unless the server knows its clients: treat
    /// it as a secret.
    pub id: String,
    /// Its status.
    pub status: TaskStatus,
    /// What the server says of the status, for people.
    pub message: Option<String>,
    /// When it was created (ISO 8601), as received.
    pub created_at: String,
    /// When it changed (ISO 8601), as received.
    pub updated_at: String,
    /// How long it exists after its creation. `None`: without end.
    pub ttl: Option<Duration>,
    /// How often a client should ask for its state. `None`: the server does not say.
    pub poll: Option<Duration>,
}

impl Task {
    /// Encodes it: flat on 2026-07-28, and the content of a task of 2025-11-25.
    pub(crate) fn write(&self, version: ProtocolVersion) -> Object {
        let (ttl, poll) = names(version);
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let task = Object::new().with("taskId", self.id.as_str()).with("status", self.status.as_str());
        let task = task.with_opt("statusMessage", self.message.as_deref());
        let task = task.with("createdAt", self.created_at.as_str()).with("lastUpdatedAt", self.updated_at.as_str());
        let task = task.with(ttl, self.ttl.map_or_else(RawJson::null, |ttl| millis(ttl).into()));
        task.with_opt(poll, self.poll.map(millis))
    }

    /// Decodes it. Times that are not whole milliseconds count as absent.
    ///
    /// # Errors
    /// [`DecodeError`] if it has no id or no status that is known.
    pub(crate) fn read(object: &Object, version: ProtocolVersion) -> Result<Self, DecodeError> {
        let (ttl, poll) = names(version);
        let text = |key| object.str(key).unwrap_or_default().into_owned();
        let millis = |key| object.optional::<u64>(key).ok().flatten().map(Duration::from_millis);
        let status = object.required_str("status")?;
        Ok(Self {
            id: object.required("taskId")?,
            status: TaskStatus::read(&status).ok_or_else(|| {
                DecodeError::new(format!("no task has the status `{}`", crate::error::excerpt(&status)))
            })?,
            message: object.optional("statusMessage").ok().flatten(),
            created_at: text("createdAt"),
            updated_at: text("lastUpdatedAt"),
            ttl: millis(ttl),
            poll: millis(poll),
        })
    }
}

/// The members for the lifetime and for the interval, by era.
const fn names(version: ProtocolVersion) -> (&'static str, &'static str) {
    match version.era() {
        Era::Modern => ("ttlMs", "pollIntervalMs"),
        Era::Legacy => ("ttl", "pollInterval"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: TASKX-S-007, TASKL-B-020
    #[test]
    fn both_wires_have_the_same_task() {
        let task = Task {
            id: "t".into(),
            status: TaskStatus::Working,
            message: None,
            created_at: "1970-01-01T00:00:00.000Z".into(),
            updated_at: "1970-01-01T00:00:00.000Z".into(),
            ttl: Some(Duration::from_secs(60)),
            poll: Some(Duration::from_secs(1)),
        };
        let modern = task.write(ProtocolVersion::V2026_07_28);
        let legacy = task.write(ProtocolVersion::V2025_11_25);
        assert_eq!(modern.get("ttlMs"), Some(60_000_u64.into()));
        assert_eq!(legacy.get("pollInterval"), Some(1_000_u64.into()));
        assert!(!modern.contains("ttl") && !legacy.contains("ttlMs"));
        for (object, version) in [(modern, ProtocolVersion::V2026_07_28), (legacy, ProtocolVersion::V2025_11_25)] {
            assert_eq!(Task::read(&object, version), Ok(task.clone()));
        }
        let endless = Task { ttl: None, ..task };
        assert_eq!(endless.write(ProtocolVersion::V2025_11_25).get("ttl"), Some(RawJson::null()));
    }
}
