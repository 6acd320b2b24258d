//! The events of a session that its client can come back for (2025-11-25 transports, resumability and redelivery). An id is looked up as a
//! whole: what its text seems to say is a hint where to look, and nothing more.

use super::streams::StreamKey;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;

/// What is kept, oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    events: BTreeMap<u64, Kept>,
    bytes: usize,
    /// The number of the latest event. Numbers go through all streams of the session.
    last: u64,
}

#[derive(Debug)]
struct Kept {
    stream: StreamKey,
    data: Bytes,
}

/// What an event weighs beside its data.
const OVERHEAD: usize = 64;

impl History {
    /// Keeps an event; its number, and what it weighs.
    pub(super) fn push(&mut self, stream: StreamKey, data: Bytes) -> (u64, usize) {
        self.last += 1;
        let weight = data.len() + OVERHEAD;
        self.bytes += weight;
        self.events.insert(self.last, Kept { stream, data });
        (self.last, weight)
    }

    /// The number of an event that is not kept.
    pub(super) fn pass(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Lets go of the oldest event: its number, its stream, and what it weighed.
    pub(super) fn pop(&mut self) -> Option<(u64, StreamKey, usize)> {
        let (number, kept) = self.events.pop_first()?;
        let weight = kept.data.len() + OVERHEAD;
        self.bytes -= weight;
        Some((number, kept.stream, weight))
    }

    /// Lets go of these events; what they weighed.
    pub(super) fn forget(&mut self, numbers: impl IntoIterator<Item = u64>) -> usize {
        let gone = numbers.into_iter().filter_map(|number| self.events.remove(&number));
        let weight = gone.map(|kept| kept.data.len() + OVERHEAD).sum();
        self.bytes -= weight;
        weight
    }

    /// The stream of an event.
    pub(super) fn stream_of(&self, number: u64) -> Option<StreamKey> {
        self.events.get(&number).map(|kept| kept.stream)
    }

    /// The data of these events, as far as they are kept.
    pub(super) fn data<'a>(&'a self, numbers: impl IntoIterator<Item = u64> + 'a) -> Vec<(u64, Bytes)> {
        let kept = |number| self.events.get(&number).map(|kept| (number, kept.data.clone()));
        numbers.into_iter().filter_map(kept).collect()
    }

    /// How many events are kept.
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// What they weigh.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The id of an event on the wire, unique within its session: it tells the stream apart (2025-11-25: event ids should encode it).
pub(super) fn event_id(stream: u64, number: u64) -> String {
    format!("s{stream}-{number}")
}

/// The number that an id seems to hold.
pub(super) fn number_in(id: &str) -> Option<u64> {
    id.rsplit('-').next()?.parse().ok()
}
