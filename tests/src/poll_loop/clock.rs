//! What the engine takes of the operating system as arguments.

use mcp_proto::Instant;
use std::fs::File;
use std::io::{self, Read};
use std::time::{self, Duration, SystemTime};

/// The time since its start.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    started: time::Instant,
    /// The Unix time of the start.
    unix: Duration,
}

impl Clock {
    pub(super) fn start() -> Self {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { started: time::Instant::now(), unix }
    }

    pub(super) fn now(self) -> Instant {
        Instant::new(self.started.elapsed())
    }

    pub(super) const fn unix(self) -> Duration {
        self.unix
    }
}

/// Returns 32 bytes that cannot be guessed.
pub(super) fn seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut seed)?;
    Ok(seed)
}
