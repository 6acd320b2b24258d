//! Unix: programs in process groups, signals, waiting without reaping, and the standard streams.

use super::{Signal, Spawned};
use crate::Stderr;
use crate::sync::{Mutex, lock};
use mcp_proto::exchange::{ExitStatus, Group, Program};
use rustix::io::Errno;
use rustix::process::{self, Pid, WaitId, WaitIdOptions};
use std::io::{self, Read};

/// The right to signal a child. It ends when the child is reaped, since its id may belong to
/// another process then.
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
    /// Signals the child, or its whole group. Does nothing once it is reaped.
    pub(crate) fn signal(&self, signal: Signal) {
        let live = lock(&self.live);
        if live.is_some() {
            self.send(signal);
        }
    }

    /// Waits until the child has exited, without reaping it: its id, and that of its group, stay
    /// reserved.
    pub(crate) fn wait(&self) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(process::waitid(WaitId::Pid(self.pid), options), Err(Errno::INTR)) {}
    }

    /// Ends the rest of the group of an exited child, and reaps the child.
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
        // Fails if all of them have exited already.
        let _ = if self.group {
            process::kill_process_group(self.pid, signal)
        } else {
            process::kill_process(self.pid, signal)
        };
    }
}

/// The standard streams, owned by this value while it lives: a handler that prints, or a program
/// that it starts, must not write into the protocol or read from it.
#[derive(Debug)]
pub(crate) struct TakenStdio {
    input: std::fs::File,
    output: std::fs::File,
}

impl TakenStdio {
    /// Moves both streams to descriptors that no child inherits. Standard input is then empty, and
    /// standard output is standard error.
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
    /// Restores them, since the program may continue to use them.
    fn drop(&mut self) {
        // Nothing could be done about an error, which is unlikely: both descriptors are valid.
        let _ = rustix::stdio::dup2_stdin(&self.input);
        let _ = rustix::stdio::dup2_stdout(&self.output);
    }
}
