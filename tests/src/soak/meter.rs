//! The resources of this process: heap, descriptors, threads.

use crate::peer::usage::Usage;
use std::time::{Duration, Instant};
use std::{fmt, fs, thread};

/// Maximum time for descriptors and threads to be released.
const SOON: Duration = Duration::from_secs(60);
/// Time without a change after which a number is stable: longer than any idle thread of a pool
/// lives.
const STILL: Duration = Duration::from_secs(12);
/// Interval of the checks.
const LOOK: Duration = Duration::from_millis(20);

/// Returns the number of bytes in use on the heap of this process.
pub type Heap = fn() -> usize;

/// The resources in use when idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Held {
    /// In bytes.
    pub(crate) heap: i64,
    /// Heap of the server over stdio, in bytes.
    pub(crate) server: i64,
    pub(crate) descriptors: usize,
    pub(crate) threads: u64,
}

impl Held {
    fn now(heap: Heap) -> Self {
        let descriptors = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        Self { heap: heap() as i64, server: 0, descriptors, threads: Usage::own().threads }
    }

    /// Returns whether it exceeds `before`: in the number of descriptors or threads, or in either
    /// heap by more than `slack`.
    pub(crate) fn exceeds(&self, before: &Self, slack: i64) -> bool {
        self.heap > before.heap + slack
            || self.server > before.server + slack
            || self.descriptors > before.descriptors
            || self.threads > before.threads
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { heap, server, descriptors, threads } = self;
        write!(f, "{heap} bytes (server {server}), {descriptors} descriptors, {threads} threads")
    }
}

/// Waits until at most `wanted` descriptors and threads are in use, or, without it, until their
/// number is stable; for a limited time.
pub(crate) fn settle(heap: Heap, wanted: Option<Held>) -> Held {
    let (mut last, mut since, end) = (Held::now(heap), Instant::now(), Instant::now() + SOON);
    loop {
        thread::sleep(LOOK);
        let now = Held::now(heap);
        if (now.descriptors, now.threads) != (last.descriptors, last.threads) {
            since = Instant::now();
        }
        last = now;
        let rests = match wanted {
            Some(wanted) => now.descriptors <= wanted.descriptors && now.threads <= wanted.threads,
            None => since.elapsed() >= STILL,
        };
        if rests || Instant::now() >= end {
            return now;
        }
    }
}
