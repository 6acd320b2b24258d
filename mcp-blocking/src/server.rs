//! Servers of a [`Router`], over the streams that the application gives them.

use crate::accepted::Stream;
use crate::service::Service;
use mcp_proto::Router;
use mcp_proto::adapter::ServerOptions;
use mcp_proto::adapter::TakenStdio;
use mcp_proto::exchange::Peer;
use mcp_proto::input::{Change, Principal};
use mcp_proto::stats::ServerStats;
use mcp_proto::wired::Kind;
use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

/// Serves standard input and output until the input has ended and all requests are answered.
///
/// The server owns both streams while it runs: any other reader of standard input gets its end, and
/// printed text goes to standard error.
///
/// # Errors
/// The error of the operating system if the streams cannot be taken over, or if it provides no
/// random bytes or no thread.
pub fn serve_stdio(router: Router) -> io::Result<()> {
    serve_stdio_with(router, ServerOptions::new())
}

/// Like [`serve_stdio`], with options.
///
/// # Errors
/// As [`serve_stdio`].
pub fn serve_stdio_with(router: Router, options: ServerOptions) -> io::Result<()> {
    let taken = TakenStdio::take()?;
    let (reader, writer) = taken.streams()?;
    serve_with(router, options, reader, writer)
}

/// Serves a pair of streams until the input has ended and all requests are answered.
///
/// # Errors
/// The error of the operating system if it provides no random bytes or no thread.
pub fn serve(
    router: Router,
    reader: impl Read + Send + 'static,
    writer: impl Write + Send + 'static,
) -> io::Result<()> {
    serve_with(router, ServerOptions::new(), reader, writer)
}

/// Like [`serve`], with options.
///
/// # Errors
/// As [`serve`].
pub fn serve_with(
    router: Router,
    options: ServerOptions,
    reader: impl Read + Send + 'static,
    writer: impl Write + Send + 'static,
) -> io::Result<()> {
    let service = Service::start(router, options)?;
    let served = service.serve(Kind::Lines, Peer::default(), (reader, writer).into());
    service.end();
    served
}

/// A server for an application with its own listener. It serves the connections that it is given.
/// All connections share one engine, so a session can continue on a different connection.
/// [`serve_http`](crate::serve_http) returns a server with its own listener.
///
/// Cheap to clone. A thread that serves a connection has a clone while the connection lasts, so
/// dropping the other clones ends no connection; use [`stop`](Self::stop). Dropping the last clone
/// ends the sessions, and cancels the handlers that outlived their connections.
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
pub struct Server(Arc<Owned>);

/// Ends the server when the last owner is dropped. Threads and connections share it without owning
/// it.
struct Owned(Arc<Service>);

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.stop(Duration::ZERO);
    }
}

impl Server {
    /// Creates a server without connections.
    ///
    /// # Errors
    /// The operating system provides no random bytes, or cannot start a thread.
    pub fn new(router: Router, options: ServerOptions) -> io::Result<Self> {
        Ok(Self(Arc::new(Owned(Service::start(router, options)?))))
    }

    /// Serves one connection with newline-delimited messages, and returns at its end.
    ///
    /// # Errors
    /// As [`serve_http`](Self::serve_http).
    pub fn serve_lines(&self, stream: impl Into<Stream>, peer: Peer) -> io::Result<()> {
        self.serve_connection(Kind::Lines, peer, stream.into())
    }

    /// Serves one connection with this protocol on two threads, and returns at its end.
    pub(crate) fn serve_connection(&self, kind: Kind, peer: Peer, stream: Stream) -> io::Result<()> {
        self.0.0.serve(kind, peer, stream)
    }

    /// Notifies the clients that subscribed to a change. Never waits. In a handler,
    /// [`Cx::publish`](crate::Cx::publish) does the same.
    pub fn publish(&self, change: Change) {
        self.0.0.publish(change);
    }

    /// Ends everything that [`ServerOptions::on_admit`] admitted for this principal: see
    /// [`revoke`](mcp_proto::server::Server::revoke). Let `on_admit` refuse the principal first.
    /// Never waits.
    pub fn revoke(&self, principal: &Principal) {
        self.0.0.revoke(principal);
    }

    /// Returns a snapshot of the server's numbers.
    pub fn stats(&self) -> ServerStats {
        self.0.0.stats()
    }

    /// Waits until it is stopped.
    pub fn wait(&self) {
        self.0.0.wait_end();
    }

    /// Stops accepting, gives running requests `grace` to end, then ends every stream and
    /// connection. Returns when this is done, soon after that time at the latest.
    pub fn stop(&self, grace: Duration) {
        self.0.0.stop(grace);
    }
}

/// Creates a server with the options of [`ServerOptions::new`].
///
/// # Errors
/// As [`Server::new`].
impl TryFrom<Router> for Server {
    type Error = io::Error;

    fn try_from(router: Router) -> io::Result<Self> {
        Self::new(router, ServerOptions::new())
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server(..)")
    }
}
