//! Windows: programs found as the shell finds them, each in a job and without a window. There are
//! no signals.

use super::{Signal, Spawned};
use crate::Stderr;
use crate::sync::{Mutex, lock};
use mcp_proto::adapter::find_launcher;
use mcp_proto::exchange::{ExitStatus, Group, Program};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::windows::io::AsRawHandle;
use std::os::windows::process::CommandExt;
use win32job::{ExtendedLimitInfo, Job, JobError};

/// Gives a console program no console, which would be a window.
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

/// A child and its job.
#[derive(Debug)]
pub(crate) struct Child {
    /// Locked by the thread that waits for the exit.
    child: Mutex<std::process::Child>,
    /// Closing it ends all processes in it, as does the end of this process.
    job: Mutex<Option<Job>>,
}

pub(crate) fn spawn(program: &Program, stderr: &Stderr) -> io::Result<Spawned<Child>> {
    let job = job(program.group).map_err(io::Error::other)?;
    let mut command = found(program).to_piped(stderr, std::env::vars_os());
    let mut child = command.creation_flags(CREATE_NO_WINDOW).spawn()?;
    // Processes that the child starts before this are not in the job.
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
    pub(crate) fn signal(&self, signal: Signal) {
        if signal == Signal::Kill {
            drop(lock(&self.job).take());
        }
    }

    /// Waits until the child has exited.
    pub(crate) fn wait(&self) {
        // `reap` reports an error of the wait.
        drop(lock(&self.child).wait());
    }

    /// Ends the rest of the job of an exited child, and returns the exit status.
    pub(crate) fn reap(&self) -> ExitStatus {
        self.signal(Signal::Kill);
        lock(&self.child).wait().map_or_else(|_| ExitStatus::default(), ExitStatus::from)
    }
}

/// The standard streams, unchanged: they are handles of the process, which the standard library
/// cannot replace.
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
