//! What each client takes of the bounds that all clients share: no client takes more than one share
//! of a bound, so that a cheap request of one client does not cost the others the server.
//!
//! A client is whoever the application admitted ([`Principal`]). Without a principal it is the
//! address of the peer. An address that many clients have (loopback, a Unix socket, a proxy of the
//! configuration) says nothing: there it is the session, and without one the connection.

use super::ServerConfig;
use super::era::ErrorReply;
use super::weight;
use crate::exchange::{ExchangeId, Peer};
use crate::input::{Principal, SessionKey};
use crate::limits::ServerLimits;
use alloc::collections::BTreeMap;
use core::net::{IpAddr, Ipv6Addr};

/// Who takes a share.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Client {
    Principal(Principal),
    Address(IpAddr),
    Session(SessionKey),
    Connection(u64),
    /// The driver names no connection: each exchange is a client of its own.
    Exchange(ExchangeId),
}

/// Names a [`Client`] for as long as it holds something. Never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ClientKey(pub(super) u64);

/// A bound that all clients share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bound {
    Requests,
    RunningBytes,
    Exchanges,
    Streams,
    ClientData,
    #[cfg(feature = "http")]
    Sessions,
    #[cfg(feature = "http")]
    History,
}

impl Bound {
    const COUNT: usize = 7;

    /// What all clients together may take.
    const fn max(self, limits: &ServerLimits) -> usize {
        match self {
            Self::Requests => limits.max_running_requests,
            Self::RunningBytes => limits.max_running_bytes.saturating_sub(weight::FIRST),
            Self::Exchanges => limits.max_exchanges,
            Self::Streams => limits.max_streams,
            Self::ClientData => limits.max_client_data_total,
            #[cfg(feature = "http")]
            Self::Sessions => limits.max_sessions,
            #[cfg(feature = "http")]
            Self::History => limits.history_total,
        }
    }

    /// What one client may take.
    pub(super) fn share(self, limits: &ServerLimits) -> usize {
        limits.share(self.max(limits))
    }
}

/// What is taken of each [`Bound`].
type Held = [usize; Bound::COUNT];

/// What all clients hold, and each of them. A client that holds nothing is not known.
#[derive(Debug, Default)]
pub(super) struct Shares {
    all: Held,
    keys: BTreeMap<Client, ClientKey>,
    clients: BTreeMap<ClientKey, (Client, Held)>,
    last: u64,
}

/// What one entry of the tables takes.
pub(super) const ENTRY: usize = size_of::<(Client, ClientKey)>() + size_of::<(ClientKey, (Client, Held))>();

impl Shares {
    /// A client takes `n` of a bound.
    pub(super) fn take(&mut self, client: &Client, bound: Bound, n: usize) -> ClientKey {
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

    /// A client that holds something takes `n` more of a bound.
    pub(super) fn add(&mut self, key: ClientKey, bound: Bound, n: usize) {
        if let Some((_, held)) = self.clients.get_mut(&key) {
            held[bound as usize] += n;
            self.all[bound as usize] += n;
        }
    }

    /// A client gives back `n` of what it has taken.
    pub(super) fn give_back(&mut self, key: ClientKey, bound: Bound, n: usize) {
        let Some((client, held)) = self.clients.get_mut(&key) else { return };
        held[bound as usize] -= n;
        self.all[bound as usize] -= n;
        if held.iter().all(|held| *held == 0) {
            self.keys.remove(client);
            self.clients.remove(&key);
        }
    }

    /// The same, where the client is known by itself.
    #[cfg(feature = "http")]
    pub(super) fn give_back_of(&mut self, client: &Client, bound: Bound, n: usize) {
        if let Some(key) = self.keys.get(client) {
            self.give_back(*key, bound, n);
        }
    }

    /// The client of this key.
    pub(super) fn client(&self, key: ClientKey) -> Option<&Client> {
        self.clients.get(&key).map(|(client, _)| client)
    }

    /// What a client holds of a bound.
    pub(super) fn held(&self, client: &Client, bound: Bound) -> usize {
        let held = self.keys.get(client).and_then(|key| self.clients.get(key));
        held.map_or(0, |(_, held)| held[bound as usize])
    }

    /// What all clients hold of a bound.
    pub(super) const fn all(&self, bound: Bound) -> usize {
        self.all[bound as usize]
    }

    /// The client that holds most of a bound.
    #[cfg(feature = "http")]
    pub(super) fn most(&self, bound: Bound) -> Option<&Client> {
        let most = self.clients.values().max_by_key(|(_, held)| held[bound as usize]);
        most.filter(|(_, held)| held[bound as usize] > 0).map(|(client, _)| client)
    }

    /// Checks whether a client may take `more` of a bound.
    pub(super) fn check(&self, limits: &ServerLimits, client: &Client, bound: Bound, more: usize) -> Result<(), Full> {
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

/// Why there is no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Full {
    /// The client has taken its share.
    Share,
    /// All clients together have taken all.
    All,
}

impl Full {
    /// The answer; `all` says what there is too much of.
    pub(super) fn reject(self, all: &str) -> ErrorReply {
        match self {
            Self::All => ErrorReply::full(all),
            Self::Share => ErrorReply::full("the client has taken its share of the server"),
        }
    }
}

impl Client {
    /// The client of an exchange, as far as the driver knows it.
    pub(super) fn of(x: ExchangeId, peer: &Peer, config: &ServerConfig) -> Self {
        match (config.address_of(peer), peer.connection) {
            (Some(address), _) => Self::Address(address),
            (None, Some(connection)) => Self::Connection(connection),
            (None, None) => Self::Exchange(x),
        }
    }
}

impl ServerConfig {
    /// The address that tells a client from others: of IPv6 the network, since one client may have
    /// all addresses of a /64. `None` where the address is not known or says nothing.
    pub(crate) fn address_of(&self, peer: &Peer) -> Option<IpAddr> {
        let address = peer.address?.to_canonical();
        if address.is_loopback() || self.proxies.iter().any(|proxy| proxy.to_canonical() == address) {
            return None;
        }
        Some(match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(v6) => {
                let [a, b, c, d, ..] = v6.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
        })
    }
}
