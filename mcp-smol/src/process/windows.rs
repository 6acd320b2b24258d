//! Windows: programs found as its shell finds them, each in a job and without a window. There are no signals, and threads of the blocking
//! pool wait, read and write: its pipes cannot be waited for otherwise.

use super::{Signal, Started};
use crate::Stderr;
use mcp_proto::exchange::{ExitStatus, Group, Program};
use mcp_proto::process::find_launcher;
use smol::future::Future;
use smol::{Task, Unblock};
use std::ffi::OsString;
use std::io;
use std::os::windows::io::AsRawHandle;
use std::os::windows::process::CommandExt;
use std::pin::Pin;
use std::task::{Context, Poll};
use win32job::{ExtendedLimitInfo, Job, JobError};

/// A program of a console gets no console, which would be a window.
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

/// A child, and the job that it runs in.
pub(super) struct Child {
    /// Waits for its end; `None` once it has ended.
    waits: Option<Task<io::Result<std::process::ExitStatus>>>,
    ended: Option<ExitStatus>,
    /// Whoever closes it ends all that is in it; so does the end of this process.
    job: Option<Job>,
}

pub(super) fn spawn(program: &Program, stderr: &Stderr) -> io::Result<Started> {
    let job = job(program.group).map_err(io::Error::other)?;
    let mut command = found(program).to_piped(stderr, std::env::vars_os());
    let mut child = command.creation_flags(CREATE_NO_WINDOW).spawn()?;
    // What the child starts before this is not in the job.
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

/// A job for the program, and for what it starts if that is to end with it.
fn job(group: Group) -> Result<Job, JobError> {
    let mut limits = ExtendedLimitInfo::new();
    limits.limit_kill_on_job_close();
    if group == Group::Inherit {
        limits.limit_silent_breakaway_ok();
    }
    Job::create_with_limit_info(&limits)
}

/// The program with the path of its launcher, if it has one.
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
    /// Ends the child, or all of its job. It cannot be asked to end: the end of its input was that.
    pub(super) fn signal(&mut self, signal: Signal) {
        if signal == Signal::Kill {
            self.job = None;
        }
    }

    /// Whether it has ended.
    pub(super) fn poll_ended(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(waits) = &mut self.waits else { return true };
        let Poll::Ready(status) = Pin::new(waits).poll(cx) else { return false };
        self.ended = Some(status.map_or_else(|_| ExitStatus::default(), ExitStatus::from));
        self.waits = None;
        true
    }

    /// Ends what is left of the job, and reads the exit status; `None` if it has not ended.
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
