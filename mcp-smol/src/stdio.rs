//! The standard streams of a server: taken away from all other code in this process, where the
//! system allows it.

use smol::Unblock;
use std::io;

/// Buffer between the blocking thread and the engine, in bytes: small, so that bytes count as
/// written only when they nearly are.
const PIPE: usize = 64 << 10;

/// The standard streams, owned by this value while it lives: a handler that prints, or a program
/// that it starts, must not write into the protocol or read from it. On Windows they are not moved:
/// they are handles of the process, which the standard library cannot replace.
pub(crate) struct TakenStdio {
    #[cfg(unix)]
    input: std::fs::File,
    #[cfg(unix)]
    output: std::fs::File,
}

#[cfg(unix)]
impl TakenStdio {
    /// Moves both streams to descriptors that no child inherits. Standard input is then empty, and
    /// standard output is standard error.
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
    /// Returns both streams. Threads of the blocking pool read and write them, since either may be
    /// a file or a terminal, which cannot be polled.
    pub(crate) fn streams(
        &self,
    ) -> io::Result<(Unblock<impl io::Read + Send + use<>>, Unblock<impl io::Write + Send + use<>>)> {
        let (input, output) = self.both()?;
        Ok((Unblock::with_capacity(PIPE, input), Unblock::with_capacity(PIPE, output)))
    }
}

#[cfg(unix)]
impl Drop for TakenStdio {
    /// Restores them, since the program may continue to use them.
    fn drop(&mut self) {
        // Nothing could be done about an error, which is unlikely: both descriptors are valid.
        let _ = rustix::stdio::dup2_stdin(&self.input);
        let _ = rustix::stdio::dup2_stdout(&self.output);
    }
}
