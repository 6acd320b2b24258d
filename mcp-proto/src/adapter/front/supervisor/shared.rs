//! What the handles, the calls and the driver of one supervisor share.

use super::Launch;
use super::call::Reservation;
use super::options::{Resolve, SupervisorOptions};
use crate::adapter::ConnectError;
use crate::adapter::client_options::{ClientOptions, Observed};
use crate::adapter::front::client::Client;
use crate::adapter::front::events::{WaitingEvents, deliver};
use crate::adapter::front::{Attention, Deliver, Events};
use crate::adapter::os::{Clock, seed};
use crate::adapter::sync::{Mutex, guarded, lock};
use crate::adapter::watch::Watchers;
use crate::client::{ClientConfig, Termination};
use crate::error::CallError;
use crate::event_queue::{Weigh, Weight};
use crate::exchange::Closed;
use crate::supervise::{
    CallPlan, CallRefusal, Event, Generation, ListKind, Loaded, Output, ServerState, Supervisor as Decisions, Ticket,
};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::take;
use core::task::{Poll, Waker};
use core::time::Duration;

/// Maximum number of events that wait for the callback, and of the bytes that they hold.
const MAX_EVENTS: (usize, usize) = (1024, usize::MAX);

pub(super) struct Shared<L: Launch> {
    pub(super) launch: L,
    clock: Clock,
    clients: Box<dyn Fn(&str) -> ClientOptions + Send + Sync>,
    pub(super) resolve: Option<Resolve>,
    state: Mutex<State<L::Driver>>,
    watchers: Watchers,
}

pub(super) struct State<D> {
    pub(super) core: Decisions<String>,
    clients: BTreeMap<Generation, Running<D>>,
    calls: BTreeMap<Ticket, Slot<D>>,
    /// Outputs for the driver.
    tasks: VecDeque<Output<String>>,
    events: WaitingEvents<Event<String>>,
    /// Futures of the driver that have to be polled.
    woken: Vec<u64>,
    /// The keys whose synchronous callback for a configuration has not returned.
    pub(super) resolving: BTreeSet<String>,
    attention: Attention,
    later: Later<D>,
    /// The number of clients that had not ended when the supervisor was closed.
    closed: Option<usize>,
    /// No further client is started.
    is_ending: bool,
    /// Nothing is driven any more.
    has_ended: bool,
}

/// A client, and what the adapter keeps for it.
#[derive(Clone)]
pub(super) struct Running<D> {
    pub(super) client: Client,
    pub(super) driver: D,
}

/// A call: what follows, and who waits for it.
struct Slot<D> {
    next: Option<Next<D>>,
    waker: Option<Waker>,
}

/// What follows for a call.
pub(super) enum Next<D> {
    /// It runs, within this time.
    Run(Running<D>, Option<Duration>),
    Refuse(CallRefusal),
}

/// What to do once the lock is released.
struct Later<D> {
    woken: Vec<Waker>,
    /// Clients that are not needed any more: dropping one may close it.
    dropped: Vec<Running<D>>,
}

impl<L: Launch> Shared<L> {
    pub(super) fn new(mut options: SupervisorOptions, launch: L) -> Result<Arc<Self>, ConnectError> {
        let seed = seed().map_err(|e| ConnectError::System(e.to_string()))?;
        let state = State {
            core: options.create(seed),
            clients: BTreeMap::new(),
            calls: BTreeMap::new(),
            tasks: VecDeque::new(),
            events: WaitingEvents::new(options.event, MAX_EVENTS),
            woken: Vec::new(),
            resolving: BTreeSet::new(),
            attention: Attention::default(),
            later: Later::new(),
            closed: None,
            is_ending: false,
            has_ended: false,
        };
        let (clock, clients, resolve) = (Clock::start(), options.clients, options.resolve);
        let (state, watchers) = (Mutex::new(state), Watchers::default());
        Ok(Arc::new(Self { launch, clock, clients, resolve, state, watchers }))
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(super) const fn clock(&self) -> Clock {
        self.clock
    }

    /// Reads the state.
    pub(super) fn read<T>(&self, look: impl FnOnce(&Decisions<String>) -> T) -> T {
        look(&lock(&self.state).core)
    }

    /// Changes the state, and wakes those that wait for what has changed.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut State<L::Driver>, Instant) -> T) -> T {
        let mut state = lock(&self.state);
        let changed = change(&mut state, self.clock.now());
        state.sort();
        let (due, has_task) = (state.core.poll_timeout(), state.has_task());
        let driver = state.attention.check(due, has_task);
        let later = core::mem::replace(&mut state.later, Later::new());
        drop(state);
        later.woken.into_iter().chain(driver).for_each(Waker::wake);
        drop(later.dropped);
        self.watchers.wake();
        changed
    }

    /// Waits until `look` returns a value.
    pub(super) async fn watch<T>(&self, look: impl Fn(&State<L::Driver>) -> Option<T>) -> T {
        self.watchers.watch(|| look(&lock(&self.state))).await
    }

    /// Returns the client of a server that is connected.
    pub(super) fn client(&self, key: &str) -> Option<(Client, L::Driver)> {
        let state = lock(&self.state);
        let ServerState::Ready { generation, .. } = state.core.health(&String::from(key))?.state else { return None };
        state.clients.get(&generation).map(|running| (running.client.clone(), running.driver.clone()))
    }

    /// Begins a call.
    pub(super) fn reserve(self: &Arc<Self>, key: &str, plan: CallPlan) -> Result<Reservation<L>, CallRefusal> {
        let ticket = self.with(|state, now| {
            let ticket = state.core.call(now, &String::from(key), plan)?;
            state.calls.insert(ticket, Slot { next: None, waker: None });
            Ok(ticket)
        })?;
        Ok(Reservation::new(Arc::clone(self), ticket))
    }

    /// Returns what follows for a call, or registers a waker for it.
    pub(super) fn poll_next(&self, ticket: Ticket, waker: &Waker) -> Poll<Next<L::Driver>> {
        let mut state = lock(&self.state);
        let Some(slot) = state.calls.get_mut(&ticket) else { return Poll::Ready(Next::Refuse(CallRefusal::Closed)) };
        if let Some(next) = slot.next.take() {
            return Poll::Ready(next);
        }
        let before = slot.waker.replace(waker.clone());
        drop(state);
        // Outside of the lock: it may be the last waker of a task that holds the supervisor.
        drop(before);
        Poll::Pending
    }

    /// Forgets a call, whose future was dropped, or has its end.
    pub(super) fn forget(&self, ticket: Ticket) {
        let slot = self.with(|state, now| {
            state.core.cancel(now, ticket);
            state.calls.remove(&ticket)
        });
        // Outside of the lock: it may hold a client.
        drop(slot);
    }

    /// Begins to close all clients, and starts no further one. Returns them: their end is to be
    /// waited for.
    pub(super) fn begin_end(&self) -> Vec<Running<L::Driver>> {
        let clients = self.with(|state, now| {
            state.core.close(now);
            state.is_ending = true;
            take(&mut state.clients)
        });
        clients.values().for_each(|running| running.client.begin_close());
        clients.into_values().collect()
    }

    /// Nothing follows. With `delivers`, the driver still delivers the events that wait.
    pub(super) fn end(&self, delivers: bool) {
        let callback = self.with(|state, _| {
            state.has_ended = true;
            state.events.end();
            if delivers { None } else { state.events.finish() }
        });
        // Outside of the lock: it may hold anything of the application.
        drop(callback);
    }
}

/// For the driver.
impl<L: Launch> Shared<L> {
    /// Creates the client of an attempt to connect, and begins to drive it.
    pub(super) fn connect(self: &Arc<Self>, key: &str, generation: Generation, config: &ClientConfig) {
        if let Err(why) = self.try_connect(key, generation, config) {
            let why = Termination::Closed(Closed::Unreachable(why));
            self.with(|state, now| state.core.ended(now, generation, why));
        }
    }

    fn try_connect(self: &Arc<Self>, key: &str, generation: Generation, config: &ClientConfig) -> Result<(), String> {
        let options = guarded(|| (self.clients)(key)).ok_or("the function for the options of clients panicked")?;
        let this = Arc::downgrade(self);
        let options = options.observe(Box::new(move |event| {
            if let Some(this) = this.upgrade() {
                this.observe(generation, event);
            }
        }));
        let (client, driving) =
            Client::begin(config.clone(), options, self.launch.delay()).map_err(|e| e.to_string())?;
        let driver = self.launch.create(&client, driving);
        // Before it begins: as soon as it is ready, calls look for it.
        let begins = self.with(|state, _| {
            let running = Running { client, driver: driver.clone() };
            if state.is_ending || state.closed.is_some() {
                state.later.dropped.push(running);
                return false;
            }
            state.clients.insert(generation, running);
            true
        });
        if begins && let Err(why) = self.launch.begin(&driver) {
            self.with(|state, _| {
                let failed = state.clients.remove(&generation);
                state.later.dropped.extend(failed);
            });
            return Err(why.to_string());
        }
        Ok(())
    }

    /// An event of a client.
    fn observe(&self, generation: Generation, observed: Observed) {
        self.with(|state, now| match observed {
            Observed::Ready(capabilities) => state.core.ready(now, generation, &capabilities),
            Observed::Changed(change) => state.core.changed(now, generation, &change),
            Observed::PingMissed { in_a_row } => state.core.ping_missed(now, generation, in_a_row),
            Observed::SessionLost(cause) => state.core.session_lost(now, generation, cause),
            Observed::Terminated(why) => {
                state.core.ended(now, generation, why);
                let ended = state.clients.remove(&generation);
                state.later.dropped.extend(ended);
            }
        });
    }

    /// Begins to close a client.
    pub(super) fn close(&self, generation: Generation) {
        let client = lock(&self.state).clients.get(&generation).map(|running| running.client.clone());
        if let Some(client) = client {
            client.begin_close();
        }
    }

    pub(super) fn client_of(&self, generation: Generation) -> Option<Client> {
        lock(&self.state).clients.get(&generation).map(|running| running.client.clone())
    }

    /// A load of the driver has ended.
    pub(super) fn loaded(&self, generation: Generation, list: ListKind, outcome: Result<Loaded, CallError>) {
        self.with(|state, now| {
            // In a new session, the supervisor may have begun another load of the list meanwhile.
            let again = Output::Load { generation, list };
            if !state.tasks.contains(&again) {
                state.core.loaded(now, generation, list, outcome);
            }
        });
    }

    /// Takes the outputs for the driver, the numbers of its futures to poll, and whether events
    /// wait for the application. `None` once nothing follows.
    pub(super) fn take_tasks(&self) -> Option<(VecDeque<Output<String>>, Vec<u64>, bool)> {
        let mut state = lock(&self.state);
        let before = state.attention.awake();
        let tasks = (take(&mut state.tasks), take(&mut state.woken), state.events.claim());
        let is_over = state.has_ended || state.closed.is_some();
        drop(state);
        // Outside of the lock: it may be the last waker of a task that holds the supervisor.
        drop(before);
        let has_any = !tasks.0.is_empty() || tasks.2;
        (has_any || !is_over).then_some(tasks)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let mut state = lock(&self.state);
        let due = state.core.poll_timeout();
        state.attention.look(due)
    }

    pub(super) fn poll_woken(&self, waker: &Waker) -> Poll<()> {
        let mut state = lock(&self.state);
        let has_task = state.has_task();
        let (polled, before) = state.attention.poll(has_task, waker);
        drop(state);
        drop(before);
        polled
    }

    /// A future of the driver has to be polled.
    pub(super) fn wake(&self, future: u64) {
        self.with(|state, _| state.woken.push(future));
    }
}

impl<L: Launch> Deliver for Shared<L> {
    fn deliver(&self) {
        deliver(|before| lock(&self.state).events.next(before));
    }

    fn unclaim_events(&self) {
        lock(&self.state).events.unclaim();
    }
}

impl<L: Launch> Shared<L> {
    pub(super) fn events(self: &Arc<Self>) -> Events {
        Events::new(Arc::clone(self) as _)
    }
}

impl<D: Clone> State<D> {
    /// Returns the number of clients that had not ended, once the supervisor is closed.
    pub(super) fn closed(&self) -> Option<usize> {
        self.closed.or_else(|| self.has_ended.then_some(0))
    }

    /// Takes the outputs, and sorts them by who carries them out.
    fn sort(&mut self) {
        while let Some(output) = self.core.poll_output() {
            match output {
                Output::Run { ticket, generation, timeout } => {
                    // A client whose server runs calls has not ended.
                    let running = self.clients.get(&generation).cloned();
                    let refused = Next::Refuse(CallRefusal::Closed);
                    self.set_next(ticket, running.map_or(refused, |running| Next::Run(running, timeout)));
                }
                Output::Refuse { ticket, why } => self.set_next(ticket, Next::Refuse(why)),
                Output::Event(event) => {
                    if let Event::Closed { left } = event {
                        self.closed = Some(left);
                        let clients = take(&mut self.clients);
                        self.later.dropped.extend(clients.into_values());
                    }
                    self.events.push(event);
                    if self.closed.is_some() {
                        self.events.end();
                    }
                }
                Output::Resolve { .. } | Output::Connect { .. } | Output::Close(_) | Output::Load { .. } => {
                    self.tasks.push_back(output);
                }
            }
        }
    }

    fn set_next(&mut self, ticket: Ticket, next: Next<D>) {
        if let Some(slot) = self.calls.get_mut(&ticket) {
            if let Some(Next::Run(running, _)) = slot.next.replace(next) {
                self.later.dropped.push(running);
            }
            self.later.woken.extend(slot.waker.take());
        }
    }

    fn has_task(&self) -> bool {
        !self.tasks.is_empty()
            || !self.woken.is_empty()
            || self.events.wait()
            || self.has_ended
            || self.closed.is_some()
    }
}

impl<D> Later<D> {
    const fn new() -> Self {
        Self { woken: Vec::new(), dropped: Vec::new() }
    }
}

/// Returns about the bytes behind the error of a load: its texts are those of a server.
fn heap_size(error: &CallError) -> usize {
    let rpc = match error {
        CallError::Rpc(error) => Some(error),
        CallError::Http(http) => http.error.as_ref(),
        _ => None,
    };
    let data = rpc.and_then(|error| error.data.as_ref()).map_or(0, |data| data.as_bytes().len());
    error.to_string().len() + data
}

impl Weigh for Event<String> {
    fn weight(&self) -> Weight {
        match self {
            Self::Closed { .. } | Self::RecordingEnded { .. } => Weight::Kept,
            Self::Lost { events } => Weight::Lost(*events, 0),
            Self::Up { .. } | Self::Reconnecting { .. } | Self::Down { .. } | Self::Listed { .. } => {
                Weight::Notification(size_of::<Self>())
            }
            Self::NotListed { fault, .. } => Weight::Notification(size_of::<Self>() + heap_size(&fault.error)),
        }
    }

    fn lost(notifications: u64, diagnostics: u64) -> Self {
        Self::Lost { events: notifications + diagnostics }
    }
}
