//! A server for a loop in one thread (seam A): a [`SharedServer`] and its connections, bytes and
//! ticks in, actions out. No socket, no method and no status.

use super::ConnectionOutput;
use super::connections::Connections;
use super::shared::{PostedOutput, SharedServer};
use super::turn::Mail;
use crate::error::{Diagnostic, DiagnosticKind, Refusal, RefusedCommand};
use crate::event_queue::EventQueue;
use crate::exchange::*;
use crate::frame::Kind;
use crate::input::*;
use crate::observer::{Observable, Observer, Observers};
use crate::server::{Event, ServerCommands, ServerConfig};
use crate::stats::ServerStats;
use crate::time::{Instant, earliest};
use alloc::boxed::Box;
use alloc::sync::Arc;

/// A [`Server`](crate::Server) and its connections: a server for a loop in one thread.
///
/// Every method that changes the server runs the engine to the end before it returns. The time of a
/// call of [`poll_output`](Self::poll_output) therefore changes nothing. The server ignores events
/// of a connection that no longer exists.
#[derive(Debug)]
pub struct WiredServer {
    shared: SharedServer,
    connections: Connections<()>,
    actions: EventQueue<Action<Event>>,
    observers: Observers<Self>,
}

impl WiredServer {
    /// Returns a server without connections. `seed` is 32 bytes from the operating system's random
    /// source, never used for another engine.
    pub fn new(config: Arc<ServerConfig>, seed: [u8; 32], now: Instant) -> Self {
        let limits = &config.limits.server;
        let actions = EventQueue::new(limits.max_queued_events, limits.max_queued_event_bytes);
        let mut server = Self {
            shared: SharedServer::with_posted(config, seed, now),
            connections: Connections::new(),
            actions,
            observers: Observers::default(),
        };
        // It joins its store before anything happens.
        server.run();
        server
    }

    /// Applies one input. The other methods that change the server, except
    /// [`accept`](Self::accept), are forms of this one.
    ///
    /// # Errors
    /// Those of [`act`](ServerCommands::act). Events and ticks are never refused.
    #[track_caller]
    pub fn apply(
        &mut self,
        now: Instant,
        input: WiredServerInput,
    ) -> Result<InputResult, RefusedCommand<WiredServerInput>> {
        match input {
            Input::Event(connection, event) => self.handle_io(now, connection, event),
            Input::Command(command) => {
                return self.act(now, command).map_err(|refused| refused.map(Input::Command));
            }
            Input::Tick => self.handle_timeout(now),
        }
        Ok(InputResult::Done)
    }

    /// Adds an accepted socket or pipe pair, which is open already, and returns its id. Its last
    /// event is [`IoEvent::Closed`]. A server without room for it, or one that shuts down, refuses
    /// its client: see [`SharedServer::accept`].
    #[track_caller]
    pub fn accept(&mut self, now: Instant, kind: Kind, peer: Peer) -> ConnectionId {
        let timer = self.next_timeout();
        let connection = self.shared.accept(now, kind, peer);
        let id = ConnectionId(connection.number());
        self.observers.accepted(now, id, timer);
        self.connections.insert(id, connection, ());
        self.run();
        id
    }

    /// Reports what happened to a connection. An event of a connection that no longer exists is
    /// ignored.
    #[track_caller]
    pub fn handle_io(&mut self, now: Instant, connection: ConnectionId, event: IoEvent) {
        self.begin(now, || Input::Event(connection, event.clone()));
        self.connections.handle_io(self.shared.now(), connection, event);
        self.run();
        self.end(Ok(InputResult::Done));
    }

    /// Fires the timers that are due, in the order of their deadlines. Does nothing if none is.
    #[track_caller]
    pub fn handle_timeout(&mut self, now: Instant) {
        self.begin(now, || Input::Tick);
        let now = self.shared.now();
        let engine = self.shared.poll_timeout().filter(|at| *at <= now);
        while self.connections.fire(now, engine.unwrap_or(now)) {
            self.run();
        }
        self.shared.fire(now);
        self.run();
        while self.connections.fire(now, now) {
            self.run();
        }
        self.end(Ok(InputResult::Done));
    }

    /// Returns the next action for the driver, in order. Never [`Action::Open`].
    pub fn poll_output(&mut self) -> Option<Action<Event>> {
        let action = self.actions.pop();
        self.observers.output(action.as_ref());
        action
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.observers.earliest(self.next_timeout())
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Arc<ServerConfig> {
        self.shared.config()
    }

    /// Returns the number of requests that the application received and has not answered.
    pub fn running(&self) -> usize {
        self.shared.running()
    }

    /// Returns whether the server has shut down: [`Event::Terminated`] is in the queue, or was
    /// taken.
    pub fn is_terminated(&self) -> bool {
        self.shared.is_terminated()
    }

    /// Returns a snapshot of current sizes and of counters.
    pub fn stats(&self) -> ServerStats {
        self.shared.snapshot(self.actions.len(), self.actions.lost())
    }

    /// Returns the next timer of the server.
    fn next_timeout(&self) -> Option<Instant> {
        if self.shared.is_terminated() {
            return None;
        }
        earliest(self.shared.poll_timeout(), self.connections.poll_timeout())
    }

    /// Passes an input to the observers, before the server applies it.
    #[track_caller]
    fn begin(&mut self, now: Instant, input: impl FnOnce() -> WiredServerInput) {
        if !self.observers.is_empty() {
            let timer = self.next_timeout();
            self.observers.input(now, timer, &input());
        }
        self.shared.advance(now);
    }

    /// Passes the result of an input to the observers.
    fn end(&mut self, applied: Result<InputResult, &Refusal>) {
        if let Some(why) = self.observers.returned(|| applied.map_err(Clone::clone))
            && let Some(event) = self.shared.diagnostic(Diagnostic::new(DiagnosticKind::RecordingEnded, why))
        {
            self.actions.push(Action::Event(event));
        }
    }

    /// Runs the engine and the connections until neither has anything left. The outputs that one
    /// event causes are carried out before the next event.
    fn run(&mut self) {
        loop {
            while let Some(posted) = self.shared.poll_posted() {
                match posted {
                    PostedOutput::Mail(connection, mail) => self.deliver(ConnectionId(connection), mail),
                    PostedOutput::Event(event) => self.actions.push(Action::Event(event)),
                }
            }
            let Some(id) = self.connections.changed() else { return };
            match self.connections.poll_event(id) {
                Some((exchange, event)) => {
                    self.flush(id);
                    self.shared.handle_event(exchange, event);
                }
                None => self.settle(id),
            }
        }
    }

    fn deliver(&mut self, id: ConnectionId, mail: Mail) {
        if let Some(entry) = self.connections.change(id) {
            entry.connection.deliver(self.shared.now(), mail);
            self.flush(id);
        }
    }

    /// The connection has no further events: arms its timer, or removes the connection.
    fn settle(&mut self, id: ConnectionId) {
        self.flush(id);
        self.connections.arm(id);
        let Some(entry) = self.connections.get_mut(id) else { return };
        self.shared.count(entry.connection.take_traffic());
        if let Some(reads) = entry.connection.poll_read() {
            self.actions.push(Action::Read(id, reads));
        }
        if entry.connection.is_closed() {
            self.connections.remove(id);
            self.shared.remove(id.0);
        }
    }

    /// Moves the outputs of a connection into the queue of actions.
    fn flush(&mut self, id: ConnectionId) {
        let Some(entry) = self.connections.get_mut(id) else { return };
        while let Some(diagnostic) = entry.connection.poll_diagnostic() {
            if let Some(event) = self.shared.diagnostic(diagnostic) {
                self.actions.push(Action::Event(event));
            }
        }
        while let Some(output) = entry.connection.next_output() {
            self.actions.push(match output {
                ConnectionOutput::Write(bytes) => Action::Write(id, bytes),
                ConnectionOutput::Read(reads) => Action::Read(id, reads),
                ConnectionOutput::Secure(name) => Action::Secure(id, name),
                ConnectionOutput::Close(shutdown) => Action::Close(id, shutdown),
            });
        }
    }
}

impl Observable for WiredServer {
    type Input = WiredServerInput;
    type Returned = Result<InputResult, Refusal>;
    type Output = Action<Event>;

    fn observe(&mut self, mut observer: Box<dyn Observer<Self>>) {
        observer.begin(self);
        self.observers.push(observer);
    }
}

impl ServerCommands for WiredServer {
    #[track_caller]
    fn act(&mut self, now: Instant, command: ServerCommand) -> Result<InputResult, RefusedCommand<ServerCommand>> {
        self.begin(now, || Input::Command(command.clone()));
        let applied = self.shared.with_engine(now, |server, now| server.act(now, command));
        self.run();
        self.end(applied.as_ref().copied().map_err(|refused| &refused.why));
        applied
    }
}
