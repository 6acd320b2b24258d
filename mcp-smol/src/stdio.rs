//! The standard streams of a server: taken away from whatever else runs in this process.

use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio;
use smol::Unblock;
use std::fs::File;
use std::io;

/// Bytes between the thread that reads or writes and the engine: little, so that bytes count as written when they nearly are.
const PIPE: usize = 64 << 10;

/// The standard streams, ours for as long as this value lives: a handler that prints, or a program that it starts, must not write into
/// the protocol or read from it.
pub(crate) struct TakenStdio {
    input: File,
    output: File,
}

impl TakenStdio {
    /// Moves both streams to descriptors that no child inherits; then standard input is empty, and standard output is standard error.
    pub(crate) fn take() -> io::Result<Self> {
        let input = fcntl_dupfd_cloexec(stdio::stdin(), 3)?.into();
        let output = fcntl_dupfd_cloexec(stdio::stdout(), 3)?.into();
        let taken = Self { input, output };
        stdio::dup2_stdin(File::open("/dev/null")?)?;
        stdio::dup2_stdout(stdio::stderr())?;
        Ok(taken)
    }

    /// Both, with threads of the blocking pool that read and write: either may be a file or a terminal, which cannot be waited for
    /// otherwise.
    pub(crate) fn streams(&self) -> io::Result<(Unblock<File>, Unblock<File>)> {
        let (input, output) = (self.input.try_clone()?, self.output.try_clone()?);
        Ok((Unblock::with_capacity(PIPE, input), Unblock::with_capacity(PIPE, output)))
    }
}

impl Drop for TakenStdio {
    /// Gives them back. They were borrowed; the program may go on to use them.
    fn drop(&mut self) {
        // It cannot fail in a way that could be helped here: both are valid descriptors.
        let _ = stdio::dup2_stdin(&self.input);
        let _ = stdio::dup2_stdout(&self.output);
    }
}
