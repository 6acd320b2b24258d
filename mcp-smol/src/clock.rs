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

/// 32 bytes from the random source of the operating system.
pub(crate) fn seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    // In the model there is no chance: a run depends on nothing but its schedule.
    if !cfg!(all(test, shuttle)) {
        fill(&mut seed)?;
    }
    Ok(seed)
}

#[cfg(unix)]
fn fill(seed: &mut [u8]) -> io::Result<()> {
    io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, seed)
}

/// The standard library asks the system for random bytes once in each thread, and keys every `RandomState` by them.
#[cfg(not(unix))]
fn fill(seed: &mut [u8]) -> io::Result<()> {
    use std::hash::{BuildHasher, RandomState};
    for (n, part) in seed.chunks_mut(8).enumerate() {
        part.copy_from_slice(&RandomState::new().hash_one(n).to_ne_bytes());
    }
    Ok(())
}
