//! Which hosts a request may name, and at which addresses its client may be: what keeps other
//! sites' pages, and other machines, out (2025-11-25 transports, security warning).

use crate::exchange::{Peer, RequestHead};
use crate::server::ServerConfig;
use alloc::format;
use alloc::string::String;

impl ServerConfig {
    /// Why a request is refused for the address of its client: the text for the client, and the
    /// detail of the diagnostic.
    pub(super) fn distant(&self, peer: &Peer) -> Option<(&'static str, String)> {
        let address = peer.address.filter(|address| !self.hosts.allows_peer(*address))?;
        Some(("Forbidden: client address not allowed", format!("the client address {address}")))
    }

    /// Why a request is refused for the host that it names, or the origin that it comes from: what
    /// the client is told, and what is told of it here. An absent origin is none: only browsers say
    /// one.
    pub(super) fn stranger(&self, head: &RequestHead) -> Option<(&'static str, String)> {
        let hosts = &self.hosts;
        let named = head.headers.all("Host").chain(authority(&head.target));
        let host = named.into_iter().find(|host| !hosts.allows_host(host));
        let origin = || head.headers.all("Origin").find(|origin| !hosts.allows_origin(origin));
        match host {
            Some(host) => Some(("Forbidden: Host not allowed", format!("the host {:?}", host))),
            None => origin().map(|origin| ("Forbidden: Origin not allowed", format!("the origin {:?}", origin))),
        }
    }
}

/// The host that a target in the absolute form names; it counts before the field (RFC 9112 section
/// 3.2.2).
fn authority(target: &str) -> Option<&str> {
    let (_, rest) = target.split_once("://").filter(|_| !target.starts_with('/'))?;
    rest.split(['/', '?', '#']).next()
}
