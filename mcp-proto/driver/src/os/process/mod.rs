//! Programs: started as peers, watched, ended with their descendants, and always reaped.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(not(unix), path = "windows.rs")]
mod native;

pub use native::ChildProcess;

use std::process::{ChildStderr, ChildStdin, ChildStdout};

/// A started program, with this side of its pipes.
#[derive(Debug)]
pub struct SpawnedProgram {
    /// The program.
    pub process: ChildProcess,
    /// Its standard input.
    pub stdin: ChildStdin,
    /// Its standard output.
    pub stdout: ChildStdout,
    /// Its standard error. `None` if it inherits that of this process.
    pub stderr: Option<ChildStderr>,
}

#[cfg(all(test, unix))]
mod tests;
