//! The waiting tasks of a server.

use super::Attention;
use super::events::{EventFn, WaitingEvents};
use crate::adapter::server_core::ServerTask;
use crate::adapter::work::Work;
use crate::server::Event;
use crate::time::Instant;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem::{replace, take};
use core::task::{Poll, Waker};

/// The waiting tasks of a server or of a gateway, and its driver.
pub(super) struct Backlog {
    work: VecDeque<Work>,
    pub(super) events: WaitingEvents<Event>,
    pub(super) attention: Attention,
    /// Callbacks to cancel and drivers to wake, once the lock is released.
    later: Vec<ServerTask>,
    /// Everything has to end at once.
    pub(super) stopped: bool,
    /// The engine has ended.
    terminated: bool,
    /// The driver knows that the server has ended.
    ended: bool,
    milestone: bool,
}

/// What to do once the lock is released.
#[must_use]
pub(super) struct Later {
    tasks: Vec<ServerTask>,
    driver: Option<Waker>,
    /// The server has ended: wake those that wait for it.
    pub(super) milestone: bool,
    /// There is a task for the driver, or for the driver of a connection.
    pub(super) has_task: bool,
}

/// A task for the driver, or for the driver of a connection.
#[expect(clippy::large_enum_variant, reason = "it is moved once")]
pub(super) enum NextTask {
    Route(Work),
    Deliver,
}

impl Backlog {
    pub(super) fn new(callback: Option<EventFn<Event>>, max: (usize, usize)) -> Self {
        Self {
            work: VecDeque::new(),
            events: WaitingEvents::new(callback, max),
            attention: Attention::default(),
            later: Vec::new(),
            stopped: false,
            terminated: false,
            ended: false,
            milestone: false,
        }
    }

    /// Sorts a task of the engine by who carries it out.
    pub(super) fn push(&mut self, task: ServerTask) {
        match task {
            ServerTask::Work(work) => self.work.push_back(work),
            ServerTask::Event(event) => self.events.push(event),
            ServerTask::Cancel(_) | ServerTask::Wake(_) => self.later.push(task),
            ServerTask::Ended => {
                (self.terminated, self.milestone) = (true, true);
                self.events.end();
            }
        }
    }

    /// Ends everything at once. With a driver, it delivers the events that wait. Without one,
    /// returns the callback for events, to be dropped outside of the lock.
    pub(super) fn stop(&mut self, has_driver: bool) -> Option<EventFn<Event>> {
        (self.stopped, self.milestone) = (true, true);
        if has_driver {
            self.events.end();
            return None;
        }
        self.events.clear()
    }

    /// Ends a change. With `tasks`, wakes the driver for its tasks; otherwise the caller carries
    /// them out.
    pub(super) fn finish(&mut self, due: Option<Instant>, tasks: bool) -> Later {
        let has_task = self.has_task();
        let ends = self.is_ending() && !self.ended;
        let driver = self.attention.check(due, (tasks && has_task) || ends);
        Later { tasks: take(&mut self.later), driver, milestone: take(&mut self.milestone), has_task }
    }

    pub(super) fn poll_woken(&mut self, waker: &Waker) -> (Poll<()>, Option<Waker>) {
        let has_task = self.has_task();
        self.attention.poll(has_task, waker)
    }

    pub(super) fn next(&mut self) -> Option<NextTask> {
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

    fn has_task(&self) -> bool {
        !self.work.is_empty() || self.events.wait() || (self.is_ending() && !self.ended)
    }
}

impl Later {
    /// Cancels callbacks, and wakes drivers. Call it outside of every lock.
    pub(super) fn carry_out(self) {
        for task in self.tasks {
            match task {
                ServerTask::Cancel(cancelled) => cancelled.wake(),
                ServerTask::Wake(waker) => waker.wake(),
                ServerTask::Work(_) | ServerTask::Event(_) | ServerTask::Ended => {}
            }
        }
        self.driver.into_iter().for_each(Waker::wake);
    }
}
