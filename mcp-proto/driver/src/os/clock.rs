//! The clock and the seed of an engine.

use core::time::Duration;
use mcp_proto::time::Instant;
use std::io;

/// The clock of one engine. Its origin is the time of its creation.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
    unix: Duration,
}

#[cfg(not(shuttle))]
mod system {
    use core::time::Duration;
    use std::time::{Instant, SystemTime};

    pub(super) fn now() -> Instant {
        Instant::now()
    }

    pub(super) fn unix() -> Duration {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
    }
}

/// The time of the model checker.
#[cfg(shuttle)]
mod system {
    use crate::os::model;
    use core::time::Duration;
    use std::time::Instant;

    pub(super) fn now() -> Instant {
        model::epoch() + model::now()
    }

    pub(super) fn unix() -> Duration {
        Duration::ZERO
    }
}

impl Clock {
    /// Maximum time that [`until`](Self::until) and [`at`](Self::at) look ahead. A deadline beyond
    /// it, or none, counts as this: an early timer does no harm, and a later instant could exceed
    /// the range of the system's clock.
    pub const HORIZON: Duration = Duration::from_secs(24 * 60 * 60);

    /// Starts the clock.
    pub fn start() -> Self {
        Self { origin: system::now(), unix: system::unix() }
    }

    /// Returns the current time.
    pub fn now(&self) -> Instant {
        Instant::new(self.elapsed())
    }

    /// Returns the Unix time of [`Instant::ZERO`], for
    /// [`ClientConfig::origin_unix`](mcp_proto::ClientConfig::origin_unix) and its counterpart of
    /// the server. Zero if the calendar of this machine is before 1970.
    pub const fn unix(&self) -> Duration {
        self.unix
    }

    /// Returns the time from now until a deadline, for a loop that sleeps: zero if it has passed.
    pub fn until(&self, deadline: Option<Instant>) -> Duration {
        deadline.map_or(Self::HORIZON, |deadline| deadline.since(self.now()).min(Self::HORIZON))
    }

    /// Returns a deadline as an instant of the system, for the timer of a runtime.
    pub fn at(&self, deadline: Option<Instant>) -> std::time::Instant {
        let horizon = self.elapsed() + Self::HORIZON;
        self.origin + deadline.map_or(horizon, |deadline| deadline.since_origin().min(horizon))
    }

    fn elapsed(&self) -> Duration {
        system::now().saturating_duration_since(self.origin)
    }
}

/// Returns 32 bytes from the random source of the operating system. Keys and session ids are
/// derived from them, so there is no fallback.
///
/// # Errors
/// The system provides no random bytes.
pub fn seed() -> io::Result<[u8; 32]> {
    if cfg!(shuttle) {
        // A schedule is reproducible.
        return Ok([7; 32]);
    }
    seed_from(getrandom::fill)
}

fn seed_from<E: Into<io::Error>>(fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    fill(&mut seed).map_err(Into::into)?;
    Ok(seed)
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use alloc::string::ToString;

    // covers: S3-16, SHTTP-S-047
    #[test]
    fn seed_is_random_or_an_error() {
        assert_ne!(seed().expect("a seed"), seed().expect("a seed"));
        let failed = seed_from(|half: &mut [u8]| {
            half[..16].fill(7);
            Err(io::Error::other("no entropy"))
        });
        assert_eq!(failed.expect_err("no seed").to_string(), "no entropy");
    }

    #[test]
    fn deadlines_are_within_a_day() {
        let clock = Clock::start();
        for never in [None, Some(Instant::new(Duration::MAX))] {
            assert_eq!(clock.until(never), Clock::HORIZON);
            assert!(clock.at(never) > std::time::Instant::now());
        }
        assert_eq!(clock.until(Some(Instant::ZERO)), Duration::ZERO);
        assert!(clock.at(Some(Instant::ZERO)) <= std::time::Instant::now());
        let soon = clock.now() + Duration::from_secs(60);
        assert!(clock.until(Some(soon)) <= Duration::from_secs(60));
    }
}
