//! The running requests: one table, by keys of the engine and never by an id that a client chose.
//!
//! ```text
//!  dispatch.rs ── run ──▶ Handler ── Event::Request ──▶ application
//!                            ▲                              │ respond
//!                            │ enter_again                  ▼
//!                         Asking ◀── ask ────────────── on_answer
//!                                                           │ finish
//!                                                           ▼
//!                                                reply.rs: the response
//! ```
//!
//! A legacy request is *asking* while its client has to respond to requests of the engine. Each
//! further round has a new key. On 2026-07-28 a question is the response, and the client sends the
//! request again.
//!
//! A request ends in one of three ways: `finish` with the response of the application,
//! `finish_with_error` at a deadline or a shutdown, `cancel` without a response, since the client
//! has cancelled or left.
//!
//! A request leaves the table in [`forget`](Server::forget) and nowhere else. Until then it has a
//! place in three more tables: the running requests of its [`ReplyTo`], the ids of its session, the
//! shares of its client.

use super::Timer;
use super::ask::Asking;
use super::era::{Admitted, ErrorReply};
use super::reply::{Reply, ReplyTo};
use super::responder::{Responder, may_ask};
use super::seal::Inputs;
use super::session::SessionRef;
use super::shares::{Bound, Client, ClientKey, Full};
use super::{Event, Incoming, Life, RequestState, Server};
use crate::error::{DiagnosticKind, Refusal, Refused};
use crate::exchange::ExchangeId;
use crate::input::{Answer, Answered, Note, RequestKey};
use crate::model::Progress;
use crate::model::lifecycle::meta;
use crate::model::logging::LogLevel;
use crate::rpc::{EncodeError, ErrorObject, Id, Object, RawJson, code, error_response, notification};
use crate::time::Instant;
use crate::version::{Era, ProtocolVersion};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

/// A request that the application handles, or that waits for its client.
#[derive(Debug)]
pub(super) struct Running {
    /// The exchange that brought it. It may be over.
    pub(super) exchange: ExchangeId,
    /// The client that its place and its bytes count for.
    pub(super) client: ClientKey,
    pub(super) reply_to: ReplyTo,
    pub(super) id: Id,
    pub(super) version: ProtocolVersion,
    /// The batch that its response belongs to, on a duplex connection.
    batch: Option<u64>,
    /// Its progress token.
    token: Option<Id>,
    /// The lowest level of log messages that the request wants. `None`: it wants none.
    pub(super) log_level: Option<LogLevel>,
    /// The last progress that the application reported.
    progress: Option<f64>,
    /// The newest progress notification, if it waits for room.
    held: Option<Bytes>,
    /// When the handler was entered last.
    since: Instant,
    /// How long it ran in earlier rounds.
    spent: Duration,
    pub(super) stage: Stage,
    /// The request for a further round. `None` on 2026-07-28, where the client sends it again.
    pub(super) entry: Option<Box<Entry>>,
    /// The memory that it holds, in bytes, as estimated.
    pub(super) size: usize,
}

/// The state of a request.
#[derive(Debug)]
pub(super) enum Stage {
    /// The application has its responder.
    Handler,
    /// The client has to respond to requests of the engine.
    Asking(Asking),
}

/// A legacy request, for the rounds after the first.
#[derive(Debug)]
pub(super) struct Entry {
    incoming: Incoming,
    pub(super) inputs: Inputs,
    pub(super) rounds: u32,
}

impl Server {
    /// Checks the limits for a further request of this exchange.
    pub(super) fn check_room(
        &mut self,
        client: &Client,
        session_ref: Option<SessionRef>,
        x: ExchangeId,
    ) -> Result<(), ErrorReply> {
        let limits = &self.shared.config.limits.server;
        let here = match session_ref {
            Some(session_ref) => session_ref.get(&self.env, &self.http).map_or(0, |session| session.running()),
            // Those of its batch.
            None => ReplyTo::on(&self.env, x)
                .and_then(|reply_to| reply_to.running(&self.env, &self.http))
                .map_or(0, BTreeSet::len),
        };
        let backlog = self.env.unwritten(x);
        if self.life != Life::Serving {
            Err(ErrorReply::full("the server is shutting down"))
        } else if backlog > limits.max_backlog {
            // The engine refuses no response, so it refuses the requests that lead to them.
            Err(ErrorReply::full("the client does not read its responses"))
        } else if here >= limits.max_running_per_exchange {
            Err(ErrorReply::full("the server is busy"))
        } else {
            self.make_room(client, Bound::Requests, 1).map_err(|full| full.reject("the server is busy"))
        }
    }

    /// Makes room for a client that takes `more` of a bound. If there is none, ends requests whose
    /// clients have left.
    pub(super) fn make_room(&mut self, client: &Client, bound: Bound, more: usize) -> Result<(), Full> {
        loop {
            let checked = self.env.check_share(client, bound, more);
            let Err(full) = checked else { return Ok(()) };
            let of = match full {
                Full::All => None,
                Full::Share => Some(client),
            };
            // No request gives way to one that is refused anyway.
            let share = bound.share(&self.shared.config.limits.server);
            if more > share || !self.end_unheard(of) {
                return checked;
            }
        }
    }

    /// Every exchange is duplex: a client that leaves has cancelled.
    #[cfg(not(feature = "http"))]
    pub(crate) const fn unheard(&self) -> usize {
        0
    }

    #[cfg(not(feature = "http"))]
    fn end_unheard(&mut self, _: Option<&Client>) -> bool {
        false
    }

    /// Runs a request.
    pub(super) fn run(&mut self, reply_to: ReplyTo, x: ExchangeId, admitted: Admitted, batch: Option<u64>) {
        let Admitted { id, incoming, token, fault, unasked, size } = admitted;
        if unasked {
            self.env.diagnose(DiagnosticKind::UnexpectedResponse, "answers to questions that were not asked");
        }
        let client = self.env.shares.take(&self.env.client_on(x, incoming.context.session), Bound::Requests, 1);
        self.env.shares.add(client, Bound::RunningBytes, size);
        let version = incoming.context.version;
        let entry = (version.era() == Era::Legacy)
            .then(|| Box::new(Entry { incoming: incoming.clone(), inputs: Inputs::new(), rounds: 0 }));
        let key = self.mint_key();
        let running = Running {
            exchange: x,
            client,
            reply_to,
            id: id.clone(),
            version,
            batch,
            token,
            log_level: Running::log_level_in(version, &incoming.meta),
            progress: None,
            held: None,
            since: self.env.now,
            spent: Duration::ZERO,
            stage: Stage::Handler,
            entry,
            size,
        };
        self.requests.insert(key, running);
        if let Some(here) = reply_to.running_mut(&mut self.env, &mut self.http) {
            here.insert(key);
        }
        if let Some(session) = reply_to.session_mut(&mut self.env, &mut self.http) {
            session.insert(id, key);
        }
        self.hand_out(key, incoming, 0, fault);
    }

    /// Emits the request, for the first or a further round.
    fn hand_out(&mut self, key: RequestKey, incoming: Incoming, rounds: u32, fault: Option<Box<ErrorObject>>) {
        let Some(running) = self.requests.get_mut(&key) else { return };
        running.since = self.env.now;
        if let Some(deadline) = self.shared.config.limits.server.handler_deadline {
            let left = deadline.saturating_sub(running.spent);
            self.env.timers.set(Timer::Handler(key), Some(self.env.now + left));
        }
        let seals = running.version.era() == Era::Modern && may_ask(&incoming.method);
        let came = self.env.now.unix(self.shared.config.origin_unix).as_secs();
        let responder = Responder {
            key,
            exchange: running.exchange,
            client: running.client,
            id: running.id.clone(),
            version: running.version,
            method: incoming.method.clone(),
            params: if seals { incoming.params.clone() } else { Object::new() },
            capabilities: incoming.context.capabilities.clone(),
            principal: incoming.context.principal.clone(),
            rounds,
            inputs: incoming.inputs.clone(),
            came,
            fault,
            state_fault: None,
            expects_structure: false,
            shared: self.shared.clone(),
        };
        self.env.emit(Event::Request(responder, incoming));
    }

    /// Starts the next round of a legacy request, under the key that it got when it asked.
    pub(super) fn enter_again(&mut self, key: RequestKey, state: Option<RawJson>) {
        let Some(running) = self.requests.get_mut(&key) else { return };
        running.stage = Stage::Handler;
        let Some(entry) = &running.entry else { return };
        let (mut incoming, rounds) = (entry.incoming.clone(), entry.rounds);
        incoming.inputs = entry.inputs.clone();
        incoming.state = state.map(RequestState::Kept);
        self.hand_out(key, incoming, rounds, None);
    }

    /// Gives a request that asks its client a new key. A responder of the last round does nothing
    /// then.
    pub(super) fn rekey(&mut self, old: RequestKey) -> Option<RequestKey> {
        let mut running = self.requests.remove(&old)?;
        self.env.timers.set(Timer::Handler(old), None);
        running.spent += self.env.now - running.since;
        let new = self.mint_key();
        if let Some(here) = running.reply_to.running_mut(&mut self.env, &mut self.http) {
            here.remove(&old);
            here.insert(new);
        }
        if let Some(session) = running.reply_to.session_mut(&mut self.env, &mut self.http) {
            session.insert(running.id.clone(), new);
        }
        self.requests.insert(new, running);
        Some(new)
    }

    pub(super) fn mint_key(&mut self) -> RequestKey {
        let key = RequestKey(self.next_key);
        self.next_key += 1;
        key
    }

    /// Handles the answer of the application. Drops it unless the handler of the request runs.
    pub(super) fn on_answer(&mut self, answer: Answer) {
        let running = self.requests.get(&answer.key).filter(|running| matches!(running.stage, Stage::Handler));
        let Some(reply_to) = running.map(|running| running.reply_to) else { return };
        match answer.what {
            Answered::Message { bytes, code, diagnostic } => {
                if let Some(diagnostic) = diagnostic {
                    self.env.queue.report(diagnostic);
                }
                if code.is_none() {
                    self.keep_log_level(answer.key);
                }
                self.finish(answer.key, bytes, code);
            }
            Answered::Ask { .. } if reply_to.has_left(&self.env) => {
                self.finish_with_error(answer.key, "the client can no longer be asked");
            }
            Answered::Ask { questions, state } => self.ask(answer.key, questions, state),
        }
        self.end_if_quiet(reply_to);
    }

    /// Ends a request with a response. Pending progress goes before it.
    fn finish(&mut self, key: RequestKey, bytes: Bytes, code: Option<i64>) {
        let Some(running) = self.forget(key) else { return };
        if let Some(held) = running.held {
            running.reply_to.send(&mut self.env, &mut self.http, held);
        }
        self.reply_to(running.reply_to, Reply { message: bytes, code, batch: running.batch });
    }

    /// Ends a request with an error of the engine.
    fn finish_with_error(&mut self, key: RequestKey, message: &str) {
        let Some(running) = self.requests.get(&key) else { return };
        let bytes = error_response(Some(&running.id), &ErrorObject::new(code::INTERNAL_ERROR, message));
        self.finish(key, bytes, Some(code::INTERNAL_ERROR));
    }

    /// Removes a request from every table.
    fn forget(&mut self, key: RequestKey) -> Option<Running> {
        let running = self.requests.remove(&key)?;
        self.env.shares.give_back(running.client, Bound::RunningBytes, running.size);
        self.env.shares.give_back(running.client, Bound::Requests, 1);
        self.env.timers.set(Timer::Handler(key), None);
        self.env.timers.set(Timer::Ask(key), None);
        let retires = !self.shared.config.reuse_ids && running.version.era() == Era::Legacy;
        if let Some(here) = running.reply_to.running_mut(&mut self.env, &mut self.http) {
            here.remove(&key);
        }
        if let Some(session) = running.reply_to.session_mut(&mut self.env, &mut self.http) {
            session.remove(&running.id);
            if let Stage::Asking(asking) = &running.stage {
                asking.close_in(session);
            }
            if retires {
                session.retire(&running.id);
            }
        }
        Some(running)
    }

    /// Ends a request without a response. `wire`: its exchange lives on, so the engine withdraws
    /// its own requests on it.
    pub(super) fn cancel(&mut self, key: RequestKey, wire: bool) {
        let Some(running) = self.forget(key) else { return };
        match &running.stage {
            Stage::Handler => self.env.emit(Event::Cancelled(key)),
            Stage::Asking(asking) if wire => self.withdraw(running.reply_to, asking),
            Stage::Asking(_) => {}
        }
        // On a connection that is over, its batch is over too.
        self.no_reply_to(running.reply_to, running.batch.filter(|_| wire));
    }

    pub(super) fn handler_deadline(&mut self, key: RequestKey) {
        self.env.diagnose(DiagnosticKind::HandlerDeadline, "");
        self.env.emit(Event::Cancelled(key));
        let reply_to = self.requests.get(&key).map(|running| running.reply_to);
        self.finish_with_error(key, "the request took too long");
        reply_to.into_iter().for_each(|reply_to| self.end_if_quiet(reply_to));
    }

    pub(super) fn ask_timeout(&mut self, key: RequestKey) {
        self.env.diagnose(DiagnosticKind::AskTimeout, "");
        self.end_asking(key, "the client did not answer in time");
    }

    /// Ends every request, since the server shuts down.
    pub(super) fn end_running(&mut self) {
        let running: Vec<RequestKey> = self.requests.keys().copied().collect();
        for key in running {
            self.end_request(key, "the server is shutting down");
        }
    }

    /// Ends a request with an error: cancels its handler, or withdraws the requests to its client.
    pub(super) fn end_request(&mut self, key: RequestKey, why: &str) {
        match self.requests.get(&key).map(|running| &running.stage) {
            Some(Stage::Handler) => {
                self.env.emit(Event::Cancelled(key));
                self.finish_with_error(key, why);
            }
            Some(Stage::Asking(_)) => self.end_asking(key, why),
            None => {}
        }
    }

    fn end_asking(&mut self, key: RequestKey, message: &str) {
        let Some(running) = self.requests.get_mut(&key) else { return };
        let reply_to = running.reply_to;
        if let Stage::Asking(asking) = &mut running.stage {
            let open = core::mem::take(asking);
            self.settle(reply_to, &open);
            self.withdraw(reply_to, &open);
        }
        self.finish_with_error(key, message);
    }

    /// Sends a notification of the application. A refusal changes nothing.
    pub(super) fn on_note(&mut self, key: RequestKey, note: Note) -> Result<(), Refused<Note>> {
        if self.is_terminated() {
            return Err(Refusal::Closed.of(note));
        }
        let Some(running) = self.requests.get_mut(&key).filter(|running| matches!(running.stage, Stage::Handler))
        else {
            return Err(Refusal::Gone.of(note));
        };
        let reply_to = running.reply_to;
        match &note {
            Note::Progress(progress) => match running.write_progress(progress) {
                // The newest progress replaces one that waits for room.
                Ok(bytes) if reply_to.has_room(&self.env, &self.http, bytes.len()) => {
                    self.hold(key, None);
                    reply_to.send(&mut self.env, &mut self.http, bytes);
                }
                Ok(bytes) => self.hold(key, Some(bytes)),
                Err(why) => return Err(why.of(note)),
            },
            Note::CloseStream(retry) => {
                if !self.close_for_resumption(reply_to, *retry) {
                    return Err(Refusal::NotWanted.of(note));
                }
            }
            Note::Custom(method, params) => {
                if !self.may_send(key, method, params) {
                    return Err(Refusal::NotWanted.of(note));
                }
                let bytes = notification(method, Some(params));
                if !reply_to.takes(&self.env, &self.http, bytes.len()) {
                    return Err(Refusal::Full.of(note));
                }
                reply_to.send(&mut self.env, &mut self.http, bytes);
            }
        }
        Ok(())
    }

    fn hold(&mut self, key: RequestKey, progress: Option<Bytes>) {
        if let Some(running) = self.requests.get_mut(&key) {
            running.held = progress;
        }
    }
}

impl Running {
    /// Returns the request, if it is a legacy one.
    pub(super) fn request(&self) -> Option<&Incoming> {
        self.entry.as_ref().map(|entry| &entry.incoming)
    }

    /// Returns the size of the pending progress notification, in bytes.
    pub(super) fn held_size(&self) -> Option<usize> {
        self.held.as_ref().map(Bytes::len)
    }

    /// Takes the pending progress notification.
    pub(super) const fn take_held(&mut self) -> Option<Bytes> {
        self.held.take()
    }

    /// Returns the notification for this progress, which must be above the last.
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
