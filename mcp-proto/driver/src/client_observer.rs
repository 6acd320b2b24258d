//! What a supervisor learns of a client, in order.

use crate::sync::{Mutex, lock};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use mcp_proto::call::{CallNews, RawResult};
use mcp_proto::client::{Event, Termination};
use mcp_proto::error::{CallError, StreamEnd};
use mcp_proto::input::Change;
use mcp_proto::model::capabilities::ServerCapabilities;

/// The number by which an observer knows one of its calls.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CallTag(pub u64);

/// What supervises a client: it learns at once what happens to the client and to the calls of the
/// supervisor, in order, whatever the callback for events does.
pub struct ClientObserver {
    /// What happened, in the order of the lock of the client.
    observed: Mutex<VecDeque<ClientReport>>,
    told: Box<dyn Fn(&Self) + Send + Sync>,
}

impl ClientObserver {
    /// Creates an observer. `told` is called outside of the lock of the client, possibly on several
    /// threads at a time. Under a lock of its own, it takes what happened with
    /// [`take`](Self::take).
    pub fn new(told: impl Fn(&Self) + Send + Sync + 'static) -> Self {
        Self { observed: Mutex::default(), told: Box::new(told) }
    }

    /// Adds what happened, under the lock of the client. [`tell`](Self::tell) follows without it.
    pub fn push(&self, observed: ClientReport) {
        lock(&self.observed).push_back(observed);
    }

    /// Tells what happened, unless another thread has.
    pub fn tell(&self) {
        if !lock(&self.observed).is_empty() {
            (self.told)(self);
        }
    }

    /// Takes what happened first.
    pub fn take(&self) -> Option<ClientReport> {
        lock(&self.observed).pop_front()
    }
}

/// What a [`ClientObserver`] gets.
#[derive(Debug)]
pub enum ClientReport {
    /// Negotiation succeeded: see [`Event::Ready`].
    Ready(ServerCapabilities),
    /// See [`Event::Changed`].
    Changed(Change),
    /// See [`Event::PingMissed`].
    PingMissed {
        /// The number of pings missed since the last response.
        in_a_row: u32,
    },
    /// The session has ended with its stream: see [`Event::ListenerLost`].
    SessionLost(StreamEnd),
    /// See [`Event::Progress`] and [`Event::Task`].
    News(CallTag, CallNews),
    /// See [`Event::Ended`].
    Ended(CallTag, Result<RawResult, CallError>),
    /// The client has not begun the call, since it closes or has ended.
    NotBegun(CallTag),
    /// See [`Event::Terminated`]. All calls that have begun have ended.
    Terminated(Termination),
}

impl ClientReport {
    /// Returns what an observer gets of an event of the client itself. `None` if nothing.
    pub fn of(event: &Event) -> Option<Self> {
        match event {
            Event::Ready(server) => Some(Self::Ready(server.capabilities.clone())),
            Event::Changed(change) => Some(Self::Changed(change.clone())),
            Event::PingMissed { in_a_row, .. } => Some(Self::PingMissed { in_a_row: *in_a_row }),
            Event::ListenerLost { cause, ends_session: true, .. } => Some(Self::SessionLost(cause.clone())),
            Event::Terminated(why) => Some(Self::Terminated(why.clone())),
            _ => None,
        }
    }
}
