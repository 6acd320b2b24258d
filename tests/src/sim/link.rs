//! One link between a client and the server: two pipes with virtual time. It does no I/O and does
//! not depend on an engine.

use super::rng::Rng;
use bytes::Bytes;
use mcp_proto::Instant;
use std::collections::VecDeque;
use std::time::Duration;

/// One direction of a link.
#[derive(Debug)]
pub struct Pipe {
    /// Handed over by the writer, not accepted yet.
    waiting: VecDeque<Bytes>,
    /// Accepted, with the time of arrival.
    flying: VecDeque<(Instant, Bytes)>,
    flying_bytes: usize,
    /// How much may fly; the writer waits for the rest. One byte is the deadlock search.
    capacity: usize,
    latency: Duration,
    stalled_until: Instant,
    ending: bool,
    /// Whether the end was delivered.
    pub ended: bool,
}

/// The result of a read.
#[derive(Debug)]
pub enum Arrival {
    /// Bytes.
    Bytes(Bytes),
    /// The end.
    End,
}

impl Pipe {
    /// An empty pipe.
    pub const fn new(capacity: usize, latency: Duration) -> Self {
        Self {
            waiting: VecDeque::new(),
            flying: VecDeque::new(),
            flying_bytes: 0,
            capacity,
            latency,
            stalled_until: Instant::ZERO,
            ending: false,
            ended: false,
        }
    }

    /// The writer hands bytes over.
    pub fn write(&mut self, bytes: Bytes) {
        if !self.ending && !bytes.is_empty() {
            self.waiting.push_back(bytes);
        }
    }

    /// Ends the output of the writer.
    pub fn end(&mut self) {
        self.ending = true;
    }

    /// Takes as many bytes as fit. Returns the number of bytes that the writer delivered. With
    /// `cut`, in a piece of random size.
    pub fn accept(&mut self, now: Instant, cut: bool, rng: &mut Rng) -> usize {
        if now < self.stalled_until {
            return 0;
        }
        let room = self.capacity.saturating_sub(self.flying_bytes);
        let Some(mut bytes) = self.waiting.pop_front() else { return 0 };
        let most = room.min(bytes.len());
        let n = if cut && most > 1 { 1 + rng.below(most as u64 - 1) as usize } else { most };
        let piece = bytes.split_to(n);
        if !bytes.is_empty() {
            self.waiting.push_front(bytes);
        }
        if !piece.is_empty() {
            let after = self.flying.back().map_or(now, |(at, _)| (*at).max(now));
            self.flying.push_back((after.max(now + self.latency), piece));
            self.flying_bytes += n;
        }
        n
    }

    /// Whether bytes wait to be accepted.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether `accept` would take something.
    pub fn may_accept(&self) -> bool {
        !self.waiting.is_empty() && self.flying_bytes < self.capacity
    }

    /// When the next bytes, or the end, arrive.
    pub fn next_arrival(&self) -> Option<Instant> {
        match self.flying.front() {
            Some((at, _)) => Some((*at).max(self.stalled_until)),
            None if self.ending && self.waiting.is_empty() && !self.ended => Some(self.stalled_until),
            None => None,
        }
    }

    /// When a writer that waits may try again.
    pub const fn stalled_until(&self) -> Instant {
        self.stalled_until
    }

    /// What arrives now.
    pub fn arrive(&mut self) -> Arrival {
        match self.flying.pop_front() {
            Some((_, bytes)) => {
                self.flying_bytes -= bytes.len();
                Arrival::Bytes(bytes)
            }
            None => {
                self.ended = true;
                Arrival::End
            }
        }
    }

    /// Delays the next bytes.
    pub fn delay(&mut self, by: Duration) {
        if let Some((at, _)) = self.flying.front_mut() {
            *at = *at + by;
        }
    }

    /// Nothing moves before `until`.
    pub fn stall(&mut self, until: Instant) {
        self.stalled_until = self.stalled_until.max(until);
    }

    /// Drops the bytes that were not accepted, and ends.
    pub fn truncate(&mut self) {
        self.waiting.clear();
        self.ending = true;
    }
}
