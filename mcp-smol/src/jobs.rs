//! Where the callbacks of a server run.

use crate::driver::Driver;
use mcp_driver::{AsyncJob, Job, JobResult, RouteTask, Spawn, Task};
use mcp_proto::input::Outcome;
use mcp_proto::route::{BlockingCall, BoxFuture};
use smol::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Runs the tasks of a server: futures on an executor, and everything slow on the blocking pool of
/// smol.
#[derive(Clone)]
pub(crate) struct Jobs(Arc<Spawn>);

impl Jobs {
    pub(crate) fn new(spawn: Arc<Spawn>) -> Self {
        Self(spawn)
    }

    /// Passes a task to the executor.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        (self.0)(Box::pin(task));
    }

    pub(crate) fn run(&self, task: Task) {
        match task {
            // On the executor, a large request would delay the other tasks.
            Task::Route(routing) if routing.takes_long() => {
                let jobs = self.clone();
                smol::unblock(move || jobs.route(routing)).detach();
            }
            Task::Route(routing) => self.route(routing),
            Task::Deliver(events) => events.deliver(),
            Task::Drive(driving, open_timeout) => self.spawn(Driver::new(driving, open_timeout, None, None)),
            Task::Open(..) | Task::Ended => {}
        }
    }

    fn route(&self, routing: RouteTask) {
        match routing.route() {
            Some(Job::Async(job)) => self.begin(job),
            Some(Job::Sync(job)) => smol::unblock(move || job.run()).detach(),
            None => {}
        }
    }

    /// Runs a future of the application: here, if it completes at once, which saves a task;
    /// otherwise as a task.
    fn begin(&self, mut job: AsyncJob) {
        match Pin::new(&mut job).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(finished) => finish(finished),
            Poll::Pending => self.spawn(async { finish(job.await) }),
        }
    }
}

/// Runs a handler that may block, on the blocking pool.
pub(crate) fn block(run: BlockingCall) -> BoxFuture<Outcome> {
    Box::pin(smol::unblock(run))
}

/// Serializes a result, and passes it to the engine.
fn finish(finished: JobResult) {
    if finished.takes_long() {
        return smol::unblock(move || drop(finished)).detach();
    }
    drop(finished);
}
