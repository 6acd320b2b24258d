//! What the handles, the calls and the driver of one supervisor share.

use super::Launch;
use super::call::{CallStep, Reservation};
use super::options::{Resolve, SupervisorOptions};
use crate::{
    CallPlan, CallRefusal, Event, Generation, ListKind, LoadedList, Output, ServerState, SupervisedError,
    Supervisor as Decisions, Ticket,
};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::{String, ToString};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::mem::take;
use core::ops::Deref;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Poll, Waker};
use core::time::Duration;
use mcp_driver::Attention;
use mcp_driver::ConnectError;
use mcp_driver::WaitingEvents;
use mcp_driver::guarded;
use mcp_driver::{CallTag, ClientObserver, ClientOptions, ClientReport};
use mcp_driver::{Client, NewsQueue};
use mcp_driver::{Clock, seed};
use mcp_driver::{Front, Later, Shared};
use mcp_proto::call::{RawCall, RawResult};
use mcp_proto::client::{ClientConfig, Termination};
use mcp_proto::error::CallError;
use mcp_proto::event_queue::{Weigh, Weight};
use mcp_proto::exchange::Closed;
use mcp_proto::time::Instant;

/// Maximum number of events that wait for the callback, and of the bytes that they hold.
const MAX_EVENTS: (usize, usize) = (1024, usize::MAX);

/// What the handles of a supervisor and its driver share.
pub(super) struct SupervisorShared<L: Launch>(Arc<Shared<State<L>>>);

/// It does not keep the supervisor open.
pub(super) struct WeakShared<L: Launch>(Weak<Shared<State<L>>>);

/// The next step of a call, with its result as received.
pub(super) type PolledStep<L> = Poll<CallStep<RawResult, <L as Launch>::Driver>>;

/// What never changes of a supervisor.
pub(super) struct SupervisorSetup<L> {
    pub(super) launch: L,
    clients: Box<dyn Fn(&str) -> ClientOptions + Send + Sync>,
    pub(super) resolve: Option<Resolve>,
}

pub(super) struct State<L: Launch> {
    pub(super) core: Decisions<String>,
    clients: BTreeMap<Generation, RunningClient<L::Driver>>,
    calls: BTreeMap<Ticket, Slot>,
    /// Outputs for the driver.
    tasks: VecDeque<Output<String>>,
    events: WaitingEvents<Event<String>>,
    /// Futures of the driver that have to be polled.
    woken: Vec<u64>,
    /// The keys whose synchronous callback for a configuration has not returned.
    pub(super) resolving: BTreeSet<String>,
    attention: Attention,
    /// The number of clients that had not ended when the supervisor was closed.
    closed: Option<usize>,
    /// No further client is started.
    is_ending: bool,
    /// Nothing is driven any more.
    has_ended: bool,
}

/// A client, and what the adapter keeps for it.
#[derive(Clone)]
pub(super) struct RunningClient<D> {
    pub(super) client: Client,
    pub(super) driver: D,
}

/// A call: what has come for it, and who waits for that.
#[derive(Default)]
struct Slot {
    /// What its clients make. `None` if only the connection is awaited, and after its end.
    asked: Option<Arc<ClientCall>>,
    /// The client on which it runs, or ran last.
    on: Option<Generation>,
    /// Its caller does not know that it runs there.
    has_moved: bool,
    news: NewsQueue,
    /// It ended on its client so.
    outcome: Option<Result<RawResult, CallError>>,
    end: Option<Result<RawResult, SupervisedError>>,
    waker: Option<Waker>,
}

/// A call as its clients make it.
struct ClientCall {
    call: RawCall,
    /// Its future was dropped.
    is_dropped: AtomicBool,
}

impl<L: Launch> SupervisorShared<L> {
    pub(super) fn create(mut options: SupervisorOptions, launch: L) -> Result<Self, ConnectError> {
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
            closed: None,
            is_ending: false,
            has_ended: false,
        };
        let setup = SupervisorSetup { launch, clients: options.clients, resolve: options.resolve };
        Ok(Self(Arc::new(Shared::new(Clock::start(), setup, state))))
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Reads the state.
    pub(super) fn read<T>(&self, look: impl FnOnce(&Decisions<String>) -> T) -> T {
        self.look(|state, _| look(&state.core))
    }

    /// Returns the client of a server that is connected.
    pub(super) fn client(&self, key: &str) -> Option<(Client, L::Driver)> {
        self.look(|state, _| {
            let ServerState::Ready { generation, .. } = state.core.health(&String::from(key))?.state else {
                return None;
            };
            state.clients.get(&generation).map(|running| (running.client.clone(), running.driver.clone()))
        })
    }

    /// Begins a call. Without `call`, only the connection is awaited.
    pub(super) fn reserve(
        &self,
        key: &str,
        plan: CallPlan,
        call: Option<RawCall>,
    ) -> Result<Reservation<L>, CallRefusal> {
        let asked = call.map(|call| Arc::new(ClientCall { call, is_dropped: AtomicBool::new(false) }));
        let ticket = self.with(|state, now, _| {
            let ticket = state.core.call(now, &String::from(key), plan)?;
            state.calls.insert(ticket, Slot { asked, ..Slot::default() });
            Ok(ticket)
        })?;
        Ok(Reservation::new(self.clone(), ticket))
    }

    /// Takes what has come for a call, and registers a waker for more.
    pub(super) fn poll_call(&self, ticket: Ticket, waker: &Waker) -> (NewsQueue, PolledStep<L>) {
        self.look(|state, later| {
            let Some(slot) = state.calls.get_mut(&ticket) else { return (NewsQueue::default(), Poll::Pending) };
            let running = slot.on.filter(|_| take(&mut slot.has_moved)).and_then(|on| state.clients.get(&on));
            let step = match (slot.end.take(), running) {
                (Some(end), _) => Poll::Ready(CallStep::Ended(end)),
                (None, Some(running)) => Poll::Ready(CallStep::Runs(running.driver.clone())),
                (None, None) => {
                    later.replaced(slot.waker.replace(waker.clone()));
                    Poll::Pending
                }
            };
            (take(&mut slot.news), step)
        })
    }

    /// Forgets a call, whose future was dropped, or has its end.
    pub(super) fn forget(&self, ticket: Ticket) {
        self.with(|state, now, later| {
            state.core.cancel(now, ticket);
            let Some(slot) = state.calls.remove(&ticket) else { return };
            if let Some(asked) = &slot.asked {
                asked.is_dropped.store(true, Ordering::Release);
                if let Some(running) = slot.on.and_then(|on| state.clients.get(&on)) {
                    let client = running.client.clone();
                    later.call(move || client.cancel_run(CallTag(ticket.0)));
                }
            }
            later.drop_later(slot);
        });
    }

    /// Begins to close all clients, and starts no further one. Returns them: their end is to be
    /// waited for.
    pub(super) fn begin_end(&self) -> Vec<RunningClient<L::Driver>> {
        let clients = self.with(|state, now, _| {
            state.core.close(now);
            state.is_ending = true;
            take(&mut state.clients)
        });
        clients.values().for_each(|running| running.client.begin_close());
        clients.into_values().collect()
    }

    /// Nothing follows. With `delivers`, the driver still delivers the events that wait.
    pub(super) fn end(&self, delivers: bool) {
        self.with(|state, _, later| {
            state.has_ended = true;
            state.events.end();
            if !delivers {
                state.events.finish(later);
            }
        });
    }
}

/// For the driver.
impl<L: Launch> SupervisorShared<L> {
    /// Creates the client of an attempt to connect, and begins to drive it.
    pub(super) fn connect(&self, key: &str, generation: Generation, config: &ClientConfig) {
        if let Err(why) = self.try_connect(key, generation, config) {
            let why = Termination::Closed(Closed::Unreachable(why));
            self.with(|state, now, _| state.core.ended(now, generation, why));
        }
    }

    fn try_connect(&self, key: &str, generation: Generation, config: &ClientConfig) -> Result<(), String> {
        let options =
            guarded(|| (self.setup.clients)(key)).ok_or("the function for the options of clients panicked")?;
        let this = self.downgrade();
        let options = options.supervised_by(ClientObserver::new(move |observer| {
            if let Some(this) = this.upgrade() {
                this.observe(generation, observer);
            }
        }));
        let (client, driving) =
            Client::begin(config.clone(), options, self.setup.launch.delay()).map_err(|e| e.to_string())?;
        let driver = self.setup.launch.create(&client, driving);
        // Before it begins: as soon as it is ready, calls look for it.
        let begins = self.with(|state, _, later| {
            let running = RunningClient { client, driver: driver.clone() };
            if state.is_ending || state.closed.is_some() {
                later.drop_later(running);
                return false;
            }
            state.clients.insert(generation, running);
            true
        });
        if begins && let Err(why) = self.setup.launch.begin(&driver) {
            self.with(|state, _, later| state.forget_client(generation, later));
            return Err(why.to_string());
        }
        Ok(())
    }

    /// Something happened to a client or to its calls. Takes it under the lock, and so in order.
    fn observe(&self, generation: Generation, observer: &ClientObserver) {
        self.with(|state, now, later| {
            while let Some(observed) = observer.take() {
                match observed {
                    ClientReport::Ready(capabilities) => state.core.ready(now, generation, &capabilities),
                    ClientReport::Changed(change) => state.core.changed(now, generation, &change),
                    ClientReport::PingMissed { in_a_row } => state.core.ping_missed(now, generation, in_a_row),
                    ClientReport::SessionLost(cause) => state.core.session_lost(now, generation, cause),
                    ClientReport::News(CallTag(ticket), news) => {
                        state.receive(Ticket(ticket), later, |slot| slot.news.push(news));
                    }
                    ClientReport::Ended(CallTag(ticket), outcome) => {
                        let ticket = Ticket(ticket);
                        state.core.finished(now, ticket, outcome.as_ref().map(|_| ()));
                        state.receive(ticket, later, |slot| slot.outcome = Some(outcome));
                    }
                    ClientReport::NotBegun(CallTag(ticket)) => state.core.not_begun(now, Ticket(ticket)),
                    ClientReport::Terminated(why) => {
                        state.core.ended(now, generation, why);
                        state.forget_client(generation, later);
                    }
                }
            }
        });
    }

    /// Begins to close a client.
    pub(super) fn close(&self, generation: Generation) {
        if let Some(client) = self.client_of(generation) {
            client.begin_close();
        }
    }

    pub(super) fn client_of(&self, generation: Generation) -> Option<Client> {
        self.look(|state, _| state.clients.get(&generation).map(|running| running.client.clone()))
    }

    /// A load of the driver has ended.
    pub(super) fn loaded(&self, generation: Generation, list: ListKind, outcome: Result<LoadedList, CallError>) {
        self.with(|state, now, _| {
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
        self.look(|state, later| {
            later.replaced(state.attention.awake());
            let tasks = (take(&mut state.tasks), take(&mut state.woken), state.events.claim());
            let has_any = !tasks.0.is_empty() || tasks.2;
            (has_any || !state.ends()).then_some(tasks)
        })
    }

    /// A future of the driver has to be polled.
    pub(super) fn wake(&self, future: u64) {
        self.with(|state, _, _| state.woken.push(future));
    }
}

impl<L: Launch> SupervisorShared<L> {
    pub(super) fn downgrade(&self) -> WeakShared<L> {
        WeakShared(Arc::downgrade(&self.0))
    }
}

impl<L: Launch> WeakShared<L> {
    pub(super) fn upgrade(&self) -> Option<SupervisorShared<L>> {
        self.0.upgrade().map(SupervisorShared)
    }
}

impl<L: Launch> Clone for SupervisorShared<L> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<L: Launch> Deref for SupervisorShared<L> {
    type Target = Arc<Shared<State<L>>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<L: Launch> Front for State<L> {
    type Setup = SupervisorSetup<L>;
    type Event = Event<String>;

    fn sort(&mut self, now: Instant, later: &mut Later) {
        while let Some(output) = self.core.poll_output() {
            match output {
                Output::Run { ticket, generation, timeout } => {
                    if !self.run(ticket, generation, timeout, later) {
                        self.core.cancel(now, ticket);
                    }
                }
                Output::End { ticket } => self.receive(ticket, later, |slot| {
                    let outcome = slot.outcome.take();
                    slot.finish(outcome.map(|outcome| outcome.map_err(SupervisedError::Call)));
                }),
                Output::Refuse { ticket, why } => {
                    self.receive(ticket, later, |slot| slot.finish(Some(Err(SupervisedError::Refused(why)))));
                }
                Output::Event(event) => {
                    if let Event::Closed { left } = event {
                        self.closed = Some(left);
                        later.drop_later(take(&mut self.clients));
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
        later.milestone();
    }

    fn has_task(&self) -> bool {
        !self.tasks.is_empty() || !self.woken.is_empty() || self.events.wait() || self.ends()
    }

    fn ends(&self) -> bool {
        self.has_ended || self.closed.is_some()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.core.poll_timeout()
    }

    fn attention(&mut self) -> &mut Attention {
        &mut self.attention
    }

    fn events(&mut self) -> &mut WaitingEvents<Self::Event> {
        &mut self.events
    }
}

impl<L: Launch> State<L> {
    /// Returns the number of clients that had not ended, once the supervisor is closed.
    pub(super) fn closed(&self) -> Option<usize> {
        self.closed.or_else(|| self.has_ended.then_some(0))
    }

    fn forget_client(&mut self, generation: Generation, later: &mut Later) {
        if let Some(running) = self.clients.remove(&generation) {
            later.drop_later(running);
        }
    }

    /// Adds to what has come for a call, and wakes its caller.
    fn receive(&mut self, ticket: Ticket, later: &mut Later, add: impl FnOnce(&mut Slot)) {
        if let Some(slot) = self.calls.get_mut(&ticket) {
            add(slot);
            later.wake(slot.waker.take());
        }
    }

    /// Makes a call on a client, whether or not anything polls its future. Returns false if only
    /// the connection was awaited.
    fn run(&mut self, ticket: Ticket, on: Generation, timeout: Option<Duration>, later: &mut Later) -> bool {
        let mut asked = None;
        self.receive(ticket, later, |slot| {
            (slot.on, slot.has_moved) = (Some(on), true);
            asked = slot.asked.clone();
        });
        // A client whose server runs calls has not ended.
        let Some((asked, running)) = asked.zip(self.clients.get(&on)) else { return false };
        let client = running.client.clone();
        later.call(move || asked.run(&client, ticket, timeout));
        true
    }
}

impl Slot {
    fn finish(&mut self, end: Option<Result<RawResult, SupervisedError>>) {
        (self.end, self.asked) = (end, None);
    }
}

impl ClientCall {
    fn run(&self, client: &Client, ticket: Ticket, timeout: Option<Duration>) {
        let mut call = self.call.clone();
        call.options.timeout = Some(timeout);
        client.run(CallTag(ticket.0), call);
        // Its future did not find it on the client.
        if self.is_dropped.load(Ordering::Acquire) {
            client.cancel_run(CallTag(ticket.0));
        }
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
