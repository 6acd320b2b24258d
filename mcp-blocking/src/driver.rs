//! What drives a client: the engine behind one lock, and everyone who waits for something of it.
//!
//! Whoever tells the engine something also carries out what the engine says to it, before the lock is let go; so there is one order of
//! actions, and no thread between a reader and a waiting call. Nothing under the lock waits, reads or writes. Every condition that a
//! thread waits for is state under this lock, so no wake-up is lost, whoever comes first.

use crate::Stderr;
use crate::callbacks::Callbacks;
use crate::channel::Channel;
use crate::events::Events;
use crate::os::Clock;
use crate::pool::Pool;
use crate::sync::{self, Condvar, Mutex, MutexGuard, lock, wait};
use crate::target::Given;
use bytes::Bytes;
use mcp_proto::client::Event;
use mcp_proto::driver::{Calls, Noted, Question, ReplyToken};
use mcp_proto::exchange::{Action, ConnectionId};
use mcp_proto::record::{self, Recorder};
use mcp_proto::stats::ClientStats;
use mcp_proto::wired::WiredClient;
use mcp_proto::{ClientConfig, Instant};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// What all threads of one client share.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// The timer thread waits here for an earlier deadline, or the end.
    ticks: Condvar,
    /// Whoever waits for the start or the end of the client waits here.
    pub(crate) milestones: Condvar,
    questions: Pool<(ReplyToken, Question)>,
    pub(crate) clock: Clock,
    pub(crate) config: Arc<ClientConfig>,
}

pub(crate) struct State {
    pub(crate) engine: WiredClient,
    pub(crate) channels: BTreeMap<ConnectionId, Channel>,
    pub(crate) calls: Calls<Arc<Condvar>>,
    pub(crate) given: Option<Given>,
    /// Threads of channels that are gone.
    pub(crate) detached: usize,
    callbacks: Option<Callbacks>,
    pub(crate) stderr: Stderr,
    /// Until when the timer thread sleeps; absent while it does not.
    alarm: Option<Option<Instant>>,
    events: Events<Event>,
    /// The actions of the engine are carried out.
    pub(crate) begun: bool,
    /// The process is to end with this code once the client has ended.
    pub(crate) exit: Option<i32>,
}

impl Shared {
    /// Makes the engine. Nothing is started before [`begin`](Self::begin).
    pub(crate) fn new(
        config: ClientConfig,
        callbacks: Callbacks,
        stderr: Stderr,
        given: Option<Given>,
        recorder: Option<Recorder>,
        seed: [u8; 32],
    ) -> Arc<Self> {
        let (clock, config) = (Clock::start(), Arc::new(config));
        let events = Events::new(
            callbacks.event.clone(),
            (config.limits.client.max_queued_events, config.limits.client.max_queued_event_bytes),
        );
        let engine = record::client(recorder, Arc::clone(&config), seed, clock.now());
        let state = State {
            engine,
            channels: BTreeMap::new(),
            calls: Calls::default(),
            given,
            detached: 0,
            callbacks: Some(callbacks),
            stderr,
            alarm: None,
            events,
            begun: false,
            exit: None,
        };
        Arc::new_cyclic(|this: &Weak<Self>| {
            let asked = this.clone();
            // As many threads as there can be open questions: a callback may wait for a call of the same client that is asked something.
            let questions = Pool::new("mcp-callback", config.limits.client.max_inputs, move |(token, question)| {
                if let Some(shared) = Weak::upgrade(&asked) {
                    shared.ask(token, question);
                }
            });
            let (ticks, milestones) = (Condvar::new(), Condvar::new());
            Self { state: Mutex::new(state), ticks, milestones, questions, clock, config }
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

    /// Carries out all that the engine says. Call it after everything that the engine is told.
    pub(crate) fn pump(self: &Arc<Self>, state: &mut State) {
        while let Some(action) = state.engine.poll_output() {
            match action {
                Action::Open(id, endpoint) => self.open(state, id, endpoint),
                Action::Write(id, bytes) => state.channel(id, |channel| channel.write(bytes)),
                Action::Close(id, how) => self.close(state, id, how),
                Action::Event(event) => self.event(state, event),
            }
        }
        for channel in state.channels.values_mut() {
            channel.resume_reading();
        }
        if let (Some(until), Some(next)) = (state.alarm, state.engine.poll_timeout())
            && until.is_none_or(|until| next < until)
        {
            self.ticks.notify_all();
        }
    }

    /// The other side sent this. Returns, when there is room for more, whether to read on.
    pub(crate) fn received(self: &Arc<Self>, id: ConnectionId, bytes: Bytes) -> bool {
        let mut state = self.lock();
        if !state.channels.contains_key(&id) {
            return false;
        }
        state.engine.bytes(self.clock.now(), id, bytes);
        self.pump(&mut state);
        loop {
            if !state.channels.contains_key(&id) || state.engine.wants_read(id) {
                return state.channels.contains_key(&id);
            }
            let Some(wake) = state.channels.get_mut(&id).map(Channel::pause_reading) else { return false };
            state = wait(&wake, state, None);
        }
    }

    fn event(self: &Arc<Self>, state: &mut State, event: Event) {
        match state.calls.note(event) {
            Noted::Call(wake) => wake.into_iter().for_each(|wake| wake.notify_all()),
            Noted::Milestone(event) => {
                self.milestones.notify_all();
                self.ticks.notify_all();
                state.events.tell(event);
            }
            // A callback on a thread cannot be stopped; its answer will be ignored.
            Noted::Other(Event::InputWithdrawn(_)) => {}
            Noted::Other(event) => match Question::of(event) {
                Ok(asked) => {
                    if let Err((token, _)) = self.questions.submit(asked) {
                        token.reply(&mut state.engine, self.clock.now(), None, "the client has no thread to ask");
                    }
                }
                Err(event) => state.events.tell(event),
            },
        }
    }

    /// Answers a question of the server on a thread of its own.
    fn ask(self: &Arc<Self>, token: ReplyToken, question: Question) {
        let callbacks = self.lock().callbacks.clone().unwrap_or_default();
        let reply = callbacks.reply(question);
        drop(callbacks);
        let mut state = self.lock();
        let why = reply.as_ref().err().copied().unwrap_or_default();
        token.reply(&mut state.engine, self.clock.now(), reply.ok(), why);
        self.pump(&mut state);
    }

    /// Fires timers until the client has ended.
    fn drive(self: Arc<Self>) {
        let mut state = self.lock();
        while state.calls.terminated().is_none() {
            let now = self.clock.now();
            let next = state.engine.poll_timeout();
            if next.is_some_and(|next| next <= now) {
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

impl State {
    /// What the engine says of itself, and what it cannot know.
    pub(crate) fn stats(&self) -> ClientStats {
        let mut stats = self.engine.stats();
        let (waiting, (notifications, diagnostics)) = self.events.held();
        stats.queued += waiting;
        // What the engine lost has passed through here as well, if anyone listens.
        stats.lost_notifications = stats.lost_notifications.max(notifications);
        stats.lost_diagnostics = stats.lost_diagnostics.max(diagnostics);
        stats.detached_threads = self.detached;
        stats
    }

    /// What the application gave. It is dropped outside the lock, since it may hold the client that holds it.
    pub(crate) fn let_go(&mut self) -> impl Sized + use<> {
        (self.callbacks.take(), std::mem::take(&mut self.stderr), self.events.end())
    }

    pub(crate) fn channel(&mut self, id: ConnectionId, f: impl FnOnce(&mut Channel)) {
        if let Some(channel) = self.channels.get_mut(&id) {
            f(channel);
        }
    }
}
