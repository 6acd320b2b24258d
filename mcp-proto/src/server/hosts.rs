//! Which hosts an HTTP server answers to. A name is taken apart strictly: what two readers could
//! take for two hosts is none.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The hosts that the `Host` of a request, and its `Origin` if it has one, may name; a request that
/// names another is answered 403. A web page that made its own name point at this machine (DNS
/// rebinding) is kept out this way. `0.0.0.0` and `::` are where a server listens, never where a
/// request goes to: only [`Any`](Self::Any) lets them pass.
///
/// A client that is no browser writes any `Host` it likes. So [`Loopback`](Self::Loopback) also
/// asks where the request comes from, where the driver knows that
/// ([`Peer::address`](crate::exchange::Peer::address)).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Hosts {
    /// `localhost`, `127.0.0.0/8` and `::1`, at any port, for clients at a loopback address. A
    /// request of another client is answered 403, whatever it names, also on a server that listens
    /// on every address. To serve other clients name the hosts, or allow any.
    #[default]
    Loopback,
    /// These names or addresses; IPv6 addresses without brackets. `example.com` is that host at any
    /// port, `example.com:8443` and `[2001:db8::1]:8443` that one port of it. Names compare without
    /// case and to the end, names that are not ASCII in the form in which they are sent
    /// (`xn--bcher-kva.example`). An entry that is none of this allows nothing.
    Only(Vec<String>),
    /// Any: for a server behind something that checks.
    Any,
}

impl Hosts {
    /// Whether a request may name this host, with or without a port: the value of its `Host` field
    /// (RFC 9110 section 7.2).
    pub fn allows_host(&self, host: &str) -> bool {
        // Without a port it is that of the scheme, which is known only to whoever took the TLS off.
        self.allows(host.trim_matches([' ', '\t']), &[80, 443])
    }

    /// Whether a request may come from this origin: the value of its `Origin` field (RFC 6454
    /// section 6.2). Its scheme is `http` or `https`; that of an app, and `null`, which is the
    /// origin of whoever does not say, pass with [`Any`](Self::Any) alone.
    pub fn allows_origin(&self, origin: &str) -> bool {
        match origin.trim_matches([' ', '\t']).split_once("://") {
            Some((scheme, host)) if scheme.eq_ignore_ascii_case("http") => self.allows(host, &[80]),
            Some((scheme, host)) if scheme.eq_ignore_ascii_case("https") => self.allows(host, &[443]),
            _ => *self == Self::Any,
        }
    }

    /// Whether a client at this address may make requests. [`Loopback`](Self::Loopback) allows
    /// loopback addresses, also in the IPv6 form of IPv4 addresses; the others allow all.
    pub fn allows_peer(&self, address: IpAddr) -> bool {
        *self != Self::Loopback || address.to_canonical().is_loopback()
    }

    /// `implied`: the ports that are meant where none is named.
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

/// A host, perhaps with a port.
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
    /// Reads `host[:port]`. `None` for whatever a reader could take for something else: users,
    /// paths, escapes, white space, addresses in a form of their own (`127.1`, `0x7f000001`), and
    /// text after a bracket.
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

    /// Reads what somebody has configured.
    fn of_entry(text: &'a str) -> Option<Self> {
        match text.parse::<Ipv6Addr>() {
            Ok(address) => Some(Self { host: Host::Address(address.into()), port: None }),
            Err(_) => Self::parse(text),
        }
    }

    /// Whether this is what an entry allows.
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
    /// A name, or an IPv4 address in the one form that all read alike.
    fn parse(text: &'a str) -> Option<Self> {
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Some(Self::Address(address.into()));
        }
        // Where the last part is a number, readers of URLs make an address of the whole (WHATWG
        // URL, the "ends in a number" check).
        let last = text.strip_suffix('.').unwrap_or(text).rsplit('.').next()?;
        let is_name = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
        (is_name && !text.is_empty() && !is_number(last)).then_some(Self::Name(text))
    }
}

/// Decimal or hexadecimal, in the broad sense of the WHATWG URL standard, to which `0x` is a
/// number.
fn is_number(text: &str) -> bool {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let is_hex = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    !text.is_empty() && (text.bytes().all(|byte| byte.is_ascii_digit()) || hex.is_some_and(is_hex))
}
