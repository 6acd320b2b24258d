//! Bytes that were read and are not yet framed: a queue of the buffers as they were handed over, consumed from the front.

use alloc::collections::VecDeque;
#[cfg(feature = "http")]
use alloc::vec::Vec;
use bytes::{Buf, Bytes};

/// From this length on a frame may take the buffer it came in; a shorter one is copied out, whatever its buffer.
pub(super) const LARGE: usize = 4 << 10;

/// The byte-order mark in UTF-8.
pub(super) const BOM: &[u8] = b"\xEF\xBB\xBF";

/// What the queue itself costs for one buffer, rounded up. Counted, so that a peer of single bytes cannot hide behind it.
const OVERHEAD: usize = 64;

/// The queue. No byte is scanned or copied by it more than once.
#[derive(Debug, Default)]
pub(super) struct Input {
    buffers: VecDeque<Buffer>,
    held: usize,
}

#[derive(Debug)]
struct Buffer {
    rest: Bytes,
    /// What it keeps alive.
    whole: usize,
}

impl Input {
    pub(super) fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            let whole = bytes.len();
            self.held += whole + OVERHEAD;
            self.buffers.push_back(Buffer { rest: bytes, whole });
        }
    }

    /// Bytes kept alive, consumed ones of a buffer that is not used up included.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    pub(super) fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The next bytes, never empty; there may be more behind them.
    pub(super) fn front(&self) -> Option<&[u8]> {
        self.buffers.front().map(|buffer| &*buffer.rest)
    }

    /// Steps over `count` bytes, at most those of [`front`](Self::front).
    pub(super) fn skip(&mut self, count: usize) {
        if let Some(buffer) = self.buffers.front_mut() {
            buffer.rest.advance(count.min(buffer.rest.len()));
            self.tidy();
        }
    }

    /// Takes `count` bytes, at most those of [`front`](Self::front). What it gives keeps alive no more than twice its length.
    pub(super) fn take(&mut self, count: usize) -> Bytes {
        let Some(buffer) = self.buffers.front_mut() else { return Bytes::new() };
        let taken = buffer.rest.split_to(count.min(buffer.rest.len()));
        let shared = taken.len() >= LARGE && buffer.whole <= 2 * taken.len();
        let taken = if shared { taken } else { Bytes::copy_from_slice(&taken) };
        self.tidy();
        taken
    }

    /// Moves bytes behind `line`, up to and with the next LF. `None`: all were moved and it was not among them. `Some(false)`: `line`
    /// would grow beyond `max`; it holds `max` bytes.
    #[cfg(feature = "http")]
    pub(super) fn line(&mut self, line: &mut Vec<u8>, max: usize) -> Option<bool> {
        while let Some(front) = self.front() {
            let end = memchr::memchr(b'\n', front).map(|at| at + 1);
            let count = end.unwrap_or(front.len());
            let fits = count.min(max.saturating_sub(line.len()));
            line.extend_from_slice(&front[..fits]);
            self.skip(fits);
            if fits < count {
                return Some(false);
            }
            if end.is_some() {
                return Some(true);
            }
        }
        None
    }

    fn tidy(&mut self) {
        if let Some(buffer) = self.buffers.front()
            && buffer.rest.is_empty()
        {
            self.held -= buffer.whole + OVERHEAD;
            self.buffers.pop_front();
        }
        if self.buffers.is_empty() {
            self.clear();
        }
    }
}
