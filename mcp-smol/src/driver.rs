//! The future that performs the I/O of a client: it opens, reads, writes, closes, sleeps, and runs
//! the callbacks. It decides nothing, and keeps no protocol state, so it may be dropped between any
//! two polls.

use crate::clock::Alarm;
use crate::stream::Stream;
use crate::transport::Transport;
use mcp_driver::{AsyncJob, DriverHandle, Job, Task};
use smol::future::{Boxed, Future};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Maximum number of events from one connection per turn: a read and a write.
const TURN: usize = 2;
/// Maximum number of turns per poll, so that other tasks of the executor can run.
const TURNS: usize = 32;
/// Half a millisecond, after which a poll takes no other turn, for the same reason: what a read
/// costs depends on what the peer has sent.
const ENOUGH: Duration = Duration::from_nanos(500_000);

/// Drives a [`Client`](crate::Client): a future for any executor. It completes when the client has
/// ended.
///
/// Dropping it ends everything at once: programs are killed with their process groups, and calls
/// end with [`CallError::Closed`](crate::CallError::Closed).
#[must_use = "a client does nothing unless its driver is polled"]
pub struct Driver {
    /// Pending callbacks.
    jobs: Vec<AsyncJob>,
    connections: Vec<Transport>,
    driving: DriverHandle,
    open_timeout: Duration,
    given: Option<Stream>,
    /// A server in this process.
    guest: Option<Boxed<()>>,
    alarm: Alarm,
}

impl Driver {
    pub(crate) fn new(
        driving: DriverHandle,
        open_timeout: Duration,
        given: Option<Stream>,
        guest: Option<Boxed<()>>,
    ) -> Self {
        let (jobs, connections, alarm) = (Vec::new(), Vec::new(), Alarm::new());
        Self { jobs, connections, driving, open_timeout, given, guest, alarm }
    }

    /// Carries out the tasks of the client. Returns whether there were any. `None` once the client
    /// has ended.
    fn take_tasks(&mut self) -> Option<bool> {
        let mut moved = false;
        while let Some(task) = self.driving.next_task() {
            moved = true;
            match task {
                Task::Open(connection, endpoint) => {
                    let transport = Transport::open(connection, endpoint, self.open_timeout, &mut self.given);
                    self.connections.push(transport);
                }
                Task::Route(routing) => match routing.route() {
                    Some(Job::Async(job)) => self.jobs.push(job),
                    Some(Job::Sync(job)) => smol::unblock(move || job.run()).detach(),
                    None => {}
                },
                Task::Deliver(events) => events.deliver(),
                // Only a server makes fetches by another client.
                Task::Drive(..) => {}
                Task::Ended => return None,
            }
        }
        Some(moved)
    }

    /// Returns whether anything happened.
    fn poll_connections(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        self.connections.retain_mut(|connection| {
            for _ in 0..TURN {
                if connection.poll(cx, true).is_pending() {
                    break;
                }
                moved = true;
            }
            !connection.is_closed()
        });
        moved
    }

    fn poll_jobs(&mut self, cx: &mut Context<'_>) -> bool {
        let before = self.jobs.len();
        // The result of a callback is passed to the engine when it is dropped.
        self.jobs.retain_mut(|job| Pin::new(job).poll(cx).is_pending());
        self.jobs.len() < before
    }

    fn poll_alarm(&mut self, cx: &mut Context<'_>) -> bool {
        let due = self.alarm.poll(cx, self.driving.clock(), self.driving.poll_timeout());
        if due {
            self.driving.handle_timeout();
        }
        due
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let clock = this.driving.clock();
        let end = clock.now() + ENOUGH;
        for _ in 0..TURNS {
            let Some(mut moved) = this.take_tasks() else { return Poll::Ready(()) };
            moved |= this.poll_connections(cx);
            moved |= this.poll_jobs(cx);
            moved |= this.poll_alarm(cx);
            if this.guest.as_mut().is_some_and(|guest| guest.as_mut().poll(cx).is_ready()) {
                this.guest = None;
            }
            if !moved && this.driving.poll_woken(cx).is_pending() {
                return Poll::Pending;
            }
            if clock.now() >= end {
                break;
            }
        }
        this.alarm.yield_to_streams(cx, clock);
        Poll::Pending
    }
}

impl Drop for Driver {
    /// Kills the programs first, then ends what waits.
    fn drop(&mut self) {
        self.connections.iter_mut().for_each(Transport::kill);
        self.driving.abandon();
        self.connections.clear();
        self.jobs.clear();
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("connections", &self.connections.len()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests;
