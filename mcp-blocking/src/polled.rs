//! Reading without being stuck, so that a caller reads its answer itself.
//!
//! Only one thread reads a stream at a time, see `connection::reading`. So the blocking descriptor
//! of a pipe is read without waiting once it is ready.

use bytes::Bytes;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// A second way to read a stream.
pub(crate) trait ReadNow: Send + Sync {
    /// Waits until there is something to read, until it is woken, or for at most `limit`. Returns
    /// whether there is something to read. May return earlier.
    ///
    /// # Errors
    /// The system provides nothing to wait with.
    fn wait(&self, limit: Option<Duration>) -> io::Result<bool>;

    /// Reads what has arrived. Call it once [`wait`](Self::wait) has returned true.
    ///
    /// # Errors
    /// Those of the stream.
    fn read_now(&self) -> io::Result<Bytes>;

    /// Wakes the thread that waits, or the next one that will.
    fn wake(&self);

    /// Returns whether it is a socket, whose peer may close it between two requests.
    fn is_socket(&self) -> bool;
}

pub(crate) type PolledSource = Arc<dyn ReadNow>;

#[cfg(all(any(target_os = "linux", target_os = "android"), not(all(test, shuttle))))]
pub(crate) use system::{pipe, socket};

/// Only a thread reads a pipe.
#[cfg(not(any(target_os = "linux", target_os = "android", all(test, shuttle))))]
pub(crate) fn pipe<R: io::Read + Send + 'static>(reader: R) -> (crate::transport::Reader, Option<PolledSource>) {
    (Box::new(reader), None)
}

/// Only a thread reads a socket.
#[cfg(any(not(any(target_os = "linux", target_os = "android")), all(test, shuttle)))]
pub(crate) fn socket(_: &crate::socket::Socket) -> Option<PolledSource> {
    None
}

#[cfg(all(any(target_os = "linux", target_os = "android"), not(all(test, shuttle))))]
mod system {
    use super::{PolledSource, ReadNow};
    use crate::socket::Socket;
    use crate::stream::{MOST, READ};
    use crate::transport::Reader;
    use bytes::Bytes;
    use mcp_driver::{WakeableWait, recv_now};
    use std::fs::File;
    use std::io::{self, Read};
    use std::os::fd::OwnedFd;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    struct Readable {
        source: Source,
        wait: WakeableWait,
        /// The latest read filled its buffer: large answers often follow each other.
        is_large: AtomicBool,
    }

    enum Source {
        Pipe(Arc<File>),
        Socket(Socket),
    }

    /// Returns both ways to read a pipe that no other process reads.
    pub(crate) fn pipe(reader: impl Into<OwnedFd>) -> (Reader, Option<PolledSource>) {
        let file = Arc::new(File::from(reader.into()));
        (Box::new(Arc::clone(&file)), Some(polled(Source::Pipe(file))))
    }

    /// Returns a second way to read a socket.
    pub(crate) fn socket(socket: &Socket) -> Option<PolledSource> {
        Some(polled(Source::Socket(socket.clone())))
    }

    fn polled(source: Source) -> PolledSource {
        Arc::new(Readable { source, wait: WakeableWait::new(), is_large: AtomicBool::new(false) })
    }

    impl Source {
        fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
            match self {
                Self::Pipe(file) => (&**file).read(buffer),
                Self::Socket(Socket::Tcp(socket)) => recv_now(socket, buffer),
                Self::Socket(Socket::Unix(socket)) => recv_now(socket, buffer),
            }
        }
    }

    impl ReadNow for Readable {
        fn wait(&self, limit: Option<Duration>) -> io::Result<bool> {
            match &self.source {
                Source::Pipe(file) => self.wait.readable(file, limit),
                Source::Socket(Socket::Tcp(socket)) => self.wait.readable(socket, limit),
                Source::Socket(Socket::Unix(socket)) => self.wait.readable(socket, limit),
            }
        }

        fn read_now(&self) -> io::Result<Bytes> {
            let (mut small, mut large) = ([0; READ], Vec::new());
            let buffer = match self.is_large.load(Ordering::Relaxed) {
                true => {
                    large.resize(MOST, 0);
                    &mut large[..]
                }
                false => &mut small[..],
            };
            let n = self.source.read(buffer)?;
            self.is_large.store(n >= READ, Ordering::Relaxed);
            Ok(Bytes::copy_from_slice(&buffer[..n]))
        }

        fn wake(&self) {
            self.wait.wake();
        }

        fn is_socket(&self) -> bool {
            matches!(self.source, Source::Socket(_))
        }
    }
}
