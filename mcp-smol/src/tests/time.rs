//! Time under the model checker: it passes only when a scenario requests it.

use crate::sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Since the origin, which is the first time that the clock is read.
struct Time {
    now: Instant,
    timers: u64,
    armed: BTreeMap<(Instant, u64), Waker>,
}

shuttle::lazy_static! {
    static ref TIME: Mutex<Time> = Mutex::new(Time { now: Instant::now(), timers: 0, armed: BTreeMap::new() });
}

/// Like the clock of the core.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(lock(&TIME).now)
    }

    pub(crate) fn now(self) -> mcp_proto::Instant {
        mcp_proto::Instant::new(lock(&TIME).now.saturating_duration_since(self.0))
    }

    pub(crate) fn unix(self) -> Duration {
        Duration::ZERO
    }

    pub(crate) fn at(self, deadline: Option<mcp_proto::Instant>) -> Instant {
        let day = Duration::from_secs(24 * 60 * 60);
        self.0 + deadline.map_or(day, mcp_proto::Instant::since_origin)
    }
}

/// A run depends only on its schedule.
pub(crate) fn seed() -> std::io::Result<[u8; 32]> {
    Ok([0; 32])
}

/// Advances the time to the next timer. Returns whether there was one.
pub(super) fn pass() -> bool {
    let mut time = lock(&TIME);
    let Some(((at, _), waker)) = time.armed.pop_first() else { return false };
    time.now = time.now.max(at);
    drop(time);
    waker.wake();
    true
}

/// Like the timer of async-io.
pub(crate) struct Timer {
    number: u64,
    at: Option<Instant>,
}

impl Timer {
    pub(crate) fn never() -> Self {
        let mut time = lock(&TIME);
        time.timers += 1;
        Self { number: time.timers, at: None }
    }

    pub(crate) fn after(rest: Duration) -> Self {
        let mut timer = Self::never();
        timer.set_at(lock(&TIME).now + rest);
        timer
    }

    pub(crate) fn set_at(&mut self, at: Instant) {
        self.clear();
        self.at = Some(at);
    }

    pub(crate) fn clear(&mut self) {
        if let Some(at) = self.at.take() {
            let waker = lock(&TIME).armed.remove(&(at, self.number));
            drop(waker);
        }
    }
}

impl Future for Timer {
    type Output = Instant;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Instant> {
        let Some(at) = self.at else { return Poll::Pending };
        let mut time = lock(&TIME);
        if at <= time.now {
            return Poll::Ready(at);
        }
        let before = time.armed.insert((at, self.number), cx.waker().clone());
        drop(time);
        drop(before);
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.clear();
    }
}
