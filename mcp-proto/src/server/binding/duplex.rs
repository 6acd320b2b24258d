//! Duplex connections: stdio, Unix sockets and the like. Both eras, batches of 2025-03-26,
//! cancellation by notification.

use super::super::Timer;
use super::super::admission::Admitted;
use super::super::batch::{Array, Batch, Element};
use super::super::dispatch::{Legacy, Modern, Open, RequestContext, no_batches};
use super::super::era::{ErrorReply, Transport};
use super::super::reply::{Reply, ReplyTo};
use super::super::session::{Session, SessionRef};
use super::super::shares::Bound;
use super::super::{Life, Output, Server};
use super::Binding;
use crate::error::DiagnosticKind;
use crate::exchange::{ExchangeId, Inbound, Outbound, Peer};
use crate::input::{AdmitKey, Principal, RequestKey};
use crate::rpc::{
    ErrorObject, InvalidKind, InvalidMessage, Message, Object, Request, code, error_response, result_response,
};
use crate::version::ProtocolVersion;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;

/// The state of a duplex connection.
#[derive(Debug)]
pub(in super::super) struct Duplex {
    pub(in super::super) session: Session,
    pub(in super::super) admitted: Admitted,
    batches: BTreeMap<u64, Batch>,
    next_batch: u64,
    /// Its running requests.
    running: BTreeSet<RequestKey>,
    /// Whether the client has closed its sending side.
    ended: bool,
}

impl Duplex {
    fn new(told: u64) -> Self {
        let (session, admitted) = (Session::new(None, told), Admitted::As(None));
        Self { session, admitted, batches: BTreeMap::new(), next_batch: 0, running: BTreeSet::new(), ended: false }
    }

    /// Returns the key of its admission, while the application has not decided.
    pub(in super::super) const fn waits_for_admission(&self) -> Option<AdmitKey> {
        match self.admitted {
            Admitted::Waiting { key, .. } => Some(key),
            Admitted::As(_) => None,
        }
    }

    /// Returns the estimated bytes of what the client declared in `initialize`.
    pub(in super::super) fn weight(&self) -> usize {
        self.session.weight()
    }

    /// Returns whether the client has closed its sending side.
    pub(in super::super) const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns its running requests.
    pub(in super::super) const fn running(&self) -> &BTreeSet<RequestKey> {
        &self.running
    }

    pub(in super::super) const fn running_mut(&mut self) -> &mut BTreeSet<RequestKey> {
        &mut self.running
    }

    /// Returns the principal of its admission.
    pub(in super::super) fn principal(&self) -> Option<&Principal> {
        match &self.admitted {
            Admitted::As(principal) => principal.as_ref(),
            Admitted::Waiting { .. } => None,
        }
    }

    #[cfg(test)]
    pub(in super::super) fn is_idle(&self) -> bool {
        self.session.is_idle() && self.batches.is_empty() && self.running.is_empty()
    }
}

impl Server {
    pub(in super::super) fn open_duplex(&mut self, x: ExchangeId, peer: Peer) {
        if self.env.exchanges.contains_key(&x) {
            return;
        }
        let binding = Binding::Duplex(Box::new(Duplex::new(self.changes)));
        let asked = self.shared.config.asks_about(&peer).then(|| peer.clone());
        if self.life != Life::Serving || !self.enter(x, peer, binding) {
            return self.env.queue.push(Output::Abort(x));
        }
        let Some(peer) = asked else { return self.await_handshake(x) };
        let key = self.ask_admission(x, peer, None);
        if let Some(duplex) = self.env.duplex_mut(x) {
            duplex.admitted = Admitted::Waiting { key, early: None, ended: false };
        }
    }

    /// Starts the timer for the first request.
    pub(in super::super) fn await_handshake(&mut self, x: ExchangeId) {
        if let Some(timeout) = self.shared.config.limits.server.handshake_timeout {
            self.env.timers.set(Timer::Handshake(x), Some(self.env.now + timeout));
        }
    }

    pub(in super::super) fn duplex_item(&mut self, x: ExchangeId, item: Inbound) {
        if matches!(self.env.duplex(x).map(|duplex| &duplex.admitted), Some(Admitted::Waiting { .. })) {
            return self.duplex_early(x, item);
        }
        if self.env.duplex(x).is_some_and(Duplex::has_ended) {
            return self.env.diagnose(DiagnosticKind::DroppedNotification, "a message after the end");
        }
        match item {
            Inbound::Message(message) => self.duplex_message(x, Ok(message), None),
            Inbound::Batch(batch) => self.duplex_batch(x, batch),
            Inbound::Invalid(defect) => self.duplex_message(x, Err(defect), None),
            Inbound::End => self.duplex_end(x),
            _ => self.env.diagnose(DiagnosticKind::UnknownExchange, "an item of HTTP on a duplex exchange"),
        }
    }

    /// The client has closed its sending side. Running requests may finish within the grace, since
    /// a client may be a shell pipe that sends requests and waits for the end. Requests that wait
    /// for the client end, since it cannot respond.
    fn duplex_end(&mut self, x: ExchangeId) {
        let Some(duplex) = self.env.duplex_mut(x) else { return };
        duplex.ended = true;
        let waiting: BTreeSet<RequestKey> = duplex.session.asking();
        for key in waiting {
            self.cancel(key, false);
        }
        let grace = self.shared.config.limits.server.end_grace;
        self.env.timers.set(Timer::End(x), Some(self.env.now + grace));
        self.end_if_quiet(ReplyTo::Duplex(x));
    }

    /// Closes the sending side of the server. Cancels the requests that still run.
    pub(in super::super) fn end_duplex(&mut self, x: ExchangeId) {
        self.env.send(x, Outbound::End);
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
            self.env.diagnose(kind, &error.message);
            self.reply(x, batch, error_response(Some(&id), &error));
        }
    }

    /// By its metadata a request is modern, else by the connection it is open or negotiated.
    fn try_duplex_request(&mut self, x: ExchangeId, request: Request, batch: Option<u64>) -> Result<(), ErrorReply> {
        let (id, session) = (request.id.clone(), Some(SessionRef::Duplex(x)));
        self.check_id(session, &id)?;
        let parts = self.parts(&request)?;
        let context = RequestContext { exchange: x, session, in_batch: batch.is_some() };
        if parts.is_modern() {
            if batch.is_some() {
                return Err(no_batches());
            }
            let version = self.shared.config.modern_version(&parts.named_version()?, Transport::Duplex)?;
            let dispatch = self.dispatch_modern(context, version, Transport::Duplex, request, parts)?;
            self.end_handshake(x);
            match dispatch {
                Modern::Run(admitted) => self.run(ReplyTo::Duplex(x), x, *admitted, None),
                Modern::Reply(result) => self.reply(x, None, result_response(&id, &result)),
                Modern::Listen(params) => self.listen(x, id, &params, version)?,
            }
            return Ok(());
        }
        let Some(negotiated) = self.env.duplex(x).and_then(|duplex| duplex.session.negotiated().cloned()) else {
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
                self.run(ReplyTo::Duplex(x), x, *admitted, batch);
            }
            Legacy::Pong => self.reply(x, batch, result_response(&id, &Object::new())),
        }
        Ok(())
    }

    fn initialize_duplex(&mut self, x: ExchangeId, params: &Object) -> Result<Object, ErrorReply> {
        let (negotiated, result) = self.shared.config.initialize(params, Transport::Duplex)?;
        self.env
            .check_share(&self.env.client_on(x, None), Bound::ClientData, negotiated.weight)
            .map_err(|full| full.reject("there is no room for what the client says of itself"))?;
        if let Some(exchange) = self.env.exchanges.get_mut(&x)
            && let Some(duplex) = exchange.binding.duplex_mut()
        {
            self.env.shares.add(exchange.client, Bound::ClientData, negotiated.weight);
            duplex.session.negotiate(negotiated);
        }
        self.end_handshake(x);
        Ok(result)
    }

    /// The first request has come. A ping is none.
    fn end_handshake(&mut self, x: ExchangeId) {
        self.env.timers.set(Timer::Handshake(x), None);
    }

    fn duplex_batch(&mut self, x: ExchangeId, elements: Vec<Result<Message, InvalidMessage>>) {
        if !self.rules_allow(x, |version| version.rules().batches) {
            self.env.diagnose(DiagnosticKind::UnexpectedBatch, "");
            return self.refuse_batch(x, elements);
        }
        let Some(duplex) = self.env.duplex_mut(x) else { return };
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
        self.finish_batch(x, batch);
    }

    fn open_batch(&mut self, x: ExchangeId, batch: u64) -> Option<&mut Batch> {
        self.env.duplex_mut(x)?.batches.get_mut(&batch)
    }

    /// Rejects a batch on a revision without batches: with one error where it may lack an id, else
    /// with one for each request.
    fn refuse_batch(&mut self, x: ExchangeId, elements: Vec<Result<Message, InvalidMessage>>) {
        let error = ErrorObject::new(code::INVALID_REQUEST, InvalidKind::UnexpectedBatch.as_str());
        if self.rules_allow(x, |version| version.rules().idless_errors) {
            return self.reply(x, None, error_response(None, &error));
        }
        for element in elements {
            if let Ok(Message::Request(request)) = element {
                self.reply(x, None, error_response(Some(&request.id), &error));
            }
        }
    }

    /// A request of a batch is over. `response`: `None` if it was cancelled.
    pub(in super::super) fn end_in_batch(&mut self, x: ExchangeId, batch: u64, response: Option<Bytes>) {
        if let Some(open) = self.open_batch(x, batch) {
            open.end(response);
        }
        self.finish_batch(x, batch);
    }

    /// Sends the array of a batch that is complete.
    fn finish_batch(&mut self, x: ExchangeId, batch: u64) {
        let Some(duplex) = self.env.duplex_mut(x) else { return };
        if !duplex.batches.get(&batch).is_some_and(Batch::is_complete) {
            return;
        }
        let Some(done) = duplex.batches.remove(&batch) else { return };
        match done.into_array() {
            Array { bytes: None, .. } => {}
            Array { bytes: Some(bytes), has_run: true } => self.env.send(x, Outbound::Message(bytes)),
            Array { bytes: Some(bytes), has_run: false } => self.send_own(x, Outbound::Message(bytes)),
        }
    }

    /// Handles bytes that are no message. Responds where that can help the client, and never closes
    /// the connection.
    fn duplex_defect(&mut self, x: ExchangeId, defect: &InvalidMessage, batch: Option<u64>) {
        let batch_kind =
            matches!(defect.kind, InvalidKind::UnexpectedBatch | InvalidKind::EmptyBatch | InvalidKind::BatchTooLong);
        let kind = match defect.kind {
            InvalidKind::Denied => DiagnosticKind::Denied,
            _ if batch_kind => DiagnosticKind::UnexpectedBatch,
            _ => DiagnosticKind::BadMessage,
        };
        self.env.diagnose(kind, &format!("{}: {}", defect.kind.as_str(), String::from_utf8_lossy(&defect.head)));
        // A response to an invalid response could loop.
        let answers = matches!(defect.kind, InvalidKind::Ambiguous | InvalidKind::BadError | InvalidKind::MissingId);
        // A blocked message was valid: only a request gets a response.
        let denied = defect.kind == InvalidKind::Denied && (defect.id.is_none() || !defect.has_method);
        if !defect.has_method {
            self.on_unreadable_answer(SessionRef::Duplex(x), defect.id.as_ref());
        }
        match &defect.id {
            _ if answers || denied => {}
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

    /// Returns whether the negotiated revision allows something. Without one: whether every
    /// supported revision does, and a legacy one is not supported.
    fn rules_allow(&self, x: ExchangeId, allows: impl Fn(ProtocolVersion) -> bool) -> bool {
        match self.env.duplex(x).and_then(|duplex| duplex.session.negotiated()) {
            Some(negotiated) => allows(negotiated.version),
            None if self.shared.config.serves_legacy() => false,
            None => self.shared.config.versions.newest_first().all(allows),
        }
    }

    /// Sends the response of a request, in the array of its batch if it has one.
    pub(in super::super) fn duplex_reply(&mut self, x: ExchangeId, reply: Reply) {
        match reply.batch {
            Some(batch) => self.end_in_batch(x, batch, Some(reply.message)),
            None => self.env.send(x, Outbound::Message(reply.message)),
        }
    }

    /// Sends a response of the engine itself.
    fn reply(&mut self, x: ExchangeId, batch: Option<u64>, message: Bytes) {
        match batch.and_then(|batch| self.open_batch(x, batch)) {
            Some(batch) => batch.push(message),
            None => self.send_own(x, Outbound::Message(message)),
        }
    }
}
