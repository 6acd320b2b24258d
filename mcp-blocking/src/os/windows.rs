//! Windows: programs found as its shell finds them, each in a job and without a window. There are no signals.

use super::{Signal, Spawned};
use crate::Stderr;
use crate::sync::{Mutex, lock};
use mcp_proto::exchange::{ExitStatus, Group, Program};
use mcp_proto::process::find_launcher;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::windows::io::AsRawHandle;
use std::os::windows::process::CommandExt;
use win32job::{ExtendedLimitInfo, Job, JobError};

/// A program of a console gets no console, which would be a window.
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

/// A child, and the job that it runs in.
#[derive(Debug)]
pub(crate) struct Child {
    /// Held by the thread that waits for the end.
    child: Mutex<std::process::Child>,
    /// Whoever closes it ends all that is in it; so does the end of this process.
    job: Mutex<Option<Job>>,
}

pub(crate) fn spawn(program: &Program, stderr: &Stderr) -> io::Result<Spawned<Child>> {
    let job = job(program.group).map_err(io::Error::other)?;
    let mut command = found(program).to_piped(stderr, std::env::vars_os());
    let mut child = command.creation_flags(CREATE_NO_WINDOW).spawn()?;
    // What the child starts before this is not in the job.
    if let Err(e) = job.assign_process(child.as_raw_handle() as isize)
        && !matches!(child.try_wait(), Ok(Some(_)))
    {
        // Without a job it could not be ended from another thread.
        drop(child.kill().and_then(|()| child.wait()));
        return Err(io::Error::other(e));
    }
    let streams = (child.stdout.take(), child.stdin.take());
    let (Some(output), Some(input)) = streams else { unreachable!("both streams were asked to be pipes") };
    let errors = child.stderr.take().map(|errors| Box::new(errors) as _);
    let child = Child { child: Mutex::new(child), job: Mutex::new(Some(job)) };
    Ok(Spawned { child, output: Box::new(output), input: Box::new(input), errors })
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
    pub(crate) fn signal(&self, signal: Signal) {
        if signal == Signal::Kill {
            drop(lock(&self.job).take());
        }
    }

    /// Waits until the child has ended.
    pub(crate) fn wait(&self) {
        // An error of the wait is told by `reap`.
        drop(lock(&self.child).wait());
    }

    /// Ends what is left of the job of a child that has ended, and tells how it ended.
    pub(crate) fn reap(&self) -> ExitStatus {
        self.signal(Signal::Kill);
        lock(&self.child).wait().map_or_else(|_| ExitStatus::default(), ExitStatus::from)
    }
}

/// The standard streams, as they are: they are handles of the process, which the standard library does not move.
#[derive(Debug)]
pub(crate) struct TakenStdio {}

impl TakenStdio {
    pub(crate) fn take() -> io::Result<Self> {
        Ok(Self {})
    }

    pub(crate) fn streams(&self) -> io::Result<(impl Read + Send + 'static, impl Write + Send + 'static)> {
        Ok((io::stdin(), io::stdout()))
    }
}
