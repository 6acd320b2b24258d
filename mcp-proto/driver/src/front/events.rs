//! The events of a client or a server that wait for a callback of the application.

use super::shared::Later;
use crate::sync::guarded;
use alloc::boxed::Box;
use core::fmt;
use mcp_proto::event_queue::{EventQueue, Weigh};

pub(super) type EventFn<E> = Box<dyn FnMut(E) + Send>;

/// The events that wait for the callback, and the callback. Without one, no event waits.
pub struct WaitingEvents<E> {
    queue: EventQueue<E>,
    max: usize,
    callback: Option<EventFn<E>>,
    /// Somebody delivers, or is about to.
    claimed: bool,
    /// Nothing follows: the callback is dropped after the last event.
    ended: bool,
}

/// What a thread that delivers does next.
pub(super) enum Delivery<E> {
    /// Call the callback, and put it back.
    Call(EventFn<E>, E),
    /// Drop this once the lock is released: it may hold the client or the server.
    Over(Option<EventFn<E>>),
}

impl<E: Weigh + 'static> WaitingEvents<E> {
    /// `max` is the maximum number of droppable events that wait, and of the bytes that they hold.
    pub fn new(callback: Option<Box<dyn FnMut(E) + Send>>, max: (usize, usize)) -> Self {
        Self { queue: EventQueue::new(max.0, max.1), max: max.0, callback, claimed: false, ended: false }
    }

    /// Adds an event, unless nothing delivers it.
    pub fn push(&mut self, event: E) {
        if (self.callback.is_some() || self.claimed) && !self.ended {
            self.queue.push(event);
        }
    }

    /// Accepts no further events.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Accepts no further events, and drops the callback, unless somebody delivers, who drops it
    /// after the last event.
    pub fn finish(&mut self, later: &mut Later) {
        self.ended = true;
        if !self.claimed {
            later.drop_later(self.callback.take());
        }
    }

    /// Drops the waiting events and the callback, and accepts no further events. A thread that is
    /// calling the callback drops it.
    pub fn clear(&mut self, later: &mut Later) {
        self.ended = true;
        while self.queue.pop().is_some() {}
        later.drop_later(self.callback.take());
    }

    /// Returns whether somebody has to deliver: events wait, or the callback is to be dropped.
    pub fn wait(&self) -> bool {
        !self.claimed && self.callback.is_some() && (self.ended || !self.queue.is_empty())
    }

    /// Returns whether somebody has to deliver, and leaves it to the caller.
    pub fn claim(&mut self) -> bool {
        let waits = self.wait();
        self.claimed |= waits;
        waits
    }

    /// The caller does not deliver.
    pub fn unclaim(&mut self) {
        self.claimed = false;
    }

    /// Returns whether more events wait than the limit, since they are of a kind that is never
    /// dropped. The entry that counts dropped ones is one more.
    pub fn is_behind(&self) -> bool {
        self.queue.len() > self.max.saturating_add(1)
    }

    /// Returns the number of waiting events, and the numbers of lost notifications and diagnostics.
    pub fn counts(&self) -> (usize, (u64, u64)) {
        (self.queue.len(), self.queue.lost())
    }

    /// Returns the next delivery, for the thread that has claimed it. `before` is the callback of
    /// the last one.
    pub(super) fn next(&mut self, before: Option<EventFn<E>>) -> Delivery<E> {
        match (before.or_else(|| self.callback.take()), self.queue.pop()) {
            (Some(callback), Some(event)) => Delivery::Call(callback, event),
            (callback, _) => {
                self.claimed = false;
                if self.ended {
                    return Delivery::Over(callback);
                }
                self.callback = callback;
                Delivery::Over(None)
            }
        }
    }
}

/// Delivers until no event waits. `next` is [`WaitingEvents::next`] under the lock.
pub(super) fn deliver<E>(mut next: impl FnMut(Option<EventFn<E>>) -> Delivery<E>) {
    let mut before = None;
    loop {
        match next(before.take()) {
            Delivery::Call(mut callback, event) => {
                guarded(|| callback(event));
                before = Some(callback);
            }
            Delivery::Over(callback) => return drop(callback),
        }
    }
}

impl<E> fmt::Debug for WaitingEvents<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitingEvents").field("has_callback", &self.callback.is_some()).finish_non_exhaustive()
    }
}
