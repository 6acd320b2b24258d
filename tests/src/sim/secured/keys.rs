//! The certificates, and the configurations of TLS of one run.

use super::HOST;
use crate::certificates::{Authority, Leaf};
use mcp_driver::{TlsAcceptor, TlsConnector};
use rustls::client::Resumption;
use rustls::server::ServerSessionMemoryCache;
use rustls::{ClientConfig, ServerConfig};
use std::sync::{Arc, LazyLock};

/// The configurations of this process, whose certificates have the same lengths in each.
static CONFIGS: LazyLock<(Arc<ClientConfig>, Arc<ServerConfig>)> = LazyLock::new(|| {
    let authority = Authority::of_fixed_lengths("the simulator");
    (authority.client(), authority.server(&Leaf { names: &[HOST], ..Leaf::default() }))
});

/// The configurations of both sides. A run has its own sessions to resume: with those of other runs
/// the lengths of its handshakes would depend on them.
#[derive(Debug)]
pub struct Keys {
    pub(super) connector: TlsConnector,
    pub(super) acceptor: TlsAcceptor,
}

impl Default for Keys {
    fn default() -> Self {
        let (mut client, mut server) = (ClientConfig::clone(&CONFIGS.0), ServerConfig::clone(&CONFIGS.1));
        client.resumption = Resumption::in_memory_sessions(32);
        server.session_storage = ServerSessionMemoryCache::new(64);
        Self { connector: TlsConnector::new(Arc::new(client)), acceptor: TlsAcceptor::new(Arc::new(server)) }
    }
}
