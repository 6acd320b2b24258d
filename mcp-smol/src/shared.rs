//! The state that the handles and the driver of a client share: its engine behind a lock, and those
//! that wait for it.

use crate::clock::Clock;
use crate::sync::{Mutex, MutexGuard, Watchers, lock};
use mcp_proto::Refusal;
use mcp_proto::adapter::{Asking, Calls, ClientLink, Collected, Noted, Question, Questions, ReplyToken};
use mcp_proto::client::{Event, Termination};
use mcp_proto::exchange::{Action, Closed, ConnectionId, IoEvent};
use mcp_proto::input::{CallId, ClientCommand, Input};
use mcp_proto::wired::WiredClient;
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Duration;

/// The state that the handles and the driver share.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    state: Mutex<State>,
    /// The way of callbacks to the engine.
    link: ClientLink,
    /// Waiters for the start or the end of the client.
    watchers: Watchers,
}

pub(crate) struct State {
    pub(crate) engine: WiredClient,
    /// Wakes the driver, which then polls the engine.
    pub(crate) driver: Option<Waker>,
    pub(crate) calls: Calls<Option<Waker>>,
    pub(crate) questions: Questions,
    /// The driver has begun to carry out actions.
    begun: bool,
    /// The driver was dropped, or must not begin.
    pub(crate) abandoned: bool,
    /// The exit code for this process once the client has ended.
    pub(crate) exit: Option<i32>,
}

impl Shared {
    pub(crate) fn new(engine: WiredClient, clock: Clock) -> Arc<Self> {
        let state = State {
            engine,
            driver: None,
            calls: Calls::default(),
            questions: Questions::default(),
            begun: false,
            abandoned: false,
            exit: None,
        };
        Arc::new_cyclic(|this: &Weak<Self>| {
            let this = this.clone();
            let link: ClientLink = Arc::new(move |command| this.upgrade().ok_or(Refusal::Gone)?.answer(command));
            Self { clock, state: Mutex::new(state), link, watchers: Watchers::default() }
        })
    }

    /// Begins a question of the server.
    pub(crate) fn ask(&self, token: ReplyToken, question: Question) -> Asking {
        self.lock().questions.begin(&self.link, token, question)
    }

    /// Applies a command of a callback to the engine.
    fn answer(&self, command: ClientCommand) -> Result<(), Refusal> {
        let answered = self.command(|shared, state| {
            state.questions.answered(&command);
            state.engine.apply(shared.clock.now(), Input::Command(command))
        });
        answered.map(drop).map_err(|refused| refused.why)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Applies a command to the engine, then wakes the driver, which may have new actions.
    pub(crate) fn command<T>(&self, tell: impl FnOnce(&Self, &mut State) -> T) -> T {
        let mut state = self.lock();
        let told = tell(self, &mut state);
        let driver = state.driver.take();
        drop(state);
        driver.into_iter().for_each(Waker::wake);
        told
    }

    /// Returns the maximum time until everything has ended, plus a margin.
    pub(crate) fn ladder(&self) -> Duration {
        let time = self.lock().engine.client().config().limits.end_time().saturating_add(Duration::from_secs(1));
        // A longer time could overflow an instant, and is never needed.
        time.min(Duration::from_secs(3600))
    }

    pub(crate) fn close(&self) {
        let abandoned = self.command(|shared, state| {
            state.engine.close(shared.clock.now());
            state.abandoned |= !state.begun;
            state.abandoned
        });
        if abandoned {
            // Nothing was started, so there is nothing to end.
            self.abandon(std::iter::empty());
        }
    }

    /// Closes the client, and waits for the end.
    pub(crate) async fn end(&self) -> Termination {
        self.close();
        self.watch(|state| state.calls.terminated().cloned()).await
    }

    /// Waits for the end, also if the process exits with this client.
    pub(crate) async fn ended(&self) {
        self.watchers.watch(|| self.lock().calls.terminated().map(drop)).await;
    }

    /// Waits until `look` returns a value. Waits forever if the process exits with this client
    /// ([`Closer::exit`](crate::Closer::exit)).
    pub(crate) async fn watch<T>(&self, mut look: impl FnMut(&State) -> Option<T>) -> T {
        let look = || {
            let state = self.lock();
            if state.exit.is_some() { None } else { look(&state) }
        };
        self.watchers.watch(look).await
    }

    /// Records an event for its waiters. Returns one that does not concern a call.
    pub(crate) fn note(&self, event: Event) -> Option<Event> {
        let mut state = self.lock();
        let (woken, milestone, rest) = state.note(event);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        if milestone {
            self.watchers.wake();
        }
        rest
    }

    /// Ends everything: the driver and its `open` connections are gone.
    pub(crate) fn abandon(&self, open: impl Iterator<Item = ConnectionId>) {
        let mut state = self.lock();
        state.abandoned = true;
        if state.calls.terminated().is_some() {
            return;
        }
        let now = self.clock.now();
        state.engine.close(now);
        open.for_each(|channel| state.engine.handle_io(now, channel, IoEvent::Closed(Closed::Aborted)));
        let mut woken = Vec::new();
        while let Some(action) = state.engine.poll_output() {
            match action {
                Action::Open(channel, _) => state.engine.handle_io(now, channel, IoEvent::Closed(Closed::Aborted)),
                Action::Event(event) => woken.extend(state.note(event).0),
                _ => {}
            }
        }
        woken.extend(state.calls.abandon().filter_map(Option::take));
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        self.watchers.wake();
    }
}

impl State {
    /// Records that the driver begins to carry out actions. Returns `false` if there are none.
    pub(crate) fn begin(&mut self) -> bool {
        self.begun = !self.abandoned;
        self.begun
    }

    /// Records an event. Returns the waker of its call, whether it is a milestone for watchers, and
    /// the event for the application.
    fn note(&mut self, event: Event) -> (Option<Waker>, bool, Option<Event>) {
        match self.calls.note(event) {
            Noted::Call(waker) => (waker.and_then(Option::take), false, None),
            Noted::Milestone(event) => (None, true, Some(event)),
            Noted::Other(event) => (None, false, Some(event)),
        }
    }

    /// Returns what was received for a call, and registers `waker` for more. Also returns the
    /// earlier waker.
    pub(crate) fn collect(&mut self, call: CallId, waker: &Waker) -> (Option<Waker>, Option<Collected>) {
        let before = self.calls.wake(call).and_then(|wake| wake.replace(waker.clone()));
        (before, self.calls.collect(call))
    }
}
