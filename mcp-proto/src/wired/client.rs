//! A client engine over its channels (seam A): connections, the connection pool, and one queue of actions.
//! It opens nothing, reads nothing and waits for nothing itself; no method, header or status may be known here.

use super::deadlines::Deadlines;
use super::outbox::Outbox;
use super::pool::{Job, Pool, Turn, Use};
use super::tally::Counters;
use super::{Connection, ConnectionOutput, Tape};
use crate::call::{Call, Calling, Method};
use crate::client::{Client, ClientConfig, Event, Output, Timer};
use crate::error::{Diagnostic, DiagnosticKind, Refused};
use crate::exchange::*;
use crate::frame::Kind;
use crate::hook::Denied;
use crate::input::*;
use crate::stats::ClientStats;
use crate::time::{Instant, earliest};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

/// A [`Client`], its connections, and its pool of connections: facts about channels in, actions on channels out.
///
/// Every call that changes it lets the engine run to the end before it returns, so when [`poll_output`](Self::poll_output) is called
/// changes nothing. Facts of a channel that is not open any more are ignored.
#[derive(Debug)]
pub struct WiredClient {
    client: Client,
    channels: BTreeMap<ConnectionId, Channel>,
    routes: BTreeMap<ExchangeId, Route>,
    pool: Pool,
    deadlines: Deadlines,
    /// Channels whose connections may have facts.
    touched: BTreeSet<ConnectionId>,
    actions: Outbox<Action<Event>>,
    /// Channels that are gone, to be told after what their end means for calls.
    closed: Vec<(ConnectionId, Closed)>,
    /// The last event of the client, held until every channel is closed.
    last: Option<Event>,
    ended: bool,
    tally: Counters,
    next: u64,
    now: Instant,
    /// Who is shown what goes in and out.
    tape: Option<Box<dyn Tape>>,
}

/// A channel, from the action that opens it to the fact that it is closed.
#[derive(Debug)]
struct Channel {
    connection: Connection,
    /// Of the pool's channels: where it leads.
    origin: Option<Origin>,
    /// Of the pool's channels: what the pool has it as.
    usage: Use,
    /// The request on it, if it is written again should the connection turn out to be dead.
    again: Option<Job>,
    /// The request on it was written before, to a connection that turned out to be dead.
    second: bool,
}

/// Where an exchange is.
#[derive(Debug)]
enum Route {
    On(ConnectionId),
    Waiting(Origin),
}

impl WiredClient {
    /// A client that has said what it wants first: an `Open` for a duplex target. `seed`: 32 bytes from the operating system's random
    /// source, never used for another engine.
    pub fn new(config: Arc<ClientConfig>, seed: [u8; 32], now: Instant) -> Self {
        let limits = &config.limits;
        let pool = Pool::new(&limits.frame);
        let actions = Outbox::new(limits.client.max_queued_events, limits.client.max_queued_event_bytes);
        let mut wired = Self {
            client: Client::new(config, seed, now),
            channels: BTreeMap::new(),
            routes: BTreeMap::new(),
            pool,
            deadlines: Deadlines::default(),
            touched: BTreeSet::new(),
            actions,
            closed: Vec::new(),
            last: None,
            ended: false,
            tally: Counters::default(),
            next: 0,
            now,
            tape: None,
        };
        wired.run();
        wired
    }

    /// Shows everything that goes in and out from here on to `tape`, in place of an earlier one. To miss nothing, call it before
    /// anything else. If the tape fails, it is let go, which is one diagnostic; the client itself goes on.
    pub fn show(&mut self, tape: Box<dyn Tape>) {
        self.tape = Some(tape);
    }

    /// Takes one input. Every other method that changes the client is a form of this one.
    ///
    /// # Errors
    /// [`Refused`] for a command that the engine refuses; nothing has changed. Facts and ticks are never refused.
    pub fn apply(&mut self, now: Instant, input: WiredClientInput) -> Result<Applied, Refused<WiredClientInput>> {
        if let Some(tape) = &mut self.tape {
            tape.input(now, &input);
        }
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
        if let Some(tape) = &mut self.tape {
            tape.applied(&applied);
            let failed = tape.failed();
            self.stop_tape(failed);
        }
        applied
    }

    /// Makes a call. Its events carry the id of the [`Calling`].
    ///
    /// # Errors
    /// [`Refused`] if the client is closed, a limit is reached, or the call cannot be written.
    pub fn call<M: Method>(&mut self, now: Instant, call: Call<M>) -> Result<Calling<M>, Refused<Call<M>>> {
        match self.apply(now, Input::Command(ClientCommand::Call(call.into_raw()))) {
            Ok(Applied::Call(id)) => Ok(Calling::new(id)),
            Err(Refused { value: Input::Command(ClientCommand::Call(raw)), why }) => {
                Err(Refused { value: Call::from_raw(raw), why })
            }
            other => unreachable!("invariant: a call has an id or is handed back: {other:?}"),
        }
    }

    /// Cancels a call; nothing happens if it has ended.
    pub fn cancel(&mut self, now: Instant, call: CallId, reason: Option<&str>) {
        self.tell(now, Input::Command(ClientCommand::Cancel(call, reason.map(Into::into))));
    }

    /// Answers a question of the server; nothing happens if it was withdrawn.
    pub fn answer(&mut self, now: Instant, to: InputToken, answer: InputAnswer) {
        self.tell(now, Input::Command(ClientCommand::Answer(to.key(), answer)));
    }

    /// Answers a challenge of the server; nothing happens if it was answered, or after the end.
    pub fn authorize(&mut self, now: Instant, to: AuthToken, with: Authorization) {
        self.tell(now, Input::Command(ClientCommand::Authorize(to.key(), with)));
    }

    /// Ends the client in order. Its last output is [`Event::Terminated`]. A second time: nothing.
    pub fn close(&mut self, now: Instant) {
        self.tell(now, Input::Command(ClientCommand::Close));
    }

    /// The channel is open.
    pub fn opened(&mut self, now: Instant, channel: ConnectionId, peer: Peer) {
        self.tell(now, Input::Event(channel, IoEvent::Opened(peer)));
    }

    /// These bytes were read from it.
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

    /// It is gone, or was never opened. The last fact of every channel.
    pub fn closed(&mut self, now: Instant, channel: ConnectionId, why: Closed) {
        self.tell(now, Input::Event(channel, IoEvent::Closed(why)));
    }

    /// Fires the timers that are due, in the order of their deadlines; early or spurious: nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.tell(now, Input::Tick);
    }

    /// What to do next, in order.
    pub fn poll_output(&mut self) -> Option<Action<Event>> {
        let action = self.actions.pop();
        if let (Some(action), Some(tape)) = (&action, &mut self.tape) {
            tape.output(action);
        }
        action
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.ended { None } else { earliest(self.client.poll_timeout(), self.deadlines.first()) }
    }

    /// Which timer that is.
    pub fn timeout_reason(&self) -> Option<Timer> {
        match (self.client.poll_timeout(), self.deadlines.first()) {
            _ if self.ended => None,
            (engine, Some(connection)) if engine.is_none_or(|engine| connection <= engine) => Some(Timer::Connection),
            _ => self.client.timeout_reason(),
        }
    }

    /// Whether to read on from this channel. False before it is open, at a bound, and once it is gone.
    pub fn wants_read(&self, channel: ConnectionId) -> bool {
        self.channels.get(&channel).is_some_and(|channel| channel.connection.wants_read())
    }

    /// What it holds at the moment and what it has done, in numbers. Costs as much as it has channels, which are few.
    pub fn stats(&self) -> ClientStats {
        let (lost_notifications, lost_diagnostics) = self.actions.lost();
        ClientStats {
            calls: self.client.running(),
            calls_made: self.tally.asked,
            questions: self.client.questions(),
            waiting: self.pool.waiting(),
            channels: self.channels.len(),
            traffic: self.tally.traffic,
            unsent: self.channels.values().map(|channel| channel.connection.unsent()).sum(),
            queued: self.actions.len(),
            lost_notifications,
            lost_diagnostics,
            diagnostics: self.tally.diagnostics.clone(),
            restarts: self.tally.restarts,
            reconnects: self.tally.reconnects,
            pings_missed: self.tally.pings_missed,
            detached_threads: 0,
        }
    }

    /// The engine, to look at.
    pub fn client(&self) -> &Client {
        &self.client
    }
}

/// Inputs.
impl WiredClient {
    fn tell(&mut self, now: Instant, input: WiredClientInput) {
        // Facts cannot fail, and the commands that come here do nothing where they have nothing to do.
        let _ = self.apply(now, input);
    }

    /// Lets a tape go that keeps nothing more.
    fn stop_tape(&mut self, failed: Option<String>) {
        let Some(why) = failed else { return };
        self.tape = None;
        if !self.ended {
            let diagnostic = Diagnostic::new(DiagnosticKind::RecordingEnded, why);
            self.tally.diagnostic(diagnostic.kind);
            self.actions.push(Action::Event(Event::Diagnostic(diagnostic)));
        }
    }

    fn command(&mut self, command: ClientCommand) -> Result<Applied, Refused<WiredClientInput>> {
        let applied = self.client.apply(self.now, Input::Command(command));
        self.tally.asked += u64::from(matches!(applied, Ok(Applied::Call(_))));
        applied.map_err(|refused| {
            refused.map(|input| match input {
                Input::Command(command) => Input::Command(command),
                Input::Event(..) | Input::Tick => unreachable!("invariant: only commands are refused"),
            })
        })
    }

    fn handle_io(&mut self, id: ConnectionId, wire: IoEvent) {
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.connection.handle_io(self.now, wire);
            self.touched.insert(id);
        }
    }

    fn tick(&mut self) {
        let engine = self.client.poll_timeout().filter(|at| *at <= self.now);
        while let Some(id) = self.deadlines.due(engine.unwrap_or(self.now)) {
            self.fire(id);
        }
        self.client.handle_timeout(self.now);
        self.run();
        while let Some(id) = self.deadlines.due(self.now) {
            self.fire(id);
        }
    }

    fn fire(&mut self, id: ConnectionId) {
        self.deadlines.set(id, None);
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.connection.handle_timeout(self.now);
            self.touched.insert(id);
        }
        self.run();
    }
}

/// The pump.
impl WiredClient {
    /// Lets the engine and the connections talk until both are silent: what the engine says to one fact is carried out before the next fact.
    fn run(&mut self) {
        loop {
            while let Some(output) = self.client.poll_output() {
                self.carry_out(output);
            }
            for (channel, why) in self.closed.drain(..) {
                self.actions.push(Action::Event(Event::ChannelClosed { channel, why }));
            }
            let Some(&id) = self.touched.first() else { break };
            match self.channels.get_mut(&id).and_then(|channel| channel.connection.poll_fact()) {
                Some((exchange, fact)) => self.handle_event(id, exchange, fact),
                None => {
                    self.touched.remove(&id);
                    self.settle(id);
                }
            }
        }
        if self.channels.is_empty()
            && let Some(event) = self.last.take()
        {
            self.ended = true;
            self.actions.push(Action::Event(event));
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Start(exchange, Start::Duplex(endpoint)) => self.start_duplex(exchange, endpoint),
            Output::Start(exchange, Start::Http { origin, head, body, repeatable, urgent }) => {
                let job = Job { exchange, origin, head, body, repeatable, urgent, again: false };
                self.submit(job);
            }
            Output::Send(exchange, outgoing) => {
                let now = self.now;
                self.with_connection(exchange, |connection| connection.send(now, exchange, outgoing));
            }
            Output::Abort(exchange) => {
                let now = self.now;
                self.with_connection(exchange, |connection| connection.abort(now, exchange));
                if let Some(Route::Waiting(origin)) = self.routes.remove(&exchange) {
                    self.pool.cancel(&origin, exchange);
                }
            }
            Output::Event(event @ Event::Terminated(_)) => self.terminate(event),
            Output::Event(event) => {
                self.tally.client(&event);
                self.actions.push(Action::Event(event));
            }
        }
    }

    fn with_connection(&mut self, exchange: ExchangeId, f: impl FnOnce(&mut Connection)) {
        if let Some(&Route::On(id)) = self.routes.get(&exchange)
            && let Some(channel) = self.channels.get_mut(&id)
        {
            f(&mut channel.connection);
            self.touched.insert(id);
            self.flush(id);
        }
    }

    fn handle_event(&mut self, id: ConnectionId, exchange: ExchangeId, fact: ExchangeEvent) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        let failed = matches!(fact, ExchangeEvent::Failed { .. });
        // What was written to a dead connection may have been read there.
        let fact = match fact {
            ExchangeEvent::Failed { why, .. } if channel.second => ExchangeEvent::Failed { sent: Sent::Maybe, why },
            fact => fact,
        };
        let mut again = None;
        if failed || channel.origin.is_some() && fact == ExchangeEvent::Inbound(Inbound::End) {
            self.routes.remove(&exchange);
            let dead = failed && self.last.is_none() && !channel.connection.is_answering();
            again = channel.again.take_if(|job| job.exchange == exchange).filter(|_| dead);
        }
        // What the engine starts in answer to the end of a response may use its connection.
        self.settle(id);
        match again {
            Some(job) => {
                self.client.handle_event(self.now, exchange, ExchangeEvent::Repeated);
                self.submit(Job { again: true, ..job });
            }
            None if self.last.is_none() => self.client.handle_event(self.now, exchange, fact),
            None => {}
        }
    }

    /// Its outputs leave, and its place in the pool, its timer and its end follow.
    fn settle(&mut self, id: ConnectionId) {
        self.flush(id);
        let Some(channel) = self.channels.get_mut(&id) else { return };
        self.tally.traffic += channel.connection.take_traffic();
        let connection = &channel.connection;
        let closed = connection.is_closed();
        self.deadlines.set(id, connection.poll_timeout().filter(|_| !closed));
        let usage = match connection {
            _ if closed => Use::Closed,
            connection if connection.is_ending() => Use::Ending,
            connection if connection.is_idle() => Use::Idle,
            connection if connection.is_streaming() => Use::Stream,
            _ => Use::Busy,
        };
        let before = core::mem::replace(&mut channel.usage, usage);
        if usage == before {
            return;
        }
        let origin = channel.origin.clone();
        if let Some(why) = channel.connection.closed_by().filter(|_| closed).cloned() {
            self.channels.remove(&id);
            self.closed.push((id, why));
        }
        if let Some(origin) = origin {
            let turn = self.pool.changed(&origin, id, before, usage);
            self.take_turn(turn);
        }
    }

    /// Moves what a connection wants into the queue of actions.
    fn flush(&mut self, id: ConnectionId) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        // Known to the engine before a driver can have written any of it: what the engine ends until then was not sent.
        if channel.origin.is_some()
            && channel.connection.has_first_write()
            && let Some(exchange) = channel.connection.exchange()
        {
            self.client.handle_event(self.now, exchange, ExchangeEvent::Opened(Peer::default()));
        }
        while let Some(diagnostic) = channel.connection.poll_diagnostic() {
            if self.last.is_none() {
                self.tally.diagnostic(diagnostic.kind);
                self.actions.push(Action::Event(Event::Diagnostic(diagnostic)));
            }
        }
        while let Some(output) = channel.connection.poll_output() {
            match output {
                ConnectionOutput::Write(bytes) => self.actions.push(Action::Write(id, bytes)),
                ConnectionOutput::Close(step) => {
                    self.actions.push(Action::Close(id, step));
                    self.actions.push(Action::Event(Event::ChannelClosing { channel: id, step }));
                }
            }
        }
    }

    fn terminate(&mut self, event: Event) {
        self.last = Some(event);
        self.pool.clear();
        self.routes.clear();
        for (id, channel) in &mut self.channels {
            channel.connection.close(self.now);
            self.touched.insert(*id);
        }
    }
}

/// Channels and the requests on them.
impl WiredClient {
    fn start_duplex(&mut self, exchange: ExchangeId, endpoint: Endpoint) {
        let program = matches!(endpoint, Endpoint::Program(_));
        self.open(exchange, endpoint, Kind::Lines, program, None);
    }

    fn open(
        &mut self,
        exchange: ExchangeId,
        endpoint: Endpoint,
        kind: Kind,
        program: bool,
        origin: Option<Origin>,
    ) -> ConnectionId {
        self.next += 1;
        let id = ConnectionId(self.next);
        let config = self.client.config();
        let connection = Connection::client(kind, program, &config.limits.frame, self.now);
        let mut connection = connection.with_hook(config.on_message.clone());
        connection.begin(exchange);
        self.channels.insert(id, Channel { connection, origin, usage: Use::Busy, again: None, second: false });
        self.routes.insert(exchange, Route::On(id));
        self.touched.insert(id);
        self.actions.push(Action::Open(id, endpoint));
        id
    }

    fn submit(&mut self, job: Job) {
        if http_client().is_none() {
            return self.refuse(job.exchange, Closed::Unreachable("built without http".into()));
        }
        if let Some(Denied(reason)) = self.denied(&job) {
            return self.refuse(job.exchange, Closed::Denied(reason));
        }
        let exchange = job.exchange;
        self.routes.insert(exchange, Route::Waiting(job.origin.clone()));
        if !job.again {
            self.client.handle_event(self.now, exchange, ExchangeEvent::Waiting);
        }
        let turn = self.pool.submit(job);
        // Another one could have been ended by the engine, which is not carried out yet.
        debug_assert!(
            turn.as_ref().is_none_or(|turn| turn.exchange() == Some(exchange)),
            "invariant: what could have been started was started before"
        );
        self.take_turn(turn);
    }

    fn take_turn(&mut self, turn: Option<Turn>) {
        match turn {
            Some(Turn::Reuse(id, job)) => {
                let Some(channel) = self.channels.get_mut(&id) else { return };
                channel.usage = Use::Busy;
                channel.again = job.repeatable.then(|| job.clone());
                channel.second = false;
                channel.connection.begin(job.exchange);
                self.routes.insert(job.exchange, Route::On(id));
                self.write(job);
            }
            Some(Turn::Open(job)) => {
                let Some(kind) = http_client() else { return };
                let origin = job.origin.clone();
                let id = self.open(job.exchange, Endpoint::Origin(origin.clone()), kind, false, Some(origin));
                if let Some(channel) = self.channels.get_mut(&id) {
                    channel.second = job.again;
                }
                self.write(job);
            }
            Some(Turn::Close(id)) => {
                if let Some(channel) = self.channels.get_mut(&id) {
                    channel.connection.close(self.now);
                    self.touched.insert(id);
                }
            }
            Some(Turn::Surplus(id)) => {
                if let Some(channel) = self.channels.get_mut(&id) {
                    channel.connection.mark_surplus(self.now);
                    self.touched.insert(id);
                }
            }
            None => {}
        }
    }

    fn write(&mut self, job: Job) {
        let Job { exchange, head, body, .. } = job;
        let now = self.now;
        self.with_connection(exchange, |connection| connection.send(now, exchange, Outbound::Request { head, body }));
    }

    /// An exchange that cannot begin.
    fn refuse(&mut self, exchange: ExchangeId, why: Closed) {
        self.client.handle_event(self.now, exchange, ExchangeEvent::Failed { sent: Sent::No, why });
    }

    /// Why the hook refuses a request, before a connection is used for it. It was asked already about one that is repeated, and there is
    /// nothing to ask about where there is no message: a GET, a DELETE.
    fn denied(&self, job: &Job) -> Option<Denied> {
        let hook = self.client.config().on_message.as_ref().filter(|_| !job.again && !job.body.is_empty())?;
        hook.outgoing(Outbound::Message(job.body.clone())).denials.pop().map(|denial| denial.why)
    }
}

const fn http_client() -> Option<Kind> {
    #[cfg(feature = "http")]
    return Some(Kind::HttpClient);
    #[cfg(not(feature = "http"))]
    return None;
}
