//! The way of a connection: through TLS, and through the proxy that the configuration has for it.

use super::WiredClient;
use crate::exchange::{Closed, Endpoint, Origin, ProxyFailure, ProxyFailureKind, Reach};
use crate::wired::Connection;
use alloc::string::ToString;
use alloc::sync::Arc;
use core::net::IpAddr;

impl WiredClient {
    /// Returns the endpoint to open for this one, and the connection with its TLS and its proxy.
    /// The address of a proxy is the choice of the application, so it may be any.
    pub(super) fn lead(&self, endpoint: Endpoint, connection: Connection) -> (Endpoint, Connection) {
        let (Endpoint::Origin(server) | Endpoint::Within(server, _)) = &endpoint else { return (endpoint, connection) };
        let connection = if server.tls { connection.with_tls(Arc::clone(&server.host)) } else { connection };
        match self.client.config().proxies.route(server) {
            Ok(Some(proxy)) => {
                let address = Endpoint::Origin(proxy.address(server.tls));
                (address, connection.with_proxy(proxy, server))
            }
            Ok(None) | Err(_) => (endpoint, connection),
        }
    }

    /// Returns why no connection to this server may begin: its proxy cannot be used, or would lead
    /// to an address beyond the reach. The proxy resolves names by itself.
    pub(super) fn unroutable(&self, server: &Origin, reach: Reach) -> Option<Closed> {
        let is_beyond = || server.host.parse().is_ok_and(|address: IpAddr| !reach.allows(address));
        match self.client.config().proxies.route(server) {
            Ok(Some(_)) if is_beyond() => Some(Closed::NotPublic),
            Ok(_) => None,
            Err((setting, why)) => {
                Some(Closed::Proxy(ProxyFailure::new(ProxyFailureKind::Misconfigured, setting, why.to_string())))
            }
        }
    }
}
