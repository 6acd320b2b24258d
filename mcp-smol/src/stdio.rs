//! The standard streams of a server: taken away from whatever else runs in this process, where the system lets us.

use smol::Unblock;
use std::io;

/// Bytes between the thread that reads or writes and the engine: little, so that bytes count as written when they nearly are.
const PIPE: usize = 64 << 10;

/// The standard streams, ours for as long as this value lives: a handler that prints, or a program that it starts, must not write into
/// the protocol or read from it. On Windows they are left where they are: handles of the process, which the standard library does not
/// move.
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

    fn both(&self) -> io::Result<(std::fs::File, std::fs::File)> {
        Ok((self.input.try_clone()?, self.output.try_clone()?))
    }
}

#[cfg(not(unix))]
impl TakenStdio {
    pub(crate) fn take() -> io::Result<Self> {
        Ok(Self {})
    }

    fn both(&self) -> io::Result<(io::Stdin, io::Stdout)> {
        Ok((io::stdin(), io::stdout()))
    }
}

impl TakenStdio {
    /// Both, with threads of the blocking pool that read and write: either may be a file or a terminal, which cannot be waited for
    /// otherwise.
    pub(crate) fn streams(
        &self,
    ) -> io::Result<(Unblock<impl io::Read + Send + use<>>, Unblock<impl io::Write + Send + use<>>)> {
        let (input, output) = self.both()?;
        Ok((Unblock::with_capacity(PIPE, input), Unblock::with_capacity(PIPE, output)))
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
