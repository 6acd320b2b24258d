//! A server that listens for HTTP.

use crate::listen::{Listening, WAKE};
use crate::server::{Router, Serving};
use crate::socket::Socket;
use mcp_proto::exchange::Peer;
use mcp_proto::stats::ServerStats;
use mcp_proto::wired::Kind;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Serves `router` over HTTP at this address, on threads of its own: two for each connection. Use a loopback address
/// (`127.0.0.1:8000`) unless the whole network is meant to reach it. Every path is the MCP endpoint.
///
/// # Errors
/// What the operating system says when it cannot listen there, or no thread be started.
pub fn serve_http(router: Router, address: impl ToSocketAddrs) -> io::Result<HttpServer> {
    serve_http_with(router, Serving::new(), address)
}

/// As [`serve_http`], with options.
///
/// # Errors
/// As [`serve_http`].
pub fn serve_http_with(router: Router, serving: Serving, address: impl ToSocketAddrs) -> io::Result<HttpServer> {
    let listener = TcpListener::bind(address)?;
    let address = listener.local_addr()?;
    let accept = move || {
        let (socket, peer) = listener.accept()?;
        // Answers are small and waited for. Where the option does not exist they are merely slower.
        drop(socket.set_nodelay(true));
        Ok((Socket::Tcp(socket), Peer { name: Some(peer.to_string()) }))
    };
    Ok(HttpServer { listening: Listening::start(router, serving, Kind::HttpServer, accept)?, address })
}

/// A server that listens. Dropping it stops it at once.
#[must_use = "a server that is dropped stops"]
pub struct HttpServer {
    listening: Listening,
    address: SocketAddr,
}

impl HttpServer {
    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// What the server holds at the moment and what it has done, in numbers.
    pub fn stats(&self) -> ServerStats {
        self.listening.stats()
    }

    /// Waits until it is stopped.
    pub fn wait(&self) {
        self.listening.wait();
    }

    /// Stops accepting, gives what runs so much time to end, and closes every connection. Returns when that is done.
    pub fn stop(&self, grace: Duration) {
        self.listening.close(|| {
            let loopback = match self.address.ip() {
                IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
                ip => ip,
            };
            drop(TcpStream::connect_timeout(&SocketAddr::new(loopback, self.address.port()), WAKE));
        });
        self.listening.stop(grace);
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
    }
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer").field("address", &self.address).finish_non_exhaustive()
    }
}
