//! What this process holds: heap, descriptors, threads.

use crate::peer::usage::Usage;
use std::time::{Duration, Instant};
use std::{fmt, fs, thread};

/// How long descriptors and threads may take to be gone.
const SOON: Duration = Duration::from_secs(60);
/// What has not changed for so long is at rest: longer than any thread of a pool waits for more to do.
const STILL: Duration = Duration::from_secs(12);
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(20);

/// Tells how many bytes of the heap of this process are in use.
pub type Heap = fn() -> usize;

/// What is held at rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Held {
    /// In bytes.
    pub(super) heap: i64,
    /// The heap of the server over stdio, in bytes.
    pub(super) server: i64,
    pub(super) descriptors: usize,
    pub(super) threads: u64,
}

impl Held {
    fn now(heap: Heap) -> Self {
        let descriptors = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        Self { heap: heap() as i64, server: 0, descriptors, threads: Usage::own().threads }
    }

    /// Whether it is more than `before`, of either heap by more than `slack`.
    pub(super) fn exceeds(&self, before: &Self, slack: i64) -> bool {
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

/// Waits until no more descriptors and threads are held than `wanted`, or, without it, until their number rests; for a bounded time.
pub(super) fn settle(heap: Heap, wanted: Option<Held>) -> Held {
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
