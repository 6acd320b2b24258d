//! Waiting for a stream until another thread wakes the one that waits.

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::time::Duration;

/// The wait of a thread for a stream, which another thread can end. Only on Linux and Android.
///
/// A driver whose callers read for themselves waits with it. The descriptor that wakes is created
/// when it is needed for the first time.
///
/// ```
/// use mcp_driver::WakeableWait;
/// use std::io::Write;
///
/// # fn main() -> std::io::Result<()> {
/// let (from, mut to) = std::io::pipe()?;
/// let wait = WakeableWait::new();
/// wait.wake();
/// assert!(!wait.readable(&from, None)?); // woken, nothing to read
/// to.write_all(b"x")?;
/// assert!(wait.readable(&from, None)?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct WakeableWait(OnceLock<Option<OwnedFd>>);

impl WakeableWait {
    /// Creates a wait, without a descriptor yet.
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Waits until there is something to read from `stream`, or its end or an error; until it is
    /// [woken](Self::wake); or for at most `limit`. Returns whether a read of the stream does not
    /// wait. May return earlier.
    ///
    /// # Errors
    /// [`Unsupported`](io::ErrorKind::Unsupported) if the system gives no descriptor, or the error
    /// of the operating system.
    pub fn readable(&self, stream: impl AsFd, limit: Option<Duration>) -> io::Result<bool> {
        let wakes = self.wakes().ok_or(io::ErrorKind::Unsupported)?;
        let mut polled = [stream.as_fd(), wakes].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        match poll(&mut polled, limit.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(false),
            Err(e) => return Err(e.into()),
        }
        let [is_ready, is_woken] = polled.map(|fd| !fd.revents().is_empty());
        if is_woken {
            // Nothing is there if it was read meanwhile, which is as good.
            _ = read(wakes, &mut [0; 8]);
        }
        Ok(is_ready)
    }

    /// Ends the wait of the thread that waits, or the next wait.
    pub fn wake(&self) {
        if let Some(wakes) = self.wakes() {
            // It fails only if the counter is full, which wakes the thread as well.
            _ = write(wakes, &1u64.to_ne_bytes());
        }
    }

    fn wakes(&self) -> Option<BorrowedFd<'_>> {
        let create = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok();
        self.0.get_or_init(create).as_ref().map(AsFd::as_fd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::pipe;

    // covers: B-133, TIME-B-002
    #[test]
    fn wait_ends_with_data_with_a_wake_and_with_its_limit() {
        let (from, to) = pipe().expect("a pipe");
        let wait = WakeableWait::new();
        assert!(!wait.readable(&from, Some(Duration::ZERO)).expect("a wait"));
        wait.wake();
        wait.wake();
        assert!(!wait.readable(&from, None).expect("woken"));
        assert!(!wait.readable(&from, Some(Duration::ZERO)).expect("one wait is woken"));
        drop(to);
        assert!(wait.readable(&from, None).expect("the end"));
    }
}
