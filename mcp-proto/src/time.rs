//! Time as an engine sees it: a duration since an origin that the driver chose. This module has no
//! `now()`, and must never have one.

use alloc::collections::{BTreeMap, BTreeSet};
use core::fmt;
use core::ops::{Add, Sub};
use core::time::Duration;

/// A point in time: a [`Duration`] since an origin that the driver chose once, usually when it
/// created its engine.
///
/// Time never moves back. An engine that is given an earlier instant than before continues with the
/// latest one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(Duration);

impl Instant {
    /// The origin.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// Returns the instant that is `since` after the origin.
    pub const fn new(since: Duration) -> Self {
        Self(since)
    }

    /// Returns the instant that is `millis` milliseconds after the origin.
    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// Returns the time since the origin.
    pub const fn since_origin(self) -> Duration {
        self.0
    }

    /// Returns the time since 1970, if the origin was `origin_unix` after 1970. Saturates.
    pub(crate) const fn unix(self, origin_unix: Duration) -> Duration {
        origin_unix.saturating_add(self.0)
    }

    /// Returns the time from `earlier` to `self`, or zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    /// Saturates: a deadline of `Duration::MAX` is never reached.
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(rhs))
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, rhs: Self) -> Duration {
        self.since(rhs)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// The armed timers of one engine, by name. Arming takes O(log n), and so does the lookup of the
/// next deadline. Timers fire in the order of their deadlines.
#[derive(Debug)]
pub(crate) struct Timers<T> {
    due: BTreeSet<(Instant, T)>,
    at: BTreeMap<T, Instant>,
}

impl<T: Copy + Ord> Timers<T> {
    pub(crate) const fn new() -> Self {
        Self { due: BTreeSet::new(), at: BTreeMap::new() }
    }

    /// Arms the timer for `at`, replacing an earlier time, or disarms it.
    pub(crate) fn set(&mut self, timer: T, at: Option<Instant>) {
        let before = match at {
            Some(at) => self.at.insert(timer, at),
            None => self.at.remove(&timer),
        };
        if let Some(before) = before {
            self.due.remove(&(before, timer));
        }
        if let Some(at) = at {
            self.due.insert((at, timer));
        }
    }

    /// Returns when the timer fires, if it is armed.
    pub(crate) fn get(&self, timer: T) -> Option<Instant> {
        self.at.get(&timer).copied()
    }

    /// Returns the next deadline and its timer.
    pub(crate) fn next(&self) -> Option<(Instant, T)> {
        self.due.first().copied()
    }

    /// Disarms and returns the first timer that is due.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<T> {
        let (at, timer) = self.next()?;
        (at <= now).then(|| {
            self.set(timer, None);
            timer
        })
    }

    pub(crate) fn clear(&mut self) {
        self.due.clear();
        self.at.clear();
    }
}

/// Returns the earlier of two optional deadlines.
pub(crate) fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_by_deadline_and_rearming_replaces() {
        let mut timers = Timers::new();
        timers.set('a', Some(Instant::from_millis(30)));
        timers.set('b', Some(Instant::from_millis(20)));
        timers.set('a', Some(Instant::from_millis(10)));
        timers.set('c', Some(Instant::from_millis(5)));
        timers.set('c', None);
        assert_eq!(timers.next(), Some((Instant::from_millis(10), 'a')));
        assert_eq!(timers.pop_due(Instant::from_millis(9)), None);
        assert_eq!(timers.pop_due(Instant::from_millis(20)), Some('a'));
        assert_eq!(timers.pop_due(Instant::from_millis(20)), Some('b'));
        assert_eq!(timers.next(), None);
    }

    // covers: B-059
    #[test]
    fn deadlines_saturate_instead_of_overflowing() {
        assert_eq!(Instant::from_millis(1) + Duration::MAX, Instant::new(Duration::MAX));
        assert_eq!(Instant::ZERO - Instant::from_millis(5), Duration::ZERO);
        assert_eq!(Instant::from_millis(61_000) - Instant::from_millis(500), Duration::from_millis(60_500));
    }
}
