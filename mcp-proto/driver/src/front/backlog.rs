//! The callbacks that run for a server, and the waiting tasks of its driver.

use super::events::{EventFn, WaitingEvents};
#[cfg(feature = "auth")]
use super::guard::GuardSignal;
use super::guard::{Guard, GuardTasks};
use super::shared::Later;
use super::{Attention, Task};
use crate::job::ServerLink;
use crate::running::RunningCallbacks;
use crate::store::StoreQueue;
use crate::work::Work;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::mem::replace;
use mcp_proto::server::Event;

/// The callbacks that run for a server or for a gateway, the waiting tasks, and the driver.
pub(super) struct Backlog {
    /// The way of the commands of callbacks, which leads to the engine.
    link: ServerLink,
    pub(super) running: RunningCallbacks,
    work: VecDeque<Work>,
    pub(super) events: WaitingEvents<Event>,
    pub(super) attention: Attention,
    pub(super) guard: GuardTasks,
    store: Option<StoreQueue>,
    /// Everything has to end at once.
    pub(super) stopped: bool,
    /// The engine has ended.
    terminated: bool,
    /// The driver knows that the server has ended.
    ended: bool,
}

/// A task for the driver, or for the driver of a connection.
pub(super) enum NextTask {
    Route(Work),
    Deliver,
    /// One of the guard.
    Guard(Task),
}

impl Backlog {
    pub(super) fn new(
        link: ServerLink,
        callback: Option<EventFn<Event>>,
        max: (usize, usize),
        guard: Option<Arc<Guard>>,
        store: Option<StoreQueue>,
    ) -> Self {
        Self {
            link,
            running: RunningCallbacks::default(),
            work: VecDeque::new(),
            events: WaitingEvents::new(callback, max),
            attention: Attention::default(),
            guard: GuardTasks::new(guard),
            store,
            stopped: false,
            terminated: false,
            ended: false,
        }
    }

    /// Passes an event of the engine to who handles it. Returns work, which the driver of the
    /// connection that caused it can route itself.
    #[must_use]
    pub(super) fn sort(&mut self, event: Event, later: &mut Later) -> Option<Work> {
        match event {
            Event::Request(responder, incoming) => return Some(self.running.begin(&self.link, responder, incoming)),
            Event::Admit(token, head) => return Some(self.running.admit(&self.link, token, head)),
            Event::Cancelled(key) => later.cancel(self.running.cancel(key)),
            Event::AdmitWithdrawn(key) => later.cancel(self.running.withdraw(key)),
            Event::Store(token, request) => {
                if let Some(store) = &self.store {
                    store.push(token, request);
                }
            }
            Event::Terminated => {
                self.cancel_all(later);
                self.guard.end(later);
                self.end_store();
                self.terminated = true;
                later.milestone();
                self.events.end();
            }
            event => self.events.push(event),
        }
        None
    }

    /// Handles a signal of the guard.
    #[cfg(feature = "auth")]
    pub(super) fn signal(&mut self, signal: GuardSignal, later: &mut Later) {
        if let Some(report) = self.guard.signal(signal, later) {
            self.events.push(Event::Diagnostic(report));
        }
    }

    /// Adds what the driver routes.
    pub(super) fn push(&mut self, work: impl IntoIterator<Item = Work>) {
        self.work.extend(work);
    }

    /// Ends everything at once. With a driver, it delivers the events that wait.
    pub(super) fn stop(&mut self, has_driver: bool, later: &mut Later) {
        self.cancel_all(later);
        self.guard.end(later);
        self.end_store();
        self.stopped = true;
        later.milestone();
        match has_driver {
            true => self.events.end(),
            false => self.events.clear(later),
        }
    }

    /// The store gets nothing more.
    fn end_store(&mut self) {
        if let Some(store) = self.store.take() {
            store.end();
        }
    }

    /// Cancels every callback, also those that begin later.
    fn cancel_all(&mut self, later: &mut Later) {
        self.running.cancel_all().for_each(|cancelled| later.cancel(cancelled));
    }

    pub(super) fn next(&mut self) -> Option<NextTask> {
        if let Some(task) = self.guard.next() {
            return Some(NextTask::Guard(task));
        }
        match self.work.pop_front() {
            Some(work) => Some(NextTask::Route(work)),
            None => self.events.claim().then_some(NextTask::Deliver),
        }
    }

    /// Returns whether the driver has to be told that the server has ended: once.
    pub(super) fn next_end(&mut self) -> bool {
        self.is_ending() && !replace(&mut self.ended, true)
    }

    pub(super) fn is_ending(&self) -> bool {
        self.stopped || self.terminated
    }

    /// Returns whether the driver does not know that the server has ended.
    pub(super) fn ends(&self) -> bool {
        self.is_ending() && !self.ended
    }

    pub(super) fn has_task(&self) -> bool {
        !self.work.is_empty() || self.guard.wait() || self.events.wait() || self.ends()
    }
}
