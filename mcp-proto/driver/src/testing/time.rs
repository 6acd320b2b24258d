//! Virtual time for the application: its present instant, and futures that wait for a later one.

use super::lock;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use mcp_proto::time::Instant;
use std::sync::Mutex;

/// The virtual time of a [`Link`](super::Link), for handlers and callbacks that wait. Only the link
/// moves it. Create it before the link, let handlers capture a clone, and pass it to
/// [`LinkOptions::time`](super::LinkOptions::time). Clones share one time. It belongs to one link.
///
/// ```
/// use mcp_driver::testing::{Link, LinkOptions, Time};
/// use mcp_proto::{ClientConfig, Router, tool, tools};
/// use std::time::Duration;
///
/// let time = Time::new();
/// let clock = time.clone();
/// let router = Router::new("kitchen", "1.0").tool_async(tool("boil"), move |_cx, ()| {
///     let boiled = clock.after(Duration::from_secs(300));
///     async move {
///         boiled.await;
///         Ok("ready")
///     }
/// });
/// let mut link = Link::with(router, ClientConfig::given(), LinkOptions::new().time(&time));
/// let call = link.call(tools::call("boil").timeout(None)).unwrap();
/// assert_eq!(link.wait(&call).unwrap().first_text(), Some("ready"));
/// assert_eq!(link.now().since_origin(), Duration::from_secs(300));
/// ```
#[derive(Clone, Default)]
pub struct Time(Arc<Mutex<TimeState>>);

#[derive(Default)]
struct TimeState {
    now: Instant,
    /// The wakers of pending delays, by deadline and number.
    waiting: BTreeMap<(Instant, u64), Waker>,
    next: u64,
}

impl Time {
    /// Creates a time that is at [`Instant::ZERO`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the present instant.
    pub fn now(&self) -> Instant {
        lock(&self.0).now
    }

    /// Returns a future that completes once the link has reached the instant `wait` from now.
    pub fn after(&self, wait: Duration) -> After {
        let mut state = lock(&self.0);
        state.next += 1;
        After { time: self.clone(), key: (state.now + wait, state.next) }
    }

    /// Returns the first deadline of a pending delay.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        lock(&self.0).waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// Returns the wakers of pending delays.
    pub(super) fn waiting(&self) -> Vec<Waker> {
        lock(&self.0).waiting.values().cloned().collect()
    }

    /// Moves to a later instant, and wakes the delays that end there or before.
    pub(super) fn advance(&self, now: Instant) {
        let mut state = lock(&self.0);
        state.now = state.now.max(now);
        let mut due = Vec::new();
        while let Some(entry) = state.waiting.first_entry().filter(|entry| entry.key().0 <= now) {
            due.push(entry.remove());
        }
        drop(state);
        due.into_iter().for_each(Waker::wake);
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Time").field(&self.now()).finish()
    }
}

/// A future of [`Time::after`]. Dropping it is harmless.
#[must_use = "futures do nothing unless polled"]
pub struct After {
    time: Time,
    /// The deadline, and a number that no other delay has.
    key: (Instant, u64),
}

impl Future for After {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // The waker of before may be the last one of a task that holds a time, so the lock is
        // released first.
        let (is_over, _before) = {
            let mut state = lock(&self.time.0);
            match state.now >= self.key.0 {
                true => (true, None),
                false => (false, state.waiting.insert(self.key, cx.waker().clone())),
            }
        };
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for After {
    fn drop(&mut self) {
        let _waker = lock(&self.time.0).waiting.remove(&self.key);
    }
}

impl fmt::Debug for After {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("After").field("until", &self.key.0).finish_non_exhaustive()
    }
}
