//! Time and chance, which the engines do not have: one clock, one timer that is armed anew only when it must be, one seed.

use async_io::Timer;
use mcp_proto::Instant;
use smol::future::Future;
use std::io::{self, Read};
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
        Self { start: std::time::Instant::now(), unix }
    }

    pub(crate) fn now(self) -> Instant {
        Instant::new(self.start.elapsed())
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

/// 32 bytes from the random source of the operating system.
pub(crate) fn seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut seed)?;
    Ok(seed)
}
