//! A server that listens for HTTP.

use crate::listen::{Listening, WAKE};
use crate::server::{Router, Serving};
use crate::sync;
use mcp_proto::driver::not_bound;
use mcp_proto::exchange::Peer;
use mcp_proto::input::{Change, Principal};
use mcp_proto::stats::ServerStats;
use mcp_proto::wired::Kind;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Serves `router` over HTTP at this address, to clients of every revision, on the path
/// [`ServerConfig::path`](mcp_proto::ServerConfig::path): `/mcp`. It runs on threads of its own: two for each connection, of which there are
/// at most [`max_exchanges`](mcp_proto::limits::ServerLimits::max_exchanges).
///
/// Use a loopback address (`127.0.0.1:8000`), the only one that is answered to by default
/// ([`ServerConfig::hosts`](mcp_proto::ServerConfig::hosts)), unless something knows who may call the server: [`Serving::on_admit`], or
/// whatever stands before it.
///
/// # Errors
/// What the operating system says when it cannot listen there, with the address, or when it gives no random bytes or no thread.
pub fn serve_http(router: Router, address: impl ToSocketAddrs) -> io::Result<HttpServer> {
    serve_http_with(router, Serving::new(), address)
}

/// As [`serve_http`], with options.
///
/// # Errors
/// As [`serve_http`].
pub fn serve_http_with(router: Router, serving: Serving, address: impl ToSocketAddrs) -> io::Result<HttpServer> {
    let listener = bind(address)?;
    let (address, waker) = (listener.local_addr()?, waker(&listener)?);
    let accept = move || {
        let (socket, peer) = listener.accept()?;
        // Answers are small and waited for. Where the option does not exist they are merely slower.
        drop(socket.set_nodelay(true));
        Ok((socket.into(), Peer::tcp(peer)))
    };
    let listening = Listening::start(router, serving, Kind::HttpServer, accept)?;
    Ok(HttpServer { listening, waker: sync::Mutex::new(waker), address })
}

/// Listens at the first of the addresses where it can.
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

/// The listening socket once more, where that can end the wait for a connection.
#[cfg(unix)]
fn waker(listener: &TcpListener) -> io::Result<Option<TcpStream>> {
    Ok(Some(std::os::fd::OwnedFd::from(listener.try_clone()?).into()))
}

#[cfg(not(unix))]
fn waker(_: &TcpListener) -> io::Result<Option<TcpStream>> {
    Ok(None)
}

/// A server that listens. Dropping it stops it at once.
#[must_use = "a server that is dropped stops"]
pub struct HttpServer {
    listening: Listening,
    /// See [`waker`]; absent once it was used.
    waker: sync::Mutex<Option<TcpStream>>,
    address: SocketAddr,
}

impl HttpServer {
    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Tells every client that wants to know of a change. Never waits. A handler does the same with
    /// [`Cx::publish`](crate::Cx::publish).
    pub fn publish(&self, change: Change) {
        self.listening.publish(change);
    }

    /// Ends everything that was admitted as coming from this principal: see [`Server::revoke`](crate::Server::revoke). Never waits.
    pub fn revoke(&self, principal: &Principal) {
        self.listening.revoke(principal);
    }

    /// What the server holds at the moment and what it has done, in numbers.
    pub fn stats(&self) -> ServerStats {
        self.listening.stats()
    }

    /// Waits until it is stopped.
    pub fn wait(&self) {
        self.listening.wait();
    }

    /// Stops accepting, gives what runs so much time to end, then ends every stream and connection. Returns when that is done, soon after
    /// that time at the latest.
    pub fn stop(&self, grace: Duration) {
        let waker = sync::lock(&self.waker).take();
        self.listening.close(|| {
            // Not every system ends a wait like this. A connection does it everywhere, where one can be made.
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
