//! The shares of the clients in the limits that all clients share: no client takes more than one
//! share of a limit, so a cheap request of one client does not cost the others the server.

use super::client::{Bound, ClientIdentity, ClientKey, Held};
use super::response::ErrorReply;
use super::weight;
use crate::limits::ServerLimits;
use crate::short_map::ShortMap;

impl Bound {
    /// Returns the maximum of all clients together.
    const fn max(self, limits: &ServerLimits) -> usize {
        match self {
            Self::Requests => limits.max_running_requests,
            Self::RunningBytes => limits.max_running_bytes.saturating_sub(weight::FIRST),
            Self::Exchanges => limits.max_exchanges,
            Self::Streams => limits.max_streams,
            Self::ClientData => limits.max_client_data_total,
            Self::Sessions => limits.max_sessions,
            Self::History => limits.history_total,
            Self::Elicitations => limits.max_elicitations,
            Self::Tasks => limits.max_tasks,
            Self::TaskBytes => limits.max_task_bytes,
        }
    }

    /// Returns the maximum of one client.
    pub(super) fn share(self, limits: &ServerLimits) -> usize {
        limits.share(self.max(limits))
    }
}

/// What all clients hold, and each of them. A client that holds nothing has no entry.
#[derive(Debug, Default)]
pub(super) struct Shares {
    all: Held,
    keys: ShortMap<ClientIdentity, ClientKey>,
    clients: ShortMap<ClientKey, (ClientIdentity, Held)>,
    last: u64,
}

impl Shares {
    /// Adds `n` of a bound to a client. Returns its key.
    pub(super) fn take(&mut self, client: &ClientIdentity, bound: Bound, n: usize) -> ClientKey {
        let key = match self.keys.get(client) {
            Some(key) => *key,
            None => {
                self.last += 1;
                let key = ClientKey(self.last);
                self.keys.insert(client.clone(), key);
                self.clients.insert(key, (client.clone(), Held::default()));
                key
            }
        };
        self.add(key, bound, n);
        key
    }

    /// Adds `n` of a bound to a client that holds something.
    pub(super) fn add(&mut self, key: ClientKey, bound: Bound, n: usize) {
        if let Some((_, held)) = self.clients.get_mut(&key) {
            held[bound as usize] += n;
            self.all[bound as usize] += n;
        }
    }

    /// Removes `n` of a bound from a client.
    pub(super) fn give_back(&mut self, key: ClientKey, bound: Bound, n: usize) {
        let Some((client, held)) = self.clients.get_mut(&key) else { return };
        held[bound as usize] -= n;
        self.all[bound as usize] -= n;
        if held.iter().all(|held| *held == 0) {
            self.keys.remove(client);
            self.clients.remove(&key);
        }
    }

    /// The same, by the client itself.
    pub(super) fn give_back_of(&mut self, client: &ClientIdentity, bound: Bound, n: usize) {
        if let Some(key) = self.keys.get(client) {
            self.give_back(*key, bound, n);
        }
    }

    /// Returns the client of this key.
    pub(super) fn client(&self, key: ClientKey) -> Option<&ClientIdentity> {
        self.clients.get(&key).map(|(client, _)| client)
    }

    /// Returns the amount of a bound that a client holds.
    pub(super) fn held(&self, client: &ClientIdentity, bound: Bound) -> usize {
        let held = self.keys.get(client).and_then(|key| self.clients.get(key));
        held.map_or(0, |(_, held)| held[bound as usize])
    }

    /// Returns the amount of a bound that all clients hold.
    pub(super) const fn all(&self, bound: Bound) -> usize {
        self.all[bound as usize]
    }

    /// Returns the client that holds most of a bound.
    pub(super) fn most(&self, bound: Bound) -> Option<&ClientIdentity> {
        let most = self.clients.values().max_by_key(|(_, held)| held[bound as usize]);
        most.filter(|(_, held)| held[bound as usize] > 0).map(|(client, _)| client)
    }

    /// Checks whether a client may take `more` of a bound.
    pub(super) fn check(
        &self,
        limits: &ServerLimits,
        client: &ClientIdentity,
        bound: Bound,
        more: usize,
    ) -> Result<(), Full> {
        let (max, share) = (bound.max(limits), bound.share(limits));
        if share < max && self.held(client, bound).saturating_add(more) > share {
            Err(Full::Share)
        } else if self.all(bound).saturating_add(more) > max {
            Err(Full::All)
        } else {
            Ok(())
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.clients.is_empty() && self.keys.is_empty() && self.all == Held::default()
    }
}

/// The reason why there is no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Full {
    /// The client uses its whole share.
    Share,
    /// All clients together use the whole limit.
    All,
}

impl Full {
    /// Returns the error response. `all`: the message if all clients together are at the limit.
    pub(super) fn reject(self, all: &str) -> ErrorReply {
        match self {
            Self::All => ErrorReply::full(all),
            Self::Share => ErrorReply::full("the client has taken its share of the server"),
        }
    }
}
