//! The state of an HTTP exchange.

use super::accept::Accepts;
use crate::exchange::{Headers, Inbound, RequestHead};
use crate::frame::HandshakeReply;
use crate::http_support::HttpSupport;
use crate::input::AdmitKey;
use crate::rpc::Id;
use crate::server::keys::StreamKey;
use crate::server::rights::ClientRights;
use alloc::boxed::Box;
use alloc::sync::Arc;
use bytes::Bytes;

/// The state of an HTTP exchange whose response is not written.
#[derive(Debug)]
pub(in crate::server) struct Http {
    pub(super) head: Arc<RequestHead>,
    /// The media types that the client accepts.
    pub(super) accepts: Accepts,
    /// From whom it comes, once that was decided.
    pub(super) rights: ClientRights,
    pub(super) stage: ResponseStage,
    /// The handshake of a WebSocket, to be accepted once the request was admitted.
    pub(super) upgrade: Option<Box<HandshakeReply>>,
    /// The client has closed its sending side. It may have left.
    pub(super) read_closed: bool,
    pub(super) _support: HttpSupport,
}

/// What an exchange waits for at the store.
#[derive(Debug)]
pub(super) enum StoreWait {
    /// The session of this message.
    Load(Inbound),
    /// A new session is kept: then this is the response to its `initialize`.
    Answer { headers: Headers, body: Bytes, id: Id },
    /// A session is dropped.
    Drop,
    /// Another server gets the answer of a client.
    Send,
    /// The server of its stream gets a posted message.
    Post,
    /// A stream is opened.
    Open,
}

/// How far the response of an exchange has come.
#[derive(Debug)]
pub(super) enum ResponseStage {
    /// The application decides from the head. `early`: the message, from a driver that does not
    /// hold the body back.
    Admitting { key: AdmitKey, early: Option<Box<Inbound>> },
    /// The engine waits for its message.
    Reading,
    /// The engine responds at once.
    Answering,
    /// It waits for the store.
    Storing(Box<StoreWait>),
    /// It carries the response stream of a request, or the stream of a GET.
    Carrying(StreamKey),
    /// It carries a stream of another server.
    Tailing,
    /// Everything was sent and is not written yet, so the stream is kept.
    Written(StreamKey),
}

impl Http {
    /// From whom it comes, once that was decided.
    pub(in crate::server) const fn rights(&self) -> &ClientRights {
        &self.rights
    }

    pub(in crate::server) const fn head(&self) -> &Arc<RequestHead> {
        &self.head
    }

    /// Returns the stream that it carries.
    pub(in crate::server) const fn stream(&self) -> Option<StreamKey> {
        match self.stage {
            ResponseStage::Carrying(stream) => Some(stream),
            ResponseStage::Admitting { .. }
            | ResponseStage::Reading
            | ResponseStage::Answering
            | ResponseStage::Storing(_)
            | ResponseStage::Tailing
            | ResponseStage::Written(_) => None,
        }
    }

    /// Returns the stream that it carries, or whose end is not written yet.
    pub(in crate::server) const fn open_stream(&self) -> Option<StreamKey> {
        match self.stage {
            ResponseStage::Carrying(stream) | ResponseStage::Written(stream) => Some(stream),
            ResponseStage::Admitting { .. }
            | ResponseStage::Reading
            | ResponseStage::Answering
            | ResponseStage::Storing(_)
            | ResponseStage::Tailing => None,
        }
    }

    /// Returns the key of its admission, while the application has not decided.
    pub(in crate::server) const fn waits_for_admission(&self) -> Option<AdmitKey> {
        match self.stage {
            ResponseStage::Admitting { key, .. } => Some(key),
            ResponseStage::Reading
            | ResponseStage::Answering
            | ResponseStage::Storing(_)
            | ResponseStage::Tailing
            | ResponseStage::Carrying(_)
            | ResponseStage::Written(_) => None,
        }
    }
}
