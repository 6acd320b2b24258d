//! The server engine (seam B): events of exchanges in, parts to send and events out. One engine
//! serves both eras, and decides per message.
//!
//! It uses exchanges, and no bytes, sockets or clock. It emits a request of a client as
//! [`Event::Request`] with a [`Responder`], and answers by itself what needs no application:
//! `initialize`, `server/discover`, `ping`, errors. The message decides its era (2026-07-28,
//! versioning: backward compatibility): `_meta["io.modelcontextprotocol/protocolVersion"]` makes it
//! modern; `initialize` begins the legacy era on its duplex connection; a later message there
//! without that field has the negotiated revision.
//!
//! `Wire` is the way to the clients: its `ServerEnv` owns the exchanges, and its `HttpState` the
//! HTTP sessions and streams. `Requests` owns the running requests, `Listens` the subscriptions.
//! Each has the methods that use its state. `Server` dispatches messages to them, and ends
//! exchanges and sessions, which takes all of them.
//!
//! The files form layers, and each imports only from those below it: keys, events and limits; the
//! states of sessions, exchanges and streams; `ServerEnv`; the methods of `HttpState`; `Wire`;
//! `Requests` and `Listens`; the methods of `Server`.

mod admission;
mod ask;
mod batch;
mod client;
mod commands;
mod compat;
mod config;
mod dispatch;
mod elicitations;
mod env;
mod era;
mod event;
mod expiry;
mod hosts;
mod incoming;
mod keys;
mod listen;
mod load;
mod notes;
mod questions;
mod queue;
mod requests;
mod responder;
mod response;
mod revoke;
mod rights;
mod running;
mod seal;
mod session;
mod shares;
mod state_keys;
pub mod store;
mod tasks;
mod transport;
mod watched;
mod watching;
mod weight;
mod wire;

#[cfg(test)]
mod tests;

pub use commands::ServerCommands;
pub use compat::{ServerCompat, UnknownEvent};
pub use config::{ServerConfig, Sessions, SsePaths};
pub use event::{Event, KeptEvent, Output, SessionEnd};
pub use hosts::Hosts;
pub(crate) use incoming::TaskOffer;
pub use incoming::{Context, IncomingRequest, RequestState};
pub use responder::Responder;
pub use state_keys::StateKeys;

pub(crate) use tasks::TaskSlot;
pub(crate) use transport::unavailable;

use crate::error::{DiagnosticKind, Refusal, RefusedCommand};
use crate::exchange::{ExchangeEvent, ExchangeId, Inbound, Outbound, Peer};
use crate::input::{Input, InputResult, Note, RequestKey, ServerCommand, ServerInput};
use crate::seed::Seed;
use crate::stats::StoreStats;
use crate::time::Instant;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use client::{Bound, ClientIdentity};
use core::fmt;
use core::time::Duration;
use env::ServerEnv;
use keys::{ServerTimer, SessionRef};
use listen::Listens;
use load::{Load, size};
use requests::Requests;
use responder::ResponderData;
use shares::Full;
use store::Node;
use transport::{Binding, Http, HttpState, ServedExchange};
use wire::Wire;

/// The server engine. See the [module](self) for how a driver uses it.
///
/// [`ServerLimits`](crate::limits::ServerLimits) limits every table. A table is empty again when
/// its requests and exchanges are over.
pub struct Server {
    shared: Arc<ResponderData>,
    life: Life,
    wire: Wire,
    requests: Requests,
    listens: Listens,
}

/// The state of the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Life {
    Serving,
    /// Shutting down: running requests may end.
    Draining,
    Terminated,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("life", &self.life)
            .field("exchanges", &self.wire.env.exchanges.len())
            .field("requests", &self.requests.len())
            .field("listens", &self.listens.len())
            .field("sessions", &self.sessions())
            .field("streams", &self.streams())
            .finish_non_exhaustive()
    }
}

impl ServerCommands for Server {
    fn act(&mut self, now: Instant, command: ServerCommand) -> Result<InputResult, RefusedCommand<ServerCommand>> {
        self.wire.env.now = self.wire.env.now.max(now);
        match command {
            ServerCommand::Respond(answer) => {
                self.on_answer(answer);
            }
            ServerCommand::Notify(key, note) => {
                self.on_note(key, note).map_err(|refused| refused.map(|note| ServerCommand::Notify(key, note)))?;
            }
            ServerCommand::Publish(_) if self.is_terminated() => {}
            ServerCommand::Publish(change) => self.on_publish(change),
            ServerCommand::Elicited(_) if self.is_terminated() => {}
            ServerCommand::Elicited(id) => self.on_page_complete(id),
            ServerCommand::Revoke(principal) => self.on_revoke(&principal),
            ServerCommand::Stored(token, result) => self.on_stored(token, result),
            ServerCommand::Arrived(_) if self.is_terminated() => {}
            ServerCommand::Arrived(item) => self.on_arrived(item),
            ServerCommand::Admit(key, admission) => self.on_admission(key, admission),
            ServerCommand::Shutdown(grace) => self.on_shutdown(grace),
        }
        self.tell_tasks();
        self.keep_changes();
        self.ask_about_tasks();
        self.store_tasks();
        self.close_expired();
        self.end_if_drained();
        Ok(InputResult::Done)
    }
}

impl Server {
    /// Creates a server without exchanges. `seed` must be unpredictable and used for no other
    /// engine. The key that seals `requestState` is derived from it, unless the configuration has
    /// some.
    pub fn new(config: Arc<ServerConfig>, seed: [u8; 32], now: Instant) -> Self {
        let seed = Seed::new(seed);
        let keys = config.state_keys.clone().unwrap_or_else(|| seed.derive("request state").into());
        let nonce_key = seed.derive("nonces");
        let [a, b, c, ..] = seed.derive("request keys");
        // The upper bits distinguish the keys of this engine from those of another. The lower 40
        // bits count.
        let next_key = u64::from_be_bytes([a, b, c, 0, 0, 0, 0, 0]) + 1;
        let shared = Arc::new(ResponderData::new(config.clone(), keys, nonce_key));
        let mut env = ServerEnv::new(config, now, || Node::new(Seed::new(seed.derive("incarnations"))));
        env.join_store();
        Self {
            requests: Requests::new(shared.clone(), next_key),
            listens: Listens::new(shared.clone()),
            shared,
            life: Life::Serving,
            wire: Wire { env, http: HttpState::new(Seed::new(seed.derive("sessions"))) },
        }
    }

    /// Applies one input. The other methods that change the server are forms of this one.
    ///
    /// # Errors
    /// Those of [`act`](ServerCommands::act). Events and ticks are never refused.
    pub fn apply(&mut self, now: Instant, input: ServerInput) -> Result<InputResult, RefusedCommand<ServerInput>> {
        self.wire.env.now = self.wire.env.now.max(now);
        match input {
            Input::Event(exchange, event) => self.on_event(exchange, event),
            Input::Command(command) => {
                return self.act(now, command).map_err(|refused| refused.map(Input::Command));
            }
            Input::Tick => self.on_tick(),
        }
        self.tell_tasks();
        self.keep_changes();
        self.ask_about_tasks();
        self.store_tasks();
        self.close_expired();
        self.end_if_drained();
        Ok(InputResult::Done)
    }

    /// Reports an event of an exchange. Cannot fail: the engine turns a fault of the peer into
    /// error responses, aborts and diagnostics.
    pub fn handle_event(&mut self, now: Instant, exchange: ExchangeId, event: ExchangeEvent) {
        self.done(now, Input::Event(exchange, event));
    }

    /// Fires the timers that are due, in the order of their deadlines. Does nothing if none is.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.done(now, Input::Tick);
    }

    /// Returns the next output, if there is one.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.wire.env.poll_output()
    }

    /// Returns when the driver must call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.wire.env.timers.next().map(|(at, _)| at)
    }

    /// Returns the number of requests that are neither answered nor cancelled.
    pub fn running(&self) -> usize {
        self.requests.len()
    }

    /// Returns the requests of running handlers whose client has left and cannot resume.
    pub(crate) fn unheard(&self) -> impl Iterator<Item = RequestKey> {
        self.requests.unheard(&self.wire.http)
    }

    /// Returns the estimated memory of the running requests, in bytes: never below what they hold,
    /// and at most twice as much. Handlers may hold more. At most
    /// [`max_running_bytes`](crate::limits::ServerLimits::max_running_bytes).
    pub fn running_bytes(&self) -> usize {
        match self.wire.env.shares.all(Bound::RunningBytes) {
            0 => 0,
            held => weight::FIRST + held,
        }
    }

    /// Returns the number of open HTTP sessions, at most
    /// [`max_sessions`](crate::limits::ServerLimits::max_sessions). 0 without the feature `http`.
    pub fn sessions(&self) -> usize {
        self.wire.http.sessions()
    }

    /// Returns the number of streams of legacy HTTP clients: one for each POST with running
    /// requests, one for each that is kept for resumption, and those that a session opened with
    /// GET. A subscription of 2026-07-28 is a request and does not count. 0 without the feature
    /// `http`.
    pub fn streams(&self) -> usize {
        self.wire.http.streams()
    }

    /// Returns whether the application has called [`shutdown`](Self::shutdown).
    pub(crate) fn is_shutting_down(&self) -> bool {
        self.life != Life::Serving
    }

    /// Returns what the store has done for this server. Zero without one.
    pub fn store_stats(&self) -> StoreStats {
        self.wire.env.store_stats()
    }

    /// Returns whether the server has emitted [`Event::Terminated`].
    pub fn is_terminated(&self) -> bool {
        self.life == Life::Terminated
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Arc<ServerConfig> {
        &self.shared.config
    }

    fn done(&mut self, now: Instant, input: ServerInput) {
        let applied = self.apply(now, input);
        debug_assert!(applied.is_ok(), "only notifications are refused");
    }

    fn on_event(&mut self, x: ExchangeId, event: ExchangeEvent) {
        if self.is_terminated() {
            return;
        }
        match event {
            ExchangeEvent::Opened(peer) => self.open_duplex(x, peer),
            ExchangeEvent::From(peer) => self.wire.http.sender = Some((x, peer)),
            // Reported to clients only.
            ExchangeEvent::Waiting | ExchangeEvent::Repeated | ExchangeEvent::Unsendable { id: None, .. } => {}
            ExchangeEvent::Inbound(item) => self.on_item(x, item),
            ExchangeEvent::Unsent(unsent) => self.on_unsent(x, unsent),
            ExchangeEvent::Unsendable { id: Some(id), reason } => {
                self.requests.on_unsendable(&mut self.wire, x, &id, &reason)
            }
            ExchangeEvent::ReadClosed => self.http_read_closed(x),
            ExchangeEvent::Failed { .. } => {
                self.wire.env.unread.remove(&x);
                self.drop_exchange(x);
            }
        }
    }

    fn on_item(&mut self, x: ExchangeId, item: Inbound) {
        match self.wire.env.exchanges.get(&x).map(|exchange| &exchange.binding) {
            Some(Binding::Duplex(_)) => self.duplex_item(x, item),
            Some(Binding::Http(_)) => self.http_item(x, item),
            None => match item {
                Inbound::Request(head) => self.open_http(x, head),
                Inbound::End => {
                    self.wire.env.unread.remove(&x);
                }
                _ if self.wire.env.unread.contains(&x) => {}
                Inbound::Reject(defect) => self.wire.env.http_reject(x, &defect),
                // Bytes of an exchange that is over. The driver read them before it learned of the
                // end.
                Inbound::Body(_) => {}
                _ => self.wire.env.diagnose(DiagnosticKind::UnknownExchange, "an item of no open exchange"),
            },
        }
    }

    /// Sends a notification of the application. A refusal changes nothing.
    fn on_note(&mut self, key: RequestKey, note: Note) -> Result<(), RefusedCommand<Note>> {
        if self.is_terminated() {
            return Err(Refusal::Closed.of(note));
        }
        if let Note::IntoTask(options) = note {
            return self.make_task(key, options).map_err(|why| why.of(note));
        }
        match self.requests.note(&mut self.wire, key, &note) {
            Ok(left) => {
                left.into_iter().for_each(|x| self.drop_exchange(x));
                Ok(())
            }
            Err(why) => Err(why.of(note)),
        }
    }

    /// Adds an exchange, if the limits allow it.
    fn enter(&mut self, x: ExchangeId, peer: Arc<Peer>, binding: Binding) -> bool {
        if self.wire.env.exchanges.len() >= self.shared.config.limits.server.max_exchanges {
            self.wire.http.let_go_of_untold(&mut self.wire.env);
        }
        let client = ClientIdentity::of(x, &peer, &self.shared.config);
        if let Err(full) = self.wire.env.check_share(&client, Bound::Exchanges, 1) {
            let why = match full {
                Full::All => "",
                Full::Share => "the client has its share",
            };
            self.wire.env.diagnose(DiagnosticKind::TooManyExchanges, why);
            return false;
        }
        let client = self.wire.env.shares.take(&client, Bound::Exchanges, 1);
        let (listens, load) = (BTreeSet::new(), Load::default());
        self.wire.env.exchanges.insert(x, ServedExchange { peer, client, binding, listens, load });
        true
    }

    /// Closes an exchange that has failed or ended. Cancels its requests, except those of a stream
    /// that can be resumed.
    fn drop_exchange(&mut self, x: ExchangeId) {
        let Some(exchange) = self.wire.env.close(x) else { return };
        self.wire.http.tails.remove(&x);
        if let Some(duplex) = exchange.binding.duplex() {
            self.requests.leave_pages(&mut self.wire.env, SessionRef::Duplex(x));
            self.wire.http.forget_sse(&mut self.wire.env, duplex);
        }
        for key in exchange.binding.duplex().into_iter().flat_map(|duplex| duplex.running().iter()) {
            self.requests.cancel(&mut self.wire, key, false);
        }
        for key in exchange.listens {
            self.listens.forget(&mut self.wire, key);
        }
        if let Some(stream) = exchange.binding.http().and_then(Http::open_stream) {
            // The unwritten rest of its end is kept for as long as the session is.
            self.wire.env.timers.set(ServerTimer::Keep(stream), None);
            self.detach(stream, x);
        }
    }

    fn abort(&mut self, x: ExchangeId) {
        self.wire.env.queue.push(Output::Abort(x));
        self.drop_exchange(x);
    }

    fn on_unsent(&mut self, x: ExchangeId, unsent: usize) {
        let Some(exchange) = self.wire.env.exchanges.get_mut(&x) else { return };
        let limits = &self.shared.config.limits.server;
        let load = &mut exchange.load;
        let written = unsent < load.unsent.saturating_add(load.handed);
        (load.unsent, load.handed, load.told) = (unsent, 0, true);
        if load.total() <= limits.max_unsent {
            load.excess = 0;
        }
        if unsent == 0 {
            self.wire.env.timers.set(ServerTimer::Stall(x), None);
        } else if written || self.wire.env.timers.get(ServerTimer::Stall(x)).is_none() {
            self.wire.env.timers.set(ServerTimer::Stall(x), Some(self.wire.env.now + limits.write_stall));
        }
        self.wire.target_on(x).into_iter().for_each(|reply_to| self.requests.send_held(&mut self.wire, reply_to));
        self.listens.tell_changes(&mut self.wire, x);
        self.tail_is_written(x);
        if unsent == 0 && self.wire.env.exchanges.get(&x).is_some_and(|exchange| exchange.load.queued == 0) {
            self.wire.http.stream_is_written(&mut self.wire.env, x);
        }
    }

    fn on_shutdown(&mut self, grace: Duration) {
        if self.is_terminated() {
            return;
        }
        let end = self.wire.env.now + grace;
        if self.life == Life::Serving || self.wire.env.timers.get(ServerTimer::Grace).is_some_and(|armed| armed > end) {
            // Nothing else would end these. All of them end before the server may.
            self.listens.end_all(&mut self.wire);
            self.end_own_streams();
            self.life = Life::Draining;
            self.wire.env.timers.set(ServerTimer::Grace, Some(end));
        }
        if grace.is_zero() {
            self.on_grace();
        }
    }

    /// The grace period of the shutdown is over.
    fn on_grace(&mut self) {
        self.lose_tasks();
        self.requests.end_all(&mut self.wire);
        self.terminate();
    }

    fn on_tick(&mut self) {
        while let Some(timer) = self.wire.env.timers.pop_due(self.wire.env.now) {
            match timer {
                ServerTimer::Handshake(x) => {
                    self.wire.env.diagnose(DiagnosticKind::HandshakeTimeout, "no request came");
                    self.abort(x);
                }
                ServerTimer::Stall(x) => {
                    self.wire.env.diagnose(DiagnosticKind::WriteStalled, "no byte was accepted");
                    self.abort(x);
                }
                ServerTimer::End(x) => self.end_duplex(x),
                ServerTimer::Handler(key) => {
                    let answered = self.requests.on_handler_deadline(&mut self.wire, key);
                    answered.into_iter().for_each(|reply_to| self.end_if_quiet(reply_to));
                }
                ServerTimer::Ask(key) => self.requests.on_ask_timeout(&mut self.wire, key),
                ServerTimer::Elicitations => self.requests.forget_pages(&mut self.wire.env),
                ServerTimer::Tasks => self.on_task_timeout(),
                ServerTimer::KeepAlive(x) => self.wire.http.on_keep_alive(&mut self.wire.env, x),
                ServerTimer::Admit(x) => self.on_admit_timeout(x),
                ServerTimer::Expiry(x) => self.on_expiry(x),
                ServerTimer::Keep(stream) => self.wire.http.on_keep(&mut self.wire.env, stream),
                ServerTimer::Sweep => self.on_sweep(),
                ServerTimer::StoreReply => self.on_store_timeout(),
                ServerTimer::StoreRenewal => self.wire.env.renew_lease(),
                ServerTimer::StoreRetry => {
                    self.wire.env.retry_store();
                    self.store_stalled();
                    self.load_outdated();
                    self.send_delayed();
                }
                ServerTimer::Tails => self.on_tails(),
                ServerTimer::AwaitedTasks => self.on_awaited_tasks(),
                ServerTimer::WatchedTasks => self.on_watched_tasks(),
                ServerTimer::Orphans => self.sweep_orphans(),
                ServerTimer::Grace => self.on_grace(),
            }
        }
    }

    /// Terminates a server that shuts down, once no request runs and no client has a response to
    /// fetch.
    fn end_if_drained(&mut self) {
        if self.life != Life::Draining || !self.requests.is_empty() {
            return;
        }
        // Last, since they look at all tasks and streams.
        if self.wire.env.has_unkept_tasks() || self.wire.http.is_awaited() {
            return;
        }
        self.terminate();
    }

    /// Ends every exchange, and emits the last output.
    fn terminate(&mut self) {
        if core::mem::replace(&mut self.life, Life::Terminated) == Life::Terminated {
            return;
        }
        let open: Vec<ExchangeId> = self.wire.env.exchanges.keys().copied().collect();
        for x in open {
            match self.wire.env.exchanges.get(&x).map(|exchange| &exchange.binding) {
                Some(Binding::Duplex(_)) => self.wire.env.queue.push(Output::Send(x, Outbound::End)),
                Some(Binding::Http(_)) => self.wire.env.end_http(x),
                None => {}
            }
        }
        self.wire.env.leave_store();
        self.wire.env.clear();
        self.requests.clear_pages();
        self.listens.clear();
        self.wire.http.clear();
        self.wire.env.queue.terminate();
    }

    /// Sends a response of the engine itself. Disconnects a client that keeps causing them and
    /// reads none.
    fn send_own(&mut self, x: ExchangeId, outgoing: Outbound) {
        let max = self.shared.config.limits.server.max_unsent;
        let Some(exchange) = self.wire.env.exchanges.get_mut(&x) else { return };
        if exchange.load.total() > max {
            exchange.load.excess = exchange.load.excess.saturating_add(size(&outgoing));
        }
        if exchange.load.excess > max {
            self.wire.env.diagnose(DiagnosticKind::WriteStalled, "the client does not read its answers");
            self.abort(x);
        } else {
            self.wire.env.send(x, outgoing);
        }
    }
}

impl Refusal {
    fn of(self, note: Note) -> RefusedCommand<Note> {
        RefusedCommand { value: note, why: self }
    }
}
