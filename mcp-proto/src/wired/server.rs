//! A server engine and its connections (seam A): [`SharedServer`] for servers with many tasks, [`WiredServer`] for a loop in one
//! thread. No socket, no method, no status may be known here.

use super::counts::ConnectionCounts;
use super::deadlines::Deadlines;
use super::outbox::Outbox;
use super::room::MemoryBudget;
use super::tally::Counters;
use super::{Connection, ConnectionOutput};
use crate::droppable::Weigh;
use crate::error::{Diagnostic, Refused};
use crate::exchange::*;
use crate::frame::Kind;
use crate::input::*;
use crate::server::{Event, Output, Server, ServerConfig};
use crate::stats::{ServerStats, Traffic};
use crate::time::{Instant, earliest};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

/// A [`Server`] and the mailboxes of its connections, for a server with many tasks that share it behind a
/// lock. Each task owns its [`Connection`], and parses and frames outside the lock. The outputs of the server
/// enter the mailbox of their connection before the lock is released, so that two tasks cannot reorder a
/// stream.
///
/// A task repeats these steps until a round has neither events nor mail:
///
/// 1. Report I/O to the connection ([`Connection::handle_io`]).
/// 2. Pass what [`Connection::take_facts`] returns to [`facts`](Self::facts).
/// 3. Deliver what [`poll_mail`](Self::poll_mail) returns to the connection.
/// 4. Carry out the outputs of the connection ([`Connection::poll_output`]).
///
/// Before it ends, a task reports [`IoEvent::Closed`] to its connection, passes on the events, and calls
/// [`leave`](Self::leave).
#[derive(Debug)]
pub struct SharedServer {
    server: Server,
    config: Arc<ServerConfig>,
    room: MemoryBudget,
    counts: ConnectionCounts,
    connections: BTreeMap<u64, Mailbox>,
    woken: VecDeque<u64>,
    events: Outbox<Event>,
    tally: Counters,
    next: u64,
    closing: bool,
    now: Instant,
}

/// What the server says to a connection.
#[derive(Clone, PartialEq, Debug)]
pub enum Mail {
    /// For [`Connection::send`].
    Send(ExchangeId, Outbound),
    /// For [`Connection::abort`].
    Abort(ExchangeId),
}

impl Mail {
    /// Tells the connection.
    pub fn deliver(self, now: Instant, connection: &mut Connection) {
        match self {
            Self::Send(exchange, outgoing) => connection.send(now, exchange, outgoing),
            Self::Abort(exchange) => connection.abort(now, exchange),
        }
    }
}

#[derive(Debug, Default)]
struct Mailbox {
    mail: VecDeque<Mail>,
    /// Whether the connection is named in `woken`.
    woken: bool,
}

impl SharedServer {
    /// A server without connections. `seed`: 32 bytes from the operating system's random source, never used for another engine.
    pub fn new(config: Arc<ServerConfig>, seed: [u8; 32], now: Instant) -> Self {
        Self {
            server: Server::new(config.clone(), seed, now),
            room: MemoryBudget::new(config.limits.server.max_held),
            counts: ConnectionCounts::new(config.clone()),
            connections: BTreeMap::new(),
            woken: VecDeque::new(),
            events: events(&config),
            config,
            tally: Counters::default(),
            next: 0,
            closing: false,
            now,
        }
    }

    /// A connection for an accepted channel; `None` if [`ServerLimits::max_exchanges`](crate::limits::ServerLimits::max_exchanges) connections are
    /// there, or the share of them that one address may have, or the server shuts down: write what [`refusal`](super::refusal) says and close the channel.
    pub fn join(&mut self, now: Instant, kind: Kind, peer: Peer) -> Option<Connection> {
        self.advance(now);
        if self.closing || !self.counts.open(self.next + 1, &peer) {
            return None;
        }
        self.next += 1;
        self.connections.insert(self.next, Mailbox::default());
        Some(connection(&self.config, &self.room, self.next, kind, peer, self.now))
    }

    /// Hands facts of a connection to the server. Call it with what [`Connection::take_facts`] gave.
    pub fn facts(&mut self, now: Instant, facts: Vec<(ExchangeId, ExchangeEvent)>, diagnostics: Vec<Diagnostic>) {
        self.advance(now);
        for diagnostic in diagnostics {
            self.tally.diagnostic(diagnostic.kind);
            // The end is the last that the application is told.
            if !self.server.is_terminated() {
                self.events.push(Event::Diagnostic(diagnostic));
            }
        }
        for (exchange, fact) in facts {
            let fact = match fact {
                // What waits in the mailbox was said before this was told, and is not written.
                ExchangeEvent::Unsent(unsent) => ExchangeEvent::Unsent(unsent.saturating_add(self.waiting(exchange))),
                fact => fact,
            };
            self.server.handle_event(self.now, exchange, fact);
            self.deliver();
        }
    }

    /// The connection is closed; its mailbox goes, and mail for it is dropped from now on.
    pub fn leave(&mut self, now: Instant, connection: u64) {
        self.advance(now);
        if self.connections.remove(&connection).is_some() {
            self.counts.close(connection);
        }
    }

    /// The next thing for this connection.
    pub fn poll_mail(&mut self, connection: u64) -> Option<Mail> {
        self.connections.get_mut(&connection)?.mail.pop_front()
    }

    /// A connection whose mailbox was empty and is not any more: wake its task. Each is named once.
    pub fn poll_woken(&mut self) -> Option<u64> {
        loop {
            let connection = self.woken.pop_front()?;
            if let Some(mailbox) = self.connections.get_mut(&connection) {
                mailbox.woken = false;
                return Some(connection);
            }
        }
    }

    /// The next event for the application.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// Answers a request. Nothing happens if it was cancelled.
    pub fn respond(&mut self, now: Instant, answer: Answer) {
        self.advance(now);
        self.server.respond(self.now, answer);
        self.deliver();
    }

    /// Sends a notification on a request, before its answer.
    ///
    /// # Errors
    /// [`Refused`] if the request is no longer running, did not ask for it, or its exchange takes no more; nothing has changed.
    pub fn notify(&mut self, now: Instant, to: RequestKey, note: Note) -> Result<(), Refused<Note>> {
        self.advance(now);
        let noted = self.server.notify(self.now, to, note);
        self.deliver();
        noted
    }

    /// Tells every client that wants to know. See [`Server::publish`].
    pub fn publish(&mut self, now: Instant, change: Change) {
        self.advance(now);
        self.server.publish(self.now, change);
        self.deliver();
    }

    /// Ends everything that was admitted as coming from this principal. See [`Server::revoke`].
    pub fn revoke(&mut self, now: Instant, principal: &Principal) {
        self.advance(now);
        self.server.revoke(self.now, principal);
        self.deliver();
    }

    /// Decides about an HTTP request or a connection that was shown as [`Event::Admit`]. Nothing happens if it is gone.
    pub fn admit(&mut self, now: Instant, to: AdmitToken, admission: Admission) {
        self.advance(now);
        self.server.admit(self.now, to, admission);
        self.deliver();
    }

    /// Stops accepting, and ends when what runs has ended or the time is over. After [`Event::Terminated`], close every connection with
    /// [`Connection::close`].
    pub fn shutdown(&mut self, now: Instant, grace: Duration) {
        self.advance(now);
        self.closing = true;
        self.server.shutdown(self.now, grace);
        self.deliver();
    }

    /// Fires the timers of the server that are due; those of the connections are their tasks' business.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        self.server.handle_timeout(self.now);
        self.deliver();
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.server.poll_timeout()
    }

    /// How many requests the application was handed and has not answered.
    pub fn running(&self) -> usize {
        self.server.running()
    }

    /// Adds what went over a connection: what [`Connection::take_traffic`] gave. For [`stats`](Self::stats), and nothing else; a task that never does
    /// it leaves that part zero.
    pub fn count(&mut self, traffic: Traffic) {
        self.tally.traffic += traffic;
    }

    /// What it holds at the moment and what it has done, in numbers.
    pub fn stats(&self) -> ServerStats {
        self.tally.snapshot(&self.server, self.connections.len(), self.events.len(), self.events.lost())
    }

    /// Whether the server has shut down.
    pub fn is_terminated(&self) -> bool {
        self.server.is_terminated()
    }

    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    fn deliver(&mut self) {
        while let Some(output) = self.server.poll_output() {
            match output {
                Output::Send(exchange, outgoing) => self.post(exchange, Mail::Send(exchange, outgoing)),
                Output::Abort(exchange) => self.post(exchange, Mail::Abort(exchange)),
                Output::Event(event) => {
                    self.tally.server(&event);
                    self.events.push(event);
                }
            }
        }
    }

    /// How much of an exchange waits in the mailbox of its connection, at least.
    fn waiting(&self, exchange: ExchangeId) -> usize {
        let mail = self.connections.get(&exchange.connection()).map(|mailbox| mailbox.mail.iter());
        mail.into_iter().flatten().filter(|mail| matches!(mail, Mail::Send(of, _) if *of == exchange)).count()
    }

    fn post(&mut self, exchange: ExchangeId, mail: Mail) {
        let Some(mailbox) = self.connections.get_mut(&exchange.connection()) else { return };
        if mailbox.mail.is_empty() && !core::mem::replace(&mut mailbox.woken, true) {
            self.woken.push_back(exchange.connection());
        }
        mailbox.mail.push_back(mail);
    }
}

/// A [`Server`] and its connections: a server loop for one thread.
///
/// Every call that changes it lets the engine run to the end before it returns, so when [`poll_output`](Self::poll_output) is called
/// changes nothing. It ignores events of a connection that no longer exists.
#[derive(Debug)]
pub struct WiredServer {
    server: Server,
    config: Arc<ServerConfig>,
    room: MemoryBudget,
    counts: ConnectionCounts,
    connections: BTreeMap<ConnectionId, Connection>,
    deadlines: Deadlines,
    /// Channels whose connections may have facts.
    touched: BTreeSet<ConnectionId>,
    actions: Outbox<Action<Event>>,
    tally: Counters,
    next: u64,
    closing: bool,
    /// The last event of the server, held until every channel is closed.
    last: Option<Event>,
    ended: bool,
    now: Instant,
}

impl WiredServer {
    /// A server without connections. `seed`: 32 bytes from the operating system's random source, never used for another engine.
    pub fn new(config: Arc<ServerConfig>, seed: [u8; 32], now: Instant) -> Self {
        Self {
            server: Server::new(config.clone(), seed, now),
            room: MemoryBudget::new(config.limits.server.max_held),
            counts: ConnectionCounts::new(config.clone()),
            connections: BTreeMap::new(),
            deadlines: Deadlines::default(),
            touched: BTreeSet::new(),
            actions: events(&config),
            config,
            tally: Counters::default(),
            next: 0,
            closing: false,
            last: None,
            ended: false,
            now,
        }
    }

    /// Takes one input. Every other method that changes the server, but [`accept`](Self::accept), is a form of this one.
    ///
    /// # Errors
    /// [`Refused`] for a command that the engine refuses; nothing has changed. Facts and ticks are never refused.
    pub fn apply(&mut self, now: Instant, input: WiredServerInput) -> Result<Applied, Refused<WiredServerInput>> {
        self.now = self.now.max(now);
        let applied = match input {
            Input::Event(channel, wire) => {
                self.handle_io(channel, wire);
                Ok(Applied::Done)
            }
            Input::Command(command) => self.command(command),
            Input::Tick => {
                self.tick();
                Ok(Applied::Done)
            }
        };
        self.run();
        applied
    }

    /// A channel was accepted. Its last fact is [`closed`](Self::closed). `None` if
    /// [`ServerLimits::max_exchanges`](crate::limits::ServerLimits::max_exchanges) channels are there, or the share of them that one
    /// address may have, or the server shuts down: write what [`refusal`](super::refusal) says and close it.
    pub fn accept(&mut self, now: Instant, kind: Kind, peer: Peer) -> Option<ConnectionId> {
        self.now = self.now.max(now);
        if self.closing || !self.counts.open(self.next + 1, &peer) {
            return None;
        }
        self.next += 1;
        let id = ConnectionId(self.next);
        self.connections.insert(id, connection(&self.config, &self.room, id.0, kind, peer, self.now));
        self.touched.insert(id);
        self.run();
        Some(id)
    }

    /// The driver read these bytes from the connection.
    pub fn bytes(&mut self, now: Instant, channel: ConnectionId, bytes: Bytes) {
        self.tell(now, Input::Event(channel, IoEvent::Bytes(bytes)));
    }

    /// Its other side will send no more.
    pub fn eof(&mut self, now: Instant, channel: ConnectionId) {
        self.tell(now, Input::Event(channel, IoEvent::Eof));
    }

    /// So many bytes of what was to be written to it are written.
    pub fn written(&mut self, now: Instant, channel: ConnectionId, n: usize) {
        self.tell(now, Input::Event(channel, IoEvent::Written(n)));
    }

    /// The connection is closed. The last event of every connection.
    pub fn closed(&mut self, now: Instant, channel: ConnectionId, why: Closed) {
        self.tell(now, Input::Event(channel, IoEvent::Closed(why)));
    }

    /// Answers a request. Nothing happens if it was cancelled.
    pub fn respond(&mut self, now: Instant, answer: Answer) {
        self.tell(now, Input::Command(ServerCommand::Respond(answer)));
    }

    /// Sends a notification on a request, before its answer.
    ///
    /// # Errors
    /// [`Refused`] if the request is no longer running, did not ask for it, or its exchange takes no more; nothing has changed.
    pub fn notify(&mut self, now: Instant, to: RequestKey, note: Note) -> Result<(), Refused<Note>> {
        match self.apply(now, Input::Command(ServerCommand::Notify(to, note))) {
            Ok(_) => Ok(()),
            Err(Refused { value: Input::Command(ServerCommand::Notify(_, note)), why }) => {
                Err(Refused { value: note, why })
            }
            Err(other) => unreachable!("invariant: what was refused is handed back: {other:?}"),
        }
    }

    /// Tells every client that wants to know. See [`Server::publish`].
    pub fn publish(&mut self, now: Instant, change: Change) {
        self.tell(now, Input::Command(ServerCommand::Publish(change)));
    }

    /// Ends everything that was admitted as coming from this principal. See [`Server::revoke`].
    pub fn revoke(&mut self, now: Instant, principal: &Principal) {
        self.tell(now, Input::Command(ServerCommand::Revoke(principal.clone())));
    }

    /// Decides about an HTTP request or a connection that was shown as [`Event::Admit`]. Nothing happens if it is gone.
    pub fn admit(&mut self, now: Instant, to: AdmitToken, admission: Admission) {
        self.tell(now, Input::Command(ServerCommand::Admit(to.key(), admission)));
    }

    /// Stops accepting, and ends when what runs has ended or the time is over. The last output is [`Event::Terminated`].
    pub fn shutdown(&mut self, now: Instant, grace: Duration) {
        self.tell(now, Input::Command(ServerCommand::Shutdown(grace)));
    }

    /// Fires the timers that are due; early or spurious: nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.tell(now, Input::Tick);
    }

    /// What to do next, in order. Never [`Action::Open`].
    pub fn poll_output(&mut self) -> Option<Action<Event>> {
        self.actions.pop()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.ended { None } else { earliest(self.server.poll_timeout(), self.deadlines.first()) }
    }

    /// Returns whether to read from this connection. False at a limit, and once it is closed.
    pub fn wants_read(&self, channel: ConnectionId) -> bool {
        self.connections.get(&channel).is_some_and(Connection::wants_read)
    }

    /// How many requests the application was handed and has not answered.
    pub fn running(&self) -> usize {
        self.server.running()
    }

    /// What it holds at the moment and what it has done, in numbers.
    pub fn stats(&self) -> ServerStats {
        self.tally.snapshot(&self.server, self.connections.len(), self.actions.len(), self.actions.lost())
    }
}

/// Inputs.
impl WiredServer {
    fn tell(&mut self, now: Instant, input: WiredServerInput) {
        // Facts cannot fail, and the commands that come here do nothing where they have nothing to do.
        let _ = self.apply(now, input);
    }

    fn command(&mut self, command: ServerCommand) -> Result<Applied, Refused<WiredServerInput>> {
        self.closing |= matches!(command, ServerCommand::Shutdown(_));
        self.server.apply(self.now, Input::Command(command)).map_err(|refused| {
            refused.map(|input| match input {
                Input::Command(command) => Input::Command(command),
                Input::Event(..) | Input::Tick => unreachable!("invariant: only commands are refused"),
            })
        })
    }

    fn handle_io(&mut self, id: ConnectionId, wire: IoEvent) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.handle_io(self.now, wire);
            self.touched.insert(id);
        }
    }

    fn tick(&mut self) {
        let engine = self.server.poll_timeout().filter(|at| *at <= self.now);
        while let Some(id) = self.deadlines.due(engine.unwrap_or(self.now)) {
            self.fire(id);
        }
        self.server.handle_timeout(self.now);
        self.run();
        while let Some(id) = self.deadlines.due(self.now) {
            self.fire(id);
        }
    }

    fn fire(&mut self, id: ConnectionId) {
        self.deadlines.set(id, None);
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.handle_timeout(self.now);
            self.touched.insert(id);
        }
        self.run();
    }
}

/// The pump.
impl WiredServer {
    /// Lets the engine and the connections talk until both are silent: what the engine says to one fact is carried out before the next fact.
    fn run(&mut self) {
        loop {
            while let Some(output) = self.server.poll_output() {
                self.carry_out(output);
            }
            let Some(&id) = self.touched.first() else { break };
            match self.connections.get_mut(&id).and_then(Connection::poll_fact) {
                Some((exchange, fact)) => {
                    self.flush(id);
                    if self.last.is_none() {
                        self.server.handle_event(self.now, exchange, fact);
                    }
                }
                None => {
                    self.touched.remove(&id);
                    self.settle(id);
                }
            }
        }
        if self.connections.is_empty()
            && let Some(event) = self.last.take()
        {
            self.ended = true;
            self.actions.push(Action::Event(event));
        }
    }

    fn carry_out(&mut self, output: Output) {
        let now = self.now;
        match output {
            Output::Send(exchange, outgoing) => {
                self.with_connection(exchange, |connection| connection.send(now, exchange, outgoing))
            }
            Output::Abort(exchange) => self.with_connection(exchange, |connection| connection.abort(now, exchange)),
            Output::Event(event @ Event::Terminated) => {
                self.closing = true;
                self.last = Some(event);
                for (id, connection) in &mut self.connections {
                    connection.close(now);
                    self.touched.insert(*id);
                }
            }
            Output::Event(event) => {
                self.tally.server(&event);
                self.actions.push(Action::Event(event));
            }
        }
    }

    fn with_connection(&mut self, exchange: ExchangeId, f: impl FnOnce(&mut Connection)) {
        let id = ConnectionId(exchange.connection());
        if let Some(connection) = self.connections.get_mut(&id) {
            f(connection);
            self.touched.insert(id);
            self.flush(id);
        }
    }

    /// The connection has no more facts: its timer and its end follow.
    fn settle(&mut self, id: ConnectionId) {
        self.flush(id);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        self.tally.traffic += connection.take_traffic();
        let closed = connection.is_closed();
        self.deadlines.set(id, connection.poll_timeout().filter(|_| !closed));
        if closed {
            self.connections.remove(&id);
            self.counts.close(id.0);
        }
    }

    /// Moves what a connection wants into the queue of actions.
    fn flush(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        while let Some(diagnostic) = connection.poll_diagnostic() {
            if self.last.is_none() {
                self.tally.diagnostic(diagnostic.kind);
                self.actions.push(Action::Event(Event::Diagnostic(diagnostic)));
            }
        }
        while let Some(output) = connection.poll_output() {
            self.actions.push(match output {
                ConnectionOutput::Write(bytes) => Action::Write(id, bytes),
                ConnectionOutput::Close(shutdown) => Action::Close(id, shutdown),
            });
        }
    }
}

/// The connection of a channel that is taken in.
fn connection(
    config: &ServerConfig,
    room: &MemoryBudget,
    number: u64,
    kind: Kind,
    mut peer: Peer,
    now: Instant,
) -> Connection {
    peer.connection = Some(number);
    let connection = Connection::server(number, kind, peer, &config.limits.frame, now);
    connection.with_hook(config.on_message.clone()).holding(config.admit).within(room)
}

fn events<T: Weigh>(config: &ServerConfig) -> Outbox<T> {
    Outbox::new(config.limits.server.max_queued_events, config.limits.server.max_queued_event_bytes)
}
