//! What the operating system knows and the engine must be told: the time, a seed, the standard streams.

use mcp_proto::Instant;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::{self, Read};
#[cfg(feature = "http")]
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The clock of one engine. Its origin is the moment it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(std::time::Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::new(self.0.elapsed())
    }
}

/// Something that happens once.
#[cfg(feature = "http")]
#[derive(Default, Debug)]
pub(crate) struct Flag(AtomicBool);

#[cfg(feature = "http")]
impl Flag {
    /// It happens. Says whether it had happened before.
    pub(crate) fn set(&self) -> bool {
        self.0.swap(true, Ordering::SeqCst)
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// The time since 1970; zero if the calendar of this machine lies before that.
pub(crate) fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// 32 bytes that nobody can guess.
pub(crate) fn seed() -> [u8; 32] {
    let mut seed = [0; 32];
    let random = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut seed));
    if random.is_err() {
        // Without that device (Windows, a bare chroot): the standard library keys each `RandomState` from the same source.
        for (n, part) in seed.chunks_mut(8).enumerate() {
            part.copy_from_slice(&RandomState::new().hash_one(n).to_ne_bytes());
        }
    }
    seed
}

/// The standard streams, taken away from whatever else runs in this process for as long as this value lives: a handler that prints, or
/// a program that it starts, must not write into the protocol or read from it.
#[derive(Debug)]
pub(crate) struct TakenStdio {
    #[cfg(unix)]
    input: std::fs::File,
    #[cfg(unix)]
    output: std::fs::File,
}

#[cfg(unix)]
impl TakenStdio {
    /// Moves both streams to descriptors that no child inherits; then standard input is empty, and standard output is standard error.
    pub(crate) fn take() -> io::Result<Self> {
        use rustix::{io::fcntl_dupfd_cloexec, stdio};
        let input = fcntl_dupfd_cloexec(stdio::stdin(), 3)?.into();
        let output = fcntl_dupfd_cloexec(stdio::stdout(), 3)?.into();
        let taken = Self { input, output };
        stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
        stdio::dup2_stdout(stdio::stderr())?;
        Ok(taken)
    }

    pub(crate) fn streams(&self) -> io::Result<(impl Read + Send + 'static, impl io::Write + Send + 'static)> {
        Ok((self.input.try_clone()?, self.output.try_clone()?))
    }
}

#[cfg(unix)]
impl Drop for TakenStdio {
    /// Gives them back. They were borrowed; the program may go on to use them.
    fn drop(&mut self) {
        // It cannot fail in a way that could be helped here: both are valid descriptors.
        let _ = rustix::stdio::dup2_stdin(&self.input);
        let _ = rustix::stdio::dup2_stdout(&self.output);
    }
}

#[cfg(not(unix))]
impl TakenStdio {
    pub(crate) fn take() -> io::Result<Self> {
        Ok(Self {})
    }

    pub(crate) fn streams(&self) -> io::Result<(impl Read + Send + 'static, impl io::Write + Send + 'static)> {
        Ok((io::stdin(), io::stdout()))
    }
}
