//! Programs: started, watched, ended with their descendants, and always reaped. [`os`] has the
//! system calls.

use crate::Stderr;
use crate::channel::{Link, Reader, Writer};
use async_io::Timer;
use mcp_proto::adapter::{DRAIN, StderrReader, not_opened};
use mcp_proto::exchange::{Closed, ExitStatus, Peer, Program};
use smol::future::Future;
use smol::io::AsyncRead;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

#[cfg_attr(unix, path = "process/unix.rs")]
#[cfg_attr(not(unix), path = "process/windows.rs")]
mod os;

/// Maximum time for a killed program to exit. Then it is reaped in the background.
const VANISH: Duration = Duration::from_secs(1);

/// A running program. Dropping it kills its group at once and reaps it.
pub(crate) struct Process {
    child: os::Child,
    exited: bool,
    patience: Option<Timer>,
    stderr: Option<Draining>,
}

/// A started program, with this side of its pipes.
struct Started {
    child: os::Child,
    reader: Reader,
    writer: Writer,
    errors: Option<Reader>,
}

/// How to end a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signal {
    Terminate,
    Kill,
}

impl Process {
    /// Starts `program`. Once it has started, nothing can fail or be cancelled before the guard is
    /// returned.
    pub(crate) fn spawn(program: &Program, stderr: &Stderr) -> Result<Link, Closed> {
        let started = os::spawn(program, stderr).map_err(|e| not_opened(&program.command, &e))?;
        let Started { child, reader, writer, errors } = started;
        let stderr = errors.zip(StderrReader::new(stderr)).map(|(pipe, errors)| Draining { pipe: Some(pipe), errors });
        let process = Self { child, exited: false, patience: None, stderr };
        Ok(Link { reader, writer, process: Some(process), peer: Peer::default().named(&program.command) })
    }

    /// Returns whether the program has exited. Also reads its standard error.
    pub(crate) fn poll_exited(&mut self, cx: &mut Context<'_>) -> bool {
        if let Some(errors) = &mut self.stderr {
            errors.poll(cx);
        }
        if !self.exited && self.child.poll_ended(cx) {
            self.exited = true;
            self.patience = Some(Timer::after(DRAIN));
        }
        self.exited
    }

    /// Returns whether standard error has ended, or is not read.
    pub(crate) fn is_silent(&self) -> bool {
        self.stderr.as_ref().is_none_or(|errors| errors.pipe.is_none())
    }

    /// Returns whether the wait for the rest of the output, or for a killed program, has timed out.
    pub(crate) fn poll_patience(&mut self, cx: &mut Context<'_>) -> bool {
        self.patience.as_mut().is_some_and(|timer| Pin::new(timer).poll(cx).is_ready())
    }

    /// Asks the group to terminate.
    pub(crate) fn terminate(&mut self) {
        self.child.signal(Signal::Terminate);
    }

    /// Kills the group.
    pub(crate) fn kill(&mut self) {
        self.child.signal(Signal::Kill);
        if !self.exited {
            self.patience = Some(Timer::after(VANISH));
        }
    }

    /// Kills the rest of the group, and returns the exit status. `None` if the program has not
    /// exited; it is then reaped in the background.
    pub(crate) fn reap(mut self) -> Option<ExitStatus> {
        let tail = self.stderr.as_mut().map(Draining::finish);
        let status = self.child.reap()?;
        Some(match tail {
            Some(tail) => status.with_stderr(tail),
            None => status,
        })
    }
}

/// The standard error of a program. It is always read until its end.
struct Draining {
    /// `None` once it has ended.
    pipe: Option<Reader>,
    errors: StderrReader,
}

impl Draining {
    /// Reads the available bytes.
    fn poll(&mut self, cx: &mut Context<'_>) {
        let mut buffer = [0; 4 << 10];
        // Limited to the capacity of a pipe, so that a program that writes endlessly does not delay
        // everything else.
        for _ in 0..16 {
            let Some(pipe) = &mut self.pipe else { return };
            match Pin::new(pipe).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(n)) if n > 0 => self.errors.push(&buffer[..n]),
                Poll::Ready(_) => {
                    self.errors.end();
                    self.pipe = None;
                }
                Poll::Pending => return,
            }
        }
        cx.waker().wake_by_ref();
    }

    /// Reads the available bytes after the exit of the program, and returns the last lines.
    fn finish(&mut self) -> String {
        self.poll(&mut Context::from_waker(std::task::Waker::noop()));
        if self.pipe.take().is_some() {
            self.errors.end();
        }
        self.errors.tail()
    }
}
