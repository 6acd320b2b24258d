//! Servers: the connections of the application and of listeners, standard input and output, and a
//! pair of streams.

use crate::direct;
use crate::driver::{Callbacks, Driver, PATIENCE};
use crate::pool::PoolBounds;
use crate::sync::{self, Mutex, lock};
use crate::transport::{Ends, Stream};
#[cfg(feature = "http")]
use mcp_driver::not_bound;
use mcp_driver::{
    self, AcceptRetry, CALLBACK_GRACE, ListenerGuard, ServerHandle, ServerOptions, Service, TakenStdio, TlsAcceptor,
    block_on, block_on_for,
};
#[cfg(unix)]
use mcp_driver::{SocketFile, peer_credentials};
use mcp_proto::Router;
use mcp_proto::exchange::Peer;
use mcp_proto::stats::ServerStats;
use mcp_proto::wired::Kind;
use std::fmt;
use std::future::pending;
use std::io::{self, Read, Write};
#[cfg(any(unix, feature = "http"))]
use std::net::Shutdown;
use std::net::SocketAddr;
#[cfg(feature = "http")]
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream, ToSocketAddrs};
use std::ops::Deref;
#[cfg(unix)]
use std::os::unix::net::UnixStream;
#[cfg(unix)]
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time that dropping a server waits for its listeners and connections to end.
const END: Duration = Duration::from_secs(1);

/// Serves standard input and output until the input has ended and all requests are answered. A
/// request that is not answered 1 s after the end of the input
/// ([`end_grace`](mcp_proto::limits::ServerLimits::end_grace)) is cancelled and gets no response.
///
/// The server owns both streams while it runs: any other reader of standard input gets its end, and
/// printed text goes to standard error.
///
/// # Errors
/// The error of the operating system if the streams cannot be taken over, or if it provides no
/// random bytes or no thread.
pub fn serve_stdio(service: impl Into<Service>) -> io::Result<()> {
    let taken = TakenStdio::take()?;
    let (reader, writer) = taken.streams()?;
    let direct = direct::of(&writer);
    let ends = Ends { reader: Box::new(reader), polled: None, writer: Box::new(writer), direct };
    serve_stream(service, Stream::of(ends))
}

/// Serves a reader and a writer until the input has ended and all requests are answered, or
/// cancelled as with [`serve_stdio`]. Then waits up to two seconds for the handlers that were
/// cancelled.
///
/// # Errors
/// The error of the operating system if it provides no random bytes or no thread.
pub fn serve(
    service: impl Into<Service>,
    reader: impl Read + Send + 'static,
    writer: impl Write + Send + 'static,
) -> io::Result<()> {
    serve_stream(service, (reader, writer).into())
}

pub(crate) fn serve_stream(service: impl Into<Service>, stream: Stream) -> io::Result<()> {
    let Service { router, options } = service.into();
    // There is no other client.
    let share = options.max_threads();
    let server = Server::with_share(router, options, share)?;
    let served = server.serve(stream, Peer::default());
    server.0.server.end();
    block_on_for(CALLBACK_GRACE, server.0.server.callbacks_ended());
    served
}

/// Serves HTTP at an address, for clients of every revision, on the path
/// [`ServerConfig::path`](mcp_proto::ServerConfig::path): `/mcp`. Bind a loopback address, the only
/// kind that is served by default ([`ServerConfig::hosts`](mcp_proto::ServerConfig::hosts)), unless
/// [`ServerOptions::on_admit`], `ServerOptions::verify` or a proxy authenticates the clients.
///
/// # Errors
/// As [`Server::listen_http`].
#[cfg(feature = "http")]
pub fn serve_http(service: impl Into<Service>, address: impl ToSocketAddrs) -> io::Result<Server> {
    let Service { router, options } = service.into();
    let server = Server::new(router, options)?;
    server.listen_http(address)?;
    Ok(server)
}

/// Like [`serve_http`], with TLS: see [`Server::listen_https`].
///
/// # Errors
/// As [`Server::listen_http`].
#[cfg(feature = "rustls")]
pub fn serve_https(
    service: impl Into<Service>,
    address: impl ToSocketAddrs,
    tls: impl Into<TlsAcceptor>,
) -> io::Result<Server> {
    let Service { router, options } = service.into();
    let server = Server::new(router, options)?;
    server.listen_https(address, tls)?;
    Ok(server)
}

/// Serves a Unix domain socket at this path, for any number of clients, with newline-delimited
/// messages: see [`Server::listen_unix`].
///
/// # Errors
/// As [`Server::listen_unix`].
#[cfg(unix)]
pub fn serve_unix(service: impl Into<Service>, path: impl AsRef<Path>) -> io::Result<Server> {
    let Service { router, options } = service.into();
    let server = Server::new(router, options)?;
    server.listen_unix(path)?;
    Ok(server)
}

/// A server. It serves the connections of its listeners, and those that it is given. All
/// connections share one engine, so a session can continue on a different connection. It has its
/// own threads: one or two for each connection, and there are at most
/// [`max_exchanges`](mcp_proto::limits::ServerLimits::max_exchanges) connections.
///
/// Cheap to clone. Dropping the last clone ends everything at once.
///
/// ```no_run
/// use mcp_blocking::{Peer, Router, Server, ServerOptions, tool};
///
/// # fn main() -> std::io::Result<()> {
/// let router = Router::new("clock", "1.0").tool(tool("tick"), |_cx, ()| Ok("tock"));
/// let server = Server::new(router, ServerOptions::new())?;
/// let listener = std::net::TcpListener::bind("127.0.0.1:8000")?;
/// loop {
///     let (stream, address) = listener.accept()?;
///     stream.set_nodelay(true)?; // answers are small and waited for
///     let server = server.clone();
///     std::thread::spawn(move || server.serve_http(stream, Peer::tcp(address)));
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct Server(Arc<ServerOwner>);

struct ServerOwner {
    server: mcp_driver::Server,
    driver: Arc<Driver>,
    address: Mutex<Option<SocketAddr>>,
}

impl Drop for ServerOwner {
    fn drop(&mut self) {
        self.server.end();
        // So that an address or a path is free. Whatever is stuck ends by itself.
        block_on_for(END, self.server.wait());
    }
}

impl Server {
    /// Creates a server without connections.
    ///
    /// # Errors
    /// The operating system provides no random bytes, or cannot start a thread.
    pub fn new(router: Router, options: ServerOptions) -> io::Result<Self> {
        let share = router.config().limits.server.share(options.max_threads());
        Self::with_share(router, options, share)
    }

    /// `share` is the maximum number of threads for handlers of one client.
    fn with_share(router: Router, options: ServerOptions, share: usize) -> io::Result<Self> {
        let (threads, abandoned, patience) = (options.max_threads(), options.max_abandoned_threads(), Some(PATIENCE));
        let callbacks = PoolBounds { threads, share, abandoned, patience };
        let callbacks = Callbacks::new(callbacks, threads, options.spawn().cloned());
        let (server, driving) = mcp_driver::Server::begin(router, options, |_| Box::pin(pending()))?;
        let driver = Driver::new(driving, callbacks, Duration::MAX, None);
        driver.begin()?;
        Ok(Self(Arc::new(ServerOwner { server, driver, address: Mutex::new(None) })))
    }

    /// Listens for HTTP connections at an address. Returns it, with the port that the system chose
    /// for port 0. May be called for several addresses.
    ///
    /// # Errors
    /// The error of the last address that could not be bound, or no thread can be started.
    #[cfg(feature = "http")]
    pub fn listen_http(&self, address: impl ToSocketAddrs) -> io::Result<SocketAddr> {
        self.bind(address, None)
    }

    /// Like [`listen_http`](Self::listen_http), with TLS. Pass an `Arc` of a
    /// [`ServerConfig`](rustls::ServerConfig), or a clone of a [`TlsAcceptor`], which replaces the
    /// configuration while the server runs.
    ///
    /// # Errors
    /// As [`listen_http`](Self::listen_http).
    #[cfg(feature = "rustls")]
    pub fn listen_https(&self, address: impl ToSocketAddrs, tls: impl Into<TlsAcceptor>) -> io::Result<SocketAddr> {
        self.bind(address, Some(tls.into()))
    }

    #[cfg(feature = "http")]
    fn bind(&self, address: impl ToSocketAddrs, tls: Option<TlsAcceptor>) -> io::Result<SocketAddr> {
        let mut failed = io::Error::new(io::ErrorKind::AddrNotAvailable, "the name has no address");
        for address in address.to_socket_addrs()? {
            match TcpListener::bind(address) {
                Ok(listener) => {
                    let address = listener.local_addr()?;
                    self.listen_tcp(listener, tls)?;
                    lock(&self.0.address).get_or_insert(address);
                    return Ok(address);
                }
                Err(e) => failed = not_bound(&address, &e),
            }
        }
        Err(failed)
    }

    #[cfg(feature = "http")]
    fn listen_tcp(&self, listener: TcpListener, tls: Option<TlsAcceptor>) -> io::Result<()> {
        let (waker, address) = (tcp_waker(&listener)?, listener.local_addr()?);
        let accept = move || {
            let (socket, peer) = listener.accept()?;
            // Otherwise small responses would wait for the acknowledgement of earlier ones. A
            // failure is harmless.
            drop(socket.set_nodelay(true));
            Ok((socket.into(), Peer::tcp(peer)))
        };
        self.listen(Kind::HttpServer, tls, accept, move || {
            // Not every system ends a wait in this way. A connection does it on every system, if it
            // is possible at all.
            if waker.as_ref().is_none_or(|waker| waker.shutdown(Shutdown::Both).is_err()) {
                drop(TcpStream::connect_timeout(&reachable(address), END));
            }
        })
    }

    /// Listens on a Unix domain socket at this path, for any number of clients, with
    /// newline-delimited messages.
    ///
    /// Only this user can connect (mode `0600`), as soon as the socket exists and with any umask.
    /// To share the socket, change its mode after this has returned. Not every system checks that
    /// mode, but all of them check the directory: put the socket in a directory that only its users
    /// can enter.
    ///
    /// A socket at the path without a listener, left by an earlier server, is removed. Anything
    /// else there is an error: a socket in use, any other file, or a link, which is not followed.
    /// Of two servers that start at the same time at one path, one may lose its socket. The end of
    /// the server removes the socket.
    ///
    /// # Errors
    /// The error of the operating system with the path, if it cannot listen there, or no thread can
    /// be started.
    #[cfg(unix)]
    pub fn listen_unix(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let (listener, file) = SocketFile::listen(path.as_ref())?;
        let waker = UnixStream::from(std::os::fd::OwnedFd::from(listener.try_clone()?));
        let accept = move || {
            let (socket, _) = listener.accept()?;
            let peer = Peer::unix(peer_credentials(&socket));
            Ok((socket.into(), peer))
        };
        self.listen(Kind::Lines, None, accept, move || {
            // Not every system ends a wait in this way. A connection does it on every system, while
            // the path still leads to this server.
            if waker.shutdown(Shutdown::Both).is_err() {
                file.wake();
            }
            file.remove();
        })
    }

    /// Serves one connection with newline-delimited messages on threads of its own, and returns at
    /// its end.
    ///
    /// # Errors
    /// No thread can be started. A disconnect of the client is not an error.
    pub fn serve<S: Into<Stream>>(&self, stream: S, peer: Peer) -> io::Result<()> {
        self.serve_connection(Kind::Lines, stream.into(), peer, None)
    }

    /// Serves one HTTP connection on threads of its own, and returns at its end. Beyond
    /// [`max_exchanges`](mcp_proto::limits::ServerLimits::max_exchanges) connections, and during a
    /// shutdown, the connection is refused with a response.
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    #[cfg(feature = "http")]
    pub fn serve_http<S: Into<Stream>>(&self, stream: S, peer: Peer) -> io::Result<()> {
        self.serve_connection(Kind::HttpServer, stream.into(), peer, None)
    }

    /// Like [`serve_http`](Self::serve_http), over a stream on which TLS begins now.
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    #[cfg(feature = "rustls")]
    pub fn serve_https<S: Into<Stream>>(&self, stream: S, peer: Peer, tls: &TlsAcceptor) -> io::Result<()> {
        self.serve_connection(Kind::HttpServer, stream.into(), peer, Some(tls))
    }

    fn serve_connection(&self, kind: Kind, stream: Stream, peer: Peer, tls: Option<&TlsAcceptor>) -> io::Result<()> {
        let connection = self.0.server.accept(kind, peer, stream.socket.is_none()).accept_tls(tls);
        let number = self.0.driver.serve(connection, stream)?;
        self.0.driver.wait_closed(number);
        Ok(())
    }

    /// Returns the address of the first listener for HTTP. `None` if there is none.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        *lock(&self.0.address)
    }

    /// Returns a snapshot of the server's numbers.
    pub fn stats(&self) -> ServerStats {
        let mut stats = self.0.server.stats();
        stats.waiting_handlers = self.0.driver.waiting_handlers();
        stats
    }

    /// Waits until the server was stopped and every connection has ended.
    pub fn wait(&self) {
        block_on(self.0.server.wait());
    }

    /// Stops accepting, gives running requests `grace` to end, then ends every stream and
    /// connection. Returns when all have ended, soon after that time at the latest.
    pub fn stop(&self, grace: Duration) {
        block_on(self.0.server.stop(grace));
    }

    /// Accepts connections on a thread until the server accepts no more. `close` ends the wait for
    /// a connection.
    #[cfg(any(unix, feature = "http"))]
    fn listen(
        &self,
        kind: Kind,
        tls: Option<TlsAcceptor>,
        accept: impl Fn() -> io::Result<(Stream, Peer)> + Send + 'static,
        close: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let (listening, driver) = (self.0.server.listen(close), Arc::clone(&self.0.driver));
        sync::spawn("mcp-accept", move || {
            while !listening.is_closed() {
                accept_next(&accept, &listening, &driver, kind, tls.as_ref());
            }
            // The address is free before the server has ended.
            drop(accept);
        })
    }
}

#[cfg(any(unix, feature = "http"))]
fn accept_next(
    accept: &impl Fn() -> io::Result<(Stream, Peer)>,
    listening: &ListenerGuard,
    driver: &Arc<Driver>,
    kind: Kind,
    tls: Option<&TlsAcceptor>,
) {
    let served = accept().and_then(|(stream, peer)| {
        if listening.is_closed() {
            return Ok(());
        }
        driver.serve(listening.accept(kind, peer).accept_tls(tls), stream).map(drop)
    });
    match served.map_err(|e| AcceptRetry::of(&e)) {
        Ok(()) | Err(AcceptRetry::Again | AcceptRetry::Readable) => {}
        Err(AcceptRetry::After(delay)) => drop(block_on_for(delay, listening.closed())),
    }
}

/// Returns a second handle of the listening socket, if that can end the wait for a connection.
#[cfg(all(unix, feature = "http"))]
fn tcp_waker(listener: &TcpListener) -> io::Result<Option<TcpStream>> {
    Ok(Some(std::os::fd::OwnedFd::from(listener.try_clone()?).into()))
}

#[cfg(all(not(unix), feature = "http"))]
fn tcp_waker(_: &TcpListener) -> io::Result<Option<TcpStream>> {
    Ok(None)
}

/// The commands of an application, such as [`publish`](ServerHandle::publish).
impl Deref for Server {
    type Target = ServerHandle;

    fn deref(&self) -> &ServerHandle {
        &self.0.server
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server(..)")
    }
}

/// Returns the address at which this machine reaches a listener.
#[cfg(feature = "http")]
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

#[cfg(all(test, unix, not(shuttle)))]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Instant;

    // covers: B-189
    #[test]
    fn listener_without_descriptors_waits_between_attempts() {
        const ATTEMPTS: u32 = 10;
        let exhausted = || io::Error::from(io::ErrorKind::OutOfMemory);
        let AcceptRetry::After(delay) = AcceptRetry::of(&exhausted()) else { panic!("no delay") };
        let (tries, tried) = mpsc::sync_channel(1);
        let accept = move || {
            // A full channel means that there are many attempts at once.
            let _ = tries.try_send(());
            Err(exhausted())
        };
        let server = Server::new(Router::new("full", "1"), ServerOptions::new()).expect("a thread");
        let began = Instant::now();
        server.listen(Kind::Lines, None, accept, || ()).expect("a thread");
        (0..ATTEMPTS).for_each(|_| tried.recv_timeout(Duration::from_secs(20)).expect("it goes on"));
        assert!(began.elapsed() >= delay * (ATTEMPTS - 1), "it spins: {:?}", began.elapsed());
        server.stop(Duration::ZERO);
    }
}
