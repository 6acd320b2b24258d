//! Duplex connections: stdio, Unix sockets and the like. Both eras, batches of 2025-03-26,
//! cancellation by notification.

mod connection;

pub(in crate::server) use connection::{Duplex, DuplexAdmission, PostOrigin};

use super::Binding;
use crate::error::DiagnosticKind;
use crate::exchange::{ExchangeId, Inbound, Outbound, Peer};
use crate::input::RequestKey;
use crate::rpc::{
    ErrorObject, InvalidKind, InvalidMessage, Message, Object, Request, code, error_response, result_response,
};
use crate::server::batch::{Array, Batch};
use crate::server::client::Bound;
use crate::server::dispatch::{Element, Legacy, Modern, Open, RequestContext, check_id, no_batches};
use crate::server::era::Transport;
use crate::server::expiry::expired;
use crate::server::keys::{ReplyTo, ServerTimer, SessionRef};
use crate::server::response::ErrorReply;
use crate::server::{Life, Output, Server};
use crate::short_set::ShortSet;
use crate::version::ProtocolVersion;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

impl Server {
    pub(in super::super) fn open_duplex(&mut self, x: ExchangeId, peer: Peer) {
        if self.wire.env.exchanges.contains_key(&x) {
            return;
        }
        let binding = Binding::Duplex(Box::new(Duplex::new(self.listens.changes())));
        let peer = Arc::new(peer);
        let asked = self.shared.config.asks_about(&peer).then(|| Arc::clone(&peer));
        if self.life != Life::Serving || !self.enter(x, peer, binding) {
            return self.wire.env.queue.push(Output::Abort(x));
        }
        let Some(peer) = asked else { return self.wire.env.await_handshake(x) };
        let key = self.requests.mint_admit_key();
        self.wire.env.ask_admission(x, key, peer, None);
        if let Some(duplex) = self.wire.env.duplex_mut(x) {
            duplex.admitted = DuplexAdmission::Waiting { key, early: None, ended: false };
        }
    }

    pub(in crate::server) fn duplex_item(&mut self, x: ExchangeId, item: Inbound) {
        if let Some(waiting) = self.wire.env.duplex_mut(x).filter(|duplex| duplex.waits_for_admission().is_some()) {
            if !waiting.admitted.keep(item) {
                self.refuse_duplex(x, "a second message came before the decision");
            }
            return;
        }
        if self.wire.env.duplex(x).is_some_and(Duplex::has_ended) {
            return self.wire.env.diagnose(DiagnosticKind::DroppedNotification, "a message after the end");
        }
        match item {
            Inbound::Message(message) => self.duplex_message(x, Ok(message), None),
            Inbound::Batch(batch) => self.duplex_batch(x, batch),
            Inbound::Invalid(defect) => self.duplex_message(x, Err(defect), None),
            Inbound::End => self.duplex_end(x),
            _ => self.wire.env.diagnose(DiagnosticKind::UnknownExchange, "an item of HTTP on a duplex exchange"),
        }
    }

    /// The client has closed its sending side. Running requests may finish within the grace, since
    /// a client may be a shell pipe that sends requests and waits for the end. Requests that wait
    /// for the client end, since it cannot respond.
    fn duplex_end(&mut self, x: ExchangeId) {
        let Some(duplex) = self.wire.env.duplex_mut(x) else { return };
        duplex.ended = true;
        let waiting: BTreeSet<RequestKey> = duplex.session.asking();
        for key in waiting {
            // The questions of a task wait for another client of its principal.
            if !self.requests.is_task(key) {
                self.requests.cancel(&mut self.wire, key, false);
            }
        }
        let grace = self.shared.config.limits.server.end_grace;
        self.wire.env.timers.set(ServerTimer::End(x), Some(self.wire.env.now + grace));
        self.end_if_quiet(ReplyTo::Duplex(x));
    }

    /// Ends a duplex connection whose client has closed its sending side, once none of its requests
    /// runs.
    pub(in super::super) fn end_if_quiet(&mut self, reply_to: ReplyTo) {
        match reply_to {
            ReplyTo::Duplex(exchange) => {
                let is_quiet = self.wire.running(reply_to).is_some_and(ShortSet::is_empty);
                if is_quiet && self.wire.env.duplex(exchange).is_some_and(Duplex::has_ended) {
                    self.end_duplex(exchange);
                }
            }
            ReplyTo::Stream(_) | ReplyTo::Task(_) => {}
        }
    }

    /// Closes the sending side of the server. Cancels the requests that still run.
    pub(in super::super) fn end_duplex(&mut self, x: ExchangeId) {
        self.wire.env.send(x, Outbound::End);
        self.drop_exchange(x);
    }

    fn duplex_message(&mut self, x: ExchangeId, element: Result<Message, InvalidMessage>, batch: Option<u64>) {
        match self.on_element(x, Some(SessionRef::Duplex(x)), element) {
            Element::Request(request) => self.duplex_request(x, request, batch),
            Element::Invalid(defect) => self.duplex_defect(x, &defect, batch),
            Element::Done => {}
        }
    }

    fn duplex_request(&mut self, x: ExchangeId, request: Request, batch: Option<u64>) {
        let id = request.id.clone();
        if let Err(ErrorReply { error, kind, .. }) = self.try_duplex_request(x, request, batch) {
            self.wire.env.diagnose(kind, &error.message);
            self.reply(x, batch, error_response(Some(&id), &error));
        }
    }

    /// The metadata decides whether a request is modern, otherwise the connection decides whether
    /// it is open or negotiated.
    fn try_duplex_request(
        &mut self,
        x: ExchangeId,
        mut request: Request,
        batch: Option<u64>,
    ) -> Result<(), ErrorReply> {
        if self.wire.env.expired.contains(&x) {
            return Err(expired());
        }
        let (id, session) = (request.id.clone(), Some(SessionRef::Duplex(x)));
        check_id(self.wire.env.duplex(x).map(|duplex| &duplex.session), &id)?;
        let parts = self.wire.env.parts(&mut request)?;
        let context = RequestContext { exchange: x, session, in_batch: batch.is_some() };
        if parts.is_modern() {
            if batch.is_some() {
                return Err(no_batches());
            }
            let over = self.wire.env.duplex(x).map_or(Transport::Duplex, Duplex::transport);
            let version = self.shared.config.modern_version(&parts.named_version()?, over)?;
            let dispatch = self.dispatch_modern(context, version, Transport::Duplex, request, parts)?;
            self.wire.env.end_handshake(x);
            match dispatch {
                Modern::Run(admitted) | Modern::Ask(admitted) => {
                    self.requests.run(&mut self.wire, ReplyTo::Duplex(x), x, admitted, None);
                }
                Modern::Reply(result) => self.reply(x, None, result_response(&id, &result)),
                Modern::Listen(filter) => self.listen(x, id, filter, version)?,
            }
            return Ok(());
        }
        let Some(negotiated) = self.wire.env.duplex(x).and_then(|duplex| duplex.session.negotiated().cloned()) else {
            let result = match self.dispatch_open(&request, parts)? {
                Open::Pong => Object::new(),
                Open::Initialize(params) => self.initialize_duplex(x, &params)?,
            };
            self.reply(x, batch, result_response(&id, &result));
            return Ok(());
        };
        match self.dispatch_negotiated(context, &negotiated, request, parts)? {
            Legacy::Run(admitted) => {
                if let Some(open) = batch.and_then(|batch| self.open_batch(x, batch)) {
                    open.run();
                }
                self.requests.run(&mut self.wire, ReplyTo::Duplex(x), x, admitted, batch);
            }
            Legacy::Reply(result) => self.reply(x, batch, result_response(&id, &result)),
        }
        Ok(())
    }

    fn duplex_batch(&mut self, x: ExchangeId, elements: Vec<Result<Message, InvalidMessage>>) {
        if !self.rules_allow(x, |version| version.rules().batches) {
            self.wire.env.diagnose(DiagnosticKind::UnexpectedBatch, "");
            let refusals = self.batch_refusals(x, elements);
            return refusals.into_iter().for_each(|refusal| self.reply(x, None, refusal));
        }
        let Some(duplex) = self.wire.env.duplex_mut(x) else { return };
        let batch = duplex.next_batch;
        duplex.next_batch += 1;
        duplex.batches.insert(batch, Batch::new());
        for element in elements {
            // An element may have closed the connection or terminated the server.
            if self.open_batch(x, batch).is_none() {
                return;
            }
            self.duplex_message(x, element, Some(batch));
        }
        if let Some(open) = self.open_batch(x, batch) {
            open.close();
        }
        match self.wire.env.duplex_mut(x).and_then(|duplex| duplex.take_complete_batch(batch)) {
            None | Some(Array { bytes: None, .. }) => {}
            Some(Array { bytes: Some(bytes), has_run: true }) => self.wire.env.send(x, Outbound::Message(bytes)),
            Some(Array { bytes: Some(bytes), has_run: false }) => self.send_own(x, Outbound::Message(bytes)),
        }
    }

    /// Handles bytes that are not a message. Responds where that can help the client, and never
    /// closes the connection.
    fn duplex_defect(&mut self, x: ExchangeId, defect: &InvalidMessage, batch: Option<u64>) {
        let batch_kind =
            matches!(defect.kind, InvalidKind::UnexpectedBatch | InvalidKind::EmptyBatch | InvalidKind::BatchTooLong);
        let kind = match defect.kind {
            InvalidKind::Denied => DiagnosticKind::Denied,
            _ if batch_kind => DiagnosticKind::UnexpectedBatch,
            _ => DiagnosticKind::BadMessage,
        };
        self.wire.env.diagnose(kind, &format!("{}: {}", defect.kind.as_str(), String::from_utf8_lossy(&defect.head)));
        // A response to an invalid response could loop.
        let answers = matches!(defect.kind, InvalidKind::Ambiguous | InvalidKind::BadError | InvalidKind::MissingId);
        // A blocked message was valid: only a request gets a response.
        let denied = defect.kind == InvalidKind::Denied && (defect.id.is_none() || !defect.has_method);
        if !defect.has_method {
            self.requests.on_unreadable_answer(&mut self.wire, SessionRef::Duplex(x), defect);
        }
        match &defect.id {
            _ if answers || denied || defect.is_notification() => {}
            Some(id) if defect.has_method => {
                let message = error_response(Some(id), &defect.to_error());
                self.reply(x, batch, message);
            }
            _ if self.rules_allow(x, |version| version.rules().idless_errors) => {
                self.reply(x, None, error_response(None, &defect.to_error()));
            }
            _ => {}
        }
    }

    /// Sends a response of the engine itself.
    fn reply(&mut self, x: ExchangeId, batch: Option<u64>, message: Bytes) {
        match batch.and_then(|batch| self.open_batch(x, batch)) {
            Some(batch) => batch.push(message),
            None => self.send_own(x, Outbound::Message(message)),
        }
    }

    fn initialize_duplex(&mut self, x: ExchangeId, params: &Object) -> Result<Object, ErrorReply> {
        let env = &mut self.wire.env;
        let (negotiated, result) = env.config.initialize(params, Transport::Duplex)?;
        env.note_deviation(params);
        env.check_share(&env.client_on(x, None), Bound::ClientData, negotiated.weight)
            .map_err(|full| full.reject("there is no room for what the client says of itself"))?;
        if let Some(exchange) = env.exchanges.get_mut(&x)
            && let Some(duplex) = exchange.binding.duplex_mut()
        {
            env.shares.add(exchange.client, Bound::ClientData, negotiated.weight);
            duplex.session.negotiate(negotiated);
        }
        env.end_handshake(x);
        Ok(result)
    }

    fn open_batch(&mut self, x: ExchangeId, batch: u64) -> Option<&mut Batch> {
        self.wire.env.duplex_mut(x)?.batches.get_mut(&batch)
    }

    /// Returns the responses that reject a batch on a revision without batches: one error where it
    /// may lack an id, else one for each request.
    fn batch_refusals(&self, x: ExchangeId, elements: Vec<Result<Message, InvalidMessage>>) -> Vec<Bytes> {
        let error = ErrorObject::new(code::INVALID_REQUEST, InvalidKind::UnexpectedBatch.as_str());
        if self.rules_allow(x, |version| version.rules().idless_errors) {
            return alloc::vec![error_response(None, &error)];
        }
        let requests = elements.into_iter().filter_map(|element| match element {
            Ok(Message::Request(request)) => Some(request),
            Ok(Message::Notification(_) | Message::Response(_) | Message::Error(_)) | Err(_) => None,
        });
        requests.map(|request| error_response(Some(&request.id), &error)).collect()
    }

    /// Returns whether the negotiated revision allows something. Without one: whether every
    /// supported revision does, and a legacy one is not supported.
    fn rules_allow(&self, x: ExchangeId, allows: impl Fn(ProtocolVersion) -> bool) -> bool {
        match self.wire.env.duplex(x).and_then(|duplex| duplex.session.negotiated()) {
            Some(negotiated) => allows(negotiated.version),
            None if self.shared.config.serves_legacy() => false,
            None => self.shared.config.versions.newest_first().all(allows),
        }
    }
}
