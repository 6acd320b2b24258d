//! Tasks: requests whose result comes later, so that none holds a connection open. 2026-07-28 has
//! them as the extension `io.modelcontextprotocol/tasks`, and 2025-11-25 as an experimental part of
//! the revision itself.

mod calls;

pub use crate::call::task::{Task, TaskHandle, TaskStatus, TaskUpdate};
pub use calls::{CancelTask, DetachTool, Detached, GetTask, TaskState, UpdateTask, attach, cancel, get, list, update};

use super::lifecycle::meta;
use crate::rpc::{ErrorObject, Object, RawJson};
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
    /// Whether its handler runs again from the beginning at another server of a
    /// [store](crate::server::store), if its own is lost. Otherwise the task fails then. Default
    /// no.
    pub reruns: bool,
}

impl TaskOptions {
    /// Creates the default options.
    pub const fn new() -> Self {
        Self { ttl: None, poll: None, reruns: false }
    }

    /// Sets how long the task exists.
    #[must_use]
    pub const fn ttl(self, ttl: Duration) -> Self {
        Self { ttl: Some(ttl), ..self }
    }

    /// Lets its handler run again at another server if its own is lost: its effects may happen
    /// twice.
    #[must_use]
    pub const fn rerun(self, reruns: bool) -> Self {
        Self { reruns, ..self }
    }

    /// Sets how often a client should ask for its state.
    #[must_use]
    pub const fn poll(self, poll: Duration) -> Self {
        Self { poll: Some(poll), ..self }
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
}
