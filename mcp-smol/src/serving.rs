//! Ways to serve: standard input and output, a pair of streams, and any number of connections that
//! share one engine.

use crate::clock::{Alarm, after};
use crate::config::Service;
use crate::connection::ConnectionTask;
use crate::ends::{Reader, Writer};
use crate::server::Shared;
use crate::stdio::streams;
use mcp_proto::adapter::TakenStdio;
use mcp_proto::exchange::Peer;
use mcp_proto::input::{Change, Principal};
use mcp_proto::stats::ServerStats;
use mcp_proto::wired::Kind;
use smol::Executor;
use smol::future::{Future, or};
use smol::io::{AsyncRead, AsyncWrite};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Time that a stop waits in addition to the times of the engine, which aborts connections one
/// second after the configured ones.
const MARGIN: Duration = Duration::from_secs(2);

/// Serves standard input and output until the input has ended and all requests are answered, or the
/// client has disconnected.
///
/// The server owns both streams while it runs: any other reader of standard input gets its end, and
/// printed text goes to standard error.
///
/// # Errors
/// The streams cannot be taken over, or the operating system provides no random bytes. A disconnect
/// of the client is not an error.
pub async fn serve_stdio(service: impl Into<Service>) -> io::Result<()> {
    let taken = TakenStdio::take()?;
    let (reader, writer) = streams(&taken)?;
    serve(service, reader, writer).await
}

/// Serves a reader and a writer until the input ends and all requests are answered, or the
/// connection fails. Handlers run in this future. The blocking pool parses and routes requests over
/// 32 KiB.
///
/// # Errors
/// The operating system provides no random bytes. A disconnect of the client is not an error:
/// clients break a connection as often as they end it.
pub async fn serve(
    service: impl Into<Service>,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
) -> io::Result<()> {
    let inside = Arc::new(Executor::new());
    let executor = inside.clone();
    let Service { router, options } = service.into();
    let shared = Shared::new(router, options, Some(Arc::new(move |task| executor.spawn(task).detach())))?;
    let streams: (Reader, Writer) = (Box::new(reader), Box::new(writer));
    inside.run(ConnectionTask::accept(&shared, Kind::Lines, Peer::default(), streams, true)).await;
    Ok(())
}

/// A server for an application with its own listener. It serves the connections that it is given.
/// All connections share one engine, so a session can continue on a different connection. Cheap to
/// clone. Dropping the last clone ends everything at once. [`serve_http`](crate::serve_http)
/// returns a server with its own listener.
///
/// ```no_run
/// use mcp_smol::{Peer, Router, Server, tool};
///
/// # fn main() -> std::io::Result<()> {
/// # smol::block_on(async {
/// let router = Router::new("clock", "1.0").tool(tool("tick"), |_cx, ()| Ok("tock"));
/// let server = Server::new(router)?;
/// let listener = smol::net::TcpListener::bind("127.0.0.1:8443").await?;
/// loop {
///     let (stream, address) = listener.accept().await?;
///     // Here TLS would be put around the stream.
///     smol::spawn(server.serve_http(stream, Peer::tcp(address))).detach();
/// }
/// # })
/// # }
/// ```
#[derive(Clone)]
pub struct Server(Arc<Owned>);

/// Ends the server when the last owner is dropped. Tasks and connections share it without owning
/// it.
struct Owned(Arc<Shared>);

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Server {
    /// Creates a server without connections. A task for its timers, and the handlers, run on smol's
    /// global executor, or as [`ServerOptions::on_executor`](crate::ServerOptions::on_executor)
    /// defines.
    ///
    /// # Errors
    /// The operating system provides no random bytes.
    pub fn new(service: impl Into<Service>) -> io::Result<Self> {
        let Service { router, options } = service.into();
        let shared = Shared::new(router, options, None)?;
        shared.spawn(keep_time(shared.clone()));
        Ok(Self(Arc::new(Owned(shared))))
    }

    /// Serves one connection with newline-delimited messages until its end.
    pub fn serve_lines<S>(&self, stream: S, peer: Peer) -> impl Future<Output = ()> + Send + use<S>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (reader, writer) = smol::io::split(stream);
        host(self.shared().clone(), Kind::Lines, peer, (Box::new(reader), Box::new(writer)))
    }

    /// Notifies the clients that subscribed to a change. Never waits. In a handler,
    /// [`Cx::publish`](crate::Cx::publish) does the same.
    pub fn publish(&self, change: Change) {
        self.shared().tell(|engine, now| engine.publish(now, change));
    }

    /// Ends everything that [`ServerOptions::on_admit`](crate::ServerOptions::on_admit) admitted
    /// for this principal: see [`revoke`](mcp_proto::server::Server::revoke). Let `on_admit` refuse
    /// the principal first. Never waits.
    pub fn revoke(&self, principal: &Principal) {
        self.shared().tell(|engine, now| engine.revoke(now, principal));
    }

    /// Returns a snapshot of the server's numbers.
    pub fn stats(&self) -> ServerStats {
        self.shared().stats()
    }

    /// Waits until the server was stopped and every connection has ended.
    pub async fn wait(&self) {
        self.shared().over().await;
    }

    /// Stops accepting, gives running requests `grace` to end, then ends every stream and
    /// connection. Returns when all have ended, soon after that time at the latest.
    pub async fn stop(&self, grace: Duration) {
        let shared = self.shared();
        shared.shut_down(grace);
        // The engine ends every connection in time, unless the future of one is not polled: a
        // handler that never yields can block the executor.
        or(shared.over(), after(grace.saturating_add(shared.linger).saturating_add(MARGIN))).await;
        shared.end();
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.0
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server(..)")
    }
}

/// Serves one connection of several.
pub(crate) async fn host(shared: Arc<Shared>, kind: Kind, peer: Peer, streams: (Reader, Writer)) {
    drop(ConnectionTask::accept(&shared, kind, peer, streams, false).await);
}

/// Fires the timers of the engine until it ends.
async fn keep_time(shared: Arc<Shared>) {
    let mut alarm = Alarm::new();
    poll_fn(|cx| {
        while shared.poll_time(cx, &mut alarm) {}
        if shared.is_ending() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
