//! Servers: the connections of the application and of listeners, standard input and output, and a
//! pair of streams.

use crate::clock::{Alarm, after, delay};
use crate::connection::ConnectionTask;
use crate::jobs::{Jobs, block};
use crate::stdio::stream;
use crate::stream::Stream;
use crate::sync::{Mutex, lock};
use crate::transport::Transport;
use async_io::Async;
#[cfg(feature = "http")]
use mcp_driver::not_bound;
use mcp_driver::{
    self, AcceptRetry, CALLBACK_GRACE, DriverHandle, ListenerGuard, ServerHandle, ServerOptions, Service, Spawn,
    TakenStdio, Task, TlsAcceptor,
};
#[cfg(unix)]
use mcp_driver::{SocketFile, peer_credentials};
use mcp_proto::Router;
use mcp_proto::exchange::Peer;
use mcp_proto::stats::ServerStats;
use mcp_proto::wired::Kind;
use smol::Executor;
use smol::future::{Future, or, yield_now};
use smol::io::{AsyncRead, AsyncWrite};
#[cfg(feature = "http")]
use smol::net::AsyncToSocketAddrs;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
#[cfg(feature = "http")]
use std::net::TcpListener;
use std::ops::Deref;
#[cfg(unix)]
use std::os::unix::net::UnixListener;
#[cfg(unix)]
use std::path::Path;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Serves standard input and output until the input has ended and all requests are answered, or the
/// client has disconnected. A request that is not answered 1 s after the end of the input
/// ([`end_grace`](mcp_proto::limits::ServerLimits::end_grace)) is cancelled and gets no response.
///
/// The server owns both streams while it runs: any other reader of standard input gets its end, and
/// printed text goes to standard error.
///
/// # Errors
/// The streams cannot be taken over, or the operating system provides no random bytes. A disconnect
/// of the client is not an error.
pub async fn serve_stdio(service: impl Into<Service>) -> io::Result<()> {
    let taken = TakenStdio::take()?;
    serve_pair(service.into(), stream(&taken)?).await
}

/// Serves a reader and a writer until the input ends and all requests are answered, or cancelled as
/// with [`serve_stdio`], or the connection fails. Then waits up to two seconds for the handlers
/// that were cancelled. Handlers run in this future. The blocking pool parses and routes requests
/// over 32 KiB.
///
/// # Errors
/// The operating system provides no random bytes. A disconnect of the client is not an error:
/// clients break a connection as often as they end it.
pub async fn serve(
    service: impl Into<Service>,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
) -> io::Result<()> {
    serve_pair(service.into(), (reader, writer).into()).await
}

/// Serves a pair of streams: see [`serve`].
async fn serve_pair(service: Service, stream: Stream) -> io::Result<()> {
    let inside = Arc::new(Executor::new());
    // Weak, since its tasks hold this.
    let executor = Arc::downgrade(&inside);
    let (server, driving) = mcp_driver::Server::begin(service.router, service.options.block_with(block), delay)?;
    let jobs = Jobs::new(Arc::new(move |task| {
        if let Some(executor) = executor.upgrade() {
            executor.spawn(task).detach();
        }
    }));
    // A task, so that its next turn follows at once: between two polls of this future, smol asks
    // the system for events.
    let connection = inside.spawn(connect(&server, &jobs, Kind::Lines, stream, Peer::default(), None));
    let served = async {
        or(connection, drive(driving, jobs)).await;
        or(server.callbacks_ended(), after(CALLBACK_GRACE)).await;
    };
    inside.run(served).await;
    Ok(())
}

/// Serves HTTP at an address, for clients of every revision, on the path
/// [`ServerConfig::path`](mcp_proto::ServerConfig::path): `/mcp`. Bind a loopback address, the only
/// kind that is served by default ([`ServerConfig::hosts`](mcp_proto::ServerConfig::hosts)), unless
/// [`ServerOptions::on_admit`], `ServerOptions::verify` or a proxy authenticates the clients.
///
/// # Errors
/// As [`Server::listen_http`].
#[cfg(feature = "http")]
pub async fn serve_http(service: impl Into<Service>, address: impl AsyncToSocketAddrs) -> io::Result<Server> {
    let Service { router, options } = service.into();
    let server = Server::new(router, options)?;
    server.listen_http(address).await?;
    Ok(server)
}

/// Like [`serve_http`], with TLS: see [`Server::listen_https`].
///
/// # Errors
/// As [`Server::listen_http`].
#[cfg(feature = "rustls")]
pub async fn serve_https(
    service: impl Into<Service>,
    address: impl AsyncToSocketAddrs,
    tls: impl Into<TlsAcceptor>,
) -> io::Result<Server> {
    let Service { router, options } = service.into();
    let server = Server::new(router, options)?;
    server.listen_https(address, tls).await?;
    Ok(server)
}

/// Serves a Unix domain socket at this path, for any number of clients, with newline-delimited
/// messages: see [`Server::listen_unix`].
///
/// # Errors
/// As [`Server::listen_unix`].
#[cfg(unix)]
pub async fn serve_unix(service: impl Into<Service>, path: impl AsRef<Path>) -> io::Result<Server> {
    let Service { router, options } = service.into();
    let server = Server::new(router, options)?;
    server.listen_unix(path).await?;
    Ok(server)
}

/// A server. It serves the connections of its listeners, and those that it is given. All
/// connections share one engine, so a session can continue on a different connection. Cheap to
/// clone. Dropping the last clone ends everything at once.
///
/// ```no_run
/// use mcp_smol::{Peer, Router, Server, ServerOptions, tool};
///
/// # fn main() -> std::io::Result<()> {
/// # smol::block_on(async {
/// let router = Router::new("clock", "1.0").tool(tool("tick"), |_cx, ()| Ok("tock"));
/// let server = Server::new(router, ServerOptions::new())?;
/// let listener = smol::net::TcpListener::bind("127.0.0.1:8443").await?;
/// loop {
///     let (stream, address) = listener.accept().await?;
///     smol::spawn(server.serve_http(stream, Peer::tcp(address))).detach();
/// }
/// # })
/// # }
/// ```
#[derive(Clone)]
pub struct Server {
    server: mcp_driver::Server,
    jobs: Jobs,
    address: Arc<Mutex<Option<SocketAddr>>>,
}

impl Server {
    /// Creates a server without connections. A task for its timers, one for each connection of a
    /// listener, and one for each pending handler run on smol's global executor, or as
    /// [`ServerOptions::on_executor`] defines. A handler ends when its request is cancelled.
    ///
    /// # Errors
    /// The operating system provides no random bytes.
    pub fn new(router: Router, options: ServerOptions) -> io::Result<Self> {
        let spawn = options.spawn().cloned().unwrap_or_else(|| Arc::new(crate::sync::spawn) as Arc<Spawn>);
        let (jobs, (server, driving)) =
            (Jobs::new(spawn), mcp_driver::Server::begin(router, options.block_with(block), delay)?);
        jobs.spawn(drive(driving, jobs.clone()));
        Ok(Self { server, jobs, address: Arc::default() })
    }

    /// Listens for HTTP connections at an address. Returns it, with the port that the system chose
    /// for port 0. May be called for several addresses.
    ///
    /// # Errors
    /// The error of the last address that could not be bound.
    #[cfg(feature = "http")]
    pub async fn listen_http(&self, address: impl AsyncToSocketAddrs) -> io::Result<SocketAddr> {
        self.bind(address, None).await
    }

    /// Like [`listen_http`](Self::listen_http), with TLS. Pass an `Arc` of a
    /// [`ServerConfig`](rustls::ServerConfig), or a clone of a [`TlsAcceptor`], which replaces the
    /// configuration while the server runs.
    ///
    /// # Errors
    /// As [`listen_http`](Self::listen_http).
    #[cfg(feature = "rustls")]
    pub async fn listen_https(
        &self,
        address: impl AsyncToSocketAddrs,
        tls: impl Into<TlsAcceptor>,
    ) -> io::Result<SocketAddr> {
        self.bind(address, Some(tls.into())).await
    }

    #[cfg(feature = "http")]
    async fn bind(&self, address: impl AsyncToSocketAddrs, tls: Option<TlsAcceptor>) -> io::Result<SocketAddr> {
        let mut failed = io::Error::new(io::ErrorKind::AddrNotAvailable, "the name has no address");
        for address in smol::net::resolve(address).await? {
            match Async::<TcpListener>::bind(address) {
                Ok(listener) => {
                    let address = listener.get_ref().local_addr()?;
                    lock(&self.address).get_or_insert(address);
                    self.listen(listener, tls, || {});
                    return Ok(address);
                }
                Err(e) => failed = not_bound(&address, &e),
            }
        }
        Err(failed)
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
    /// The error of the operating system with the path, if it cannot listen there.
    #[cfg(unix)]
    pub async fn listen_unix(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let (listener, file) = SocketFile::listen(path.as_ref())?;
        self.listen(Async::new(listener)?, None, move || file.remove());
        Ok(())
    }

    /// Serves one connection with newline-delimited messages until its end. Dropping the future
    /// cuts the connection.
    pub fn serve<S: Into<Stream>>(&self, stream: S, peer: Peer) -> impl Future<Output = ()> + Send + use<S> {
        connect(&self.server, &self.jobs, Kind::Lines, stream.into(), peer, None)
    }

    /// Serves one HTTP connection until its end. The stream may be anything: a socket, or TLS over
    /// one. Beyond [`max_exchanges`](mcp_proto::limits::ServerLimits::max_exchanges) connections,
    /// and during a shutdown, the connection is refused with a response. Dropping the future cuts
    /// the connection; the effect on its requests depends on their revision.
    #[cfg(feature = "http")]
    pub fn serve_http<S: Into<Stream>>(&self, stream: S, peer: Peer) -> impl Future<Output = ()> + Send + use<S> {
        connect(&self.server, &self.jobs, Kind::HttpServer, stream.into(), peer, None)
    }

    /// Like [`serve_http`](Self::serve_http), over a stream on which TLS begins now.
    #[cfg(feature = "rustls")]
    pub fn serve_https<S: Into<Stream>>(
        &self,
        stream: S,
        peer: Peer,
        tls: &TlsAcceptor,
    ) -> impl Future<Output = ()> + Send + use<S> {
        connect(&self.server, &self.jobs, Kind::HttpServer, stream.into(), peer, Some(tls))
    }

    /// Returns the address of the first listener for HTTP. `None` if there is none.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        *lock(&self.address)
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
    /// connection. Returns when all have ended, soon after that time at the latest.
    pub async fn stop(&self, grace: Duration) {
        self.server.stop(grace).await;
        // The executor drops the cancelled handlers. One that never yields can block it.
        or(self.server.callbacks_ended(), after(CALLBACK_GRACE)).await;
    }

    /// Serves the connections of a listener until the server accepts no more.
    #[cfg(any(unix, feature = "http"))]
    fn listen<L: Listener>(&self, listener: Async<L>, tls: Option<TlsAcceptor>, close: impl FnOnce() + Send + 'static) {
        let (listening, jobs) = (self.server.listen(close), self.jobs.clone());
        self.jobs.spawn(async move {
            // At the end, closes the listener before reporting it.
            or(listening.closed(), accept_all(&listening, jobs, listener, tls)).await;
        });
    }
}

/// The commands of an application, such as [`publish`](ServerHandle::publish).
impl Deref for Server {
    type Target = ServerHandle;

    fn deref(&self) -> &ServerHandle {
        &self.server
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server(..)")
    }
}

/// Returns the future of a connection.
fn connect(
    server: &mcp_driver::Server,
    jobs: &Jobs,
    kind: Kind,
    stream: Stream,
    peer: Peer,
    tls: Option<&TlsAcceptor>,
) -> impl Future<Output = ()> + Send + use<> {
    let connection = server.accept(kind, peer, stream.is_pair).accept_tls(tls);
    ConnectionTask::new(Transport::accepted(connection, stream, jobs.clone()))
}

/// Fires the timers of a server, and runs the callbacks that no connection has caused, until it
/// ends.
async fn drive(driving: DriverHandle, jobs: Jobs) {
    let mut alarm = Alarm::new();
    poll_fn(|cx| {
        loop {
            while let Some(task) = driving.next_task() {
                if let Task::Ended = task {
                    return Poll::Ready(());
                }
                jobs.run(task);
            }
            if alarm.poll(cx, driving.clock(), driving.poll_timeout()) {
                driving.handle_timeout();
            } else if driving.poll_woken(cx).is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await;
}

/// A listening socket.
#[cfg(any(unix, feature = "http"))]
trait Listener: Send + Sync + 'static {
    /// The protocol of its connections.
    const KIND: Kind;

    /// Accepts the next connection, without blocking.
    fn accept(&self) -> io::Result<(Stream, Peer)>;
}

#[cfg(feature = "http")]
impl Listener for TcpListener {
    const KIND: Kind = Kind::HttpServer;

    fn accept(&self) -> io::Result<(Stream, Peer)> {
        let (stream, address) = Self::accept(self)?;
        // Otherwise small responses would wait for the acknowledgement of earlier ones. A failure
        // is harmless.
        let _ = stream.set_nodelay(true);
        Ok((smol::net::TcpStream::from(Async::new(stream)?).into(), Peer::tcp(address)))
    }
}

#[cfg(unix)]
impl Listener for UnixListener {
    const KIND: Kind = Kind::Lines;

    fn accept(&self) -> io::Result<(Stream, Peer)> {
        let (stream, _) = Self::accept(self)?;
        let peer = Peer::unix(peer_credentials(&stream));
        Ok((smol::net::unix::UnixStream::from(Async::new(stream)?).into(), peer))
    }
}

#[cfg(any(unix, feature = "http"))]
async fn accept_all<L: Listener>(listening: &ListenerGuard, jobs: Jobs, listener: Async<L>, tls: Option<TlsAcceptor>) {
    loop {
        match listener.get_ref().accept() {
            Ok((stream, peer)) => {
                let connection = listening.accept(L::KIND, peer).accept_tls(tls.as_ref());
                let transport = Transport::accepted(connection, stream, jobs.clone());
                jobs.spawn(ConnectionTask::new(transport));
                yield_now().await;
            }
            Err(e) => match AcceptRetry::of(&e) {
                AcceptRetry::Again => {}
                // If waiting fails, the next accept reports the error.
                AcceptRetry::Readable => drop(listener.readable().await),
                AcceptRetry::After(delay) => after(delay).await,
            },
        }
    }
}

#[cfg(all(test, unix, not(shuttle)))]
mod tests {
    use super::*;
    use smol::channel::{Sender, bounded};
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    /// A listener of a system without free descriptors. It reports each attempt, as far as its
    /// channel has room.
    struct Exhausted(UnixStream, Sender<()>);

    impl Exhausted {
        fn error() -> io::Error {
            io::ErrorKind::OutOfMemory.into()
        }
    }

    impl AsFd for Exhausted {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }

    impl Listener for Exhausted {
        const KIND: Kind = Kind::Lines;

        fn accept(&self) -> io::Result<(Stream, Peer)> {
            // A full channel means that there are many attempts at once.
            let _ = self.1.try_send(());
            Err(Self::error())
        }
    }

    // covers: B-189
    #[test]
    fn listener_without_descriptors_waits_between_attempts() {
        const ATTEMPTS: u32 = 10;
        let AcceptRetry::After(delay) = AcceptRetry::of(&Exhausted::error()) else { panic!("no delay") };
        smol::block_on(async {
            let server = Server::new(Router::new("full", "1"), ServerOptions::new()).expect("a seed");
            let (tries, tried) = bounded(1);
            let socket = UnixStream::pair().expect("a pair").0;
            let began = Instant::now();
            server.listen(Async::new(Exhausted(socket, tries)).expect("a socket"), None, || ());
            for _ in 0..ATTEMPTS {
                tried.recv().await.expect("it goes on");
            }
            assert!(began.elapsed() >= delay * (ATTEMPTS - 1), "it spins: {:?}", began.elapsed());
            server.stop(Duration::ZERO).await;
        });
    }
}
