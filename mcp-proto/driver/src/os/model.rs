//! Time under the model checker: it passes only when a scenario requests it.

use alloc::collections::BTreeMap;
use core::cell::RefCell;
use core::task::Waker;
use core::time::Duration;

struct ModelTime {
    /// What [`Duration::ZERO`] is for the system.
    epoch: std::time::Instant,
    now: Duration,
    last: u64,
    timers: BTreeMap<(Duration, u64), Waker>,
}

std::thread_local! {
    /// All threads of a schedule are one thread of the real system. Never borrowed across a point
    /// at which the checker may switch.
    static TIME: RefCell<ModelTime> = RefCell::new(ModelTime::new());
}

impl ModelTime {
    fn new() -> Self {
        Self { epoch: std::time::Instant::now(), now: Duration::ZERO, last: 0, timers: BTreeMap::new() }
    }
}

/// A timer. Dropping it disarms it.
#[derive(Debug)]
pub struct ModelTimer((Duration, u64));

impl ModelTimer {
    /// Wakes this waker once the time is reached.
    pub fn new(at: Duration, waker: Waker) -> Self {
        TIME.with_borrow_mut(|time| {
            time.last += 1;
            let key = (at, time.last);
            time.timers.insert(key, waker);
            Self(key)
        })
    }
}

impl Drop for ModelTimer {
    fn drop(&mut self) {
        let waker = TIME.with_borrow_mut(|time| time.timers.remove(&self.0));
        // Outside of the borrow: it may be the last waker of a task that holds a timer.
        drop(waker);
    }
}

/// Begins at time zero, without timers.
pub fn begin() {
    drop(TIME.replace(ModelTime::new()));
}

/// Returns the time since the beginning.
pub fn now() -> Duration {
    TIME.with_borrow(|time| time.now)
}

/// Returns the instant of the system at the beginning.
pub fn epoch() -> std::time::Instant {
    TIME.with_borrow(|time| time.epoch)
}

/// Returns the time of the first timer.
pub fn next() -> Option<Duration> {
    TIME.with_borrow(|time| time.timers.keys().next().map(|(at, _)| *at))
}

/// Lets time pass, and wakes the timers that are due. Returns whether there were any.
pub fn pass_to(now: Duration) -> bool {
    TIME.with_borrow_mut(|time| time.now = time.now.max(now));
    let mut woken = false;
    while let Some(waker) = take_due() {
        woken = true;
        waker.wake();
    }
    woken
}

fn take_due() -> Option<Waker> {
    TIME.with_borrow_mut(|time| {
        let now = time.now;
        time.timers.first_entry().filter(|first| first.key().0 <= now).map(|first| first.remove())
    })
}
