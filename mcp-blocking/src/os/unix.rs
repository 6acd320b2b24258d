//! Unix: programs in process groups, signals, waits that leave the child unreaped, and the standard streams.

use super::{Signal, Spawned};
use crate::Stderr;
use crate::sync::{Mutex, lock};
use mcp_proto::exchange::{ExitStatus, Group, Program};
use rustix::io::Errno;
use rustix::process::{self, Pid, WaitId, WaitIdOptions};
use std::io::{self, Read};

/// The right to signal a child. It is spent when the child is reaped, since its id may name another process from then on.
#[derive(Debug)]
pub(crate) struct Child {
    pid: Pid,
    group: bool,
    live: Mutex<Option<std::process::Child>>,
}

pub(crate) fn spawn(program: &Program, stderr: &Stderr) -> io::Result<Spawned<Child>> {
    let mut child = program.to_piped(stderr, std::env::vars_os()).spawn()?;
    let streams = (child.stdout.take(), child.stdin.take());
    let (Some(output), Some(input)) = streams else { unreachable!("both streams were asked to be pipes") };
    let errors = child.stderr.take().map(|errors| Box::new(errors) as _);
    let (pid, group) = (Pid::from_child(&child), program.group == Group::Own);
    let child = Child { pid, group, live: Mutex::new(Some(child)) };
    Ok(Spawned { child, output: Box::new(output), input: Box::new(input), errors })
}

impl Child {
    /// Signals the child, or all of its group. Does nothing once it is reaped.
    pub(crate) fn signal(&self, signal: Signal) {
        let live = lock(&self.live);
        if live.is_some() {
            self.send(signal);
        }
    }

    /// Waits until the child has ended, and leaves it unreaped: its id, and the id of its group, stay its own.
    pub(crate) fn wait(&self) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(process::waitid(WaitId::Pid(self.pid), options), Err(Errno::INTR)) {}
    }

    /// Ends what is left of the group of a child that has ended, and reaps the child.
    pub(crate) fn reap(&self) -> ExitStatus {
        let mut live = lock(&self.live);
        let Some(mut ended) = live.take() else { return ExitStatus::default() };
        if self.group {
            self.send(Signal::Kill);
        }
        ended.wait().map_or_else(|_| ExitStatus::default(), ExitStatus::from)
    }

    fn send(&self, signal: Signal) {
        let signal = match signal {
            Signal::Terminate => process::Signal::TERM,
            Signal::Kill => process::Signal::KILL,
        };
        // It fails if all of them have ended, which is what is wanted.
        let _ = if self.group {
            process::kill_process_group(self.pid, signal)
        } else {
            process::kill_process(self.pid, signal)
        };
    }
}

/// The standard streams, taken away from whatever else runs in this process for as long as this value lives: a handler that prints, or
/// a program that it starts, must not write into the protocol or read from it.
#[derive(Debug)]
pub(crate) struct TakenStdio {
    input: std::fs::File,
    output: std::fs::File,
}

impl TakenStdio {
    /// Moves both streams to descriptors that no child inherits; then standard input is empty, and standard output is standard error.
    pub(crate) fn take() -> io::Result<Self> {
        use rustix::{io::fcntl_dupfd_cloexec, stdio};
        let input = fcntl_dupfd_cloexec(stdio::stdin(), 3)?.into();
        let output = fcntl_dupfd_cloexec(stdio::stdout(), 3)?.into();
        let taken = Self { input, output };
        stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
        stdio::dup2_stdout(stdio::stderr())?;
        Ok(taken)
    }

    pub(crate) fn streams(&self) -> io::Result<(impl Read + Send + 'static, impl io::Write + Send + 'static)> {
        Ok((self.input.try_clone()?, self.output.try_clone()?))
    }
}

impl Drop for TakenStdio {
    /// Gives them back. They were borrowed; the program may go on to use them.
    fn drop(&mut self) {
        // It cannot fail in a way that could be helped here: both are valid descriptors.
        let _ = rustix::stdio::dup2_stdin(&self.input);
        let _ = rustix::stdio::dup2_stdout(&self.output);
    }
}
