//! Timers under the model checker: time passes only when a scenario requests it.

use mcp_driver::model::{self, ModelTimer};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Advances the time to the next timer. Returns whether there was one.
pub(super) fn pass() -> bool {
    model::next().is_some_and(model::pass_to)
}

/// Like the timer of async-io.
pub(crate) struct Timer {
    at: Option<Duration>,
    armed: Option<ModelTimer>,
}

impl Timer {
    pub(crate) fn never() -> Self {
        Self { at: None, armed: None }
    }

    pub(crate) fn after(delay: Duration) -> Self {
        Self { at: Some(model::now() + delay), armed: None }
    }

    pub(crate) fn set_at(&mut self, at: Instant) {
        (self.at, self.armed) = (Some(at.saturating_duration_since(model::epoch())), None);
    }
}

impl Future for Timer {
    type Output = Instant;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Instant> {
        let Some(at) = self.at else { return Poll::Pending };
        if at <= model::now() {
            return Poll::Ready(model::epoch() + at);
        }
        self.armed = Some(ModelTimer::new(at, cx.waker().clone()));
        Poll::Pending
    }
}
