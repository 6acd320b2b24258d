//! HTTP over TCP: connections of a client, and a server that listens.

use crate::os::Flag;
use crate::server::{Router, Serving};
use crate::service::Service;
use mcp_proto::driver::not_opened;
use mcp_proto::exchange::{Closed, Origin, Peer};
use mcp_proto::wired::Kind;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

/// How long the accepting thread rests when the system has no room for a further connection.
const REST: Duration = Duration::from_millis(50);

/// How long the accepting thread may take to be woken, and to end.
const WAKE: Duration = Duration::from_secs(1);

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
    let (open, ended) = mpsc::channel();
    let (service, stopping) = (Service::start(router, serving)?, Arc::<Flag>::default());
    let server = HttpServer { service, address, stopping, ended: Mutex::new(ended) };
    let (service, stopping) = (Arc::clone(&server.service), Arc::clone(&server.stopping));
    std::thread::Builder::new().name("mcp-accept".into()).spawn(move || {
        accept(&listener, &service, &stopping);
        drop(listener);
        drop::<mpsc::Sender<()>>(open);
    })?;
    Ok(server)
}

/// A server that listens. Dropping it stops it at once.
#[must_use = "a server that is dropped stops"]
pub struct HttpServer {
    service: Arc<Service>,
    address: SocketAddr,
    stopping: Arc<Flag>,
    /// Disconnected once nothing listens any more.
    ended: Mutex<mpsc::Receiver<()>>,
}

impl HttpServer {
    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Waits until it is stopped.
    pub fn wait(&self) {
        self.service.wait_end();
    }

    /// Stops accepting, gives what runs so much time to end, and closes every connection. Returns when that is done.
    pub fn stop(&self, grace: Duration) {
        if !self.stopping.set() {
            // The accepting thread is in a wait that only a connection ends.
            let loopback = match self.address.ip() {
                IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
                ip => ip,
            };
            drop(TcpStream::connect_timeout(&SocketAddr::new(loopback, self.address.port()), WAKE));
            let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            // An error either way: it has ended, or it is not waited for any longer.
            let _ = ended.recv_timeout(WAKE);
        }
        self.service.stop(grace);
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

fn accept(listener: &TcpListener, service: &Arc<Service>, stopping: &Flag) {
    while !stopping.is_set() {
        let joined = listener.accept().and_then(|(socket, peer)| {
            if stopping.is_set() {
                return Ok(());
            }
            // Answers are small and waited for. Where the option does not exist they are merely slower.
            drop(socket.set_nodelay(true));
            let (reader, writer) = (Box::new(socket.try_clone()?), Box::new(socket.try_clone()?));
            let peer = Peer { name: Some(peer.to_string()) };
            service.join(Kind::HttpServer, peer, Some(socket), reader, writer)
        });
        match joined.map_err(|e| e.kind()) {
            Ok(()) | Err(ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
            // Out of descriptors or threads: connections that end make room.
            Err(_) => service.rest(REST),
        }
    }
}

/// Connects to an origin: to each of its addresses in turn, until one answers.
pub(crate) fn connect(origin: &Origin, timeout: Duration) -> Result<TcpStream, Closed> {
    if origin.tls {
        return Err(Closed::Unreachable("this build cannot do tls".into()));
    }
    let addresses = (origin.host.as_str(), origin.port).to_socket_addrs().map_err(|_| Closed::Unresolved)?;
    let mut last = Closed::Unresolved;
    for address in addresses {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(socket) => {
                drop(socket.set_nodelay(true));
                return Ok(socket);
            }
            Err(e) => last = not_opened(&address, &e),
        }
    }
    Err(last)
}
