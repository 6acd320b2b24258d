//! What a driver knows of the other end of a connection.

use alloc::string::{String, ToString};
use core::net::{IpAddr, SocketAddr};

/// What the driver knows of the other end of a connection. Handlers see it in their
/// [`Context`](crate::server::Context), and a server's application when it decides about an admission.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Peer {
    /// An address or a name, for people.
    pub name: Option<String>,
    /// What kind of stream the connection is.
    pub kind: PeerKind,
    /// The IP address of the peer of a TCP connection: a server limits what the clients of one address can take together
    /// ([`client_shares`](crate::limits::ServerLimits::client_shares)). [`tcp`](Self::tcp) stores an IPv4 address that came in its IPv6 form
    /// (`::ffff:192.0.2.1`) as the IPv4 address.
    pub address: Option<IpAddr>,
    /// The process that connected over a Unix domain socket, as the operating system reports it. `None` on every other kind of stream, and
    /// on systems where the driver cannot ask for it.
    pub credentials: Option<Credentials>,
    /// The number of the connection, which no other connection of the engine has. A [`SharedServer`](crate::wired::SharedServer) and a
    /// [`WiredServer`](crate::wired::WiredServer) set it. `None`: the driver does not tell which exchanges came on the same connection.
    pub connection: Option<u64>,
}

/// What kind of stream a connection is. A server that admits connections ([`ServerConfig::admit`](crate::server::ServerConfig::admit))
/// decides by it which duplex ones it asks about: all but [`Given`](Self::Given).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum PeerKind {
    /// A stream that the driver was given: standard input and output, a pipe, or a stream of unknown kind.
    #[default]
    Given,
    /// A Unix domain socket.
    Unix,
    /// A TCP connection, also one below TLS.
    Tcp,
}

/// The process at the other end of a Unix domain socket (`SO_PEERCRED`), as it was when it connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Credentials {
    /// Its process id, where the system reports it. The system may reuse the id after the process has exited.
    pub pid: Option<u32>,
    /// Its effective user id.
    pub uid: u32,
    /// Its effective group id.
    pub gid: u32,
}

impl Peer {
    /// The peer of a TCP connection, named by its address and port.
    pub fn tcp(address: SocketAddr) -> Self {
        let (name, ip) = (Some(address.to_string()), address.ip().to_canonical());
        Self { name, kind: PeerKind::Tcp, address: Some(ip), ..Self::default() }
    }

    /// The peer of a connection over a Unix domain socket.
    pub fn unix(credentials: Option<Credentials>) -> Self {
        Self { kind: PeerKind::Unix, credentials, ..Self::default() }
    }

    /// Whether a listener accepted the connection, so that anybody who can reach the listener may be its peer.
    pub(crate) const fn is_accepted(&self) -> bool {
        match self.kind {
            PeerKind::Given => false,
            PeerKind::Unix | PeerKind::Tcp => true,
        }
    }

    /// The same peer with this name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn tcp_peer_has_canonical_address() {
        let peer = |text: &str| Peer::tcp(text.parse().expect("an address"));
        let mapped = peer("[::ffff:192.0.2.1]:80");
        assert_eq!(mapped.address, Some([192, 0, 2, 1].into()));
        assert_eq!(mapped.name.as_deref(), Some("[::ffff:192.0.2.1]:80"));
        assert_eq!(peer("192.0.2.1:80").address, mapped.address);
        let six = peer("[2001:db8::1]:80");
        assert_eq!(six.address.map(|address| address.to_string()).as_deref(), Some("2001:db8::1"));
        assert_eq!((six.kind, six.credentials), (PeerKind::Tcp, None));
    }
}
