//! What the handles, the driver and the connections of one client share.

use super::super::events::{WaitingEvents, deliver};
use super::super::{Attention, Delay, Deliver, Events, Role, Routing, RoutingKind, Task};
use crate::adapter::ConnectError;
use crate::adapter::asking::ClientLink;
use crate::adapter::client_core::{ClientCore, ClientTask};
use crate::adapter::client_options::{
    ClientCallbacks, ClientEventCallback, ClientOptions, NoticeCallback, Observed, Observer,
};
use crate::adapter::os::{Clock, seed};
use crate::adapter::sync::{Mutex, MutexGuard, guarded, lock};
use crate::adapter::tls::TlsConnector;
use crate::adapter::watch::Watchers;
use crate::client::{ClientConfig, Event, Termination};
use crate::error::Refusal;
use crate::exchange::{Action, Closed, ConnectionId, IoEvent};
use crate::input::ClientCommand;
use crate::process::Stderr;
use crate::stats::ClientStats;
use crate::time::Instant;
use crate::wired::ConnectionOutput;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::ToString;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::mem::take;
use core::task::{Poll, Waker};
use core::time::Duration;

/// Time for the end of a client beyond the time limits of its shutdown.
const MARGIN: Duration = Duration::from_secs(1);

/// Maximum of [`ClientShared::end_time`]. A longer time could overflow an instant of the system,
/// and is never needed.
const MAX_END_TIME: Duration = Duration::from_secs(3600);

pub(in crate::adapter::front) struct ClientShared {
    pub(in crate::adapter::front) clock: Clock,
    pub(super) delay: Delay,
    connector: TlsConnector,
    observer: Option<Observer>,
    state: Mutex<ClientState>,
    /// Waiters for the start or the end of the client.
    watchers: Watchers,
}

pub(super) struct ClientState {
    pub(super) core: ClientCore,
    /// Connections to open, and questions to route.
    tasks: VecDeque<ClientTask>,
    connections: BTreeMap<ConnectionId, Outputs>,
    events: WaitingEvents<Action<Event>>,
    /// `None` once the client has ended: one of them may hold the client.
    callbacks: Option<Arc<ClientCallbacks>>,
    stderr: Stderr,
    attention: Attention,
    later: Later,
    is_observed: bool,
    /// Those that wait for the start know that it took too long.
    is_overdue: bool,
    /// The driver has begun to carry out tasks.
    begun: bool,
    /// The driver was dropped, or must not begin.
    pub(super) abandoned: bool,
    /// The driver knows that the client has ended.
    ended: bool,
    /// The exit code of this process once the client has ended.
    pub(super) exit: Option<i32>,
    pub(super) on_drop: Option<Box<dyn FnOnce() + Send>>,
}

/// The outputs that wait for the driver of a connection, and its waker.
#[derive(Default)]
struct Outputs {
    queue: VecDeque<ConnectionOutput>,
    waker: Option<Waker>,
}

/// The result of the second step of a turn.
pub(in crate::adapter::front) struct Exchanged {
    pub(in crate::adapter::front) outputs: VecDeque<ConnectionOutput>,
    /// The connection has to be aborted.
    pub(in crate::adapter::front) stopped: bool,
    /// There is a task, which the driver of the connection carries out.
    pub(in crate::adapter::front) has_task: bool,
}

/// What to do once the lock is released.
#[derive(Default)]
struct Later {
    /// Callbacks to cancel and waiters to wake.
    tasks: Vec<ClientTask>,
    connections: Vec<Waker>,
    /// For the observer.
    observed: Vec<Observed>,
    milestone: bool,
}

impl ClientShared {
    pub(super) fn new(
        mut config: ClientConfig,
        mut options: ClientOptions,
        delay: Delay,
    ) -> Result<Arc<Self>, ConnectError> {
        let clock = Clock::start();
        config.origin_unix = clock.unix();
        let seed = seed().map_err(|e| ConnectError::System(e.to_string()))?;
        let engine = options.create(config, seed, clock.now());
        let limits = &engine.client().config().limits.client;
        let max = (limits.max_queued_events, limits.max_queued_event_bytes);
        let callback = one_callback(options.take_event(), options.take_notice());
        let observer = options.take_observer();
        Ok(Arc::new_cyclic(|this: &Weak<Self>| {
            let this = this.clone();
            let link: ClientLink = Arc::new(move |command| this.upgrade().ok_or(Refusal::Gone)?.command(command));
            let state = ClientState {
                core: ClientCore::new(engine, link),
                tasks: VecDeque::new(),
                connections: BTreeMap::new(),
                events: WaitingEvents::new(callback, max),
                callbacks: Some(Arc::new(options.take_callbacks())),
                stderr: options.take_stderr(),
                attention: Attention::default(),
                later: Later::default(),
                is_observed: observer.is_some(),
                is_overdue: false,
                begun: false,
                abandoned: false,
                ended: false,
                exit: None,
                on_drop: None,
            };
            let connector = options.connector();
            Self { clock, delay, connector, observer, state: Mutex::new(state), watchers: Watchers::default() }
        }))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ClientState> {
        lock(&self.state)
    }

    /// Changes the state, and wakes those that wait for what has changed.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut ClientState, Instant) -> T) -> T {
        self.change(true, change).0
    }

    /// As [`with`](Self::with). Also returns whether there is a task. With `tasks`, wakes the
    /// driver for it; otherwise the caller carries it out.
    fn change<T>(&self, tasks: bool, change: impl FnOnce(&mut ClientState, Instant) -> T) -> (T, bool) {
        let mut state = self.lock();
        let changed = change(&mut state, self.clock.now());
        state.sort();
        let (due, has_task) = (state.core.poll_timeout(), state.has_task());
        let ends = state.ends();
        let driver = state.attention.check(due, (tasks && has_task) || ends);
        let later = take(&mut state.later);
        drop(state);
        // First, so that it usually learns of the end of a connection before the calls that ended
        // with it are woken. They are woken whatever it does.
        if let Some(observer) = &self.observer {
            for observed in later.observed {
                let _ = guarded(|| observer(observed));
            }
        }
        for task in later.tasks {
            match task {
                ClientTask::Cancel(cancelled) => cancelled.wake(),
                ClientTask::Wake(waker) => waker.wake(),
                other => drop(other),
            }
        }
        later.connections.into_iter().chain(driver).for_each(Waker::wake);
        if later.milestone {
            self.watchers.wake();
        }
        (changed, has_task)
    }

    /// Returns how a connection begins TLS.
    pub(in crate::adapter::front) fn connector(&self) -> TlsConnector {
        self.connector.clone()
    }

    /// Returns the destination of a program's standard error.
    pub(in crate::adapter::front) fn stderr(&self) -> Stderr {
        self.lock().stderr.clone()
    }

    pub(super) fn stats(&self) -> ClientStats {
        let state = self.lock();
        let mut stats = state.core.engine().stats();
        let (waiting, (notifications, diagnostics)) = state.events.counts();
        stats.queued += waiting;
        // With a callback, events that the engine lost have been counted here as well.
        stats.lost_notifications = stats.lost_notifications.max(notifications);
        stats.lost_diagnostics = stats.lost_diagnostics.max(diagnostics);
        stats
    }

    fn command(&self, command: ClientCommand) -> Result<(), Refusal> {
        self.with(|state, now| state.core.command(now, command))
    }

    pub(super) fn close(&self) {
        let abandoned = self.with(|state, now| {
            state.core.close(now);
            state.abandoned |= !state.begun;
            state.abandoned
        });
        if abandoned {
            // Nothing was started, so there is nothing to end.
            self.abandon();
        }
    }

    /// Closes the client, and waits for its end.
    pub(super) async fn end(&self) -> Termination {
        self.close();
        self.watch(|state| state.core.terminated().cloned()).await
    }

    /// Waits for the end, also if the process exits with this client.
    pub(super) async fn ended(&self) {
        self.watchers.watch(|| self.lock().core.terminated().map(drop)).await;
    }

    /// Waits until `look` returns a value. Waits forever if the process exits with this client
    /// ([`Closer::exit`](super::Closer::exit)).
    pub(super) async fn watch<T>(&self, mut look: impl FnMut(&ClientState) -> Option<T>) -> T {
        let look = || {
            let state = self.lock();
            if state.exit.is_some() { None } else { look(&state) }
        };
        self.watchers.watch(look).await
    }

    /// Returns the maximum time until everything has ended, plus a margin.
    pub(super) fn end_time(&self) -> Duration {
        let limits = self.lock().core.engine().client().config().limits.end_time();
        limits.saturating_add(MARGIN).min(MAX_END_TIME)
    }
}

impl Deliver for ClientShared {
    fn deliver(&self) {
        deliver(|before| self.lock().events.next(before));
    }

    fn unclaim_events(&self) {
        self.lock().events.unclaim();
    }
}

impl Role for ClientShared {
    fn name(&self) -> &'static str {
        "Client"
    }

    fn clock(&self) -> Clock {
        self.clock
    }

    fn next_task(self: Arc<Self>) -> Option<Task> {
        let mut state = self.lock();
        let before = state.attention.awake();
        let begins = !state.begun && !state.abandoned;
        state.begun |= begins;
        drop(state);
        // Outside of the lock: it may be the last waker of a task that holds a client.
        drop(before);
        if begins {
            self.with(|_, _| {});
        }
        self.next_task_of_connection().or_else(|| {
            let mut state = self.lock();
            if !state.ends() {
                return None;
            }
            state.ended = true;
            let kept = (state.callbacks.take(), take(&mut state.stderr), state.events.finish());
            drop(state);
            // Outside of the lock: one of them may hold the client.
            drop(kept);
            Some(Task::Ended)
        })
    }

    fn next_task_of_command(self: Arc<Self>) -> Option<Task> {
        self.next_task_of_connection()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let mut state = self.lock();
        let due = state.core.poll_timeout();
        state.attention.look(due)
    }

    fn handle_timeout(&self) {
        self.with(|state, now| state.core.handle_timeout(now));
    }

    fn poll_woken(&self, waker: &Waker) -> Poll<()> {
        let mut state = self.lock();
        let has_task = state.has_task();
        let (polled, before) = state.attention.poll(has_task, waker);
        drop(state);
        // Outside of the lock: it may be the last waker of a task that holds a client.
        drop(before);
        polled
    }

    /// Ends everything: the driver is gone.
    fn abandon(&self) {
        let kept = self.with(|state, now| {
            let had_ended = state.core.terminated().is_some();
            (state.abandoned, state.begun) = (true, true);
            let connections = take(&mut state.connections);
            state.core.abandon(now, connections.keys().copied());
            // Their drivers abort them.
            state.later.connections.extend(connections.into_values().filter_map(|connection| connection.waker));
            state.sort();
            state.later.milestone = true;
            if let (true, false, Some(why)) = (state.is_observed, had_ended, state.core.terminated()) {
                let observed = Observed::Terminated(why.clone());
                state.later.observed.push(observed);
            }
            let options = (state.callbacks.take(), take(&mut state.stderr), state.on_drop.take());
            // Somebody may still deliver the last events of a client that has ended.
            let callback = if had_ended { state.events.finish() } else { state.events.clear() };
            (take(&mut state.tasks), callback, options)
        });
        // Outside of the lock: they may hold the client.
        drop(kept);
    }
}

/// For the driver of a connection.
impl ClientShared {
    pub(in crate::adapter::front) fn next_task_of_connection(self: &Arc<Self>) -> Option<Task> {
        let mut state = self.lock();
        if !state.begun {
            return None;
        }
        match state.tasks.pop_front() {
            Some(ClientTask::Open(id, endpoint)) => Some(Task::open(Arc::clone(self), id, endpoint)),
            Some(ClientTask::Ask(asking)) => {
                let callbacks = state.callbacks.clone().unwrap_or_default();
                Some(Task::Route(Routing(RoutingKind::Asking(asking, callbacks))))
            }
            _ => state.events.claim().then(|| Task::Deliver(Events::new(Arc::clone(self) as _))),
        }
    }

    /// The second step of a turn: reports what happened to a connection, and returns the outputs
    /// for it. Registers the waker of its driver.
    pub(in crate::adapter::front) fn exchange(
        &self,
        id: ConnectionId,
        event: Option<IoEvent>,
        waker: &Waker,
    ) -> Exchanged {
        let ((outputs, stopped, before), has_task) = self.change(false, |state, now| {
            // The client does not know the connection any more: it has closed, or the client has
            // ended at once.
            let Some(connection) = state.connections.get_mut(&id) else {
                return (VecDeque::new(), state.abandoned, None);
            };
            // The driver of this connection is awake.
            let mut before = connection.waker.take();
            if let Some(event) = event {
                if matches!(event, IoEvent::Closed(_)) {
                    state.connections.remove(&id);
                }
                state.core.handle_io(now, id, event);
                state.sort();
            }
            let Some(connection) = state.connections.get_mut(&id) else { return (VecDeque::new(), false, before) };
            match &before {
                Some(known) if known.will_wake(waker) => connection.waker = before.take(),
                _ => connection.waker = Some(waker.clone()),
            }
            (take(&mut connection.queue), false, before)
        });
        // Outside of the lock: it may be the last waker of a task that holds a client.
        drop(before);
        Exchanged { outputs, stopped, has_task }
    }

    /// Reports that the driver has dropped a connection.
    pub(in crate::adapter::front) fn dropped(&self, id: ConnectionId) {
        let before = self.with(|state, now| {
            let connection = state.connections.remove(&id)?;
            state.core.handle_io(now, id, IoEvent::Closed(Closed::Aborted));
            connection.waker
        });
        drop(before);
    }
}

impl ClientState {
    /// Takes the tasks of the core, and sorts them by who carries them out.
    fn sort(&mut self) {
        while let Some(task) = self.core.next_task() {
            match task {
                ClientTask::Open(id, _) => {
                    self.connections.insert(id, Outputs::default());
                    self.tasks.push_back(task);
                }
                ClientTask::Act(id, output) => {
                    if let Some(connection) = self.connections.get_mut(&id) {
                        connection.queue.push_back(output);
                        self.later.connections.extend(connection.waker.take());
                    }
                }
                ClientTask::Ask(_) => self.tasks.push_back(task),
                ClientTask::Cancel(_) | ClientTask::Wake(_) => self.later.tasks.push(task),
                ClientTask::Event(event) => {
                    self.later.milestone |= matches!(event, Event::Ready(_) | Event::Terminated(_));
                    if self.is_observed {
                        self.later.observed.extend(Observed::of(&event));
                    }
                    self.events.push(Action::Event(event));
                }
                ClientTask::Notice(id, notice) => self.events.push(Action::Notice(id, notice)),
            }
        }
        if !self.is_overdue && self.core.overdue().is_some() {
            (self.is_overdue, self.later.milestone) = (true, true);
        }
    }

    fn has_task(&self) -> bool {
        self.begun && (!self.tasks.is_empty() || self.events.wait() || self.ends())
    }

    fn ends(&self) -> bool {
        self.core.terminated().is_some() && !self.ended
    }
}

/// Returns the callbacks for events and for changes of connections as one.
fn one_callback(
    mut event: Option<ClientEventCallback>,
    mut notice: Option<NoticeCallback>,
) -> Option<Box<dyn FnMut(Action<Event>) + Send>> {
    if event.is_none() && notice.is_none() {
        return None;
    }
    Some(Box::new(move |action| match (action, &mut event, &mut notice) {
        (Action::Event(happened), Some(event), _) => event(happened),
        (Action::Notice(connection, happened), _, Some(notice)) => notice(connection, happened),
        _ => {}
    }))
}
