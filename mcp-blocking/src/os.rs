//! The operating system: pipes and programs. The model checker replaces it.

use crate::transport::{Ends, Reader};
#[cfg(not(all(test, shuttle)))]
pub(crate) use mcp_driver::ChildProcess;

#[cfg(all(test, shuttle))]
pub(crate) use crate::tests::os::{ChildProcess, pipes, spawn};
#[cfg(not(all(test, shuttle)))]
pub(crate) use system::{pipes, spawn};

/// A started program, with this side of its pipes.
pub(crate) struct StartedProgram {
    pub(crate) process: ChildProcess,
    pub(crate) ends: Ends,
    /// Its standard error, unless it is inherited.
    pub(crate) errors: Option<Reader>,
}

#[cfg(not(all(test, shuttle)))]
mod system {
    use super::{ChildProcess, Ends, Reader, StartedProgram};
    use crate::Stderr;
    use crate::{direct, polled};
    use mcp_proto::exchange::Program;
    use std::io::{self, PipeReader, PipeWriter};

    pub(crate) fn spawn(program: &Program, stderr: &Stderr) -> io::Result<StartedProgram> {
        let spawned = ChildProcess::spawn(program, stderr)?;
        let direct = direct::of(&spawned.stdin);
        let (reader, polled) = polled::pipe(spawned.stdout);
        Ok(StartedProgram {
            process: spawned.process,
            ends: Ends { reader, polled, writer: Box::new(spawned.stdin), direct },
            errors: spawned.stderr.map(|errors| Box::new(errors) as Reader),
        })
    }

    /// Creates two connected pairs of pipes within this process.
    pub(crate) fn pipes() -> io::Result<(Ends, Ends)> {
        let ((here, to_here), (there, to_there)) = (io::pipe()?, io::pipe()?);
        let ends = |reader: PipeReader, writer: PipeWriter| {
            let (direct, (reader, polled)) = (direct::of(&writer), polled::pipe(reader));
            Ends { reader, polled, writer: Box::new(writer), direct }
        };
        Ok((ends(here, to_there), ends(there, to_here)))
    }
}
