//! The store, and the way between it and the servers.

use super::super::fault::Fault;
use super::node::NodeId;
use super::world::{SimEvent, World};
use mcp_proto::Instant;
use mcp_proto::exchange::Closed;
use mcp_proto::input::{Change, ServerCommand};
use mcp_proto::server::store::{Epoch, Memory, News, SessionDigest, StoreError, StoreReply, StoreRequest, StoreToken};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// How far the store goes back.
const BACK: Duration = Duration::from_secs(2);

/// The store, what it was before, and what it was asked to keep.
#[derive(Debug, Default)]
pub(super) struct Store {
    pub(super) memory: Memory,
    before: VecDeque<(Instant, Memory)>,
    away_until: Instant,
    /// The next time, what it has of its members stays as it is.
    goes_back_in_part: bool,
    /// It has lost something: what it had need not be there.
    pub(super) has_lost: bool,
    /// The newest epoch that has written each stream, and the number of the last event.
    written: BTreeMap<(SessionDigest, u64), (Epoch, u64)>,
    /// How often the tools have changed, as far as the store was told.
    pub(super) changes: u64,
}

impl Store {
    fn apply(&mut self, now: Instant, request: StoreRequest) -> StoreReply {
        let written = match &request {
            StoreRequest::Append { session, stream, epoch, event, .. } => {
                Some(((*session, *stream), (*epoch, event.number)))
            }
            _ => None,
        };
        let is_change =
            matches!(&request, StoreRequest::Publish { news: News::Changed(Change::Tools) | News::ChangedAll, .. });
        let reply = self.memory.apply(now.since_origin(), request);
        self.changes += u64::from(is_change);
        if let Some((stream, (epoch, number))) = written.filter(|_| reply == StoreReply::Done && !self.has_lost) {
            let last = self.written.get(&stream).copied();
            // An event that was there already may have been added in an older epoch.
            if last.is_none_or(|(_, last)| last < number) {
                let is_newer = |(last, _): (Epoch, u64)| last == epoch || last.number < epoch.number;
                assert!(last.is_none_or(is_newer), "{epoch:?} writes a stream of {last:?}");
                self.written.insert(stream, (epoch, number));
            }
        }
        reply
    }
}

impl World {
    /// A server asks something of the store.
    pub(super) fn ask_store(&mut self, at: usize, token: StoreToken, request: StoreRequest) {
        if let StoreRequest::Join { node, .. } = &request {
            self.nodes[at].own = Some(*node);
        }
        if self.hit(Fault::RequestLost, 20) {
            return;
        }
        let copies = if self.hit(Fault::RequestDoubled, 30) { 2 } else { 1 };
        for _ in 0..copies {
            // The requests of a server arrive in their order.
            let arrived = (self.now + self.latency()).max(self.nodes[at].arrived);
            self.nodes[at].arrived = arrived;
            self.at(arrived, SimEvent::AtStore(self.nodes[at].id, token, request.clone()));
        }
    }

    fn latency(&mut self) -> Duration {
        Duration::from_micros(50 + self.rng.below(self.scenario.settings.latency * 1000))
    }

    pub(super) fn at_store(&mut self, id: NodeId, token: StoreToken, request: StoreRequest) {
        self.remember();
        let is_away = self.now < self.store.away_until;
        if matches!(&request, StoreRequest::Revoke { .. }) && !is_away {
            self.sessions.iter_mut().for_each(|session| session.is_gone |= session.is_revoked);
        }
        let result = match is_away {
            true => Err(StoreError::Unreachable(Closed::Refused)),
            false => Ok(self.store.apply(self.now, request)),
        };
        let Some(at) = self.place(id) else { return self.notify_nodes() };
        if !self.hit(Fault::ReplyLost, 20) {
            let slow = if self.hit(Fault::ReplySlow, 20) { 3000 } else { 0 };
            let replied = (self.now + self.latency() + Duration::from_millis(slow)).max(self.nodes[at].replied);
            self.nodes[at].replied = replied;
            self.at(replied, SimEvent::Reply(id, token, result));
        }
        self.notify_nodes();
    }

    /// What nodes say is on its way to the others.
    fn notify_nodes(&mut self) {
        if self.now < self.store.away_until {
            return;
        }
        for at in 0..self.nodes.len() {
            let (id, after) = (self.nodes[at].id, self.latency());
            self.later(after, SimEvent::Items(id));
        }
    }

    /// A server reads what others have said.
    pub(super) fn read_items(&mut self, id: NodeId) {
        let Some(at) = self.place(id) else { return };
        let Some(own) = self.nodes[at].own.filter(|_| self.now >= self.store.away_until) else { return };
        for item in self.store.memory.take_arrived(self.now.since_origin(), own) {
            self.command(at, ServerCommand::Arrived(item));
        }
    }

    fn remember(&mut self) {
        let is_due = self.store.before.back().is_none_or(|(at, _)| *at + BACK / 4 < self.now);
        if is_due && self.scenario.faults > 0 {
            self.store.before.push_back((self.now, self.store.memory.clone()));
        }
        while self.store.before.len() > 1 && self.store.before[1].0 + BACK <= self.now {
            self.store.before.pop_front();
        }
    }

    /// Something happens to the store.
    pub(super) fn store_fault(&mut self) {
        if self.hit(Fault::StoreAway, 100) {
            self.store.away_until = self.now + Duration::from_millis(self.rng.below(20_000));
        }
        if self.hit(Fault::StoreBack, 60)
            && let Some((_, before)) = self.store.before.front()
        {
            match self.store.goes_back_in_part {
                true => self.store.memory.take_back(before),
                false => self.store.memory = before.clone(),
            }
            self.store.goes_back_in_part ^= true;
            self.store.has_lost = true;
        }
        if self.hit(Fault::StoreEmptied, 50) {
            self.store.memory = Memory::new();
            self.store.before.clear();
            self.store.has_lost = true;
        }
    }

    /// The store works from now on.
    pub(super) fn mend_store(&mut self) {
        self.store.away_until = Instant::ZERO;
    }
}
