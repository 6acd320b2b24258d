//! The handlers of one connection as a set of futures: only those that were woken are polled, so many waiting ones cost nothing.

use crate::config::BoxFuture;
use crate::sync::{Mutex, guarded, lock};
use mcp_proto::Outcome;
use mcp_proto::input::RequestKey;
use mcp_proto::server::Responder;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// Handlers under way.
#[derive(Default)]
pub(crate) struct Tasks {
    tasks: BTreeMap<RequestKey, Task>,
    woken: Arc<Mutex<Woken>>,
}

struct Task {
    responder: Responder,
    handler: BoxFuture<Outcome>,
    waker: Waker,
}

/// Which handlers were woken, and who is to poll them.
#[derive(Default)]
struct Woken {
    keys: VecDeque<RequestKey>,
    parent: Option<Waker>,
}

struct TaskWaker {
    key: RequestKey,
    woken: Arc<Mutex<Woken>>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let mut woken = lock(&self.woken);
        // A handler that wakes itself over and over stands in the queue once.
        if !woken.keys.contains(&self.key) {
            woken.keys.push_back(self.key);
        }
        let parent = woken.parent.take();
        drop(woken);
        parent.into_iter().for_each(Waker::wake);
    }
}

impl Tasks {
    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Adds a handler; it is polled by the next [`poll`](Self::poll).
    pub(crate) fn push(&mut self, responder: Responder, handler: BoxFuture<Outcome>) {
        let key = responder.key();
        let waker = Waker::from(Arc::new(TaskWaker { key, woken: self.woken.clone() }));
        waker.wake_by_ref();
        self.tasks.insert(key, Task { responder, handler, waker });
    }

    /// Drops a handler where it stands. Its responder goes with it: the engine asked for that.
    pub(crate) fn cancel(&mut self, key: RequestKey) {
        self.remove(key);
    }

    /// Takes a handler out; a panic in its drop is its own.
    fn remove(&mut self, key: RequestKey) -> Option<Responder> {
        let task = self.tasks.remove(&key)?;
        guarded(|| drop(task.handler));
        Some(task.responder)
    }

    /// Polls one handler that was woken. `Ready(Some)`: it has ended. `Ready(None)`: it has not. Pending: none was woken.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<(Responder, Outcome)>> {
        let key = {
            let mut woken = lock(&self.woken);
            let Some(key) = woken.keys.pop_front() else {
                let before = woken.parent.replace(cx.waker().clone());
                drop(woken);
                drop(before);
                return Poll::Pending;
            };
            key
        };
        let Some(task) = self.tasks.get_mut(&key) else { return Poll::Ready(None) };
        let outcome = match guarded(|| task.handler.as_mut().poll(&mut Context::from_waker(&task.waker))) {
            Some(Poll::Pending) => return Poll::Ready(None),
            Some(Poll::Ready(outcome)) => outcome,
            None => Outcome::internal("the handler panicked"),
        };
        Poll::Ready(self.remove(key).map(|responder| (responder, outcome)))
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        while let Some((key, _)) = self.tasks.first_key_value() {
            self.remove(*key);
        }
    }
}
