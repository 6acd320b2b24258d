//! The clients of all servers, from the output that starts one to the report of its end.

use super::{ServerId, Ticket};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// A client of a [`Supervisor`](super::Supervisor). Each one has another number, also over servers:
/// what is reported of one is never taken for another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct Generation(pub u64);

/// The clients whose end was not reported.
#[derive(Debug)]
pub(super) struct Clients<K> {
    clients: BTreeMap<Generation, Client<K>>,
    /// The clients that must end before another one of their key starts.
    leaving: BTreeMap<K, BTreeSet<Generation>>,
    last: u64,
}

#[derive(Debug)]
struct Client<K> {
    server: ServerId,
    key: K,
    stage: Stage,
    /// No other client of the key may be open at the same time.
    is_exclusive: bool,
    running: BTreeSet<Ticket>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// It does not exist: its configuration is being resolved.
    Planned,
    /// It is that of its server.
    Live,
    /// It is that of its server no more, and is closed when its calls have ended.
    Draining,
    /// The driver closes it.
    Closing,
}

/// A client that has ended.
pub(super) struct EndedClient<K> {
    pub(super) server: ServerId,
    pub(super) key: K,
    /// Whether it was that of its server no more.
    pub(super) was_retired: bool,
}

impl<K: Clone + Ord> Clients<K> {
    pub(super) const fn new() -> Self {
        Self { clients: BTreeMap::new(), leaving: BTreeMap::new(), last: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.clients.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// Adds a client that is to be started.
    pub(super) fn add(&mut self, server: ServerId, key: K) -> Generation {
        self.last += 1;
        let generation = Generation(self.last);
        let client = Client { server, key, stage: Stage::Planned, is_exclusive: false, running: BTreeSet::new() };
        self.clients.insert(generation, client);
        generation
    }

    /// The driver starts it.
    pub(super) fn start(&mut self, generation: Generation, is_exclusive: bool) {
        if let Some(client) = self.clients.get_mut(&generation) {
            (client.stage, client.is_exclusive) = (Stage::Live, is_exclusive);
        }
    }

    /// Returns the server of a client.
    pub(super) fn server(&self, generation: Generation) -> Option<ServerId> {
        self.clients.get(&generation).map(|client| client.server)
    }

    /// Returns whether no other client of the key may be open at the same time.
    pub(super) fn is_exclusive(&self, generation: Generation) -> bool {
        self.clients.get(&generation).is_some_and(|client| client.is_exclusive)
    }

    /// Returns whether the driver closes a client.
    pub(super) fn is_closing(&self, generation: Generation) -> bool {
        self.clients.get(&generation).is_some_and(|client| client.stage == Stage::Closing)
    }

    /// Returns whether clients of this key must end before another one starts.
    pub(super) fn are_leaving(&self, key: &K) -> bool {
        self.leaving.contains_key(key)
    }

    /// Returns the clients of a server.
    pub(super) fn of(&self, server: ServerId) -> Vec<Generation> {
        self.clients.iter().filter(|(_, client)| client.server == server).map(|(of, _)| *of).collect()
    }

    pub(super) fn run(&mut self, generation: Generation, ticket: Ticket) {
        if let Some(client) = self.clients.get_mut(&generation) {
            client.running.insert(ticket);
        }
    }

    /// A call has ended on a client. Returns whether the client is to be closed.
    pub(super) fn finish(&mut self, generation: Generation, ticket: Ticket) -> bool {
        let Some(client) = self.clients.get_mut(&generation) else { return false };
        client.running.remove(&ticket) && client.stage == Stage::Draining && client.running.is_empty()
    }

    /// A client is that of its server no more. Returns whether to close it now.
    pub(super) fn retire(&mut self, generation: Generation) -> bool {
        let Some(client) = self.clients.get_mut(&generation) else { return false };
        match client.stage {
            Stage::Planned => {
                self.clients.remove(&generation);
                false
            }
            Stage::Live => {
                client.stage = Stage::Draining;
                client.is_exclusive || client.running.is_empty()
            }
            Stage::Draining | Stage::Closing => false,
        }
    }

    /// Notes that the driver closes a client. Returns false if it does so already.
    pub(super) fn close(&mut self, generation: Generation) -> bool {
        let Some(client) = self.clients.get_mut(&generation).filter(|client| client.stage != Stage::Closing) else {
            return false;
        };
        if client.stage == Stage::Planned {
            self.clients.remove(&generation);
            return false;
        }
        client.stage = Stage::Closing;
        if client.is_exclusive {
            self.leaving.entry(client.key.clone()).or_default().insert(generation);
        }
        true
    }

    /// Forgets a client that was never started.
    pub(super) fn forget(&mut self, generation: Generation) {
        self.clients.remove(&generation);
    }

    /// A client has ended. `None` if it is not known.
    pub(super) fn end(&mut self, generation: Generation) -> Option<EndedClient<K>> {
        let client = self.clients.remove(&generation)?;
        self.left(&client.key, generation);
        Some(EndedClient { server: client.server, key: client.key, was_retired: client.stage != Stage::Live })
    }

    /// No longer waits for the clients of this key before another one starts. They still count as
    /// open.
    pub(super) fn give_up(&mut self, key: &K) {
        self.leaving.remove(key);
    }

    fn left(&mut self, key: &K, generation: Generation) {
        if let Some(leaving) = self.leaving.get_mut(key) {
            leaving.remove(&generation);
            if leaving.is_empty() {
                self.leaving.remove(key);
            }
        }
    }
}
