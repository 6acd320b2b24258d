//! What a driver knows about the peer of a connection.

use alloc::string::{String, ToString};
use core::net::{IpAddr, SocketAddr};

/// What the driver knows about the peer of a connection. Handlers get it in their
/// [`Context`](crate::server::Context), and the application gets it when it decides on an
/// admission.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Peer {
    /// An address or a name, for people.
    pub name: Option<String>,
    /// The kind of stream.
    pub kind: PeerKind,
    /// The IP address of the peer of a TCP connection. A server limits what the clients of one
    /// address use together ([`client_shares`](crate::limits::ServerLimits::client_shares)).
    /// [`tcp`](Self::tcp) stores an IPv4-mapped IPv6 address (`::ffff:192.0.2.1`) as the IPv4
    /// address.
    pub address: Option<IpAddr>,
    /// The process that connected over a Unix domain socket, as reported by the operating system.
    /// `None` on every other kind of stream, and on systems that do not report it.
    pub credentials: Option<Credentials>,
    /// The number of the connection, unique within the engine. A
    /// [`SharedServer`](crate::wired::SharedServer) and a
    /// [`WiredServer`](crate::wired::WiredServer) set it. `None` if the driver does not report
    /// which exchanges share a connection.
    pub connection: Option<u64>,
}

/// The kind of stream of a connection. A server that admits connections
/// ([`ServerConfig::admit`](crate::server::ServerConfig::admit)) requests admission for all duplex
/// ones except [`Given`](Self::Given).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum PeerKind {
    /// A stream that the driver was given: standard input and output, a pipe, or a stream of
    /// unknown kind.
    #[default]
    Given,
    /// A Unix domain socket.
    Unix,
    /// A TCP connection, with or without TLS.
    Tcp,
}

/// The process at the other end of a Unix domain socket (`SO_PEERCRED`), at the time when it
/// connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "record", derive(serde::Serialize, serde::Deserialize))]
pub struct Credentials {
    /// Its process id, if the system reports it. The system may reuse the id after the process has
    /// exited.
    pub pid: Option<u32>,
    /// Its effective user id.
    pub uid: u32,
    /// Its effective group id.
    pub gid: u32,
}

impl Peer {
    /// Creates the peer of a TCP connection. Its name is the address with the port.
    pub fn tcp(address: SocketAddr) -> Self {
        let (name, ip) = (Some(address.to_string()), address.ip().to_canonical());
        Self { name, kind: PeerKind::Tcp, address: Some(ip), ..Self::default() }
    }

    /// Creates the peer of a connection over a Unix domain socket.
    pub fn unix(credentials: Option<Credentials>) -> Self {
        Self { kind: PeerKind::Unix, credentials, ..Self::default() }
    }

    /// Returns whether a listener accepted the connection, so that its peer can be anyone who can
    /// reach the listener.
    pub(crate) const fn is_accepted(&self) -> bool {
        match self.kind {
            PeerKind::Given => false,
            PeerKind::Unix | PeerKind::Tcp => true,
        }
    }

    /// Sets the name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }
}

/// The path of a Unix domain socket, to connect to or to serve at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnixSocket(pub String);

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
