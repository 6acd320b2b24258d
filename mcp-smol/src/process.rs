//! Programs: started, watched, ended with what they have started, always reaped. How the system does it is told by [`os`].

use crate::Stderr;
use crate::channel::{Link, Reader, Writer};
use async_io::Timer;
use mcp_proto::driver::not_opened;
use mcp_proto::exchange::{Closed, ExitStatus, Peer, Program};
use mcp_proto::process::{DRAIN, Errors};
use smol::future::Future;
use smol::io::AsyncRead;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

#[cfg_attr(unix, path = "process/unix.rs")]
#[cfg_attr(not(unix), path = "process/windows.rs")]
mod os;

/// How long a killed program may take to vanish before it is left to the background.
const VANISH: Duration = Duration::from_secs(1);

/// A running program. Dropping it kills it with its group at once, and reaps it.
pub(crate) struct Process {
    child: os::Child,
    exited: bool,
    patience: Option<Timer>,
    stderr: Option<Draining>,
}

/// A program that has been started, with our ends of its streams.
struct Started {
    child: os::Child,
    reader: Reader,
    writer: Writer,
    errors: Option<Reader>,
}

/// How hard to end a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signal {
    Terminate,
    Kill,
}

impl Process {
    /// Starts `program`. Between the start and the guard that is returned nothing can fail and nothing can be cancelled.
    pub(crate) fn spawn(program: &Program, stderr: &Stderr) -> Result<Link, Closed> {
        let started = os::spawn(program, stderr).map_err(|e| not_opened(&program.command, &e))?;
        let Started { child, reader, writer, errors } = started;
        let stderr = errors.zip(Errors::new(stderr)).map(|(pipe, errors)| Draining { pipe: Some(pipe), errors });
        let process = Self { child, exited: false, patience: None, stderr };
        Ok(Link { reader, writer, process: Some(process), peer: Peer::default().named(&program.command) })
    }

    /// Whether the program has ended. Also reads its standard error.
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

    /// Whether standard error has ended, or is not read.
    pub(crate) fn is_silent(&self) -> bool {
        self.stderr.as_ref().is_none_or(|errors| errors.pipe.is_none())
    }

    /// Whether waiting has gone on for long enough, for the rest of the output or for a killed program.
    pub(crate) fn poll_patience(&mut self, cx: &mut Context<'_>) -> bool {
        self.patience.as_mut().is_some_and(|timer| Pin::new(timer).poll(cx).is_ready())
    }

    /// Asks the group to end.
    pub(crate) fn terminate(&mut self) {
        self.child.signal(Signal::Terminate);
    }

    /// Ends the group.
    pub(crate) fn kill(&mut self) {
        self.child.signal(Signal::Kill);
        if !self.exited {
            self.patience = Some(Timer::after(VANISH));
        }
    }

    /// Ends what is left of the group, and reads the exit status; `None` if the program has not vanished, which is then waited for in
    /// the background.
    pub(crate) fn reap(mut self) -> Option<ExitStatus> {
        let tail = self.stderr.as_mut().map(Draining::finish);
        let status = self.child.reap()?;
        Some(match tail {
            Some(tail) => status.with_stderr(tail),
            None => status,
        })
    }
}

/// Standard error of a program, read for as long as it is open, whether or not anyone is interested.
struct Draining {
    /// `None` once it has ended.
    pipe: Option<Reader>,
    errors: Errors,
}

impl Draining {
    /// Reads what is there.
    fn poll(&mut self, cx: &mut Context<'_>) {
        let mut buffer = [0; 4 << 10];
        // Bounded: as much as a pipe holds, so that a program that writes without end does not keep everything else waiting.
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

    /// The program has ended: what is there still is read, and what came last is handed out.
    fn finish(&mut self) -> String {
        self.poll(&mut Context::from_waker(std::task::Waker::noop()));
        if self.pipe.take().is_some() {
            self.errors.end();
        }
        self.errors.tail()
    }
}
