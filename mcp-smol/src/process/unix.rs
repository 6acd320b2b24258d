//! Unix: programs in their own process groups, watched without a thread where the system supports
//! it.

use super::{Signal, Started};
use crate::Stderr;
use async_io::Async;
use mcp_proto::exchange::{ExitStatus, Group, Program};
use rustix::process::{Pid, WaitId, WaitIdOptions};
use smol::future::Future;
use std::fs::File;
use std::io;
use std::pin::Pin;
use std::task::Context;

/// A child, and its group if it leads one.
pub(super) struct Child {
    /// `None` once it is reaped: its id may belong to another process then.
    child: Option<std::process::Child>,
    group: Group,
    watch: Watch,
}

/// Detects the exit of a program without reaping it. Until [`Child::reap`], no other process can
/// get its process id.
enum Watch {
    /// A process descriptor (Linux).
    Descriptor(Async<File>),
    /// A waiting thread of the blocking pool, on systems without such descriptors.
    Thread(Pin<Box<dyn Future<Output = ()> + Send>>),
}

pub(super) fn spawn(program: &Program, stderr: &Stderr) -> io::Result<Started> {
    let mut child = program.to_piped(stderr, std::env::vars_os()).spawn()?;
    let (stdin, stdout, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let watch = Watch::new(Pid::from_child(&child));
    // From here on, any failure ends it.
    let child = Child { child: Some(child), group: program.group, watch };
    let (Some(stdin), Some(stdout)) = (stdin, stdout) else { return Err(io::Error::other("no pipes")) };
    let errors = match errors {
        Some(errors) => Some(Box::new(Async::new(errors)?) as _),
        None => None,
    };
    Ok(Started { child, reader: Box::new(Async::new(stdout)?), writer: Box::new(Async::new(stdin)?), errors })
}

impl Child {
    /// Succeeds if the process has already exited.
    pub(super) fn signal(&mut self, signal: Signal) {
        let Some(child) = &self.child else { return };
        let pid = Pid::from_child(child);
        let signal = match signal {
            Signal::Terminate => rustix::process::Signal::TERM,
            Signal::Kill => rustix::process::Signal::KILL,
        };
        let _ = match self.group {
            Group::Own => rustix::process::kill_process_group(pid, signal),
            Group::Inherit => rustix::process::kill_process(pid, signal),
        };
    }

    /// Returns whether it has exited. Does not reap it.
    pub(super) fn poll_ended(&mut self, cx: &mut Context<'_>) -> bool {
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

    /// Kills the rest of the group, and returns the exit status. `None` if the program has not
    /// exited.
    pub(super) fn reap(&mut self) -> Option<ExitStatus> {
        // The program is not reaped, so its id still belongs to its group.
        self.signal(Signal::Kill);
        let status = self.child.as_mut()?.try_wait().ok().flatten()?;
        self.child = None;
        Some(status.into())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.signal(Signal::Kill);
        if let Some(mut child) = self.child.take()
            && !matches!(child.try_wait(), Ok(Some(_)))
        {
            // It was killed, so the wait is short. It runs in the blocking pool, since a drop must
            // not block.
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

/// Returns whether the process has exited. Does not reap it.
fn wait(pid: Pid, options: WaitIdOptions) -> Result<bool, rustix::io::Errno> {
    match rustix::process::waitid(WaitId::Pid(pid), options) {
        Ok(status) => Ok(status.is_some()),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(e) => Err(e),
    }
}
