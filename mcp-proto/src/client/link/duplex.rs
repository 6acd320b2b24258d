//! The link over one duplex exchange: stdio, a socket, a pair of streams, a WebSocket.

use super::event::LinkEvent;
use super::handshake::{self, WsHandshake};
use crate::auth::{RequestProof, StepId};
use crate::client::env::ClientEnv;
use crate::client::{State, Target};
use crate::error::{AuthError, DiagnosticKind};
use crate::exchange::{Closed, ExchangeEvent, ExchangeId, Inbound, Outbound, Sent, Start};
use crate::input::{AuthKey, Authorization};
use crate::rpc::{InvalidMessage, Message};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use bytes::Bytes;

/// The exchange and its state. There is at most one at a time.
#[derive(Debug, Default)]
pub(in crate::client) struct DuplexLink {
    exchange: Option<DuplexExchange>,
    /// The id of the latest exchange.
    last: u64,
    events: VecDeque<LinkEvent>,
    /// The elements of a batch that are not handled yet.
    batch: VecDeque<Result<Message, InvalidMessage>>,
    /// WebSocket: what its server has answered to the handshake.
    handshake: Option<Box<WsHandshake>>,
    /// An event that waits until the exchange is open.
    on_open: Option<Box<LinkEvent>>,
}

/// The open duplex exchange.
#[derive(Debug)]
struct DuplexExchange {
    id: ExchangeId,
    /// Whether it was ever open. If not, the server has seen nothing.
    opened: bool,
    /// Bytes that the driver holds and has not written.
    unsent: usize,
    /// Bytes written, according to the driver's reports.
    written: u64,
    /// Whether the client has ended its sending side.
    sent_end: bool,
}

impl DuplexLink {
    /// Starts an exchange with the target.
    pub(super) fn open(&mut self, env: &mut ClientEnv) {
        let start = match &env.config.target {
            Target::Duplex(endpoint) => Start::Duplex(endpoint.clone()),
            Target::Ws(target) => {
                let target = target.clone();
                if env.login.is_on() && self.handshake.get_or_insert_default().waits_for_login(env) {
                    self.exchange = None;
                    self.events.push_back(WsHandshake::parked(env));
                    return;
                }
                handshake::start(env, &target, self.handshake.as_deref_mut())
            }
            Target::Http(_) | Target::NoServer => return,
        };
        self.batch.clear();
        self.on_open = None;
        self.last += 1;
        let id = ExchangeId(self.last);
        self.exchange = Some(DuplexExchange { id, opened: false, unsent: 0, written: 0, sent_end: false });
        env.out.start(id, start);
    }

    /// Handles the end of an exchange that never opened. Returns whether the negotiation goes on
    /// with another one, now or later.
    fn reopens(&mut self, env: &mut ClientEnv, why: &mut Closed) -> bool {
        if !matches!(env.state(), State::Probing | State::Initializing) {
            return false;
        }
        let next = match why {
            Closed::NotUpgraded(response) => self.handshake.get_or_insert_default().refused(env, response),
            _ => self.handshake.as_mut().and_then(|handshake| handshake.unreached()),
        };
        let goes_on = next.is_some();
        self.events.extend(next);
        goes_on
    }

    /// Handles the answer of the application to a challenge.
    pub(super) fn authorize(&mut self, key: AuthKey, with: Authorization) {
        let Some(next) = self.handshake.as_mut().and_then(|handshake| handshake.authorize(key, with)) else { return };
        self.events.push_back(next.unwrap_or_else(|why| LinkEvent::Failed(Sent::No, why)));
        self.events.push_back(LinkEvent::Authorized);
    }

    /// Handles the end of a run of the login.
    pub(super) fn settle_login(&mut self, error: Option<&AuthError>) {
        let Some(next) = self.handshake.as_mut().and_then(|handshake| handshake.settle_login(error)) else { return };
        self.events.push_back(next);
        self.events.push_back(LinkEvent::Authorized);
    }

    /// Handles the end of the proof of the handshake.
    pub(super) fn settle_proof(&mut self, step: StepId, proof: Result<RequestProof, AuthError>) {
        let Some(next) = self.handshake.as_mut().and_then(|handshake| handshake.settle_proof(step, proof)) else {
            return;
        };
        self.events.push_back(next);
        self.events.push_back(LinkEvent::Authorized);
    }

    /// Returns whether the connection waits for credentials, and every call with it.
    pub(super) fn waits_for_credentials(&self) -> bool {
        self.handshake.as_ref().is_some_and(|handshake| handshake.waits_for_credentials())
    }

    /// Returns the exchange.
    pub(in crate::client) fn exchange(&self) -> Option<ExchangeId> {
        self.exchange.as_ref().map(|exchange| exchange.id)
    }

    /// Returns the id of the exchange. Without an exchange, returns an unused id, on which the link
    /// sends nothing.
    pub(super) fn next_exchange(&mut self) -> ExchangeId {
        match &self.exchange {
            Some(exchange) => exchange.id,
            None => {
                self.last += 1;
                ExchangeId(self.last)
            }
        }
    }

    pub(super) fn events(&mut self) -> &mut VecDeque<LinkEvent> {
        &mut self.events
    }

    /// Handles the next element of a batch. Returns whether there was one.
    pub(super) fn step(&mut self, env: &ClientEnv) -> bool {
        let Some(exchange) = self.exchange().filter(|_| hears(env.state())) else {
            // An element has ended the connection, or the negotiation.
            self.batch.clear();
            return false;
        };
        let Some(element) = self.batch.pop_front() else { return false };
        self.events.push_back(match element {
            Ok(message) => LinkEvent::Message(exchange, message),
            Err(defect) => LinkEvent::Invalid(exchange, defect),
        });
        true
    }

    /// Handles an event of the exchange.
    pub(super) fn handle(&mut self, env: &mut ClientEnv, id: ExchangeId, event: ExchangeEvent) {
        let Some(exchange) = self.exchange.as_mut().filter(|exchange| exchange.id == id) else {
            // The driver reported the event before it learned that the exchange had ended.
            if id.0 > self.last {
                env.diagnose(DiagnosticKind::UnknownExchange, format!("{id:?}"));
            }
            return;
        };
        match event {
            ExchangeEvent::Opened(peer) => {
                exchange.opened = true;
                if self.handshake.as_ref().is_none_or(|handshake| handshake.is_trusted(env)) {
                    env.login.reached(peer.address);
                }
                if let Some(handshake) = &mut self.handshake {
                    handshake.succeeded();
                }
                self.events.extend(self.on_open.take().map(|event| *event));
            }
            ExchangeEvent::Unsent(n) => {
                exchange.written += exchange.unsent.saturating_sub(n) as u64;
                exchange.unsent = n;
                let written = exchange.written;
                let with_unsent = written.saturating_add(n as u64);
                self.events.push_back(LinkEvent::Written { written, with_unsent });
            }
            ExchangeEvent::Unsendable { id: Some(request), reason } => {
                self.events.push_back(LinkEvent::RequestDenied(id, request, reason));
            }
            ExchangeEvent::Unsendable { id: None, reason } => {
                self.events.push_back(LinkEvent::NotificationDenied(reason));
            }
            ExchangeEvent::Inbound(Inbound::End) => self.events.push_back(LinkEvent::OutputEnded),
            ExchangeEvent::Inbound(item) => {
                // An item proves that the exchange is open, even if a driver of seam B did not
                // report that.
                exchange.opened = true;
                // A client that is ending has settled everything, and ignores the item.
                if hears(env.state()) {
                    self.on_item(env, id, item);
                }
            }
            ExchangeEvent::Failed { mut why, .. } => {
                let sent = if exchange.opened { Sent::Maybe } else { Sent::No };
                self.exchange = None;
                if sent == Sent::Maybe || !self.reopens(env, &mut why) {
                    self.events.push_back(LinkEvent::Failed(sent, why));
                }
            }
            // The driver reports these to servers only, or over HTTP only.
            ExchangeEvent::From(_) | ExchangeEvent::ReadClosed | ExchangeEvent::Repeated | ExchangeEvent::Waiting => {}
        }
    }

    fn on_item(&mut self, env: &mut ClientEnv, exchange: ExchangeId, item: Inbound) {
        match item {
            Inbound::Message(message) => self.events.push_back(LinkEvent::Message(exchange, message)),
            Inbound::Invalid(defect) => self.events.push_back(LinkEvent::Invalid(exchange, defect)),
            Inbound::Batch(batch) => {
                if !env.version().is_none_or(|version| version.rules().batches) {
                    env.diagnose(DiagnosticKind::UnexpectedBatch, format!("{} messages", batch.len()));
                }
                self.batch.extend(batch);
            }
            Inbound::Request(_)
            | Inbound::Response(_)
            | Inbound::Body(_)
            | Inbound::Event(_)
            | Inbound::Comment
            | Inbound::End
            | Inbound::Reject(_) => {
                env.diagnose(DiagnosticKind::BadEvent, "an item that this exchange cannot have");
            }
        }
    }

    /// Adds an event once the exchange is open.
    pub(super) fn push_when_open(&mut self, event: LinkEvent) {
        match &self.exchange {
            Some(DuplexExchange { opened: true, .. }) => self.events.push_back(event),
            _ => self.on_open = Some(Box::new(event)),
        }
    }

    /// Sends a message, unless the client has ended its sending side: the server would not read the
    /// message.
    pub(super) fn send(&self, env: &mut ClientEnv, id: ExchangeId, message: Bytes) {
        if self.exchange.as_ref().is_some_and(|exchange| exchange.id == id && !exchange.sent_end) {
            env.out.send(id, Outbound::Message(message));
        }
    }

    /// Ends the sending side.
    pub(in crate::client) fn send_end(&mut self, env: &mut ClientEnv) {
        if let Some(exchange) = &mut self.exchange
            && !core::mem::replace(&mut exchange.sent_end, true)
        {
            env.out.send(exchange.id, Outbound::End);
        }
    }

    /// Aborts the exchange. Returns whether there was one.
    pub(in crate::client) fn abort(&mut self, env: &mut ClientEnv) -> bool {
        let exchange = self.exchange.take();
        if let Some(exchange) = &exchange {
            env.out.abort(exchange.id);
        }
        exchange.is_some()
    }

    /// Returns whether the driver holds the maximum number of unwritten bytes. An exchange whose
    /// sending side has ended does not count.
    pub(super) fn is_full(&self, env: &ClientEnv) -> bool {
        let max = env.config.limits.client.max_unsent;
        self.exchange.as_ref().is_some_and(|exchange| !exchange.sent_end && exchange.unsent >= max)
    }

    /// Returns whether the server may have seen the exchange. True if there is none.
    pub(in crate::client) fn has_reached_server(&self) -> bool {
        self.exchange.as_ref().is_none_or(|exchange| exchange.opened)
    }
}

/// Returns whether a client in this state handles messages of the server.
const fn hears(state: State) -> bool {
    match state {
        State::Probing | State::Initializing | State::Ready => true,
        State::NoServer | State::Lapsed | State::Ending | State::Closing | State::Terminated => false,
    }
}
