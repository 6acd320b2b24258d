//! Serving over HTTP, with a listener of our own.

use crate::accept::{Listener, listen};
use crate::channel::{Reader, Writer};
use crate::config::Service;
use crate::serving::Server;
use async_io::Async;
use mcp_proto::driver::not_bound;
use mcp_proto::exchange::Peer;
use mcp_proto::input::{Change, Principal};
use mcp_proto::stats::ServerStats;
use mcp_proto::wired::Kind;
use smol::net::{AsyncToSocketAddrs, TcpStream};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

/// Serves over HTTP at an address, to clients of every revision, on the path
/// [`ServerConfig::path`](mcp_proto::ServerConfig::path): `/mcp`. Bind a loopback address, the only one that is answered to by default
/// ([`ServerConfig::hosts`](mcp_proto::ServerConfig::hosts)), unless something knows who may call the server:
/// [`Service::on_admit`], or whatever stands before it.
///
/// The tasks run on smol's global executor, or where [`Service::on_executor`] says. A handler that waits is a task of its own: it ends when
/// its request is cancelled, which a client of 2026-07-28 does by closing the connection; one of an older revision comes back for the answer.
///
/// # Errors
/// No address could be bound, and which was tried last, or the operating system gives no random bytes.
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

/// A server over HTTP. Dropping it ends every connection and every handler at once.
#[derive(Debug)]
#[must_use = "dropping it stops the server"]
pub struct HttpServer {
    server: Server,
    address: SocketAddr,
}

impl HttpServer {
    /// The address it listens at, with the port that was chosen if port 0 was asked for.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Tells every client that wants to know of a change: see [`Server::publish`].
    pub fn publish(&self, change: Change) {
        self.server.publish(change);
    }

    /// Ends everything that was admitted as coming from this principal: see [`Server::revoke`].
    pub fn revoke(&self, principal: &Principal) {
        self.server.revoke(principal);
    }

    /// What the server holds at the moment and what it has done, in numbers.
    pub fn stats(&self) -> ServerStats {
        self.server.stats()
    }

    /// Waits until it has been stopped and every connection has ended.
    pub async fn wait(&self) {
        self.server.wait().await;
    }

    /// Accepts no more, gives running requests so long to end, then ends every stream and connection: see [`Server::stop`].
    pub async fn stop(&self, grace: Duration) {
        self.server.stop(grace).await;
    }
}

impl Listener for TcpListener {
    const KIND: Kind = Kind::HttpServer;

    fn accept(&self) -> io::Result<((Reader, Writer), Peer)> {
        let (stream, address) = Self::accept(self)?;
        // Without it small answers wait for the acknowledgement of earlier ones; failing to set it does no harm.
        let _ = stream.set_nodelay(true);
        let stream = TcpStream::from(Async::new(stream)?);
        Ok(((Box::new(stream.clone()), Box::new(stream)), Peer::tcp(address)))
    }
}
