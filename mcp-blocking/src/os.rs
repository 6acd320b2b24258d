//! The operating system: time, seeds, pipes, programs, and the standard streams. The model checker
//! replaces it.

use crate::ends::{Reader, Writer};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[cfg_attr(unix, path = "os/unix.rs")]
#[cfg_attr(not(unix), path = "os/windows.rs")]
#[cfg_attr(all(test, shuttle), expect(dead_code, reason = "the model has programs of its own"))]
mod native;
#[cfg(not(all(test, shuttle)))]
mod system;

#[cfg(all(test, shuttle))]
pub(crate) use crate::tests::os::{Child, Clock, pipe, seed, spawn};
pub(crate) use native::TakenStdio;
#[cfg(not(all(test, shuttle)))]
pub(crate) use native::{Child, spawn};
#[cfg(not(all(test, shuttle)))]
pub(crate) use system::{Clock, pipe, seed};

/// A started program, with this side of its pipes.
pub(crate) struct Spawned<C = Child> {
    pub(crate) child: C,
    pub(crate) output: Reader,
    pub(crate) input: Writer,
    /// Its standard error, unless it is inherited.
    pub(crate) errors: Option<Reader>,
}

/// How to end a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Signal {
    Terminate,
    Kill,
}

/// Returns the time since 1970. Zero if the calendar of this machine is before that.
pub(crate) fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
