//! The kept events of a session (2025-11-25 transports, resumability and redelivery). An event id
//! is looked up as a whole; the number in its text is only a hint.

use super::sessions::HttpState;
use super::streams::{Evicted, StreamKey};
use crate::error::DiagnosticKind;
use crate::input::SessionKey;
use crate::server::env::Env;
use crate::server::shares::{Bound, Client};
use alloc::collections::{BTreeMap, BinaryHeap};
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
const OVERHEAD: usize = 64;

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

impl HttpState {
    /// Evicts the oldest events until the history of the session, those of its client, and all
    /// together are within the limits.
    pub(super) fn purge(&mut self, env: &mut Env, session_key: SessionKey) {
        let limits = &env.config.limits.server;
        let (max_events, max_bytes, max_total) = (limits.history_events, limits.history_bytes, limits.history_total);
        let share = Bound::History.share(limits);
        self.shorten(env, session_key, max_events, max_bytes);
        let Some(client) = self.http_session(session_key).map(|session| session.client.clone()) else { return };
        if env.shares.held(&client, Bound::History) > share {
            self.shorten_most(env, &client);
        }
        while env.shares.all(Bound::History) > max_total {
            // The client that keeps most gives way: no client can evict the events of another.
            let Some(client) = env.shares.most(Bound::History).cloned() else { return };
            self.shorten_most(env, &client);
        }
    }

    /// Evicts an eighth of the kept events of a client, from its longest histories. One pass over
    /// all sessions then serves many events.
    fn shorten_most(&mut self, env: &mut Env, client: &Client) {
        let sessions = self.sessions.iter().filter(|(_, session)| session.client == *client);
        let mut kept: BinaryHeap<(usize, SessionKey)> =
            sessions.map(|(key, session)| (session.history.bytes(), *key)).collect();
        let held = env.shares.held(client, Bound::History);
        while env.shares.held(client, Bound::History) > held - held.div_ceil(8)
            && let Some((bytes, session)) = kept.pop().filter(|(bytes, _)| *bytes > 0)
        {
            let rest = bytes - bytes.div_ceil(8);
            self.shorten(env, session, usize::MAX, rest);
            kept.push((rest, session));
        }
    }

    /// Evicts the oldest events of a session until it is within these limits.
    fn shorten(&mut self, env: &mut Env, session_key: SessionKey, max_events: usize, max_bytes: usize) {
        loop {
            let Some(session) = self.sessions.get_mut(&session_key) else { return };
            let history = &mut session.history;
            if history.len() <= max_events && history.bytes() <= max_bytes {
                return;
            }
            let Some((number, key, weight)) = history.pop() else { return };
            env.shares.give_back_of(&session.client, Bound::History, weight);
            let Some(stream) = self.streams.get_mut(&key) else { continue };
            let Evicted { is_first_loss, was_last } = stream.evict(number);
            if is_first_loss {
                env.diagnose(
                    DiagnosticKind::DroppedAnswer,
                    "an event that its client has not come for is not kept any longer",
                );
            }
            if was_last {
                self.remove_stream(env, key);
            }
        }
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
