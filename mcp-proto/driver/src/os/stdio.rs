//! The standard streams of a server: taken away from all other code in this process, where the
//! system allows it.

use std::io::{self, Read, Write};
#[cfg(unix)]
use std::os::fd::AsFd;

/// The standard streams, owned by this value while it lives: a handler that prints, or a program
/// that it starts, must not write into the protocol or read from it. Dropping it restores them. On
/// Windows they are not moved: they are handles of the process, which the standard library cannot
/// replace.
#[derive(Debug)]
pub struct TakenStdio {
    #[cfg(unix)]
    input: std::fs::File,
    #[cfg(unix)]
    output: std::fs::File,
}

#[cfg(unix)]
impl TakenStdio {
    /// Moves both streams to descriptors that no child inherits. Standard input is then empty, and
    /// standard output is standard error.
    ///
    /// # Errors
    /// The error of the operating system: a stream is closed, or no descriptor is left.
    pub fn take() -> io::Result<Self> {
        use rustix::{io::fcntl_dupfd_cloexec, stdio};
        let input = fcntl_dupfd_cloexec(stdio::stdin(), 3)?.into();
        let output = fcntl_dupfd_cloexec(stdio::stdout(), 3)?.into();
        let taken = Self { input, output };
        stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
        stdio::dup2_stdout(stdio::stderr())?;
        Ok(taken)
    }

    /// Returns a reader and a writer of the streams. Other processes may share the open files of
    /// their descriptors: do not change whether they block.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn streams(&self) -> io::Result<(impl Read + AsFd + Send + use<>, impl Write + AsFd + Send + use<>)> {
        Ok((self.input.try_clone()?, self.output.try_clone()?))
    }
}

#[cfg(unix)]
impl Drop for TakenStdio {
    fn drop(&mut self) {
        // Nothing could be done about an error, which is unlikely: both descriptors are valid.
        let _ = rustix::stdio::dup2_stdin(&self.input);
        let _ = rustix::stdio::dup2_stdout(&self.output);
    }
}

#[cfg(not(unix))]
impl TakenStdio {
    /// Returns the streams of this process, which other code may use as well.
    ///
    /// # Errors
    /// None on this system.
    pub fn take() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Returns a reader and a writer of the streams.
    ///
    /// # Errors
    /// None on this system.
    pub fn streams(&self) -> io::Result<(impl Read + Send + use<>, impl Write + Send + use<>)> {
        Ok((io::stdin(), io::stdout()))
    }
}
