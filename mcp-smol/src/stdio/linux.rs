//! Standard streams that are pipes or sockets, without threads.
//!
//! Whether an operation blocks is a property of the open file, which other processes may share: the
//! shell that started this one, or other writers of the same pipe. It must stay as it is. So a pipe
//! is opened once more, and each operation on a socket says itself that it must not block.

use crate::source::{End, Half};
use crate::stream::{Reader, Writer};
use async_io::Async;
use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl, fstat, open};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};
use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Returns the reader of standard input. `None` if a thread has to read it.
pub(super) fn reader(stdin: BorrowedFd<'_>) -> Option<Reader> {
    Some(match kind(stdin)? {
        FileType::Fifo => Reader::of_system(Arc::new(reopened(stdin, OFlags::RDONLY)?)),
        FileType::Socket => Reader::of_system(Arc::new(socket(stdin)?)),
        _ => return None,
    })
}

/// Returns the writer of standard output. `None` if a thread has to write it.
pub(super) fn writer(stdout: BorrowedFd<'_>) -> Option<Writer> {
    Some(match kind(stdout)? {
        FileType::Fifo => Box::new(reopened(stdout, OFlags::WRONLY)?),
        FileType::Socket => Box::new(Half(Arc::new(socket(stdout)?))),
        _ => return None,
    })
}

fn kind(stream: BorrowedFd<'_>) -> Option<FileType> {
    Some(FileType::from_raw_mode(fstat(stream).ok()?.st_mode))
}

/// Opens a pipe once more, for operations that do not block. `None` if the system refuses: there is
/// no `/proc`, another user made the pipe, or a named pipe has no reader.
fn reopened(stream: BorrowedFd<'_>, access: OFlags) -> Option<Async<File>> {
    // Opening could give a right that the descriptor does not have.
    let has = fcntl_getfl(stream).ok()? & OFlags::RWMODE;
    let path = format!("/proc/self/fd/{}", stream.as_raw_fd());
    let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let pipe = if has == access { open(path, flags, Mode::empty()).ok()? } else { return None };
    Async::new_nonblocking(File::from(pipe)).ok()
}

fn socket(stream: BorrowedFd<'_>) -> Option<Async<Socket>> {
    Async::new_nonblocking(Socket(stream.try_clone_to_owned().ok()?)).ok()
}

/// A socket whose operations do not block.
struct Socket(OwnedFd);

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Read for &Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(recv(&self.0, buffer, RecvFlags::DONTWAIT)?.0)
    }
}

/// If the peer has gone, the write returns an error, and no signal is sent.
const FLAGS: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(&self.0, bytes, FLAGS)?)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(sendmsg(&self.0, slices, &mut SendAncillaryBuffer::default(), FLAGS)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// It is closed with the last descriptor, since other processes may go on using it.
impl End for Socket {
    fn end(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use rustix::fs::{CWD, mknodat};
    use std::os::unix::net::UnixStream;

    // covers: B-143
    #[test]
    fn pipes_and_sockets_need_no_thread() {
        let ((from, to), (one, other)) = (io::pipe().expect("a pipe"), UnixStream::pair().expect("a pair"));
        assert!(reader(from.as_fd()).is_some() && writer(to.as_fd()).is_some());
        assert!(reader(one.as_fd()).is_some() && writer(other.as_fd()).is_some());
    }

    // covers: B-143
    #[test]
    fn everything_else_is_left_to_a_thread() {
        let file = File::options().read(true).write(true).open("/dev/null").expect("a file");
        assert!(reader(file.as_fd()).is_none() && writer(file.as_fd()).is_none());
        let (from, to) = io::pipe().expect("a pipe");
        assert!(reader(to.as_fd()).is_none() && writer(from.as_fd()).is_none(), "the wrong end");
    }

    // covers: B-143
    #[test]
    fn named_pipe_without_a_reader_is_left_to_a_thread() {
        let path = std::env::temp_dir().join(format!("mcp-smol-named-{}", std::process::id()));
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        let from = open(&path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).expect("a reader");
        let to = File::options().write(true).open(&path).expect("a writer");
        std::fs::remove_file(path).expect("a pipe");
        assert!(writer(to.as_fd()).is_some());
        drop(from);
        assert!(writer(to.as_fd()).is_none());
    }
}
