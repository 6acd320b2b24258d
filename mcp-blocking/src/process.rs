//! A child process as a peer: its exit, the end of its standard error, and the cleanup of its
//! group.

use crate::Stderr;
use crate::ends::{Reader, Writer};
use crate::os::{self, Child, Signal, Spawned};
use crate::stream;
use crate::sync::{Mutex, lock};
use mcp_proto::adapter::{StderrLines, StderrTail};
use mcp_proto::exchange::{ExitStatus, Program};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

type Told = dyn Fn(&str) + Send + Sync;

/// A started program. Dropping it ends it.
pub(crate) struct Process {
    child: Child,
    tail: Arc<Mutex<StderrTail>>,
}

/// This side of its pipes.
pub(crate) struct Streams {
    pub(crate) output: Reader,
    pub(crate) input: Writer,
    pub(crate) errors: Option<Errors>,
}

/// Its standard error, to be read.
pub(crate) struct Errors {
    pipe: Reader,
    tail: Arc<Mutex<StderrTail>>,
    told: Option<Weak<Told>>,
}

impl Process {
    /// Starts a program.
    ///
    /// # Errors
    /// The error of the operating system.
    pub(crate) fn spawn(program: &Program, stderr: &Stderr) -> io::Result<(Self, Streams)> {
        let Spawned { child, output, input, errors } = os::spawn(program, stderr)?;
        let process = Self { child, tail: Arc::default() };
        let told = match stderr {
            Stderr::Lines(told) => Some(Arc::downgrade(told)),
            Stderr::Inherit | Stderr::Discard => None,
        };
        let errors = errors.map(|pipe| Errors { pipe, tail: Arc::clone(&process.tail), told });
        Ok((process, Streams { output, input, errors }))
    }

    /// Signals the child, or its whole group. Does nothing once it is reaped.
    pub(crate) fn signal(&self, signal: Signal) {
        self.child.signal(signal);
    }

    /// Waits until the child has exited, without reaping it.
    pub(crate) fn wait(&self) {
        self.child.wait();
    }

    /// Ends the rest of the group of an exited child, reaps the child, and returns the exit status
    /// with the end of its standard error.
    pub(crate) fn reap(&self) -> ExitStatus {
        let status = self.child.reap();
        status.with_stderr(lock(&self.tail).text())
    }
}

impl Drop for Process {
    /// Kills the program and its group, since their owner no longer exists.
    fn drop(&mut self) {
        self.child.signal(Signal::Kill);
        self.child.reap();
    }
}

impl Errors {
    /// Reads to the end. Holds the function of the application only while it runs, so that a pipe
    /// that stays open does not keep it. Holds no lock meanwhile, so that the function may wait for
    /// the end of this program.
    pub(crate) fn read(mut self) {
        let mut lines = StderrLines::default();
        let told = self.told.take();
        let tell = |line: &str| {
            if let Some(told) = told.as_ref().and_then(Weak::upgrade) {
                // The pipe must be read on, or the program would block.
                drop(catch_unwind(AssertUnwindSafe(|| told(line))));
            }
        };
        // An error of the pipe is its end.
        drop(stream::read(&mut *self.pipe, |bytes| {
            lock(&self.tail).push(&bytes);
            if told.is_some() {
                lines.push(&bytes, tell);
            }
            true
        }));
        lines.end(tell);
    }
}
