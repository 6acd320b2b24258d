//! The place among the tasks that a request has from its acceptance on, so that it can become a
//! task at any time.

use crate::server::keys::TaskKey;
use crate::server::responder::ResponderData;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

/// See the [module](self). The handler and the responder of a request share it.
#[derive(Clone)]
pub(crate) struct TaskSlot(Arc<Place>);

struct Place {
    key: TaskKey,
    /// Its id, if another server has made it.
    id: Option<String>,
    shared: Arc<ResponderData>,
    /// Whether the request has become a task, as its handler knows.
    is_taken: AtomicBool,
}

impl TaskSlot {
    pub(in crate::server) fn new(key: TaskKey, shared: Arc<ResponderData>) -> Self {
        Self(Arc::new(Place { key, id: None, shared, is_taken: AtomicBool::new(false) }))
    }

    /// The place of a task that another server has made.
    pub(in crate::server) fn adopted(key: TaskKey, id: String, shared: Arc<ResponderData>) -> Self {
        Self(Arc::new(Place { key, id: Some(id), shared, is_taken: AtomicBool::new(true) }))
    }

    pub(in crate::server) fn key(&self) -> TaskKey {
        self.0.key
    }

    /// Returns the id of the task.
    pub(crate) fn id(&self) -> String {
        self.0.id.clone().unwrap_or_else(|| self.0.shared.task_id(self.0.key))
    }

    /// Returns whether the request is a task.
    pub(crate) fn is_taken(&self) -> bool {
        self.0.is_taken.load(Ordering::Acquire)
    }

    /// Makes it a task. Returns whether it was none before.
    pub(crate) fn take(&self) -> bool {
        !self.0.is_taken.swap(true, Ordering::AcqRel)
    }
}

impl PartialEq for TaskSlot {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl fmt::Debug for TaskSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskSlot").field("key", &self.key()).field("is_taken", &self.is_taken()).finish()
    }
}
