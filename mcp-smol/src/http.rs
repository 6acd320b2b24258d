//! Serving over HTTP.

use crate::accept::{Listener, Listening};
use crate::channel::{Reader, Writer};
use crate::config::Service;
use async_io::Async;
use mcp_proto::exchange::Peer;
use mcp_proto::stats::ServerStats;
use mcp_proto::wired::Kind;
use smol::net::{AsyncToSocketAddrs, TcpStream};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

/// Serves over HTTP at an address, on every path of it. The tasks run on smol's global executor. Bind a loopback address unless there is
/// something before the server that knows who may call it.
///
/// # Errors
/// No address could be bound, or the operating system gives no random bytes.
pub async fn serve_http(service: impl Into<Service>, address: impl AsyncToSocketAddrs) -> io::Result<HttpServer> {
    let mut failed = io::Error::new(io::ErrorKind::AddrNotAvailable, "the name has no address");
    for address in smol::net::resolve(address).await? {
        match Async::<TcpListener>::bind(address) {
            Ok(listener) => {
                let address = listener.get_ref().local_addr()?;
                return Ok(HttpServer { listening: Listening::start(service.into(), listener)?, address });
            }
            Err(e) => failed = e,
        }
    }
    Err(failed)
}

/// A server over HTTP. Dropping it ends every connection at once.
#[derive(Debug)]
#[must_use = "dropping it stops the server"]
pub struct HttpServer {
    listening: Listening,
    address: SocketAddr,
}

impl HttpServer {
    /// The address it listens at, with the port that was chosen if port 0 was asked for.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// What the server holds at the moment and what it has done, in numbers.
    pub fn stats(&self) -> ServerStats {
        self.listening.stats()
    }

    /// Waits until it has been stopped and every connection has ended.
    pub async fn wait(&self) {
        self.listening.wait().await;
    }

    /// Accepts no more, gives running requests so long to end, then ends every connection. Returns when all have ended.
    pub async fn stop(&self, grace: Duration) {
        self.listening.stop(grace).await;
    }
}

impl Listener for TcpListener {
    const KIND: Kind = Kind::HttpServer;

    fn accept(&self) -> io::Result<(Reader, Writer, Peer)> {
        let (stream, address) = Self::accept(self)?;
        // Without it small answers wait for the acknowledgement of earlier ones; failing to set it does no harm.
        let _ = stream.set_nodelay(true);
        let stream = TcpStream::from(Async::new(stream)?);
        Ok((Box::new(stream.clone()), Box::new(stream), Peer { name: Some(address.to_string()) }))
    }
}
