//! Events without a meaning in the protocol, and the streams that they come on.

use crate::input::CallId;
use alloc::string::String;
use bytes::Bytes;

/// An event that has no meaning in the protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControlEvent {
    /// The purpose of the stream. `None` on a duplex connection.
    pub stream: Option<StreamOf>,
    /// The type of the event.
    pub event: String,
    /// The id of the event, which is also the last event id of its stream.
    pub id: Option<String>,
    /// Its data, unparsed; on a duplex connection the whole object.
    pub data: Bytes,
}

/// The purpose of an event stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum StreamOf {
    /// The response to a call.
    Call(CallId),
    /// The response to a ping of the engine.
    Own,
    /// Notifications and requests of the server that belong to no call. Over HTTP+SSE all messages
    /// of the server.
    Listener,
}
