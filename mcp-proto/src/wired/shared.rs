//! A server engine that many tasks share: the engine, the mailboxes of the connections, and the end
//! of both. No socket, no method and no status.

use super::Connection;
use super::counts::ConnectionCounts;
use super::room::{HandshakeReservation, MemoryBudget};
use super::tally::Counters;
use super::turn::{Mail, Turn, TurnReply};
use crate::error::{Diagnostic, DiagnosticKind, RefusedCommand};
use crate::event_queue::EventQueue;
use crate::exchange::*;
use crate::frame::Kind;
use crate::input::*;
use crate::limits::FrameLimits;
use crate::observer::{Observable, Observer, Observers};
use crate::server::{Event, Output, Server, ServerCommands, ServerConfig};
use crate::stats::{ServerStats, Traffic};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

/// The number of the first connection that is refused. Served connections count from 1.
const FIRST_REFUSED: u64 = 1 << 40;

/// Time that a connection gets beyond the timers of its own closing, before a server that has shut
/// down aborts it. Only a peer that neither reads nor closes makes it necessary.
const MARGIN: Duration = Duration::from_secs(1);

/// Maximum number of refused connections that get a response at a time.
const MAX_REFUSING: usize = 64;

/// A [`Server`] that many tasks share behind a lock. Each task owns its [`Connection`], and parses
/// and frames outside the lock. What the server sends enters the mailbox of its connection before
/// the lock is released, so that two tasks cannot reorder a stream.
///
/// A turn of a connection has three steps. A task repeats them until both the turn and the reply
/// are empty, then executes the outputs of the connection ([`Connection::poll_output`]), and sleeps
/// until something happens to the connection, its timer is due, or [`poll_woken`](Self::poll_woken)
/// returns its number:
///
/// ```
/// # use mcp_proto::Instant;
/// # use mcp_proto::wired::{Connection, SharedServer};
/// # use std::sync::Mutex;
/// fn turn(now: Instant, connection: &mut Connection, server: &Mutex<SharedServer>) {
///     loop {
///         let turn = connection.take_turn(); // parses
///         let is_empty = turn.is_empty();
///         let reply = server.lock().unwrap().exchange(now, turn); // briefly
///         if is_empty && reply.is_empty() {
///             return;
///         }
///         connection.apply(now, reply); // frames
///     }
/// }
/// ```
///
/// Before it ends, a task reports [`IoEvent::Closed`] to its connection and takes a last turn,
/// after which the server forgets the connection.
#[derive(Debug)]
pub struct SharedServer {
    server: Server,
    config: Arc<ServerConfig>,
    /// The limits of the configuration, which all connections share.
    frame_limits: Arc<FrameLimits>,
    room: MemoryBudget,
    counts: ConnectionCounts,
    connections: BTreeMap<u64, ConnectionMail>,
    woken: VecDeque<u64>,
    events: EventQueue<Event>,
    tally: Counters,
    next: u64,
    /// Number of connections that were ever refused, and number of those that are not closed.
    refused: (u64, usize),
    phase: ServerPhase,
    now: Instant,
    observers: Observers<Self>,
}

/// The phase of a server: its shutdown follows the end of the engine.
#[derive(Debug)]
enum ServerPhase {
    /// The engine runs.
    Running,
    /// The engine has terminated. The connections close, and the server aborts them at `abort_at`.
    /// Those in `open` have not yet received the next of the two.
    Closing { open: Vec<u64>, abort_at: Option<Instant> },
    /// All connections are closed.
    Terminated,
}

/// An output of the server. All outputs form one sequence.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it is moved once, from one queue to the next")]
pub(super) enum PostedOutput {
    /// For the connection of this number.
    Mail(u64, Mail),
    /// For the application.
    Event(Event),
}

#[derive(Debug, Default)]
struct ConnectionMail {
    mail: VecDeque<Mail>,
    /// Whether `woken` contains the connection.
    woken: bool,
}

impl SharedServer {
    /// Returns a server without connections. `seed` is 32 bytes from the operating system's random
    /// source, never used for another engine.
    pub fn new(config: Arc<ServerConfig>, seed: [u8; 32], now: Instant) -> Self {
        let mut server = Self::with_posted(config, seed, now);
        // It joins its store before anything happens.
        server.deliver();
        server
    }

    /// The same, for one that takes its outputs by [`poll_posted`](Self::poll_posted).
    pub(super) fn with_posted(config: Arc<ServerConfig>, seed: [u8; 32], now: Instant) -> Self {
        let limits = &config.limits.server;
        Self {
            server: Server::new(config.clone(), seed, now),
            room: MemoryBudget::new(limits.max_held),
            counts: ConnectionCounts::new(config.clone()),
            connections: BTreeMap::new(),
            woken: VecDeque::new(),
            events: EventQueue::new(limits.max_queued_events, limits.max_queued_event_bytes),
            frame_limits: Arc::new(config.limits.frame.clone()),
            config,
            tally: Counters::default(),
            next: 0,
            refused: (0, 0),
            phase: ServerPhase::Running,
            now,
            observers: Observers::default(),
        }
    }

    /// Returns the connection for an accepted socket or pipe pair, which is already open.
    ///
    /// The connection refuses its client if the server has
    /// [`ServerLimits::max_exchanges`](crate::limits::ServerLimits::max_exchanges) connections
    /// already, if one address has its share of them, or if the server shuts down. Over HTTP it
    /// responds with 503 and `Retry-After` before any request, ends its sending side, and closes
    /// soon after. The server serves 64 such connections at a time. It aborts further ones at once,
    /// and also those of newline-delimited messages, where no request could be answered. Drive a
    /// connection that refuses like any other.
    #[track_caller]
    pub fn accept(&mut self, now: Instant, kind: Kind, mut peer: Peer) -> Connection {
        self.begin(now, || SharedServerInput::Command);
        let limits = Arc::clone(&self.frame_limits);
        if self.server.is_shutting_down() || !self.counts.open(self.next + 1, &peer) {
            let responds = self.refused.1 < MAX_REFUSING && matches!(self.phase, ServerPhase::Running);
            let number = FIRST_REFUSED + self.refused.0;
            self.refused = (self.refused.0 + 1, self.refused.1 + 1);
            self.connections.insert(number, ConnectionMail::default());
            return Connection::refusing(number, kind, responds, limits, self.now);
        }
        self.next += 1;
        self.connections.insert(self.next, ConnectionMail::default());
        peer.connection = Some(self.next);
        let connection = Connection::accepted(self.next, kind, peer, limits, self.now);
        let connection = connection.with_hook(self.config.on_message.clone()).with_coding(self.config.compression);
        connection.holding(self.config.admit).within(&self.room)
    }

    /// Reserves the memory of the TLS handshake of an accepted connection, for a driver with TLS of
    /// its own: see [`ServerLimits::max_held`](crate::limits::ServerLimits::max_held). Drop the
    /// reservation when the handshake is complete, or the connection ends. `None` if there is no
    /// room for it: abort the connection. The server emits
    /// [`DiagnosticKind::TooManyExchanges`] then.
    #[track_caller]
    pub fn begin_handshake(&mut self, now: Instant, connection: u64) -> Option<HandshakeReservation> {
        self.begin(now, || SharedServerInput::Command);
        let reserved = self.counts.handshake(connection, &self.room);
        if reserved.is_none() {
            let why = "there is no room for another TLS handshake";
            self.emit(Diagnostic::new(DiagnosticKind::TooManyExchanges, why));
        }
        reserved
    }

    /// Handles the events of a connection, and returns the outputs of the server for it. The second
    /// step of a turn.
    #[track_caller]
    pub fn exchange(&mut self, now: Instant, turn: Turn) -> TurnReply {
        self.begin(now, || SharedServerInput::Turn(ConnectionId(turn.connection)));
        self.count(turn.traffic);
        turn.diagnostics.into_iter().for_each(|diagnostic| self.emit(diagnostic));
        for (exchange, event) in turn.events {
            let event = match event {
                // The mailbox was filled before the driver wrote these bytes, and its content is
                // not written.
                ExchangeEvent::Unsent(unsent) => ExchangeEvent::Unsent(unsent.saturating_add(self.waiting(exchange))),
                event => event,
            };
            self.handle_event(exchange, event);
            self.deliver();
        }
        if turn.is_closed {
            self.remove(turn.connection);
            self.deliver();
        }
        TurnReply(
            self.connections
                .get_mut(&turn.connection)
                .map(|mailbox| core::mem::take(&mut mailbox.mail))
                .unwrap_or_default(),
        )
    }

    /// Returns a connection whose mailbox was empty and no longer is: wake its task. Each
    /// connection is returned once.
    pub fn poll_woken(&mut self) -> Option<u64> {
        while let Some(connection) = self.woken.pop_front() {
            if let Some(mailbox) = self.connections.get_mut(&connection) {
                mailbox.woken = false;
                self.observers.made_output(|| SharedServerTaken::Woken(ConnectionId(connection)));
                return Some(connection);
            }
        }
        self.observers.output(None);
        None
    }

    /// Returns the next event for the application. [`Event::Terminated`] is the last one, after all
    /// connections have closed.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop();
        match event {
            Some(Event::Terminated) => self.observers.made_output(|| SharedServerTaken::Terminated),
            // Connections may wait for their turn.
            Some(_) | None => self.observers.made_output(|| SharedServerTaken::Event),
        }
        event
    }

    /// Counts a diagnostic of the driver, and emits it unless the engine has terminated.
    #[track_caller]
    pub fn report(&mut self, now: Instant, diagnostic: Diagnostic) {
        self.begin(now, || SharedServerInput::Command);
        self.emit(diagnostic);
    }

    /// Returns the requests of running handlers whose client has left and cannot resume. The server
    /// cancels none of them before it needs their room.
    pub fn unheard(&self) -> impl Iterator<Item = RequestKey> {
        self.server.unheard()
    }

    /// Fires the timers of the server that are due. The task of a connection fires the timer of the
    /// connection.
    #[track_caller]
    pub fn handle_timeout(&mut self, now: Instant) {
        self.begin(now, || SharedServerInput::Tick);
        self.fire(now);
        self.deliver();
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.observers.earliest(self.next_timeout())
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Arc<ServerConfig> {
        &self.config
    }

    /// Returns the number of requests that the application received and has not answered.
    pub fn running(&self) -> usize {
        self.server.running()
    }

    /// Returns a snapshot of current sizes and of counters.
    pub fn stats(&self) -> ServerStats {
        self.snapshot(self.events.len(), self.events.lost())
    }

    /// Returns whether the server has shut down and all connections have closed.
    pub fn is_terminated(&self) -> bool {
        matches!(self.phase, ServerPhase::Terminated)
    }

    /// Returns the next timer of the server.
    fn next_timeout(&self) -> Option<Instant> {
        match self.phase {
            ServerPhase::Closing { abort_at, .. } => abort_at,
            ServerPhase::Running => self.server.poll_timeout(),
            ServerPhase::Terminated => None,
        }
    }

    /// Passes an input to the observers, before the server applies it.
    #[track_caller]
    fn begin(&mut self, now: Instant, input: impl FnOnce() -> SharedServerInput) {
        if !self.observers.is_empty() {
            let timer = self.next_timeout();
            self.observers.input(now, timer, &input());
        }
        self.advance(now);
    }

    /// Counts a diagnostic, and emits it unless the engine has terminated.
    fn emit(&mut self, diagnostic: Diagnostic) {
        if let Some(event) = self.diagnostic(diagnostic) {
            self.events.push(event);
        }
    }

    fn deliver(&mut self) {
        while let Some(posted) = self.poll_posted() {
            match posted {
                PostedOutput::Mail(connection, mail) => self.post(connection, mail),
                PostedOutput::Event(event) => self.events.push(event),
            }
        }
    }

    /// Returns a lower bound of the size of an exchange in the mailbox: each part that waits counts
    /// as 1.
    fn waiting(&self, exchange: ExchangeId) -> usize {
        let mail = self.connections.get(&exchange.connection()).map(|mailbox| mailbox.mail.iter());
        mail.into_iter().flatten().filter(|mail| matches!(mail, Mail::Send(of, _) if *of == exchange)).count()
    }

    fn post(&mut self, connection: u64, mail: Mail) {
        let Some(mailbox) = self.connections.get_mut(&connection) else { return };
        if mailbox.mail.is_empty() && !core::mem::replace(&mut mailbox.woken, true) {
            self.woken.push_back(connection);
        }
        mailbox.mail.push_back(mail);
    }
}

/// What a driver gives to a [`SharedServer`], for its observer.
#[derive(Clone, PartialEq, Debug)]
pub enum SharedServerInput {
    /// A turn of this connection: [`SharedServer::exchange`].
    Turn(ConnectionId),
    /// A command of the application, or of the driver.
    Command,
    /// [`SharedServer::handle_timeout`].
    Tick,
}

/// What a driver takes from a [`SharedServer`], for its observer.
#[derive(Clone, PartialEq, Debug)]
pub enum SharedServerTaken {
    /// This connection was woken: [`SharedServer::poll_woken`]. There was none if this is absent.
    Woken(ConnectionId),
    /// An event for the application, or there was none: [`SharedServer::poll_event`].
    Event,
    /// The last event.
    Terminated,
}

impl Observable for SharedServer {
    type Input = SharedServerInput;
    type Returned = ();
    type Output = SharedServerTaken;

    fn observe(&mut self, mut observer: Box<dyn Observer<Self>>) {
        observer.begin(self);
        self.observers.push(observer);
    }
}

impl ServerCommands for SharedServer {
    #[track_caller]
    fn act(&mut self, now: Instant, command: ServerCommand) -> Result<InputResult, RefusedCommand<ServerCommand>> {
        self.begin(now, || SharedServerInput::Command);
        let applied = self.with_engine(now, |server, now| server.act(now, command));
        self.deliver();
        applied
    }
}

/// For a [`WiredServer`](super::WiredServer), which takes each output itself.
impl SharedServer {
    /// Uses the engine. Its outputs wait for [`poll_posted`](Self::poll_posted).
    pub(super) fn with_engine<R>(&mut self, now: Instant, f: impl FnOnce(&mut Server, Instant) -> R) -> R {
        self.advance(now);
        f(&mut self.server, self.now)
    }

    /// Fires the timers that are due. The outputs wait for [`poll_posted`](Self::poll_posted).
    pub(super) fn fire(&mut self, now: Instant) {
        self.with_engine(now, Server::handle_timeout);
        if let ServerPhase::Closing { open, abort_at } = &mut self.phase
            && abort_at.take_if(|at| *at <= self.now).is_some()
        {
            *open = newest_first(&self.connections);
        }
    }

    /// Passes an event of a connection to the engine, unless the engine has terminated.
    pub(super) fn handle_event(&mut self, exchange: ExchangeId, event: ExchangeEvent) {
        if matches!(self.phase, ServerPhase::Running) {
            self.server.handle_event(self.now, exchange, event);
        }
    }

    /// Counts a diagnostic of a connection. Returns its event, unless the engine has terminated.
    pub(super) fn diagnostic(&mut self, diagnostic: Diagnostic) -> Option<Event> {
        self.tally.diagnostic(diagnostic.kind);
        matches!(self.phase, ServerPhase::Running).then_some(Event::Diagnostic(diagnostic))
    }

    /// Forgets a connection that is closed.
    pub(super) fn remove(&mut self, connection: u64) {
        if self.connections.remove(&connection).is_none() {
            return;
        }
        if connection < FIRST_REFUSED {
            self.counts.close(connection);
        } else {
            self.refused.1 -= 1;
        }
    }

    /// Adds the traffic of a connection to the counters.
    pub(super) fn count(&mut self, traffic: Traffic) {
        self.tally.traffic += traffic;
    }

    /// Takes the next output.
    pub(super) fn poll_posted(&mut self) -> Option<PostedOutput> {
        match &mut self.phase {
            ServerPhase::Closing { open, abort_at } => match open.pop() {
                Some(connection) => {
                    let mail = if abort_at.is_some() { Mail::Close } else { Mail::Terminate };
                    Some(PostedOutput::Mail(connection, mail))
                }
                None if self.connections.is_empty() => {
                    self.phase = ServerPhase::Terminated;
                    Some(PostedOutput::Event(Event::Terminated))
                }
                None => None,
            },
            ServerPhase::Running => match self.server.poll_output()? {
                Output::Send(exchange, part) => {
                    Some(PostedOutput::Mail(exchange.connection(), Mail::Send(exchange, part)))
                }
                Output::Abort(exchange) => Some(PostedOutput::Mail(exchange.connection(), Mail::Abort(exchange))),
                Output::Event(Event::Terminated) => {
                    let abort_at = Some(self.now + self.config.limits.frame.linger_timeout + MARGIN);
                    self.phase = ServerPhase::Closing { open: newest_first(&self.connections), abort_at };
                    self.poll_posted()
                }
                Output::Event(event) => {
                    self.tally.server(&event);
                    Some(PostedOutput::Event(event))
                }
            },
            ServerPhase::Terminated => None,
        }
    }

    pub(super) fn snapshot(&self, queued: usize, lost: (u64, u64)) -> ServerStats {
        self.tally.snapshot(&self.server, self.connections.len() - self.refused.1, queued, lost)
    }

    pub(super) fn now(&self) -> Instant {
        self.now
    }

    pub(super) fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }
}

/// Returns the numbers of the connections, the newest first.
fn newest_first(connections: &BTreeMap<u64, ConnectionMail>) -> Vec<u64> {
    connections.keys().rev().copied().collect()
}
