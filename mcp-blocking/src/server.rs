//! Serving a [`Router`]: handlers as functions, and the streams they are reached by.

use crate::accepted::Stream;
use crate::events::Told;
use crate::os::TakenStdio;
use crate::service::Service;
use mcp_proto::exchange::{Peer, RequestHead};
use mcp_proto::input::{Admission, Change, Principal};
use mcp_proto::route::FromFn;
use mcp_proto::server::Event;
use mcp_proto::stats::ServerStats;
use mcp_proto::wired::Kind;
use mcp_proto::{Cx, Denied, IntoOutput, MessageHook, Outcome, WireMessage};
use serde::de::DeserializeOwned;
use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

/// What a server offers. A handler is a function of a [`Cx`] and of its arguments: `|cx, a: Add| …`.
pub type Router = mcp_proto::Router<Handler>;

/// A function that serves a request. Several run at once, each on a thread. One that panics is answered with an error.
#[derive(Clone)]
pub struct Handler(pub(crate) Arc<dyn Fn(Cx) -> Outcome + Send + Sync>);

impl Handler {
    /// A handler that reads its arguments and makes its outcome itself.
    pub fn new(f: impl Fn(Cx) -> Outcome + Send + Sync + 'static) -> Self {
        Self(Arc::new(f))
    }
}

impl<F, A, R> FromFn<F, A> for Handler
where
    F: Fn(Cx, A) -> R + Send + Sync + 'static,
    A: DeserializeOwned,
    R: IntoOutput,
{
    fn from_fn(f: F) -> Self {
        Self::new(move |cx| match cx.arguments() {
            Ok(arguments) => cx.outcome(f(cx.clone(), arguments)),
            Err(e) => cx.outcome(Err::<String, _>(e)),
        })
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handler(..)")
    }
}

/// How a server runs, beside what [`Router::configure`](mcp_proto::Router::configure) says.
#[must_use]
pub struct Serving {
    pub(crate) threads: usize,
    pub(crate) event: Option<Arc<Told<Event>>>,
    pub(crate) message: Option<MessageHook>,
    pub(crate) admit: Option<Arc<Admit>>,
}

/// Decides about a request over HTTP, or a connection.
pub(crate) type Admit = dyn Fn(Option<&RequestHead>, &Peer) -> Admission + Send + Sync;

impl Default for Serving {
    fn default() -> Self {
        Self { threads: 256, event: None, message: None, admit: None }
    }
}

impl Serving {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many handlers run at once; one client has at most its share of them
    /// ([`client_shares`](mcp_proto::limits::ServerLimits::client_shares)), a quarter by default. The requests beyond it wait, as many as the
    /// limits of the engine let in. Threads are made on demand, and end when they have had nothing to do for 10 s. Default 256.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Hands these to the function, one at a time, in order, on a thread of its own: notifications of clients, diagnostics, sessions that
    /// open and end, events that are kept for clients to come back for ([`ServerConfig::store`](mcp_proto::ServerConfig::store)), and that
    /// the server has shut down. Without a function all of them are dropped. A panic in it is caught.
    ///
    /// An event that is kept may be on the wire before the function hears of it. If the function is too slow, at most
    /// [`max_queued_events`](mcp_proto::limits::ServerLimits::max_queued_events) notifications and diagnostics wait for it; those beyond
    /// are counted and told as [`Event::Lost`]. The others are never lost: while too many wait, nothing is read from clients.
    pub fn on_event(mut self, told: impl Fn(Event) + Send + Sync + 'static) -> Self {
        self.event = Some(Arc::new(told));
        self
    }

    /// Asks this function about every message, in and out, before it is acted upon or written; it may refuse. See [`MessageHook`]. It runs
    /// on the threads of the connections, several at once, and holds up the connection that it is asked for.
    pub fn on_message(mut self, ask: impl Fn(&WireMessage<'_>) -> Result<(), Denied> + Send + Sync + 'static) -> Self {
        self.message = Some(MessageHook::new(ask));
        self
    }

    /// Asks this function who may be served: about every request over HTTP, by its head and before its body is read, and about every
    /// connection to a Unix socket, without a head and before anything of it is read. It says who the request or the connection comes from,
    /// or why it is refused; a refused connection is closed. The [`Peer`] is who is at the other end, as far as that is known: the address of
    /// the client, behind a proxy that of the proxy, and on a Unix socket the [`Credentials`](crate::Credentials) of the process. A
    /// connection given to [`Server::serve_lines`] is asked about if its peer was made with [`Peer::unix`] or [`Peer::tcp`]; standard input
    /// and output are not.
    ///
    /// It may block for up to [`admit_timeout`](mcp_proto::limits::ServerLimits::admit_timeout), and is asked on up to as many threads as
    /// handlers run on, apart from these; a panic in it refuses. What the `Host` or the path forbids is refused without it, and the preflight
    /// of a browser ([`ServerConfig::cors`](mcp_proto::ServerConfig::cors)) is answered without it.
    ///
    /// ```
    /// use mcp_blocking::{Admission, Serving};
    ///
    /// let by_token = Serving::new().on_admit(|head, _peer| {
    ///     match head.and_then(|head| head.headers.get("Authorization")) {
    ///         Some("Bearer good") => Admission::Accept(Some("ada".into())),
    ///         _ => Admission::Unauthorized("Bearer".into()),
    ///     }
    /// });
    /// let by_user = Serving::new().on_admit(|_head, peer| match peer.credentials {
    ///     Some(process) if process.uid == 1000 => Admission::Accept(Some("ada".into())),
    ///     _ => Admission::Forbidden(None),
    /// });
    /// # drop((by_token, by_user));
    /// ```
    pub fn on_admit(
        mut self,
        admit: impl Fn(Option<&RequestHead>, &Peer) -> Admission + Send + Sync + 'static,
    ) -> Self {
        self.admit = Some(Arc::new(admit));
        self
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving").field("threads", &self.threads).finish_non_exhaustive()
    }
}

/// Serves the client at the other end of standard input and output, until the end of input and of what was begun before it.
///
/// While this runs, the two streams belong to it: whatever else reads standard input finds its end, and what is printed goes to standard
/// error.
///
/// # Errors
/// What the operating system says when the streams cannot be taken, or when it gives no random bytes or no thread.
pub fn serve_stdio(router: Router) -> io::Result<()> {
    serve_stdio_with(router, Serving::new())
}

/// As [`serve_stdio`], with options.
///
/// # Errors
/// As [`serve_stdio`].
pub fn serve_stdio_with(router: Router, serving: Serving) -> io::Result<()> {
    let taken = TakenStdio::take()?;
    let (reader, writer) = taken.streams()?;
    serve_with(router, serving, reader, writer)
}

/// Serves the client at the other end of a pair of streams, until the end of input and of what was begun before it.
///
/// # Errors
/// What the operating system says when it gives no random bytes or no thread.
pub fn serve(
    router: Router,
    reader: impl Read + Send + 'static,
    writer: impl Write + Send + 'static,
) -> io::Result<()> {
    serve_with(router, Serving::new(), reader, writer)
}

/// As [`serve`], with options.
///
/// # Errors
/// As [`serve`].
pub fn serve_with(
    router: Router,
    serving: Serving,
    reader: impl Read + Send + 'static,
    writer: impl Write + Send + 'static,
) -> io::Result<()> {
    let service = Service::start(router, serving)?;
    let served = service.serve(Kind::Lines, Peer::default(), (reader, writer).into());
    service.end();
    served
}

/// A server for whoever owns the listener: it serves the connections that it is given, of which all share one engine, so a session that was
/// opened on one goes on on another. [`serve_http`](crate::serve_http) is one with a listener of its own.
///
/// Cheap to clone. Whoever serves a connection has a clone for as long as that lasts, so dropping the others ends no connection:
/// [`stop`](Self::stop) does. Dropping the last one ends the sessions, and cancels the handlers that outlived their connections.
///
/// ```no_run
/// use mcp_blocking::{Peer, Router, Server, Serving, tool};
///
/// # fn main() -> std::io::Result<()> {
/// let router = Router::new("clock", "1.0").tool(tool("tick"), |_cx, (): ()| "tock");
/// let server = Server::new(router, Serving::new())?;
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

/// Ends the server with its last owner: threads and connections share it, and own nothing.
struct Owned(Arc<Service>);

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.stop(Duration::ZERO);
    }
}

impl Server {
    /// A server without connections.
    ///
    /// # Errors
    /// The operating system gives no random bytes, or no thread can be started.
    pub fn new(router: Router, serving: Serving) -> io::Result<Self> {
        Ok(Self(Arc::new(Owned(Service::start(router, serving)?))))
    }

    /// Serves one connection over HTTP on two threads of its own, and returns when that has ended. Beyond
    /// [`max_exchanges`](mcp_proto::limits::ServerLimits::max_exchanges) connections, and while the server stops, it is told that there is
    /// no room.
    ///
    /// # Errors
    /// No thread can be started. How the client left is no error.
    #[cfg(feature = "http")]
    pub fn serve_http(&self, stream: impl Into<Stream>, peer: Peer) -> io::Result<()> {
        self.0.0.serve(Kind::HttpServer, peer, stream.into())
    }

    /// Serves one connection that carries messages by line, and returns when that has ended.
    ///
    /// # Errors
    /// As [`serve_http`](Self::serve_http).
    pub fn serve_lines(&self, stream: impl Into<Stream>, peer: Peer) -> io::Result<()> {
        self.0.0.serve(Kind::Lines, peer, stream.into())
    }

    /// Tells every client that wants to know of a change. Never waits. A handler does the same with [`Cx::publish`].
    pub fn publish(&self, change: Change) {
        self.0.0.publish(change);
    }

    /// Ends everything that [`Serving::on_admit`] admitted as coming from this principal: see
    /// [`revoke`](mcp_proto::server::Server::revoke). First have `on_admit` refuse the principal. Never waits.
    pub fn revoke(&self, principal: &Principal) {
        self.0.0.revoke(principal);
    }

    /// What the server holds at the moment and what it has done, in numbers.
    pub fn stats(&self) -> ServerStats {
        self.0.0.stats()
    }

    /// Waits until it is stopped.
    pub fn wait(&self) {
        self.0.0.wait_end();
    }

    /// Takes no more connections, gives what runs so much time to end, then ends every stream and connection. Returns when that is done,
    /// soon after that time at the latest.
    pub fn stop(&self, grace: Duration) {
        self.0.0.stop(grace);
    }
}

/// A server with the options of [`Serving::new`].
///
/// # Errors
/// As [`Server::new`].
impl TryFrom<Router> for Server {
    type Error = io::Error;

    fn try_from(router: Router) -> io::Result<Self> {
        Self::new(router, Serving::new())
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server(..)")
    }
}
