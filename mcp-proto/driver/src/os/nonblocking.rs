//! Pipes and sockets, for operations that never wait.

use rustix::fs::{FileType, OFlags, fstat};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg};
use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// One direction of a pipe or a socket that the application was given, such as a standard stream.
/// Its operations never wait: they return [`WouldBlock`](io::ErrorKind::WouldBlock).
///
/// Whether an operation waits is a property of the open file, which other processes may share: the
/// shell that started this one, or other writers of the same pipe. It stays as it is. So a pipe is
/// opened once more, and each operation on a socket says itself that it must not wait. A pipe ends
/// for its peer when the original descriptor and this one are both closed.
#[derive(Debug)]
pub struct NonBlocking(Kind);

#[derive(Debug)]
enum Kind {
    Pipe(File),
    Socket(OwnedFd),
}

impl NonBlocking {
    /// Returns the same stream, for reading. `None` if only a thread can read it: it is neither a
    /// pipe nor a socket, or the system refuses to open the pipe once more, as it does for a pipe
    /// of another user, without `/proc`, and on all systems except Linux.
    pub fn reader(stream: impl AsFd) -> Option<Self> {
        Self::of(stream.as_fd(), OFlags::RDONLY)
    }

    /// Returns the same stream, for writing. `None` as for a [`reader`](Self::reader), and for a
    /// named pipe without a reader.
    pub fn writer(stream: impl AsFd) -> Option<Self> {
        Self::of(stream.as_fd(), OFlags::WRONLY)
    }

    fn of(stream: BorrowedFd<'_>, access: OFlags) -> Option<Self> {
        Some(Self(match FileType::from_raw_mode(fstat(stream).ok()?.st_mode) {
            FileType::Fifo => Kind::Pipe(opened_again(stream, access)?),
            FileType::Socket => Kind::Socket(stream.try_clone_to_owned().ok()?),
            _ => return None,
        }))
    }
}

/// Opens a pipe once more. The new description has a mode of its own.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn opened_again(stream: BorrowedFd<'_>, access: OFlags) -> Option<File> {
    use rustix::fs::{Mode, fcntl_getfl, open};
    use std::os::fd::AsRawFd;

    // Opening could give a right that the descriptor does not have.
    if fcntl_getfl(stream).ok()? & OFlags::RWMODE != access {
        return None;
    }
    let path = std::format!("/proc/self/fd/{}", stream.as_raw_fd());
    let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    Some(open(path, flags, Mode::empty()).ok()?.into())
}

/// A pipe cannot be opened again. A write could wait even if the pipe accepts something: another
/// process may fill it first.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn opened_again(_: BorrowedFd<'_>, _: OFlags) -> Option<File> {
    None
}

/// Sends what a socket accepts at once, whatever its mode is. Never waits.
///
/// # Errors
/// [`WouldBlock`](io::ErrorKind::WouldBlock) if it accepts nothing, or the error of the operating
/// system. A peer that has gone causes an error and no signal.
pub fn send_now(socket: impl AsFd, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
    let flags = SendFlags::DONTWAIT;
    // Apple's systems have a setting for it instead, which the standard library sets.
    #[cfg(not(target_vendor = "apple"))]
    let flags = flags | SendFlags::NOSIGNAL;
    Ok(sendmsg(socket, pieces, &mut SendAncillaryBuffer::default(), flags)?)
}

/// Receives what has arrived at a socket, whatever its mode is. Never waits.
///
/// # Errors
/// [`WouldBlock`](io::ErrorKind::WouldBlock) if nothing has arrived, or the error of the operating
/// system.
pub fn recv_now(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(recv(socket, buffer, RecvFlags::DONTWAIT)?.0)
}

impl AsFd for NonBlocking {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Kind::Pipe(pipe) => pipe.as_fd(),
            Kind::Socket(socket) => socket.as_fd(),
        }
    }
}

impl Read for &NonBlocking {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.0 {
            Kind::Pipe(pipe) => (&mut &*pipe).read(buffer),
            Kind::Socket(socket) => recv_now(socket, buffer),
        }
    }
}

impl Write for &NonBlocking {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match &self.0 {
            Kind::Pipe(pipe) => (&mut &*pipe).write_vectored(pieces),
            Kind::Socket(socket) => send_now(socket, pieces),
        }
    }

    /// Nothing is buffered.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, fcntl_getfl, mknodat, open};
    use std::io::{ErrorKind, pipe};
    use std::os::unix::net::UnixStream;
    use std::thread::yield_now;
    use std::time::{Duration, Instant};
    use std::vec::Vec;

    /// Repeats an attempt while it returns `None`, for a time: a program that another test starts
    /// has copies of all descriptors until it is executed, so an end that was closed here may still
    /// be open.
    fn until<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            match attempt() {
                Some(outcome) => return outcome,
                None => assert!(Instant::now() < end, "the other end stays open"),
            }
            yield_now();
        }
    }

    /// Writes until nothing more is accepted. Returns the number of bytes.
    fn fill(mut writer: &NonBlocking) -> usize {
        let mut written = 0;
        loop {
            match writer.write_vectored(&[IoSlice::new(&[b'x'; 4096]), IoSlice::new(b"y")]) {
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
        !fcntl_getfl(stream).expect("a mode").contains(OFlags::NONBLOCK)
    }

    // covers: B-131, B-143
    #[test]
    fn empty_and_full_pipes_are_errors_and_stay_blocking() {
        let (from, to) = pipe().expect("a pipe");
        let reader = NonBlocking::reader(&from).expect("Linux opens it again");
        let writer = NonBlocking::writer(&to).expect("Linux opens it again");
        assert_eq!((&reader).read(&mut [0; 9]).expect_err("it is empty").kind(), ErrorKind::WouldBlock);
        let written = fill(&writer);
        assert!(written > 4096 && blocks(&from) && blocks(&to));
        // It is open until both are closed.
        drop((to, writer));
        let mut read = Vec::new();
        until(|| match (&reader).read_to_end(&mut read) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => None,
            end => Some(end.expect("read")),
        });
        assert_eq!(read.len(), written);
    }

    // covers: B-131, B-143
    #[test]
    fn empty_and_full_sockets_are_errors_and_stay_blocking() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let (reader, writer) = (NonBlocking::reader(&ours), NonBlocking::writer(&ours));
        let (reader, writer) = (reader.expect("a socket"), writer.expect("a socket"));
        assert_eq!((&reader).read(&mut [0; 9]).expect_err("it is empty").kind(), ErrorKind::WouldBlock);
        assert!(fill(&writer) > 4096 && blocks(&ours));
        drop(theirs);
        let refused = until(|| {
            let kind = (&writer).write(b"z").expect_err("nobody reads").kind();
            (kind != ErrorKind::WouldBlock).then_some(kind)
        });
        assert_eq!(refused, ErrorKind::BrokenPipe);
    }

    // covers: B-143
    #[test]
    fn everything_else_is_left_to_a_thread() {
        let file = File::options().read(true).write(true).open("/dev/null").expect("a file");
        assert!(NonBlocking::reader(&file).is_none() && NonBlocking::writer(&file).is_none());
        let (from, to) = pipe().expect("a pipe");
        assert!(NonBlocking::reader(&to).is_none() && NonBlocking::writer(&from).is_none(), "the wrong end");
    }

    // covers: B-143
    #[test]
    fn named_pipe_without_a_reader_is_left_to_a_thread() {
        let path = std::env::temp_dir().join(std::format!("mcp-proto-named-{}", std::process::id()));
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        // A program that another test starts must not have it.
        let from = open(&path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).expect("a reader");
        let to = File::options().write(true).open(&path).expect("a writer");
        std::fs::remove_file(path).expect("a pipe");
        assert!(NonBlocking::writer(&to).is_some());
        drop(from);
        until(|| NonBlocking::writer(&to).is_none().then_some(()));
    }
}
