//! The one lock of a client, a server, a gateway or a supervisor, and what happens once it is
//! released.

use super::events::{WaitingEvents, deliver};
use super::{Attention, Deliver, Events, Role, Task};
use crate::job::StuckHandlers;
use crate::os::Clock;
use crate::running::Cancellation;
use crate::sync::{Mutex, MutexGuard, guarded, lock};
use crate::watch::Watchers;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Poll, Waker};
use mcp_proto::event_queue::Weigh;
use mcp_proto::span::EndedSpan;
use mcp_proto::time::Instant;

/// A state behind its lock. Nothing of an application runs under it: no waker, no observer, and no
/// destructor of what may hold the client or the server itself. [`Later`] takes all of these.
pub struct Shared<S: Front> {
    /// The clock of the engine.
    pub clock: Clock,
    /// What never changes.
    pub setup: S::Setup,
    state: Mutex<S>,
    /// Waiters for a milestone.
    watchers: Watchers,
    /// [`Front::has_task`] at the latest release of the lock: a driver that looks for a task in
    /// vain takes no lock.
    has_task: AtomicBool,
    /// How often the lock was taken.
    #[cfg(test)]
    pub(crate) looks: core::sync::atomic::AtomicUsize,
}

/// The state of a client, a server, a gateway or a supervisor.
pub trait Front: Send + Sized + 'static {
    /// What never changes, so that it needs no lock.
    type Setup: Send + Sync;
    /// For the callback of the application.
    type Event: Weigh + Send + 'static;

    /// Takes the outputs of the engine after a change, and sorts them by who carries them out.
    fn sort(&mut self, now: Instant, later: &mut Later);
    /// Returns whether the driver has a task.
    fn has_task(&self) -> bool;
    /// Returns whether the driver has to learn of the end. Its connections do not carry that out.
    fn ends(&self) -> bool;
    /// Returns the next timer of the engine.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Returns what its driver waits for.
    fn attention(&mut self) -> &mut Attention;
    /// Returns the events for the application.
    fn events(&mut self) -> &mut WaitingEvents<Self::Event>;
    /// An event has left the queue for the callback.
    fn delivered(&mut self, _later: &mut Later) {}
}

/// A front whose driver has a [`DriverHandle`](super::DriverHandle).
pub(super) trait Engine: Front {
    /// Its name for people.
    const NAME: &'static str;
    /// The driver looks for a task for the first time, or again.
    fn begin(&mut self, _now: Instant, _later: &mut Later) {}
    /// Returns the next task for any thread.
    fn next_task(&mut self, shared: &Arc<Shared<Self>>) -> Option<Task>;
    /// Returns whether the driver learns now that the engine has ended.
    fn take_end(&mut self, later: &mut Later) -> bool;
    fn handle_timeout(&mut self, now: Instant);
    /// Ends everything at once, since nothing drives it any more.
    fn abandon(&mut self, now: Instant, later: &mut Later);
    /// Marks the handlers whose clients cannot resume. Only a server has any.
    fn mark_unheard(&mut self) {}
    /// Reports that no thread for handlers becomes free. Only a server has any.
    fn handlers_stuck(&mut self, _now: Instant, _stuck: &StuckHandlers) {}
}

/// What to do once the lock is released, in this order.
#[derive(Default)]
pub struct Later {
    /// First, so that a supervisor has learnt of what happened before anything else does.
    calls: Vec<Box<dyn FnOnce()>>,
    /// Before who waits for a call has its result.
    ended: Few<EndedSpan>,
    cancelled: Vec<Cancellation>,
    woken: Few<Waker>,
    milestone: bool,
    replaced: Few<Waker>,
    dropped: Vec<Box<dyn Send>>,
}

/// Mostly at most one, which takes no allocation.
struct Few<T> {
    first: Option<T>,
    others: Vec<T>,
}

impl<S: Front> Shared<S> {
    /// Creates the shared state.
    pub fn new(clock: Clock, setup: S::Setup, state: S) -> Self {
        let (watchers, has_task) = (Watchers::default(), AtomicBool::new(true));
        let state = Mutex::new(state);
        Self {
            clock,
            setup,
            state,
            watchers,
            has_task,
            #[cfg(test)]
            looks: Default::default(),
        }
    }

    /// Changes the state, and wakes those that wait for what has changed.
    pub fn with<T>(&self, change: impl FnOnce(&mut S, Instant, &mut Later) -> T) -> T {
        self.change(true, change).0
    }

    /// As [`with`](Self::with). Also returns whether there is a task. With `wakes`, wakes the
    /// driver for it; otherwise the caller carries it out.
    pub fn change<T>(&self, wakes: bool, change: impl FnOnce(&mut S, Instant, &mut Later) -> T) -> (T, bool) {
        self.look(|state, later| {
            let now = self.clock.now();
            let changed = change(state, now, later);
            state.sort(now, later);
            let (due, has_task, ends) = (state.poll_timeout(), state.has_task(), state.ends());
            let driver = state.attention().check(due, (wakes && has_task) || ends);
            later.wake(driver);
            (changed, has_task)
        })
    }

    /// Looks at the state, or changes something that nothing waits for.
    pub fn look<T>(&self, look: impl FnOnce(&mut S, &mut Later) -> T) -> T {
        // Before the lock: it is dropped after it, also if `look` panics.
        let mut later = Later::default();
        let mut state = self.lock();
        let looked = look(&mut state, &mut later);
        self.has_task.store(state.has_task(), Ordering::Release);
        drop(state);
        later.carry_out(&self.watchers);
        looked
    }

    /// Waits until `look` returns a value. It looks again after each milestone.
    pub async fn watch<T>(&self, mut look: impl FnMut(&S) -> Option<T>) -> T {
        self.watchers.watch(|| look(&self.lock())).await
    }

    fn lock(&self) -> MutexGuard<'_, S> {
        #[cfg(test)]
        self.looks.fetch_add(1, Ordering::Relaxed);
        lock(&self.state)
    }

    /// Returns when the driver has to look at the timers.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.look(|state, _| {
            let due = state.poll_timeout();
            state.attention().look(due)
        })
    }

    /// Returns `Ready` if the driver has to look. Otherwise registers its waker.
    pub fn poll_woken(&self, waker: &Waker) -> Poll<()> {
        self.look(|state, later| {
            let has_task = state.has_task();
            let (polled, before) = state.attention().poll(has_task, waker);
            later.replaced(before);
            polled
        })
    }
}

impl<S: Front> Shared<S> {
    /// Returns the events that wait for the application: see [`WaitingEvents::claim`].
    pub fn events(self: &Arc<Self>) -> Events {
        Events::new(Arc::clone(self) as _)
    }
}

impl<S: Front> Deliver for Shared<S> {
    fn deliver(&self) {
        deliver(|before| {
            self.look(|state, later| {
                let next = state.events().next(before);
                state.delivered(later);
                next
            })
        });
    }

    fn unclaim_events(&self) {
        self.look(|state, _| state.events().unclaim());
    }
}

impl<S: Engine> Role for Shared<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn clock(&self) -> Clock {
        self.clock
    }

    fn next_task(self: Arc<Self>) -> Option<Task> {
        if !self.has_task.load(Ordering::Acquire) {
            return None;
        }
        self.look(|state, later| {
            later.replaced(state.attention().awake());
            state.begin(self.clock.now(), later);
            state.next_task(&self).or_else(|| state.take_end(later).then_some(Task::Ended))
        })
    }

    fn next_task_of_command(self: Arc<Self>) -> Option<Task> {
        self.look(|state, _| state.next_task(&self))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.poll_timeout()
    }

    fn handle_timeout(&self) {
        self.with(|state, now, _| state.handle_timeout(now));
    }

    fn poll_woken(&self, waker: &Waker) -> Poll<()> {
        self.poll_woken(waker)
    }

    fn abandon(&self) {
        self.with(S::abandon);
    }

    fn mark_unheard(&self) {
        self.look(|state, _| state.mark_unheard());
    }

    fn handlers_stuck(&self, stuck: StuckHandlers) {
        self.with(|state, now, _| state.handlers_stuck(now, &stuck));
    }
}

impl Later {
    /// Wakes a task.
    pub fn wake(&mut self, waker: impl Into<Option<Waker>>) {
        self.woken.extend(waker.into());
    }

    /// Wakes those that wait for a milestone.
    pub const fn milestone(&mut self) {
        self.milestone = true;
    }

    /// Cancels a callback.
    pub fn cancel(&mut self, cancelled: Cancellation) {
        self.cancelled.push(cancelled);
    }

    /// Calls an observer, or what closes a listener. A panic of it is caught.
    pub fn call(&mut self, call: impl FnOnce() + 'static) {
        self.calls.push(Box::new(call));
    }

    /// Tells the telemetry that a call has ended. A panic of it is caught.
    pub(super) fn report(&mut self, span: EndedSpan) {
        self.ended.extend(Some(span));
    }

    /// Drops a waker that wakes nothing any more: it may be the last one of a task that holds the
    /// client or the server.
    pub fn replaced(&mut self, waker: Option<Waker>) {
        self.replaced.extend(waker);
    }

    /// Drops a value that may hold the client, the server, or anything of the application.
    pub fn drop_later(&mut self, value: impl Send + 'static) {
        self.dropped.push(Box::new(value));
    }

    pub(super) fn carry_out(self, watchers: &Watchers) {
        for call in self.calls {
            let _ = guarded(call);
        }
        for span in self.ended.into_iter() {
            let _ = guarded(|| span.report());
        }
        self.cancelled.into_iter().for_each(Cancellation::wake);
        self.woken.into_iter().for_each(Waker::wake);
        if self.milestone {
            watchers.wake();
        }
        // What was replaced, and what is dropped, goes last: nothing waits for it.
    }
}

impl<T> Few<T> {
    fn extend(&mut self, value: Option<T>) {
        if let Some(value) = value {
            match &mut self.first {
                None => self.first = Some(value),
                Some(_) => self.others.push(value),
            }
        }
    }

    fn into_iter(self) -> impl Iterator<Item = T> {
        self.first.into_iter().chain(self.others)
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { first: None, others: Vec::new() }
    }
}
