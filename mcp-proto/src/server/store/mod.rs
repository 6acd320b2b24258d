//! A store that several servers share, so that they serve their clients together. Each of them is a
//! *node*. The engine says what it wants of the store as data, and its driver carries it out:
//! [`Event::Store`](super::Event::Store) has a [`StoreRequest`], and
//! [`ServerCommands::stored`](super::ServerCommands::stored) returns what became of it. What other
//! nodes say arrives with [`ServerCommands::arrived`](super::ServerCommands::arrived).
//!
//! | what happens at one node | what the others do |
//! |---|---|
//! | [`publish`](super::ServerCommands::publish) | notify their clients of the change |
//! | [`revoke`](super::ServerCommands::revoke) | end everything of the principal that they have, and its sessions in the store when they load them |
//! | [`elicited`](super::ServerCommands::elicited) | the node whose client was asked to open the page notifies it |
//!
//! A legacy session over HTTP has no home: its record is in the store, and a request of it runs at
//! the node where it arrives. The client may answer a question of one node at another, resume a
//! stream at any, and end the session at any. The events of a stream are in the store; the node
//! that runs the request tells the node that has the client when there are more. A task is in the
//! store too: its client may ask for it anywhere, and it outlives the node that works on it.
//!
//! A node is a member of the store for as long as its lease lasts, in the time of the store. It
//! renews the lease every [`node_renewal`](crate::limits::ServerLimits::node_renewal). A node whose
//! lease has lapsed never gets it back: it joins as another node.
//!
//! Every request may be carried out twice: the engine repeats one whose reply did not come within
//! [`store_timeout`](crate::limits::ServerLimits::store_timeout).

mod latency;
mod memory;
mod node;
mod record;
mod replies;
mod unsaid;

pub use crate::input::store::{
    Epoch, Incarnation, News, NodeItem, NodeTag, PrincipalDigest, RequestDigest, SessionDigest, StoreError, StoreReply,
    StoreRequest, StoreToken, StoredEvent, TaskDigest,
};
pub use memory::Memory;

pub(super) use node::{Node, Then};
pub(super) use record::{SessionChange, SessionRecord};

/// What a store serves, beside the leases and the news of its nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Serves {
    sessions: bool,
    tasks: bool,
}

impl Serves {
    /// Only the leases and the news.
    pub const CHANGES: Self = Self { sessions: false, tasks: false };
    /// The sessions of legacy clients over HTTP too, with their streams.
    pub const SESSIONS: Self = Self { sessions: true, tasks: false };
    /// Tasks too.
    pub const TASKS: Self = Self { sessions: false, tasks: true };

    /// Returns what both serve.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self { sessions: self.sessions || other.sessions, tasks: self.tasks || other.tasks }
    }

    /// Returns whether it serves sessions.
    pub const fn sessions(self) -> bool {
        self.sessions
    }

    /// Returns whether it serves tasks.
    pub const fn tasks(self) -> bool {
        self.tasks
    }
}

/// When an event of a stream is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// When the store has it: what a client has seen can be resumed at any server.
    #[default]
    Stored,
    /// At once, so that a slow store delays nothing. If this server is lost, a client may have seen
    /// events that no other one knows.
    Behind,
}
