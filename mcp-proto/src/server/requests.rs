//! The requests that run: one table, keyed by our own keys and never by an id that a client chose.

use super::Timer;
use super::ask::Asking;
use super::binding::Binding;
use super::era::Admitted;
use super::responder::{Responder, may_ask};
use super::seal::Inputs;
use super::{Event, Incoming, Life, Output, RequestState, Server};
use crate::error::{DiagnosticKind, Refusal, Refused};
use crate::exchange::{ExchangeId, Outgoing};
use crate::input::{Answer, Answered, Note, RequestKey};
use crate::model::Progress;
use crate::model::lifecycle::meta;
use crate::rpc::{EncodeError, ErrorObject, Id, Object, RawJson, code, error_response, notification};
use crate::time::Instant;
use crate::version::{Era, ProtocolVersion};
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

/// A request that was handed out, or that waits for its client.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) exchange: ExchangeId,
    pub(super) id: Id,
    version: ProtocolVersion,
    /// The batch that its answer belongs to.
    batch: Option<u64>,
    token: Option<Id>,
    /// The last progress that was accepted.
    progress: Option<f64>,
    /// The newest progress that waits for room.
    held: Option<Bytes>,
    /// When the handler was entered, and how long it ran before.
    since: Instant,
    spent: Duration,
    pub(super) stage: Stage,
    /// What a further entry needs; only where the engine itself asks the client.
    pub(super) entry: Option<Box<Entry>>,
}

/// Where a request is.
#[derive(Debug)]
pub(super) enum Stage {
    /// The application has its responder.
    Handler,
    /// The client owes answers.
    Asking(Asking),
}

/// What is needed to hand an older request out again.
#[derive(Debug)]
pub(super) struct Entry {
    incoming: Incoming,
    pub(super) inputs: Inputs,
    pub(super) rounds: u32,
}

impl Server {
    /// Why no further request is taken, if that is so.
    pub(super) fn busy(&self, x: ExchangeId) -> Option<&'static str> {
        let limits = &self.shared.config.limits.server;
        let exchange = self.exchanges.get(&x);
        let here = exchange.map_or(0, |exchange| exchange.running.len());
        if self.life != Life::Serving {
            Some("the server is shutting down")
        } else if exchange.is_some_and(|exchange| exchange.load.total() > limits.max_backlog) {
            // Answers are never refused, so the requests that lead to them are.
            Some("the client does not read its answers")
        } else if self.requests.len() >= limits.max_running_requests || here >= limits.max_running_per_exchange {
            Some("the server is busy")
        } else {
            None
        }
    }

    /// Hands a request out.
    pub(super) fn run(&mut self, x: ExchangeId, admitted: Admitted, batch: Option<u64>) {
        let Admitted { id, incoming, token } = admitted;
        let version = incoming.context.version;
        let entry = (version.era() == Era::Legacy)
            .then(|| Box::new(Entry { incoming: incoming.clone(), inputs: Inputs::new(), rounds: 0 }));
        let key = self.mint_key();
        let running = Running {
            exchange: x,
            id: id.clone(),
            version,
            batch,
            token,
            progress: None,
            held: None,
            since: self.now,
            spent: Duration::ZERO,
            stage: Stage::Handler,
            entry,
        };
        self.requests.insert(key, running);
        if let Some(exchange) = self.exchanges.get_mut(&x) {
            exchange.running.insert(key);
            if let Some(duplex) = exchange.binding.duplex_mut() {
                duplex.ids.insert(id, key);
            }
        }
        self.hand_out(key, incoming, 0);
    }

    /// Enters the handler, for the first time or again.
    fn hand_out(&mut self, key: RequestKey, incoming: Incoming, rounds: u32) {
        let Some(running) = self.requests.get_mut(&key) else { return };
        running.since = self.now;
        if let Some(deadline) = self.shared.config.limits.server.handler_deadline {
            let left = deadline.saturating_sub(running.spent);
            self.timers.set(Timer::Handler(key), Some(self.now + left));
        }
        let seals = running.version.era() == Era::Modern && may_ask(&incoming.method);
        let came = self.now.unix(self.shared.config.origin_unix).as_secs();
        let responder = Responder {
            key,
            exchange: running.exchange,
            id: running.id.clone(),
            version: running.version,
            method: incoming.method.clone(),
            params: if seals { incoming.params.clone() } else { Object::new() },
            capabilities: incoming.context.capabilities.clone(),
            rounds,
            inputs: incoming.inputs.clone(),
            came,
            state_fault: None,
            shared: self.shared.clone(),
        };
        self.queue.push(Output::Event(Event::Request(responder, incoming)));
    }

    /// Takes an older request, whose client was asked, up again: under the key that it got when it asked.
    pub(super) fn enter_again(&mut self, key: RequestKey, state: Option<RawJson>) {
        let Some(running) = self.requests.get_mut(&key) else { return };
        running.stage = Stage::Handler;
        let Some(entry) = &running.entry else { return };
        let (mut incoming, rounds) = (entry.incoming.clone(), entry.rounds);
        incoming.inputs = entry.inputs.clone();
        incoming.state = state.map(RequestState::Kept);
        self.hand_out(key, incoming, rounds);
    }

    /// Gives a request that asks its client a new key, so that whoever held the old one is out of the game.
    pub(super) fn rekey(&mut self, old: RequestKey) -> Option<(RequestKey, &mut Running)> {
        let mut running = self.requests.remove(&old)?;
        self.timers.set(Timer::Handler(old), None);
        running.spent += self.now - running.since;
        let new = self.mint_key();
        if let Some(exchange) = self.exchanges.get_mut(&running.exchange) {
            exchange.running.remove(&old);
            exchange.running.insert(new);
            if let Some(duplex) = exchange.binding.duplex_mut() {
                duplex.ids.insert(running.id.clone(), new);
            }
        }
        Some((new, self.requests.entry(new).or_insert(running)))
    }

    fn mint_key(&mut self) -> RequestKey {
        let key = RequestKey(self.next_key);
        self.next_key += 1;
        key
    }

    /// What the application answered. Only a request whose handler runs can be answered; anything else is late, and dropped.
    pub(super) fn on_answer(&mut self, answer: Answer) {
        let running = self.requests.get(&answer.key).filter(|running| matches!(running.stage, Stage::Handler));
        let Some(exchange) = running.map(|running| running.exchange) else { return };
        match answer.what {
            Answered::Message { bytes, code, diagnostic } => {
                if let Some(diagnostic) = diagnostic {
                    self.queue.report(diagnostic);
                }
                self.finish(answer.key, bytes, code);
            }
            Answered::Ask { .. } if self.has_ended(exchange) => {
                self.finish_with_error(answer.key, "the client can no longer be asked");
            }
            Answered::Ask { questions, state } => self.ask(answer.key, questions, state),
        }
        self.end_if_quiet(exchange);
        self.end_if_drained();
    }

    /// Sends the answer of a request, after which nothing of it is left. The newest progress, if it waits, goes before it.
    fn finish(&mut self, key: RequestKey, bytes: Bytes, code: Option<i64>) {
        let Some(running) = self.forget(key) else { return };
        if let Some(held) = running.held {
            self.say(running.exchange, held);
        }
        self.deliver(running.exchange, running.batch, bytes, code);
    }

    /// Answers a request in the application's place.
    fn finish_with_error(&mut self, key: RequestKey, message: &str) {
        let Some(running) = self.requests.get(&key) else { return };
        let bytes = error_response(Some(&running.id), &ErrorObject::new(code::INTERNAL_ERROR, message));
        self.finish(key, bytes, Some(code::INTERNAL_ERROR));
    }

    /// Takes a request out of every table.
    fn forget(&mut self, key: RequestKey) -> Option<Running> {
        let running = self.requests.remove(&key)?;
        self.timers.set(Timer::Handler(key), None);
        self.timers.set(Timer::Ask(key), None);
        let reuse_ids = self.shared.config.reuse_ids;
        if let Some(exchange) = self.exchanges.get_mut(&running.exchange) {
            exchange.running.remove(&key);
            if let Some(duplex) = exchange.binding.duplex_mut() {
                duplex.ids.remove(&running.id);
                if let Stage::Asking(asking) = &running.stage {
                    duplex.asked.retain(|id, _| !asking.has(*id));
                }
                if !reuse_ids && running.version.era() == Era::Legacy {
                    duplex.retire(&running.id);
                }
            }
        }
        Some(running)
    }

    /// A request is over without an answer. `wire`: its exchange lives on, so that open questions are withdrawn on it.
    pub(super) fn cancel(&mut self, key: RequestKey, wire: bool) {
        let Some(running) = self.forget(key) else { return };
        match &running.stage {
            Stage::Handler => self.queue.push(Output::Event(Event::Cancelled(key))),
            Stage::Asking(asking) if wire => self.withdraw(running.exchange, asking),
            Stage::Asking(_) => {}
        }
        if let (Some(batch), true) = (running.batch, wire) {
            self.batch_done(running.exchange, batch, None);
        }
    }

    pub(super) fn handler_deadline(&mut self, key: RequestKey) {
        self.diagnose(DiagnosticKind::HandlerDeadline, "");
        self.queue.push(Output::Event(Event::Cancelled(key)));
        let exchange = self.requests.get(&key).map(|running| running.exchange);
        self.finish_with_error(key, "the request took too long");
        exchange.into_iter().for_each(|exchange| self.end_if_quiet(exchange));
        self.end_if_drained();
    }

    pub(super) fn ask_timeout(&mut self, key: RequestKey) {
        self.diagnose(DiagnosticKind::AskTimeout, "");
        self.end_asking(key, "the client did not answer in time");
        self.end_if_drained();
    }

    /// Answers what still runs, and stops it.
    pub(super) fn end_running(&mut self) {
        let running: Vec<RequestKey> = self.requests.keys().copied().collect();
        for key in running {
            match self.requests.get(&key).map(|running| &running.stage) {
                Some(Stage::Handler) => {
                    self.queue.push(Output::Event(Event::Cancelled(key)));
                    self.finish_with_error(key, "the server is shutting down");
                }
                Some(Stage::Asking(_)) => self.end_asking(key, "the server is shutting down"),
                None => {}
            }
        }
    }

    fn end_asking(&mut self, key: RequestKey, message: &str) {
        let Some(running) = self.requests.get_mut(&key) else { return };
        let exchange = running.exchange;
        if let Stage::Asking(asking) = &mut running.stage {
            let open = core::mem::take(asking);
            self.settle(exchange, &open);
            self.withdraw(exchange, &open);
        }
        self.finish_with_error(key, message);
    }

    /// Puts an answer on the wire in the way of its exchange.
    pub(super) fn deliver(&mut self, x: ExchangeId, batch: Option<u64>, bytes: Bytes, code: Option<i64>) {
        match (self.exchanges.get(&x).map(|exchange| &exchange.binding), batch) {
            (Some(Binding::Duplex(_)), Some(batch)) => self.batch_done(x, batch, Some(bytes)),
            (Some(Binding::Duplex(_)), None) => self.send(x, Outgoing::Message(bytes)),
            #[cfg(feature = "http")]
            (Some(Binding::Http(_)), _) => self.http_answer(x, bytes, code),
            (None, _) => {}
        }
        #[cfg(not(feature = "http"))]
        let _ = code;
    }

    /// Puts a notification of a request on the wire.
    fn say(&mut self, x: ExchangeId, note: Bytes) {
        match self.exchanges.get(&x).map(|exchange| &exchange.binding) {
            Some(Binding::Duplex(_)) => self.send(x, Outgoing::Message(note)),
            #[cfg(feature = "http")]
            Some(Binding::Http(_)) => self.http_note(x, note),
            None => {}
        }
    }

    /// A notification of the application. Refusing changes nothing.
    pub(super) fn on_note(&mut self, key: RequestKey, note: Note) -> Result<(), Refused<Note>> {
        if self.is_terminated() {
            return Err(Refusal::Closed.of(note));
        }
        let Some(running) = self.requests.get_mut(&key).filter(|running| matches!(running.stage, Stage::Handler))
        else {
            return Err(Refusal::Gone.of(note));
        };
        let x = running.exchange;
        match &note {
            Note::Progress(progress) => match running.write_progress(progress) {
                // The newest number says all that the ones before it said, the one that waits among them.
                Ok(bytes) if self.has_room(x, bytes.len()) => {
                    self.hold(key, None);
                    self.say(x, bytes);
                }
                Ok(bytes) => self.hold(key, Some(bytes)),
                Err(why) => return Err(why.of(note)),
            },
            Note::Custom(method, params) => {
                let ours = ["notifications/progress", "notifications/cancelled"].contains(&method.as_str());
                let bytes = notification(method, Some(params));
                if ours || !self.has_room(x, bytes.len()) {
                    return Err(if ours { Refusal::NotWanted } else { Refusal::Full }.of(note));
                }
                self.say(x, bytes);
            }
        }
        Ok(())
    }

    fn hold(&mut self, key: RequestKey, progress: Option<Bytes>) {
        if let Some(running) = self.requests.get_mut(&key) {
            running.held = progress;
        }
    }

    fn has_room(&self, x: ExchangeId, size: usize) -> bool {
        let max = self.shared.config.limits.server.max_unsent;
        self.exchanges.get(&x).is_some_and(|exchange| exchange.load.total().saturating_add(size) <= max)
    }

    /// Sends the progress that waits, as far as there is room.
    pub(super) fn send_held(&mut self, x: ExchangeId) {
        let Some(exchange) = self.exchanges.get(&x) else { return };
        let waiting: Vec<RequestKey> = exchange.running.iter().copied().collect();
        for key in waiting {
            let Some(held) = self.requests.get(&key).and_then(|running| running.held.as_ref()).map(Bytes::len) else {
                continue;
            };
            if !self.has_room(x, held) {
                return;
            }
            if let Some(held) = self.requests.get_mut(&key).and_then(|running| running.held.take()) {
                self.say(x, held);
            }
        }
    }
}

impl Running {
    /// The notification for this progress, which from then on is the last.
    fn write_progress(&mut self, progress: &Progress) -> Result<Bytes, Refusal> {
        let token = self.token.as_ref().ok_or(Refusal::NotWanted)?;
        let params = Object::new().with(meta::PROGRESS_TOKEN, token);
        let params = progress
            .write(params, self.version.rules().progress_message)
            .ok_or_else(|| Refusal::Unencodable(EncodeError::new("json has no such number")))?;
        if self.progress.is_some_and(|last| progress.progress <= last) {
            return Err(Refusal::NotIncreasing);
        }
        self.progress = Some(progress.progress);
        Ok(notification("notifications/progress", Some(&params)))
    }
}
