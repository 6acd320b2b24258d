//! The state that the connections of one server share. The engine is behind a lock that is held
//! only for synchronous calls; parsing, framing and serialization happen outside of it. Pending
//! handlers are separate tasks. The engine decides which of them outlive their connection.

use crate::ServerEvent;
use crate::clock::{Alarm, Clock, seed};
use crate::config::Service;
use crate::future::Spawn;
use crate::handler::Handler;
use crate::sync::{Mutex, MutexGuard, Watchers, guarded, lock};
use crate::work::{Running, Work};
use mcp_proto::exchange::RequestHead;
use mcp_proto::input::{Admission, AdmitKey, AdmitToken, Answer, RequestKey};
use mcp_proto::route::Routed;
use mcp_proto::server::{Event, Incoming, Responder};
use mcp_proto::stats::ServerStats;
use mcp_proto::wired::SharedServer;
use mcp_proto::{Cx, Instant, Outcome, Refusal, Router};
use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

pub(crate) struct Shared {
    router: Router<Handler>,
    pub(crate) clock: Clock,
    state: Mutex<State>,
    /// Waiters for the end.
    watchers: Watchers,
    spawn: Box<Spawn>,
    admit: Option<Box<crate::config::Admit>>,
    admit_timeout: Duration,
    /// Time for an orderly close of a connection.
    pub(crate) linger: Duration,
}

pub(crate) struct State {
    pub(crate) engine: SharedServer,
    event: Option<Box<dyn FnMut(ServerEvent) + Send>>,
    /// Requests with a running handler.
    running: BTreeMap<RequestKey, Arc<Running>>,
    /// Requests and connections that wait for the application's admission, by connection.
    asked: BTreeMap<(u64, AdmitKey), Arc<Running>>,
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

impl Shared {
    /// Creates a server whose handlers run with `spawn`. `None` uses the option of the service.
    pub(crate) fn new(service: Service, spawn: Option<Box<Spawn>>) -> io::Result<Arc<Self>> {
        let clock = Clock::start();
        let Service { router, mut config, event, spawn: own, .. } = service;
        config.origin_unix = clock.unix();
        let linger = config.limits.frame.linger_timeout;
        let admit_timeout = config.limits.server.admit_timeout;
        let state = State {
            engine: SharedServer::new(Arc::new(config), seed()?, clock.now()),
            event,
            running: BTreeMap::new(),
            asked: BTreeMap::new(),
            connections: BTreeMap::new(),
            listeners: 0,
            keeper: None,
            closing: false,
            stopped: false,
        };
        Ok(Arc::new(Self {
            router,
            clock,
            state: Mutex::new(state),
            watchers: Watchers::default(),
            spawn: spawn.or(own).unwrap_or_else(|| Box::new(crate::sync::spawn)),
            admit: service.admit,
            admit_timeout,
            linger,
        }))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Returns a snapshot of the server's numbers.
    pub(crate) fn stats(&self) -> ServerStats {
        let state = self.lock();
        let mut stats = state.engine.stats();
        // A cancelled future counts until its task has dropped it.
        stats.abandoned_handlers += state.running.values().filter(|running| running.was_cancelled()).count();
        stats
    }

    /// Passes a task to the executor.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        (self.spawn)(Box::pin(task));
    }

    /// Applies a command to the engine, wakes the affected tasks, and starts handlers.
    pub(crate) fn tell<T>(self: &Arc<Self>, tell: impl FnOnce(&mut SharedServer, Instant) -> T) -> T {
        self.with_state(0, |state, now| tell(&mut state.engine, now))
    }

    /// As [`tell`](Self::tell), with all that the lock guards. The engine's requests for admission
    /// come from this connection.
    pub(crate) fn with_state<T>(self: &Arc<Self>, connection: u64, tell: impl FnOnce(&mut State, Instant) -> T) -> T {
        let mut guard = self.lock();
        let state = &mut *guard;
        let before = state.engine.poll_timeout();
        let told = tell(state, self.clock.now());
        let (mut woken, mut requests, mut cancelled, mut over) = (Vec::new(), Vec::new(), Vec::new(), false);
        let mut admissions = Vec::new();
        while let Some(event) = state.engine.poll_event() {
            match event {
                Event::Request(responder, incoming) => {
                    let running = Arc::<Running>::default();
                    state.running.insert(responder.key(), running.clone());
                    cancelled.extend(state.stopped.then(|| running.clone()));
                    requests.push((responder, incoming, running));
                }
                Event::Admit(token, head) => admissions.push((token, head)),
                Event::Cancelled(key) => cancelled.extend(state.running.get(&key).cloned()),
                Event::Terminated => {
                    woken.extend(state.connections.values_mut().filter_map(Option::take));
                    woken.extend(state.keeper.take());
                    over = true;
                }
                other => {
                    if let Some(told) = &mut state.event {
                        guarded(|| told(other));
                    }
                }
            }
        }
        while let Some(connection) = state.engine.poll_woken() {
            woken.extend(state.connections.get_mut(&connection).and_then(Option::take));
        }
        if state.engine.poll_timeout() != before {
            woken.extend(state.keeper.take());
        }
        drop(guard);
        cancelled.iter().for_each(|running| running.cancel());
        woken.into_iter().for_each(Waker::wake);
        if over {
            self.changed();
        }
        requests.into_iter().for_each(|(responder, incoming, running)| self.handle(responder, incoming, running));
        admissions.into_iter().for_each(|(token, head)| self.ask_admission(connection, token, head));
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
        let cancelled: Vec<_> = state.running.values().cloned().collect();
        drop(state);
        cancelled.iter().for_each(|running| running.cancel());
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
            let none_left = none_left && state.asked.is_empty();
            ending && none_left
        })
        .await;
    }

    pub(crate) fn leave(self: &Arc<Self>, connection: u64) {
        let mut state = self.lock();
        let waker = state.connections.remove(&connection);
        // The admissions of this connection have no purpose any more.
        let asked: Vec<_> = {
            let of_connection = (connection, AdmitKey::new(0))..=(connection, AdmitKey::new(u64::MAX));
            state.asked.range(of_connection).map(|(_, asked)| asked.clone()).collect()
        };
        drop(state);
        // Outside of the lock: it may be the last waker of a task that holds a server.
        drop(waker);
        asked.iter().for_each(|asked| asked.cancel());
        self.changed();
    }

    fn handle(self: &Arc<Self>, responder: Responder, incoming: Incoming, running: Arc<Running>) {
        if responder.takes_long() {
            // On the executor it would delay the other tasks.
            let server = self.clone();
            return smol::unblock(move || server.begin(responder, incoming, running)).detach();
        }
        self.begin(responder, incoming, running);
    }

    fn begin(self: &Arc<Self>, responder: Responder, incoming: Incoming, running: Arc<Running>) {
        let key = responder.key();
        let (handler, invocation, responder) = match self.router.route(responder, incoming) {
            Routed::Answer(answer) => return self.answer(answer),
            Routed::Handle { handler, invocation, responder } => (handler, invocation, responder),
        };
        let (told, tells) = (Arc::downgrade(self), Arc::downgrade(self));
        let note = move |note| {
            let server = told.upgrade().ok_or(Refusal::Gone)?;
            server.tell(|engine, now| engine.notify(now, key, note)).map_err(|refused| refused.why)
        };
        let publish = move |change| {
            if let Some(server) = tells.upgrade() {
                server.tell(|engine, now| engine.publish(now, change));
            }
        };
        let cx = Cx::linked(invocation, running.cancelled.clone(), note, publish);
        // Serialized in the task of the handler, outside of the lock.
        let pay = move |server: &Arc<Self>, outcome: Result<Outcome, &str>| {
            let outcome = outcome.unwrap_or_else(|why| Outcome::internal(&format!("the handler {why}")));
            if responder.takes_long() {
                let server = server.clone();
                return smol::unblock(move || server.answer(responder.write(outcome))).detach();
            }
            server.answer(responder.write(outcome));
        };
        match guarded(|| (handler.0)(cx)) {
            Some(handling) => self.run(Work::new(self, running, handling, pay)),
            None => pay(self, Err("panicked")),
        }
    }

    /// Runs a future of the application: here, if it completes at once, which saves a task;
    /// otherwise as a task.
    fn run(&self, mut work: impl Future<Output = ()> + Send + Unpin + 'static) {
        if Pin::new(&mut work).poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            self.spawn(work);
        }
    }

    fn answer(self: &Arc<Self>, answer: Answer) {
        let closing = {
            let mut state = self.lock();
            state.running.remove(&answer.key());
            state.closing
        };
        self.tell(|engine, now| engine.respond(now, answer));
        if closing {
            self.changed();
        }
    }

    /// Requests the application's admission of an HTTP request or a connection. No decision means a
    /// refusal.
    fn ask_admission(self: &Arc<Self>, connection: u64, token: AdmitToken, head: Option<Arc<RequestHead>>) {
        let (peer, key, asked) = (token.peer().clone(), (connection, token.key()), Arc::<Running>::default());
        self.lock().asked.insert(key, asked.clone());
        let pay = move |server: &Arc<Self>, admission: Result<Admission, &str>| {
            let admission = admission.unwrap_or(Admission::Forbidden(None));
            let closing = {
                let mut state = server.lock();
                state.asked.remove(&key);
                state.closing
            };
            server.tell(|engine, now| engine.admit(now, token, admission));
            if closing {
                server.changed();
            }
        };
        match self.admit.as_ref().and_then(|admit| guarded(|| admit(head, peer))) {
            Some(asking) => {
                // The engine has decided by then, so a future that never completes is dropped.
                let limit = crate::clock::after(self.admit_timeout);
                let asking = smol::future::or(asking, async {
                    limit.await;
                    Admission::Forbidden(None)
                });
                self.run(Work::new(self, asked, Box::pin(asking), pay));
            }
            None => pay(self, Err("panicked")),
        }
    }
}
