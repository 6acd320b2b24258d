//! Requests that end before their handler does.

use super::Requests;
use crate::error::DiagnosticKind;
use crate::input::RequestKey;
use crate::rpc::{Object, RawJson};
use crate::server::Event;
use crate::server::keys::SessionRef;
use crate::server::running::RequestStage;
use crate::server::wire::Wire;
use alloc::format;
use alloc::vec::Vec;

impl Requests {
    /// Ends a request without a response. If its exchange `is_open`, the engine withdraws its own
    /// requests on it.
    pub(in crate::server) fn cancel(&mut self, wire: &mut Wire, key: RequestKey, is_open: bool) {
        let Some(running) = self.forget(wire, key) else { return };
        match &running.stage {
            RequestStage::Handler => wire.env.emit(Event::Cancelled(key)),
            RequestStage::Asking(asking) if is_open => asking.withdraw(wire, running.reply_to),
            RequestStage::Asking(_)
            | RequestStage::Waiting
            | RequestStage::Result(_)
            | RequestStage::Store
            | RequestStage::Displaced => {}
        }
        // If the exchange is over, its batch needs no response.
        wire.no_reply(running.reply_to, running.batch.filter(|_| is_open));
    }

    /// Returns the request that a `notifications/cancelled` names. Returns `None` and emits a
    /// diagnostic if there is none, or if its id is invalid or too long.
    pub(in crate::server) fn find_cancelled(
        &self,
        wire: &mut Wire,
        session_ref: Option<SessionRef>,
        params: Option<&RawJson>,
    ) -> Option<RequestKey> {
        let id = Object::read_opt(params).ok().and_then(|params| params.id("requestId"));
        if id.as_ref().is_some_and(|id| id.size() > wire.env.config.limits.frame.max_id) {
            wire.env.diagnose(DiagnosticKind::LongId, "a cancellation names an id that is too long");
            return None;
        }
        let key = id.as_ref().and_then(|id| wire.session(session_ref?)?.request(id));
        if key.is_none() {
            let detail = id.map_or_else(|| "no legible id".into(), |id| format!("{id}"));
            wire.env.diagnose(DiagnosticKind::UnknownCancel, &detail);
        }
        key
    }

    pub(in crate::server) fn on_ask_timeout(&mut self, wire: &mut Wire, key: RequestKey) {
        wire.env.diagnose(DiagnosticKind::AskTimeout, "");
        self.end_asking(wire, key, "the client did not answer in time");
    }

    /// Ends every request, since the server shuts down.
    pub(in crate::server) fn end_all(&mut self, wire: &mut Wire) {
        let running: Vec<RequestKey> = self.table.keys().copied().collect();
        for key in running {
            self.end_request(wire, key, "the server is shutting down");
        }
    }

    /// Ends a request with an error: cancels its handler, or withdraws the requests to its client.
    pub(in crate::server) fn end_request(&mut self, wire: &mut Wire, key: RequestKey, why: &str) {
        match self.table.get(&key).map(|running| &running.stage) {
            Some(RequestStage::Handler) => {
                wire.env.emit(Event::Cancelled(key));
                self.finish_with_error(wire, key, why);
            }
            Some(RequestStage::Asking(_)) => self.end_asking(wire, key, why),
            Some(RequestStage::Waiting | RequestStage::Result(_) | RequestStage::Store | RequestStage::Displaced) => {
                self.finish_with_error(wire, key, why);
            }
            None => {}
        }
    }

    fn end_asking(&mut self, wire: &mut Wire, key: RequestKey, message: &str) {
        let Some(running) = self.table.get_mut(&key) else { return };
        let reply_to = running.reply_to;
        if let RequestStage::Asking(asking) = &mut running.stage {
            // `forget` then finds nothing left to close.
            let open = core::mem::take(asking);
            open.settle(wire, reply_to);
            open.withdraw(wire, reply_to);
        }
        self.finish_with_error(wire, key, message);
    }
}
