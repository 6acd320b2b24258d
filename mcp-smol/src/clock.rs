//! Time and chance, which the engines do not have: one clock, one timer that is armed anew only when it must be, one seed.

use crate::sync::{Timer, now};
use mcp_proto::Instant;
use smol::future::Future;
use std::io;
use std::pin::Pin;
use std::task::Context;
use std::time::{Duration, SystemTime};

/// The origin that the instants of one engine count from.
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

/// One deadline of an engine.
pub(crate) struct Alarm {
    timer: Timer,
    armed: Option<Instant>,
}

impl Alarm {
    pub(crate) fn new() -> Self {
        Self { timer: Timer::never(), armed: None }
    }

    /// Whether `deadline` has come. If not, the task is woken when it comes, or before.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, origin: Origin, deadline: Option<Instant>) -> bool {
        let Some(deadline) = deadline else { return false };
        loop {
            // A deadline that moves back is looked at when the earlier one has come: most move with every call, and each change of the
            // timer wakes the thread that waits for events.
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

/// Rests so long.
pub(crate) async fn after(rest: Duration) {
    Timer::after(rest).await;
}

/// 32 bytes from the random source of the operating system. Keys and session ids follow from them, so there is no other source.
///
/// # Errors
/// The system gives no random bytes.
pub(crate) fn seed() -> io::Result<[u8; 32]> {
    // In the model there is no chance: a run depends on nothing but its schedule.
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
