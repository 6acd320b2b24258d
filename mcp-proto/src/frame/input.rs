//! Bytes that were read and are not parsed: a queue of the received buffers, consumed from the
//! front.

use crate::short_queue::ShortQueue;
use alloc::vec::Vec;
use bytes::{Buf, Bytes};

/// Minimum length of a frame that may keep its buffer alive. A shorter one is copied out of it.
pub(super) use crate::rpc::LARGE;

/// The byte-order mark in UTF-8.
pub(super) const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Bytes that the queue itself uses for one buffer, rounded up. They count, so that a peer that
/// sends single bytes cannot exceed the limits.
const OVERHEAD: usize = 64;

/// The queue of bytes. It scans and copies each byte at most once.
#[derive(Debug, Default)]
pub(super) struct ByteQueue {
    /// Most buffers are consumed before another arrives.
    buffers: ShortQueue<Buffer>,
    held: usize,
}

#[derive(Debug)]
struct Buffer {
    rest: Bytes,
    /// Bytes that it keeps alive.
    whole: usize,
}

impl ByteQueue {
    pub(super) fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            let whole = bytes.len();
            self.held += whole + OVERHEAD;
            self.buffers.push_back(Buffer { rest: bytes, whole });
        }
    }

    /// Returns the bytes that are kept alive, including the consumed part of a buffer.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    pub(super) fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the next bytes. Never empty. More may follow.
    pub(super) fn front(&self) -> Option<&[u8]> {
        self.buffers.front().map(|buffer| &*buffer.rest)
    }

    /// Skips `count` bytes, at most those of [`front`](Self::front).
    pub(super) fn skip(&mut self, count: usize) {
        if let Some(buffer) = self.buffers.front_mut() {
            buffer.rest.advance(count.min(buffer.rest.len()));
            self.tidy();
        }
    }

    /// Drops the first `count` bytes. Returns false, and drops none, if there are fewer.
    pub(super) fn drop_first(&mut self, count: u64) -> bool {
        let there: u64 = self.buffers.iter().map(|buffer| buffer.rest.len() as u64).sum();
        if there < count {
            return false;
        }
        let mut left = count;
        while left > 0 {
            let len = self.front().map_or(0, |front| left.min(front.len() as u64));
            self.skip(len as usize);
            left -= len;
        }
        true
    }

    /// Takes `count` bytes, at most those of [`front`](Self::front). The result keeps alive at most
    /// twice its length.
    pub(super) fn take(&mut self, count: usize) -> Bytes {
        let Some(buffer) = self.buffers.front_mut() else { return Bytes::new() };
        let count = count.min(buffer.rest.len());
        let taken = if count >= LARGE && buffer.whole <= 2 * count {
            buffer.rest.split_to(count)
        } else {
            let copy = Bytes::copy_from_slice(&buffer.rest[..count]);
            buffer.rest.advance(count);
            copy
        };
        self.tidy();
        taken
    }

    /// Returns all bytes, in order.
    pub(super) fn into_rest(mut self) -> impl Iterator<Item = Bytes> {
        core::iter::from_fn(move || {
            let len = self.front()?.len();
            Some(self.take(len))
        })
    }

    /// Moves bytes to the end of `line`, up to and including the next LF. `None` if there is no LF,
    /// and all bytes were moved. `Some(false)` if `line` would exceed `max`; it then holds `max`
    /// bytes.
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
            if self.buffers.is_empty() {
                self.buffers.shrink();
            }
        }
    }
}
