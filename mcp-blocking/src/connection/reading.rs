//! Who reads: a caller that waits for its answer, or the reading thread.
//!
//! A caller that reads for itself is not woken by another thread: this saves two switches of
//! threads a call. After it has left, the reading thread does not take over at once, since the next
//! call may follow soon.
//!
//! | who reads | a caller begins to wait | the caller that reads leaves | the thread has read | the thread looks |
//! |---|---|---|---|---|
//! | `Thread` | it is a follower | | `Free` during its turn, and longer if that ended the wait of the last follower | it reads |
//! | `Caller` | it is a follower | `Thread` if there are followers, which is woken; otherwise `Free` | | it waits for [`OPEN`], then until the caller leaves |
//! | `Free` | `Caller`; if there are followers, or it cannot read now, it is one, and `Thread`, which is woken | | | it waits for [`OPEN`]; if no caller came meanwhile, `Thread` |
//!
//! So while a caller waits, somebody reads. A caller that does not know the connection of its
//! answer counts as a follower of every connection, and so do many connections of one client:
//! see `Driver::keeps_threads_reading`.
//! What the peer sends by itself waits for at most [`OPEN`] after a call. The end of a socket must
//! not wait for that: before a request, a socket that is `Free` for longer than [`FRESH`] is read.
//!
//! A caller only waits, and reads what is there, outside of every lock; what it has read is a turn
//! like that of the reading thread, so callbacks run on their own threads. It leaves before it
//! looks at its answer: its own callback for progress may make a call.

use super::{Changes, ConnectionThreads};
use crate::driver::Driver;
use crate::polled::PolledSource;
use crate::sync::lock;
use bytes::Bytes;
use mcp_proto::Instant;
use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::mem::{replace, take};
use std::sync::Arc;
use std::time::Duration;

/// Time after a call in which the next caller may read. It is longer than a caller usually computes
/// between two calls, and an unasked message of the peer may well be late by this.
const OPEN: Duration = Duration::from_millis(10);

/// Time after which a socket that no thread reads is looked at before the next request: its peer
/// may have closed it, and a request that was sent there would be lost. It is about what a thread
/// needs to notice it.
const FRESH: Duration = Duration::from_micros(100);

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Who {
    #[default]
    Thread,
    Caller,
    Free,
}

/// The reading direction of one connection.
#[derive(Default)]
pub(super) struct ReadHalf {
    who: Who,
    /// `None` if only the thread can read.
    polled: Option<PolledSource>,
    /// Callers that wait while somebody else reads.
    followers: usize,
    /// The wait of a follower has ended since the thread looked.
    served: bool,
    /// Counts when a caller begins and ends to read.
    uses: u64,
    /// When it became free.
    free_since: Instant,
    /// Something was written since then, so that a caller will read it.
    is_asked: bool,
    /// The caller that reads is about to wait, or waits.
    waits: bool,
    /// The thread reads, or looks before it waits: it need not be woken.
    is_awake: bool,
    /// The thread waits until that caller leaves.
    sleeps: bool,
}

/// How a caller waits.
pub(crate) enum Wait {
    /// It reads.
    Lead(PolledSource),
    /// Another thread reads.
    Follow,
    /// Nothing is read any more.
    Elsewhere,
}

/// What the reading thread does next.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum ReadStep {
    Read,
    End,
    Wait(Option<Duration>),
}

impl ReadHalf {
    /// Begins with a stream that callers can read.
    pub(super) fn begin(&mut self, polled: Option<PolledSource>) {
        self.polled = polled;
    }

    /// A caller begins to wait. Returns how, and whether to wake the thread.
    fn enter(&mut self, reads: Option<bool>) -> (Wait, bool) {
        match (&self.polled, self.who, reads) {
            (_, _, Some(false)) => (Wait::Elsewhere, false),
            (Some(polled), Who::Free, Some(true)) if self.followers == 0 => {
                self.who = Who::Caller;
                self.uses += 1;
                (Wait::Lead(Arc::clone(polled)), false)
            }
            _ => {
                self.followers += 1;
                (Wait::Follow, self.call_thread())
            }
        }
    }

    /// The caller that reads leaves. Returns whether to wake the thread.
    fn leave(&mut self, now: Instant, has_others: bool) -> bool {
        (self.who, self.waits) = (Who::Free, false);
        (self.free_since, self.is_asked) = (now, false);
        self.uses += 1;
        if self.followers > 0 || has_others || self.polled.is_none() {
            self.who = Who::Thread;
        }
        (take(&mut self.sleeps) || self.who == Who::Thread) && !self.is_awake
    }

    /// Lets the thread read if no caller does. Returns whether to wake it.
    fn call_thread(&mut self) -> bool {
        self.who == Who::Free && replace(&mut self.who, Who::Thread) == Who::Free && !self.is_awake
    }

    /// The thread has read, and its turn has begun: what a caller reads from now on comes later.
    fn begin_report(&mut self, now: Instant) {
        (self.who, self.served) = (Who::Free, false);
        (self.free_since, self.is_asked) = (now, false);
    }

    /// Returns whether the peer may have closed the connection some time ago.
    fn is_stale(&self, now: Instant) -> bool {
        self.who == Who::Free
            && !self.is_asked
            && now.since(self.free_since) > FRESH
            && self.polled.as_ref().is_some_and(|polled| polled.is_socket())
    }

    /// The thread has reported what it has read.
    fn end_report(&mut self, has_others: bool) {
        let was_last = self.served && self.followers == 0 && !has_others && self.polled.is_some();
        if self.who == Who::Free && !was_last {
            self.who = Who::Thread;
        }
    }

    /// Returns what the thread does next. `seen` is from its last look.
    fn look(&mut self, reads: Option<bool>, seen: &mut Option<u64>) -> ReadStep {
        (self.sleeps, self.is_awake) = (false, false);
        let is_over = *seen == Some(self.uses);
        match self.who {
            _ if reads == Some(false) => return ReadStep::End,
            Who::Thread => {}
            Who::Caller if is_over => self.sleeps = true,
            Who::Free if is_over => self.who = Who::Thread,
            Who::Caller | Who::Free => {
                *seen = Some(self.uses);
                return ReadStep::Wait(Some(OPEN));
            }
        }
        self.is_awake = self.who == Who::Thread && reads == Some(true);
        if self.is_awake { ReadStep::Read } else { ReadStep::Wait(None) }
    }

    /// A turn has ended, which may have written. Returns what to wake the caller with that reads.
    pub(super) fn changed(&mut self, reads: Option<bool>, wrote: bool) -> Option<PolledSource> {
        self.is_asked |= wrote;
        let wakes = reads != Some(true) && take(&mut self.waits);
        match reads {
            // The end of the stream is closed.
            Some(false) => self.polled.take().filter(|_| wakes),
            _ if wakes => self.polled.clone(),
            _ => None,
        }
    }
}

impl ConnectionThreads {
    /// A caller begins to wait for something of this connection.
    pub(crate) fn enter(&self) -> Wait {
        let mut changes = lock(&self.changes);
        let reads = changes.reads;
        let (wait, wakes) = changes.reading.enter(reads);
        drop(changes);
        self.wake_thread(wakes);
        wait
    }

    /// Reads on this thread, which [`enter`](Self::enter) has allowed, until `limit` returns
    /// `None`, which is asked before each wait, or nothing more is to be read.
    pub(crate) fn lead(
        self: &Arc<Self>,
        driver: &Arc<Driver>,
        polled: &PolledSource,
        limit: impl Fn() -> Option<Option<Duration>>,
    ) {
        let _leading = ReadLead { connection: self, driver };
        while self.begin_wait()
            && let Some(limit) = limit()
        {
            let is_ready = polled.wait(limit);
            lock(&self.changes).reading.waits = false;
            match is_ready {
                Ok(false) => {}
                Ok(true) => match polled.read_now() {
                    Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                    read => self.report(driver, |transfer| transfer.read(read)),
                },
                // From now on, the thread reads.
                Err(_) => return lock(&self.changes).reading.polled = None,
            }
        }
    }

    /// The caller that reads is about to wait: from now on it has to be woken. Returns false if it
    /// must not read.
    fn begin_wait(&self) -> bool {
        let mut changes = lock(&self.changes);
        changes.reading.waits = changes.reads == Some(true);
        changes.reading.waits
    }

    /// Wakes the caller that reads, if it waits: it has to look.
    pub(crate) fn interrupt(&self) {
        let mut changes = lock(&self.changes);
        let waits = take(&mut changes.reading.waits);
        let polled = if waits { changes.reading.polled.clone() } else { None };
        drop(changes);
        polled.into_iter().for_each(|polled| polled.wake());
    }

    /// The wait of a follower ends. `served`: it was woken.
    pub(crate) fn unfollow(&self, served: bool) {
        let mut changes = lock(&self.changes);
        changes.reading.followers -= 1;
        changes.reading.served |= served;
    }

    /// Lets the reading thread read, unless somebody does.
    pub(crate) fn call_reader(&self) {
        let wakes = lock(&self.changes).reading.call_thread();
        self.wake_thread(wakes);
    }

    /// Reports what the reading thread has read.
    pub(super) fn report_read(self: &Arc<Self>, driver: &Arc<Driver>, read: io::Result<Bytes>) {
        self.report(driver, |transfer| {
            lock(&self.changes).reading.begin_report(driver.clock().now());
            transfer.read(read);
        });
        lock(&self.changes).reading.end_report(driver.keeps_threads_reading());
    }

    /// Returns whether the peer may have closed the connection some time ago.
    pub(crate) fn is_stale(&self, now: Instant) -> bool {
        lock(&self.changes).reading.is_stale(now)
    }

    /// Reads what has arrived, if neither the thread nor a caller reads.
    pub(crate) fn read_waiting(self: &Arc<Self>, driver: &Arc<Driver>) {
        match self.enter() {
            Wait::Lead(polled) => {
                let once = Cell::new(Some(Some(Duration::ZERO)));
                self.lead(driver, &polled, || once.take());
            }
            Wait::Follow => self.unfollow(false),
            Wait::Elsewhere => {}
        }
    }

    /// Waits until the reading thread may read. Returns false if nothing more is read.
    pub(super) fn wait_read(&self) -> bool {
        let mut seen = None;
        self.wait_until(|Changes { reads, reading, .. }| match reading.look(*reads, &mut seen) {
            ReadStep::Read => Ok(true),
            ReadStep::End => Ok(false),
            ReadStep::Wait(limit) => Err(limit),
        })
    }

    fn wake_thread(&self, wakes: bool) {
        if wakes {
            self.changed.notify_all();
        }
    }
}

/// A caller reads. It leaves also if it panics.
struct ReadLead<'a> {
    connection: &'a ConnectionThreads,
    driver: &'a Driver,
}

impl Drop for ReadLead<'_> {
    fn drop(&mut self) {
        let mut changes = lock(&self.connection.changes);
        let wakes = changes.reading.leave(self.driver.clock().now(), self.driver.keeps_threads_reading());
        drop(changes);
        self.connection.wake_thread(wakes);
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests;
