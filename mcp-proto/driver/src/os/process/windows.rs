//! Windows: programs found as the shell finds them, each in a job and without a window. There are
//! no signals.

use super::SpawnedProgram;
use crate::ending::Signal;
use crate::launcher::find_launcher;
use alloc::vec::Vec;
use mcp_proto::exchange::{ExitStatus, Group, Program};
use mcp_proto::process::Stderr;
use std::ffi::OsString;
use std::io;
use std::os::windows::io::AsRawHandle;
use std::os::windows::process::CommandExt;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use win32job::{ExtendedLimitInfo, Job, JobError};

/// Gives a console program no console, which would be a window.
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

/// A program that was started, and its job. Dropping it ends all processes in the job.
#[derive(Debug)]
pub struct ChildProcess {
    /// Locked by the thread that waits for the exit.
    child: Mutex<Child>,
    /// Closing it ends all processes in it, as does the end of this process.
    job: Mutex<Option<Job>>,
}

impl ChildProcess {
    /// Starts a program with its standard input and output piped, its standard error according to
    /// `stderr`, and the environment of this process as [`Program::inherit`] restricts it.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn spawn(program: &Program, stderr: &Stderr) -> io::Result<SpawnedProgram> {
        let job = job(program.group).map_err(io::Error::other)?;
        let mut command = found(program).to_piped(stderr, std::env::vars_os());
        let mut child = command.creation_flags(CREATE_NO_WINDOW).spawn()?;
        // Processes that the program starts before this are not in the job.
        if let Err(e) = job.assign_process(child.as_raw_handle() as isize)
            && !matches!(child.try_wait(), Ok(Some(_)))
        {
            // Without a job it could not be ended while a thread waits for it.
            drop(child.kill().and_then(|()| child.wait()));
            return Err(io::Error::other(e));
        }
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let process = Self { child: Mutex::new(child), job: Mutex::new(Some(job)) };
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else { return Err(io::Error::other("no pipes")) };
        Ok(SpawnedProgram { process, stdin, stdout, stderr })
    }

    /// Ends the whole job at [`Signal::Kill`] and [`Signal::KillGroup`]. There is no way to ask a
    /// program to terminate, except for the end of its input.
    pub fn signal(&self, signal: Signal) {
        if signal != Signal::Terminate {
            drop(lock(&self.job).take());
        }
    }

    /// Returns the exit status if the program has exited. Does not wait.
    pub fn try_exited(&self) -> Option<ExitStatus> {
        let mut child = match self.child.try_lock() {
            Ok(child) => child,
            Err(TryLockError::Poisoned(child)) => child.into_inner(),
            // A thread waits for the exit.
            Err(TryLockError::WouldBlock) => return None,
        };
        child.try_wait().map_or(Some(ExitStatus::default()), |status| status.map(Into::into))
    }

    /// Waits for the exit of the program, and returns its exit status.
    pub fn wait_exited(&self) -> ExitStatus {
        lock(&self.child).wait().map_or_else(|_| ExitStatus::default(), Into::into)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates a job for the program, and for its descendants if they end with it.
fn job(group: Group) -> Result<Job, JobError> {
    let mut limits = ExtendedLimitInfo::new();
    limits.limit_kill_on_job_close();
    if group == Group::Inherit {
        limits.limit_silent_breakaway_ok();
    }
    Job::create_with_limit_info(&limits)
}

/// Returns the program with the path of its launcher, if it has one.
fn found(program: &Program) -> Program {
    let changed = program.env.iter().rev().find(|(name, _)| name.eq_ignore_ascii_case("PATH"));
    let path = match changed {
        Some((_, path)) => path.as_ref().map(OsString::from),
        None => std::env::var_os("PATH"),
    };
    let dirs: Vec<_> = path.iter().flat_map(std::env::split_paths).collect();
    let extensions = std::env::var("PATHEXT").ok();
    let mut program = program.clone();
    let launcher = find_launcher(&program.command, dirs, extensions.as_deref(), |file| file.is_file());
    if let Some(launcher) = launcher.and_then(|file| file.into_os_string().into_string().ok()) {
        program.command = launcher;
    }
    program
}
