//! The hosts that a request may name, and the addresses of its client: pages of other sites and
//! other machines are refused (2025-11-25 transports, security warning).

use crate::exchange::{Peer, RequestHead};
use crate::server::ServerConfig;
use alloc::format;
use alloc::string::String;

impl ServerConfig {
    /// Returns why a request is refused for the address of its client: the text for the client, and
    /// the detail of the diagnostic.
    pub(super) fn distant(&self, peer: &Peer) -> Option<(&'static str, String)> {
        let address = peer.address.filter(|address| !self.hosts.allows_peer(*address))?;
        Some(("Forbidden: client address not allowed", format!("the client address {address}")))
    }

    /// Returns why a request is refused for its host or its origin: the text for the client, and
    /// the detail of the diagnostic. A request without `Origin` passes: only browsers send one.
    pub(super) fn stranger(&self, head: &RequestHead) -> Option<(&'static str, String)> {
        let foreign_origin = || {
            let origin = head.headers.all("Origin").find(|origin| !self.hosts.allows_origin(origin))?;
            Some(("Forbidden: Origin not allowed", format!("the origin {origin:?}")))
        };
        self.foreign_host(head).or_else(foreign_origin)
    }

    /// The same for its host alone: what is served for everyone is for pages of every origin.
    pub(super) fn foreign_host(&self, head: &RequestHead) -> Option<(&'static str, String)> {
        let hosts = &self.hosts;
        let host = match authority(&head.target) {
            Some(host) => Some(host).filter(|host| !hosts.allows_host(host)),
            None => head.headers.all("Host").find(|host| !hosts.allows_host(host)),
        };
        host.map(|host| ("Forbidden: Host not allowed", format!("the host {host:?}")))
    }
}

/// Returns the host of a target in the absolute form. The field is ignored then (RFC 9112 section
/// 3.2.2).
fn authority(target: &str) -> Option<&str> {
    if target.starts_with('/') {
        return None;
    }
    let (_, rest) = target.split_once("://")?;
    rest.split(['/', '?', '#']).next()
}
