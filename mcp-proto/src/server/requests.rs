//! The running requests: one table, by keys of the engine and never by an id that a client chose.
//!
//! ```text
//!  dispatch.rs ── run ──▶ Handler ── Event::Request ──▶ application
//!                            ▲                              │ respond
//!                            │ enter_again                  ▼
//!                         Asking ◀── ask ─────────────── answer
//!                                                           │ finish
//!                                                           ▼
//!                                                wire.rs: the response
//! ```
//!
//! A legacy request is *asking* while its client has to respond to requests of the engine. Each
//! further round has a new key. In revision 2026-07-28 the engine sends a question as the response,
//! and the client sends the request again with its answer.
//!
//! A request ends in one of three ways:
//!
//! * with the response of the application: `answer`, then `finish`;
//! * with an error of the engine, which ends in `finish_with_error`: at the deadline of its handler
//!   (`on_handler_deadline`) or of its client (`on_ask_timeout`), at a shutdown (`end_all`), if its
//!   client can no longer be asked, or if it is evicted for another request (`end_request`);
//! * without a response: `cancel`, since the client has cancelled or left.
//!
//! Only [`forget`](Requests::forget) removes a request that ends. Until then the request counts
//! against the shares of its client, may have a timer, and is among the running requests of its
//! [`ReplyTo`] and the ids of its session, if it has one. [`rekey`](Requests::rekey) only changes
//! its key.

mod endings;

use super::client::{Bound, ClientIdentity};
use super::elicitations::{ElicitationPages, pages_required};
use super::env::ServerEnv;
use super::era::{AdmittedRequest, AwaitTarget};
use super::incoming::FirstRound;
use super::keys::{ReplyTo, ServerTimer, SessionRef, TaskKey};
use super::responder::{OutputPromise, Responder, ResponderData, may_ask, validates_much};
use super::response::{ErrorReply, SerializedResponse};
use super::running::{RequestEntry, RequestStage, ServedRequest, TaskPlace};
use super::shares::Full;
use super::tasks::TaskSlot;
use super::wire::Wire;
use super::{Event, IncomingRequest, RequestState};
use crate::error::{DiagnosticKind, Refusal};
use crate::exchange::ExchangeId;
use crate::input::{Answer, Inputs, KeptRouter, LegacyInputRequest, Note, RequestAnswer, RequestKey};
use crate::model::Progress;
use crate::rpc::{ErrorObject, Object, RawJson, code, error_response, notification};
use crate::short_map::ShortMap;
use crate::short_set::ShortSet;
use crate::version::Era;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

/// The running requests.
pub(super) struct Requests {
    shared: Arc<ResponderData>,
    table: ShortMap<RequestKey, ServedRequest>,
    pub(super) elicitations: ElicitationPages,
    next_key: u64,
}

impl Requests {
    /// `next_key`: the first key that it gives out.
    pub(super) const fn new(shared: Arc<ResponderData>, next_key: u64) -> Self {
        Self { shared, table: ShortMap::new(), elicitations: ElicitationPages::new(), next_key }
    }

    /// Returns the number of running requests.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    pub(super) fn get(&self, key: RequestKey) -> Option<&ServedRequest> {
        self.table.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: RequestKey) -> Option<&mut ServedRequest> {
        self.table.get_mut(&key)
    }

    /// Returns the running requests, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (RequestKey, &ServedRequest)> {
        self.table.iter().map(|(key, running)| (*key, running))
    }

    /// Checks the limits for a further request of this session, or of this exchange if there is no
    /// session, and makes room for it like [`make_room`](Self::make_room).
    pub(super) fn make_room_for_request(
        &mut self,
        wire: &mut Wire,
        client: &ClientIdentity,
        session_ref: Option<SessionRef>,
        x: ExchangeId,
    ) -> Result<(), ErrorReply> {
        let limits = &self.shared.config.limits.server;
        let here = match session_ref {
            Some(session_ref) => wire.session(session_ref).map_or(0, |session| session.running()),
            // Without a session, count the running requests of the batch.
            None => wire.target_on(x).and_then(|reply_to| wire.running(reply_to)).map_or(0, ShortSet::len),
        };
        let backlog = wire.env.unwritten(x);
        if backlog > limits.max_backlog {
            // The engine never refuses a response, so it refuses the requests that would cause
            // more.
            Err(ErrorReply::full("the client does not read its responses"))
        } else if here >= limits.max_running_per_exchange {
            Err(ErrorReply::full("the server is busy"))
        } else {
            self.make_room(wire, client, Bound::Requests, 1).map_err(|full| full.reject("the server is busy"))
        }
    }

    /// Makes room for the bytes of a request of this client.
    pub(super) fn make_room_for_size(
        &mut self,
        wire: &mut Wire,
        client: &ClientIdentity,
        admitted: &AdmittedRequest,
    ) -> Result<(), ErrorReply> {
        let full = |full: Full| full.reject("the server has no room for the request");
        self.make_room(wire, client, Bound::RunningBytes, admitted.size).map_err(full)
    }

    /// Checks that a client may take `more` of a bound. If there is no room, ends requests whose
    /// clients have left. [`run`](Self::run) takes the room.
    pub(super) fn make_room(
        &mut self,
        wire: &mut Wire,
        client: &ClientIdentity,
        bound: Bound,
        more: usize,
    ) -> Result<(), Full> {
        loop {
            let checked = wire.env.check_share(client, bound, more);
            let Err(full) = checked else { return Ok(()) };
            let of = match full {
                Full::All => None,
                Full::Share => Some(client),
            };
            // No eviction makes room for a request that is larger than a whole share.
            let share = bound.share(&self.shared.config.limits.server);
            if more > share || !self.evict_unheard(wire, of) {
                return checked;
            }
        }
    }

    /// Runs a request.
    pub(super) fn run(
        &mut self,
        wire: &mut Wire,
        reply_to: ReplyTo,
        x: ExchangeId,
        admitted: AdmittedRequest,
        batch: Option<u64>,
    ) {
        let AdmittedRequest { id, mut incoming, token, fault, unasked, size, awaits } = admitted;
        if unasked {
            wire.env.diagnose(DiagnosticKind::UnexpectedResponse, "answers to questions that were not asked");
        }
        for (name, answer) in &incoming.inputs {
            if let Ok(answer) = answer {
                wire.env.diagnose_answer(name, answer);
            }
        }
        let client = wire.env.shares.take(&wire.env.client_on(x, incoming.context.session), Bound::Requests, 1);
        wire.env.shares.add(client, Bound::RunningBytes, size);
        let version = incoming.context.version;
        let key = self.mint_key();
        incoming.first = Some(FirstRound { shared: self.shared.clone(), key });
        let takes_place = incoming.may_be_task && wire.env.reserve_task(client);
        if takes_place {
            incoming.task = Some(TaskSlot::new(TaskKey(key.number()), self.shared.clone()));
        }
        let asks_store = awaits == Some(AwaitTarget::Store);
        let entry = (takes_place || asks_store || version.era() == Era::Legacy).then(|| {
            Box::new(RequestEntry { incoming: incoming.clone(), router: None, inputs: Inputs::new(), rounds: 0 })
        });
        let running = ServedRequest {
            exchange: x,
            client,
            reply_to,
            id: id.clone(),
            version,
            batch,
            token,
            log_level: ServedRequest::log_level_in(version, &incoming.meta),
            dropped_logs: 0,
            progress: None,
            held: None,
            since: wire.env.now,
            spent: Duration::ZERO,
            stage: match awaits {
                None => RequestStage::Handler,
                Some(AwaitTarget::Task(task)) => RequestStage::Result(task),
                Some(AwaitTarget::Store) => RequestStage::Store,
            },
            place: if takes_place { TaskPlace::Reserved } else { TaskPlace::None },
            entry,
            size,
        };
        self.table.insert(key, running);
        if let Some(here) = wire.running_mut(reply_to) {
            here.insert(key);
        }
        if let ReplyTo::Stream(stream) = reply_to {
            wire.http.answers_request(stream, &id);
        }
        if let Some(session) = wire.session_of_mut(reply_to) {
            session.insert(id, key);
        }
        match awaits {
            None => self.hand_out(&mut wire.env, key, incoming, None, 0, fault),
            // It may have ended, or have questions.
            Some(AwaitTarget::Task(task)) => wire.env.tasks.changes(task),
            Some(AwaitTarget::Store) => wire.env.asks_store(key),
        }
    }

    /// Adds a request that has begun at another server.
    pub(super) fn table_insert(&mut self, key: RequestKey, running: ServedRequest) {
        self.table.insert(key, running);
    }

    /// Emits the request, for the first or a further round.
    fn hand_out(
        &mut self,
        env: &mut ServerEnv,
        key: RequestKey,
        mut incoming: IncomingRequest,
        router: Option<KeptRouter>,
        rounds: u32,
        fault: Option<Box<ErrorObject>>,
    ) {
        let Some(running) = self.table.get_mut(&key) else { return };
        running.since = env.now;
        let is_task = matches!(running.place, TaskPlace::Taken(_));
        // A task has a time of its own.
        if let Some(deadline) = self.shared.config.limits.server.handler_deadline.filter(|_| !is_task) {
            let left = deadline.saturating_sub(running.spent);
            env.timers.set(ServerTimer::Handler(key), Some(env.now + left));
        }
        let seals = running.version.era() == Era::Modern && may_ask(&incoming.method);
        let received_at = u64::try_from(env.now.since_origin().as_micros()).unwrap_or(u64::MAX);
        let responder = Responder {
            key,
            first: incoming.first.as_ref().map_or(key, |first| first.key),
            key_age: incoming.key_age,
            exchange: running.exchange,
            client: running.client,
            id: running.id.clone(),
            version: running.version,
            method: incoming.method.clone(),
            params: if seals { incoming.params.clone() } else { Object::new() },
            declared: incoming.context.declared.clone(),
            principal: incoming.context.principal.clone(),
            rounds,
            task: incoming.task.clone(),
            inputs: incoming.inputs.clone(),
            received_at,
            fault,
            state_fault: None,
            validates_much: validates_much(&self.shared.config, &incoming.method, &incoming.params),
            promised: OutputPromise::Nothing,
            router,
            shared: self.shared.clone(),
        };
        incoming.rounds = rounds;
        env.emit(Event::Request(responder, incoming));
    }

    /// Returns the data that all responders share.
    pub(super) const fn shared(&self) -> &Arc<ResponderData> {
        &self.shared
    }

    /// Returns whether a request is a task.
    pub(super) fn is_task(&self, key: RequestKey) -> bool {
        self.get(key).is_some_and(|running| matches!(running.place, TaskPlace::Taken(_)))
    }

    /// Starts the next round of a legacy request or of a task, under its key of that round.
    pub(super) fn enter_again(&mut self, env: &mut ServerEnv, key: RequestKey, state: Option<RawJson>) {
        let Some(running) = self.table.get_mut(&key) else { return };
        running.stage = RequestStage::Handler;
        let Some(entry) = &mut running.entry else { return };
        let state = state.map(RequestState::Kept);
        if env.config.shares_tasks() {
            entry.incoming.state.clone_from(&state);
        }
        let (mut incoming, router, rounds) = (entry.incoming.clone(), entry.router.clone(), entry.rounds);
        incoming.inputs = entry.inputs.clone();
        incoming.state = state;
        self.hand_out(env, key, incoming, router, rounds, None);
    }

    /// Assigns a new key to a request that begins to ask its client. Responders of the previous
    /// round have no effect from then on.
    pub(super) fn rekey(&mut self, wire: &mut Wire, old: RequestKey) -> Option<RequestKey> {
        let mut running = self.table.remove(&old)?;
        wire.env.timers.set(ServerTimer::Handler(old), None);
        running.spent += wire.env.now - running.since;
        let new = self.mint_key();
        if let Some(here) = wire.running_mut(running.reply_to) {
            here.remove(&old);
            here.insert(new);
        }
        if let Some(session) = wire.session_of_mut(running.reply_to)
            && !matches!(running.place, TaskPlace::Taken(_))
        {
            session.insert(running.id.clone(), new);
        }
        self.table.insert(new, running);
        Some(new)
    }

    pub(super) const fn mint_key(&mut self) -> RequestKey {
        let key = RequestKey::new(self.next_key);
        self.next_key += 1;
        key
    }

    /// Ends a request with a response. Pending progress goes before it.
    pub(super) fn finish(&mut self, wire: &mut Wire, key: RequestKey, bytes: Bytes, code: Option<i64>) {
        self.finish_with(wire, key, SerializedResponse::new(bytes, code));
    }

    fn finish_with(&mut self, wire: &mut Wire, key: RequestKey, response: SerializedResponse) {
        let Some(running) = self.forget(wire, key) else { return };
        if let TaskPlace::Taken(task) = running.place {
            return self.end_task(wire, task, &response.message);
        }
        if let Some(held) = running.held {
            wire.send(running.reply_to, held);
        }
        wire.reply(running.reply_to, SerializedResponse { batch: running.batch, ..response });
    }

    /// Ends a request with an error of the engine.
    pub(super) fn finish_with_error(&mut self, wire: &mut Wire, key: RequestKey, message: &str) {
        let Some(running) = self.table.get(&key) else { return };
        let bytes = error_response(Some(&running.id), &ErrorObject::new(code::INTERNAL_ERROR, message));
        self.finish(wire, key, bytes, Some(code::INTERNAL_ERROR));
    }

    /// Removes a request from every table.
    pub(super) fn forget(&mut self, wire: &mut Wire, key: RequestKey) -> Option<ServedRequest> {
        let running = self.table.remove(&key)?;
        running.report_dropped_logs(&mut wire.env);
        wire.env.shares.give_back(running.client, Bound::RunningBytes, running.size);
        wire.env.shares.give_back(running.client, Bound::Requests, 1);
        wire.env.timers.set(ServerTimer::Handler(key), None);
        wire.env.timers.set(ServerTimer::Ask(key), None);
        match running.place {
            TaskPlace::None => {}
            TaskPlace::Reserved => wire.env.shares.give_back(running.client, Bound::Tasks, 1),
            // Its client has a response, and the task its place.
            TaskPlace::Taken(_) => return Some(running),
        }
        self.leave(wire, key, &running);
        Some(running)
    }

    /// Removes a request from the place where it is answered.
    fn leave(&self, wire: &mut Wire, key: RequestKey, running: &ServedRequest) {
        let retires = !self.shared.config.compat.reuse_ids && running.version.era() == Era::Legacy;
        if let Some(here) = wire.running_mut(running.reply_to) {
            here.remove(&key);
        }
        if let Some(session) = wire.session_of_mut(running.reply_to) {
            session.remove(&running.id);
            if let RequestStage::Asking(asking) = &running.stage {
                asking.close_in(session);
            }
            if retires {
                session.retire(&running.id);
            }
        }
    }

    /// Removes a request that becomes a task from the place where it is answered.
    pub(super) fn leave_reply_target(&self, wire: &mut Wire, key: RequestKey) {
        if let Some(running) = self.get(key) {
            self.leave(wire, key, running);
        }
    }

    /// Handles the answer of the application. Drops it unless the handler of the request runs.
    /// Returns the [`ReplyTo`] of the request.
    pub(super) fn answer(&mut self, wire: &mut Wire, answer: Answer) -> Option<ReplyTo> {
        let running = self.in_handler(answer.key)?;
        let (reply_to, place) = (running.reply_to, running.place);
        match answer.what {
            RequestAnswer::Message { bytes, outcome, diagnostic } => {
                let code = outcome.code();
                if let Some(diagnostic) = diagnostic {
                    wire.env.queue.report(diagnostic);
                }
                match self.watch_accepted(wire, answer.key, code) {
                    Ok(()) => self.finish(wire, answer.key, bytes, code),
                    Err(ErrorReply { error, kind, .. }) => {
                        wire.env.diagnose(kind, &error.message);
                        self.finish_with_error(wire, answer.key, &error.message);
                    }
                }
            }
            RequestAnswer::Denied { bytes, code, scopes } => {
                let response = SerializedResponse { lacks: Some(scopes), ..SerializedResponse::new(bytes, Some(code)) };
                self.finish_with(wire, answer.key, response);
            }
            RequestAnswer::Listen(_) => self.finish_with_error(wire, answer.key, "no subscription"),
            RequestAnswer::Ask { .. } if wire.has_left(reply_to) => {
                self.finish_with_error(wire, answer.key, "the client can no longer be asked");
            }
            RequestAnswer::Ask { questions, state, router, earlier, diagnostic } => {
                if let Some(diagnostic) = diagnostic {
                    wire.env.queue.report(diagnostic);
                }
                if let Some(entry) = self.get_mut(answer.key).and_then(|running| running.entry.as_mut()) {
                    entry.router = router;
                }
                if let TaskPlace::Taken(task) = place {
                    if let Some(earlier) = earlier {
                        self.keep_earlier(wire, answer.key, earlier);
                    }
                    self.ask_in_task(wire, (answer.key, task), questions, state);
                    return Some(reply_to);
                }
                self.ask_or_refuse(wire, answer.key, questions, state);
            }
        }
        Some(reply_to)
    }

    /// Sends the questions of a request, or the error with the web pages that it needs if the
    /// client cannot receive a request now.
    fn ask_or_refuse(
        &mut self,
        wire: &mut Wire,
        key: RequestKey,
        questions: Vec<LegacyInputRequest>,
        state: Option<RawJson>,
    ) {
        if let Err((kind, why)) = self.open_pages(wire, key, &questions) {
            wire.env.diagnose(kind, why);
            return self.finish_with_error(wire, key, why);
        }
        let is_carried = self.get(key).is_none_or(|running| wire.carries_questions(running.reply_to));
        match pages_required(&questions).filter(|_| !is_carried) {
            None => self.ask(wire, key, questions, state),
            Some(error) => {
                let Some(running) = self.get(key) else { return };
                let bytes = error_response(Some(&running.id), &error);
                self.finish(wire, key, bytes, Some(error.code));
            }
        }
    }

    /// Ends a request whose handler runs for too long. Returns where its response went.
    pub(super) fn on_handler_deadline(&mut self, wire: &mut Wire, key: RequestKey) -> Option<ReplyTo> {
        wire.env.diagnose(DiagnosticKind::HandlerDeadline, "");
        wire.env.emit(Event::Cancelled(key));
        let reply_to = self.table.get(&key).map(|running| running.reply_to);
        self.finish_with_error(wire, key, "the request took too long");
        reply_to
    }

    /// Returns a request whose handler runs.
    pub(super) fn in_handler(&mut self, key: RequestKey) -> Option<&mut ServedRequest> {
        self.table.get_mut(&key).filter(|running| matches!(running.stage, RequestStage::Handler))
    }

    /// Sends progress of a request. While there is no room for it, holds the newest.
    fn send_progress(&mut self, wire: &mut Wire, key: RequestKey, progress: &Progress) -> Result<(), Refusal> {
        let running = self.in_handler(key).ok_or(Refusal::Gone)?;
        let bytes = running.write_progress(progress)?;
        let reply_to = running.reply_to;
        if wire.has_room(reply_to, bytes.len()) {
            // It replaces one that waits for room.
            running.held = None;
            wire.send(reply_to, bytes);
        } else {
            running.held = Some(bytes);
        }
        Ok(())
    }

    /// Sends pending progress, as far as there is room.
    pub(super) fn send_held(&mut self, wire: &mut Wire, reply_to: ReplyTo) {
        let waiting: Vec<RequestKey> = wire.running(reply_to).into_iter().flat_map(ShortSet::iter).collect();
        for key in waiting {
            let Some(held) = self.get(key).and_then(|running| running.held_size()) else { continue };
            if !wire.has_room(reply_to, held) {
                return;
            }
            if let Some(held) = self.get_mut(key).and_then(|running| running.take_held()) {
                wire.send(reply_to, held);
            }
        }
    }

    /// Sends a notification of a handler. A refusal changes nothing. Returns the exchange that has
    /// ended, if the handler has closed its stream.
    pub(super) fn note(
        &mut self,
        wire: &mut Wire,
        key: RequestKey,
        note: &Note,
    ) -> Result<Option<ExchangeId>, Refusal> {
        let running = self.in_handler(key).ok_or(Refusal::Gone)?;
        let reply_to = running.reply_to;
        match note {
            Note::Progress(progress) => self.send_progress(wire, key, progress)?,
            Note::Log(message) => self.send_log(wire, key, message)?,
            Note::CloseStream(retry) => return wire.close_for_resumption(reply_to, *retry),
            Note::Part(content) => {
                let content = content.clone().lower(running.version);
                wire.send_part(reply_to, &content)?;
            }
            // The server itself handles this one, since it ends the response.
            Note::IntoTask(_) => return Err(Refusal::NotWanted),
            Note::Status(text) => self.say_in_task(&mut wire.env, key, text)?,
            Note::Custom(method, params) => {
                if running.is_silent() || !running.may_send(&wire.env, method) {
                    return Err(Refusal::NotWanted);
                }
                let bytes = notification(method, Some(params));
                if !wire.takes(reply_to, bytes.len()) {
                    return Err(Refusal::Full);
                }
                wire.send(reply_to, bytes);
            }
        }
        Ok(None)
    }
}
