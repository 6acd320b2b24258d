//! Serving over HTTP: one task accepts and keeps the time, one task for each connection.

use crate::clock::Alarm;
use crate::config::Service;
use crate::connection::Connection;
use crate::server::Shared;
use async_io::{Async, Timer};
use mcp_proto::exchange::Peer;
use mcp_proto::wired::Kind;
use smol::future::Future;
use smol::net::{AsyncToSocketAddrs, TcpStream};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// How long accepting rests when the operating system has no descriptor left.
const REST: Duration = Duration::from_millis(50);

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
                let shared = Shared::new(service.into())?;
                smol::spawn(Acceptor { shared: shared.clone(), listener, alarm: Alarm::new(), rest: None }).detach();
                return Ok(HttpServer { shared, address });
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
    shared: Arc<Shared>,
    address: SocketAddr,
}

impl HttpServer {
    /// The address it listens at, with the port that was chosen if port 0 was asked for.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Waits until it has been stopped and every connection has ended.
    pub async fn wait(&self) {
        smol::future::poll_fn(|cx| self.shared.poll_over(cx)).await;
    }

    /// Accepts no more, gives running requests so long to end, then ends every connection. Returns when all have ended.
    pub async fn stop(&self, grace: Duration) {
        self.shared.tell(|hub, now| hub.shutdown(now, grace));
        self.wait().await;
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

/// Accepts connections, and keeps the time of the engine.
struct Acceptor {
    shared: Arc<Shared>,
    listener: Async<TcpListener>,
    alarm: Alarm,
    rest: Option<Timer>,
}

impl Acceptor {
    fn poll_accept(&mut self, cx: &mut Context<'_>) {
        loop {
            if let Some(rest) = &mut self.rest {
                if Pin::new(rest).poll(cx).is_pending() {
                    return;
                }
                self.rest = None;
            }
            match self.listener.get_ref().accept() {
                Ok((stream, address)) => self.accepted(stream, address),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    if self.listener.poll_readable(cx).is_pending() {
                        return;
                    }
                }
                // The peer went away before it was accepted.
                Err(e) if matches!(e.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {}
                Err(_) => self.rest = Some(Timer::after(REST)),
            }
        }
    }

    /// A connection that cannot be served is closed, which is all that can be said to it.
    fn accepted(&mut self, stream: std::net::TcpStream, address: SocketAddr) {
        let peer = Peer { name: Some(address.to_string()) };
        // Without it small answers wait for the acknowledgement of earlier ones; failing to set it does no harm.
        let _ = stream.set_nodelay(true);
        let Ok(stream) = Async::new(stream).map(TcpStream::from) else { return };
        let (reader, writer) = (Box::new(stream.clone()), Box::new(stream));
        if let Some(connection) = Connection::join(&self.shared, Kind::HttpServer, peer, reader, writer, false) {
            smol::spawn(connection).detach();
        }
    }
}

impl Future for Acceptor {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        while this.shared.poll_time(cx, &mut this.alarm) {}
        let over = {
            let state = this.shared.lock();
            state.stopped || state.hub.is_terminated()
        };
        if over {
            return Poll::Ready(());
        }
        this.poll_accept(cx);
        Poll::Pending
    }
}
