//! A client without a lock and without waiting: its engine, its calls and its questions.

use super::asking::{Asking, ClientLink, Questions};
use super::calls::{Calls, Collected, Fetched, Noted};
use super::checked::Checked;
use super::question::{Question, ReplyKey};
use super::running::Cancelled;
use super::watches::{WatchId, Watches};
use crate::call::{Call, Calling, Method};
use crate::client::{Event, FetchId, FetchRequest, Termination};
use crate::error::{CallError, NegotiationError, Refusal};
use crate::exchange::{Action, Closed, ConnectionId, ConnectionNotice, Endpoint, IoEvent};
use crate::input::{CallId, ClientCommand, Input, NotificationId, Watch};
use crate::model::lifecycle::ServerInfo;
use crate::model::logging::LogLevel;
use crate::rpc::Object;
use crate::time::Instant;
use crate::wired::{ConnectionOutput, WiredClient};
use alloc::collections::VecDeque;
use core::fmt;
use core::task::Waker;

/// A client for a driver of its own: its engine, who waits for which call, and the questions of the
/// server. It takes no lock and calls no callback. After each change, carry out what
/// [`next_task`](Self::next_task) returns until there is nothing.
///
/// [`Client`](super::Client) is this behind a lock.
pub struct ClientCore {
    engine: Checked<WiredClient>,
    calls: Calls<Option<Waker>>,
    questions: Questions,
    watches: Watches,
    link: ClientLink,
    tasks: VecDeque<ClientTask>,
    fetches: u64,
}

/// What a driver of a [`ClientCore`] does next.
#[derive(Debug)]
#[must_use]
pub enum ClientTask {
    /// Open a connection. Its first event is [`IoEvent::Opened`], or [`IoEvent::Closed`] if it
    /// cannot be opened.
    Open(ConnectionId, Endpoint),
    /// Pass this to the [`Transfer`](super::Transfer) of the connection. Without effect if the
    /// connection has closed.
    Act(ConnectionId, ConnectionOutput),
    /// Route this question of the server, outside of every lock.
    Ask(Asking),
    /// Cancel the callback of a question, outside of every lock.
    Cancel(Cancelled),
    /// Wake a waiter, outside of every lock. It may be the last waker of a task that holds this
    /// client.
    Wake(Waker),
    /// For the application. [`Event::Terminated`] is the last one.
    Event(Event),
    /// For an application that shows how its connections end.
    Notice(ConnectionId, ConnectionNotice),
}

/// A waker that was replaced. It may be the last one of a task that holds a client: drop it outside
/// of every lock.
#[derive(Debug)]
#[must_use = "drop it outside of every lock"]
pub struct ReplacedWaker(#[expect(dead_code, reason = "it is only dropped")] Option<Waker>);

impl ClientCore {
    /// Creates a client. Callbacks send their answers through `link`, which leads to
    /// [`command`](Self::command).
    pub fn new(engine: impl Into<Checked<WiredClient>>, link: ClientLink) -> Self {
        let engine = engine.into();
        let (calls, questions) = (Calls::default(), Questions::default());
        let watches = Watches::new(engine.client().watched().clone());
        Self { engine, calls, questions, watches, link, tasks: VecDeque::new(), fetches: 0 }
    }

    /// Returns the engine.
    pub fn engine(&self) -> &WiredClient {
        &self.engine
    }

    /// Makes a call. Its end waits for [`poll_call`](Self::poll_call).
    ///
    /// # Errors
    /// [`Refusal`]: nothing was sent.
    pub fn call<M: Method>(&mut self, now: Instant, call: Call<M>) -> Result<Calling<M>, Refusal> {
        let calling = self.engine.call(now, call).map_err(|refused| refused.why)?;
        self.calls.begin(calling.id(), None);
        Ok(calling)
    }

    /// Returns what was received for a call since the last time, and registers a waker for more.
    /// `None` if the call is not known, or its end was returned.
    pub fn poll_call(&mut self, call: CallId, waker: &Waker) -> (Option<Collected>, ReplacedWaker) {
        let before = self.calls.wake(call).and_then(|wake| replace(wake, waker));
        (self.calls.collect(call), ReplacedWaker(before))
    }

    /// Cancels a call, also on the server. It ends with [`CallError::Cancelled`], unless it has
    /// ended.
    pub fn cancel(&mut self, now: Instant, call: CallId, reason: Option<&str>) {
        self.engine.cancel(now, call, reason);
    }

    /// Cancels a call that nothing waits for any more.
    pub fn forget(&mut self, now: Instant, call: CallId) -> ReplacedWaker {
        let waker = self.calls.wake(call).and_then(Option::take);
        self.calls.forget(call);
        self.engine.cancel(now, call, None);
        ReplacedWaker(waker)
    }

    /// Sends a notification, whose delivery waits for
    /// [`poll_notification`](Self::poll_notification).
    ///
    /// # Errors
    /// [`Refusal`]: nothing was sent.
    pub fn notify(&mut self, now: Instant, method: &str, params: Object) -> Result<NotificationId, Refusal> {
        let id = self.engine.notify_tracked(now, method, params).map_err(|refused| refused.why)?;
        self.calls.begin_notification(id, None);
        Ok(id)
    }

    /// Returns the outcome of a notification once, or registers a waker for it.
    pub fn poll_notification(
        &mut self,
        notification: NotificationId,
        waker: &Waker,
    ) -> (Option<Result<(), CallError>>, ReplacedWaker) {
        if let Some(outcome) = self.calls.collect_notification(notification) {
            return (Some(outcome), ReplacedWaker(None));
        }
        let before = self.calls.wake_notification(notification).and_then(|wake| replace(wake, waker));
        (None, ReplacedWaker(before))
    }

    /// Stops waiting for a notification. It is still delivered.
    pub fn forget_notification(&mut self, now: Instant, notification: NotificationId) -> ReplacedWaker {
        let waker = self.calls.forget_notification(notification);
        if waker.is_some() {
            self.engine.untrack(now, notification);
        }
        ReplacedWaker(waker.flatten())
    }

    /// Makes an HTTP request that is not MCP. Its outcome waits for
    /// [`poll_fetch`](Self::poll_fetch).
    ///
    /// # Errors
    /// [`Refusal`]: nothing was sent.
    pub fn fetch(&mut self, now: Instant, request: FetchRequest) -> Result<FetchId, Refusal> {
        let id = FetchId(self.fetches + 1);
        self.engine.fetch(now, id, request).map_err(|refused| refused.why)?;
        self.fetches = id.0;
        self.calls.begin_fetch(id, None);
        Ok(id)
    }

    /// Returns the outcome of a fetch once, or registers a waker for it.
    pub fn poll_fetch(&mut self, fetch: FetchId, waker: &Waker) -> (Option<Fetched>, ReplacedWaker) {
        if let Some(outcome) = self.calls.collect_fetch(fetch) {
            return (Some(outcome), ReplacedWaker(None));
        }
        let before = self.calls.wake_fetch(fetch).and_then(|wake| replace(wake, waker));
        (None, ReplacedWaker(before))
    }

    /// Cancels a fetch that nothing waits for any more: its exchange is aborted, and nothing of its
    /// response is kept. Does nothing if its outcome was returned.
    pub fn forget_fetch(&mut self, now: Instant, fetch: FetchId) -> ReplacedWaker {
        let waker = self.calls.forget_fetch(fetch);
        if waker.is_some() {
            // After the waiter is gone, so that the end of the fetch has no receiver.
            self.engine.cancel_fetch(now, fetch);
        }
        ReplacedWaker(waker.flatten())
    }

    /// Watches these changes beside all others, until [`unwatch`](Self::unwatch).
    ///
    /// # Errors
    /// [`Refusal`]: nothing has changed.
    pub fn watch(&mut self, now: Instant, watch: Watch) -> Result<WatchId, Refusal> {
        let all = self.watches.with(&watch);
        self.engine.watch(now, all).map_err(|refused| refused.why)?;
        Ok(self.watches.insert(watch))
    }

    /// Watches these changes no longer, unless another part of the application does.
    pub fn unwatch(&mut self, now: Instant, id: WatchId) {
        if let Some(rest) = self.watches.remove(id) {
            // A smaller set is refused only after the end.
            self.engine.watch(now, rest).ok();
        }
    }

    /// Requests log messages of this level or above.
    pub fn log_level(&mut self, now: Instant, level: Option<LogLevel>) {
        self.engine.log_level(now, level);
    }

    /// Notifies the server that the roots have changed.
    ///
    /// # Errors
    /// [`Refusal`]: nothing was sent.
    pub fn roots_changed(&mut self, now: Instant) -> Result<(), Refusal> {
        self.engine.roots_changed(now).map_err(|refused| refused.why)
    }

    /// The user says that a web page is complete: see
    /// [`Client::elicited`](crate::client::Client::elicited).
    pub fn elicited(&mut self, now: Instant, id: &str) {
        self.engine.elicited(now, id);
    }

    /// Executes a command of a callback.
    ///
    /// # Errors
    /// The refusal of the engine.
    pub fn command(&mut self, now: Instant, command: ClientCommand) -> Result<(), Refusal> {
        self.questions.answered(&command);
        self.engine.apply(now, Input::Command(command)).map(drop).map_err(|refused| refused.why)
    }

    /// Closes the client in order. Its last event is [`Event::Terminated`].
    pub fn close(&mut self, now: Instant) {
        self.engine.close(now);
    }

    /// Ends the client at once, since nothing drives it any more: its connections, its calls and
    /// its notifications end as aborted. [`next_task`](Self::next_task) returns the waiters to
    /// wake.
    pub fn abandon(&mut self, now: Instant, open: impl IntoIterator<Item = ConnectionId>) {
        if self.calls.terminated().is_some() {
            return;
        }
        self.engine.stop();
        self.engine.close(now);
        let aborted = || IoEvent::Closed(Closed::Aborted);
        open.into_iter().for_each(|id| self.engine.handle_io(now, id, aborted()));
        while let Some(action) = self.engine.poll_output() {
            match action {
                Action::Open(id, _) => self.engine.handle_io(now, id, aborted()),
                Action::Event(event) => self.event(event),
                Action::Secure(..) | Action::Write(..) | Action::Read(..) | Action::Close(..) | Action::Notice(..) => {}
            }
        }
        let woken = self.calls.abandon().filter_map(Option::take);
        self.tasks.extend(woken.map(ClientTask::Wake));
    }

    /// Reports what happened to a connection.
    pub fn handle_io(&mut self, now: Instant, connection: ConnectionId, event: IoEvent) {
        self.engine.handle_io(now, connection, event);
    }

    /// Fires the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.engine.handle_timeout(now);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.engine.poll_timeout()
    }

    /// Returns the next task, in order. `None` if there is none for now.
    pub fn next_task(&mut self) -> Option<ClientTask> {
        loop {
            if let Some(task) = self.tasks.pop_front() {
                return Some(task);
            }
            match self.engine.poll_output()? {
                Action::Open(id, endpoint) => return Some(ClientTask::Open(id, endpoint)),
                Action::Write(id, bytes) => return Some(ClientTask::Act(id, ConnectionOutput::Write(bytes))),
                Action::Read(id, reads) => return Some(ClientTask::Act(id, ConnectionOutput::Read(reads))),
                Action::Secure(id, name) => return Some(ClientTask::Act(id, ConnectionOutput::Secure(name))),
                Action::Close(id, how) => return Some(ClientTask::Act(id, ConnectionOutput::Close(how))),
                Action::Notice(id, notice) => return Some(ClientTask::Notice(id, notice)),
                Action::Event(event) => self.event(event),
            }
        }
    }

    /// Returns the description of the server, once negotiation has succeeded.
    pub const fn ready(&self) -> Option<&ServerInfo> {
        self.calls.ready()
    }

    /// Returns why the client ended, once it has.
    pub const fn terminated(&self) -> Option<&Termination> {
        self.calls.terminated()
    }

    /// Returns the error of a negotiation that took too long. The client may still be closing: the
    /// end of a program is not awaited within any limit of a start.
    pub fn overdue(&self) -> Option<&NegotiationError> {
        let why = self.engine.client().closing().or_else(|| self.terminated())?;
        match why {
            Termination::Negotiation(why) if why.cause.is_timeout() => Some(why),
            Termination::Negotiation(_) | Termination::Requested | Termination::Closed(_) => None,
        }
    }

    fn event(&mut self, event: Event) {
        let task = match self.calls.note(event) {
            Noted::Call(waker) => waker.and_then(Option::take).map(ClientTask::Wake),
            Noted::Milestone(event) => Some(ClientTask::Event(event)),
            Noted::Other(Event::InputWithdrawn(key)) => {
                Some(ClientTask::Cancel(self.questions.withdraw(ReplyKey::Input(key))))
            }
            Noted::Other(event) => Some(match Question::of(event) {
                Ok((token, question)) => ClientTask::Ask(self.questions.begin(&self.link, token, question)),
                Err(event) => ClientTask::Event(event),
            }),
        };
        self.tasks.extend(task);
    }
}

/// Registers a waker, and returns the one before, unless it wakes the same task.
fn replace(slot: &mut Option<Waker>, waker: &Waker) -> Option<Waker> {
    match slot {
        Some(known) if known.will_wake(waker) => None,
        _ => slot.replace(waker.clone()),
    }
}

impl fmt::Debug for ClientCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCore").field("engine", &self.engine).finish_non_exhaustive()
    }
}
