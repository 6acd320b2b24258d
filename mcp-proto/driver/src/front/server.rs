//! The handle of a server, and what its driver and its connections share.

use super::backlog::{Backlog, NextTask};
use super::connection::DrivenConnection;
use super::events::WaitingEvents;
#[cfg(feature = "auth")]
use super::guard::Guard;
use super::handle::ServerHandle;
use super::shared::{Engine, Front, Later, Shared};
use super::{Attention, Delay, DriverHandle, Events, Route, RouteTask, RoutingKind, Task, first};
use crate::check::{Checks, check};
use crate::job::{Job, ServerLink, StuckHandlers};
use crate::options::ServerOptions;
use crate::os::{Clock, seed};
use crate::shared_router::SharedRouter;
use crate::transfer::Transfer;
use crate::work::Work;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::ToString;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::fmt;
use core::mem::take;
use core::ops::Deref;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Waker;
use core::time::Duration;
use mcp_proto::error::{Diagnostic, DiagnosticKind, Refusal};
use mcp_proto::exchange::Peer;
use mcp_proto::input::ServerCommand;
use mcp_proto::route::Router;
use mcp_proto::server::{Event, ServerCommands};
use mcp_proto::stats::ServerStats;
use mcp_proto::time::{Instant, earliest};
use mcp_proto::wired::{HandshakeReservation, Kind, SharedServer, Turn, TurnReply};
use std::io;

/// Time that a stop waits in addition to the times of the engine, which aborts connections one
/// second after the configured ones.
const MARGIN: Duration = Duration::from_secs(2);

/// A server. It serves the connections that it is given. All connections share one engine, so a
/// session can continue on a different connection. Cheap to clone. Dropping the last clone ends
/// everything at once.
#[derive(Clone)]
pub struct Server(Arc<ServerOwner>);

/// Ends the server when the last owner is dropped. Drivers and connections share it without owning
/// it.
struct ServerOwner {
    shared: Arc<ServerShared>,
    handle: ServerHandle,
}

impl Drop for ServerOwner {
    fn drop(&mut self) {
        self.shared.end();
    }
}

/// Maximum time to wait for cancelled callbacks at the end of a server, for an adapter: a handler
/// on a thread may be between two looks at its cancellation, and `main` may end next.
pub const CALLBACK_GRACE: Duration = Duration::from_secs(2);

impl Server {
    /// Creates a server without connections, and what its driver drives: timers, and callbacks that
    /// no connection has caused. `delay` bounds [`stop`](Self::stop).
    ///
    /// # Errors
    /// The operating system provides no random bytes.
    pub fn begin(router: Router, options: ServerOptions, delay: Delay) -> io::Result<(Self, DriverHandle)> {
        let shared = ServerShared::create(router, options, delay)?;
        let driving = DriverHandle(Arc::clone(&shared) as _);
        let handle = ServerHandle::of_server(&shared);
        Ok((Self(Arc::new(ServerOwner { shared, handle })), driving))
    }

    /// Adds a connection that is open: a socket, or with `is_pair` a reader and a writer, such as
    /// standard input and output. A server without room for it, or one that shuts down, refuses its
    /// client: drive such a connection like any other.
    pub fn accept(&self, kind: Kind, peer: Peer, is_pair: bool) -> DrivenConnection {
        self.shared().accept(kind, peer, is_pair)
    }

    /// Adds a listener, which the end of the server waits for. `close` is called once the server
    /// accepts nothing more: it ends the wait for a connection, or removes
    /// the file of a socket.
    pub fn listen(&self, close: impl FnOnce() + Send + 'static) -> ListenerGuard {
        let shared = self.shared();
        shared.look(|state, later| {
            state.listeners += 1;
            match state.closing {
                true => later.call(close),
                false => state.close.push(Box::new(close)),
            }
        });
        ListenerGuard(Arc::clone(shared))
    }

    /// Returns a snapshot of the server's numbers.
    pub fn stats(&self) -> ServerStats {
        self.shared().look(|state, _| {
            let mut stats = state.engine.stats();
            stats.abandoned_handlers += state.backlog.running.abandoned();
            let (waiting, (notifications, diagnostics)) = state.backlog.events.counts();
            stats.queued += waiting;
            // With a callback, events that the engine lost have been counted here as well.
            stats.lost_notifications = stats.lost_notifications.max(notifications);
            stats.lost_diagnostics = stats.lost_diagnostics.max(diagnostics);
            stats
        })
    }

    /// Waits until the server was stopped, and every connection and every listener has ended.
    pub async fn wait(&self) {
        self.shared().over().await;
    }

    /// Stops accepting, gives running requests `grace` to end, then ends every stream and
    /// connection. Returns when all have ended, soon after that time at the latest.
    pub async fn stop(&self, grace: Duration) {
        let shared = self.shared();
        shared.shut_down(grace);
        // The engine ends every connection in time, unless nothing drives one of them.
        let limit = grace.saturating_add(shared.setup.linger).saturating_add(MARGIN);
        first(shared.over(), (shared.setup.delay)(limit)).await;
        shared.end();
    }

    /// Waits until no handler and no admission runs. One that ignores its cancellation can run for
    /// any time: wait at most for [`CALLBACK_GRACE`].
    pub async fn callbacks_ended(&self) {
        self.shared().watch(|state| state.backlog.running.is_empty().then_some(())).await;
    }

    /// Ends everything at once, as dropping the last clone does. [`wait`](Self::wait) waits for it.
    pub fn end(&self) {
        self.shared().end();
    }

    fn shared(&self) -> &Arc<ServerShared> {
        &self.0.shared
    }
}

/// The commands of an application.
impl Deref for Server {
    type Target = ServerHandle;

    fn deref(&self) -> &ServerHandle {
        &self.0.handle
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server(..)")
    }
}

/// A listener of a server, which the end of the server waits for. Close the listening socket, then
/// drop this.
pub struct ListenerGuard(Arc<ServerShared>);

impl ListenerGuard {
    /// Adds a connection that was accepted: see [`Server::accept`].
    pub fn accept(&self, kind: Kind, peer: Peer) -> DrivenConnection {
        self.0.accept(kind, peer, false)
    }

    /// Waits until the server accepts nothing more.
    pub async fn closed(&self) {
        self.0.watch(|state| state.closing.then_some(())).await;
    }

    /// Returns whether the server accepts nothing more.
    pub fn is_closed(&self) -> bool {
        self.0.look(|state, _| state.closing)
    }
}

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        self.0.look(|state, later| {
            state.listeners -= 1;
            later.milestone();
        });
    }
}

impl fmt::Debug for ListenerGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listening(..)")
    }
}

/// The result of the second step of a turn.
pub(super) struct ServerTurn {
    pub(super) reply: TurnReply,
    /// The connection has to be aborted.
    pub(super) stopped: bool,
    /// There may be events to deliver, which the driver of the connection does.
    pub(super) has_task: bool,
}

/// What the handles, the driver and the connections of one server share.
pub(super) type ServerShared = Shared<ServerState>;

/// What never changes of a server.
pub(super) struct ServerSetup {
    pub(super) router: SharedRouter,
    options: ServerOptions,
    delay: Delay,
    /// Time for an orderly close of a connection.
    linger: Duration,
    behind: Arc<AtomicBool>,
}

pub(super) struct ServerState {
    engine: SharedServer,
    checks: Option<Checks>,
    backlog: Backlog,
    /// The wakers of the drivers of open connections, by number.
    connections: BTreeMap<u64, Option<Waker>>,
    listeners: usize,
    /// Nothing more is accepted.
    closing: bool,
    /// Functions that close the listeners.
    close: Vec<Box<dyn FnOnce() + Send>>,
    /// More events wait than their limit, since they are of a kind that is never dropped.
    behind: Arc<AtomicBool>,
}

impl ServerShared {
    fn create(router: Router, mut options: ServerOptions, delay: Delay) -> io::Result<Arc<Self>> {
        let (clock, mut config) = (Clock::start(), router.config());
        config.origin_unix = clock.unix();
        options.configure(&mut config);
        let linger = config.limits.frame.linger_timeout;
        let max = (config.limits.server.max_queued_events, config.limits.server.max_queued_event_bytes);
        #[cfg(feature = "auth")]
        let guard = options.guard_state(config.state_keys.as_ref().map(|keys| keys.current), clock, delay)?;
        let queue = options.store_queue(&config)?;
        let config = Arc::new(config);
        let router = SharedRouter::new(router, Arc::clone(&config));
        let mut engine = SharedServer::new(config, seed()?, clock.now());
        let checks = options.is_checked().then(|| check(&mut engine));
        let event = options.take_event();
        let shared = Arc::new_cyclic(|this: &Weak<Self>| {
            #[cfg(feature = "auth")]
            options.set_guard(guard.map(|state| Guard::start(state, clock, this, |state| &mut state.backlog)));
            let this = this.clone();
            let link: ServerLink = Arc::new(move |command| this.upgrade().ok_or(Refusal::Gone)?.command(command));
            let behind = Arc::new(AtomicBool::new(false));
            let state = ServerState {
                engine,
                checks,
                backlog: Backlog::new(link, event, max, options.guard().cloned(), queue.clone()),
                connections: BTreeMap::new(),
                listeners: 0,
                closing: false,
                close: Vec::new(),
                behind: Arc::clone(&behind),
            };
            Self::new(clock, ServerSetup { router, options, delay, linger, behind }, state)
        });
        let this = Arc::downgrade(&shared);
        shared.setup.options.start_store(queue, move |command| {
            if let Some(shared) = this.upgrade() {
                // A command about the store is never refused.
                drop(shared.command(command));
            }
        })?;
        // The engine joins the store.
        shared.with(|_, _, _| ());
        Ok(shared)
    }

    pub(super) fn command(&self, command: ServerCommand) -> Result<(), Refusal> {
        self.setup.options.note(&command);
        self.with(|state, now, later| {
            state.backlog.running.answered(&command);
            let done = state.engine.act(now, command).map(drop).map_err(|refused| refused.why);
            if state.closing && state.backlog.running.is_empty() {
                later.milestone();
            }
            done
        })
    }

    fn accept(self: &Arc<Self>, kind: Kind, peer: Peer, is_pair: bool) -> DrivenConnection {
        let mut connection = self.with(|state, now, _| {
            let connection = state.engine.accept(now, kind, peer);
            state.connections.insert(connection.number(), None);
            connection
        });
        let transfer = match kind {
            Kind::Lines if is_pair => Transfer::given(),
            _ => Transfer::accepted(),
        };
        if self.setup.options.is_checked() {
            check(&mut connection);
        }
        DrivenConnection::server(Arc::clone(self), connection, transfer)
    }

    /// Accepts nothing more, and gives running requests `grace` to end.
    fn shut_down(&self, grace: Duration) {
        self.with(|state, now, later| {
            state.engine.shutdown(now, grace);
            state.close(later);
            later.milestone();
        });
    }

    /// Ends everything at once.
    fn end(&self) {
        self.with(|state, _, later| state.end(true, later));
    }

    /// Waits until no connection and no listener is left, and none can be added.
    async fn over(&self) {
        self.watch(|state| {
            let none_left = state.connections.is_empty() && state.listeners == 0;
            (state.backlog.is_ending() && none_left).then_some(())
        })
        .await;
    }
}

impl ServerState {
    /// Accepts nothing more.
    fn close(&mut self, later: &mut Later) {
        self.closing = true;
        take(&mut self.close).into_iter().for_each(|close| later.call(close));
    }

    fn end(&mut self, has_driver: bool, later: &mut Later) {
        self.close(later);
        self.checks.iter().for_each(Checks::stop);
        // Their drivers abort them.
        self.wake_all(later);
        self.backlog.stop(has_driver, later);
    }

    /// Takes what the engine has for others than the connection that is being served: work is for
    /// the driver, or for the driver of that connection.
    fn sort_work(&mut self, later: &mut Later, mut work: impl FnMut(&mut Backlog, Work)) {
        while let Some(event) = self.engine.poll_event() {
            if let Some(caused) = self.backlog.sort(event, later) {
                work(&mut self.backlog, caused);
            }
        }
        while let Some(woken) = self.engine.poll_woken() {
            if let Some(waker) = self.connections.get_mut(&woken) {
                later.wake(waker.take());
            }
        }
    }

    /// Wakes the drivers of all connections.
    fn wake_all(&mut self, later: &mut Later) {
        self.connections.values_mut().for_each(|waker| later.wake(waker.take()));
    }
}

impl Route for ServerShared {
    fn route(&self, work: Work) -> Option<Job> {
        work.route(&self.setup.router, &self.setup.options)
    }
}

impl Front for ServerState {
    type Setup = ServerSetup;
    type Event = Event;

    fn sort(&mut self, _now: Instant, later: &mut Later) {
        self.sort_work(later, |backlog, work| backlog.push([work]));
        if self.backlog.events.is_behind() {
            self.behind.store(true, Ordering::Relaxed);
        }
    }

    fn has_task(&self) -> bool {
        self.backlog.has_task()
    }

    fn ends(&self) -> bool {
        self.backlog.ends()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earliest(self.engine.poll_timeout(), self.backlog.guard.poll_timeout())
    }

    fn attention(&mut self) -> &mut Attention {
        &mut self.backlog.attention
    }

    fn events(&mut self) -> &mut WaitingEvents<Event> {
        &mut self.backlog.events
    }

    fn delivered(&mut self, later: &mut Later) {
        if !self.backlog.events.is_behind() && self.behind.swap(false, Ordering::Relaxed) {
            self.wake_all(later);
        }
    }
}

impl Engine for ServerState {
    const NAME: &'static str = "Server";

    fn next_task(&mut self, shared: &Arc<Shared<Self>>) -> Option<Task> {
        Some(match self.backlog.next()? {
            NextTask::Route(work) => shared.route_task(work),
            NextTask::Guard(task) => task,
            NextTask::Deliver => Task::Deliver(Events::new(Arc::clone(shared) as _)),
        })
    }

    fn take_end(&mut self, _later: &mut Later) -> bool {
        self.backlog.next_end()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.engine.handle_timeout(now);
        self.backlog.guard.handle_timeout(now);
    }

    fn abandon(&mut self, _now: Instant, later: &mut Later) {
        self.end(false, later);
    }

    fn mark_unheard(&mut self) {
        self.engine.unheard().for_each(|key| self.backlog.running.mark_unheard(key));
    }

    fn handlers_stuck(&mut self, now: Instant, stuck: &StuckHandlers) {
        self.engine.report(now, Diagnostic::new(DiagnosticKind::StuckHandlers, stuck.to_string()));
    }
}

/// For the drivers of connections.
impl ServerShared {
    /// Reserves the memory of the TLS handshake of a connection. `None` if there is no room for it.
    pub(super) fn begin_handshake(&self, connection: u64) -> Option<HandshakeReservation> {
        self.with(|state, now, _| state.engine.begin_handshake(now, connection))
    }

    /// The second step of a turn. Adds the requests that the turn has caused to `work`. The driver
    /// of the connection routes them: their inline handlers run on the thread that has read them.
    pub(super) fn exchange(&self, turn: Turn, waker: Option<&Waker>, work: &mut VecDeque<Work>) -> ServerTurn {
        let ((reply, stopped), has_task) = self.change(false, |state, now, later| {
            let number = turn.connection();
            let reply = state.engine.exchange(now, turn);
            if let Some((slot, waker)) = state.connections.get_mut(&number).zip(waker)
                && !slot.as_ref().is_some_and(|known| known.will_wake(waker))
            {
                later.replaced(slot.replace(waker.clone()));
            }
            state.sort_work(later, |_, caused| work.push_back(caused));
            (reply, state.backlog.stopped)
        });
        ServerTurn { reply, stopped, has_task }
    }

    /// Returns the task that routes a request of a connection.
    pub(super) fn route_task(self: &Arc<Self>, work: Work) -> Task {
        Task::Route(RouteTask(RoutingKind::Work(work, Arc::clone(self) as _)))
    }

    /// Returns the events that wait for the application, unless a thread delivers them.
    pub(super) fn next_delivery(self: &Arc<Self>) -> Option<Task> {
        let claimed = self.look(|state, _| state.backlog.events.claim());
        claimed.then(|| Task::Deliver(Events::new(Arc::clone(self) as _)))
    }

    /// Returns whether the application is behind with events that are never dropped.
    pub(super) fn is_behind(&self) -> bool {
        self.setup.behind.load(Ordering::Relaxed)
    }

    /// Forgets a connection that has closed.
    pub(super) fn leave(&self, connection: u64) {
        self.with(|state, _, later| {
            later.replaced(state.connections.remove(&connection).flatten());
            later.milestone();
        });
    }
}
