//! Time and randomness for the engines: a clock, a timer, and a seed.

use crate::sync::{Timer, now};
use mcp_proto::Instant;
use smol::future::Future;
use std::io;
use std::pin::Pin;
use std::task::Context;
use std::time::{Duration, SystemTime};

/// The origin of the instants of one engine.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    start: std::time::Instant,
    /// Its Unix time.
    pub(crate) unix: Duration,
}

impl Origin {
    pub(crate) fn new() -> Self {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { start: now(), unix }
    }

    pub(crate) fn now(self) -> Instant {
        Instant::new(now().saturating_duration_since(self.start))
    }
}

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
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, origin: Origin, deadline: Option<Instant>) -> bool {
        let Some(deadline) = deadline else { return false };
        loop {
            // A later deadline does not re-arm the timer until the earlier one has passed: most
            // calls move the deadline, and each change of the timer wakes the thread that waits for
            // events.
            if self.armed.is_none_or(|armed| deadline < armed) {
                self.armed = Some(deadline);
                match origin.start.checked_add(deadline.since_origin()) {
                    Some(at) => self.timer.set_at(at),
                    None => self.timer.clear(),
                }
            }
            if Pin::new(&mut self.timer).poll(cx).is_pending() {
                return false;
            }
            self.armed = None;
            if origin.now() >= deadline {
                return true;
            }
        }
    }
}

/// Waits for this time.
pub(crate) async fn after(rest: Duration) {
    Timer::after(rest).await;
}

/// Returns 32 bytes from the random source of the operating system. Keys and session ids are
/// derived from them, so there is no fallback.
///
/// # Errors
/// The system provides no random bytes.
pub(crate) fn seed() -> io::Result<[u8; 32]> {
    // The model checker has no randomness: a run depends only on its schedule.
    if cfg!(all(test, shuttle)) { Ok([0; 32]) } else { seed_from(getrandom::fill) }
}

fn seed_from<E: Into<io::Error>>(fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    fill(&mut seed).map_err(Into::into)?;
    Ok(seed)
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

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
}
