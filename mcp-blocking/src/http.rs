//! Servers of HTTP, and their own listener.

use crate::accepted::Stream;
use crate::listen::{Listening, WAKE};
use crate::server::Server;
use crate::sync;
use mcp_proto::Router;
use mcp_proto::adapter::ServerOptions;
use mcp_proto::adapter::not_bound;
use mcp_proto::exchange::Peer;
use mcp_proto::input::{Change, Principal};
use mcp_proto::stats::ServerStats;
use mcp_proto::wired::Kind;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Serves `router` over HTTP at this address, for clients of every revision, on the path
/// [`ServerConfig::path`](mcp_proto::ServerConfig::path): `/mcp`. It has its own threads: two for
/// each connection, and there are at most
/// [`max_exchanges`](mcp_proto::limits::ServerLimits::max_exchanges) connections.
///
/// Use a loopback address (`127.0.0.1:8000`), the only kind that is served by default
/// ([`ServerConfig::hosts`](mcp_proto::ServerConfig::hosts)), unless [`ServerOptions::on_admit`] or
/// a proxy authenticates the clients.
///
/// # Errors
/// The error of the operating system with the address, if it cannot listen there, or if it provides
/// no random bytes or no thread.
pub fn serve_http(router: Router, address: impl ToSocketAddrs) -> io::Result<HttpServer> {
    serve_http_with(router, ServerOptions::new(), address)
}

/// Like [`serve_http`], with options.
///
/// # Errors
/// As [`serve_http`].
pub fn serve_http_with(router: Router, options: ServerOptions, address: impl ToSocketAddrs) -> io::Result<HttpServer> {
    let listener = bind(address)?;
    let (address, waker) = (listener.local_addr()?, waker(&listener)?);
    let accept = move || {
        let (socket, peer) = listener.accept()?;
        // Otherwise small responses would wait for the acknowledgement of earlier ones. A failure
        // is harmless.
        drop(socket.set_nodelay(true));
        Ok((socket.into(), Peer::tcp(peer)))
    };
    let listening = Listening::start(router, options, Kind::HttpServer, accept)?;
    Ok(HttpServer { listening, waker: sync::Mutex::new(waker), address })
}

/// Binds the first of the addresses that is available.
fn bind(address: impl ToSocketAddrs) -> io::Result<TcpListener> {
    let mut failed = io::Error::new(io::ErrorKind::AddrNotAvailable, "the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpListener::bind(address) {
            Ok(listener) => return Ok(listener),
            Err(e) => failed = not_bound(&address, &e),
        }
    }
    Err(failed)
}

/// Returns a second handle of the listening socket, if that can end the wait for a connection.
#[cfg(unix)]
fn waker(listener: &TcpListener) -> io::Result<Option<TcpStream>> {
    Ok(Some(std::os::fd::OwnedFd::from(listener.try_clone()?).into()))
}

#[cfg(not(unix))]
fn waker(_: &TcpListener) -> io::Result<Option<TcpStream>> {
    Ok(None)
}

impl Server {
    /// Serves one HTTP connection on two threads, and returns at its end. Beyond
    /// [`max_exchanges`](mcp_proto::limits::ServerLimits::max_exchanges) connections, and during a
    /// shutdown, the connection is refused with a response.
    ///
    /// # Errors
    /// No thread can be started. A disconnect of the client is not an error.
    pub fn serve_http(&self, stream: impl Into<Stream>, peer: Peer) -> io::Result<()> {
        self.serve_connection(Kind::HttpServer, peer, stream.into())
    }
}

/// An HTTP server. Dropping it stops it at once.
#[must_use = "a server that is dropped stops"]
pub struct HttpServer {
    listening: Listening,
    /// See [`waker`]. Absent once it was used.
    waker: sync::Mutex<Option<TcpStream>>,
    address: SocketAddr,
}

impl HttpServer {
    /// Returns the address of the listener.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Notifies the clients that subscribed to a change. Never waits. In a handler,
    /// [`Cx::publish`](crate::Cx::publish) does the same.
    pub fn publish(&self, change: Change) {
        self.listening.publish(change);
    }

    /// Ends everything that was admitted for this principal: see
    /// [`Server::revoke`](crate::Server::revoke). Never waits.
    pub fn revoke(&self, principal: &Principal) {
        self.listening.revoke(principal);
    }

    /// Returns a snapshot of the server's numbers.
    pub fn stats(&self) -> ServerStats {
        self.listening.stats()
    }

    /// Waits until it is stopped.
    pub fn wait(&self) {
        self.listening.wait();
    }

    /// Stops accepting, gives running requests `grace` to end, then ends every stream and
    /// connection. Returns when this is done, soon after that time at the latest.
    pub fn stop(&self, grace: Duration) {
        let waker = sync::lock(&self.waker).take();
        self.listening.close(|| {
            // Not every system ends a wait in this way. A connection does it on every system, if it
            // is possible.
            if waker.is_none_or(|waker| waker.shutdown(Shutdown::Both).is_err()) {
                let mut address = self.address;
                match address.ip() {
                    IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
                    IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
                    _ => {}
                }
                drop(TcpStream::connect_timeout(&address, WAKE));
            }
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
