//! What an engine and its store say to each other, and the nodes of a store. The public path of all
//! this is [`server::store`](crate::server::store).

mod ids;
mod items;
mod news;

pub use ids::{Incarnation, NodeTag, PrincipalDigest, RequestDigest, SessionDigest, TaskDigest};
pub use items::NodeItem;
pub use news::News;

use crate::exchange::Closed;
use crate::rpc::DecodeError;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use core::time::Duration;

/// Identifies a request to the store. An engine never reuses one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StoreToken(pub u64);

/// The right to write a stream. Only the newest epoch of a stream may.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Epoch {
    /// The node that has it.
    pub node: Incarnation,
    /// The number of times that the stream was claimed.
    pub number: u64,
}

/// An event of a stream in the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredEvent {
    /// Its number: the events of a stream are 1, 2, 3, …
    pub number: u64,
    /// Its data.
    pub data: Bytes,
}

/// What a server wants of the store. Each request may be carried out twice, with the same outcome
/// as once.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum StoreRequest {
    /// Take a lease. The reply is [`Joined`](StoreReply::Joined), or [`Taken`](StoreReply::Taken)
    /// if another member has the same [tag](Incarnation::tag).
    Join {
        /// The node.
        node: Incarnation,
        /// How long the lease lasts.
        lease: Duration,
    },
    /// Renew the lease, if it has not ended. The store keeps `beat` with it. The reply is
    /// [`Done`](StoreReply::Done) if the store had this beat or the one before, and
    /// [`Lapsed`](StoreReply::Lapsed) otherwise: then the lease has ended, or the store has lost
    /// what was written last.
    Renew {
        /// The node.
        node: Incarnation,
        /// The number of this renewal. `Join` counts as number 0.
        beat: u64,
        /// How long the lease lasts from now on.
        lease: Duration,
    },
    /// End the lease. The reply is [`Done`](StoreReply::Done), also if there is none.
    Leave {
        /// The node.
        node: Incarnation,
    },
    /// Keep a new session for this time. The reply is [`Done`](StoreReply::Done).
    Open {
        /// The session.
        session: SessionDigest,
        /// What is kept of it. Its version is 1.
        record: Bytes,
        /// The time after which it ends, unless it is kept for longer.
        ttl: Duration,
    },
    /// Return what is kept of a session, and keep it for this time from now on. The reply is
    /// [`Session`](StoreReply::Session) or [`Missing`](StoreReply::Missing).
    Load {
        /// The session.
        session: SessionDigest,
        /// The time after which it ends.
        ttl: Duration,
    },
    /// Replace what is kept of a session, if it has this version, which then grows by one. The
    /// reply is [`Done`](StoreReply::Done), also if exactly this was done before;
    /// [`Session`](StoreReply::Session) with what is kept under another version; or
    /// [`Missing`](StoreReply::Missing).
    Change {
        /// The session.
        session: SessionDigest,
        /// The version that is replaced.
        version: u64,
        /// What is kept of it from now on.
        record: Bytes,
    },
    /// Keep a session for this time from now on. The reply is [`Done`](StoreReply::Done) or
    /// [`Missing`](StoreReply::Missing).
    Touch {
        /// The session.
        session: SessionDigest,
        /// The time after which it ends.
        ttl: Duration,
    },
    /// Drop a session. The reply is [`Done`](StoreReply::Done), also if there is none.
    Close {
        /// The session.
        session: SessionDigest,
    },
    /// Take the right to write a stream of a session. The reply is
    /// [`Claimed`](StoreReply::Claimed), also if this node has the right already;
    /// [`Owned`](StoreReply::Owned) if another one has it, unless that is `over`;
    /// [`Over`](StoreReply::Over) after the last event; or [`Missing`](StoreReply::Missing). What
    /// the first claim says of its requests, a later one says again, of those without an answer.
    Claim {
        /// The session.
        session: SessionDigest,
        /// The stream: 0 is the session's own, which answers no request.
        stream: u64,
        /// The ids of the requests that it answers, as JSON. Only the first claim adds them.
        requests: Vec<Bytes>,
        /// The node.
        node: Incarnation,
        /// The epoch that ends with this.
        over: Option<Epoch>,
    },
    /// Add an event to a stream, and drop old ones. The reply is [`Done`](StoreReply::Done), also
    /// if the event is there, in whichever epoch it was added; [`Fenced`](StoreReply::Fenced) if
    /// the stream has another epoch; [`Gap`](StoreReply::Gap) unless the number follows the last
    /// one; [`Over`](StoreReply::Over) after the last event; or [`Missing`](StoreReply::Missing).
    Append {
        /// The session.
        session: SessionDigest,
        /// The stream.
        stream: u64,
        /// The right to write it.
        epoch: Epoch,
        /// The event.
        event: StoredEvent,
        /// Whether it will be sent as soon as it is stored, and not kept for a client that is away.
        is_sent: bool,
        /// The request that it answers.
        answers: Option<RequestDigest>,
        /// The number of the newest events that are kept, this one included: at least 1.
        keep: usize,
        /// Nothing follows. The events are kept for this time, also if the session is kept for
        /// longer. The requests that have no answer get none.
        last: Option<Duration>,
    },
    /// Return the events of a stream after one, at most 100: [`Stream`](StoreReply::Stream),
    /// [`Gap`](StoreReply::Gap) if some of them are not kept any more, or
    /// [`Missing`](StoreReply::Missing) if there is no such stream.
    Read {
        /// The session.
        session: SessionDigest,
        /// The stream.
        stream: u64,
        /// The number of an event. 0: all.
        after: u64,
    },
    /// Return which node runs a request: [`Owned`](StoreReply::Owned). If none does, the next claim
    /// for it within this time says that it was cancelled: [`Done`](StoreReply::Done).
    Cancel {
        /// The session.
        session: SessionDigest,
        /// The request.
        request: RequestDigest,
        /// The time.
        keep: Duration,
    },
    /// Keep a task in this version, if it is kept in the one before; version 1 is a new task. The
    /// reply is [`Done`](StoreReply::Done), also if exactly this was done before;
    /// [`Task`](StoreReply::Task) with what is kept in another version; or
    /// [`Missing`](StoreReply::Missing).
    PutTask {
        /// The task.
        task: TaskDigest,
        /// The version that it has from now on.
        version: u64,
        /// What is kept of it.
        record: Bytes,
        /// The node that works on it.
        owner: Option<Incarnation>,
        /// The principal in whose list it is.
        principal: Option<PrincipalDigest>,
        /// When it was created, in Unix milliseconds: the order of the list.
        created: u64,
        /// The time after which it ends.
        ttl: Duration,
    },
    /// Return what is kept of a task: [`Task`](StoreReply::Task) or
    /// [`Missing`](StoreReply::Missing).
    GetTask {
        /// The task.
        task: TaskDigest,
    },
    /// Return the tasks of a principal after one, at most `count`, the oldest first:
    /// [`Tasks`](StoreReply::Tasks).
    ListTasks {
        /// The principal.
        principal: PrincipalDigest,
        /// When the one before was created, in Unix milliseconds, and the task.
        after: Option<(u64, TaskDigest)>,
        /// The number of tasks.
        count: usize,
    },
    /// Return tasks of nodes that are no members, at most 100, unless another node has asked for
    /// them within this time: [`Orphans`](StoreReply::Orphans).
    Orphans {
        /// The node that asks.
        node: Incarnation,
        /// The time.
        lease: Duration,
    },
    /// End the access of a principal: sessions that were opened before count as
    /// [revoked](Self::IsRevoked) for this time. The reply is [`Done`](StoreReply::Done).
    Revoke {
        /// The principal.
        principal: PrincipalDigest,
        /// The time, longer than a session is kept without a request.
        keep: Duration,
    },
    /// Return whether the access of a principal has ended since one of its sessions was opened:
    /// [`Done`](StoreReply::Done), or [`Missing`](StoreReply::Missing) if it has not.
    IsRevoked {
        /// The principal.
        principal: PrincipalDigest,
        /// When the session was opened, as the store has said.
        opened: u64,
    },
    /// Return whether a node is a member: [`Done`](StoreReply::Done) or
    /// [`NoNode`](StoreReply::NoNode).
    IsMember {
        /// The node.
        node: Incarnation,
    },
    /// Deliver this to one node. The reply is [`Done`](StoreReply::Done), or
    /// [`NoNode`](StoreReply::NoNode), or [`Full`](StoreReply::Full) if that node has not taken
    /// 10,000 items, or 64 MiB of them.
    Send {
        /// The node.
        node: NodeTag,
        /// What it gets.
        item: NodeItem,
    },
    /// Tell this to all other nodes: each of them gets it as [`NodeItem::News`]. The reply is
    /// [`Done`](StoreReply::Done).
    Publish {
        /// The node that says it.
        node: Incarnation,
        /// What it says.
        news: News,
    },
}

impl StoreRequest {
    /// Returns the size of what it carries that is in no other place of the engine, in bytes.
    pub(crate) fn carried(&self) -> usize {
        match self {
            Self::Open { record, .. } | Self::Change { record, .. } | Self::PutTask { record, .. } => record.len(),
            Self::Send { item, .. } => item.size(),
            _ => 0,
        }
    }
}

/// What became of a [`StoreRequest`] that the store has carried out.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum StoreReply {
    /// It is done.
    Done,
    /// The node is a member. From now on it gets what others say.
    Joined {
        /// Why the store is not safe: it may drop what it keeps.
        warning: Option<String>,
    },
    /// Another member has the tag of the node.
    Taken,
    /// The node is no member any more.
    Lapsed,
    /// What is kept of a session.
    Session {
        /// Counts its changes.
        version: u64,
        /// What is kept.
        record: Bytes,
        /// When it was opened, in milliseconds of the time of the store.
        opened: u64,
    },
    /// There is no such session, stream or task.
    Missing,
    /// What is kept of a task.
    Task {
        /// Counts its changes.
        version: u64,
        /// What is kept.
        record: Bytes,
        /// The node that works on it.
        owner: Option<Incarnation>,
    },
    /// What is kept of some tasks.
    Tasks(Vec<Bytes>),
    /// Tasks whose nodes are lost.
    Orphans(Vec<TaskDigest>),
    /// The node may write the stream.
    Claimed {
        /// The right.
        epoch: Epoch,
        /// The number of the last event.
        last: u64,
        /// The number of the last event that was sent to the client.
        sent: u64,
        /// The requests without an answer, as JSON.
        open: Vec<Bytes>,
        /// Those of them that were cancelled before.
        cancelled: Vec<RequestDigest>,
    },
    /// Another node may write the stream.
    Owned(Epoch),
    /// The stream has got its last event.
    Over,
    /// The stream has another epoch.
    Fenced(Epoch),
    /// Events are missing after this one.
    Gap(u64),
    /// Events of a stream.
    Stream {
        /// The events.
        events: Vec<StoredEvent>,
        /// Who may write it.
        owner: Epoch,
        /// Whether the last of these events is the last of the stream.
        is_over: bool,
    },
    /// There is no such node.
    NoNode,
    /// The node has too much that it has not taken.
    Full,
}

/// Why a [`StoreRequest`] was not carried out, or perhaps was not.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// No reply came within [`store_timeout`](crate::limits::ServerLimits::store_timeout).
    Timeout,
    /// There is no connection to the store, or it was lost.
    Unreachable(Closed),
    /// The store has refused it, for this reason.
    Refused(String),
    /// What the store has kept cannot be read.
    Corrupt(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => f.write_str("the store did not reply in time"),
            Self::Unreachable(why) => write!(f, "the store cannot be reached: {why}"),
            Self::Refused(why) => write!(f, "the store has refused: {why}"),
            Self::Corrupt(why) => write!(f, "the store has something that cannot be read: {why}"),
        }
    }
}

impl core::error::Error for StoreError {}

impl From<DecodeError> for StoreError {
    fn from(why: DecodeError) -> Self {
        Self::Corrupt(alloc::format!("{why}"))
    }
}
