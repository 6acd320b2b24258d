//! The write queue of one connection.

use alloc::collections::VecDeque;
use bytes::{Buf, Bytes};

/// The bytes to write to one connection, as a sequence of steps. The writer carries out a step,
/// then gets the next one.
#[derive(Debug, Default)]
pub struct WriteQueue {
    pieces: Pieces,
    unflushed: bool,
    finish: bool,
    ended: bool,
    waits: bool,
}

/// The next step of the writer.
#[derive(Debug)]
pub enum Step {
    /// Write all of this. The writer may drop it if the connection breaks.
    Write(Pieces),
    /// Flush, since nothing follows for now.
    Flush,
    /// Close the writing side.
    End,
}

impl WriteQueue {
    /// Adds bytes. Drops them if the connection is broken, whose end is reported separately.
    pub fn push(&mut self, bytes: Bytes) {
        if !self.ended && !bytes.is_empty() {
            self.pieces.0.push_back(bytes);
        }
    }

    /// Closes the writing side once everything queued is written.
    pub fn finish(&mut self) {
        self.finish = true;
    }

    /// Ends the queue, and drops everything in it.
    pub fn end(&mut self) {
        self.ended = true;
        self.pieces.0.clear();
    }

    /// Returns whether [`end`](Self::end) was called.
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// Returns the next step. `None` if there is none for now. A stream is flushed before the
    /// writer waits.
    pub fn next_step(&mut self) -> Option<Step> {
        self.waits = false;
        if self.ended {
            return Some(Step::End);
        }
        if !self.pieces.is_empty() {
            self.unflushed = true;
            return Some(Step::Write(core::mem::take(&mut self.pieces)));
        }
        if core::mem::take(&mut self.unflushed) {
            return Some(Step::Flush);
        }
        self.waits = !self.finish;
        self.finish.then_some(Step::End)
    }

    /// Returns whether the writer waits although there is a step: it has to be woken.
    pub fn has_waiting_step(&self) -> bool {
        self.waits && (self.ended || self.finish || !self.pieces.is_empty())
    }
}

/// Bytes in several pieces, written from the front.
#[derive(Debug, Default)]
pub struct Pieces(VecDeque<Bytes>);

impl Pieces {
    /// Maximum number of pieces in one write: one for each message of a burst.
    pub const AT_ONCE: usize = 64;

    /// Maximum number of bytes in one write. A blocking write returns only once everything is
    /// accepted. A client that reads a large response slowly must not look like a client that reads
    /// nothing.
    pub const MOST: usize = 64 << 10;

    /// Returns whether everything is written.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the first pieces for a vectored write. Empty slices follow the last one.
    pub fn slices(&self) -> [std::io::IoSlice<'_>; Self::AT_ONCE] {
        let (mut slices, mut room) = ([std::io::IoSlice::new(&[]); Self::AT_ONCE], Self::MOST);
        for (slice, piece) in slices.iter_mut().zip(&self.0) {
            let part = piece.get(..room).unwrap_or(piece);
            room -= part.len();
            *slice = std::io::IoSlice::new(part);
        }
        slices
    }

    /// Returns the pieces, for a write that owns what it writes until it is complete. They share
    /// their bytes with this.
    pub fn iter(&self) -> impl Iterator<Item = Bytes> + '_ {
        self.0.iter().cloned()
    }

    /// Removes `n` written bytes.
    pub fn advance(&mut self, mut n: usize) {
        while let Some(piece) = self.0.front_mut() {
            if n < piece.len() {
                return piece.advance(n);
            }
            n -= piece.len();
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn queue(pieces: &[&'static str]) -> WriteQueue {
        let mut queue = WriteQueue::default();
        pieces.iter().for_each(|piece| queue.push(Bytes::from_static(piece.as_bytes())));
        queue
    }

    #[test]
    fn pieces_can_be_owned_by_a_write() {
        let mut queue = queue(&["one", "two"]);
        let Some(Step::Write(mut pieces)) = queue.next_step() else { panic!("nothing to write") };
        pieces.advance(2);
        assert_eq!(pieces.iter().collect::<Vec<_>>(), ["e", "two"]);
        pieces.advance(4);
        assert_eq!(pieces.iter().count(), 0);
    }

    // covers: S2-09
    #[test]
    fn every_byte_is_written_once_with_any_write_size() {
        for at_once in 1..12 {
            let mut queue = queue(&["one", "", "two", "three"]);
            let Some(Step::Write(mut pieces)) = queue.next_step() else { panic!("nothing to write") };
            let mut written = Vec::new();
            while !pieces.is_empty() {
                let all: Vec<u8> = pieces.slices().iter().flat_map(|slice| slice.iter().copied()).collect();
                let n = at_once.min(all.len());
                written.extend_from_slice(&all[..n]);
                pieces.advance(n);
            }
            assert_eq!(written, b"onetwothree", "{at_once} at once");
        }
    }

    #[test]
    fn large_response_is_written_in_parts() {
        let mut queue = WriteQueue::default();
        for length in [Pieces::MOST - 1, Pieces::MOST * 2, 1] {
            queue.push(Bytes::from(alloc::vec![0; length]));
        }
        let Some(Step::Write(mut pieces)) = queue.next_step() else { panic!("nothing to write") };
        let offered = |pieces: &Pieces| pieces.slices().iter().map(|slice| slice.len()).collect::<Vec<_>>();
        assert_eq!(offered(&pieces)[..3], [Pieces::MOST - 1, 1, 0]);
        pieces.advance(Pieces::MOST);
        assert_eq!(offered(&pieces)[..2], [Pieces::MOST, 0]);
        pieces.advance(Pieces::MOST);
        assert_eq!(offered(&pieces)[..3], [Pieces::MOST - 1, 1, 0]);
        pieces.advance(Pieces::MOST);
        assert!(pieces.is_empty());
    }

    #[test]
    fn queue_flushes_before_waiting_and_ends_after_last_byte() {
        let mut queue = queue(&["one"]);
        assert!(matches!(queue.next_step(), Some(Step::Write(_))));
        queue.push(Bytes::from_static(b"two"));
        assert!(matches!(queue.next_step(), Some(Step::Write(_))));
        assert!(matches!(queue.next_step(), Some(Step::Flush)));
        assert!(queue.next_step().is_none());
        assert!(!queue.has_waiting_step());
        queue.push(Bytes::from_static(b"three"));
        assert!(queue.has_waiting_step());
        queue.finish();
        assert!(matches!(queue.next_step(), Some(Step::Write(_))));
        assert!(matches!(queue.next_step(), Some(Step::Flush)));
        assert!(matches!(queue.next_step(), Some(Step::End)));
    }

    // covers: B-144
    #[test]
    fn broken_connection_accepts_no_more_bytes() {
        let mut queue = queue(&["one", "two"]);
        queue.end();
        queue.push(Bytes::from_static(b"more"));
        assert!(matches!(queue.next_step(), Some(Step::End)));
        assert!(queue.pieces.is_empty() && queue.is_ended());
    }
}
