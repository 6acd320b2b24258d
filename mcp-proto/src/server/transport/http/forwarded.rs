//! Answers to questions of other servers, in sessions that they share: the store passes them on.

use super::exchange::StoreWait;
use super::legacy::unknown_session;
use crate::error::DiagnosticKind;
use crate::exchange::ExchangeId;
use crate::rpc::{ErrorObject, Id, InvalidMessage, Message, Payload, Response, code, parse, write_message};
use crate::server::Server;
use crate::server::keys::SessionRef;
use crate::server::session::QuestionState;
use crate::server::store::{NodeItem, NodeTag, SessionDigest, StoreError, StoreReply, StoreRequest, Then};
use bytes::Bytes;

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
        let then = x.map_or(Then::Nothing, Then::Send);
        let is_asked = self.wire.env.ask_store_for(&client, StoreRequest::Send { node, item }, then);
        match x {
            Some(x) if is_asked => self.wait_for_store(x, StoreWait::Send),
            Some(x) => self.wire.env.refuse_busy(x, None, "the store does not reply"),
            None if is_asked => {}
            None => self.wire.env.diagnose(DiagnosticKind::LateAnswer, "the store does not take it"),
        }
        true
    }

    /// Passes an answer that cannot be read on to the server that has asked, as an error.
    pub(in crate::server) fn forward_unreadable(&mut self, session: SessionRef, answer: &InvalidMessage) -> bool {
        let Some(id) = &answer.id else { return false };
        let error = ErrorObject::new(code::INTERNAL_ERROR, "the client's answer cannot be read");
        let response = Response::new(id.clone(), Payload::Error(error));
        self.forward_answer(None, session, &response)
    }

    /// Another server has got an answer to a question of this one, or has not.
    pub(in crate::server) fn answer_is_sent(&mut self, x: ExchangeId, result: Result<StoreReply, StoreError>) {
        let Some(wait) = self.take_wait(x) else { return };
        match result {
            Ok(StoreReply::Done) => self.wire.env.accept(x),
            // The stream has ended with its server.
            Ok(StoreReply::NoNode) if matches!(wait, StoreWait::Post) => {
                self.wire.env.reject(x, None, 404, &unknown_session());
            }
            Ok(StoreReply::NoNode) => {
                self.wire.env.diagnose(DiagnosticKind::LateAnswer, "the server that has asked is gone");
                self.wire.env.accept(x);
            }
            Ok(_) => self.wire.env.refuse_busy(x, None, "the server that has asked is busy"),
            Err(_) => self.wire.env.refuse_busy(x, None, "the store does not reply"),
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
