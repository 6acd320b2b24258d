//! The state that the connections of one server share. The engine is behind a lock that is held
//! only for synchronous calls; parsing, framing and serialization happen outside of it. Pending
//! handlers are separate tasks. The engine decides which of them outlive their connection.

use crate::ServerEvent;
use crate::clock::{Alarm, Clock, seed};
use crate::sync::{Mutex, MutexGuard, Watchers, guarded, lock};
use mcp_proto::adapter::{AsyncJob, Cancelled, Finished, Job, Link, Running, ServerOptions, Spawn, Work};
use mcp_proto::input::ServerCommand;
use mcp_proto::server::Event;
use mcp_proto::stats::ServerStats;
use mcp_proto::wired::SharedServer;
use mcp_proto::{Instant, Refusal, Router};
use smol::future::Future;
use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

pub(crate) struct Shared {
    router: Router,
    options: ServerOptions,
    /// The way of handlers to the engine.
    link: Link,
    pub(crate) clock: Clock,
    state: Mutex<State>,
    /// Waiters for the end.
    watchers: Watchers,
    spawn: Arc<Spawn>,
    /// Time for an orderly close of a connection.
    pub(crate) linger: Duration,
}

pub(crate) struct State {
    pub(crate) engine: SharedServer,
    event: Option<Box<dyn FnMut(ServerEvent) + Send>>,
    running: Running,
    /// The tasks of the open connections, by connection.
    pub(crate) connections: BTreeMap<u64, Option<Waker>>,
    /// Number of listeners.
    pub(crate) listeners: usize,
    /// The task that fires the engine's timers.
    keeper: Option<Waker>,
    /// Nothing more is accepted.
    pub(crate) closing: bool,
    /// Everything has to end at once.
    pub(crate) stopped: bool,
}

/// What to do once the lock is released.
#[derive(Default)]
struct Todo {
    woken: Vec<Waker>,
    work: Vec<Work>,
    cancelled: Vec<Cancelled>,
    over: bool,
}

impl Shared {
    /// Creates a server whose handlers run with `spawn`. `None` uses the option of the application.
    pub(crate) fn new(router: Router, mut options: ServerOptions, spawn: Option<Arc<Spawn>>) -> io::Result<Arc<Self>> {
        let (clock, mut config) = (Clock::start(), router.config());
        config.origin_unix = clock.unix();
        options.configure(&mut config);
        let linger = config.limits.frame.linger_timeout;
        let state = State {
            engine: SharedServer::new(Arc::new(config), seed()?, clock.now()),
            event: options.take_event(),
            running: Running::default(),
            connections: BTreeMap::new(),
            listeners: 0,
            keeper: None,
            closing: false,
            stopped: false,
        };
        let spawn = spawn.or_else(|| options.spawn().cloned()).unwrap_or_else(|| Arc::new(crate::sync::spawn));
        Ok(Arc::new_cyclic(|this: &Weak<Self>| {
            let this = this.clone();
            let link: Link = Arc::new(move |command| this.upgrade().ok_or(Refusal::Gone)?.command(command));
            Self {
                router,
                options,
                link,
                clock,
                state: Mutex::new(state),
                watchers: Watchers::default(),
                spawn,
                linger,
            }
        }))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Returns a snapshot of the server's numbers.
    pub(crate) fn stats(&self) -> ServerStats {
        let state = self.lock();
        let mut stats = state.engine.stats();
        stats.abandoned_handlers += state.running.abandoned();
        stats
    }

    /// Passes a task to the executor.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        (self.spawn)(Box::pin(task));
    }

    /// Applies a command of a callback to the engine.
    fn command(self: &Arc<Self>, command: ServerCommand) -> Result<(), Refusal> {
        let (done, closing) = self.with_state(|state, now| {
            state.running.answered(&command);
            (state.engine.command(now, command).map(drop), state.closing)
        });
        if closing {
            self.changed();
        }
        done.map_err(|refused| refused.why)
    }

    /// Applies a command to the engine, wakes the affected tasks, and starts handlers.
    pub(crate) fn tell<T>(self: &Arc<Self>, tell: impl FnOnce(&mut SharedServer, Instant) -> T) -> T {
        self.with_state(|state, now| tell(&mut state.engine, now))
    }

    /// As [`tell`](Self::tell), with all that the lock guards.
    pub(crate) fn with_state<T>(self: &Arc<Self>, tell: impl FnOnce(&mut State, Instant) -> T) -> T {
        let (mut guard, mut todo) = (self.lock(), Todo::default());
        let before = guard.engine.poll_timeout();
        let told = tell(&mut guard, self.clock.now());
        guard.collect(&self.link, &mut todo);
        if guard.engine.poll_timeout() != before {
            todo.woken.extend(guard.keeper.take());
        }
        drop(guard);
        todo.cancelled.into_iter().for_each(Cancelled::wake);
        todo.woken.into_iter().for_each(Waker::wake);
        if todo.over {
            self.changed();
        }
        todo.work.into_iter().for_each(|work| self.work(work));
        told
    }

    /// Fires the engine's timers if they are due, and returns whether they were. The task that
    /// polls this fires the timers from now on.
    pub(crate) fn poll_time(self: &Arc<Self>, cx: &mut Context<'_>, alarm: &mut Alarm) -> bool {
        let (deadline, before) = {
            let mut state = self.lock();
            let before = state.keeper.replace(cx.waker().clone());
            (state.engine.poll_timeout(), before)
        };
        drop(before);
        let due = alarm.poll(cx, self.clock, deadline);
        if due {
            self.tell(|engine, now| engine.handle_timeout(now));
        }
        due
    }

    /// Accepts nothing more, and gives running requests `grace` to end.
    pub(crate) fn shut_down(self: &Arc<Self>, grace: Duration) {
        self.lock().closing = true;
        self.tell(|engine, now| engine.shutdown(now, grace));
        self.changed();
    }

    /// Ends everything at once.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        (state.closing, state.stopped) = (true, true);
        let mut woken: Vec<_> = state.connections.values_mut().filter_map(Option::take).collect();
        woken.extend(state.keeper.take());
        let cancelled: Vec<_> = state.running.cancel_all().collect();
        drop(state);
        cancelled.into_iter().for_each(Cancelled::wake);
        woken.into_iter().for_each(Waker::wake);
        self.changed();
    }

    /// Returns whether the server has nothing left to do.
    pub(crate) fn is_ending(&self) -> bool {
        let state = self.lock();
        state.stopped || state.engine.is_terminated()
    }

    /// Waits until the state is so.
    pub(crate) async fn wait_until(&self, is_so: impl Fn(&State) -> bool) {
        self.watchers.watch(|| is_so(&self.lock()).then_some(())).await;
    }

    /// Wakes the waiters after a change.
    pub(crate) fn changed(&self) {
        self.watchers.wake();
    }

    /// Waits until no connection and no handler is left, and none can be added.
    pub(crate) async fn over(&self) {
        self.wait_until(|state| {
            let ending = state.stopped || state.engine.is_terminated();
            let none_left = state.connections.is_empty() && state.running.is_empty() && state.listeners == 0;
            ending && none_left
        })
        .await;
    }

    pub(crate) fn leave(&self, connection: u64) {
        let waker = self.lock().connections.remove(&connection);
        // Outside of the lock: it may be the last waker of a task that holds a server.
        drop(waker);
        self.changed();
    }

    /// Routes a request or an admission: on the executor, a large one would delay the other tasks.
    fn work(self: &Arc<Self>, work: Work) {
        if work.takes_long() {
            let server = self.clone();
            return smol::unblock(move || server.route(work)).detach();
        }
        self.route(work);
    }

    fn route(&self, work: Work) {
        match work.route(&self.router, &self.options) {
            Some(Job::Async(job)) => self.run(job),
            Some(Job::Sync(job)) => smol::unblock(move || job.run()).detach(),
            None => {}
        }
    }

    /// Runs a future of the application: here, if it completes at once, which saves a task;
    /// otherwise as a task.
    fn run(&self, mut job: AsyncJob) {
        match Pin::new(&mut job).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(finished) => finish(finished),
            Poll::Pending => self.spawn(async { finish(job.await) }),
        }
    }
}

/// Serializes a result, and passes it to the engine.
fn finish(finished: Finished) {
    if finished.takes_long() {
        return smol::unblock(move || drop(finished)).detach();
    }
    drop(finished);
}

impl State {
    /// Takes the events of the engine, and the wakers of the connections for which it has
    /// something.
    fn collect(&mut self, link: &Link, todo: &mut Todo) {
        while let Some(event) = self.engine.poll_event() {
            match event {
                Event::Request(responder, incoming) => todo.work.push(self.running.begin(link, responder, incoming)),
                Event::Admit(token, head) => todo.work.push(self.running.admit(link, token, head)),
                Event::Cancelled(key) => todo.cancelled.push(self.running.cancel(key)),
                Event::AdmitWithdrawn(key) => todo.cancelled.push(self.running.withdraw(key)),
                Event::Terminated => {
                    todo.cancelled.extend(self.running.cancel_all());
                    todo.woken.extend(self.connections.values_mut().filter_map(Option::take));
                    todo.woken.extend(self.keeper.take());
                    todo.over = true;
                }
                other => {
                    if let Some(told) = &mut self.event {
                        guarded(|| told(other));
                    }
                }
            }
        }
        while let Some(connection) = self.engine.poll_woken() {
            todo.woken.extend(self.connections.get_mut(&connection).and_then(Option::take));
        }
    }
}
