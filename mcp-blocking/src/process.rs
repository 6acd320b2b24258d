//! A child process as a channel: its end, its last words, and that nothing of it is left.

use crate::Stderr;
use crate::os::{self, Child, Signal, Spawned};
use crate::stream;
use crate::sync::{Mutex, lock};
use crate::target::{Reader, Writer};
use mcp_proto::exchange::{ExitStatus, Program};
use mcp_proto::process::{Lines, Tail};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

type Told = dyn Fn(&str) + Send + Sync;

/// A program that was started. Dropping it ends it.
pub(crate) struct Process {
    child: Child,
    tail: Arc<Mutex<Tail>>,
}

/// Our ends of its streams.
pub(crate) struct Streams {
    pub(crate) output: Reader,
    pub(crate) input: Writer,
    pub(crate) errors: Option<Errors>,
}

/// Its standard error, to be read.
pub(crate) struct Errors {
    pipe: Reader,
    tail: Arc<Mutex<Tail>>,
    told: Option<Weak<Told>>,
}

impl Process {
    /// Starts it.
    ///
    /// # Errors
    /// What the operating system said.
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

    /// Signals the child, or all of its group. Does nothing once it is reaped.
    pub(crate) fn signal(&self, signal: Signal) {
        self.child.signal(signal);
    }

    /// Waits until the child has ended, and leaves it unreaped.
    pub(crate) fn wait(&self) {
        self.child.wait();
    }

    /// Ends what is left of the group of a child that has ended, reaps the child, and tells how it ended and what it said last.
    pub(crate) fn reap(&self) -> ExitStatus {
        let status = self.child.reap();
        status.with_stderr(lock(&self.tail).text())
    }
}

impl Drop for Process {
    /// Nobody waits for it any more: it and its group end now.
    fn drop(&mut self) {
        self.child.signal(Signal::Kill);
        self.child.reap();
    }
}

impl Errors {
    /// Reads to the end, whatever comes. Holds the function of the application only while it runs, so that a pipe which nobody closes
    /// does not keep it; and no lock then, so that it may wait for the end of this program.
    pub(crate) fn read(mut self) {
        let mut lines = Lines::default();
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
