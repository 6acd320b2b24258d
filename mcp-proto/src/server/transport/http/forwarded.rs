//! What clients send here for other servers, in sessions that they share: the store passes it on.

use super::exchange::StoreWait;
use super::legacy::unknown_session;
use crate::error::DiagnosticKind;
use crate::exchange::ExchangeId;
use crate::rpc::{ErrorObject, Id, InvalidMessage, Message, Payload, Response, code, parse, write_message};
use crate::server::Server;
use crate::server::client::ClientIdentity;
use crate::server::keys::SessionRef;
use crate::server::session::QuestionState;
use crate::server::store::{NodeItem, NodeTag, SessionDigest, StoreError, StoreReply, StoreRequest, Then};
use crate::time::Instant;
use alloc::boxed::Box;
use bytes::Bytes;

/// What a client has sent here for another server.
#[derive(Debug)]
pub(in crate::server) struct ForwardedItem {
    /// The exchange whose response waits for it.
    x: Option<ExchangeId>,
    /// Whose request it counts as.
    client: ClientIdentity,
    node: NodeTag,
    item: NodeItem,
    /// A server that is no member then is lost.
    until: Instant,
}

impl Server {
    /// Returns the server that has asked the question with this id, if it is another one.
    fn asker(&self, session: SessionRef, id: &Id) -> Option<NodeTag> {
        let node = self.wire.env.node.as_ref()?;
        let id = match id {
            Id::Int(id) => *id,
            Id::Text(text) => text.parse().ok()?,
        };
        if self.wire.session(session)?.question(Some(id)) != QuestionState::Unknown {
            // It may have joined under another tag since.
            return None;
        }
        let tag = NodeTag(u32::try_from(id >> 32).ok()?);
        (tag != node.tag() && tag.0 < 1 << 20).then_some(tag)
    }

    /// Passes the answer of a client on to the server that has asked. Returns false if that is this
    /// one. `x`: the exchange that waits for it.
    pub(in crate::server) fn forward_answer(
        &mut self,
        x: Option<ExchangeId>,
        session: SessionRef,
        response: &Response,
    ) -> bool {
        let (Some(node), Some(key)) = (self.asker(session, &response.id), session.http()) else { return false };
        let Some(entry) = self.wire.http.http_session(key) else { return false };
        let client = entry.client.clone();
        let message = write_message(&Message::Response(response.clone()));
        let item = NodeItem::Answer { session: SessionDigest(entry.digest), message };
        if let Some(x) = x {
            self.wait_for_store(x, StoreWait::Send);
        }
        self.forward(x, client, node, item);
        true
    }

    /// Passes an answer that cannot be read on to the server that has asked, as an error.
    pub(in crate::server) fn forward_unreadable(&mut self, session: SessionRef, answer: &InvalidMessage) -> bool {
        let Some(id) = &answer.id else { return false };
        let error = ErrorObject::new(code::INTERNAL_ERROR, "the client's answer cannot be read");
        let response = Response::new(id.clone(), Payload::Error(error));
        self.forward_answer(None, session, &response)
    }

    /// Passes what a client has sent on to another server. `x`: the exchange that waits for it.
    pub(super) fn forward(&mut self, x: Option<ExchangeId>, client: ClientIdentity, node: NodeTag, item: NodeItem) {
        let until = self.wire.env.now + self.shared.config.limits.server.node_renewal.saturating_mul(2);
        self.send_forwarded(ForwardedItem { x, client, node, item, until });
    }

    fn send_forwarded(&mut self, forwarded: ForwardedItem) {
        let (x, client) = (forwarded.x, forwarded.client.clone());
        let request = StoreRequest::Send { node: forwarded.node, item: forwarded.item.clone() };
        if !self.wire.env.ask_store_for(&client, request, Then::Send(Box::new(forwarded))) {
            self.refuse_forwarded(x, "the store does not reply");
        }
    }

    /// Sends again what could not be passed on some time ago.
    pub(in crate::server) fn send_delayed(&mut self) {
        for forwarded in self.wire.env.take_delayed() {
            self.send_forwarded(forwarded);
        }
    }

    /// Another server has got what a client has sent here, or has not.
    pub(in crate::server) fn item_is_sent(&mut self, forwarded: ForwardedItem, result: Result<StoreReply, StoreError>) {
        let (x, is_early) = (forwarded.x, self.wire.env.now < forwarded.until);
        match result {
            Ok(StoreReply::Done) => {
                if let Some(x) = x.filter(|x| self.take_wait(*x).is_some()) {
                    self.wire.env.accept(x);
                }
            }
            // Its lease may have ended while the store did not reply, or the store has lost it. A
            // server that runs joins again, with its number.
            Ok(StoreReply::NoNode) if is_early => self.delay(forwarded),
            Ok(StoreReply::NoNode) => self.has_no_node(&forwarded),
            // The client repeats what has a response of its own.
            _ if x.is_none() && is_early => self.delay(forwarded),
            Ok(_) => self.refuse_forwarded(x, "the server that has asked is busy"),
            Err(_) => self.refuse_forwarded(x, "the store does not reply"),
        }
    }

    fn delay(&mut self, forwarded: ForwardedItem) {
        let (x, size) = (forwarded.x, forwarded.item.size());
        let client = forwarded.client.clone();
        if !self.wire.env.delay(&client, forwarded, size) {
            self.refuse_forwarded(x, "too much waits for servers that do not reply");
        }
    }

    /// The server for which this was is lost.
    fn has_no_node(&mut self, forwarded: &ForwardedItem) {
        let waiting = forwarded.x.filter(|x| self.take_wait(*x).is_some());
        match (&forwarded.item, waiting) {
            // The stream has ended with its server.
            (NodeItem::Posted { .. }, Some(x)) => self.wire.env.reject(x, None, 404, &unknown_session()),
            (NodeItem::Posted { .. }, None) => {}
            (_, waiting) => {
                self.wire.env.diagnose(DiagnosticKind::LateAnswer, "the server that has asked is gone");
                waiting.into_iter().for_each(|x| self.wire.env.accept(x));
            }
        }
    }

    fn refuse_forwarded(&mut self, x: Option<ExchangeId>, why: &str) {
        match x {
            Some(x) if self.take_wait(x).is_some() => self.wire.env.refuse_busy(x, None, why),
            Some(_) => {}
            None => self.wire.env.diagnose(DiagnosticKind::LateAnswer, why),
        }
    }

    /// A client has answered a question of this server at another one.
    pub(in crate::server) fn on_forwarded_answer(&mut self, session: SessionDigest, message: Bytes) {
        let key = self.wire.http.session_of_digest(session);
        match (key, parse(message, self.shared.config.limits.frame.max_depth)) {
            (Some(key), Ok(Message::Response(response))) => {
                self.requests.on_response(&mut self.wire, SessionRef::Http(key), response);
            }
            (None, Ok(_)) => self.wire.env.diagnose(DiagnosticKind::LateAnswer, "its session has ended here"),
            (_, Ok(_) | Err(_)) => {
                self.wire.env.diagnose(DiagnosticKind::RecordCorrupt, "what another server passed on is no response");
            }
        }
    }
}
