//! The hosts that an HTTP server answers to. The parser is strict: it rejects a name that two
//! parsers could interpret as two hosts.

use crate::exchange::trim_blanks;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The hosts that the `Host` of a request, and its `Origin` if it has one, may name. A request that
/// names another host gets 403. This rejects a web page that made its own name resolve to this
/// machine (DNS rebinding). A server may listen on `0.0.0.0` and `::`, but no request names these
/// as its host: only [`Any`](Self::Any) allows them.
///
/// A client that is not a browser may write any `Host`. So [`Loopback`](Self::Loopback) also checks
/// the address of the client, if the driver knows it
/// ([`Peer::address`](crate::exchange::Peer::address)).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Hosts {
    /// `localhost`, `127.0.0.0/8` and `::1`, at any port, for clients at a loopback address. A
    /// request of another client gets 403, whatever host it names, even on a server that listens on
    /// every address. To serve other clients, name the hosts, or allow any.
    #[default]
    Loopback,
    /// These names or addresses. IPv6 addresses have no brackets. `example.com` is that host at any
    /// port, `example.com:8443` and `[2001:db8::1]:8443` are one port of a host. Names compare as a
    /// whole, and case-insensitively. Names that are not ASCII compare in the form in which they
    /// are sent (`xn--bcher-kva.example`). An entry of any other form allows nothing.
    Only(Vec<String>),
    /// Any host: for a server behind a proxy that checks.
    Any,
}

impl Hosts {
    /// Returns whether a request may name this host, with or without a port: the value of its
    /// `Host` field (RFC 9110 section 7.2).
    pub fn allows_host(&self, host: &str) -> bool {
        // Without a port it is that of the scheme, which only the end of the TLS connection knows.
        self.allows(trim_blanks(host), &[80, 443])
    }

    /// Returns whether a request may come from this origin: the value of its `Origin` field (RFC
    /// 6454 section 6.2). Its scheme is `http` or `https`. Only [`Any`](Self::Any) allows the
    /// origin of an app, and `null`, which hides the origin.
    pub fn allows_origin(&self, origin: &str) -> bool {
        match trim_blanks(origin).split_once("://") {
            Some((scheme, host)) if scheme.eq_ignore_ascii_case("http") => self.allows(host, &[80]),
            Some((scheme, host)) if scheme.eq_ignore_ascii_case("https") => self.allows(host, &[443]),
            _ => *self == Self::Any,
        }
    }

    /// Returns whether a client at this address may send requests. [`Loopback`](Self::Loopback)
    /// allows loopback addresses, also in the IPv6 form of IPv4 addresses; the others allow all.
    pub fn allows_peer(&self, address: IpAddr) -> bool {
        *self != Self::Loopback || address.to_canonical().is_loopback()
    }

    /// `implied`: the ports of a host without one.
    fn allows(&self, authority: &str, implied: &[u16]) -> bool {
        if *self == Self::Any {
            return true;
        }
        let Some(named) = Authority::parse(authority) else { return false };
        match (self, named.host) {
            (_, Host::Address(address)) if address.to_canonical().is_unspecified() => false,
            (Self::Loopback, Host::Address(address)) => address.is_loopback(),
            (Self::Loopback, Host::Name(name)) => name.eq_ignore_ascii_case("localhost"),
            (Self::Only(entries), _) => {
                entries.iter().filter_map(|entry| Authority::of_entry(entry)).any(|entry| named.is(entry, implied))
            }
            (Self::Any, _) => true,
        }
    }
}

/// A host, with an optional port.
#[derive(Clone, Copy)]
struct Authority<'a> {
    host: Host<'a>,
    port: Option<u16>,
}

#[derive(Clone, Copy)]
enum Host<'a> {
    Address(IpAddr),
    Name(&'a str),
}

impl<'a> Authority<'a> {
    /// Parses `host[:port]`. Returns `None` for text that another parser could interpret
    /// differently: users, paths, escapes, white space, addresses in another format (`127.1`,
    /// `0x7f000001`), and text after a bracket.
    fn parse(text: &'a str) -> Option<Self> {
        let (host, rest) = match text.strip_prefix('[') {
            Some(inner) => {
                let (address, rest) = inner.split_once(']')?;
                (Host::Address(address.parse::<Ipv6Addr>().ok()?.into()), rest)
            }
            None => {
                let (host, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
                (Host::parse(host)?, rest)
            }
        };
        let port = match rest.strip_prefix(':') {
            None if rest.is_empty() => None,
            Some("") => None,
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => Some(port.parse().ok()?),
            _ => return None,
        };
        Some(Self { host, port })
    }

    /// Parses an entry of the configuration.
    fn of_entry(text: &'a str) -> Option<Self> {
        match text.parse::<Ipv6Addr>() {
            Ok(address) => Some(Self { host: Host::Address(address.into()), port: None }),
            Err(_) => Self::parse(text),
        }
    }

    /// Returns whether an entry allows this host.
    fn is(self, entry: Authority<'_>, implied: &[u16]) -> bool {
        let same = match (self.host, entry.host) {
            (Host::Address(a), Host::Address(b)) => a == b,
            (Host::Name(a), Host::Name(b)) => a.eq_ignore_ascii_case(b),
            _ => false,
        };
        let is_port = |allowed| self.port.map_or(implied.contains(&allowed), |port| port == allowed);
        same && entry.port.is_none_or(is_port)
    }
}

impl<'a> Host<'a> {
    /// Parses a name, or an IPv4 address in the one format that all parsers agree on.
    fn parse(text: &'a str) -> Option<Self> {
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Some(Self::Address(address.into()));
        }
        // If the last part is a number, URL parsers make an address of the whole (WHATWG URL, the
        // "ends in a number" check).
        let last = text.strip_suffix('.').unwrap_or(text).rsplit('.').next()?;
        let is_name = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
        (is_name && !text.is_empty() && !is_number(last)).then_some(Self::Name(text))
    }
}

/// Returns whether the text is a number, decimal or hexadecimal, as the WHATWG URL standard defines
/// it. There `0x` is a number.
fn is_number(text: &str) -> bool {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let is_hex = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    !text.is_empty() && (text.bytes().all(|byte| byte.is_ascii_digit()) || hex.is_some_and(is_hex))
}
