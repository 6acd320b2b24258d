//! The timers of the engines.

use crate::sync::{REST, Timer, YIELD};
use mcp_driver::Clock;
use mcp_proto::Instant;
use smol::future::{Boxed, Future};
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

/// A timer for the deadline of an engine.
pub(crate) struct Alarm {
    timer: Timer,
    armed: Option<Instant>,
    /// The latest poll has returned that a deadline has passed.
    has_fired: bool,
    /// The end of the rest after that.
    not_before: Instant,
}

impl Alarm {
    pub(crate) fn new() -> Self {
        Self { timer: Timer::never(), armed: None, has_fired: false, not_before: Instant::ZERO }
    }

    /// Returns whether `deadline` has passed, but not twice in a row. Otherwise wakes the task at
    /// that time or earlier, after a rest if it has passed.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, clock: Clock, deadline: Option<Instant>) -> bool {
        let Some(deadline) = deadline else { return false };
        let begins_rest = std::mem::take(&mut self.has_fired);
        if begins_rest {
            self.not_before = clock.now() + REST;
        }
        let deadline = deadline.max(self.not_before);
        loop {
            // A later deadline does not re-arm the timer until the earlier one has passed: most
            // calls move the deadline, and each change of the timer wakes the thread that waits for
            // events.
            if self.armed.is_none_or(|armed| deadline < armed) {
                self.armed = Some(deadline);
                self.timer.set_at(clock.at(Some(deadline)));
            }
            if Pin::new(&mut self.timer).poll(cx).is_pending() {
                return false;
            }
            self.armed = None;
            if clock.now() >= deadline {
                if begins_rest {
                    // The rest has passed before the timer was set.
                    cx.waker().wake_by_ref();
                }
                self.has_fired = !begins_rest;
                return self.has_fired;
            }
        }
    }

    /// Wakes the task by the timer, very soon. An executor polls a task that wakes itself many
    /// times, with others that are ready, before it looks for events of any stream; it does so as
    /// soon as no task is ready.
    pub(crate) fn yield_to_streams(&mut self, cx: &mut Context<'_>, clock: Clock) {
        let soon = clock.now() + YIELD;
        self.armed = Some(soon);
        self.timer.set_at(clock.at(self.armed));
        if Pin::new(&mut self.timer).poll(cx).is_ready() {
            self.armed = None;
            cx.waker().wake_by_ref();
        }
    }
}

/// Waits for this time.
pub(crate) async fn after(delay: Duration) {
    Timer::after(delay).await;
}

/// As [`after`], for the core.
pub(crate) fn delay(limit: Duration) -> Boxed<()> {
    Box::pin(after(limit))
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::task::Poll;

    // covers: B-074
    #[test]
    fn executor_looks_at_other_streams_between_two_deadlines() {
        let (clock, mut alarm) = (Clock::start(), Alarm::new());
        let past = Some(Instant::ZERO);
        for _ in 0..100 {
            smol::block_on(poll_fn(|cx| match alarm.poll(cx, clock, past) {
                true => {
                    assert!(!alarm.poll(cx, clock, past), "it fires again before anything else can happen");
                    Poll::Ready(())
                }
                false => Poll::Pending,
            }));
        }
    }
}
