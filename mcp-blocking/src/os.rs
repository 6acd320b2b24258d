//! The operating system: pipes and programs. The model checker replaces it.

use crate::transport::{Reader, Writer};
#[cfg(not(all(test, shuttle)))]
pub(crate) use mcp_proto::adapter::ChildProcess;

#[cfg(all(test, shuttle))]
pub(crate) use crate::tests::os::{ChildProcess, pipe, spawn};
#[cfg(not(all(test, shuttle)))]
pub(crate) use system::{pipe, spawn};

/// A started program, with this side of its pipes.
pub(crate) struct Started {
    pub(crate) process: ChildProcess,
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
    /// Its standard error, unless it is inherited.
    pub(crate) errors: Option<Reader>,
}

#[cfg(not(all(test, shuttle)))]
mod system {
    use super::{ChildProcess, Reader, Started, Writer};
    use crate::Stderr;
    use mcp_proto::exchange::Program;
    use std::io;

    pub(crate) fn spawn(program: &Program, stderr: &Stderr) -> io::Result<Started> {
        let spawned = ChildProcess::spawn(program, stderr)?;
        Ok(Started {
            process: spawned.process,
            reader: Box::new(spawned.stdout),
            writer: Box::new(spawned.stdin),
            errors: spawned.stderr.map(|errors| Box::new(errors) as Reader),
        })
    }

    /// Creates a pipe within this process.
    pub(crate) fn pipe() -> io::Result<(Reader, Writer)> {
        let (reader, writer) = io::pipe()?;
        Ok((Box::new(reader), Box::new(writer)))
    }
}
