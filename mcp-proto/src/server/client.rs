//! The clients, as the limits define them, and what a client holds of the limits.
//!
//! A client is a principal that the application admitted ([`Principal`]). Without a principal it is
//! the address of the peer. An address that many clients have (loopback, a Unix socket, a proxy of
//! the configuration) identifies none: there the client is the session, and without one the
//! connection.

use super::ServerConfig;
use crate::exchange::{ExchangeId, Peer};
use crate::input::{Principal, SessionKey};
use core::net::{IpAddr, Ipv6Addr};

/// The identity of a client, as the limits define it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum ClientIdentity {
    Principal(Principal),
    Address(IpAddr),
    Session(SessionKey),
    Connection(u64),
    /// The driver names no connection: each exchange is a client of its own.
    Exchange(ExchangeId),
}

/// The key of a [`ClientIdentity`] for as long as it holds something. Never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ClientKey(pub(super) u64);

impl ClientIdentity {
    /// Returns the client of an exchange, as far as the driver knows it.
    pub(super) fn of(x: ExchangeId, peer: &Peer, config: &ServerConfig) -> Self {
        match (config.address_of(peer), peer.connection) {
            (Some(address), _) => Self::Address(address),
            (None, Some(connection)) => Self::Connection(connection),
            (None, None) => Self::Exchange(x),
        }
    }
}

impl ServerConfig {
    /// Returns the address that identifies a client: of IPv6 the network, since one client may have
    /// all addresses of a /64. `None` if the address is unknown or identifies none.
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

/// A limit that all clients share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bound {
    Requests,
    RunningBytes,
    Exchanges,
    Streams,
    ClientData,
    Sessions,
    History,
    Elicitations,
    Tasks,
    TaskBytes,
}

impl Bound {
    pub(super) const COUNT: usize = 10;
}

/// The amount of each [`Bound`].
pub(super) type Held = [usize; Bound::COUNT];

/// The memory of one entry of the tables, in bytes.
pub(super) const ENTRY: usize =
    size_of::<(ClientIdentity, ClientKey)>() + size_of::<(ClientKey, (ClientIdentity, Held))>();
