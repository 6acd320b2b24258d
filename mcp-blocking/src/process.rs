//! A child process as a channel: its streams, its process group, the signals of the ladder, and its end.

use crate::Stderr;
use crate::stream;
use crate::target::{Reader, Writer};
use mcp_proto::exchange::{ExitStatus, Program};
use mcp_proto::process::Lines;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, ChildStderr};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The right to signal a child. It is spent when the child is reaped, since its id may name another process from then on.
#[derive(Debug)]
pub(crate) struct Process {
    live: Mutex<Option<Live>>,
}

#[derive(Debug)]
struct Live {
    child: Child,
    group: bool,
}

/// The parent's ends of a child's streams.
pub(crate) struct Streams {
    pub(crate) output: Reader,
    pub(crate) input: Writer,
    pub(crate) errors: Option<ChildStderr>,
}

/// How hard to end a child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Signal {
    Terminate,
    Kill,
}

impl Process {
    /// Starts it.
    ///
    /// # Errors
    /// What the operating system said.
    pub(crate) fn spawn(program: &Program, stderr: &Stderr) -> io::Result<(Self, Streams)> {
        let mut child = program.to_piped(stderr).spawn()?;
        let streams = (child.stdout.take(), child.stdin.take());
        let (Some(output), Some(input)) = streams else { unreachable!("both streams were asked to be pipes") };
        let streams = Streams { output: Box::new(output), input: Box::new(input), errors: child.stderr.take() };
        Ok((Self { live: Mutex::new(Some(Live { child, group: program.own_group })) }, streams))
    }

    /// Signals the child, or all of its group. Does nothing once it is reaped.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(live) = self.lock().as_mut() {
            live.signal(signal);
        }
    }

    /// Waits until the child has ended, and leaves it unreaped: its id, and the id of its group, stay its own.
    pub(crate) fn wait(&self) {
        let Some(id) = self.lock().as_ref().map(|live| live.child.id()) else { return };
        os::wait(id, || self.lock().as_mut().is_none_or(|live| !matches!(live.child.try_wait(), Ok(None))));
    }

    /// Ends what is left of the group of a child that has ended, and reaps the child.
    pub(crate) fn reap(&self) -> ExitStatus {
        let mut live = self.lock();
        let Some(mut ended) = live.take() else { return ExitStatus::default() };
        if ended.group {
            ended.signal(Signal::Kill);
        }
        ended.child.wait().map_or_else(|_| ExitStatus::default(), ExitStatus::from)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    /// Nobody waits for it any more: it and its group end now.
    fn drop(&mut self) {
        self.signal(Signal::Kill);
        self.reap();
    }
}

impl Live {
    fn signal(&mut self, signal: Signal) {
        os::signal(&mut self.child, self.group, signal);
    }
}

/// Reads standard error to its end, whatever comes, and hands it on by lines.
pub(crate) fn read_errors(mut errors: ChildStderr, told: &(dyn Fn(&str) + Send + Sync)) {
    // A panic of the application's function must not stop the draining: the child would block on a full pipe.
    let told = |line: &str| drop(catch_unwind(AssertUnwindSafe(|| told(line))));
    let mut lines = Lines::default();
    drop(stream::read(&mut errors, |bytes| {
        lines.push(&bytes, told);
        true
    }));
    lines.end(told);
}

#[cfg(unix)]
mod os {
    use super::Signal;
    use rustix::io::Errno;
    use rustix::process::{self, Pid, WaitId, WaitIdOptions};
    use std::process::Child;

    pub(super) fn signal(child: &mut Child, group: bool, signal: Signal) {
        let Some(pid) = pid(child.id()) else { return };
        let signal = match signal {
            Signal::Terminate => process::Signal::TERM,
            Signal::Kill => process::Signal::KILL,
        };
        // It fails if all of them have ended, which is what is wanted.
        let _ = if group { process::kill_process_group(pid, signal) } else { process::kill_process(pid, signal) };
    }

    /// Waits for the end of the child `id` without reaping it.
    pub(super) fn wait(id: u32, _ended: impl FnMut() -> bool) {
        let Some(pid) = pid(id) else { return };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(process::waitid(WaitId::Pid(pid), options), Err(Errno::INTR)) {}
    }

    fn pid(id: u32) -> Option<Pid> {
        Pid::from_raw(i32::try_from(id).ok()?)
    }
}

#[cfg(not(unix))]
mod os {
    use super::Signal;
    use std::process::Child;
    use std::time::Duration;

    /// How often it is looked at: there is no wait that leaves the child to others.
    const LOOK: Duration = Duration::from_millis(10);

    pub(super) fn signal(child: &mut Child, _group: bool, signal: Signal) {
        if signal == Signal::Kill {
            drop(child.kill());
        }
    }

    pub(super) fn wait(_id: u32, mut ended: impl FnMut() -> bool) {
        while !ended() {
            std::thread::sleep(LOOK);
        }
    }
}
