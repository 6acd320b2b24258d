//! The kept events of a session (2025-11-25 transports, resumability and redelivery). An event id
//! is looked up as a whole; the number in its text is only a hint.

use crate::server::keys::StreamKey;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;

/// The kept events, oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    events: BTreeMap<u64, Kept>,
    bytes: usize,
    /// The number of the latest event. All streams of the session share the numbers.
    last: u64,
}

#[derive(Debug)]
struct Kept {
    stream: StreamKey,
    data: Bytes,
}

/// The bytes of an event beside its data.
pub(super) const OVERHEAD: usize = 64;

impl History {
    /// Keeps an event. Returns its number and its size, in bytes.
    pub(super) fn push(&mut self, stream: StreamKey, data: Bytes) -> (u64, usize) {
        self.last += 1;
        let weight = data.len() + OVERHEAD;
        self.bytes += weight;
        self.events.insert(self.last, Kept { stream, data });
        (self.last, weight)
    }

    /// Returns the number for an event that is not kept.
    pub(super) fn pass(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Evicts the oldest event. Returns its number, its stream and its size, in bytes.
    pub(super) fn pop(&mut self) -> Option<(u64, StreamKey, usize)> {
        let (number, kept) = self.events.pop_first()?;
        let weight = kept.data.len() + OVERHEAD;
        self.bytes -= weight;
        Some((number, kept.stream, weight))
    }

    /// Removes these events. Returns their size, in bytes.
    pub(super) fn forget(&mut self, numbers: impl IntoIterator<Item = u64>) -> usize {
        let gone = numbers.into_iter().filter_map(|number| self.events.remove(&number));
        let weight = gone.map(|kept| kept.data.len() + OVERHEAD).sum();
        self.bytes -= weight;
        weight
    }

    /// Returns the stream of an event.
    pub(super) fn stream_of(&self, number: u64) -> Option<StreamKey> {
        self.events.get(&number).map(|kept| kept.stream)
    }

    /// Returns the data of these events, as far as they are kept.
    pub(super) fn data<'a>(&'a self, numbers: impl IntoIterator<Item = u64> + 'a) -> Vec<(u64, Bytes)> {
        let kept = |number| self.events.get(&number).map(|kept| (number, kept.data.clone()));
        numbers.into_iter().filter_map(kept).collect()
    }

    /// Returns the number of kept events.
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// Returns their size, in bytes.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Returns the id of an event, unique within its session: it names the stream (2025-11-25: event
/// ids should encode it).
pub(super) fn event_id(stream: u64, number: u64) -> String {
    format!("s{stream}-{number}")
}

/// Returns the number in the text of an id.
pub(super) fn number_in(id: &str) -> Option<u64> {
    id.rsplit('-').next()?.parse().ok()
}
