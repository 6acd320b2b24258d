//! The number of connections of a server: in all, and for each address. No address gets more than
//! its share of them, nor of the memory of TLS handshakes.

use super::room::{AddressHandshakes, HandshakeReservation, MemoryBudget};
use crate::exchange::Peer;
use crate::server::ServerConfig;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::net::IpAddr;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct ConnectionCounts {
    config: Arc<ServerConfig>,
    open: usize,
    /// The address of each connection, where the address distinguishes clients.
    addresses: BTreeMap<u64, IpAddr>,
    by_address: BTreeMap<IpAddr, AddressCounts>,
}

/// The connections of one address.
#[derive(Debug, Default)]
struct AddressCounts {
    open: usize,
    handshakes: AddressHandshakes,
}

impl ConnectionCounts {
    pub(super) fn new(config: Arc<ServerConfig>) -> Self {
        Self { config, open: 0, addresses: BTreeMap::new(), by_address: BTreeMap::new() }
    }

    /// Counts a connection. Returns false if there is no room for it.
    pub(super) fn open(&mut self, number: u64, peer: &Peer) -> bool {
        let limits = &self.config.limits.server;
        let address = self.config.address_of(peer);
        let here = address.and_then(|address| self.by_address.get(&address)).map_or(0, |counts| counts.open);
        if self.open >= limits.max_exchanges || here >= limits.share(limits.max_exchanges) {
            return false;
        }
        self.open += 1;
        if let Some(address) = address {
            self.addresses.insert(number, address);
            self.by_address.entry(address).or_default().open += 1;
        }
        true
    }

    /// Reserves the memory of the TLS handshake of a connection. `None` if there is no room for it.
    pub(super) fn handshake(&self, number: u64, room: &MemoryBudget) -> Option<HandshakeReservation> {
        let limits = &self.config.limits.server;
        let here = self.addresses.get(&number).and_then(|address| self.by_address.get(address));
        room.handshake(here.map(|here| (&here.handshakes, limits.share(limits.max_held))))
    }

    /// Uncounts a connection that is closed.
    pub(super) fn close(&mut self, number: u64) {
        self.open -= 1;
        let Some(address) = self.addresses.remove(&number) else { return };
        if let Some(here) = self.by_address.get_mut(&address) {
            here.open -= 1;
            if here.open == 0 {
                self.by_address.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lifecycle::Implementation;
    use core::net::SocketAddr;

    // covers: B-103, B-187
    #[test]
    fn one_address_has_a_share_of_all_connections() {
        let mut config = ServerConfig::new(Implementation::new("s", "1"));
        config.limits.server.max_exchanges = 8;
        let mut connections = ConnectionCounts::new(Arc::new(config));
        let peer = |address: [u8; 4]| Peer::tcp(SocketAddr::from((address, 1)));
        let (greedy, modest, local) = (peer([192, 0, 2, 1]), peer([192, 0, 2, 2]), peer([127, 0, 0, 1]));
        assert!(connections.open(1, &greedy) && connections.open(2, &greedy));
        assert!(!connections.open(3, &greedy));
        assert!(connections.open(4, &modest));
        connections.close(1);
        assert!(connections.open(5, &greedy));
        assert!((6..11).all(|number| connections.open(number, &local)), "loopback may be a proxy of many clients");
        assert!(!connections.open(11, &modest), "all of them are taken");
        for number in [2, 4, 5, 6, 7, 8, 9, 10] {
            connections.close(number);
        }
        assert!(connections.open == 0 && connections.addresses.is_empty() && connections.by_address.is_empty());
    }

    // covers: B-187
    #[test]
    fn one_address_has_a_share_of_the_tls_handshakes() {
        let mut config = ServerConfig::new(Implementation::new("s", "1"));
        config.limits.server.max_held = 1 << 20;
        let room = MemoryBudget::new(1 << 20);
        let mut connections = ConnectionCounts::new(Arc::new(config));
        for number in 0..40 {
            let address = [[192, 0, 2, 1], [192, 0, 2, 2], [127, 0, 0, 1]][number % 3];
            assert!(connections.open(number as u64, &Peer::tcp(SocketAddr::from((address, 1)))));
        }
        let begin = |first: u64| -> Vec<_> {
            (first..40).step_by(3).filter_map(|number| connections.handshake(number, &room)).collect()
        };
        // A quarter of 1 MiB holds three of 80 KiB each, and the whole twelve.
        let (greedy, modest, local) = (begin(0), begin(1), begin(2));
        assert_eq!((greedy.len(), modest.len(), local.len()), (3, 3, 6), "loopback may be a proxy of many clients");
        drop(greedy);
        assert_eq!(begin(0).len(), 3);
    }
}
