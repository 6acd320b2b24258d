//! The server engine: facts about exchanges in, things to say and events out. Both eras on one engine, decided per message.
//!
//! It knows exchanges and nothing below them: no bytes, no sockets, no clock. Requests are handed out as [`Event::Request`] with a
//! [`Responder`]; whatever can be answered without an application (`initialize`, `server/discover`, `ping`, errors) is answered here.
//! Which revision a message belongs to is decided by the message itself first (2026-07-28, versioning: backward compatibility):
//! `_meta["io.modelcontextprotocol/protocolVersion"]` makes it modern, `initialize` begins the legacy era on its duplex exchange, and
//! whatever comes there without that field follows what was negotiated.

mod admission;
mod ask;
mod binding;
mod config;
mod era;
mod event;
mod hosts;
mod listen;
mod load;
mod notes;
mod queue;
mod requests;
mod responder;
mod revoke;
mod seal;
mod shares;
mod talk;
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
    Admission, AdmitKey, AdmitToken, Answer, Applied, Change, Input, Note, RequestKey, ServerCommand, ServerInput,
};
use crate::seed::Seed;
use crate::time::{Instant, Timers};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use binding::Binding;
#[cfg(feature = "http")]
use binding::{StreamKey, Web};
use core::fmt;
use core::time::Duration;
use listen::Listen;
use load::{Load, size};
use queue::Queue;
use requests::Running;
use responder::Shared;
use shares::{Bound, Client, ClientKey, Full, Shares};
#[cfg(not(feature = "http"))]
use talk::Place;

/// What a server tells its driver (seam B), in order.
#[derive(PartialEq, Debug)]
#[must_use]
#[expect(
    clippy::large_enum_variant,
    reason = "most outputs are requests and answers; a box for each would be one allocation more"
)]
pub enum Output {
    /// Say this on an exchange.
    Send(ExchangeId, Outbound),
    /// End an exchange now; nothing more is said of it, by either side.
    Abort(ExchangeId),
    /// Something for the application.
    Event(Event),
}

/// A server engine. See the [module](self).
///
/// Every table is bounded by [`ServerLimits`](crate::limits::ServerLimits), and is empty again when its requests and exchanges are over.
pub struct Server {
    shared: Arc<Shared>,
    now: Instant,
    life: Life,
    exchanges: BTreeMap<ExchangeId, Exchange>,
    /// The exchanges that wait for their admission.
    admitting: BTreeMap<AdmitKey, ExchangeId>,
    requests: BTreeMap<RequestKey, Running>,
    /// What each client takes of the bounds that all share.
    shares: Shares,
    next_key: u64,
    timers: Timers<Timer>,
    queue: Queue,
    /// The subscriptions that are open.
    listens: BTreeMap<RequestKey, Listen>,
    /// The exchanges at whose other end someone may want to know of changes.
    watchers: BTreeSet<ExchangeId>,
    /// How many changes of the list of tools there were.
    changes: u64,
    #[cfg(feature = "http")]
    web: Web,
}

/// Whether the engine takes requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Life {
    Serving,
    /// Shutting down: what runs may end.
    Draining,
    Terminated,
}

/// An exchange that is open.
#[derive(Debug)]
struct Exchange {
    peer: Peer,
    /// Whose it is.
    client: ClientKey,
    binding: Binding,
    /// Its requests that run.
    running: BTreeSet<RequestKey>,
    /// Its subscriptions.
    listens: BTreeSet<RequestKey>,
    load: Load,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("life", &self.life)
            .field("exchanges", &self.exchanges.len())
            .field("requests", &self.requests.len())
            .field("listens", &self.listens.len())
            .field("sessions", &self.sessions())
            .field("streams", &self.streams())
            .finish_non_exhaustive()
    }
}

/// What a deadline is for. Each is armed at most once at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Timer {
    /// A duplex exchange stays without a first request.
    Handshake(ExchangeId),
    /// An exchange accepts no byte.
    Stall(ExchangeId),
    /// A client has said all, and some of its requests still run.
    End(ExchangeId),
    /// A handler runs.
    Handler(RequestKey),
    /// A client owes us answers.
    Ask(RequestKey),
    /// An event stream is silent.
    #[cfg(feature = "http")]
    KeepAlive(ExchangeId),
    /// An HTTP request or a connection waits for its admission.
    Admit(ExchangeId),
    /// A stream is kept after its end.
    #[cfg(feature = "http")]
    Keep(StreamKey),
    /// Idle sessions are looked for.
    #[cfg(feature = "http")]
    Sweep,
    /// The grace of a shutdown.
    Grace,
}

impl Server {
    /// A server that waits for exchanges. `seed`: 32 unguessable bytes, of which no other engine may have the same; the key that seals
    /// `requestState` comes from it, unless the configuration has one.
    pub fn new(config: Arc<ServerConfig>, seed: [u8; 32], now: Instant) -> Self {
        let seed = Seed::new(seed);
        let seal_key = config.state_key.unwrap_or_else(|| seed.derive("request state"));
        let nonce_key = seed.derive("nonces");
        let [a, b, c, ..] = seed.derive("request keys");
        let queue = Queue::new(&config.limits.server);
        Self {
            shared: Arc::new(Shared::new(config, seal_key, nonce_key)),
            now,
            life: Life::Serving,
            exchanges: BTreeMap::new(),
            admitting: BTreeMap::new(),
            requests: BTreeMap::new(),
            shares: Shares::default(),
            // The upper bits tell this engine's keys from those of another, the lower 40 count.
            next_key: u64::from_be_bytes([a, b, c, 0, 0, 0, 0, 0]) + 1,
            timers: Timers::new(),
            queue,
            listens: BTreeMap::new(),
            watchers: BTreeSet::new(),
            changes: 0,
            #[cfg(feature = "http")]
            web: Web::new(Seed::new(seed.derive("sessions"))),
        }
    }

    /// Takes one input: the one entrance, of which the other methods are thin forms.
    ///
    /// # Errors
    /// Only a notification is ever refused, and then nothing has changed: [`Refusal::Gone`] after the answer or the cancellation of its
    /// request, [`Refusal::NotWanted`] for progress nobody asked for and for a method that a handler may not send
    /// ([`Cx::notify`](crate::Cx::notify) lists them; the rule holds without a router too),
    /// [`Refusal::NotIncreasing`], [`Refusal::Unencodable`], [`Refusal::Full`] for a custom one beyond
    /// [`max_unsent`](crate::limits::ServerLimits::max_unsent), [`Refusal::Closed`] after the end.
    pub fn apply(&mut self, now: Instant, input: ServerInput) -> Result<Applied, Refused<ServerInput>> {
        self.now = self.now.max(now);
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
        Ok(Applied::Done)
    }

    /// Something happened on an exchange. Cannot fail: what the peer does wrong comes out as answers, aborts and diagnostics.
    pub fn handle_event(&mut self, now: Instant, exchange: ExchangeId, fact: ExchangeEvent) {
        self.done(now, Input::Event(exchange, fact));
    }

    /// Answers a request, or asks its client. Does nothing if the request was cancelled or answered, or belongs to another engine.
    pub fn respond(&mut self, now: Instant, answer: Answer) {
        self.done(now, Input::Command(ServerCommand::Respond(answer)));
    }

    /// Sends a notification on a request.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn notify(&mut self, now: Instant, to: RequestKey, note: Note) -> Result<(), Refused<Note>> {
        self.now = self.now.max(now);
        self.on_note(to, note)
    }

    /// Tells every client that wants to know: those that listen, and those of an older revision that it has declared to. It never fails and
    /// never waits; changes that a client has not been told of become one. Does nothing where
    /// [`ServerConfig::capabilities`] do not declare it.
    pub fn publish(&mut self, now: Instant, change: Change) {
        self.done(now, Input::Command(ServerCommand::Publish(change)));
    }

    /// Decides about an HTTP request or a connection that was shown as [`Event::Admit`]. Does nothing if it is gone.
    pub fn admit(&mut self, now: Instant, to: AdmitToken, admission: Admission) {
        self.done(now, Input::Command(ServerCommand::Admit(to.key(), admission)));
    }

    /// Ends the server: new requests are refused (`-32603`), running ones may end within `grace`, then they are cancelled and answered
    /// `-32603`; then every exchange ends. [`Event::Terminated`] is the last output. A second call can only shorten the grace.
    pub fn shutdown(&mut self, now: Instant, grace: Duration) {
        self.done(now, Input::Command(ServerCommand::Shutdown(grace)));
    }

    /// Fires what is due, in the order of the deadlines. Early and spurious calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.done(now, Input::Tick);
    }

    /// The next output, `None` when there is none for now.
    pub fn poll_output(&mut self) -> Option<Output> {
        let output = self.queue.pop()?;
        if let Output::Send(x, outgoing) = &output
            && let Some(exchange) = self.exchanges.get_mut(x)
        {
            let size = size(outgoing);
            exchange.load.queued = exchange.load.queued.saturating_sub(size);
            exchange.load.handed = exchange.load.handed.saturating_add(size);
        }
        Some(output)
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next().map(|(at, _)| at)
    }

    /// How many requests are neither answered nor cancelled.
    pub fn running(&self) -> usize {
        self.requests.len()
    }

    /// How many sessions of clients of the older revisions are open over HTTP: at most
    /// [`max_sessions`](crate::limits::ServerLimits::max_sessions). None without the feature `http`.
    pub fn sessions(&self) -> usize {
        #[cfg(feature = "http")]
        let sessions = self.web.sessions();
        #[cfg(not(feature = "http"))]
        let sessions = 0;
        sessions
    }

    /// How many streams of clients of the older revisions there are over HTTP: one for each POST whose requests run, one for each that is
    /// kept for its client to come back for, and those that belong to a session and to no request. Subscriptions of 2026-07-28 are requests
    /// and not counted. None without the feature `http`.
    pub fn streams(&self) -> usize {
        #[cfg(feature = "http")]
        let streams = self.web.streams();
        #[cfg(not(feature = "http"))]
        let streams = 0;
        streams
    }

    /// Whether [`Event::Terminated`] was emitted.
    pub fn is_terminated(&self) -> bool {
        self.life == Life::Terminated
    }

    /// The configuration.
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
            ExchangeEvent::From(peer) => self.web.sender = Some((x, peer)),
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
                self.web.unread.remove(&x);
                self.drop_exchange(x);
            }
        }
    }

    fn on_item(&mut self, x: ExchangeId, item: Inbound) {
        match self.exchanges.get(&x).map(|exchange| &exchange.binding) {
            Some(Binding::Duplex(_)) => self.duplex_item(x, item),
            #[cfg(feature = "http")]
            Some(Binding::Http(_)) => self.http_item(x, item),
            None => match item {
                #[cfg(feature = "http")]
                Inbound::Request(head) => self.open_http(x, head),
                Inbound::End => {
                    #[cfg(feature = "http")]
                    self.web.unread.remove(&x);
                }
                #[cfg(feature = "http")]
                _ if self.web.unread.contains(&x) => {}
                #[cfg(feature = "http")]
                Inbound::Reject(defect) => self.http_reject(x, &defect),
                // What follows an exchange that is over: its reader was not told yet.
                Inbound::Body(_) => {}
                _ => self.diagnose(DiagnosticKind::UnknownExchange, "an item of no open exchange"),
            },
        }
    }

    /// Enters a new exchange, if there is room.
    fn enter(&mut self, x: ExchangeId, peer: Peer, binding: Binding) -> bool {
        #[cfg(feature = "http")]
        if self.exchanges.len() >= self.shared.config.limits.server.max_exchanges {
            self.let_go_of_untold();
        }
        let client = Client::of(x, &peer, &self.shared.config);
        if let Err(full) = self.check_share(&client, Bound::Exchanges, 1) {
            let why = match full {
                Full::All => "",
                Full::Share => "the client has its share",
            };
            self.diagnose(DiagnosticKind::TooManyExchanges, why);
            return false;
        }
        let client = self.shares.take(&client, Bound::Exchanges, 1);
        let (running, listens) = (BTreeSet::new(), BTreeSet::new());
        self.exchanges.insert(x, Exchange { peer, client, binding, running, listens, load: Load::default() });
        true
    }

    /// An exchange was cut or ended: its requests are cancelled, and nothing more is said of it.
    fn drop_exchange(&mut self, x: ExchangeId) {
        let Some(exchange) = self.exchanges.get(&x) else { return };
        let running: Vec<RequestKey> = exchange.running.iter().copied().collect();
        let listens: Vec<RequestKey> = exchange.listens.iter().copied().collect();
        for key in running {
            self.cancel(key, false);
        }
        for key in listens {
            self.forget_listen(key);
        }
        #[cfg(feature = "http")]
        self.leave_http(x);
        self.leave_duplex(x);
        self.watchers.remove(&x);
        if let Some(exchange) = self.exchanges.remove(&x) {
            let said = exchange.binding.duplex().map_or(0, |duplex| duplex.talk.weight());
            self.shares.give_back(exchange.client, Bound::ClientData, said);
            self.shares.give_back(exchange.client, Bound::Exchanges, 1);
        }
        self.timers.set(Timer::Handshake(x), None);
        self.timers.set(Timer::Stall(x), None);
        self.timers.set(Timer::End(x), None);
        self.end_if_drained();
    }

    fn abort(&mut self, x: ExchangeId) {
        self.queue.push(Output::Abort(x));
        self.drop_exchange(x);
    }

    fn on_unsent(&mut self, x: ExchangeId, unsent: usize) {
        let Some(exchange) = self.exchanges.get_mut(&x) else { return };
        let limits = &self.shared.config.limits.server;
        let load = &mut exchange.load;
        let written = unsent < load.unsent.saturating_add(load.handed);
        (load.unsent, load.handed, load.told) = (unsent, 0, true);
        if load.total() <= limits.max_unsent {
            load.excess = 0;
        }
        if unsent == 0 {
            self.timers.set(Timer::Stall(x), None);
        } else if written || self.timers.get(Timer::Stall(x)).is_none() {
            self.timers.set(Timer::Stall(x), Some(self.now + limits.write_stall));
        }
        #[cfg(feature = "http")]
        let place = self.place_on(x);
        #[cfg(not(feature = "http"))]
        let place = Place::Exchange(x);
        self.send_held(place);
        self.tell_changes(x);
        #[cfg(feature = "http")]
        if unsent == 0 && self.exchanges.get(&x).is_some_and(|exchange| exchange.load.queued == 0) {
            self.stream_is_written(x);
        }
    }

    fn on_shutdown(&mut self, grace: Duration) {
        if self.is_terminated() {
            return;
        }
        let end = self.now + grace;
        if self.life == Life::Serving || self.timers.get(Timer::Grace).is_some_and(|armed| armed > end) {
            // Nothing else would end these. All of them end before the server may.
            self.end_listens();
            #[cfg(feature = "http")]
            self.end_own_streams();
            self.life = Life::Draining;
            self.timers.set(Timer::Grace, Some(end));
        }
        if grace.is_zero() {
            return self.on_grace();
        }
        self.end_if_drained();
    }

    /// The time of a shutdown is over.
    fn on_grace(&mut self) {
        self.end_running();
        self.terminate();
    }

    /// When a timer is due that arms itself anew whenever it fires: never at once, or a tick would have no end.
    #[cfg(feature = "http")]
    fn again(&self, after: Duration) -> Instant {
        self.now + after.max(Duration::from_millis(1))
    }

    fn on_tick(&mut self) {
        while let Some(timer) = self.timers.pop_due(self.now) {
            match timer {
                Timer::Handshake(x) => {
                    self.diagnose(DiagnosticKind::HandshakeTimeout, "no request came");
                    self.abort(x);
                }
                Timer::Stall(x) => {
                    self.diagnose(DiagnosticKind::WriteStalled, "no byte was accepted");
                    self.abort(x);
                }
                Timer::End(x) => self.end_duplex(x),
                Timer::Handler(key) => self.handler_deadline(key),
                Timer::Ask(key) => self.ask_timeout(key),
                #[cfg(feature = "http")]
                Timer::KeepAlive(x) => self.on_keep_alive(x),
                Timer::Admit(x) => self.on_admit_timeout(x),
                #[cfg(feature = "http")]
                Timer::Keep(stream) => self.on_keep(stream),
                #[cfg(feature = "http")]
                Timer::Sweep => self.on_sweep(),
                Timer::Grace => self.on_grace(),
            }
        }
    }

    /// Ends if it is to end, nothing runs any more, and no client has yet to come for an answer.
    fn end_if_drained(&mut self) {
        if self.life != Life::Draining || !self.requests.is_empty() {
            return;
        }
        // Last, since it looks at all streams.
        #[cfg(feature = "http")]
        if self.is_awaited() {
            return;
        }
        self.terminate();
    }

    /// The end: every exchange is told, and nothing follows.
    fn terminate(&mut self) {
        if core::mem::replace(&mut self.life, Life::Terminated) == Life::Terminated {
            return;
        }
        let open: Vec<ExchangeId> = self.exchanges.keys().copied().collect();
        for x in open {
            match self.exchanges.get(&x).map(|exchange| &exchange.binding) {
                Some(Binding::Duplex(_)) => self.queue.push(Output::Send(x, Outbound::End)),
                #[cfg(feature = "http")]
                Some(Binding::Http(_)) => self.end_http(x),
                None => {}
            }
        }
        self.exchanges.clear();
        self.admitting.clear();
        self.listens.clear();
        self.watchers.clear();
        #[cfg(feature = "http")]
        self.clear_web();
        self.shares = Shares::default();
        self.timers.clear();
        self.queue.terminate();
    }

    fn send(&mut self, x: ExchangeId, outgoing: Outbound) {
        #[cfg(feature = "http")]
        let outgoing = self.with_cors(x, outgoing);
        let Some(exchange) = self.exchanges.get_mut(&x) else { return };
        exchange.load.queued += size(&outgoing);
        self.queue.push(Output::Send(x, outgoing));
    }

    /// Says something that no handler asked for. A client that keeps provoking such answers and reads none is cut off.
    fn send_own(&mut self, x: ExchangeId, outgoing: Outbound) {
        let max = self.shared.config.limits.server.max_unsent;
        let Some(exchange) = self.exchanges.get_mut(&x) else { return };
        if exchange.load.total() > max {
            exchange.load.excess = exchange.load.excess.saturating_add(size(&outgoing));
        }
        if exchange.load.excess > max {
            self.diagnose(DiagnosticKind::WriteStalled, "the client does not read its answers");
            self.abort(x);
        } else {
            self.send(x, outgoing);
        }
    }

    fn diagnose(&mut self, kind: DiagnosticKind, detail: &str) {
        self.queue.diagnostic(kind, detail);
    }
}

impl Refusal {
    fn of(self, note: Note) -> Refused<Note> {
        Refused { value: note, why: self }
    }
}
