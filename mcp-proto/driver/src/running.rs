//! The requests and admissions that callbacks of the application work on: their cancel flags, and
//! the way of their results to the engine.

use super::job::{Cancel, ServerLink};
use super::work::Work;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use mcp_proto::exchange::RequestHead;
use mcp_proto::input::{AdmitKey, AdmitToken, RequestKey, ServerCommand};
use mcp_proto::server::{IncomingRequest, Responder};

/// The requests and admissions that were passed to the application and are not answered. It belongs
/// to the driver's lock of the engine. It mirrors what the engine says, and decides nothing.
#[derive(Debug, Default)]
pub struct RunningCallbacks {
    requests: BTreeMap<RequestKey, Arc<Cancel>>,
    admissions: BTreeMap<AdmitKey, Arc<Cancel>>,
    /// Everything is cancelled, also what begins later.
    ended: bool,
}

impl RunningCallbacks {
    /// Begins a request. From here on, a cancellation finds it wherever it has got to.
    pub fn begin(&mut self, link: &ServerLink, responder: Responder, incoming: IncomingRequest) -> Work {
        let cancel = self.flag();
        self.requests.insert(responder.key(), Arc::clone(&cancel));
        Work::request(link, responder, incoming, cancel)
    }

    /// Begins an admission.
    pub fn admit(&mut self, link: &ServerLink, token: AdmitToken, head: Option<Arc<RequestHead>>) -> Work {
        let cancel = self.flag();
        self.admissions.insert(token.key(), Arc::clone(&cancel));
        Work::admission(link, token, head, cancel)
    }

    /// Cancels a request: its handler should stop, and its result is dropped. Returns what to call
    /// [`Cancellation::wake`] on once no lock is held.
    pub fn cancel(&self, key: RequestKey) -> Cancellation {
        Cancellation::new(self.requests.get(&key))
    }

    /// Cancels an admission, which the engine has withdrawn.
    pub fn withdraw(&self, key: AdmitKey) -> Cancellation {
        Cancellation::new(self.admissions.get(&key))
    }

    /// Records that the client of a request has left and cannot resume. Its handler goes on.
    pub fn mark_unheard(&self, key: RequestKey) {
        self.requests.get(&key).into_iter().for_each(|cancel| cancel.mark_unheard());
    }

    /// Cancels everything, also what begins from now on.
    pub fn cancel_all(&mut self) -> impl Iterator<Item = Cancellation> + use<> {
        self.ended = true;
        let all: Vec<_> = self.requests.values().chain(self.admissions.values()).cloned().collect();
        all.into_iter().map(|cancel| Cancellation(Some(cancel)))
    }

    /// Removes what this command answers. Call it for every command of the [`ServerLink`].
    pub fn answered(&mut self, command: &ServerCommand) {
        match command {
            ServerCommand::Respond(answer) => drop(self.requests.remove(&answer.key())),
            ServerCommand::Admit(key, _) => drop(self.admissions.remove(key)),
            _ => {}
        }
    }

    /// Returns whether no callback is running or waits to be run.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.admissions.is_empty()
    }

    /// Returns the number of handlers that run although their request was cancelled.
    pub fn abandoned(&self) -> usize {
        self.requests.values().filter(|cancel| cancel.is_abandoned()).count()
    }

    fn flag(&self) -> Arc<Cancel> {
        let cancel = Arc::<Cancel>::default();
        if self.ended {
            cancel.set();
        }
        cancel
    }
}

/// A callback to cancel. Cancelling wakes its task: see [locks](super#locks).
#[derive(Debug)]
#[must_use = "the callback does not stop"]
pub struct Cancellation(Option<Arc<Cancel>>);

impl Cancellation {
    pub(super) fn new(cancel: Option<&Arc<Cancel>>) -> Self {
        Self(cancel.cloned())
    }

    /// Cancels the callback. Does nothing if it has ended.
    pub fn wake(self) {
        self.0.into_iter().for_each(|cancel| cancel.set());
    }
}
