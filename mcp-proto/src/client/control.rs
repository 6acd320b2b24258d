//! Events without a meaning in the protocol, and the streams that they come on.

use super::env::ClientEnv;
use crate::input::CallId;
use crate::rpc::{InvalidKind, InvalidMessage, Object, RawJson};
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

impl ControlEvent {
    /// Returns an object on a duplex connection that is no message, if the application handles it
    /// itself.
    pub(super) fn of(env: &ClientEnv, object: &InvalidMessage) -> Option<Self> {
        let control = &env.config.control;
        if control.is_empty() || !env.is_duplex() || object.kind != InvalidKind::NotJsonRpc {
            return None;
        }
        let data = &object.head;
        let object = Object::read(&RawJson::parse(data.clone()).ok()?).ok()?;
        let event = object.optional::<String>("type").ok()?.filter(|kind| control.contains(kind))?;
        Some(Self { stream: None, event, id: None, data: data.clone() })
    }
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
