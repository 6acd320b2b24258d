//! The server engine (seam B): events of exchanges in, parts to send and events out. One engine
//! serves both eras, and decides per message.
//!
//! It uses exchanges, and no bytes, sockets or clock. It emits a request of a client as
//! [`Event::Request`] with a [`Responder`], and answers by itself what needs no application:
//! `initialize`, `server/discover`, `ping`, errors. The message decides its era (2026-07-28,
//! versioning: backward compatibility): `_meta["io.modelcontextprotocol/protocolVersion"]` makes it
//! modern; `initialize` begins the legacy era on its duplex connection; a later message there
//! without that field has the negotiated revision.

mod admission;
mod ask;
mod batch;
mod binding;
mod config;
mod dispatch;
mod env;
mod era;
mod event;
mod hosts;
mod listen;
mod load;
mod notes;
mod queue;
mod reply;
mod requests;
mod responder;
mod revoke;
mod seal;
mod session;
mod shares;
mod weight;

#[cfg(test)]
mod tests;

pub use config::{ServerConfig, Sessions};
pub use event::{Append, Context, Event, Incoming, RequestState, SessionEnd};
pub use hosts::Hosts;
pub use responder::Responder;

#[cfg(feature = "http")]
pub(crate) use binding::unavailable;

use crate::error::{DiagnosticKind, Refusal, Refused};
use crate::exchange::{ExchangeEvent, ExchangeId, Inbound, Outbound, Peer};
use crate::input::{
    Admission, AdmitToken, Answer, Applied, Change, Input, Note, RequestKey, ServerCommand, ServerInput,
};
use crate::seed::Seed;
use crate::time::Instant;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use binding::{Binding, Duplex, HttpState};
#[cfg(feature = "http")]
use binding::{Http, StreamKey};
use core::fmt;
use core::time::Duration;
use env::{Env, Exchange};
use listen::Listen;
use load::{Load, size};
use reply::ReplyTo;
use requests::Running;
use responder::Shared;
use shares::{Bound, Client, Full};

/// An output of a server, for its driver (seam B).
#[derive(PartialEq, Debug)]
#[must_use]
#[expect(
    clippy::large_enum_variant,
    reason = "most outputs are requests and answers; a box for each would be one allocation more"
)]
pub enum Output {
    /// Send this on an exchange.
    Send(ExchangeId, Outbound),
    /// End an exchange now. The driver reports no further event of it, and the engine sends nothing
    /// on it.
    Abort(ExchangeId),
    /// An event for the application.
    Event(Event),
}

/// The server engine. See the [module](self) for how a driver uses it.
///
/// [`ServerLimits`](crate::limits::ServerLimits) limits every table. A table is empty again when
/// its requests and exchanges are over.
pub struct Server {
    shared: Arc<Shared>,
    life: Life,
    env: Env,
    requests: BTreeMap<RequestKey, Running>,
    next_key: u64,
    /// Open subscriptions.
    listens: BTreeMap<RequestKey, Listen>,
    /// Number of published changes of the list of tools.
    changes: u64,
    http: HttpState,
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
            .field("exchanges", &self.env.exchanges.len())
            .field("requests", &self.requests.len())
            .field("listens", &self.listens.len())
            .field("sessions", &self.sessions())
            .field("streams", &self.streams())
            .finish_non_exhaustive()
    }
}

/// The timers of a server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Timer {
    /// Limit for the first request on a duplex connection.
    Handshake(ExchangeId),
    /// Limit for an exchange that accepts no byte.
    Stall(ExchangeId),
    /// Limit for the requests of a client that has closed its sending side.
    End(ExchangeId),
    /// Limit for a handler.
    Handler(RequestKey),
    /// Limit for the input of a client.
    Ask(RequestKey),
    /// The next keep-alive comment of an event stream.
    #[cfg(feature = "http")]
    KeepAlive(ExchangeId),
    /// Limit for the admission of an HTTP request or a connection.
    Admit(ExchangeId),
    /// The end of the time for which a finished stream is kept.
    #[cfg(feature = "http")]
    Keep(StreamKey),
    /// The next sweep of idle sessions.
    #[cfg(feature = "http")]
    Sweep,
    /// The end of the grace period of a shutdown.
    Grace,
}

impl Server {
    /// Creates a server without exchanges. `seed` must be unpredictable and used for no other
    /// engine. The key that seals `requestState` is derived from it, unless the configuration has
    /// one.
    pub fn new(config: Arc<ServerConfig>, seed: [u8; 32], now: Instant) -> Self {
        let seed = Seed::new(seed);
        let seal_key = config.state_key.unwrap_or_else(|| seed.derive("request state"));
        let nonce_key = seed.derive("nonces");
        let [a, b, c, ..] = seed.derive("request keys");
        let env = Env::new(config.clone(), now);
        Self {
            shared: Arc::new(Shared::new(config, seal_key, nonce_key)),
            life: Life::Serving,
            env,
            requests: BTreeMap::new(),
            // The upper bits tell this engine's keys from those of another, the lower 40 count.
            next_key: u64::from_be_bytes([a, b, c, 0, 0, 0, 0, 0]) + 1,
            listens: BTreeMap::new(),
            changes: 0,
            #[cfg(feature = "http")]
            http: HttpState::new(Seed::new(seed.derive("sessions"))),
            #[cfg(not(feature = "http"))]
            http: HttpState,
        }
    }

    /// Applies one input. The other methods that change the server are forms of this one.
    ///
    /// # Errors
    /// The engine refuses only notifications, and nothing has changed then: [`Refusal::Gone`] after
    /// the end of the request, [`Refusal::NotWanted`] for progress that the client did not ask for
    /// and for a method that a handler may not send ([`Cx::notify`](crate::Cx::notify) lists them),
    /// [`Refusal::NotIncreasing`], [`Refusal::Unencodable`], [`Refusal::Full`] for a custom one
    /// beyond [`max_unsent`](crate::limits::ServerLimits::max_unsent), [`Refusal::Closed`] after
    /// the end.
    pub fn apply(&mut self, now: Instant, input: ServerInput) -> Result<Applied, Refused<ServerInput>> {
        self.env.now = self.env.now.max(now);
        match input {
            Input::Event(exchange, fact) => self.on_fact(exchange, fact),
            Input::Command(ServerCommand::Respond(answer)) => self.on_answer(answer),
            Input::Command(ServerCommand::Notify(key, note)) => {
                self.on_note(key, note)
                    .map_err(|refused| refused.map(|note| Input::Command(ServerCommand::Notify(key, note))))?;
            }
            Input::Command(ServerCommand::Publish(change)) => self.on_publish(change),
            Input::Command(ServerCommand::Revoke(principal)) => self.on_revoke(&principal),
            Input::Command(ServerCommand::Admit(key, admission)) => self.on_admission(key, admission),
            Input::Command(ServerCommand::Shutdown(grace)) => self.on_shutdown(grace),
            Input::Tick => self.on_tick(),
        }
        self.end_if_drained();
        Ok(Applied::Done)
    }

    /// Reports an event of an exchange. Cannot fail: the engine turns a fault of the peer into
    /// error responses, aborts and diagnostics.
    pub fn handle_event(&mut self, now: Instant, exchange: ExchangeId, fact: ExchangeEvent) {
        self.done(now, Input::Event(exchange, fact));
    }

    /// Answers a request, or requests input of its client. Does nothing if the request was
    /// cancelled or answered, or belongs to another engine.
    pub fn respond(&mut self, now: Instant, answer: Answer) {
        self.done(now, Input::Command(ServerCommand::Respond(answer)));
    }

    /// Sends a notification on a request.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn notify(&mut self, now: Instant, to: RequestKey, note: Note) -> Result<(), Refused<Note>> {
        self.env.now = self.env.now.max(now);
        self.on_note(to, note)
    }

    /// Notifies every client that listens, and every legacy client. Never fails and never waits:
    /// pending notifications of one client are merged. Does nothing unless
    /// [`ServerConfig::capabilities`] declare it.
    pub fn publish(&mut self, now: Instant, change: Change) {
        self.done(now, Input::Command(ServerCommand::Publish(change)));
    }

    /// Decides on an HTTP request or a connection of [`Event::Admit`]. Does nothing if it is gone.
    pub fn admit(&mut self, now: Instant, to: AdmitToken, admission: Admission) {
        self.done(now, Input::Command(ServerCommand::Admit(to.key(), admission)));
    }

    /// Shuts the server down. It refuses new requests (`-32603`). Running requests have `grace` to
    /// end; then it cancels them and answers them with `-32603`. Then every exchange ends, and
    /// [`Event::Terminated`] is the last output. A second call can only shorten `grace`.
    pub fn shutdown(&mut self, now: Instant, grace: Duration) {
        self.done(now, Input::Command(ServerCommand::Shutdown(grace)));
    }

    /// Fires the timers that are due, in the order of their deadlines. Does nothing if none is.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.done(now, Input::Tick);
    }

    /// Returns the next output, if there is one.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.env.poll_output()
    }

    /// Returns when the driver must call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.env.timers.next().map(|(at, _)| at)
    }

    /// Returns the number of requests that are neither answered nor cancelled.
    pub fn running(&self) -> usize {
        self.requests.len()
    }

    /// Returns the number of open HTTP sessions, at most
    /// [`max_sessions`](crate::limits::ServerLimits::max_sessions). 0 without the feature `http`.
    pub fn sessions(&self) -> usize {
        #[cfg(feature = "http")]
        let sessions = self.http.sessions();
        #[cfg(not(feature = "http"))]
        let sessions = 0;
        sessions
    }

    /// Returns the number of streams of legacy HTTP clients: one for each POST with running
    /// requests, one for each that is kept for resumption, and those that a session opened with
    /// GET. A subscription of 2026-07-28 is a request and does not count. 0 without the feature
    /// `http`.
    pub fn streams(&self) -> usize {
        #[cfg(feature = "http")]
        let streams = self.http.streams();
        #[cfg(not(feature = "http"))]
        let streams = 0;
        streams
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

    fn on_fact(&mut self, x: ExchangeId, fact: ExchangeEvent) {
        if self.is_terminated() {
            return;
        }
        match fact {
            ExchangeEvent::Opened(peer) => self.open_duplex(x, peer),
            #[cfg(feature = "http")]
            ExchangeEvent::From(peer) => self.http.sender = Some((x, peer)),
            #[cfg(not(feature = "http"))]
            ExchangeEvent::From(_) => {}
            // Reported to clients only.
            ExchangeEvent::Waiting | ExchangeEvent::Repeated | ExchangeEvent::Unsendable { id: None, .. } => {}
            ExchangeEvent::Inbound(item) => self.on_item(x, item),
            ExchangeEvent::Unsent(unsent) => self.on_unsent(x, unsent),
            ExchangeEvent::Unsendable { id: Some(id), reason } => self.on_unsendable(x, &id, &reason),
            #[cfg(feature = "http")]
            ExchangeEvent::ReadClosed => self.http_read_closed(x),
            #[cfg(not(feature = "http"))]
            ExchangeEvent::ReadClosed => {}
            ExchangeEvent::Failed { .. } => {
                #[cfg(feature = "http")]
                self.env.unread.remove(&x);
                self.drop_exchange(x);
            }
        }
    }

    fn on_item(&mut self, x: ExchangeId, item: Inbound) {
        match self.env.exchanges.get(&x).map(|exchange| &exchange.binding) {
            Some(Binding::Duplex(_)) => self.duplex_item(x, item),
            #[cfg(feature = "http")]
            Some(Binding::Http(_)) => self.http_item(x, item),
            None => match item {
                #[cfg(feature = "http")]
                Inbound::Request(head) => self.open_http(x, head),
                Inbound::End => {
                    #[cfg(feature = "http")]
                    self.env.unread.remove(&x);
                }
                #[cfg(feature = "http")]
                _ if self.env.unread.contains(&x) => {}
                #[cfg(feature = "http")]
                Inbound::Reject(defect) => self.env.http_reject(x, &defect),
                // What follows an exchange that is over: its reader was not told yet.
                Inbound::Body(_) => {}
                _ => self.env.diagnose(DiagnosticKind::UnknownExchange, "an item of no open exchange"),
            },
        }
    }

    /// Adds an exchange, if the limits allow it.
    fn enter(&mut self, x: ExchangeId, peer: Peer, binding: Binding) -> bool {
        #[cfg(feature = "http")]
        if self.env.exchanges.len() >= self.shared.config.limits.server.max_exchanges {
            self.http.let_go_of_untold(&mut self.env);
        }
        let client = Client::of(x, &peer, &self.shared.config);
        if let Err(full) = self.env.check_share(&client, Bound::Exchanges, 1) {
            let why = match full {
                Full::All => "",
                Full::Share => "the client has its share",
            };
            self.env.diagnose(DiagnosticKind::TooManyExchanges, why);
            return false;
        }
        let client = self.env.shares.take(&client, Bound::Exchanges, 1);
        let (listens, load) = (BTreeSet::new(), Load::default());
        self.env.exchanges.insert(x, Exchange { peer, client, binding, listens, load });
        true
    }

    /// Closes an exchange that has failed or ended. Cancels its requests, except those of a stream
    /// that can be resumed.
    fn drop_exchange(&mut self, x: ExchangeId) {
        let Some(exchange) = self.env.close(x) else { return };
        for key in exchange.binding.duplex().into_iter().flat_map(Duplex::running) {
            self.cancel(*key, false);
        }
        for key in exchange.listens {
            self.forget_listen(key);
        }
        #[cfg(feature = "http")]
        if let Some(stream) = exchange.binding.http().and_then(Http::open_stream) {
            // What is not written of its end is kept for as long as the session is.
            self.env.timers.set(Timer::Keep(stream), None);
            self.detach(stream, x);
        }
    }

    fn abort(&mut self, x: ExchangeId) {
        self.env.queue.push(Output::Abort(x));
        self.drop_exchange(x);
    }

    fn on_unsent(&mut self, x: ExchangeId, unsent: usize) {
        let Some(exchange) = self.env.exchanges.get_mut(&x) else { return };
        let limits = &self.shared.config.limits.server;
        let load = &mut exchange.load;
        let written = unsent < load.unsent.saturating_add(load.handed);
        (load.unsent, load.handed, load.told) = (unsent, 0, true);
        if load.total() <= limits.max_unsent {
            load.excess = 0;
        }
        if unsent == 0 {
            self.env.timers.set(Timer::Stall(x), None);
        } else if written || self.env.timers.get(Timer::Stall(x)).is_none() {
            self.env.timers.set(Timer::Stall(x), Some(self.env.now + limits.write_stall));
        }
        ReplyTo::on(&self.env, x).into_iter().for_each(|reply_to| self.send_held(reply_to));
        self.tell_changes(x);
        #[cfg(feature = "http")]
        if unsent == 0 && self.env.exchanges.get(&x).is_some_and(|exchange| exchange.load.queued == 0) {
            self.http.stream_is_written(&mut self.env, x);
        }
    }

    fn on_shutdown(&mut self, grace: Duration) {
        if self.is_terminated() {
            return;
        }
        let end = self.env.now + grace;
        if self.life == Life::Serving || self.env.timers.get(Timer::Grace).is_some_and(|armed| armed > end) {
            // Nothing else would end these. All of them end before the server may.
            self.end_listens();
            #[cfg(feature = "http")]
            self.end_own_streams();
            self.life = Life::Draining;
            self.env.timers.set(Timer::Grace, Some(end));
        }
        if grace.is_zero() {
            self.on_grace();
        }
    }

    /// The grace period of the shutdown is over.
    fn on_grace(&mut self) {
        self.end_running();
        self.terminate();
    }

    fn on_tick(&mut self) {
        while let Some(timer) = self.env.timers.pop_due(self.env.now) {
            match timer {
                Timer::Handshake(x) => {
                    self.env.diagnose(DiagnosticKind::HandshakeTimeout, "no request came");
                    self.abort(x);
                }
                Timer::Stall(x) => {
                    self.env.diagnose(DiagnosticKind::WriteStalled, "no byte was accepted");
                    self.abort(x);
                }
                Timer::End(x) => self.end_duplex(x),
                Timer::Handler(key) => self.handler_deadline(key),
                Timer::Ask(key) => self.ask_timeout(key),
                #[cfg(feature = "http")]
                Timer::KeepAlive(x) => self.on_keep_alive(x),
                Timer::Admit(x) => self.on_admit_timeout(x),
                #[cfg(feature = "http")]
                Timer::Keep(stream) => self.http.on_keep(&mut self.env, stream),
                #[cfg(feature = "http")]
                Timer::Sweep => self.on_sweep(),
                Timer::Grace => self.on_grace(),
            }
        }
    }

    /// Terminates a server that shuts down, once no request runs and no client has a response to
    /// fetch.
    fn end_if_drained(&mut self) {
        if self.life != Life::Draining || !self.requests.is_empty() {
            return;
        }
        // Last, since it looks at all streams.
        #[cfg(feature = "http")]
        if self.http.is_awaited() {
            return;
        }
        self.terminate();
    }

    /// Ends every exchange, and emits the last output.
    fn terminate(&mut self) {
        if core::mem::replace(&mut self.life, Life::Terminated) == Life::Terminated {
            return;
        }
        let open: Vec<ExchangeId> = self.env.exchanges.keys().copied().collect();
        for x in open {
            match self.env.exchanges.get(&x).map(|exchange| &exchange.binding) {
                Some(Binding::Duplex(_)) => self.env.queue.push(Output::Send(x, Outbound::End)),
                #[cfg(feature = "http")]
                Some(Binding::Http(_)) => self.end_http(x),
                None => {}
            }
        }
        self.env.clear();
        self.listens.clear();
        #[cfg(feature = "http")]
        self.clear_http();
        self.env.queue.terminate();
    }

    /// Sends a response of the engine itself. Disconnects a client that keeps causing them and
    /// reads none.
    fn send_own(&mut self, x: ExchangeId, outgoing: Outbound) {
        let max = self.shared.config.limits.server.max_unsent;
        let Some(exchange) = self.env.exchanges.get_mut(&x) else { return };
        if exchange.load.total() > max {
            exchange.load.excess = exchange.load.excess.saturating_add(size(&outgoing));
        }
        if exchange.load.excess > max {
            self.env.diagnose(DiagnosticKind::WriteStalled, "the client does not read its answers");
            self.abort(x);
        } else {
            self.env.send(x, outgoing);
        }
    }
}

impl Refusal {
    fn of(self, note: Note) -> Refused<Note> {
        Refused { value: note, why: self }
    }
}
