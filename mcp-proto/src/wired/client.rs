//! A client engine over its connections (seam A): the connections, their pools, and one queue of
//! actions. No socket, no wait, no method, header or status.

mod proxied;

use super::connections::Connections;
use super::pool::{ConnectionUse, OriginPools, PoolKey, PoolStep, QueuedRequest};
use super::tally::Counters;
use super::{Connection, ConnectionOutput};
use crate::client::{Client, ClientCommands, ClientConfig, Event, Output, Target, Timer};
use crate::error::{Diagnostic, DiagnosticKind, Refusal, RefusedCommand};
use crate::event_queue::EventQueue;
use crate::exchange::*;
use crate::frame::Kind;
use crate::hook::Denial;
use crate::input::*;
use crate::model::headers;
use crate::observer::{Observable, Observer, Observers};
use crate::seed::Seed;
use crate::short_map::ShortMap;
use crate::stats::ClientStats;
use crate::time::{Instant, earliest};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A [`Client`] with its connections and its pool, for a loop in one thread, or behind a lock.
///
/// Every method that changes the client runs the engine to the end before it returns. The time of a
/// call of [`poll_output`](Self::poll_output) therefore changes nothing. The client ignores events
/// of a connection that no longer exists.
#[derive(Debug)]
pub struct WiredClient {
    client: Client,
    connections: Connections<PooledConnection>,
    routes: ShortMap<ExchangeId, ExchangePlace>,
    pools: OriginPools,
    actions: EventQueue<Action<Event>>,
    /// Closed connections, to be reported after the effects on their calls.
    closed: Vec<(ConnectionId, Closed)>,
    /// The last event of the client, held until every connection is closed.
    last: Option<Event>,
    ended: bool,
    tally: Counters,
    /// Whether the driver has opened the only connection already.
    is_open: bool,
    /// For the keys and masks of WebSockets.
    seed: Seed,
    next: u64,
    now: Instant,
    observers: Observers<Self>,
}

/// The client's data of one connection, from the action that opens the connection to its end.
#[derive(Debug)]
struct PooledConnection {
    /// The key of its pool, for a connection of one.
    key: Option<PoolKey>,
    /// The use as which the pool counts the connection.
    usage: ConnectionUse,
    /// The request, to be sent again if the connection turns out to be dead.
    repeat: Option<QueuedRequest>,
    /// Whether the request was sent before, on a connection that turned out to be dead.
    repeated: bool,
}

/// A timer of a [`WiredClient`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WiredTimer {
    /// A timer of the engine.
    Engine(Timer),
    /// The timer of a connection: a limit for opening, for writing, for a response, or for its end.
    Connection(ConnectionId),
}

/// The place of an exchange.
#[derive(Debug)]
enum ExchangePlace {
    On(ConnectionId),
    Waiting(PoolKey),
}

impl WiredClient {
    /// Returns a client that begins to connect: its first action is [`Action::Open`] for a duplex
    /// endpoint. `seed` is 32 bytes from the operating system's random source, never used for
    /// another engine.
    pub fn new(config: Arc<ClientConfig>, seed: [u8; 32], now: Instant) -> Self {
        Self::start(config, seed, now, false)
    }

    /// Returns a client over one connection that is already open, and the id of that connection.
    /// The connection is a pipe pair, a socket, or one of the two ends in a test. The client emits
    /// no [`Action::Open`] for it and needs no [`IoEvent::Opened`].
    ///
    /// # Errors
    /// [`Refusal::NotReopenable`] if the target of the configuration is not
    /// [`ClientConfig::given`]: such a connection cannot be opened a second time.
    pub fn over(
        config: Arc<ClientConfig>,
        seed: [u8; 32],
        now: Instant,
    ) -> Result<(Self, ConnectionId), RefusedCommand<Arc<ClientConfig>>> {
        if config.target != Target::Duplex(Endpoint::Given) {
            return Err(RefusedCommand { value: config, why: Refusal::NotReopenable });
        }
        let wired = Self::start(config, seed, now, true);
        let id = ConnectionId(wired.next);
        Ok((wired, id))
    }

    fn start(config: Arc<ClientConfig>, seed: [u8; 32], now: Instant, is_open: bool) -> Self {
        let sockets = Seed::new(seed).derive("websocket");
        let limits = &config.limits;
        let pools = OriginPools::new(&limits.frame);
        let actions = EventQueue::new(limits.client.max_queued_events, limits.client.max_queued_event_bytes);
        let mut wired = Self {
            client: Client::new(config, seed, now),
            connections: Connections::new(),
            routes: ShortMap::new(),
            pools,
            actions,
            closed: Vec::new(),
            last: None,
            ended: false,
            tally: Counters::default(),
            is_open,
            seed: Seed::new(sockets),
            next: 0,
            now,
            observers: Observers::default(),
        };
        wired.run();
        wired
    }

    /// Applies one input. The other methods that change the client are forms of this one.
    ///
    /// # Errors
    /// Those of [`act`](ClientCommands::act). Events and ticks are never refused.
    #[track_caller]
    pub fn apply(
        &mut self,
        now: Instant,
        input: WiredClientInput,
    ) -> Result<InputResult, RefusedCommand<WiredClientInput>> {
        match input {
            Input::Event(connection, event) => self.handle_io(now, connection, event),
            Input::Command(command) => {
                return self.act(now, command).map_err(|refused| refused.map(Input::Command));
            }
            Input::Tick => self.handle_timeout(now),
        }
        Ok(InputResult::Done)
    }

    /// Reports an I/O event. The client ignores it if the connection no longer exists.
    #[track_caller]
    pub fn handle_io(&mut self, now: Instant, connection: ConnectionId, event: IoEvent) {
        self.begin(now, || Input::Event(connection, event.clone()));
        self.connections.handle_io(self.now, connection, event);
        self.end(Ok(InputResult::Done));
    }

    /// Fires the timers that are due, in the order of their deadlines. Does nothing if none is.
    #[track_caller]
    pub fn handle_timeout(&mut self, now: Instant) {
        self.begin(now, || Input::Tick);
        let engine = self.client.poll_timeout().filter(|at| *at <= self.now);
        while self.connections.fire(self.now, engine.unwrap_or(self.now)) {
            self.run();
        }
        self.client.handle_timeout(self.now);
        self.run();
        while self.connections.fire(self.now, self.now) {
            self.run();
        }
        self.end(Ok(InputResult::Done));
    }

    /// Returns the next action for the driver, in order.
    pub fn poll_output(&mut self) -> Option<Action<Event>> {
        let action = self.actions.pop();
        self.observers.output(action.as_ref());
        action
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.observers.earliest(self.next_timeout())
    }

    /// Returns the timer of [`poll_timeout`](Self::poll_timeout).
    pub fn timeout_reason(&self) -> Option<WiredTimer> {
        if self.ended {
            return None;
        }
        let engine = self.client.poll_timeout();
        match self.connections.first_timeout() {
            Some((at, id)) if engine.is_none_or(|engine| at <= engine) => Some(WiredTimer::Connection(id)),
            _ => self.client.timeout_reason().map(WiredTimer::Engine),
        }
    }

    /// Returns current sizes and counters. The cost is proportional to the number of connections.
    pub fn stats(&self) -> ClientStats {
        let (lost_notifications, lost_diagnostics) = self.actions.lost();
        ClientStats {
            calls: self.client.running(),
            calls_made: self.tally.asked,
            questions: self.client.questions(),
            waiting: self.pools.waiting(),
            channels: self.connections.len(),
            traffic: self.tally.traffic,
            unsent: self.connections.iter().map(|entry| entry.connection.unsent()).sum(),
            queued: self.actions.len(),
            lost_notifications,
            lost_diagnostics,
            diagnostics: self.tally.diagnostics.clone(),
            reconnects: self.tally.reconnects,
            pings_missed: self.tally.pings_missed,
            cache: self.client.cache_stats(),
            detached_threads: 0,
        }
    }

    /// Returns the engine, to inspect it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the connection of [`over`](Self::over), which is open from the start. `None` for a
    /// client that opens its connections.
    pub fn given(&self) -> Option<ConnectionId> {
        self.connections.ids().next().filter(|_| self.is_open)
    }

    /// Returns the next timer of the client.
    fn next_timeout(&self) -> Option<Instant> {
        if self.ended { None } else { earliest(self.client.poll_timeout(), self.connections.poll_timeout()) }
    }

    /// Passes an input to the observers, before the client applies it.
    #[track_caller]
    fn begin(&mut self, now: Instant, input: impl FnOnce() -> WiredClientInput) {
        if !self.observers.is_empty() {
            let timer = self.next_timeout();
            self.observers.input(now, timer, &input());
        }
        self.now = self.now.max(now);
    }

    /// Runs the engine to the end, and passes the result of the input to the observers.
    fn end(&mut self, applied: Result<InputResult, &Refusal>) {
        self.tally.asked += u64::from(matches!(applied, Ok(InputResult::Call(_))));
        self.run();
        let failure = self.observers.returned(|| applied.map_err(Clone::clone));
        if let Some(why) = failure.filter(|_| !self.ended) {
            let diagnostic = Diagnostic::new(DiagnosticKind::RecordingEnded, why);
            self.tally.diagnostic(diagnostic.kind);
            self.actions.push(Action::Event(Event::Diagnostic(diagnostic)));
        }
    }
}

impl Observable for WiredClient {
    type Input = WiredClientInput;
    type Returned = Result<InputResult, Refusal>;
    type Output = Action<Event>;

    fn observe(&mut self, mut observer: Box<dyn Observer<Self>>) {
        observer.begin(self);
        self.observers.push(observer);
    }
}

impl ClientCommands for WiredClient {
    #[track_caller]
    fn act(&mut self, now: Instant, command: ClientCommand) -> Result<InputResult, RefusedCommand<ClientCommand>> {
        self.begin(now, || Input::Command(command.clone()));
        let applied = self.client.act(self.now, command);
        self.end(applied.as_ref().copied().map_err(|refused| &refused.why));
        applied
    }
}

/// The pump.
impl WiredClient {
    /// Passes events and requests between the engine and the connections until both have none left.
    /// The outputs that one event causes are carried out before the next event.
    fn run(&mut self) {
        loop {
            while let Some(output) = self.client.poll_output() {
                self.carry_out(output);
            }
            for (connection, why) in self.closed.drain(..) {
                self.actions.push(Action::Notice(connection, ConnectionNotice::Closed(why)));
            }
            let Some(id) = self.connections.changed() else { break };
            match self.connections.poll_event(id) {
                Some((exchange, event)) => self.handle_event(id, exchange, event),
                None => self.settle(id),
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
        match output {
            Output::Start(exchange, Start::Duplex(endpoint)) => self.start_duplex(exchange, endpoint),
            Output::Start(exchange, Start::WebSocket { origin, reach, head, dialect }) => {
                if let Some(why) = self.unroutable(&origin, reach) {
                    return self.refuse(exchange, why);
                }
                let config = self.client.config();
                let seed = self.seed.next_bytes();
                let connection = Connection::web_socket(head, dialect, seed, &config.limits.frame, self.now);
                let connection = connection.with_coding(config.compression);
                let endpoint = match reach {
                    Reach::Any => Endpoint::Origin(origin),
                    reach => Endpoint::Within(origin, reach),
                };
                self.open(exchange, endpoint, connection, None);
            }
            Output::Start(exchange, Start::Http { origin, reach, head, body, repeatable, urgent, raw }) => {
                let key = PoolKey { origin, reach };
                let request = QueuedRequest { exchange, key, head, body, repeatable, urgent, raw, repeated: false };
                self.submit(request);
            }
            Output::Send(exchange, outgoing) => {
                let now = self.now;
                self.with_connection(exchange, |connection| connection.send(now, exchange, outgoing));
            }
            Output::Abort(exchange) => {
                let now = self.now;
                self.with_connection(exchange, |connection| connection.abort(now, exchange));
                if let Some(ExchangePlace::Waiting(key)) = self.routes.remove(&exchange) {
                    self.pools.cancel(&key, exchange);
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
        if let Some(&ExchangePlace::On(id)) = self.routes.get(&exchange)
            && let Some(entry) = self.connections.change(id)
        {
            f(&mut entry.connection);
            self.flush(id);
        }
    }

    fn handle_event(&mut self, id: ConnectionId, exchange: ExchangeId, event: ExchangeEvent) {
        let Some(entry) = self.connections.get_mut(id) else { return };
        let failed = matches!(event, ExchangeEvent::Failed { .. });
        // The server may have read the bytes that were written to a dead connection.
        let event = match event {
            ExchangeEvent::Failed { why, .. } if entry.data.repeated => {
                ExchangeEvent::Failed { sent: Sent::Maybe, why }
            }
            event => event,
        };
        let mut again = None;
        if failed || entry.data.key.is_some() && event == ExchangeEvent::Inbound(Inbound::End) {
            self.routes.remove(&exchange);
            let dead = failed && self.last.is_none() && !entry.connection.is_answering();
            again = entry.data.repeat.take_if(|request| request.exchange == exchange).filter(|_| dead);
        }
        // A request that the engine starts at the end of a response may use the same connection.
        self.settle(id);
        match again {
            Some(request) => {
                self.client.handle_event(self.now, exchange, ExchangeEvent::Repeated);
                self.submit(QueuedRequest { repeated: true, ..request });
            }
            None if self.last.is_none() => self.client.handle_event(self.now, exchange, event),
            None => {}
        }
    }

    /// No further events for now: arms the timer, and reports the connection's use to the pool.
    fn settle(&mut self, id: ConnectionId) {
        self.flush(id);
        self.connections.arm(id);
        let Some(entry) = self.connections.get_mut(id) else { return };
        self.tally.traffic += entry.connection.take_traffic();
        if let Some(reads) = entry.connection.poll_read() {
            self.actions.push(Action::Read(id, reads));
        }
        let usage = ConnectionUse::of(&entry.connection);
        let before = core::mem::replace(&mut entry.data.usage, usage);
        if usage == before {
            return;
        }
        let key = entry.data.key.clone();
        if usage == ConnectionUse::Closed
            && let Some(why) = entry.connection.closed_by().cloned()
        {
            self.connections.remove(id);
            self.closed.push((id, why));
        }
        if let Some(key) = key {
            let step = self.pools.changed(&key, id, before, usage);
            self.take_step(step);
        }
    }

    /// Moves the outputs of a connection into the queue of actions.
    fn flush(&mut self, id: ConnectionId) {
        let Some(entry) = self.connections.get_mut(id) else { return };
        // The engine must know this before a driver can write any of the bytes: if the engine ends
        // the exchange before that, nothing was sent.
        if entry.data.key.is_some()
            && entry.connection.has_first_write()
            && let Some(exchange) = entry.connection.exchange()
        {
            let peer = Peer { address: entry.connection.address(), ..Peer::default() };
            self.client.handle_event(self.now, exchange, ExchangeEvent::Opened(peer));
        }
        while let Some(diagnostic) = entry.connection.poll_diagnostic() {
            if self.last.is_none() {
                self.tally.diagnostic(diagnostic.kind);
                self.actions.push(Action::Event(Event::Diagnostic(diagnostic)));
            }
        }
        while let Some(output) = entry.connection.next_output() {
            match output {
                ConnectionOutput::Secure(name) => self.actions.push(Action::Secure(id, name)),
                ConnectionOutput::Write(bytes) => self.actions.push(Action::Write(id, bytes)),
                ConnectionOutput::Read(reads) => self.actions.push(Action::Read(id, reads)),
                ConnectionOutput::Close(step) => {
                    self.actions.push(Action::Close(id, step));
                    self.actions.push(Action::Notice(id, ConnectionNotice::Closing(step)));
                }
            }
        }
    }

    fn terminate(&mut self, event: Event) {
        self.last = Some(event);
        self.pools.clear();
        self.routes.clear();
        for id in self.connections.ids().collect::<Vec<_>>() {
            if let Some(entry) = self.connections.change(id) {
                entry.connection.close(self.now);
            }
        }
    }
}

/// Connections and the requests on them.
impl WiredClient {
    fn start_duplex(&mut self, exchange: ExchangeId, endpoint: Endpoint) {
        let program = matches!(endpoint, Endpoint::Program(_));
        let connection = Connection::client(Kind::Lines, program, &self.client.config().limits.frame, self.now);
        self.open(exchange, endpoint, connection, None);
    }

    fn open(
        &mut self,
        exchange: ExchangeId,
        endpoint: Endpoint,
        connection: Connection,
        key: Option<PoolKey>,
    ) -> ConnectionId {
        self.next += 1;
        let id = ConnectionId(self.next);
        let connection = connection.with_hook(self.client.config().on_message.clone());
        let (endpoint, mut connection) = self.lead(endpoint, connection);
        connection.begin(exchange);
        let data = PooledConnection { key, usage: ConnectionUse::Busy, repeat: None, repeated: false };
        self.connections.insert(id, connection, data);
        self.routes.insert(exchange, ExchangePlace::On(id));
        if self.is_open {
            self.connections.handle_io(self.now, id, IoEvent::Opened(Peer::default()));
        } else {
            self.actions.push(Action::Open(id, endpoint));
        }
        id
    }

    fn submit(&mut self, mut request: QueuedRequest) {
        if let Err(Denial(reason)) = self.rule(&mut request) {
            return self.refuse(request.exchange, Closed::Denied(reason));
        }
        if let Some(why) = self.unroutable(&request.key.origin, request.key.reach) {
            return self.refuse(request.exchange, why);
        }
        let exchange = request.exchange;
        self.routes.insert(exchange, ExchangePlace::Waiting(request.key.clone()));
        if !request.repeated {
            self.client.handle_event(self.now, exchange, ExchangeEvent::Waiting);
        }
        let step = self.pools.submit(request);
        // The engine could have ended another connection, which is not carried out yet.
        debug_assert!(
            step.as_ref().is_none_or(|step| step.exchange() == Some(exchange)),
            "invariant: what could have been started was started before"
        );
        self.take_step(step);
    }

    fn take_step(&mut self, step: Option<PoolStep>) {
        match step {
            Some(PoolStep::Reuse(id, request)) => {
                let Some(entry) = self.connections.get_mut(id) else { return };
                entry.data.usage = ConnectionUse::Busy;
                entry.data.repeat = request.repeatable.then(|| request.clone());
                entry.data.repeated = false;
                entry.connection.begin(request.exchange);
                self.routes.insert(request.exchange, ExchangePlace::On(id));
                self.write(request);
            }
            Some(PoolStep::Open(request)) => {
                let key = request.key.clone();
                let config = self.client.config();
                let connection = Connection::client(Kind::HttpClient, false, &config.limits.frame, self.now);
                let connection = connection.with_coding(config.compression);
                let id = self.open(request.exchange, key.endpoint(), connection, Some(key));
                if let Some(entry) = self.connections.get_mut(id) {
                    entry.data.repeated = request.repeated;
                }
                self.write(request);
            }
            Some(PoolStep::Close(id)) => {
                if let Some(entry) = self.connections.change(id) {
                    entry.connection.close(self.now);
                }
            }
            Some(PoolStep::CloseSoon(id)) => {
                if let Some(entry) = self.connections.change(id) {
                    entry.connection.mark_surplus(self.now);
                }
            }
            None => {}
        }
    }

    fn write(&mut self, request: QueuedRequest) {
        let QueuedRequest { exchange, head, body, raw, .. } = request;
        let now = self.now;
        self.with_connection(exchange, |connection| {
            connection.reads_raw(raw);
            connection.send(now, exchange, Outbound::Request { head, body });
        });
    }

    /// Fails an exchange that cannot begin.
    fn refuse(&mut self, exchange: ExchangeId, why: Closed) {
        self.client.handle_event(self.now, exchange, ExchangeEvent::Failed { sent: Sent::No, why });
    }

    /// Applies the hook to a request, before a connection is used for it. The hook has already
    /// checked a repeated request. A GET or a DELETE has no message to check.
    fn rule(&self, request: &mut QueuedRequest) -> Result<(), Denial> {
        let is_message = !request.repeated && !request.raw && !request.body.is_empty();
        let Some(hook) = self.client.config().on_message.as_ref().filter(|_| is_message) else { return Ok(()) };
        let mut decision = hook.outgoing(Outbound::Message(request.body.clone()));
        if let Some(denial) = decision.denials.pop() {
            return Err(denial.why);
        }
        if let Some(Outbound::Message(body)) = decision.send {
            if body != request.body && headers::repeat_a_change(&request.head.headers, &request.body, &body) {
                return Err(Denial::new("its replacement changes what a header field repeats"));
            }
            request.body = body;
        }
        Ok(())
    }
}
