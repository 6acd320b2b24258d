//! A server without a lock and without waiting: its engine, the callbacks that run, and the tasks
//! of its driver.

use super::checked::Checked;
use super::job::{Link, StuckHandlers};
use super::running::{Cancelled, Running};
use super::work::Work;
use crate::error::{Diagnostic, DiagnosticKind, Refusal};
use crate::exchange::Peer;
use crate::input::{Change, Principal, ServerCommand};
use crate::server::Event;
use crate::stats::ServerStats;
use crate::time::Instant;
use crate::wired::{Connection, HandshakeReservation, Kind, SharedServer, Turn, TurnReply};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use core::task::Waker;
use core::time::Duration;

/// A server for a driver of its own: its engine, the callbacks that run, and who waits for each
/// connection. It takes no lock and calls no callback. After each change, carry out what
/// [`next_task`](Self::next_task) returns until there is nothing.
///
/// [`Server`](super::Server) is this behind a lock.
#[derive(Debug)]
pub struct ServerCore {
    engine: Checked<SharedServer>,
    tasks: ServerTasks,
    /// The wakers of the open connections, by number.
    connections: BTreeMap<u64, Option<Waker>>,
}

/// What a driver of a [`ServerCore`] or of [`Exchanges`](super::Exchanges) does next.
#[derive(Debug)]
#[must_use]
pub enum ServerTask {
    /// Route this, outside of every lock.
    Work(Work),
    /// Cancel a callback, outside of every lock.
    Cancel(Cancelled),
    /// Wake the driver of a connection, or who waits for the next part of a response, outside of
    /// every lock.
    Wake(Waker),
    /// For the application.
    Event(Event),
    /// The server has shut down: nothing follows.
    Ended,
}

impl ServerCore {
    /// Creates a server without connections. Callbacks send their commands through `link`, which
    /// leads to [`command`](Self::command).
    pub fn new(engine: impl Into<Checked<SharedServer>>, link: Link) -> Self {
        Self { engine: engine.into(), tasks: ServerTasks::new(link), connections: BTreeMap::new() }
    }

    /// Returns the connection for an accepted socket or pipe pair: see [`SharedServer::accept`].
    pub fn accept(&mut self, now: Instant, kind: Kind, peer: Peer) -> Connection {
        let connection = self.engine.accept(now, kind, peer);
        self.connections.insert(connection.number(), None);
        connection
    }

    /// Reserves the memory of the TLS handshake of a connection: see
    /// [`SharedServer::begin_handshake`].
    pub fn begin_handshake(&mut self, now: Instant, connection: u64) -> Option<HandshakeReservation> {
        self.engine.begin_handshake(now, connection)
    }

    /// The second step of a turn of a connection: see [`SharedServer::exchange`]. Registers the
    /// waker of the driver of the connection, and returns the one before, to be dropped outside of
    /// every lock.
    pub fn exchange(&mut self, now: Instant, turn: Turn, waker: Option<&Waker>) -> (TurnReply, Option<Waker>) {
        let number = turn.connection();
        let reply = self.engine.exchange(now, turn);
        let slot = self.connections.get_mut(&number);
        let before = slot.zip(waker).and_then(|(slot, waker)| match slot {
            Some(known) if known.will_wake(waker) => None,
            _ => slot.replace(waker.clone()),
        });
        (reply, before)
    }

    /// Forgets a connection that has closed. Returns its waker, to be dropped outside of every
    /// lock.
    pub fn leave(&mut self, connection: u64) -> Option<Waker> {
        self.connections.remove(&connection).flatten()
    }

    /// Takes the wakers of all connections, to be woken outside of every lock.
    pub fn take_wakers(&mut self) -> Vec<Waker> {
        self.connections.values_mut().filter_map(Option::take).collect()
    }

    /// Returns the number of open connections.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Returns whether no handler and no admission runs, or waits to be run.
    pub fn has_no_callback(&self) -> bool {
        self.tasks.running.is_empty()
    }

    /// Executes a command of a callback.
    ///
    /// # Errors
    /// The refusal of the engine.
    pub fn command(&mut self, now: Instant, command: ServerCommand) -> Result<(), Refusal> {
        self.tasks.running.answered(&command);
        self.engine.command(now, command).map(drop).map_err(|refused| refused.why)
    }

    /// Notifies the clients that subscribed to a change.
    pub fn publish(&mut self, now: Instant, change: Change) {
        self.engine.publish(now, change);
    }

    /// The web page of this id is complete: see
    /// [`Server::elicited`](crate::server::Server::elicited).
    pub fn elicited(&mut self, now: Instant, id: &str) {
        self.engine.elicited(now, id);
    }

    /// Ends everything that was admitted for this principal: see
    /// [`Server::revoke`](crate::server::Server::revoke).
    pub fn revoke(&mut self, now: Instant, principal: &Principal) {
        self.engine.revoke(now, principal);
    }

    /// Accepts nothing more, and gives running requests `grace` to end: see
    /// [`SharedServer::shutdown`].
    pub fn shutdown(&mut self, now: Instant, grace: Duration) {
        self.engine.shutdown(now, grace);
    }

    /// Ends everything at once: cancels the callbacks, and wakes the drivers of all connections,
    /// which abort them.
    pub fn abandon(&mut self) {
        self.engine.stop();
        self.tasks.cancel_all();
        let woken = self.take_wakers();
        self.tasks.queue.extend(woken.into_iter().map(ServerTask::Wake));
    }

    /// Fires the timers that are due. The driver of a connection fires those of the connection.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.engine.handle_timeout(now);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.engine.poll_timeout()
    }

    /// Returns whether the server has shut down, and all connections have closed.
    pub fn is_terminated(&self) -> bool {
        self.engine.is_terminated()
    }

    /// Emits [`DiagnosticKind::StuckHandlers`]: see
    /// [`Driving::handlers_stuck`](super::Driving::handlers_stuck).
    pub fn handlers_stuck(&mut self, now: Instant, stuck: StuckHandlers) {
        self.engine.report(now, Diagnostic::new(DiagnosticKind::StuckHandlers, stuck.to_string()));
    }

    /// Records which handlers run for clients that cannot resume: see
    /// [`Driving::mark_unheard`](super::Driving::mark_unheard).
    pub fn mark_unheard(&self) {
        self.engine.unheard().for_each(|key| self.tasks.running.mark_unheard(key));
    }

    /// Returns a snapshot of the server's numbers.
    pub fn stats(&self) -> ServerStats {
        let mut stats = self.engine.stats();
        stats.abandoned_handlers += self.tasks.running.abandoned();
        stats
    }

    /// Returns the next task. `None` if there is none for now.
    pub fn next_task(&mut self) -> Option<ServerTask> {
        loop {
            if let Some(task) = self.tasks.queue.pop_front() {
                return Some(task);
            }
            if let Some(event) = self.engine.poll_event() {
                self.tasks.push(event);
                continue;
            }
            let woken = self.engine.poll_woken()?;
            if let Some(waker) = self.connections.get_mut(&woken).and_then(Option::take) {
                return Some(ServerTask::Wake(waker));
            }
        }
    }
}

/// The callbacks that run for a server, and the tasks of its driver.
pub(super) struct ServerTasks {
    link: Link,
    pub(super) running: Running,
    pub(super) queue: VecDeque<ServerTask>,
}

impl ServerTasks {
    pub(super) fn new(link: Link) -> Self {
        Self { link, running: Running::default(), queue: VecDeque::new() }
    }

    /// Adds the task for an event of the engine.
    pub(super) fn push(&mut self, event: Event) {
        let task = match event {
            Event::Request(responder, incoming) => {
                ServerTask::Work(self.running.begin(&self.link, responder, incoming))
            }
            Event::Admit(token, head) => ServerTask::Work(self.running.admit(&self.link, token, head)),
            Event::Cancelled(key) => ServerTask::Cancel(self.running.cancel(key)),
            Event::AdmitWithdrawn(key) => ServerTask::Cancel(self.running.withdraw(key)),
            Event::Terminated => {
                self.cancel_all();
                ServerTask::Ended
            }
            event => ServerTask::Event(event),
        };
        self.queue.push_back(task);
    }

    /// Cancels every callback, also those that begin later.
    pub(super) fn cancel_all(&mut self) {
        self.queue.extend(self.running.cancel_all().map(ServerTask::Cancel));
    }
}

impl fmt::Debug for ServerTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTasks").field("running", &self.running).finish_non_exhaustive()
    }
}
