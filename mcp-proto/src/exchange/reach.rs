//! The addresses to which a connection may lead. A request whose URL comes from a peer must not
//! reach what only this machine or its network can (server-side request forgery).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses to which the connection of a request may lead. The driver asks for every address
/// that a host resolves to, so a name cannot lead where its address may not. Behind a forward proxy
/// this applies only to a host that is an address: the proxy resolves names, and decides where they
/// may lead.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Reach {
    /// Any.
    #[default]
    Any,
    /// Only addresses of the public internet: none of this machine, of a private network, of a
    /// link, for documentation, for tests, for multicast or reserved (the IANA registries of
    /// special-purpose addresses). An IPv6 address that contains an IPv4 address counts as that.
    Public,
    /// Those of [`Near`](Self::Near) except the loopback addresses of this machine. For a URL of a
    /// server in a private network.
    Site,
    /// Any except those of a link (with the metadata services of clouds), unspecified and multicast
    /// ones. For a URL of a server on this machine.
    Near,
    /// Only loopback addresses of this machine.
    Loopback,
}

impl Reach {
    /// Returns whether a connection may lead to this address.
    pub const fn allows(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        match (self, address) {
            (Self::Any, _) => true,
            (Self::Public, IpAddr::V4(address)) => is_public_v4(address),
            (Self::Public, IpAddr::V6(address)) => is_public_v6(address),
            (Self::Site, _) => is_near(address) && !address.is_loopback(),
            (Self::Near, _) => is_near(address),
            (Self::Loopback, _) => address.is_loopback(),
        }
    }
}

/// Returns whether it is an address of one host that is not on a link alone.
const fn is_near(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_near_v4(address),
        IpAddr::V6(address) => match address.segments() {
            // What NAT64 (RFC 6052) and 6to4 (RFC 3056) translate counts as its IPv4 address.
            [0x64, 0xff9b, 0, 0, 0, 0, a, b] | [0x2002, a, b, ..] => is_near_v4(ipv4(a, b)),
            // The metadata service of a cloud, at an address of a private network.
            [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] => false,
            [0xfe80..=0xfebf, ..] => false,
            _ => !address.is_unspecified() && !address.is_multicast(),
        },
    }
}

const fn is_near_v4(address: Ipv4Addr) -> bool {
    !matches!(address.octets(), [0 | 224..=255, ..] | [169, 254, ..])
}

const fn is_public_v4(address: Ipv4Addr) -> bool {
    match address.octets() {
        [0 | 10 | 127 | 224..=255, ..] => false,
        [100, 64..=127, ..] | [169, 254, ..] | [172, 16..=31, ..] | [192, 168, ..] => false,
        // Protocol assignments, documentation, relays to 6to4, and benchmarks.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => false,
        _ => true,
    }
}

const fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // Mapped, and translated by NAT64 (RFC 6052).
        [0, 0, 0, 0, 0, 0xffff, a, b] | [0x64, 0xff9b, 0, 0, 0, 0, a, b] => is_public_v4(ipv4(a, b)),
        // 6to4 (RFC 3056).
        [0x2002, a, b, ..] => is_public_v4(ipv4(a, b)),
        // Protocol assignments with Teredo, documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}

const fn ipv4(a: u16, b: u16) -> Ipv4Addr {
    let ([a, b], [c, d]) = (a.to_be_bytes(), b.to_be_bytes());
    Ipv4Addr::new(a, b, c, d)
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: REDIR-C-006, B-237
    #[test]
    fn only_addresses_of_the_internet_are_public() {
        for (address, is_public) in [
            ("1.1.1.1", true),
            ("99.255.255.255", true),
            ("100.63.0.1", true),
            ("100.128.0.1", true),
            ("172.15.0.1", true),
            ("172.32.0.1", true),
            ("192.0.1.1", true),
            ("223.255.255.255", true),
            ("0.0.0.0", false),
            ("10.1.2.3", false),
            ("100.64.0.1", false),
            ("100.127.255.255", false),
            ("127.0.0.1", false),
            ("127.255.0.1", false),
            ("169.254.169.254", false),
            ("172.16.0.1", false),
            ("172.31.255.255", false),
            ("192.0.0.1", false),
            ("192.0.2.1", false),
            ("192.88.99.1", false),
            ("192.168.0.1", false),
            ("198.19.0.1", false),
            ("198.51.100.7", false),
            ("203.0.113.7", false),
            ("224.0.0.1", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("2606:4700::1", true),
            ("2001:4860:4860::8888", true),
            ("64:ff9b::101:101", true),
            ("64:ff9b::7f00:1", false),
            ("64:ff9b:1::101:101", false),
            ("::ffff:1.1.1.1", true),
            ("::ffff:127.0.0.1", false),
            ("::ffff:169.254.169.254", false),
            ("::127.0.0.1", false),
            ("::", false),
            ("::1", false),
            ("2002:101:101::1", true),
            ("2002:7f00:1::1", false),
            ("2001::1", false),
            ("2001:db8::1", false),
            ("3fff:fff::1", false),
            ("100::1", false),
            ("5f00::1", false),
            ("fc00::1", false),
            ("fd12:3456::1", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(Reach::Public.allows(address), is_public, "{address}");
            assert!(Reach::Any.allows(address));
        }
    }

    // covers: B-237
    #[test]
    fn nearer_reaches_leave_out_links_and_this_machine() {
        for (address, [site, near, loopback]) in [
            ("1.1.1.1", [true, true, false]),
            ("10.0.0.1", [true, true, false]),
            ("192.168.1.1", [true, true, false]),
            ("127.0.0.1", [false, true, true]),
            ("127.8.9.10", [false, true, true]),
            ("169.254.169.254", [false, false, false]),
            ("0.0.0.0", [false, false, false]),
            ("224.0.0.1", [false, false, false]),
            ("255.255.255.255", [false, false, false]),
            ("::1", [false, true, true]),
            ("::", [false, false, false]),
            ("fd12::1", [true, true, false]),
            ("fd00:ec2::254", [false, false, false]),
            ("fe80::1", [false, false, false]),
            ("ff02::1", [false, false, false]),
            ("2606:4700::1", [true, true, false]),
            ("::ffff:127.0.0.1", [false, true, true]),
            ("::ffff:169.254.169.254", [false, false, false]),
            ("64:ff9b::a9fe:a9fe", [false, false, false]),
            ("2002:a9fe:a9fe::1", [false, false, false]),
        ] {
            let address: IpAddr = address.parse().unwrap();
            let allowed = [Reach::Site, Reach::Near, Reach::Loopback].map(|reach| reach.allows(address));
            assert_eq!(allowed, [site, near, loopback], "{address}");
        }
    }
}
