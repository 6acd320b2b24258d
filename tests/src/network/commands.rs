//! Programs that run to their end, and are killed if they do not end in time.

use std::io::Write;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use super::BOUND;

/// What a program has written.
pub(super) struct Said {
    pub(super) status: ExitStatus,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Said {
    /// Returns the exit code. `None` after a signal.
    pub(super) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Returns everything, for the message of a fault.
    pub(super) fn all(&self) -> String {
        format!("{}: {} {}", self.status, self.stdout.trim_end(), self.stderr.trim_end())
    }
}

/// Runs a program with this input, which is short, to its end.
pub(super) fn run(command: &mut Command, input: &[u8]) -> Result<Said, String> {
    let program = command.get_program().display().to_string();
    let told = |why: std::io::Error| format!("{program}: {why}");
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().map_err(told)?;
    let id = Pid::from_child(&child);
    let (ended, has_ended) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        let is_late = has_ended.recv_timeout(BOUND) == Err(RecvTimeoutError::Timeout);
        is_late && kill_process(id, Signal::KILL).is_ok()
    });
    // A program that needs no input may have ended before.
    let _ = child.stdin.take().map(|mut pipe| pipe.write_all(input));
    let output = child.wait_with_output().map_err(told)?;
    drop(ended);
    if watchdog.join().unwrap_or(false) {
        return Err(format!("{program} did not end"));
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Said { status: output.status, stdout: text(output.stdout), stderr: text(output.stderr) })
}
