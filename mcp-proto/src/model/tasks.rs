//! Tasks: requests whose result comes later, so that none holds a connection open. 2026-07-28 has
//! them as the extension `io.modelcontextprotocol/tasks`, and 2025-11-25 as an experimental part of
//! the revision itself.

mod calls;
mod handle;

pub use calls::{CancelTask, DetachTool, Detached, GetTask, TaskState, UpdateTask, attach, cancel, get, list, update};
pub use handle::{TaskHandle, TaskUpdate};

use super::lifecycle::meta;
use crate::rpc::{DecodeError, ErrorObject, Object, RawJson};
use crate::version::{Era, ProtocolVersion};
use alloc::format;
use alloc::string::String;
use core::time::Duration;

/// The identifier of the extension of 2026-07-28.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Whether calls of a tool may become tasks. See [`Tool::task`](crate::Tool::task).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TaskSupport {
    /// They never do.
    #[default]
    Never,
    /// They do where the client has tasks and there is room.
    Optional,
    /// They always do. A call of a client without tasks is refused: with `-32021` on 2026-07-28,
    /// before with `-32601`.
    Required,
}

impl TaskSupport {
    /// Returns the word of 2025-11-25 (`execution.taskSupport`). `None`: the default.
    pub(crate) const fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Never => None,
            Self::Optional => Some("optional"),
            Self::Required => Some("required"),
        }
    }

    /// Decodes the member `execution` of a tool. A word that is not known is the default.
    pub(crate) fn read(execution: Option<&Object>) -> Self {
        match execution.and_then(|execution| execution.str("taskSupport")).as_deref() {
            Some("optional") => Self::Optional,
            Some("required") => Self::Required,
            _ => Self::Never,
        }
    }
}

/// What a handler says about its task: see [`Cx::into_task`](crate::route::Cx::into_task).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct TaskOptions {
    /// How long the task exists after its creation, whether it has ended or not. `None`: what the
    /// client requested (2025-11-25), or else
    /// [`task_ttl`](crate::limits::ServerLimits::task_ttl). At most
    /// [`max_task_ttl`](crate::limits::ServerLimits::max_task_ttl).
    pub ttl: Option<Duration>,
    /// How often a client should ask for its state. `None`:
    /// [`task_poll`](crate::limits::ServerLimits::task_poll).
    pub poll: Option<Duration>,
}

impl TaskOptions {
    /// Creates the default options.
    pub const fn new() -> Self {
        Self { ttl: None, poll: None }
    }

    /// Sets how long the task exists.
    #[must_use]
    pub const fn ttl(self, ttl: Duration) -> Self {
        Self { ttl: Some(ttl), ..self }
    }

    /// Sets how often a client should ask for its state.
    #[must_use]
    pub const fn poll(self, poll: Duration) -> Self {
        Self { poll: Some(poll), ..self }
    }
}

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
    /// Its id. A client that has it may read the task, unless the server knows its clients: treat it
    /// as a secret.
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

/// Returns the metadata of 2025-11-25 that binds a message to a task.
pub(crate) fn related(id: &str) -> RawJson {
    Object::new().with("taskId", id).into()
}

/// Adds to a result or to params that they belong to a task (2025-11-25).
pub(crate) fn relate(object: &mut Object, id: &str) {
    let meta = object.optional_object(meta::META).ok().flatten().unwrap_or_default();
    object.set(meta::META, meta.with(meta::RELATED_TASK, related(id)));
}

/// Returns the error for a client that has not declared the extension (2026-07-28).
pub(crate) fn undeclared() -> ErrorObject {
    let extensions = Object::new().with(EXTENSION, Object::new());
    let required = Object::new().with("extensions", extensions);
    let data = Object::new().with("requiredCapabilities", required);
    let text = format!("the client lacks the extension: {EXTENSION}");
    ErrorObject::new(crate::rpc::code::MISSING_CLIENT_CAPABILITY, text).with_data(data.into())
}

/// Writes a Unix time in UTC as ISO 8601, with milliseconds.
pub(crate) fn iso8601(unix: Duration) -> String {
    let seconds = unix.as_secs();
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Days of years that begin in March, so that a leap day is the last one: 1970-01-01 is 719,468
    // days after 0000-03-01, and an era of the calendar has 146,097 days.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", unix.subsec_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_the_calendar() {
        let at = |seconds| iso8601(Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59.000Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(1_709_251_199), "2024-02-29T23:59:59.000Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00.000Z");
        assert_eq!(iso8601(Duration::from_millis(1_764_424_402_007)), "2025-11-29T13:53:22.007Z");
    }

    // covers: TASKX-S-007, TASKL-B-020
    #[test]
    fn both_wires_have_the_same_task() {
        let task = Task {
            id: "t".into(),
            status: TaskStatus::Working,
            message: None,
            created_at: iso8601(Duration::ZERO),
            updated_at: iso8601(Duration::ZERO),
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
