//! The driver of a server: the engine behind one lock, handlers on a bounded set of threads, one
//! thread for timers.
//!
//! Only short operations run under the engine's lock. Requests are routed, and the engine's outputs
//! framed, after it is released.

use crate::accepted::Stream;
use crate::connection::ConnectionThreads;
use crate::events::Events;
use crate::os::Clock;
use crate::pool::Pool;
use crate::sync::{self, Condvar, Mutex, MutexGuard, lock, wait};
use mcp_proto::adapter::{Cancelled, Job, JobKind, Link, Running, ServerOptions, Work};
use mcp_proto::exchange::Peer;
use mcp_proto::input::{Change, Principal, ServerCommand};
use mcp_proto::server::Event;
use mcp_proto::stats::ServerStats;
use mcp_proto::wired::{Kind, SharedServer};
use mcp_proto::{Instant, Refusal, Router};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The state that all threads of one server share.
pub(crate) struct Service {
    desk: Mutex<Desk>,
    /// Wakes the timer thread for an earlier deadline, or for the end.
    ticks: Condvar,
    /// Wakes the threads that wait for connections to end, or for the end of the server.
    pub(crate) changed: Condvar,
    pub(crate) clock: Clock,
    router: Router,
    options: ServerOptions,
    /// The way of handlers to the engine.
    link: Link,
    handlers: Pool<Job>,
    /// Separate threads: a cancellation must be admitted even if all threads of handlers are busy.
    admissions: Pool<Job>,
}

/// The state behind the lock of a server.
pub(crate) struct Desk {
    pub(crate) engine: SharedServer,
    pub(crate) connections: BTreeMap<u64, Arc<ConnectionThreads>>,
    running: Running,
    /// The deadlines of connections.
    due: BTreeSet<(Instant, u64)>,
    /// The time until which the timer thread sleeps. Absent while it does not sleep.
    alarm: Option<Option<Instant>>,
    pub(crate) events: Events<Event>,
    ended: bool,
}

/// Work for after the lock is released.
#[derive(Default)]
pub(crate) struct Todo {
    work: VecDeque<Work>,
    woken: VecDeque<Arc<ConnectionThreads>>,
    cancelled: Vec<Cancelled>,
}

impl Service {
    pub(crate) fn start(router: Router, mut options: ServerOptions) -> io::Result<Arc<Self>> {
        let clock = Clock::start();
        let mut config = router.config();
        config.origin_unix = clock.unix();
        options.configure(&mut config);
        let threads = options.max_threads();
        let share = config.limits.server.share(threads);
        let events = Events::new(
            options.take_event(),
            (config.limits.server.max_queued_events, config.limits.server.max_queued_event_bytes),
        );
        let desk = Desk {
            engine: SharedServer::new(Arc::new(config), crate::os::seed()?, clock.now()),
            connections: BTreeMap::new(),
            running: Running::default(),
            due: BTreeSet::new(),
            alarm: None,
            events,
            ended: false,
        };
        let service = Arc::new_cyclic(|this: &Weak<Self>| {
            let this = this.clone();
            let link: Link = Arc::new(move |command| Weak::upgrade(&this).ok_or(Refusal::Gone)?.command(command));
            let handlers = Pool::shared("mcp-handler", threads, share, Job::block);
            let admissions = Pool::new("mcp-admit", threads, Job::block);
            let (desk, ticks, changed) = (Mutex::new(desk), Condvar::new(), Condvar::new());
            Self { desk, ticks, changed, clock, router, options, link, handlers, admissions }
        });
        let timers = Arc::clone(&service);
        sync::spawn("mcp-timer", move || timers.drive())?;
        Ok(service)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Desk> {
        lock(&self.desk)
    }

    /// Serves an open channel on threads of its own. Returns the number of its connection.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn accept(self: &Arc<Self>, kind: Kind, peer: Peer, stream: Stream) -> io::Result<u64> {
        let mut desk = self.lock();
        let connection = desk.engine.accept(self.clock.now(), kind, peer);
        let Stream { socket, reader, writer } = stream;
        let connection = Arc::new(ConnectionThreads::new(connection, socket));
        desk.connections.insert(connection.number(), Arc::clone(&connection));
        drop(desk);
        connection.start(self, reader, writer).inspect_err(|_| connection.abort(self))?;
        Ok(connection.number())
    }

    /// As [`accept`](Self::accept), and returns when the connection has ended.
    pub(crate) fn serve(self: &Arc<Self>, kind: Kind, peer: Peer, stream: Stream) -> io::Result<()> {
        let number = self.accept(kind, peer, stream)?;
        let mut desk = self.lock();
        while desk.connections.contains_key(&number) {
            desk = wait(&self.changed, desk, None);
        }
        Ok(())
    }

    /// Takes the outputs of the engine while this connection is being served.
    pub(crate) fn collect(&self, desk: &mut Desk, todo: &mut Todo, at: u64) {
        desk.collect(&self.link, todo, Some(at));
    }

    /// Notifies every client that has subscribed to the change.
    pub(crate) fn publish(self: &Arc<Self>, change: Change) {
        self.act(|desk, now| desk.engine.publish(now, change));
    }

    /// Ends everything that was admitted for this principal.
    pub(crate) fn revoke(self: &Arc<Self>, principal: &Principal) {
        self.act(|desk, now| desk.engine.revoke(now, principal));
    }

    /// Removes a closed connection.
    pub(crate) fn left(&self, connection: u64, due: Option<Instant>) {
        let mut desk = self.lock();
        desk.connections.remove(&connection);
        if let Some(due) = due {
            desk.due.remove(&(due, connection));
        }
        self.changed.notify_all();
    }

    /// Records the deadline of a connection.
    pub(crate) fn set_due(&self, desk: &mut Desk, connection: u64, known: &mut Option<Instant>, due: Option<Instant>) {
        if *known != due {
            if let Some(before) = known.take() {
                desk.due.remove(&(before, connection));
            }
            desk.due.extend(due.map(|due| (due, connection)));
            *known = due;
        }
        self.check_alarm(desk);
    }

    /// Does the work that the engine requires outside of its lock, until there is none.
    pub(crate) fn work(self: &Arc<Self>, mut todo: Todo) {
        loop {
            if !todo.cancelled.is_empty() {
                todo.cancelled.drain(..).for_each(Cancelled::wake);
                self.handlers.retain(is_wanted);
                self.admissions.retain(is_wanted);
            } else if let Some(connection) = todo.woken.pop_front() {
                connection.deliver(self, &mut todo);
            } else if let Some(work) = todo.work.pop_front() {
                self.begin(work);
            } else {
                return;
            }
        }
    }

    /// Returns the numbers of the engine and of the driver.
    pub(crate) fn stats(&self) -> ServerStats {
        let desk = self.lock();
        let mut stats = desk.engine.stats();
        stats.abandoned_handlers += desk.running.abandoned();
        let (waiting, (notifications, diagnostics)) = desk.events.held();
        stats.queued += waiting;
        // With a callback, events that the engine lost have been counted here as well.
        stats.lost_notifications = stats.lost_notifications.max(notifications);
        stats.lost_diagnostics = stats.lost_diagnostics.max(diagnostics);
        stats
    }

    /// Stops the server: running requests have `grace` to end, then everything is closed. Returns
    /// when this is done. The engine aborts the connections that do not close in time.
    pub(crate) fn stop(self: &Arc<Self>, grace: Duration) {
        self.act(|desk, now| desk.engine.shutdown(now, grace));
        let mut desk = self.lock();
        while !(desk.engine.is_terminated() && desk.connections.is_empty()) {
            desk = wait(&self.changed, desk, None);
        }
        drop(desk);
        self.end();
    }

    /// Waits for the end.
    pub(crate) fn wait_end(&self) {
        let mut desk = self.lock();
        while !desk.ended {
            desk = wait(&self.changed, desk, None);
        }
    }

    /// Ends the service.
    pub(crate) fn end(&self) {
        let mut desk = self.lock();
        desk.ended = true;
        let cancelled: Vec<_> = desk.running.cancel_all().collect();
        let held = desk.events.end();
        drop(desk);
        drop(held);
        cancelled.into_iter().for_each(Cancelled::wake);
        self.handlers.retain(is_wanted);
        self.admissions.retain(is_wanted);
        self.ticks.notify_all();
        self.changed.notify_all();
    }

    /// Gives the engine an input that belongs to no connection.
    fn act<R>(self: &Arc<Self>, f: impl FnOnce(&mut Desk, Instant) -> R) -> R {
        let mut todo = Todo::default();
        let mut desk = self.lock();
        let result = f(&mut desk, self.clock.now());
        desk.collect(&self.link, &mut todo, None);
        self.check_alarm(&desk);
        drop(desk);
        self.work(todo);
        result
    }

    /// Applies a command of a callback to the engine.
    fn command(self: &Arc<Self>, command: ServerCommand) -> Result<(), Refusal> {
        let apply = |desk: &mut Desk, now| {
            desk.running.answered(&command);
            desk.engine.command(now, command).map(drop)
        };
        self.act(apply).map_err(|refused| refused.why)
    }

    /// Routes a request or an admission, and passes its callback to a thread, or to the executor of
    /// the application.
    fn begin(&self, work: Work) {
        let Some(job) = work.route(&self.router, &self.options) else { return };
        let refused = match (job, self.options.spawn()) {
            (Job::Async(job), Some(spawn)) => return spawn(Box::pin(async { drop(job.await) })),
            (job, _) => match job.kind() {
                JobKind::Handler(client) => self.handlers.submit_of(client, job, is_wanted),
                JobKind::Admission | JobKind::Question => self.admissions.submit_of(0, job, is_wanted),
            },
        };
        // Without a thread, or cancelled in the meantime. Dropping it answers.
        drop(refused);
    }

    /// Fires timers until the end.
    fn drive(self: Arc<Self>) {
        let mut desk = self.lock();
        while !desk.ended {
            let now = self.clock.now();
            let next = desk.next_due();
            if next.is_none_or(|next| next > now) {
                desk.alarm = Some(next);
                desk = wait(&self.ticks, desk, next.map(|next| next.since(now)));
                desk.alarm = None;
                continue;
            }
            let due = desk.due.iter().take_while(|(at, _)| *at <= now);
            let due: Vec<_> = due.filter_map(|(_, number)| desk.connections.get(number).cloned()).collect();
            desk.engine.handle_timeout(now);
            let mut todo = Todo::default();
            desk.collect(&self.link, &mut todo, None);
            self.check_alarm(&desk);
            drop(desk);
            self.work(todo);
            due.iter().for_each(|connection| connection.handle_timeout(&self));
            desk = self.lock();
        }
    }

    fn check_alarm(&self, desk: &Desk) {
        if let (Some(until), Some(next)) = (desk.alarm, desk.next_due())
            && until.is_none_or(|until| next < until)
        {
            self.ticks.notify_all();
        }
        if desk.engine.is_terminated() {
            self.changed.notify_all();
        }
    }
}

fn is_wanted(job: &Job) -> bool {
    !job.is_cancelled()
}

impl Desk {
    /// Takes the outputs of the engine. Short work is done at once. `at` is the connection that is
    /// being served.
    fn collect(&mut self, link: &Link, todo: &mut Todo, at: Option<u64>) {
        while let Some(event) = self.engine.poll_event() {
            match event {
                Event::Request(responder, incoming) => {
                    todo.work.push_back(self.running.begin(link, responder, incoming));
                }
                Event::Admit(token, head) => todo.work.push_back(self.running.admit(link, token, head)),
                Event::Cancelled(key) => todo.cancelled.push(self.running.cancel(key)),
                Event::AdmitWithdrawn(key) => todo.cancelled.push(self.running.withdraw(key)),
                Event::Terminated => {
                    todo.cancelled.extend(self.running.cancel_all());
                    self.events.tell(Event::Terminated);
                }
                other => self.events.tell(other),
            }
        }
        while let Some(number) = self.engine.poll_woken() {
            if Some(number) != at {
                todo.woken.extend(self.connections.get(&number).cloned());
            }
        }
    }

    fn next_due(&self) -> Option<Instant> {
        let first = self.due.first().map(|(due, _)| *due);
        first.into_iter().chain(self.engine.poll_timeout()).min()
    }
}

#[cfg(all(test, unix, feature = "http", not(shuttle)))]
mod tests;
