//! The outputs of a client that wait for the driver of a connection.

use super::super::shared::Later;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::mem::take;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Waker;
use mcp_proto::wired::ConnectionOutput;

/// The outputs for a connection, and the waker of its driver.
#[derive(Default)]
pub(in crate::front) struct Outputs {
    queue: VecDeque<ConnectionOutput>,
    waker: Option<Waker>,
    mark: Arc<OutputMark>,
}

/// Whether an exchange is needed to learn of outputs, or to register the waker again. The driver
/// reads it without the lock.
#[derive(Debug)]
pub(in crate::front) struct OutputMark(AtomicBool);

impl Default for OutputMark {
    fn default() -> Self {
        Self(AtomicBool::new(true))
    }
}

impl OutputMark {
    pub(in crate::front) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Outputs {
    pub(super) fn mark(&self) -> Arc<OutputMark> {
        Arc::clone(&self.mark)
    }

    pub(super) fn push(&mut self, output: ConnectionOutput, later: &mut Later) {
        self.queue.push_back(output);
        self.alert(later);
    }

    /// Makes the driver look again.
    pub(super) fn alert(&mut self, later: &mut Later) {
        self.mark.0.store(true, Ordering::Release);
        later.wake(self.waker.take());
    }

    /// Takes the outputs. Until there are more, the driver needs no exchange.
    pub(super) fn take(&mut self) -> VecDeque<ConnectionOutput> {
        self.mark.0.store(false, Ordering::Release);
        take(&mut self.queue)
    }

    /// The driver is awake.
    pub(super) const fn take_waker(&mut self) -> Option<Waker> {
        self.waker.take()
    }

    /// Registers the waker of the driver. `before` is the one that was registered last.
    pub(super) fn register(&mut self, before: Option<Waker>, waker: &Waker, later: &mut Later) {
        match before {
            Some(known) if known.will_wake(waker) => self.waker = Some(known),
            before => {
                self.waker = Some(waker.clone());
                later.replaced(before);
            }
        }
    }
}
