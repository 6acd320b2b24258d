//! The operating system of the model checker: time that passes on request, pipes of few bytes, and
//! threads as programs.
//!
//! Every lock and condition in it belongs to the checker, so a schedule may stop any thread at any
//! of them.

use super::world::{Held, Proc, WORLD, World};
use crate::Stderr;
use crate::direct::{Direct, WriteNow};
use crate::os::StartedProgram;
use crate::polled::{PolledSource, ReadNow};
use crate::sync::{Mutex, MutexGuard, lock};
use crate::transport::{Ends, Reader};
use bytes::Bytes;
use mcp_driver::Signal;
use mcp_proto::exchange::{ExitStatus, Program};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::sync::{Arc, LockResult, PoisonError};
use std::time::Duration;

/// A condition whose timed waits end at a time of the model.
#[derive(Default, Debug)]
pub(crate) struct Condvar(Arc<shuttle::sync::Condvar>);

pub(crate) struct Waited(bool);

impl Waited {
    pub(crate) fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn notify_one(&self) {
        WORLD.with_borrow_mut(|world| world.deeds += 1);
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        WORLD.with_borrow_mut(|world| world.deeds += 1);
        self.0.notify_all();
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.0.wait(guard)
    }

    pub(crate) fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        limit: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, Waited)> {
        let (key, until) = WORLD.with_borrow_mut(|world| world.begin_wait(limit, Arc::clone(&self.0)));
        let guard = self.0.wait(guard).unwrap_or_else(PoisonError::into_inner);
        let now = WORLD.with_borrow_mut(|world| world.end_wait(key));
        Ok((guard, Waited(now >= until)))
    }
}

/// The state that both ends of a pipe share.
pub(crate) struct Pipe {
    state: Mutex<PipeState>,
    changed: Condvar,
    capacity: usize,
}

struct PipeState {
    bytes: VecDeque<u8>,
    readable: bool,
    writable: bool,
    /// A thread reads.
    is_read: bool,
    /// The caller that reads was woken.
    woken: bool,
}

/// One end of a pipe. Dropping it closes it.
pub(crate) struct ReadEnd(Arc<Pipe>);

/// Like [`ReadEnd`].
pub(crate) struct WriteEnd(Arc<Pipe>);

impl Pipe {
    pub(crate) fn ends() -> (ReadEnd, WriteEnd) {
        let state = PipeState { bytes: VecDeque::new(), readable: true, writable: true, is_read: false, woken: false };
        let capacity = WORLD.with_borrow(|world| world.capacity);
        let pipe = Arc::new(Self { state: Mutex::new(state), changed: Condvar::new(), capacity });
        (ReadEnd(Arc::clone(&pipe)), WriteEnd(pipe))
    }

    pub(crate) fn close_reading(&self) {
        self.change(|state| state.readable = false);
    }

    pub(crate) fn close_writing(&self) {
        self.change(|state| state.writable = false);
    }

    fn change(&self, change: impl FnOnce(&mut PipeState)) {
        change(&mut lock(&self.state));
        self.changed.notify_all();
    }

    /// Writes what the pipe accepts. While it is full, `full` waits, or fails.
    fn write<'a>(
        &'a self,
        bytes: impl Iterator<Item = u8>,
        full: impl Fn(MutexGuard<'a, PipeState>) -> io::Result<MutexGuard<'a, PipeState>>,
    ) -> io::Result<usize> {
        let mut state = lock(&self.state);
        while state.bytes.len() >= self.capacity && state.readable && state.writable {
            state = full(state)?;
        }
        if !state.readable || !state.writable {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let before = state.bytes.len();
        state.bytes.extend(bytes.take(self.capacity - before));
        let n = state.bytes.len() - before;
        drop(state);
        self.changed.notify_all();
        Ok(n)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, PipeState>) -> MutexGuard<'a, PipeState> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReadEnd {
    pub(crate) fn pipe(&self) -> Arc<Pipe> {
        Arc::clone(&self.0)
    }
}

impl WriteEnd {
    pub(crate) fn pipe(&self) -> Arc<Pipe> {
        Arc::clone(&self.0)
    }
}

impl Read for ReadEnd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = lock(&self.0.state);
        assert!(!std::mem::replace(&mut state.is_read, true), "two threads read");
        while state.bytes.is_empty() && state.writable && state.readable {
            state = self.0.wait(state);
        }
        state.is_read = false;
        if !state.readable {
            return Ok(0);
        }
        let n = buffer.len().min(state.bytes.len());
        buffer.iter_mut().zip(state.bytes.drain(..n)).for_each(|(to, byte)| *to = byte);
        drop(state);
        self.0.changed.notify_all();
        Ok(n)
    }
}

impl Write for WriteEnd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes.iter().copied(), |state| Ok(self.0.wait(state)))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The reading end of a pipe, as a caller sees it. The pipe closes with [`ReadEnd`].
struct ReadNowEnd(Arc<Pipe>);

impl ReadNow for ReadNowEnd {
    fn wait(&self, limit: Option<Duration>) -> io::Result<bool> {
        WORLD.with_borrow_mut(|world| world.waits_of_callers += 1);
        let mut state = lock(&self.0.state);
        assert!(!std::mem::replace(&mut state.is_read, true), "two threads read");
        let is_ready = |state: &PipeState| !state.bytes.is_empty() || !state.writable || !state.readable;
        let mut is_over = false;
        while !is_ready(&state) && !state.woken && !is_over {
            match limit {
                None => state = self.0.wait(state),
                Some(limit) => {
                    let (woken, waited) =
                        self.0.changed.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner);
                    (state, is_over) = (woken, waited.timed_out());
                }
            }
        }
        (state.is_read, state.woken) = (false, false);
        Ok(is_ready(&state))
    }

    fn read_now(&self) -> io::Result<Bytes> {
        let mut state = lock(&self.0.state);
        assert!(!state.is_read, "two threads read");
        let bytes = state.bytes.drain(..).collect();
        drop(state);
        self.0.changed.notify_all();
        Ok(bytes)
    }

    fn wake(&self) {
        self.0.change(|state| state.woken = true);
    }

    fn is_socket(&self) -> bool {
        false
    }
}

/// The writing end of a pipe, as its description without waiting sees it. The pipe closes with
/// [`WriteEnd`]: a test that leaves this one behind would not notice.
struct WriteNowEnd(Arc<Pipe>);

impl WriteNow for WriteNowEnd {
    fn write_now(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.write(pieces.iter().flat_map(|piece| piece.iter().copied()), |_| Err(ErrorKind::WouldBlock.into()))
    }
}

impl Drop for ReadEnd {
    fn drop(&mut self) {
        self.0.close_reading();
    }
}

impl Drop for WriteEnd {
    fn drop(&mut self) {
        self.0.close_writing();
    }
}

/// Returns how often callers have waited while they read.
pub(super) fn waits_of_callers() -> usize {
    WORLD.with_borrow(|world| world.waits_of_callers)
}

/// Creates two connected pairs of pipes.
pub(crate) fn pipes() -> io::Result<(Ends, Ends)> {
    let ((here, to_here), (there, to_there)) = (Pipe::ends(), Pipe::ends());
    Ok((ends(here, to_there), ends(there, to_here)))
}

/// Returns the two ends of a stream that can be read and written without waiting.
pub(crate) fn ends(reader: ReadEnd, writer: WriteEnd) -> Ends {
    let direct: Direct = Box::new(WriteNowEnd(writer.pipe()));
    let polled: PolledSource = Arc::new(ReadNowEnd(reader.pipe()));
    Ends { reader: Box::new(reader), polled: Some(polled), writer: Box::new(writer), direct: Some(direct) }
}

/// A program that runs as a thread.
pub(crate) struct ChildProcess(Arc<Proc>);

pub(crate) fn spawn(program: &Program, stderr: &Stderr) -> io::Result<StartedProgram> {
    let body = WORLD.with_borrow(|world| world.programs.get(&program.command).cloned()).ok_or(ErrorKind::NotFound)?;
    let ((input, to_input), (from_output, output), (from_errors, errors)) = (Pipe::ends(), Pipe::ends(), Pipe::ends());
    let process = Proc::new(vec![input.pipe()], vec![output.pipe(), errors.pipe()]);
    World::started(&process);
    let held = Held { input, output, errors, process: Arc::clone(&process) };
    crate::sync::spawn("program", move || {
        let process = Arc::clone(&held.process);
        let code = body(held);
        process.end(ExitStatus::exited(code));
    })?;
    let errors = (!matches!(stderr, Stderr::Inherit)).then(|| Box::new(from_errors) as Reader);
    let process = ChildProcess(process);
    Ok(StartedProgram { process, ends: ends(from_output, to_input), errors })
}

impl ChildProcess {
    pub(crate) fn signal(&self, signal: Signal) {
        match signal {
            Signal::Terminate => self.0.terminate(),
            Signal::Kill => self.0.kill(),
            Signal::KillGroup => self.0.reap(),
        }
    }

    pub(crate) fn wait_exited(&self) -> ExitStatus {
        self.0.wait().status.clone().unwrap_or_default()
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.0.kill();
        self.0.reap();
    }
}
