//! Which URLs of a peer are used.

use crate::error::UrlFault;
use crate::exchange::Reach;
use crate::fetch::HttpTarget;
use alloc::collections::BTreeSet;
use alloc::string::String;
use core::net::{IpAddr, Ipv4Addr};
use iri_string::types::UriAbsoluteStr;

/// Maximum length of a URL, in bytes.
pub(super) const MAX_URL: usize = 2048;

/// Which URLs are used of those that a server and its authorization servers name: metadata,
/// issuers, endpoints, redirects, pages. An `https:` URL is, and an `http:` URL if its host and
/// that of the server are `localhost` or a loopback address. None names a user, has a fragment or
/// more than 2,048 bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct UrlPolicy {
    /// The addresses to which they may lead. Default [`AuthReach::Follow`].
    pub reach: AuthReach,
    /// Further hosts whose `http:` URLs are used, for development. Default none.
    pub plain_hosts: BTreeSet<String>,
}

/// The addresses to which the URLs of a peer may lead.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub enum AuthReach {
    /// It follows from the address of the server: one on this machine may name addresses of this
    /// machine and its networks ([`Reach::Near`]), one in a private network those of private
    /// networks ([`Reach::Site`]), and every other one public addresses only ([`Reach::Public`]).
    #[default]
    Follow,
    /// Always these.
    Fixed(Reach),
}

impl UrlPolicy {
    /// Parses a URL that a peer of the server names.
    ///
    /// # Errors
    /// [`UrlFault`] if it may not be used. Where a name leads is known only to the driver, which
    /// asks for [`reach`](Self::reach).
    pub(super) fn check(&self, url: &str, server: &HttpTarget) -> Result<HttpTarget, UrlFault> {
        if url.len() > MAX_URL {
            return Err(UrlFault::TooLong);
        }
        if url.contains('#') {
            return Err(UrlFault::Fragment);
        }
        if names_user(url) {
            return Err(UrlFault::User);
        }
        let target = HttpTarget::parse(url).map_err(|_| UrlFault::Form)?;
        // A server whose address is unknown here may be on this machine, which allows most.
        let peer = address_of(server).unwrap_or(LOOPBACK);
        match target.origin.port {
            0 => Err(UrlFault::Form),
            _ if !target.origin.tls && !self.allows_plain(&target, server) => Err(UrlFault::Plain),
            _ if self.is_beyond(&target, server, Some(peer)) => Err(UrlFault::Reach),
            _ => Ok(target),
        }
    }

    /// Returns the addresses to which a request to this URL may lead, for a server to which the
    /// connection of the client led to this address.
    pub(super) fn reach(&self, target: &HttpTarget, server: &HttpTarget, peer: Option<IpAddr>) -> Reach {
        let peer = peer.or_else(|| address_of(server));
        match self.reach {
            // Where the server is, the client may connect. But it may not be redirected anywhere.
            AuthReach::Follow if target.origin == server.origin => match peer {
                Some(peer) if follow(peer).allows(peer) => follow(peer),
                Some(_) | None => Reach::Any,
            },
            AuthReach::Fixed(_) if target.origin == server.origin => Reach::Any,
            _ if !target.origin.tls && !self.is_plain_host(target) => Reach::Loopback,
            AuthReach::Fixed(reach) => reach,
            AuthReach::Follow => peer.map_or(Reach::Public, follow),
        }
    }

    /// Returns whether the host of a URL is an address beyond its [`reach`](Self::reach).
    pub(super) fn is_beyond(&self, target: &HttpTarget, server: &HttpTarget, peer: Option<IpAddr>) -> bool {
        let reach = self.reach(target, server, peer);
        target.origin.host.parse().is_ok_and(|address| !reach.allows(address))
    }

    fn allows_plain(&self, target: &HttpTarget, server: &HttpTarget) -> bool {
        (is_loopback(target) && is_loopback(server)) || self.is_plain_host(target)
    }

    fn is_plain_host(&self, target: &HttpTarget) -> bool {
        let bare = |host: &str| host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        self.plain_hosts.iter().any(|host| *bare(host) == *target.origin.host)
    }
}

/// Checks a redirect URI that the application configures: it is of this machine, or has TLS
/// (2026-07-28 authorization, communication security).
///
/// # Errors
/// [`UrlFault`] otherwise.
pub(super) fn check_redirect_uri(uri: &str) -> Result<(), UrlFault> {
    let target = HttpTarget::parse(uri).map_err(|_| UrlFault::Form)?;
    if target.origin.tls || is_loopback(&target) { Ok(()) } else { Err(UrlFault::Plain) }
}

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Returns the addresses that a server at this address may name.
fn follow(peer: IpAddr) -> Reach {
    if peer.to_canonical().is_loopback() {
        Reach::Near
    } else if Reach::Site.allows(peer) && !Reach::Public.allows(peer) {
        Reach::Site
    } else {
        Reach::Public
    }
}

/// Returns the address of a host that is one, or is `localhost`.
fn address_of(target: &HttpTarget) -> Option<IpAddr> {
    match &*target.origin.host {
        "localhost" => Some(LOOPBACK),
        host => host.parse().ok(),
    }
}

fn is_loopback(target: &HttpTarget) -> bool {
    address_of(target).is_some_and(|address| address.is_loopback())
}

fn names_user(url: &str) -> bool {
    let authority = UriAbsoluteStr::new(url).ok().and_then(|url| url.authority_components());
    authority.is_some_and(|authority| authority.userinfo().is_some())
}

#[cfg(test)]
mod tests;
