//! The inputs of a supervisor as values, and what it returns for them.

use super::{CallPlan, CallRefusal, Generation, KeyInUse, ListKind, LoadedList, ServerSpec, Ticket};
use alloc::string::String;
use alloc::sync::Arc;
use mcp_proto::client::{ClientConfig, Termination};
use mcp_proto::error::{CallError, StreamEnd};
use mcp_proto::input::Change;
use mcp_proto::model::capabilities::ServerCapabilities;

/// An input of a [`Supervisor`](super::Supervisor): a call of one of its methods, with the
/// arguments.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Input<K> {
    /// [`add`](super::Supervisor::add).
    Add(K, ServerSpec),
    /// [`replace`](super::Supervisor::replace).
    Replace(K, ServerSpec),
    /// [`remove`](super::Supervisor::remove).
    Remove(K),
    /// [`reconnect`](super::Supervisor::reconnect).
    Reconnect(K),
    /// [`resolved`](super::Supervisor::resolved).
    Resolved(Generation, Result<Arc<ClientConfig>, String>),
    /// [`ready`](super::Supervisor::ready).
    Ready(Generation, #[cfg_attr(feature = "record", serde(with = "mcp_proto::record::value"))] ServerCapabilities),
    /// [`ended`](super::Supervisor::ended).
    Ended(Generation, Termination),
    /// [`session_lost`](super::Supervisor::session_lost).
    SessionLost(Generation, StreamEnd),
    /// [`changed`](super::Supervisor::changed).
    Changed(Generation, Change),
    /// [`ping_missed`](super::Supervisor::ping_missed).
    PingMissed(Generation, u32),
    /// [`loaded`](super::Supervisor::loaded).
    Loaded(Generation, ListKind, Result<LoadedList, CallError>),
    /// [`call`](super::Supervisor::call).
    Call(K, CallPlan),
    /// [`finished`](super::Supervisor::finished).
    Finished(Ticket, Result<(), CallError>),
    /// [`not_begun`](super::Supervisor::not_begun).
    NotBegun(Ticket),
    /// [`cancel`](super::Supervisor::cancel).
    Cancel(Ticket),
    /// [`close`](super::Supervisor::close).
    Close,
    /// [`handle_timeout`](super::Supervisor::handle_timeout).
    Tick,
}

/// What a [`Supervisor`](super::Supervisor) returns for an [`Input`].
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
#[must_use]
pub enum InputReply {
    /// Nothing.
    Nothing,
    /// Whether the supervisor did it.
    Done(bool),
    /// The call has begun, or was refused at once.
    Call(Result<Ticket, CallRefusal>),
}

/// The result of a method for an input.
pub(super) trait Outcome {
    fn returned(&self) -> InputReply;
}

impl Outcome for () {
    fn returned(&self) -> InputReply {
        InputReply::Nothing
    }
}

impl Outcome for bool {
    fn returned(&self) -> InputReply {
        InputReply::Done(*self)
    }
}

impl Outcome for Result<(), KeyInUse> {
    fn returned(&self) -> InputReply {
        InputReply::Done(self.is_ok())
    }
}

impl Outcome for Result<Ticket, CallRefusal> {
    fn returned(&self) -> InputReply {
        InputReply::Call(self.clone())
    }
}
