//! The streams of a session in memory.

use crate::server::store::{Epoch, Incarnation, RequestDigest, StoreReply, StoredEvent};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

/// The number of events that one reply has.
const PAGE: usize = 100;

/// See the [module](self).
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Streams {
    streams: BTreeMap<u64, Stream>,
    /// The requests that were cancelled before they were claimed, and for how long that is kept.
    cancelled: BTreeMap<RequestDigest, Duration>,
}

#[derive(Clone, PartialEq, Debug)]
struct Stream {
    epoch: Epoch,
    /// The requests without an answer.
    open: Vec<OpenRequest>,
    events: Vec<StoredEvent>,
    last: u64,
    sent: u64,
    /// When it is dropped, after its last event.
    over: Option<Duration>,
}

#[derive(Clone, PartialEq, Debug)]
struct OpenRequest {
    request: RequestDigest,
    /// Its id, as JSON.
    id: Bytes,
    /// Whether it was cancelled before it was claimed.
    is_cancelled: bool,
}

/// An event with what comes with it: see [`StoreRequest::Append`](super::StoreRequest::Append).
pub(super) struct NewEvent {
    pub(super) epoch: Epoch,
    pub(super) event: StoredEvent,
    pub(super) is_sent: bool,
    pub(super) answers: Option<RequestDigest>,
    pub(super) keep: usize,
    pub(super) last: Option<Duration>,
}

impl Streams {
    /// Drops what is over.
    pub(super) fn expire(&mut self, now: Duration) {
        self.streams.retain(|_, stream| stream.over.is_none_or(|until| until > now));
        self.cancelled.retain(|_, until| *until > now);
    }

    pub(super) fn claim(
        &mut self,
        stream: u64,
        requests: &[Bytes],
        node: Incarnation,
        over: Option<Epoch>,
    ) -> StoreReply {
        let Self { streams, cancelled } = self;
        let claimed = streams.entry(stream).or_insert_with(|| {
            let open = requests.iter().map(|id| {
                let request = RequestDigest::of(id);
                OpenRequest { request, id: id.clone(), is_cancelled: cancelled.remove(&request).is_some() }
            });
            Stream::new(Epoch { node, number: 1 }, open.collect())
        });
        if claimed.over.is_some() {
            return StoreReply::Over;
        }
        if over == Some(claimed.epoch) {
            claimed.epoch = Epoch { node, number: claimed.epoch.number + 1 };
        } else if claimed.epoch.node != node {
            return StoreReply::Owned(claimed.epoch);
        }
        let Stream { epoch, last, sent, .. } = *claimed;
        let open = claimed.open.iter().map(|open| open.id.clone()).collect();
        let cancelled = claimed.open.iter().filter(|open| open.is_cancelled).map(|open| open.request).collect();
        StoreReply::Claimed { epoch, last, sent, open, cancelled }
    }

    pub(super) fn append(&mut self, now: Duration, stream: u64, appended: NewEvent) -> StoreReply {
        let Some(stream) = self.streams.get_mut(&stream) else { return StoreReply::Missing };
        let NewEvent { epoch, event, is_sent, answers, keep, last } = appended;
        if stream.events.contains(&event) {
            return StoreReply::Done;
        }
        if stream.epoch != epoch {
            return StoreReply::Fenced(stream.epoch);
        }
        if stream.over.is_some() {
            return StoreReply::Over;
        }
        if event.number != stream.last + 1 {
            return StoreReply::Gap(stream.last);
        }
        stream.last = event.number;
        if is_sent {
            stream.sent = event.number;
        }
        stream.open.retain(|open| answers != Some(open.request) && last.is_none());
        stream.over = last.map(|keep| now + keep);
        stream.events.push(event);
        stream.events.drain(..stream.events.len().saturating_sub(keep));
        StoreReply::Done
    }

    pub(super) fn read(&self, stream: u64, after: u64) -> StoreReply {
        let Some(stream) = self.streams.get(&stream).filter(|stream| after <= stream.last) else {
            return StoreReply::Missing;
        };
        let first = stream.events.first().map_or(stream.last + 1, |event| event.number);
        if after + 1 < first {
            return StoreReply::Gap(first - 1);
        }
        let rest = stream.events.iter().filter(|event| event.number > after);
        let events: Vec<StoredEvent> = rest.take(PAGE).cloned().collect();
        let end = events.last().map_or(after, |event| event.number);
        StoreReply::Stream { events, owner: stream.epoch, is_over: stream.over.is_some() && end == stream.last }
    }

    pub(super) fn cancel(&mut self, now: Duration, request: RequestDigest, keep: Duration) -> StoreReply {
        match self.streams.values().find(|stream| stream.open.iter().any(|open| open.request == request)) {
            Some(stream) => StoreReply::Owned(stream.epoch),
            None => {
                self.cancelled.insert(request, now + keep);
                StoreReply::Done
            }
        }
    }
}

impl Stream {
    const fn new(epoch: Epoch, open: Vec<OpenRequest>) -> Self {
        Self { epoch, open, events: Vec::new(), last: 0, sent: 0, over: None }
    }
}
