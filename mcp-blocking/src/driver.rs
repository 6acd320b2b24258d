//! The driver of a client: the engine behind one lock, and the threads that wait for it.
//!
//! The thread that gives the engine an input also carries out its actions before it releases the
//! lock. So there is one order of actions, and no further thread between a reader and a waiting
//! call. Nothing waits, reads or writes under the lock. Every condition that a thread waits for is
//! state under this lock, so no wake-up is lost.

use crate::Stderr;
use crate::channel::Channel;
use crate::events::Events;
use crate::os::Clock;
use crate::pool::Pool;
use crate::sync::{self, Condvar, Mutex, MutexGuard, lock, wait};
use crate::target::Given;
use mcp_proto::adapter::{
    Asking, Calls, ClientCallbacks, ClientEventCallback, ClientLink, ClientOptions, Noted, NoticeCallback, Question,
    Questions, ReplyKey,
};
use mcp_proto::client::Event;
use mcp_proto::exchange::{Action, ConnectionId};
use mcp_proto::input::{ClientCommand, Input};
use mcp_proto::stats::ClientStats;
use mcp_proto::wired::{ConnectionOutput, WiredClient};
use mcp_proto::{ClientConfig, Instant, Refusal};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

type Told = dyn FnMut(Action<Event>) + Send;

/// The state that all threads of one client share.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Wakes the timer thread for an earlier deadline, or for the end.
    ticks: Condvar,
    /// Wakes the threads that wait for the start or the end of the client.
    pub(crate) milestones: Condvar,
    askings: Pool<Asking>,
    /// The way of callbacks to the engine.
    link: ClientLink,
    pub(crate) clock: Clock,
    pub(crate) config: Arc<ClientConfig>,
}

pub(crate) struct State {
    pub(crate) engine: WiredClient,
    pub(crate) channels: BTreeMap<ConnectionId, Channel>,
    pub(crate) calls: Calls<Arc<Condvar>>,
    pub(crate) given: Option<Given>,
    /// Threads of connections that have ended.
    pub(crate) detached: usize,
    questions: Questions,
    /// Absent once the client has ended: one of them may hold the client.
    callbacks: Option<Arc<ClientCallbacks>>,
    pub(crate) stderr: Stderr,
    /// The time until which the timer thread sleeps. Absent while it does not sleep.
    alarm: Option<Option<Instant>>,
    events: Events<Action<Event>>,
    /// The actions of the engine are carried out.
    pub(crate) begun: bool,
    /// The exit code for this process once the client has ended.
    pub(crate) exit: Option<i32>,
}

impl Shared {
    /// Creates the engine. Starts nothing before [`begin`](Self::begin).
    pub(crate) fn new(
        mut config: ClientConfig,
        mut options: ClientOptions,
        given: Option<Given>,
        seed: [u8; 32],
    ) -> Arc<Self> {
        let clock = Clock::start();
        config.origin_unix = clock.unix();
        let engine = options.create(config, seed, clock.now());
        let config = Arc::clone(engine.client().config());
        let limits = &config.limits.client;
        let told = listener(options.take_event(), options.take_notice());
        let state = State {
            engine,
            channels: BTreeMap::new(),
            calls: Calls::default(),
            questions: Questions::default(),
            given,
            detached: 0,
            callbacks: Some(Arc::new(options.take_callbacks())),
            stderr: options.take_stderr(),
            alarm: None,
            events: Events::new(told, (limits.max_queued_events, limits.max_queued_event_bytes)),
            begun: false,
            exit: None,
        };
        Arc::new_cyclic(|this: &Weak<Self>| {
            let (asked, answered) = (this.clone(), this.clone());
            // As many threads as there can be open requests for input: a callback may wait for a
            // call of the same client, which may also require input.
            let askings = Pool::new("mcp-callback", limits.max_inputs, move |asking| {
                if let Some(shared) = Weak::upgrade(&asked) {
                    shared.ask(asking);
                }
            });
            let link: ClientLink =
                Arc::new(move |command| Weak::upgrade(&answered).ok_or(Refusal::Gone)?.answer(command));
            let (ticks, milestones) = (Condvar::new(), Condvar::new());
            Self { state: Mutex::new(state), ticks, milestones, askings, link, clock, config: Arc::clone(&config) }
        })
    }

    /// Starts the timer thread and begins to connect, unless the client was closed before.
    pub(crate) fn begin(self: &Arc<Self>) -> std::io::Result<()> {
        let mut state = self.lock();
        if state.calls.terminated().is_none() {
            let driver = Arc::clone(self);
            sync::spawn("mcp-timer", move || driver.drive())?;
            state.begun = true;
            self.pump(&mut state);
        }
        Ok(())
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Carries out all actions of the engine. Call it after every input.
    pub(crate) fn pump(self: &Arc<Self>, state: &mut State) {
        while let Some(action) = state.engine.poll_output() {
            match action {
                Action::Open(id, endpoint) => self.open(state, id, endpoint),
                Action::Write(id, bytes) => self.act(state, id, ConnectionOutput::Write(bytes)),
                Action::Read(id, reads) => self.act(state, id, ConnectionOutput::Read(reads)),
                Action::Close(id, how) => self.act(state, id, ConnectionOutput::Close(how)),
                notice @ Action::Notice(..) => state.events.tell(notice),
                Action::Event(event) => self.event(state, event),
            }
        }
        if let (Some(until), Some(next)) = (state.alarm, state.poll_timeout())
            && until.is_none_or(|until| next < until)
        {
            self.ticks.notify_all();
        }
    }

    fn event(self: &Arc<Self>, state: &mut State, event: Event) {
        match state.calls.note(event) {
            Noted::Call(wake) => wake.into_iter().for_each(|wake| wake.notify_all()),
            Noted::Milestone(event) => {
                self.milestones.notify_all();
                self.ticks.notify_all();
                state.events.tell(Action::Event(event));
            }
            Noted::Other(Event::InputWithdrawn(key)) => state.questions.withdraw(ReplyKey::Input(key)).wake(),
            Noted::Other(event) => match Question::of(event) {
                Ok((token, question)) => {
                    let asking = state.questions.begin(&self.link, token, question);
                    let refused = self.askings.submit(asking).err().and_then(Asking::refuse);
                    refused.into_iter().for_each(|command| drop(state.answer(self.clock.now(), command)));
                }
                Err(event) => state.events.tell(Action::Event(event)),
            },
        }
    }

    /// Answers a request of the server on a separate thread.
    fn ask(&self, asking: Asking) {
        let callbacks = self.lock().callbacks.clone();
        if let Some(job) = callbacks.and_then(|callbacks| callbacks.route(asking)) {
            job.block();
        }
    }

    /// Applies a command of a callback to the engine.
    fn answer(self: &Arc<Self>, command: ClientCommand) -> Result<(), Refusal> {
        let mut state = self.lock();
        let answered = state.answer(self.clock.now(), command);
        self.pump(&mut state);
        answered
    }

    /// Fires timers until the client has ended.
    fn drive(self: Arc<Self>) {
        let mut state = self.lock();
        while state.calls.terminated().is_none() {
            let now = self.clock.now();
            let next = state.poll_timeout();
            if next.is_some_and(|next| next <= now) {
                let channels: Vec<_> = state.channels.keys().copied().collect();
                channels.into_iter().for_each(|id| self.transfer(&mut state, id));
                state.engine.handle_timeout(now);
                self.pump(&mut state);
                continue;
            }
            state.alarm = Some(next);
            state = wait(&self.ticks, state, next.map(|next| next.since(now)));
            state.alarm = None;
        }
        let held = state.let_go();
        drop(state);
        drop(held);
    }
}

/// Returns one callback for the events of a client and for the changes of its connections.
fn listener(event: Option<ClientEventCallback>, notice: Option<NoticeCallback>) -> Option<Box<Told>> {
    if event.is_none() && notice.is_none() {
        return None;
    }
    let (mut event, mut notice) = (event, notice);
    Some(Box::new(move |action| match (action, &mut event, &mut notice) {
        (Action::Event(told), Some(event), _) => event(told),
        (Action::Notice(connection, told), _, Some(notice)) => notice(connection, told),
        _ => {}
    }))
}

impl State {
    fn answer(&mut self, now: Instant, command: ClientCommand) -> Result<(), Refusal> {
        self.questions.answered(&command);
        self.engine.apply(now, Input::Command(command)).map(drop).map_err(|refused| refused.why)
    }

    /// Returns the numbers of the engine and of the driver.
    pub(crate) fn stats(&self) -> ClientStats {
        let mut stats = self.engine.stats();
        let (waiting, (notifications, diagnostics)) = self.events.held();
        stats.queued += waiting;
        // With a callback, events that the engine lost have been counted here as well.
        stats.lost_notifications = stats.lost_notifications.max(notifications);
        stats.lost_diagnostics = stats.lost_diagnostics.max(diagnostics);
        stats.detached_threads = self.detached;
        stats
    }

    /// Returns the values of the application, to be dropped outside of the lock: one may hold the
    /// client that holds it.
    pub(crate) fn let_go(&mut self) -> impl Sized + use<> {
        (self.callbacks.take(), std::mem::take(&mut self.stderr), self.events.end())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let channels = self.channels.values().filter_map(|channel| channel.transfer.poll_timeout());
        channels.chain(self.engine.poll_timeout()).min()
    }

    pub(crate) fn channel(&mut self, id: ConnectionId, f: impl FnOnce(&mut Channel)) {
        if let Some(channel) = self.channels.get_mut(&id) {
            f(channel);
        }
    }
}
