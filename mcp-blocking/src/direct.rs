//! Writing without waiting, so that the thread that has bytes for a connection writes them at once.
//!
//! The descriptor of a stream may be shared with other processes, and so is its mode. So it stays a
//! blocking one, for the thread that writes what is left.

use std::io::{self, IoSlice};

/// A second way to write to a stream.
pub(crate) trait WriteNow: Send {
    /// Writes what the system accepts at once. Never waits.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if it accepts nothing.
    fn write_now(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize>;
}

pub(crate) type Direct = Box<dyn WriteNow>;

/// Returns a second way to write to a stream. `None` if the system has none: another thread writes.
#[cfg(unix)]
pub(crate) fn of(stream: impl std::os::fd::AsFd) -> Option<Direct> {
    Some(Box::new(mcp_driver::NonBlocking::writer(stream)?))
}

/// Returns `None`: another thread writes.
#[cfg(not(unix))]
pub(crate) fn of<T>(_: &T) -> Option<Direct> {
    None
}

#[cfg(unix)]
impl WriteNow for mcp_driver::NonBlocking {
    fn write_now(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        io::Write::write_vectored(&mut &*self, pieces)
    }
}
