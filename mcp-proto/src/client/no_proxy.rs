//! The servers that a client reaches without a proxy: `NO_PROXY`, by the conventions of curl and
//! Go.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;

/// A list of servers that are reached without a proxy.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct NoProxy {
    /// The list as it was given.
    text: String,
    entries: Vec<Entry>,
}

#[derive(Clone, PartialEq, Eq)]
struct Entry {
    hosts: NoProxyHosts,
    port: Option<u16>,
}

#[derive(Clone, PartialEq, Eq)]
enum NoProxyHosts {
    All,
    /// This name in small letters, and its subdomains.
    Name(String),
    /// The addresses that share this number of leading bits.
    Network(IpAddr, u32),
}

impl NoProxy {
    /// Parses a list with commas between the entries. Spaces around an entry have no effect. An
    /// entry is
    ///
    /// * `*`: every server.
    /// * a name: itself and its subdomains, without regard to case. `example.com`, `.example.com`
    ///   and `*.example.com` mean the same.
    /// * an IPv4 or IPv6 address: only itself, in any of its forms. A name is not resolved.
    /// * a network in CIDR notation: `10.0.0.0/8`, `fd00::/8`.
    ///
    /// An entry that is no network may end with a port, and then means only that port. An IPv6
    /// address needs brackets then. Other entries match nothing.
    pub fn parse(list: &str) -> Self {
        let entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty()).filter_map(Entry::parse);
        Self { entries: entries.collect(), text: list.to_owned() }
    }

    /// Returns the list as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the list contains this server. `host` is a name, or an address without
    /// brackets.
    pub fn lists(&self, host: &str, port: u16) -> bool {
        self.entries.iter().any(|entry| entry.port.is_none_or(|only| only == port) && entry.hosts.contain(host))
    }
}

impl fmt::Debug for NoProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NoProxy").field(&self.text).finish()
    }
}

impl Entry {
    fn parse(text: &str) -> Option<Self> {
        if let Some((address, bits)) = text.split_once('/') {
            let (address, bits) = (address_of(address)?, bits.parse().ok()?);
            let hosts = NoProxyHosts::Network(address, bits);
            return (bits <= width(address)).then_some(Self { hosts, port: None });
        }
        // An IPv6 address without brackets has no port.
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if address_of(text).is_none() => (host, Some(port.parse().ok()?)),
            _ => (text, None),
        };
        let hosts = match address_of(host) {
            Some(address) => NoProxyHosts::Network(address, width(address)),
            None if host == "*" => NoProxyHosts::All,
            None => {
                let name = host.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(host);
                let name = name.trim_start_matches('.').trim_end_matches('.').to_ascii_lowercase();
                Some(NoProxyHosts::Name(name.clone())).filter(|_| !name.is_empty())?
            }
        };
        Some(Self { hosts, port })
    }
}

impl NoProxyHosts {
    fn contain(&self, host: &str) -> bool {
        match self {
            Self::All => true,
            Self::Name(name) => address_of(host).is_none() && is_below(host, name),
            Self::Network(network, bits) => {
                address_of(host).is_some_and(|address| prefix(address, *bits) == prefix(*network, *bits))
            }
        }
    }
}

/// Returns whether `host` is `name` or a subdomain of it. `name` is in small letters.
fn is_below(host: &str, name: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Returns an address. An IPv4-mapped IPv6 address is the IPv4 address.
fn address_of(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().map(|address: IpAddr| address.to_canonical())
}

/// Returns the number of bits of an address.
const fn width(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => u32::BITS,
        IpAddr::V6(_) => u128::BITS,
    }
}

/// Returns the first bits of an address, and its kind.
fn prefix(address: IpAddr, bits: u32) -> (bool, u128) {
    match address {
        IpAddr::V4(v4) => (true, u128::from(v4.to_bits().checked_shr(u32::BITS - bits.min(u32::BITS)).unwrap_or(0))),
        IpAddr::V6(v6) => (false, v6.to_bits().checked_shr(u128::BITS - bits.min(u128::BITS)).unwrap_or(0)),
    }
}

/// Returns whether the host is this machine: `localhost`, a name below it (RFC 6761 section 6.3),
/// or a loopback address.
pub(super) fn is_loopback(host: &str) -> bool {
    address_of(host).map_or_else(|| is_below(host, "localhost"), |address| address.is_loopback())
}

#[cfg(test)]
mod tests;
