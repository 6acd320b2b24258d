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

#[cfg(unix)]
pub(crate) use unix::{of, send_now};

/// Returns a second way to write to a stream. `None` if the system has none: another thread writes.
#[cfg(not(unix))]
pub(crate) fn of<T>(_: &T) -> Option<Direct> {
    None
}

#[cfg(unix)]
mod unix {
    use super::{Direct, WriteNow};
    use rustix::fs::{FileType, fstat};
    use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
    use std::io::{self, IoSlice};
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

    /// Returns a second way to write to a stream: for a socket, and on Linux for a pipe. `None` for
    /// any other: another thread writes.
    pub(crate) fn of(stream: impl AsFd) -> Option<Direct> {
        let stream = stream.as_fd();
        match FileType::from_raw_mode(fstat(stream).ok()?.st_mode) {
            FileType::Socket => Some(Box::new(SocketEnd(stream.try_clone_to_owned().ok()?))),
            FileType::Fifo => pipe(stream),
            _ => None,
        }
    }

    struct SocketEnd(OwnedFd);

    impl WriteNow for SocketEnd {
        fn write_now(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
            send_now(&self.0, pieces)
        }
    }

    /// Sends what the socket accepts at once.
    pub(crate) fn send_now(socket: impl AsFd, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let flags = SendFlags::DONTWAIT;
        // A socket that the peer has closed is an error, not a signal. Apple's systems have a
        // setting for it instead, which the standard library sets.
        #[cfg(not(target_vendor = "apple"))]
        let flags = flags | SendFlags::NOSIGNAL;
        Ok(sendmsg(socket, pieces, &mut SendAncillaryBuffer::default(), flags)?)
    }

    /// Opens a pipe again: the new description has a mode of its own. Fails if the pipe belongs to
    /// another user, or if the system does not show the descriptors of a process.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn pipe(stream: BorrowedFd<'_>) -> Option<Direct> {
        use rustix::fs::{Mode, OFlags, open};
        use std::os::fd::AsRawFd;

        struct PipeEnd(std::fs::File);

        impl WriteNow for PipeEnd {
            fn write_now(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
                io::Write::write_vectored(&mut &self.0, pieces)
            }
        }

        let itself = format!("/proc/self/fd/{}", stream.as_raw_fd());
        let opened = open(itself, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok()?;
        Some(Box::new(PipeEnd(opened.into())))
    }

    /// A pipe cannot be opened again, and a write could wait even if the pipe accepts something:
    /// another process may fill it first.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn pipe(_: BorrowedFd<'_>) -> Option<Direct> {
        None
    }
}

#[cfg(all(test, target_os = "linux", not(shuttle)))]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Read, Write, pipe};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    fn full(direct: &Direct) -> usize {
        let mut written = 0;
        loop {
            match direct.write_now(&[IoSlice::new(&[b'x'; 4096]), IoSlice::new(b"y")]) {
                Ok(n) => written += n,
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::WouldBlock);
                    return written;
                }
            }
        }
    }

    // The mode of a description is common to all processes that have it.
    fn blocks(stream: impl AsFd) -> bool {
        !rustix::fs::fcntl_getfl(stream).expect("a mode").contains(rustix::fs::OFlags::NONBLOCK)
    }

    // covers: B-131
    #[test]
    fn full_stream_is_an_error_and_stays_a_blocking_one() {
        let (mut reader, writer) = pipe().expect("a pipe");
        let direct = of(&writer).expect("Linux opens it again");
        let written = full(&direct);
        assert!(written > 4096 && blocks(&writer));
        // It is open until both are closed.
        drop(writer);
        drop(direct);
        let mut read = Vec::new();
        assert_eq!(reader.read_to_end(&mut read).expect("read"), written);

        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let direct = of(&ours).expect("a socket");
        assert!(full(&direct) > 4096 && blocks(&ours));
        drop(theirs);
        let broken = direct.write_now(&[IoSlice::new(b"z")]).expect_err("nobody reads");
        assert_eq!(broken.kind(), ErrorKind::BrokenPipe);
    }

    #[test]
    fn other_files_have_no_second_way() {
        let mut file = std::fs::File::open("/dev/null").expect("a file");
        assert!(of(&file).is_none());
        assert!(file.write(b"x").is_err());
    }
}
