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

pub(crate) type Polled = Arc<dyn ReadNow>;

#[cfg(all(any(target_os = "linux", target_os = "android"), not(all(test, shuttle))))]
pub(crate) use system::{pipe, socket};

/// Only a thread reads a pipe.
#[cfg(not(any(target_os = "linux", target_os = "android", all(test, shuttle))))]
pub(crate) fn pipe<R: io::Read + Send + 'static>(reader: R) -> (crate::transport::Reader, Option<Polled>) {
    (Box::new(reader), None)
}

/// Only a thread reads a socket.
#[cfg(any(not(any(target_os = "linux", target_os = "android")), all(test, shuttle)))]
pub(crate) fn socket(_: &crate::socket::Socket) -> Option<Polled> {
    None
}

#[cfg(all(any(target_os = "linux", target_os = "android"), not(all(test, shuttle))))]
mod system {
    use super::{Polled, ReadNow};
    use crate::socket::Socket;
    use crate::transport::Reader;
    use bytes::Bytes;
    use rustix::buffer::spare_capacity;
    use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
    use rustix::io::{Errno, read, write};
    use rustix::net::{RecvFlags, recv};
    use std::fs::File;
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, OnceLock};
    use std::time::Duration;

    /// Size of a read while little arrives, in bytes: on the stack.
    const SMALL: usize = 4 << 10;
    /// Size of a read after a larger one, in bytes: the capacity of a pipe.
    const LARGE: usize = 64 << 10;

    struct Readable {
        source: Source,
        /// Wakes the thread that waits. Created when a caller waits for the first time, since most
        /// connections of a server never need it.
        wakes: OnceLock<Option<OwnedFd>>,
        /// The latest read filled a small buffer: large answers often follow each other.
        is_large: AtomicBool,
    }

    enum Source {
        Pipe(Arc<File>),
        Socket(Socket),
    }

    /// Returns both ways to read a pipe that no other process reads.
    pub(crate) fn pipe(reader: impl Into<OwnedFd>) -> (Reader, Option<Polled>) {
        let file = Arc::new(File::from(reader.into()));
        (Box::new(Arc::clone(&file)), Some(polled(Source::Pipe(file))))
    }

    /// Returns a second way to read a socket.
    pub(crate) fn socket(socket: &Socket) -> Option<Polled> {
        Some(polled(Source::Socket(socket.clone())))
    }

    fn polled(source: Source) -> Polled {
        Arc::new(Readable { source, wakes: OnceLock::new(), is_large: AtomicBool::new(false) })
    }

    impl Readable {
        fn wakes(&self) -> Option<BorrowedFd<'_>> {
            let create = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok();
            self.wakes.get_or_init(create).as_ref().map(AsFd::as_fd)
        }
    }

    impl AsFd for Source {
        fn as_fd(&self) -> BorrowedFd<'_> {
            match self {
                Self::Pipe(file) => file.as_fd(),
                Self::Socket(Socket::Tcp(socket)) => socket.as_fd(),
                Self::Socket(Socket::Unix(socket)) => socket.as_fd(),
            }
        }
    }

    impl ReadNow for Readable {
        fn wait(&self, limit: Option<Duration>) -> io::Result<bool> {
            let wakes = self.wakes().ok_or(io::ErrorKind::Unsupported)?;
            let mut polled = [self.source.as_fd(), wakes].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
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

        fn read_now(&self) -> io::Result<Bytes> {
            if self.is_large.load(Ordering::Relaxed) {
                let mut large = Vec::with_capacity(LARGE);
                match &self.source {
                    Source::Pipe(file) => drop(read(file, spare_capacity(&mut large))?),
                    socket => drop(recv(socket, spare_capacity(&mut large), RecvFlags::DONTWAIT)?),
                }
                self.is_large.store(large.len() >= SMALL, Ordering::Relaxed);
                return Ok(Bytes::copy_from_slice(&large));
            }
            let mut small = [MaybeUninit::<u8>::uninit(); SMALL];
            let (bytes, _) = match &self.source {
                Source::Pipe(file) => read(file, &mut small)?,
                socket => recv(socket, &mut small, RecvFlags::DONTWAIT)?.0,
            };
            self.is_large.store(bytes.len() >= SMALL, Ordering::Relaxed);
            Ok(Bytes::copy_from_slice(bytes))
        }

        fn is_socket(&self) -> bool {
            matches!(self.source, Source::Socket(_))
        }

        fn wake(&self) {
            if let Some(wakes) = self.wakes() {
                // It fails only if the counter is full, which wakes the thread as well.
                _ = write(wakes, &1u64.to_ne_bytes());
            }
        }
    }
}
