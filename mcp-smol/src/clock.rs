//! The timers of the engines.

use crate::sync::Timer;
use mcp_proto::Instant;
use mcp_proto::adapter::Clock;
use smol::future::{Boxed, Future};
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

/// A timer for the deadline of an engine.
pub(crate) struct Alarm {
    timer: Timer,
    armed: Option<Instant>,
}

impl Alarm {
    pub(crate) fn new() -> Self {
        Self { timer: Timer::never(), armed: None }
    }

    /// Returns whether `deadline` has passed. Otherwise wakes the task at that time or earlier.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, clock: Clock, deadline: Option<Instant>) -> bool {
        let Some(deadline) = deadline else { return false };
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
                return true;
            }
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
