//! The driver of a server: the engine behind one lock, handlers on a bounded set of threads, one
//! thread for timers.
//!
//! Only short operations run under the engine's lock. Requests are routed, and the engine's outputs
//! framed, after it is released.

mod handling;

use crate::accepted::Stream;
use crate::connection::ConnectionThreads;
use crate::events::Events;
use crate::handler::{Handler, Router};
use crate::os::Clock;
use crate::pool::Pool;
use crate::serving::{Admit, Serving};
use crate::sync::{self, Condvar, Mutex, MutexGuard, lock, wait};
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

/// Maximum number of requests and connections that wait for the callback of the application to
/// start. The engine refuses further ones at their timeout.
const ASKED: usize = 1024;

/// The state that all threads of one server share.
pub(crate) struct Service {
    desk: Mutex<Desk>,
    /// Wakes the timer thread for an earlier deadline, or for the end.
    ticks: Condvar,
    /// Wakes the threads that wait for connections to end, or for the end of the server.
    pub(crate) changed: Condvar,
    pub(crate) clock: Clock,
    router: Router,
    tasks: Pool<Task>,
    admissions: Option<Pool<Asked>>,
}

/// The state behind the lock of a server.
pub(crate) struct Desk {
    pub(crate) engine: SharedServer,
    pub(crate) connections: BTreeMap<u64, Arc<ConnectionThreads>>,
    running: BTreeMap<RequestKey, Arc<Handling>>,
    abandoned: Abandoned,
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
    requests: VecDeque<(Responder, Incoming, Arc<Handling>)>,
    admissions: VecDeque<Asked>,
    woken: VecDeque<Arc<ConnectionThreads>>,
    /// A request was cancelled that may wait for a thread.
    cancelled: bool,
}

struct Task {
    handler: Handler,
    invocation: Invocation,
    responder: Responder,
    handling: Arc<Handling>,
}

/// An HTTP request, or a connection, that waits for its admission.
type Asked = (AdmitToken, Option<Arc<RequestHead>>);

impl Service {
    pub(crate) fn start(router: Router, serving: Serving) -> io::Result<Arc<Self>> {
        let clock = Clock::start();
        let mut config = router.config();
        config.origin_unix = clock.unix();
        config.on_message = serving.message.or(config.on_message);
        let admit = serving.admit.inspect(|_| config.admit = true);
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
            let admissions = admit.map(|admit| Self::admission_pool(this.clone(), serving.threads, admit));
            let (ticks, changed) = (Condvar::new(), Condvar::new());
            Self { desk: Mutex::new(desk), ticks, changed, clock, router, tasks, admissions }
        });
        let timers = Arc::clone(&service);
        sync::spawn("mcp-timer", move || timers.drive())?;
        Ok(service)
    }

    /// Returns the threads that ask the application for admissions. They are separate from the
    /// handlers: a cancellation must be admitted even if all threads of handlers are busy.
    fn admission_pool(service: Weak<Self>, threads: usize, admit: Arc<Admit>) -> Pool<Asked> {
        Pool::new("mcp-admit", threads, move |(token, head): Asked| {
            let admitted = catch_unwind(AssertUnwindSafe(|| admit(head.as_deref(), token.peer())));
            if let Some(service) = Weak::upgrade(&service) {
                let admission = admitted.unwrap_or(Admission::Forbidden(None));
                service.act(|desk, now| desk.engine.admit(now, token, admission));
            }
        })
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

    /// Returns the numbers of the engine and of the driver.
    pub(crate) fn stats(&self) -> ServerStats {
        let desk = self.lock();
        let mut stats = desk.engine.stats();
        stats.abandoned_handlers += desk.abandoned.count();
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
        desk.running.values().for_each(|handling| handling.cancel());
        let held = desk.events.end();
        drop(desk);
        drop(held);
        // The admissions that wait have no purpose any more.
        self.admissions.iter().for_each(|asked| asked.retain(|_| false));
        self.ticks.notify_all();
        self.changed.notify_all();
    }

    /// Gives the engine an input that belongs to no connection.
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
                    // It may have been cancelled before it was queued, and so could not be
                    // withdrawn.
                    Ok(()) => return todo.cancelled |= handling.is_cancelled(),
                    Err(task) => task.responder.write(Outcome::internal("the server has no thread to run this")),
                }
            }
        };
        self.respond(answer, todo);
    }

    /// Requests the application's admission of one request. Returns false if there is none. The
    /// engine times out those beyond the limit.
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

    /// Runs a handler, and responds with its outcome.
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
    /// Takes the outputs of the engine. Short work is done at once. `at` is the connection that is
    /// being served.
    pub(crate) fn collect(&mut self, todo: &mut Todo, at: Option<u64>) {
        while let Some(event) = self.engine.poll_event() {
            match event {
                Event::Request(responder, incoming) => {
                    // Known from here on, so that a cancellation finds it in any state.
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
