//! Programs: started in a process group of their own, watched without a thread, ended as a group, always reaped.

use crate::Stderr;
use crate::channel::Link;
use async_io::{Async, Timer};
use mcp_proto::driver::not_opened;
use mcp_proto::exchange::{Closed, ExitStatus, Peer, Program};
use mcp_proto::process::{DRAIN, Lines};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use smol::future::Future;
use smol::io::AsyncRead;
use std::fs::File;
use std::pin::Pin;
use std::process::{Child, ChildStderr};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// How long a killed program may take to vanish before it is left to the background.
const VANISH: Duration = Duration::from_secs(1);

/// A running program. Dropping it kills its group at once, and reaps it.
pub(crate) struct Process {
    child: Option<Child>,
    own_group: bool,
    watch: Watch,
    exited: bool,
    patience: Option<Timer>,
    stderr: Option<Errors>,
}

/// How the end of a program is noticed. It is not reaped by that: until [`Process::reap`] nobody else can get its process id.
enum Watch {
    /// A process descriptor (Linux).
    Descriptor(Async<File>),
    /// A thread of the blocking pool that waits, where there are no such descriptors.
    Thread(Pin<Box<dyn Future<Output = ()> + Send>>),
}

impl Process {
    /// Starts `program`. Between the start and the guard that is returned nothing can fail and nothing can be cancelled.
    pub(crate) fn spawn(program: &Program, stderr: &Stderr) -> Result<Link, Closed> {
        let failed = |e: std::io::Error| not_opened(&program.command, &e);
        let mut child = program.to_piped(stderr).spawn().map_err(failed)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let watch = Watch::new(Pid::from_child(&child));
        let mut process = Self {
            child: Some(child),
            own_group: program.own_group,
            watch,
            exited: false,
            patience: None,
            stderr: None,
        };
        let (Some(stdin), Some(stdout), pipe) = pipes else {
            return Err(Closed::Unreachable(format!("{}: no pipes", program.command)));
        };
        if let (Some(pipe), Stderr::Lines(told)) = (pipe, stderr) {
            let pipe = Async::new(pipe).map_err(failed)?;
            process.stderr = Some(Errors { pipe, lines: Lines::default(), told: told.clone() });
        }
        Ok(Link {
            reader: Box::new(Async::new(stdout).map_err(failed)?),
            writer: Box::new(Async::new(stdin).map_err(failed)?),
            process: Some(process),
            peer: Peer { name: Some(program.command.clone()) },
        })
    }

    /// Whether the program has ended. Also reads its standard error.
    pub(crate) fn poll_exited(&mut self, cx: &mut Context<'_>) -> bool {
        if self.stderr.as_mut().is_some_and(|errors| errors.poll(cx)) {
            self.stderr = None;
        }
        if !self.exited && self.poll_watch(cx) {
            self.exited = true;
            self.patience = Some(Timer::after(DRAIN));
        }
        self.exited
    }

    /// Whether waiting has gone on for long enough, for the rest of the output or for a killed program.
    pub(crate) fn poll_patience(&mut self, cx: &mut Context<'_>) -> bool {
        self.patience.as_mut().is_some_and(|timer| Pin::new(timer).poll(cx).is_ready())
    }

    /// Asks the group to end.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends the group.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::KILL);
        if !self.exited {
            self.patience = Some(Timer::after(VANISH));
        }
    }

    /// Ends what is left of the group, and reads the exit status; `None` if the program has not vanished, which is then waited for in
    /// the background.
    pub(crate) fn reap(mut self) -> Option<ExitStatus> {
        if let Some(errors) = &mut self.stderr {
            errors.poll(&mut Context::from_waker(std::task::Waker::noop()));
            errors.lines.end(&*errors.told);
        }
        // The program is not reaped yet, so its id still names its group and no other.
        self.signal(Signal::KILL);
        let status = self.child.as_mut()?.try_wait().ok().flatten()?;
        self.child = None;
        Some(status.into())
    }

    /// A process that is gone already is no error.
    fn signal(&self, signal: Signal) {
        let Some(child) = &self.child else { return };
        let pid = Pid::from_child(child);
        let _ = match self.own_group {
            true => rustix::process::kill_process_group(pid, signal),
            false => rustix::process::kill_process(pid, signal),
        };
    }

    fn poll_watch(&mut self, cx: &mut Context<'_>) -> bool {
        match &mut self.watch {
            Watch::Thread(ended) => ended.as_mut().poll(cx).is_ready(),
            Watch::Descriptor(descriptor) => {
                while descriptor.poll_readable(cx).is_ready() {
                    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
                    let ended = self.child.as_ref().map(|child| wait(Pid::from_child(child), options));
                    if ended != Some(Ok(false)) {
                        return true;
                    }
                }
                false
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if let Some(mut child) = self.child.take()
            && !matches!(child.try_wait(), Ok(Some(_)))
        {
            // Killed, so the wait is short; a thread of the blocking pool, since a drop must not wait.
            smol::unblock(move || child.wait()).detach();
        }
    }
}

impl Watch {
    fn new(pid: Pid) -> Self {
        #[cfg(target_os = "linux")]
        if let Ok(descriptor) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())
            && let Ok(descriptor) = Async::new_nonblocking(File::from(descriptor))
        {
            return Self::Descriptor(descriptor);
        }
        let waits = move || while wait(pid, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) == Ok(false) {};
        Self::Thread(Box::pin(smol::unblock(waits)))
    }
}

/// Whether the process has ended; does not reap it.
fn wait(pid: Pid, options: WaitIdOptions) -> Result<bool, rustix::io::Errno> {
    match rustix::process::waitid(WaitId::Pid(pid), options) {
        Ok(status) => Ok(status.is_some()),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Standard error of a program, read for as long as it is open, whether or not anyone is interested.
struct Errors {
    pipe: Async<ChildStderr>,
    lines: Lines,
    told: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Errors {
    /// Reads what is there; whether the end was reached.
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        let mut buffer = [0; 4 << 10];
        // Bounded, so that a program that writes without end does not keep everything else waiting.
        for _ in 0..16 {
            match Pin::new(&mut self.pipe).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(n)) if n > 0 => self.lines.push(&buffer[..n], &*self.told),
                Poll::Ready(_) => {
                    self.lines.end(&*self.told);
                    return true;
                }
                Poll::Pending => return false,
            }
        }
        cx.waker().wake_by_ref();
        false
    }
}
