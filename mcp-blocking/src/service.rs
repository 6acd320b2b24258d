//! What drives a server: the engine behind one lock, handlers on a bounded set of threads, one thread for timers.
//!
//! Under the engine's lock only small things are done. Requests are routed, and what the engine says is framed, after it is let go.

mod handling;

use crate::accepted::Stream;
use crate::connection::ConnectionThreads;
use crate::events::Events;
use crate::os::Clock;
use crate::pool::Pool;
use crate::server::{Handler, Router, Serving};
use crate::sync::{self, Condvar, Mutex, MutexGuard, lock, wait, wait_until};
use handling::{Abandoned, Handling};
use mcp_proto::exchange::{Peer, RequestHead};
use mcp_proto::input::{Admission, AdmitToken, Answer, Change, Principal, RequestKey};
use mcp_proto::route::{Invocation, Routed};
use mcp_proto::server::{Event, Incoming, Responder};
use mcp_proto::stats::ServerStats;
use mcp_proto::wired::{Kind, SharedServer};
use mcp_proto::{Cx, Instant, Outcome, Refusal};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// What a stop waits beyond the times that were given.
const MARGIN: Duration = Duration::from_secs(1);

/// Connections beyond the limit that wait to be told so. Those beyond are closed.
#[cfg(any(unix, feature = "http"))]
const REFUSED: usize = 64;

/// Requests and connections that wait until the application is asked about them. What comes on top is refused by the engine when its time is
/// over.
const ASKED: usize = 1024;

/// What all threads of one server share.
pub(crate) struct Service {
    desk: Mutex<Desk>,
    /// The timer thread waits here for an earlier deadline, or the end.
    ticks: Condvar,
    /// Whoever waits for connections to leave, or for the end, waits here.
    pub(crate) changed: Condvar,
    pub(crate) clock: Clock,
    router: Router,
    tasks: Pool<Task>,
    /// Connections beyond the limit, to be told so.
    #[cfg(any(unix, feature = "http"))]
    refused: Pool<(Kind, Stream)>,
    admissions: Option<Pool<Asked>>,
    /// How long a connection that is closed in order is given.
    linger: Duration,
}

/// What stands behind the lock of a server.
pub(crate) struct Desk {
    pub(crate) engine: SharedServer,
    pub(crate) connections: BTreeMap<u64, Arc<ConnectionThreads>>,
    running: BTreeMap<RequestKey, Arc<Handling>>,
    abandoned: Abandoned,
    /// The deadlines of connections.
    due: BTreeSet<(Instant, u64)>,
    /// Until when the timer thread sleeps; absent while it does not.
    alarm: Option<Option<Instant>>,
    pub(crate) events: Events<Event>,
    ended: bool,
}

/// What is to be done once no lock is held.
#[derive(Default)]
pub(crate) struct Todo {
    requests: VecDeque<(Responder, Incoming, Arc<Handling>)>,
    admissions: VecDeque<Asked>,
    woken: VecDeque<Arc<ConnectionThreads>>,
    /// A request was cancelled, that may wait for a thread.
    cancelled: bool,
}

struct Task {
    handler: Handler,
    invocation: Invocation,
    responder: Responder,
    handling: Arc<Handling>,
}

/// A request over HTTP, or a connection, that waits for its admission.
type Asked = (AdmitToken, Option<Arc<RequestHead>>);

impl Service {
    pub(crate) fn start(router: Router, serving: Serving) -> io::Result<Arc<Self>> {
        let clock = Clock::start();
        let mut config = router.config();
        config.origin_unix = crate::os::unix_time();
        config.on_message = serving.message.or(config.on_message);
        let admit = serving.admit.inspect(|_| config.admit = true);
        let linger = config.limits.frame.linger_timeout;
        let share = config.limits.server.share(serving.threads);
        let events = Events::new(
            serving.event,
            (config.limits.server.max_queued_events, config.limits.server.max_queued_event_bytes),
        );
        let desk = Desk {
            engine: SharedServer::new(Arc::new(config), crate::os::seed()?, clock.now()),
            connections: BTreeMap::new(),
            running: BTreeMap::new(),
            abandoned: Abandoned::default(),
            due: BTreeSet::new(),
            alarm: None,
            events,
            ended: false,
        };
        let service = Arc::new_cyclic(|this: &Weak<Self>| {
            let home = this.clone();
            let tasks = Pool::shared("mcp-handler", serving.threads, share, move |task: Task| {
                if let Some(service) = Weak::upgrade(&home) {
                    service.run(task);
                }
            });
            let admissions = admit.map(|admit| {
                let home = this.clone();
                // Apart from the handlers: what cancels one that all threads are busy with must be admitted.
                Pool::new("mcp-admit", serving.threads, move |(token, head): Asked| {
                    let admitted = catch_unwind(AssertUnwindSafe(|| admit(head.as_deref(), token.peer())));
                    if let Some(service) = Weak::upgrade(&home) {
                        let admission = admitted.unwrap_or(Admission::Forbidden(None));
                        service.act(|desk, now| desk.engine.admit(now, token, admission));
                    }
                })
            });
            let (ticks, changed) = (Condvar::new(), Condvar::new());
            Self {
                desk: Mutex::new(desk),
                ticks,
                changed,
                clock,
                router,
                tasks,
                // How it goes is up to the client.
                #[cfg(any(unix, feature = "http"))]
                refused: Pool::new("mcp-refuse", 4, move |(kind, stream): (_, Stream)| {
                    drop(stream.refuse(kind, linger))
                }),
                admissions,
                linger,
            }
        });
        let timers = Arc::clone(&service);
        sync::spawn("mcp-timer", move || timers.drive())?;
        Ok(service)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Desk> {
        lock(&self.desk)
    }

    /// Serves a channel that is open, on threads of its own, as the connection of this number.
    ///
    /// # Errors
    /// No thread can be started. Within: the channel, if the server takes no more.
    pub(crate) fn join(self: &Arc<Self>, kind: Kind, peer: Peer, stream: Stream) -> io::Result<Result<u64, Stream>> {
        let mut desk = self.lock();
        let Some(connection) = desk.engine.join(self.clock.now(), kind, peer) else { return Ok(Err(stream)) };
        let Stream { socket, reader, writer } = stream;
        let connection = Arc::new(ConnectionThreads::new(connection, socket));
        desk.connections.insert(connection.number(), Arc::clone(&connection));
        drop(desk);
        match connection.start(self, reader, writer) {
            Ok(()) => Ok(Ok(connection.number())),
            Err(e) => {
                connection.abort(self);
                Err(e)
            }
        }
    }

    /// As [`join`](Self::join), and returns when the connection has ended.
    pub(crate) fn serve(self: &Arc<Self>, kind: Kind, peer: Peer, stream: Stream) -> io::Result<()> {
        match self.join(kind, peer, stream)? {
            Ok(number) => {
                let mut desk = self.lock();
                while desk.connections.contains_key(&number) {
                    desk = wait(&self.changed, desk, None);
                }
            }
            // How it goes is up to the client.
            Err(stream) => drop(stream.refuse(kind, self.linger)),
        }
        Ok(())
    }

    /// Has a connection beyond the limit told so, unless too many are.
    #[cfg(any(unix, feature = "http"))]
    pub(crate) fn refuse(&self, kind: Kind, stream: Stream) {
        if self.refused.waiting() < REFUSED {
            drop(self.refused.submit((kind, stream)));
        }
    }

    /// Tells every client that wants to know.
    pub(crate) fn publish(self: &Arc<Self>, change: Change) {
        self.act(|desk, now| desk.engine.publish(now, change));
    }

    /// Ends everything that was admitted as coming from this principal.
    pub(crate) fn revoke(self: &Arc<Self>, principal: &Principal) {
        self.act(|desk, now| desk.engine.revoke(now, principal));
    }

    /// A connection is closed.
    pub(crate) fn left(&self, connection: u64, due: Option<Instant>) {
        let mut desk = self.lock();
        desk.engine.leave(self.clock.now(), connection);
        desk.connections.remove(&connection);
        if let Some(due) = due {
            desk.due.remove(&(due, connection));
        }
        self.changed.notify_all();
    }

    /// Notes when the timer of a connection is due.
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

    /// Does what the engine wants done outside its lock, until nothing is left.
    pub(crate) fn work(self: &Arc<Self>, mut todo: Todo) {
        loop {
            if let Some(connection) = todo.woken.pop_front() {
                connection.deliver(self, &mut todo);
            } else if let Some((responder, incoming, handling)) = todo.requests.pop_front() {
                self.request(responder, incoming, handling, &mut todo);
            } else if !self.work_admission(&mut todo) {
                break;
            }
        }
        if todo.cancelled {
            self.tasks.retain(Task::is_wanted);
        }
    }

    /// What the engine says of itself, and what it cannot know.
    pub(crate) fn stats(&self) -> ServerStats {
        let desk = self.lock();
        let mut stats = desk.engine.stats();
        stats.abandoned_handlers += desk.abandoned.count();
        let (waiting, (notifications, diagnostics)) = desk.events.held();
        stats.queued += waiting;
        // What the engine lost has passed through here as well, if anyone listens.
        stats.lost_notifications = stats.lost_notifications.max(notifications);
        stats.lost_diagnostics = stats.lost_diagnostics.max(diagnostics);
        stats
    }

    /// Stops: what runs may end within `grace`, then everything is closed. Returns when that is done, or cannot be awaited any longer.
    pub(crate) fn stop(self: &Arc<Self>, grace: Duration) {
        self.act(|desk, now| desk.engine.shutdown(now, grace));
        let mut desk = self.wait(grace.saturating_add(MARGIN), |desk| desk.engine.is_terminated());
        for step in [ConnectionThreads::close, ConnectionThreads::abort] {
            let connections: Vec<_> = desk.connections.values().cloned().collect();
            drop(desk);
            connections.iter().for_each(|connection| step(connection, self));
            desk = self.wait(self.linger.saturating_add(MARGIN), |desk| desk.connections.is_empty());
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

    /// Waits a while, less if something changes.
    #[cfg(any(unix, feature = "http"))]
    pub(crate) fn rest(&self, limit: Duration) {
        drop(wait(&self.changed, self.lock(), Some(limit)));
    }

    fn wait(&self, limit: Duration, is_so: impl Fn(&Desk) -> bool) -> MutexGuard<'_, Desk> {
        wait_until(&self.changed, self.lock(), &self.clock, self.clock.now() + limit, is_so)
    }

    /// Nothing is served any more.
    pub(crate) fn end(&self) {
        let mut desk = self.lock();
        desk.ended = true;
        desk.running.values().for_each(|handling| handling.cancel());
        let held = desk.events.end();
        drop(desk);
        drop(held);
        // Nobody waits any more for what the application would say of them.
        self.admissions.iter().for_each(|asked| asked.retain(|_| false));
        self.ticks.notify_all();
        self.changed.notify_all();
    }

    /// Tells the engine something that belongs to no connection.
    fn act<R>(self: &Arc<Self>, f: impl FnOnce(&mut Desk, Instant) -> R) -> R {
        let mut todo = Todo::default();
        let mut desk = self.lock();
        let result = f(&mut desk, self.clock.now());
        desk.collect(&mut todo, None);
        self.check_alarm(&desk);
        drop(desk);
        self.work(todo);
        result
    }

    fn request(&self, responder: Responder, incoming: Incoming, handling: Arc<Handling>, todo: &mut Todo) {
        let answer = match self.router.route(responder, incoming) {
            Routed::Answer(answer) => answer,
            Routed::Handle { handler, invocation, responder } => {
                let client = responder.client();
                let task = Task { handler: handler.clone(), invocation, responder, handling: Arc::clone(&handling) };
                match self.tasks.submit_of(client, task) {
                    // It may have been cancelled before it was there to be withdrawn.
                    Ok(()) => return todo.cancelled |= handling.is_cancelled(),
                    Err(task) => task.responder.write(Outcome::internal("the server has no thread to run this")),
                }
            }
        };
        self.respond(answer, todo);
    }

    /// Has the application asked about a request; false if there is none. Of one that nobody comes to in time the engine disposes.
    fn work_admission(&self, todo: &mut Todo) -> bool {
        let Some((token, head)) = todo.admissions.pop_front() else { return false };
        let refused = match &self.admissions {
            Some(pool) if pool.waiting() >= ASKED => return true,
            Some(pool) => pool.submit((token, head)).err(),
            None => Some((token, head)),
        };
        if let Some((token, _)) = refused {
            let mut desk = self.lock();
            desk.engine.admit(self.clock.now(), token, Admission::Forbidden(None));
            desk.collect(todo, None);
            self.check_alarm(&desk);
        }
        true
    }

    /// Runs a handler, and answers whatever comes of it.
    fn run(self: &Arc<Self>, task: Task) {
        let key = task.responder.key();
        let (told, tells) = (Arc::downgrade(self), Arc::downgrade(self));
        let note = move |note| {
            let service = Weak::upgrade(&told).ok_or(Refusal::Gone)?;
            service.act(|desk, now| desk.engine.notify(now, key, note)).map_err(|refused| refused.why)
        };
        let publish = move |change| {
            if let Some(service) = Weak::upgrade(&tells) {
                service.publish(change);
            }
        };
        let cx = Cx::linked(task.invocation, Arc::clone(&task.handling.cancelled), note, publish);
        let handled = task.handling.run(|| {
            catch_unwind(AssertUnwindSafe(|| (task.handler.0)(cx)))
                .unwrap_or_else(|_| Outcome::internal("the handler panicked"))
        });
        let outcome = handled.unwrap_or_else(|| Outcome::internal("the request was cancelled before it was run"));
        let mut todo = Todo::default();
        self.respond(task.responder.write(outcome), &mut todo);
        self.work(todo);
    }

    fn respond(&self, answer: Answer, todo: &mut Todo) {
        let mut desk = self.lock();
        desk.running.remove(&answer.key());
        desk.engine.respond(self.clock.now(), answer);
        desk.collect(todo, None);
        self.check_alarm(&desk);
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
            desk.collect(&mut todo, None);
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

impl Task {
    fn is_wanted(&self) -> bool {
        !self.handling.is_cancelled()
    }
}

impl Desk {
    /// Takes what the engine wants done: what takes no time is done at once. `at` is the connection that is being served.
    pub(crate) fn collect(&mut self, todo: &mut Todo, at: Option<u64>) {
        while let Some(event) = self.engine.poll_event() {
            match event {
                Event::Request(responder, incoming) => {
                    // Known from here on, so that a cancellation finds it wherever it has come to.
                    let handling = Arc::new(Handling::new(&self.abandoned));
                    self.running.insert(responder.key(), Arc::clone(&handling));
                    todo.requests.push_back((responder, incoming, handling));
                }
                Event::Admit(token, head) => todo.admissions.push_back((token, head)),
                Event::Cancelled(key) => {
                    if let Some(handling) = self.running.remove(&key) {
                        handling.cancel();
                        todo.cancelled = true;
                    }
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
