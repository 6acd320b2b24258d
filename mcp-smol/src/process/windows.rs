//! Windows: programs found as the shell finds them, each in a job and without a window. There are
//! no signals. Threads of the blocking pool wait, read and write, since Windows pipes cannot be
//! polled.

use super::{Signal, Started};
use crate::Stderr;
use mcp_proto::adapter::find_launcher;
use mcp_proto::exchange::{ExitStatus, Group, Program};
use smol::future::Future;
use smol::{Task, Unblock};
use std::ffi::OsString;
use std::io;
use std::os::windows::io::AsRawHandle;
use std::os::windows::process::CommandExt;
use std::pin::Pin;
use std::task::{Context, Poll};
use win32job::{ExtendedLimitInfo, Job, JobError};

/// Gives a console program no console, which would be a window.
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

/// A child and its job.
pub(super) struct Child {
    /// Waits for its exit. `None` once it has exited.
    waits: Option<Task<io::Result<std::process::ExitStatus>>>,
    ended: Option<ExitStatus>,
    /// Closing it ends all processes in it, as does the end of this process.
    job: Option<Job>,
}

pub(super) fn spawn(program: &Program, stderr: &Stderr) -> io::Result<Started> {
    let job = job(program.group).map_err(io::Error::other)?;
    let mut command = found(program).to_piped(stderr, std::env::vars_os());
    let mut child = command.creation_flags(CREATE_NO_WINDOW).spawn()?;
    // Processes that the child starts before this are not in the job.
    if let Err(e) = job.assign_process(child.as_raw_handle() as isize)
        && !matches!(child.try_wait(), Ok(Some(_)))
    {
        // Without a job it could not be ended while a thread waits for it.
        drop(child.kill().and_then(|()| child.wait()));
        return Err(io::Error::other(e));
    }
    let (stdin, stdout, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let child = Child { waits: Some(smol::unblock(move || child.wait())), ended: None, job: Some(job) };
    let (Some(stdin), Some(stdout)) = (stdin, stdout) else { return Err(io::Error::other("no pipes")) };
    let errors = errors.map(|errors| Box::new(Unblock::new(errors)) as _);
    Ok(Started { child, reader: Box::new(Unblock::new(stdout)), writer: Box::new(Unblock::new(stdin)), errors })
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

impl Child {
    /// Ends the child, or its whole job. There is no way to ask it to terminate, except for the end
    /// of its input.
    pub(super) fn signal(&mut self, signal: Signal) {
        if signal == Signal::Kill {
            self.job = None;
        }
    }

    /// Returns whether it has exited.
    pub(super) fn poll_ended(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(waits) = &mut self.waits else { return true };
        let Poll::Ready(status) = Pin::new(waits).poll(cx) else { return false };
        self.ended = Some(status.map_or_else(|_| ExitStatus::default(), ExitStatus::from));
        self.waits = None;
        true
    }

    /// Ends the rest of the job, and returns the exit status. `None` if the program has not exited.
    pub(super) fn reap(&mut self) -> Option<ExitStatus> {
        self.signal(Signal::Kill);
        self.ended.take()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.signal(Signal::Kill);
        if let Some(waits) = self.waits.take() {
            waits.detach();
        }
    }
}
