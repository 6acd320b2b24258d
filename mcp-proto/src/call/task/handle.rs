//! A task that outlives its call.

use super::Task;
use crate::rpc::{DecodeError, Object, RawJson};
use crate::version::ProtocolVersion;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

/// A task that outlives its call, and the program too: [`Call::detach`](crate::Call::detach)
/// returns it, and [`attach`](crate::tasks::attach) takes it.
///
/// It belongs to one server. Keep it as a secret ([`to_json`](Self::to_json)): a server that does
/// not know its clients gives the result to each that has the id. `Debug` does not show the id.
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct TaskHandle {
    pub(crate) id: String,
    /// The name of the server.
    pub(crate) server: String,
    /// The host and the port of its URL. `None`: it has none.
    pub(crate) authority: Option<String>,
    pub(crate) version: ProtocolVersion,
    pub(crate) created_at: String,
    pub(crate) ttl: Option<Duration>,
    pub(crate) poll: Option<Duration>,
    /// The names of the questions whose answers the server has.
    pub(crate) answered: BTreeSet<String>,
}

/// The state of a task that a call waits for, as it was received.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct TaskUpdate {
    /// The task.
    pub task: Task,
    /// Its handle, with which another call can wait for it after the end of the program. Each one
    /// replaces the one before: it has the questions that were answered since.
    pub handle: TaskHandle,
}

impl TaskHandle {
    pub(crate) fn new(task: &Task, server: &str, authority: Option<String>, version: ProtocolVersion) -> Self {
        Self {
            id: task.id.clone(),
            server: server.into(),
            authority,
            version,
            created_at: task.created_at.clone(),
            ttl: task.ttl,
            poll: task.poll,
            answered: BTreeSet::new(),
        }
    }

    /// Returns the id of the task.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the name of its server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Encodes it. [`read`](Self::read) decodes it.
    pub fn to_json(&self) -> RawJson {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let answered: Vec<&str> = self.answered.iter().map(String::as_str).collect();
        let handle = Object::new().with("id", self.id.as_str()).with("server", self.server.as_str());
        let handle = handle.with_opt("authority", self.authority.as_deref()).with("version", self.version.as_str());
        let handle = handle.with("createdAt", self.created_at.as_str());
        let handle = handle.with_opt("ttlMs", self.ttl.map(millis)).with_opt("pollIntervalMs", self.poll.map(millis));
        handle.with("answered", answered).into()
    }

    /// Decodes what [`to_json`](Self::to_json) has encoded.
    ///
    /// # Errors
    /// [`DecodeError`] if a member is missing or of another type, or the revision is not known.
    pub fn read(json: &RawJson) -> Result<Self, DecodeError> {
        let object = Object::read(json)?;
        let millis = |key| Ok::<_, DecodeError>(object.optional::<u64>(key)?.map(Duration::from_millis));
        let version = object.required_str("version")?;
        Ok(Self {
            id: object.required("id")?,
            server: object.required("server")?,
            authority: object.optional("authority")?,
            version: ProtocolVersion::parse(&version).ok_or_else(|| DecodeError::new("no known revision"))?,
            created_at: object.required("createdAt")?,
            ttl: millis("ttlMs")?,
            poll: millis("pollIntervalMs")?,
            answered: object.required("answered")?,
        })
    }
}

impl fmt::Debug for TaskHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHandle")
            .field("server", &self.server)
            .field("version", &self.version)
            .field("created_at", &self.created_at)
            .field("ttl", &self.ttl)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::task::TaskStatus;
    use alloc::format;

    fn handle() -> TaskHandle {
        let task = Task {
            id: "secret".into(),
            status: TaskStatus::Working,
            message: None,
            created_at: "2026-11-29T00:00:00Z".into(),
            updated_at: "2026-11-29T00:00:00Z".into(),
            ttl: Some(Duration::from_secs(60)),
            poll: None,
        };
        let mut handle = TaskHandle::new(&task, "name", Some("a.test:4000".into()), ProtocolVersion::V2026_07_28);
        handle.answered.insert("who".into());
        handle
    }

    #[test]
    fn a_handle_is_the_same_after_a_restart() {
        let handle = handle();
        assert_eq!(TaskHandle::read(&handle.to_json()), Ok(handle.clone()));
        let endless = TaskHandle { ttl: None, authority: None, answered: BTreeSet::new(), ..handle };
        assert_eq!(TaskHandle::read(&endless.to_json()), Ok(endless));
    }

    #[test]
    fn a_handle_of_another_form_is_an_error() {
        for key in ["id", "server", "version", "createdAt", "answered"] {
            let mut object = Object::read(&handle().to_json()).unwrap();
            object.set(key, RawJson::null());
            assert!(TaskHandle::read(&object.into()).is_err(), "{key}");
        }
    }

    #[test]
    fn output_of_a_handle_does_not_show_its_id() {
        assert!(!format!("{:?}", handle()).contains("secret"));
    }
}
