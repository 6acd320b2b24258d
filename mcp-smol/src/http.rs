//! Servers of HTTP, and their own listener.

use crate::accept::{Listener, listen};
use crate::config::Service;
use crate::ends::{Reader, Writer};
use crate::serving::{Server, host};
use async_io::Async;
use mcp_proto::adapter::not_bound;
use mcp_proto::exchange::Peer;
use mcp_proto::input::{Change, Principal};
use mcp_proto::stats::ServerStats;
use mcp_proto::wired::Kind;
use smol::io::{AsyncRead, AsyncWrite};
use smol::net::{AsyncToSocketAddrs, TcpStream};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

/// Serves HTTP at an address, for clients of every revision, on the path
/// [`ServerConfig::path`](mcp_proto::ServerConfig::path): `/mcp`. Bind a loopback address, the only
/// kind that is served by default ([`ServerConfig::hosts`](mcp_proto::ServerConfig::hosts)), unless
/// [`ServerOptions::on_admit`](crate::ServerOptions::on_admit) or a proxy authenticates the
/// clients.
///
/// The tasks run on smol's global executor, or as
/// [`ServerOptions::on_executor`](crate::ServerOptions::on_executor) defines. A pending handler is
/// a separate task. It ends when its request is cancelled: a client of 2026-07-28 cancels it by
/// closing the connection; a legacy client can resume it.
///
/// # Errors
/// The error of the last address that could not be bound, or of the operating system if it provides
/// no random bytes.
pub async fn serve_http(service: impl Into<Service>, address: impl AsyncToSocketAddrs) -> io::Result<HttpServer> {
    let mut failed = io::Error::new(io::ErrorKind::AddrNotAvailable, "the name has no address");
    for address in smol::net::resolve(address).await? {
        match Async::<TcpListener>::bind(address) {
            Ok(listener) => {
                let (server, address) = (Server::new(service)?, listener.get_ref().local_addr()?);
                listen(&server, listener);
                return Ok(HttpServer { server, address });
            }
            Err(e) => failed = not_bound(&address, &e),
        }
    }
    Err(failed)
}

impl Server {
    /// Serves one HTTP connection until its end. The stream may be anything: a socket, or TLS over
    /// one. Beyond [`max_exchanges`](mcp_proto::limits::ServerLimits::max_exchanges) connections,
    /// and during a shutdown, the connection is refused with a response. Dropping the future cuts
    /// the connection; the effect on its requests depends on their revision.
    pub fn serve_http<S>(&self, stream: S, peer: Peer) -> impl Future<Output = ()> + Send + use<S>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (reader, writer) = smol::io::split(stream);
        host(self.shared().clone(), Kind::HttpServer, peer, (Box::new(reader), Box::new(writer)))
    }
}

/// An HTTP server. Dropping it ends every connection and every handler at once.
#[derive(Debug)]
#[must_use = "dropping it stops the server"]
pub struct HttpServer {
    server: Server,
    address: SocketAddr,
}

impl HttpServer {
    /// Returns the address of the listener, with the port that the system chose for port 0.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Notifies the clients that subscribed to a change: see [`Server::publish`].
    pub fn publish(&self, change: Change) {
        self.server.publish(change);
    }

    /// Ends everything that was admitted for this principal: see [`Server::revoke`].
    pub fn revoke(&self, principal: &Principal) {
        self.server.revoke(principal);
    }

    /// Returns a snapshot of the server's numbers.
    pub fn stats(&self) -> ServerStats {
        self.server.stats()
    }

    /// Waits until the server was stopped and every connection has ended.
    pub async fn wait(&self) {
        self.server.wait().await;
    }

    /// Stops accepting, gives running requests `grace` to end, then ends every stream and
    /// connection: see [`Server::stop`].
    pub async fn stop(&self, grace: Duration) {
        self.server.stop(grace).await;
    }
}

impl Listener for TcpListener {
    const KIND: Kind = Kind::HttpServer;

    fn accept(&self) -> io::Result<((Reader, Writer), Peer)> {
        let (stream, address) = Self::accept(self)?;
        // Otherwise small responses would wait for the acknowledgement of earlier ones. A failure
        // is harmless.
        let _ = stream.set_nodelay(true);
        let stream = TcpStream::from(Async::new(stream)?);
        Ok(((Box::new(stream.clone()), Box::new(stream)), Peer::tcp(address)))
    }
}
