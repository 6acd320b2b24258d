//! Time as an engine sees it: a duration since an origin that the driver chose. This module has no
//! `now()`, and must never have one.

mod timers;

pub use timers::Timers;

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

/// Returns the earlier of two optional deadlines.
pub fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: B-059
    #[test]
    fn deadlines_saturate_instead_of_overflowing() {
        assert_eq!(Instant::from_millis(1) + Duration::MAX, Instant::new(Duration::MAX));
        assert_eq!(Instant::ZERO - Instant::from_millis(5), Duration::ZERO);
        assert_eq!(Instant::from_millis(61_000) - Instant::from_millis(500), Duration::from_millis(60_500));
    }
}
