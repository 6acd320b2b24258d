//! Unix: programs in process groups of their own, signals, and waiting without reaping.

use super::SpawnedProgram;
use crate::ending::Signal;
use mcp_proto::exchange::{ExitStatus, Group, Program};
use mcp_proto::process::Stderr;
use rustix::io::Errno;
use rustix::process::{self, Pid, WaitId, WaitIdOptions};
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A program that was started, and its process group if it leads one. Dropping it kills both, and
/// reaps the program.
#[derive(Debug)]
pub struct ChildProcess {
    pid: Pid,
    group: Group,
    /// The right to signal the program. It ends when the program is reaped, since its id may belong
    /// to another process then.
    child: Mutex<Option<Child>>,
}

impl ChildProcess {
    /// Starts a program with its standard input and output piped, its standard error according to
    /// `stderr`, and the environment of this process as [`Program::inherit`] restricts it.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn spawn(program: &Program, stderr: &Stderr) -> io::Result<SpawnedProgram> {
        let mut child = program.to_piped(stderr, std::env::vars_os()).spawn()?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (pid, group) = (Pid::from_child(&child), program.group);
        // From here on, a failure ends the program.
        let process = Self { pid, group, child: Mutex::new(Some(child)) };
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else { return Err(io::Error::other("no pipes")) };
        Ok(SpawnedProgram { process, stdin, stdout, stderr })
    }

    /// Signals the program and its group. [`Signal::KillGroup`] also reaps the program, which has
    /// exited then. Without effect once it is reaped.
    pub fn signal(&self, signal: Signal) {
        let mut child = self.lock();
        let Some(running) = child.as_mut() else { return };
        match signal {
            Signal::Terminate => self.send(process::Signal::TERM),
            Signal::Kill => self.send(process::Signal::KILL),
            Signal::KillGroup => {
                // The program is not reaped, so its id still belongs to its group.
                if self.group == Group::Own {
                    self.send(process::Signal::KILL);
                }
                // Its status is known. Reaping fails only if other code has reaped it.
                let _ = running.wait();
                *child = None;
            }
        }
    }

    /// Returns the exit status if the program has exited. Does not wait, and does not reap it.
    pub fn try_exited(&self) -> Option<ExitStatus> {
        self.look(WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG)
    }

    /// Waits for the exit of the program, and returns its exit status. Does not reap it: its id,
    /// and that of its group, stay reserved.
    pub fn wait_exited(&self) -> ExitStatus {
        loop {
            if let Some(status) = self.look(WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
                return status;
            }
        }
    }

    /// Returns a descriptor that is readable once the program has exited (Linux).
    ///
    /// # Errors
    /// The system is too old, or has no descriptor left. Wait with
    /// [`wait_exited`](Self::wait_exited) on a thread then, as on every other system.
    #[cfg(target_os = "linux")]
    pub fn exit_descriptor(&self) -> io::Result<OwnedFd> {
        Ok(process::pidfd_open(self.pid, process::PidfdFlags::NONBLOCK)?)
    }

    fn look(&self, options: WaitIdOptions) -> Option<ExitStatus> {
        match process::waitid(WaitId::Pid(self.pid), options) {
            Ok(status) => status.map(|status| {
                let mut exited = ExitStatus::default();
                (exited.code, exited.signal) = (status.exit_status(), status.terminating_signal());
                exited
            }),
            Err(Errno::INTR) => None,
            // Other code of this process has reaped it.
            Err(_) => Some(ExitStatus::default()),
        }
    }

    /// Fails if all of them have exited already.
    fn send(&self, signal: process::Signal) {
        let _ = match self.group {
            Group::Own => process::kill_process_group(self.pid, signal),
            Group::Inherit => process::kill_process(self.pid, signal),
        };
    }

    fn lock(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.signal(Signal::Kill);
        let Some(mut child) = self.lock().take() else { return };
        if !matches!(child.try_wait(), Ok(Some(_))) {
            // It was killed, so the wait is short, but a drop must not block a runtime. Without a
            // thread the program is reaped at the end of this process.
            let _ = std::thread::Builder::new().name("mcp-reaper".into()).spawn(move || child.wait());
        }
    }
}
