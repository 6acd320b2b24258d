//! The driver of a client or of a server: a thread for timers and for tasks that no connection has
//! caused, the threads of each connection, and a bounded number of threads for callbacks.
//!
//! Nothing waits or reads under a lock, nor writes in a way that could wait. The lock of a
//! connection is taken before that of the engine, and no other lock is held meanwhile.

use crate::connection::ConnectionThreads;
use crate::pool::{Pool, PoolBounds};
use crate::sync::{self, Condvar, Mutex, MutexGuard, lock, wait};
use crate::transport::{Given, Stream};
use mcp_driver::{
    Clock, DrivenConnection, DriverHandle, Events, Job, JobKind, JobWatch, Rejection, RouteTask, Spawn, StuckHandlers,
    Task,
};
use mcp_proto::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::mem::take;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

pub(crate) struct Driver {
    driving: DriverHandle,
    state: Mutex<DriverState>,
    /// Wakes the driver's thread.
    ticks: Condvar,
    /// Signals that a connection has closed.
    closed: Condvar,
    callbacks: Callbacks,
    /// Callbacks wait for a thread: the driver's thread looks after them.
    callbacks_wait: AtomicBool,
    open_timeout: Duration,
    /// Callers that wait without knowing the connection of their answer.
    strangers: AtomicUsize,
    /// Number of its connections.
    open: AtomicUsize,
}

/// Maximum number of connections of a client whose callers read for themselves: beyond it, the
/// threads that look whether anyone reads cost more than they save.
const MOST_LED: usize = 4;

#[derive(Default)]
struct DriverState {
    connections: BTreeMap<u64, Arc<ConnectionThreads>>,
    last: u64,
    /// The deadlines of connections.
    due: BTreeSet<(Instant, u64)>,
    /// Connections that need a turn.
    turns: BTreeSet<u64>,
    /// Requests that were read on threads which could not route them.
    left: Vec<RouteTask>,
    given: Option<Given>,
    /// Threads of connections that have closed.
    detached: usize,
    /// The driver's thread has to look.
    woken: bool,
    /// It sleeps until it is woken.
    sleeps: bool,
    /// Jobs were cancelled.
    prunes: bool,
    /// When to look after the callbacks that wait for a thread.
    look_at: Option<Instant>,
}

/// The threads that run callbacks.
pub(crate) struct Callbacks {
    /// Handlers, which clients share.
    pub(crate) handlers: Pool<Callback, JobWatch>,
    /// Separate threads: a cancellation must be admitted even if all threads of handlers are busy,
    /// and a call may depend on the answer to a question. The engine bounds how long they wait.
    pub(crate) others: Pool<Callback, JobWatch>,
    /// One thread, since events are delivered in order.
    pub(crate) events: Pool<Events>,
    /// The executor of the application.
    pub(crate) spawn: Option<Arc<Spawn>>,
    /// Time between two looks at callbacks that wait for a thread.
    pub(crate) interval: Duration,
}

/// Maximum time that handlers wait for a thread while none becomes free.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) enum Callback {
    /// A question: the application's code may block from here on.
    Route(Box<RouteTask>),
    Run(Job),
}

impl Callbacks {
    /// `others` is the maximum number of threads for callbacks that are no handlers.
    pub(crate) fn new(handlers: PoolBounds, others: usize, spawn: Option<Arc<Spawn>>) -> Self {
        let rest = PoolBounds { threads: others, share: usize::MAX, patience: None, ..handlers };
        let interval = handlers.patience.unwrap_or(PATIENCE) / 5;
        // For the pool, a wait begins with the first look at it.
        let handlers = PoolBounds { patience: handlers.patience.map(|patience| patience - interval), ..handlers };
        Self {
            handlers: Pool::bounded("mcp-handler", handlers, Callback::run),
            others: Pool::bounded("mcp-callback", rest, Callback::run),
            events: Pool::new("mcp-events", 1, Events::deliver),
            spawn,
            interval,
        }
    }

    /// Returns those of a client without a server, which has no callbacks.
    fn none() -> Self {
        Self::new(PoolBounds { threads: 1, share: 1, abandoned: 0, patience: None }, 1, None)
    }
}

impl Callback {
    fn run(self) {
        match self {
            Self::Route(routing) => routing.route().into_iter().for_each(Job::block),
            Self::Run(job) => job.block(),
        }
    }

    /// Answers without running it.
    fn reject(self, why: Rejection) {
        match self {
            // Dropping it answers.
            Self::Route(routing) => drop(routing),
            Self::Run(job) => job.reject(why),
        }
    }

    fn is_wanted(&self) -> bool {
        match self {
            Self::Route(_) => true,
            Self::Run(job) => !job.is_cancelled(),
        }
    }
}

impl Driver {
    /// Creates a driver. Starts nothing before [`begin`](Self::begin).
    pub(crate) fn new(
        driving: DriverHandle,
        callbacks: Callbacks,
        open_timeout: Duration,
        given: Option<Given>,
    ) -> Arc<Self> {
        let state = Mutex::new(DriverState { given, ..DriverState::default() });
        let (ticks, closed, strangers) = (Condvar::new(), Condvar::new(), AtomicUsize::new(0));
        let (open, callbacks_wait) = (AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(Self { driving, state, ticks, closed, callbacks, callbacks_wait, open_timeout, strangers, open })
    }

    /// Starts its thread.
    pub(crate) fn begin(self: &Arc<Self>) -> io::Result<()> {
        let driver = Arc::clone(self);
        sync::spawn("mcp-timer", move || driver.run())
    }

    pub(crate) fn clock(&self) -> Clock {
        self.driving.clock()
    }

    pub(crate) fn open_timeout(&self) -> Duration {
        self.open_timeout
    }

    /// Returns the number of threads of connections that have closed.
    pub(crate) fn detached(&self) -> usize {
        // The engine learns of the end of a connection first, in a report that counts it then.
        let connections: Vec<_> = self.lock().connections.values().cloned().collect();
        connections.iter().for_each(|connection| connection.wait_report());
        self.lock().detached
    }

    /// Serves an open connection on threads of its own. Returns its number.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn serve(self: &Arc<Self>, connection: DrivenConnection, stream: Stream) -> io::Result<u64> {
        let threads = self.add(connection);
        let number = threads.number();
        threads.serve(self, stream).inspect_err(|_| threads.abort(self))?;
        Ok(number)
    }

    /// Waits until a connection has closed.
    pub(crate) fn wait_closed(&self, number: u64) {
        let mut state = self.lock();
        while state.connections.contains_key(&number) {
            state = wait(&self.closed, state, None);
        }
    }

    /// Ends every connection at once, without waiting.
    pub(crate) fn abort(self: &Arc<Self>) {
        let connections: Vec<_> = self.lock().connections.values().cloned().collect();
        connections.iter().for_each(|connection| connection.abort(self));
    }

    /// Carries out the tasks of a command here, which saves waking the driver's thread first.
    pub(crate) fn carry_out_all(self: &Arc<Self>) {
        std::iter::from_fn(|| self.driving.next_task_of_command()).for_each(|task| self.carry_out(task));
    }

    /// Carries out a task of the engine. Call it without a lock.
    pub(crate) fn carry_out(self: &Arc<Self>, task: Task) {
        match task {
            Task::Open(connection, endpoint) => {
                let given = self.lock().given.take();
                self.add(connection).open(self, endpoint, given);
            }
            Task::Route(routing) => self.route(routing, false),
            // If no thread can be started, they wait for the next event.
            Task::Deliver(events) => drop(self.callbacks.events.submit(events)),
            // If no thread can be started, dropping it ends its fetches.
            Task::Drive(driving, open_timeout) => {
                drop(Self::new(driving, Callbacks::none(), open_timeout, None).begin())
            }
            Task::Ended => {}
        }
    }

    /// Carries out a task of a turn on the thread that took it, a thread of the connection. An
    /// async handler is polled here first.
    pub(crate) fn serve_task(self: &Arc<Self>, task: Task) {
        match task {
            Task::Route(routing) => self.route(routing, true),
            task => self.carry_out(task),
        }
    }

    /// Carries out a task of a turn on a thread of the application, which may hold any lock of its
    /// own: leaves requests to the driver's thread, since routing one may run a handler.
    pub(crate) fn carry_out_elsewhere(self: &Arc<Self>, task: Task) {
        match task {
            Task::Route(routing) if !routing.is_question() => {
                let mut state = self.lock();
                state.left.push(routing);
                self.wake_up(state);
            }
            task => self.carry_out(task),
        }
    }

    /// Routes a request or an admission, and passes its callback to a thread, or to the executor of
    /// the application. With `polls`, polls an async handler once before that.
    fn route(self: &Arc<Self>, routing: RouteTask, polls: bool) {
        let callbacks = &self.callbacks;
        if routing.is_question() {
            let watch = routing.watch();
            return self.submitted(callbacks.others.submit_of(0, Callback::Route(Box::new(routing)), watch, |_| true));
        }
        let Some(job) = routing.route() else { return };
        let job = match (job, &callbacks.spawn) {
            (Job::Async(job), Some(spawn)) => return spawn(Box::pin(async { drop(job.await) })),
            (job @ Job::Async(_), None) if polls && matches!(job.kind(), JobKind::Handler(_)) => poll_once(job),
            (job, _) => Some(job),
        };
        let Some(job) = job else { return };
        job.wake_on_cancel(&Waker::from(Arc::new(Prune(Arc::downgrade(self)))));
        let (kind, watch, job) = (job.kind(), job.watch(), Callback::Run(job));
        self.submitted(match kind {
            JobKind::Handler(client) => callbacks.handlers.submit_of(client, job, watch, Callback::is_wanted),
            JobKind::Admission | JobKind::Question => callbacks.others.submit_of(0, job, watch, Callback::is_wanted),
        });
    }

    /// Looks after a callback that waits, and answers one that is not run.
    fn submitted(&self, submitted: Result<bool, (Callback, Rejection)>) {
        match submitted {
            Ok(true) => self.callbacks_wait(),
            Ok(false) => {}
            // Without a thread, or cancelled in the meantime.
            Err((callback, why)) => callback.reject(why),
        }
    }

    /// Lets the driver's thread look after the callbacks that wait for a thread.
    fn callbacks_wait(&self) {
        if self.callbacks_wait.swap(true, Ordering::SeqCst) {
            return;
        }
        let mut state = self.lock();
        state.look_at = Some(self.clock().now() + self.callbacks.interval);
        self.wake_up(state);
    }

    /// Returns the number of handlers that wait for a thread.
    pub(crate) fn waiting_handlers(&self) -> usize {
        self.callbacks.handlers.waiting()
    }

    fn add(self: &Arc<Self>, connection: DrivenConnection) -> Arc<ConnectionThreads> {
        let mut state = self.lock();
        state.last += 1;
        let number = state.last;
        let threads = Arc::new(ConnectionThreads::new(number, connection, Arc::downgrade(self)));
        state.connections.insert(number, Arc::clone(&threads));
        let open = state.connections.len();
        self.open.store(open, Ordering::Relaxed);
        drop(state);
        if open == MOST_LED + 1 {
            self.call_readers();
        }
        threads
    }

    fn lock(&self) -> MutexGuard<'_, DriverState> {
        lock(&self.state)
    }
}

/// For callers that wait.
impl Driver {
    pub(crate) fn connection(&self, number: u64) -> Option<Arc<ConnectionThreads>> {
        self.lock().connections.get(&number).cloned()
    }

    /// Notices the connections that their peers have closed since a caller has read them. Call it
    /// before a request, which would be lost on one of them.
    pub(crate) fn refresh(self: &Arc<Self>) {
        if self.keeps_threads_reading() {
            return;
        }
        let (state, now) = (self.lock(), self.clock().now());
        let stale = state.connections.values().filter(|connection| connection.is_stale(now));
        let stale: Vec<_> = stale.cloned().collect();
        drop(state);
        stale.iter().for_each(|connection| connection.read_waiting(self));
    }

    /// Runs the wait of a caller that does not know the connection of its answer: meanwhile a
    /// thread reads each connection that no caller reads.
    pub(crate) fn as_stranger(&self, wait: impl FnOnce()) {
        self.strangers.fetch_add(1, Ordering::SeqCst);
        self.call_readers();
        wait();
        self.strangers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Lets the threads read that leave their connections to callers.
    fn call_readers(&self) {
        let connections: Vec<_> = self.lock().connections.values().cloned().collect();
        connections.iter().for_each(|connection| connection.call_reader());
    }

    /// Returns whether the threads of connections read, whatever callers wait for.
    pub(crate) fn keeps_threads_reading(&self) -> bool {
        self.strangers.load(Ordering::SeqCst) > 0 || self.open.load(Ordering::Relaxed) > MOST_LED
    }
}

/// For the threads of connections.
impl Driver {
    /// Records the deadline of a connection, unless it is later than a known one: the driver looks
    /// again at that time. Deadlines move with every message, and this takes the lock of the
    /// driver.
    pub(crate) fn set_due(&self, number: u64, known: &mut Option<Instant>, due: Option<Instant>) {
        let is_known = match (*known, due) {
            (Some(known), due) => due.is_none_or(|due| known <= due) && self.clock().now() < known,
            (None, due) => due.is_none(),
        };
        if is_known {
            return;
        }
        let mut state = self.lock();
        let first = state.due.first().map(|(at, _)| *at);
        if let Some(before) = known.take() {
            state.due.remove(&(before, number));
        }
        state.due.extend(due.map(|due| (due, number)));
        *known = due;
        if due.is_some_and(|due| first.is_none_or(|first| due < first)) {
            self.wake_up(state);
        }
    }

    /// Lets the driver's thread take a turn of a connection.
    pub(crate) fn take_turn_of(&self, number: u64) {
        let mut state = self.lock();
        state.turns.insert(number);
        self.wake_up(state);
    }

    /// Removes a connection that has closed. `threads` of it remain.
    pub(crate) fn closed(&self, number: u64, due: Option<Instant>, threads: usize) {
        let mut state = self.lock();
        let connection = state.connections.remove(&number);
        self.open.store(state.connections.len(), Ordering::Relaxed);
        if let Some(due) = due {
            state.due.remove(&(due, number));
        }
        state.detached += threads;
        drop(state);
        self.closed.notify_all();
        // Outside of the lock.
        drop(connection);
    }

    /// A thread of a connection that has closed has ended.
    pub(crate) fn detached_ended(&self) {
        self.lock().detached -= 1;
    }
}

/// The thread of the driver.
impl Driver {
    fn run(self: Arc<Self>) {
        let waker = Waker::from(Arc::clone(&self));
        loop {
            while let Some(task) = self.driving.next_task() {
                if let Task::Ended = task {
                    return self.end();
                }
                self.carry_out(task);
            }
            let (turns, left, prunes, looks) = self.take_turns();
            // None of them is kept while this thread sleeps.
            turns.into_iter().for_each(|connection| connection.turn(&self));
            left.into_iter().for_each(|routing| self.route(routing, false));
            if prunes {
                self.callbacks.handlers.retain(Callback::is_wanted);
                self.callbacks.others.retain(Callback::is_wanted);
            }
            if prunes || looks {
                self.look_after_callbacks();
            }
            let next = self.driving.poll_timeout();
            if next.is_some_and(|next| next <= self.clock().now()) {
                self.driving.handle_timeout();
            } else if self.driving.poll_woken(&mut Context::from_waker(&waker)).is_pending() {
                self.sleep(next);
            }
        }
    }

    /// Starts threads in place of those whose jobs do not return, and answers the requests that
    /// have waited for a thread for too long.
    fn look_after_callbacks(&self) {
        // One that waits from now on asks for another look.
        self.callbacks_wait.store(false, Ordering::SeqCst);
        if self.waiting_handlers() > 0 {
            self.driving.mark_unheard();
        }
        let now = self.clock().now();
        let (look, others) = (self.callbacks.handlers.tick(now), self.callbacks.others.tick(now));
        if look.gets_stuck || !look.rejected.is_empty() {
            let (running, abandoned, rejected) = (look.running, look.abandoned, look.rejected.len());
            self.driving.handlers_stuck(StuckHandlers { running, abandoned, rejected });
        }
        look.rejected.into_iter().chain(others.rejected).for_each(|(callback, why)| callback.reject(why));
        if look.waiting + others.waiting > 0 {
            self.callbacks_wait();
        }
    }

    /// Returns the connections that need a turn, or whose timers are due, the requests that were
    /// left, whether jobs were cancelled, and whether to look after callbacks that wait.
    fn take_turns(&self) -> (Vec<Arc<ConnectionThreads>>, Vec<RouteTask>, bool, bool) {
        let (mut state, now) = (self.lock(), self.clock().now());
        let mut turns = take(&mut state.turns);
        turns.extend(state.due.iter().take_while(|(at, _)| *at <= now).map(|(_, number)| *number));
        let turns = turns.iter().filter_map(|number| state.connections.get(number).cloned()).collect();
        let looks = state.look_at.take_if(|at| *at <= now).is_some();
        (turns, take(&mut state.left), take(&mut state.prunes), looks)
    }

    /// Sleeps until a timer is due, or until it is woken.
    fn sleep(&self, engine: Option<Instant>) {
        let mut state = self.lock();
        if !state.woken {
            let connections = state.due.first().map(|(at, _)| *at);
            let next = engine.into_iter().chain(connections).chain(state.look_at).min();
            let limit = next.map(|next| next.since(self.clock().now()));
            state.sleeps = true;
            state = wait(&self.ticks, state, limit);
            state.sleeps = false;
        }
        state.woken = false;
    }

    /// Lets the driver's thread look again.
    fn wake_up(&self, mut state: MutexGuard<'_, DriverState>) {
        state.woken = true;
        let sleeps = state.sleeps;
        drop(state);
        // A signal is a system call, also if no thread waits for it.
        if sleeps {
            self.ticks.notify_all();
        }
    }

    /// The engine has ended: drops what it does not need any more.
    fn end(&self) {
        self.callbacks.handlers.retain(Callback::is_wanted);
        self.callbacks.others.retain(Callback::is_wanted);
        let mut state = self.lock();
        let kept = (state.given.take(), take(&mut state.left));
        drop(state);
        // Outside of the lock.
        drop(kept);
    }
}

impl Wake for Driver {
    fn wake(self: Arc<Self>) {
        self.wake_up(self.lock());
    }
}

/// Polls an async job for the first time. Returns it if it has not ended: a thread that is parked
/// while it waits polls it again, so that this waker wakes nothing.
fn poll_once(job: Job) -> Option<Job> {
    let Job::Async(mut job) = job else { return Some(job) };
    match Pin::new(&mut job).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Pending => Some(Job::Async(job)),
        // Dropping the result sends it.
        Poll::Ready(finished) => {
            drop(finished);
            None
        }
    }
}

/// Lets the driver drop the jobs that are cancelled, and start threads in place of those that run.
/// They may hold anything of the application, so this happens in its thread.
struct Prune(Weak<Driver>);

impl Wake for Prune {
    fn wake(self: Arc<Self>) {
        if let Some(driver) = self.0.upgrade() {
            driver.lock().prunes = true;
            driver.wake();
        }
    }
}

#[cfg(all(test, unix, feature = "http", not(shuttle)))]
mod tests;
