//! The future that performs the I/O of a client: it opens, reads, writes, closes, sleeps, and runs
//! the callbacks. It decides nothing, and keeps no protocol state, so it may be dropped between any
//! two polls.

use crate::Stderr;
use crate::channel::Channel;
use crate::clock::Alarm;
use crate::ends::{Reader, Writer};
use crate::future::BoxFuture;
use crate::shared::Shared;
use crate::sync::guarded;
use mcp_proto::adapter::{
    AsyncJob, ClientCallbacks, ClientEventCallback, ClientOptions, Job, NoticeCallback, Question, ReplyKey,
};
use mcp_proto::client::Event;
use mcp_proto::exchange::{Action, ConnectionId, IoEvent};
use mcp_proto::wired::ConnectionOutput;
use smol::future::Future;
use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Maximum number of events from one connection per turn: a read and a write. Parsing the bytes of
/// one read may be slow.
const TURN: usize = 2;
/// Maximum number of turns per poll, so that other tasks of the executor can run.
const TURNS: usize = 32;

/// Drives a [`Client`](crate::Client): a future for any executor. It completes when the client has
/// ended.
///
/// Dropping it ends everything at once: programs are killed with their process groups, and calls
/// end with [`CallError::Closed`](crate::CallError::Closed).
#[must_use = "a client does nothing unless its driver is polled"]
pub struct Driver {
    shared: Arc<Shared>,
    callbacks: ClientCallbacks,
    event: Option<ClientEventCallback>,
    notice: Option<NoticeCallback>,
    stderr: Stderr,
    open_timeout: Duration,
    given: Option<(Reader, Writer)>,
    /// A server in this process.
    guest: Option<BoxFuture<()>>,
    channels: BTreeMap<ConnectionId, Channel>,
    /// Pending callbacks.
    jobs: Vec<AsyncJob>,
    alarm: Alarm,
}

impl Driver {
    pub(crate) fn new(
        shared: Arc<Shared>,
        mut options: ClientOptions,
        given: Option<(Reader, Writer)>,
        guest: Option<BoxFuture<()>>,
    ) -> Self {
        let open_timeout = shared.lock().engine.client().config().limits.frame.open_timeout;
        Self {
            shared,
            callbacks: options.take_callbacks(),
            event: options.take_event(),
            notice: options.take_notice(),
            stderr: options.take_stderr(),
            open_timeout,
            given,
            guest,
            channels: BTreeMap::new(),
            jobs: Vec::new(),
            alarm: Alarm::new(),
        }
    }

    /// Takes the actions of the engine, and carries them out. Returns whether there were any.
    /// `None` once the engine has ended.
    fn take_actions(&mut self, cx: &mut Context<'_>) -> Option<bool> {
        let actions = self.poll_actions(cx)?;
        let moved = !actions.is_empty();
        for action in actions {
            let last = matches!(action, Action::Event(Event::Terminated(_)));
            self.carry_out(action);
            if last {
                return None;
            }
        }
        Some(moved)
    }

    /// Takes the actions of the engine, and arranges to be woken for the next ones. `None` once the
    /// engine has ended.
    fn poll_actions(&self, cx: &mut Context<'_>) -> Option<Vec<Action<Event>>> {
        let mut actions = Vec::new();
        let before = {
            let mut state = self.shared.lock();
            if !state.begin() {
                return None;
            }
            actions.extend(std::iter::from_fn(|| state.engine.poll_output()));
            // Under the same lock: a command after this point finds the waker.
            state.driver.replace(cx.waker().clone())
        };
        // Outside of the lock: it may be the last waker of a task that holds a client.
        drop(before);
        Some(actions)
    }

    /// Carries out an action, or passes an event to the application.
    fn carry_out(&mut self, action: Action<Event>) {
        match action {
            Action::Open(id, endpoint) => {
                let channel = Channel::open(endpoint, self.open_timeout, &mut self.given, &self.stderr);
                self.channels.insert(id, channel);
            }
            Action::Write(id, bytes) => self.act(id, ConnectionOutput::Write(bytes)),
            Action::Read(id, reads) => self.act(id, ConnectionOutput::Read(reads)),
            Action::Close(id, how) => self.act(id, ConnectionOutput::Close(how)),
            Action::Notice(connection, notice) => {
                if let Some(told) = &mut self.notice {
                    guarded(|| told(connection, notice));
                }
            }
            Action::Event(event) => self.event(event),
        }
    }

    fn act(&mut self, id: ConnectionId, output: ConnectionOutput) {
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.act(self.shared.clock, output);
        }
    }

    fn event(&mut self, event: Event) {
        match self.shared.note(event) {
            Some(Event::InputWithdrawn(key)) => {
                let withdrawn = self.shared.lock().questions.withdraw(ReplyKey::Input(key));
                withdrawn.wake();
            }
            Some(event) => match Question::of(event) {
                Ok((token, question)) => match self.callbacks.route(self.shared.ask(token, question)) {
                    Some(Job::Async(job)) => self.jobs.push(job),
                    Some(Job::Sync(job)) => smol::unblock(move || job.run()).detach(),
                    None => {}
                },
                Err(event) => {
                    if let Some(told) = &mut self.event {
                        guarded(|| told(event));
                    }
                }
            },
            None => {}
        }
    }

    fn poll_channels(&mut self, cx: &mut Context<'_>) -> bool {
        let (shared, mut moved) = (&self.shared, false);
        self.channels.retain(|id, channel| {
            for _ in 0..TURN {
                let Poll::Ready(event) = channel.poll_event(cx, shared.clock, true) else { break };
                moved = true;
                let last = matches!(event, IoEvent::Closed(_));
                shared.lock().engine.handle_io(shared.clock.now(), *id, event);
                if last {
                    return false;
                }
            }
            true
        });
        moved
    }

    fn poll_jobs(&mut self, cx: &mut Context<'_>) -> bool {
        let before = self.jobs.len();
        // The result of a callback is passed to the engine when it is dropped.
        self.jobs.retain_mut(|job| Pin::new(job).poll(cx).is_pending());
        self.jobs.len() < before
    }

    fn poll_alarm(&mut self, cx: &mut Context<'_>) -> bool {
        let deadline = self.shared.lock().engine.poll_timeout();
        let due = self.alarm.poll(cx, self.shared.clock, deadline);
        if due {
            self.shared.lock().engine.handle_timeout(self.shared.clock.now());
        }
        due
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        for _ in 0..TURNS {
            let Some(mut moved) = this.take_actions(cx) else { return Poll::Ready(()) };
            moved |= this.poll_channels(cx);
            moved |= this.poll_jobs(cx);
            moved |= this.poll_alarm(cx);
            if this.guest.as_mut().is_some_and(|guest| guest.as_mut().poll(cx).is_ready()) {
                this.guest = None;
            }
            if !moved {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let channels = std::mem::take(&mut self.channels);
        let open: Vec<_> = channels.keys().copied().collect();
        drop(channels);
        self.shared.abandon(open.into_iter());
        self.jobs.clear();
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("channels", &self.channels.len()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests;
