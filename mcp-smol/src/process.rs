//! A program as an asynchronous peer: its pipes, its exit, and its standard error.

use crate::Stderr;
use crate::stream::{Reader, Stream, Writer};
use crate::transport::OpenStream;
use mcp_driver::{ChildProcess, Signal, SpawnedProgram, StderrReader, Transfer, not_opened};
use mcp_proto::exchange::{Closed, ExitStatus, Peer, Program};
use smol::Task;
use smol::future::Future;
use smol::io::AsyncRead;
#[cfg(unix)]
use std::fs::File;
use std::io;
#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::sync::Arc;
use std::task::{Context, Poll};

/// A running program. Dropping it kills its group at once and reaps it.
pub(crate) struct Process {
    child: Arc<ChildProcess>,
    watch: Watch,
    /// Its standard error, which is always read until its end. `None` if it is not piped, or has
    /// ended.
    stderr: Option<(Reader, StderrReader)>,
}

/// Detects the exit of a program.
enum Watch {
    /// A process descriptor.
    #[cfg(target_os = "linux")]
    Descriptor(async_io::Async<OwnedFd>),
    /// A waiting thread of the blocking pool, on systems without such descriptors.
    Thread(Task<ExitStatus>),
    /// It has exited.
    Over,
}

impl Process {
    /// Starts `program`. Once it has started, nothing can be cancelled before the guard is
    /// returned.
    pub(crate) fn spawn(program: &Program, stderr: &Stderr) -> Result<OpenStream, Closed> {
        let started = ChildProcess::spawn(program, stderr).and_then(|spawned| Self::attach(spawned, stderr));
        let (process, reader, writer) = started.map_err(|e| not_opened(&program.command, &e))?;
        let peer = Peer::default().named(&program.command);
        let stream = Stream { reader, writer, is_pair: true };
        Ok(OpenStream { stream, process: Some(process), peer })
    }

    fn attach(spawned: SpawnedProgram, stderr: &Stderr) -> io::Result<(Self, Reader, Writer)> {
        let child = Arc::new(spawned.process);
        let watch = Watch::new(&child);
        let errors = spawned.stderr.map(errors).transpose()?;
        let process = Self { child, watch, stderr: errors.zip(StderrReader::new(stderr)) };
        let (reader, writer) = pipes(spawned.stdout, spawned.stdin)?;
        Ok((process, reader, writer))
    }

    /// Returns whether its standard error is read.
    pub(crate) fn reads_stderr(&self) -> bool {
        self.stderr.is_some()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.child.signal(signal);
    }

    /// Polls for the exit of the program. Ready once.
    pub(crate) fn poll_exited(&mut self, cx: &mut Context<'_>) -> Poll<ExitStatus> {
        let polled = match &mut self.watch {
            #[cfg(target_os = "linux")]
            Watch::Descriptor(descriptor) => loop {
                if descriptor.poll_readable(cx).is_pending() {
                    break Poll::Pending;
                }
                if let Some(status) = self.child.try_exited() {
                    break Poll::Ready(status);
                }
            },
            Watch::Thread(waits) => Pin::new(waits).poll(cx),
            Watch::Over => Poll::Pending,
        };
        if polled.is_ready() {
            self.watch = Watch::Over;
        }
        polled
    }

    /// Reads the available bytes of standard error. At most the capacity of a pipe, so that a
    /// program that writes endlessly does not delay everything else.
    pub(crate) fn poll_stderr(&mut self, cx: &mut Context<'_>, transfer: &mut Transfer) {
        let mut buffer = [0; 4 << 10];
        for _ in 0..16 {
            let Some((pipe, lines)) = &mut self.stderr else { return };
            let Poll::Ready(read) = Pin::new(&mut pipe.stream).poll_read(cx, &mut buffer) else { return };
            let bytes = &buffer[..read.unwrap_or(0)];
            transfer.stderr(Ok(bytes));
            lines.push(bytes);
            if bytes.is_empty() {
                self.stderr = None;
            }
        }
        cx.waker().wake_by_ref();
    }
}

impl Drop for Process {
    /// Kills the program, which the thread that waits for its exit keeps otherwise. Passes on the
    /// last line of standard error, also if a descendant holds it open.
    fn drop(&mut self) {
        if matches!(self.watch, Watch::Thread(_)) {
            self.child.signal(Signal::Kill);
        }
        if let Some((_, lines)) = &mut self.stderr {
            lines.push(&[]);
        }
    }
}

impl Watch {
    fn new(child: &Arc<ChildProcess>) -> Self {
        #[cfg(target_os = "linux")]
        if let Ok(descriptor) = child.exit_descriptor().and_then(async_io::Async::new_nonblocking) {
            return Self::Descriptor(descriptor);
        }
        let child = child.clone();
        Self::Thread(smol::unblock(move || child.wait_exited()))
    }
}

/// These ends of the pipes are ours alone: no other process sees that they do not block.
#[cfg(unix)]
fn pipes(stdout: ChildStdout, stdin: ChildStdin) -> io::Result<(Reader, Writer)> {
    let stdout = Reader::of_system(Arc::new(async_io::Async::new(File::from(OwnedFd::from(stdout)))?));
    Ok((stdout, Box::new(async_io::Async::new(stdin)?)))
}

#[cfg(unix)]
fn errors(stderr: ChildStderr) -> io::Result<Reader> {
    Ok(Reader::of_system(Arc::new(async_io::Async::new(File::from(OwnedFd::from(stderr)))?)))
}

/// Threads of the blocking pool read and write, since Windows pipes cannot be polled.
#[cfg(not(unix))]
fn pipes(stdout: ChildStdout, stdin: ChildStdin) -> io::Result<(Reader, Writer)> {
    Ok((Reader::new(smol::Unblock::new(stdout)), Box::new(smol::Unblock::new(stdin))))
}

#[cfg(not(unix))]
fn errors(stderr: ChildStderr) -> io::Result<Reader> {
    Ok(Reader::new(smol::Unblock::new(stderr)))
}

#[cfg(all(test, unix, not(shuttle)))]
mod tests {
    use super::*;
    use smol::io::AsyncReadExt;
    use std::time::Duration;

    /// The waiting thread of systems without process descriptors.
    // covers: B-133
    #[test]
    fn dropped_program_is_killed_while_a_thread_waits_for_it() {
        let spawned = ChildProcess::spawn(&Program::new("cat"), &Stderr::Discard).expect("it starts");
        // Its input stays open.
        let (mut process, mut reader, _writer) = Process::attach(spawned, &Stderr::Discard).expect("pipes");
        let child = process.child.clone();
        let (tell, waits) = std::sync::mpsc::channel();
        process.watch = Watch::Thread(smol::unblock(move || {
            tell.send(()).expect("heard");
            child.wait_exited()
        }));
        waits.recv().expect("a thread");
        drop(process);
        let ended = async { reader.stream.read(&mut [0]).await.expect("a pipe") };
        let late = async {
            smol::Timer::after(Duration::from_secs(20)).await;
            panic!("it was not killed")
        };
        assert_eq!(smol::block_on(smol::future::or(ended, late)), 0);
    }
}
