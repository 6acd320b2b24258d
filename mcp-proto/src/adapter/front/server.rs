//! The handle of a server, and what its driver and its connections share.

use super::backlog::{Backlog, NextTask};
use super::connection::DrivenConnection;
use super::events::deliver;
use super::{Delay, Deliver, Driving, Events, Role, Route, Routing, RoutingKind, Task, first};
use crate::adapter::checked::Checked;
use crate::adapter::job::{Job, Link, StuckHandlers};
use crate::adapter::options::ServerOptions;
use crate::adapter::os::{Clock, seed};
use crate::adapter::server_core::{ServerCore, ServerTask};
use crate::adapter::shared_router::SharedRouter;
use crate::adapter::sync::{Mutex, MutexGuard, lock};
use crate::adapter::transfer::Transfer;
use crate::adapter::watch::Watchers;
use crate::adapter::work::Work;
use crate::error::Refusal;
use crate::exchange::Peer;
use crate::input::{Change, Principal};
use crate::route::{BadReplacement, Router};
use crate::stats::ServerStats;
use crate::time::Instant;
use crate::wired::{HandshakeReservation, Kind, SharedServer, Turn, TurnReply};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::fmt;
use core::mem::take;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Poll, Waker};
use core::time::Duration;
use std::io;

/// Time that a stop waits in addition to the times of the engine, which aborts connections one
/// second after the configured ones.
const MARGIN: Duration = Duration::from_secs(2);

/// A server. It serves the connections that it is given. All connections share one engine, so a
/// session can continue on a different connection. Cheap to clone. Dropping the last clone ends
/// everything at once.
#[derive(Clone)]
pub struct Server(Arc<Owned>);

/// Ends the server when the last owner is dropped. Drivers and connections share it without owning
/// it.
struct Owned(Arc<ServerShared>);

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.end(true);
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
    pub fn begin(router: Router, options: ServerOptions, delay: Delay) -> io::Result<(Self, Driving)> {
        let shared = ServerShared::new(router, options, delay)?;
        let driving = Driving(Arc::clone(&shared) as _);
        Ok((Self(Arc::new(Owned(shared))), driving))
    }

    /// Adds a connection that is open: a socket, or with `is_pair` a reader and a writer, such as
    /// standard input and output. A server without room for it, or one that shuts down, refuses its
    /// client: drive such a connection like any other.
    pub fn accept(&self, kind: Kind, peer: Peer, is_pair: bool) -> DrivenConnection {
        self.shared().accept(kind, peer, is_pair)
    }

    /// Adds a listener, which the end of the server waits for. `close` is called once the server
    /// accepts nothing more, outside of every lock: it ends the wait for a connection, or removes
    /// the file of a socket.
    pub fn listen(&self, close: impl FnOnce() + Send + 'static) -> Listening {
        let shared = self.shared();
        let mut state = shared.lock();
        state.listeners += 1;
        let now = if state.closing {
            Some(close)
        } else {
            state.close.push(Box::new(close));
            None
        };
        drop(state);
        now.into_iter().for_each(|close| close());
        Listening(Arc::clone(shared))
    }

    /// Notifies the clients that subscribed to a change. Never waits. In a handler,
    /// [`Cx::publish`](crate::Cx::publish) does the same.
    pub fn publish(&self, change: Change) {
        self.shared().with(true, |state, now| state.core.publish(now, change));
    }

    /// Replaces the router, and notifies the clients of the lists that differ: see
    /// [`Router::replace`]. Never waits for a client. In a handler,
    /// [`Cx::replace`](crate::Cx::replace) does the same.
    ///
    /// # Errors
    /// [`BadReplacement`]. Nothing has changed then.
    pub fn replace(&self, router: Router) -> Result<(), BadReplacement> {
        self.update(|_| router.clone())
    }

    /// Replaces the router by what this function makes of it, as [`replace`](Self::replace) does.
    /// The function runs again if another replacement came between, so that none is lost. It must
    /// not replace the router itself.
    ///
    /// # Errors
    /// [`BadReplacement`]. Nothing has changed then.
    pub fn update(&self, mut change: impl FnMut(Router) -> Router) -> Result<(), BadReplacement> {
        let changes = self.shared().router.update(&mut change)?;
        changes.into_iter().for_each(|change| self.publish(change));
        Ok(())
    }

    /// The web page of this id is complete. Notifies the client that was asked to open it, and no
    /// other. In a handler, [`Cx::elicited`](crate::Cx::elicited) does the same. Never waits.
    pub fn elicited(&self, id: &str) {
        self.shared().with(true, |state, now| state.core.elicited(now, id));
    }

    /// Ends everything that [`ServerOptions::on_admit`] admitted for this principal: see
    /// [`revoke`](crate::server::Server::revoke). Let `on_admit` refuse the principal first. Never
    /// waits.
    pub fn revoke(&self, principal: &Principal) {
        self.shared().with(true, |state, now| state.core.revoke(now, principal));
    }

    /// Returns a snapshot of the server's numbers.
    pub fn stats(&self) -> ServerStats {
        let state = self.shared().lock();
        let mut stats = state.core.stats();
        let (waiting, (notifications, diagnostics)) = state.backlog.events.counts();
        stats.queued += waiting;
        // With a callback, events that the engine lost have been counted here as well.
        stats.lost_notifications = stats.lost_notifications.max(notifications);
        stats.lost_diagnostics = stats.lost_diagnostics.max(diagnostics);
        stats
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
        let limit = grace.saturating_add(shared.linger).saturating_add(MARGIN);
        first(shared.over(), (shared.delay)(limit)).await;
        shared.end(true);
    }

    /// Waits until no handler and no admission runs. One that ignores its cancellation can run for
    /// any time: wait at most for [`CALLBACK_GRACE`].
    pub async fn callbacks_ended(&self) {
        let shared = self.shared();
        shared.watchers.watch(|| shared.lock().core.has_no_callback().then_some(())).await;
    }

    /// Ends everything at once, as dropping the last clone does. [`wait`](Self::wait) waits for it.
    pub fn end(&self) {
        self.shared().end(true);
    }

    fn shared(&self) -> &Arc<ServerShared> {
        &self.0.0
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server(..)")
    }
}

/// A listener of a server, which the end of the server waits for. Close the listening socket, then
/// drop this.
pub struct Listening(Arc<ServerShared>);

impl Listening {
    /// Adds a connection that was accepted: see [`Server::accept`].
    pub fn accept(&self, kind: Kind, peer: Peer) -> DrivenConnection {
        self.0.accept(kind, peer, false)
    }

    /// Waits until the server accepts nothing more.
    pub async fn closed(&self) {
        self.0.watchers.watch(|| self.0.lock().closing.then_some(())).await;
    }

    /// Returns whether the server accepts nothing more.
    pub fn is_closed(&self) -> bool {
        self.0.lock().closing
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.lock().listeners -= 1;
        self.0.watchers.wake();
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listening(..)")
    }
}

/// The result of the second step of a turn.
pub(super) struct Exchanged {
    pub(super) reply: TurnReply,
    /// The connection has to be aborted.
    pub(super) stopped: bool,
    /// The requests that the turn has caused, which the driver of the connection routes: their
    /// inline handlers run on the thread that has read them.
    pub(super) work: VecDeque<Work>,
    /// There may be events to deliver, which the driver of the connection does.
    pub(super) has_task: bool,
}

/// What the handles, the driver and the connections of one server share.
pub(super) struct ServerShared {
    pub(super) clock: Clock,
    router: SharedRouter,
    options: ServerOptions,
    delay: Delay,
    /// Time for an orderly close of a connection.
    linger: Duration,
    state: Mutex<ServerState>,
    /// Waiters for the end.
    watchers: Watchers,
    /// More events wait than their limit, since they are of a kind that is never dropped.
    behind: AtomicBool,
}

struct ServerState {
    core: ServerCore,
    backlog: Backlog,
    listeners: usize,
    /// Nothing more is accepted.
    closing: bool,
    /// Functions that close the listeners.
    close: Vec<Box<dyn FnOnce() + Send>>,
}

impl ServerShared {
    fn new(router: Router, mut options: ServerOptions, delay: Delay) -> io::Result<Arc<Self>> {
        let (clock, mut config) = (Clock::start(), router.config());
        config.origin_unix = clock.unix();
        options.configure(&mut config);
        let linger = config.limits.frame.linger_timeout;
        let max = (config.limits.server.max_queued_events, config.limits.server.max_queued_event_bytes);
        let config = Arc::new(config);
        let router = SharedRouter::new(router, Arc::clone(&config));
        let engine = SharedServer::new(config, seed()?, clock.now());
        let engine = Checked::when(options.is_checked(), engine);
        let backlog = Backlog::new(options.take_event(), max);
        Ok(Arc::new_cyclic(|this: &Weak<Self>| {
            let this = this.clone();
            let link: Link = Arc::new(move |command| {
                let shared = this.upgrade().ok_or(Refusal::Gone)?;
                let (done, wakes) = shared.with(true, |state, now| {
                    let done = state.core.command(now, command);
                    (done, state.closing && state.core.has_no_callback())
                });
                if wakes {
                    shared.watchers.wake();
                }
                done
            });
            let state = ServerState {
                core: ServerCore::new(engine, link),
                backlog,
                listeners: 0,
                closing: false,
                close: Vec::new(),
            };
            let (state, behind) = (Mutex::new(state), AtomicBool::new(false));
            Self { clock, router, options, delay, linger, state, watchers: Watchers::default(), behind }
        }))
    }

    fn lock(&self) -> MutexGuard<'_, ServerState> {
        lock(&self.state)
    }

    /// Changes the state, and wakes those that wait for what has changed. With `tasks`, wakes the
    /// driver for new tasks; otherwise the caller carries them out.
    fn with<T>(&self, tasks: bool, change: impl FnOnce(&mut ServerState, Instant) -> T) -> T {
        self.change(tasks, None, change).0
    }

    /// As [`with`](Self::with). Also returns whether there is a task. Requests go to `work`, if the
    /// caller routes them.
    fn change<T>(
        &self,
        tasks: bool,
        mut work: Option<&mut VecDeque<Work>>,
        change: impl FnOnce(&mut ServerState, Instant) -> T,
    ) -> (T, bool) {
        let mut guard = self.lock();
        let changed = change(&mut guard, self.clock.now());
        let state = &mut *guard;
        while let Some(task) = state.core.next_task() {
            match (task, &mut work) {
                (ServerTask::Work(caused), Some(work)) => work.push_back(caused),
                (task, _) => state.backlog.push(task),
            }
        }
        let later = state.backlog.finish(state.core.poll_timeout(), tasks);
        if state.backlog.events.is_behind() {
            self.behind.store(true, Ordering::Relaxed);
        }
        drop(guard);
        let (milestone, has_task) = (later.milestone, later.has_task);
        later.carry_out();
        if milestone {
            self.watchers.wake();
        }
        (changed, has_task)
    }

    fn accept(self: &Arc<Self>, kind: Kind, peer: Peer, is_pair: bool) -> DrivenConnection {
        let connection = self.with(true, |state, now| state.core.accept(now, kind, peer));
        let transfer = match kind {
            Kind::Lines if is_pair => Transfer::given(),
            _ => Transfer::accepted(),
        };
        let connection = Checked::when(self.options.is_checked(), connection);
        DrivenConnection::server(Arc::clone(self), connection, transfer)
    }

    /// Accepts nothing more, and gives running requests `grace` to end.
    fn shut_down(&self, grace: Duration) {
        let close = self.with(true, |state, now| {
            state.closing = true;
            state.core.shutdown(now, grace);
            take(&mut state.close)
        });
        close.into_iter().for_each(|close| close());
        self.watchers.wake();
    }

    /// Ends everything at once.
    fn end(&self, has_driver: bool) {
        let (close, callback) = self.with(true, |state, _| {
            state.closing = true;
            state.core.abandon();
            (take(&mut state.close), state.backlog.stop(has_driver))
        });
        // Outside of the lock: it may hold the server.
        drop(callback);
        close.into_iter().for_each(|close| close());
    }

    /// Waits until no connection and no listener is left, and none can be added.
    async fn over(&self) {
        let is_over = || {
            let state = self.lock();
            let none_left = state.core.connections() == 0 && state.listeners == 0;
            (state.backlog.is_ending() && none_left).then_some(())
        };
        self.watchers.watch(is_over).await;
    }
}

impl Route for ServerShared {
    fn route(&self, work: Work) -> Option<Job> {
        work.route(&self.router, &self.options)
    }
}

impl Deliver for ServerShared {
    fn deliver(&self) {
        deliver(|before| {
            let (next, woken) = {
                let mut state = self.lock();
                let next = state.backlog.events.next(before);
                let catches_up = !state.backlog.events.is_behind() && self.behind.swap(false, Ordering::Relaxed);
                (next, catches_up.then(|| state.core.take_wakers()))
            };
            woken.into_iter().flatten().for_each(Waker::wake);
            next
        });
    }

    fn unclaim_events(&self) {
        self.lock().backlog.events.unclaim();
    }
}

impl Role for ServerShared {
    fn name(&self) -> &'static str {
        "Server"
    }

    fn clock(&self) -> Clock {
        self.clock
    }

    fn next_task(self: Arc<Self>) -> Option<Task> {
        let before = self.lock().backlog.attention.awake();
        // Outside of the lock: it may be the last waker of a task that holds a server.
        drop(before);
        self.next_task_of_connection().or_else(|| self.lock().backlog.next_end().then_some(Task::Ended))
    }

    fn next_task_of_command(self: Arc<Self>) -> Option<Task> {
        self.next_task_of_connection()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let mut state = self.lock();
        let due = state.core.poll_timeout();
        state.backlog.attention.look(due)
    }

    fn handle_timeout(&self) {
        self.with(true, |state, now| state.core.handle_timeout(now));
    }

    fn poll_woken(&self, waker: &Waker) -> Poll<()> {
        let (polled, before) = self.lock().backlog.poll_woken(waker);
        // Outside of the lock: it may be the last waker of a task that holds a server.
        drop(before);
        polled
    }

    fn abandon(&self) {
        self.end(false);
    }

    fn mark_unheard(&self) {
        self.lock().core.mark_unheard();
    }

    fn handlers_stuck(&self, stuck: StuckHandlers) {
        self.with(true, |state, now| state.core.handlers_stuck(now, stuck));
    }
}

/// For the drivers of connections.
impl ServerShared {
    /// Reserves the memory of the TLS handshake of a connection. `None` if there is no room for it.
    pub(super) fn begin_handshake(&self, connection: u64) -> Option<HandshakeReservation> {
        self.with(true, |state, now| state.core.begin_handshake(now, connection))
    }

    /// The second step of a turn.
    pub(super) fn exchange(&self, turn: Turn, waker: Option<&Waker>) -> Exchanged {
        let change = |state: &mut ServerState, now| (state.core.exchange(now, turn, waker), state.backlog.stopped);
        let mut work = VecDeque::new();
        let (((reply, before), stopped), has_task) = self.change(false, Some(&mut work), change);
        // Outside of the lock: it may be the last waker of a task that holds a server.
        drop(before);
        Exchanged { reply, stopped, work, has_task }
    }

    /// Returns the task that routes a request of a connection.
    pub(super) fn route_task(self: &Arc<Self>, work: Work) -> Task {
        Task::Route(Routing(RoutingKind::Work(work, Arc::clone(self) as _)))
    }

    /// Returns the events that wait for the application, unless a thread delivers them.
    pub(super) fn next_delivery(self: &Arc<Self>) -> Option<Task> {
        let claimed = self.lock().backlog.events.claim();
        claimed.then(|| Task::Deliver(Events::new(Arc::clone(self) as _)))
    }

    pub(super) fn next_task_of_connection(self: &Arc<Self>) -> Option<Task> {
        let next = self.lock().backlog.next()?;
        Some(match next {
            NextTask::Route(work) => self.route_task(work),
            NextTask::Deliver => Task::Deliver(Events::new(Arc::clone(self) as _)),
        })
    }

    /// Returns whether the application is behind with events that are never dropped.
    pub(super) fn is_behind(&self) -> bool {
        self.behind.load(Ordering::Relaxed)
    }

    /// Forgets a connection that has closed.
    pub(super) fn leave(&self, connection: u64) {
        let before = self.with(true, |state, _| state.core.leave(connection));
        // Outside of the lock: it may be the last waker of a task that holds a server.
        drop(before);
        self.watchers.wake();
    }
}
