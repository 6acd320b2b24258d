//! Ways to serve: standard input and output, a pair of streams, and any number of connections that share one engine.

use crate::channel::{Reader, Writer};
use crate::clock::{Alarm, after};
use crate::config::Service;
use crate::connection::ConnectionTask;
use crate::server::Shared;
use crate::stdio::TakenStdio;
use mcp_proto::exchange::Peer;
use mcp_proto::input::{Change, Principal};
use mcp_proto::stats::ServerStats;
use mcp_proto::wired::{Kind, refusal};
use smol::Executor;
use smol::future::{Future, or};
use smol::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

/// What a stop waits beyond the times that were given.
const MARGIN: Duration = Duration::from_secs(1);

/// Connections that are told at once that there is no room. Those beyond are closed.
const REFUSING: usize = 64;

/// Serves over standard input and output until the input ends and what was asked is answered, or the client is gone.
///
/// While this runs, the two streams belong to it: whatever else reads standard input finds its end, and what is printed goes to standard
/// error.
///
/// # Errors
/// The streams cannot be taken, or the operating system gives no random bytes. How the client left is no error of the server.
pub async fn serve_stdio(service: impl Into<Service>) -> io::Result<()> {
    let taken = TakenStdio::take()?;
    let (reader, writer) = taken.streams()?;
    serve(service, reader, writer).await
}

/// Serves over a reader and a writer until the input ends and all requests are answered, or the connection
/// fails. Handlers run in this future; the blocking pool parses and routes requests over 32 KiB.
///
/// # Errors
/// The operating system gives no random bytes. How the client left is no error of the server: one that goes away breaks the channel as
/// often as it ends it.
pub async fn serve(
    service: impl Into<Service>,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
) -> io::Result<()> {
    let inside = Arc::new(Executor::new());
    let executor = inside.clone();
    let shared = Shared::new(service.into(), Some(Box::new(move |task| executor.spawn(task).detach())))?;
    let streams: (Reader, Writer) = (Box::new(reader), Box::new(writer));
    if let Ok(connection) = ConnectionTask::join(&shared, Kind::Lines, Peer::default(), streams, true) {
        inside.run(connection).await;
    }
    Ok(())
}

/// A server for whoever owns the listener: it serves the connections that it is given, of which all share one engine, so a session that was
/// opened on one goes on on another. Cheap to clone; dropping the last clone ends everything at once. [`serve_http`](crate::serve_http) is
/// one with a listener of its own.
///
/// ```no_run
/// use mcp_smol::{Peer, Router, Server, tool};
///
/// # fn main() -> std::io::Result<()> {
/// # smol::block_on(async {
/// let server = Server::new(Router::new("clock", "1.0").tool(tool("tick"), |_cx, _: ()| async { Ok("tock") }))?;
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

/// Ends the server with its last owner: tasks and connections share it, and own nothing.
struct Owned(Arc<Shared>);

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Server {
    /// A server without connections. One task keeps its time; that and handlers run on smol's global executor, or where
    /// [`Service::on_executor`] says.
    ///
    /// # Errors
    /// The operating system gives no random bytes.
    pub fn new(service: impl Into<Service>) -> io::Result<Self> {
        let shared = Shared::new(service.into(), None)?;
        shared.spawn(keep_time(shared.clone()));
        Ok(Self(Arc::new(Owned(shared))))
    }

    /// Serves one connection over HTTP until that has ended. The stream may be anything: a socket, TLS around one. Beyond
    /// [`max_exchanges`](mcp_proto::limits::ServerLimits::max_exchanges) connections, and while the server stops, it is told that there is
    /// no room. Dropping the future cuts the connection; what that means for its requests is up to their revision.
    #[cfg(feature = "http")]
    pub fn serve_http<S>(&self, stream: S, peer: Peer) -> impl Future<Output = ()> + Send + use<S>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (reader, writer) = smol::io::split(stream);
        host(self.shared().clone(), Kind::HttpServer, peer, (Box::new(reader), Box::new(writer)))
    }

    /// Serves one connection that carries messages by line until that has ended.
    pub fn serve_lines<S>(&self, stream: S, peer: Peer) -> impl Future<Output = ()> + Send + use<S>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (reader, writer) = smol::io::split(stream);
        host(self.shared().clone(), Kind::Lines, peer, (Box::new(reader), Box::new(writer)))
    }

    /// Tells every client that wants to know of a change. Never waits. A handler does the same with
    /// [`Cx::publish`](crate::Cx::publish).
    pub fn publish(&self, change: Change) {
        self.shared().tell(|engine, now| engine.publish(now, change));
    }

    /// Ends everything that [`Service::on_admit`] admitted as coming from this principal: see
    /// [`revoke`](mcp_proto::server::Server::revoke). First have `on_admit` refuse the principal. Never waits.
    pub fn revoke(&self, principal: &Principal) {
        self.shared().tell(|engine, now| engine.revoke(now, principal));
    }

    /// What the server holds at the moment and what it has done, in numbers.
    pub fn stats(&self) -> ServerStats {
        self.shared().stats()
    }

    /// Waits until it has been stopped and every connection has ended.
    pub async fn wait(&self) {
        self.shared().over().await;
    }

    /// Takes no more connections, gives running requests so long to end, then ends every stream and connection. Returns when all have
    /// ended, soon after that time at the latest.
    pub async fn stop(&self, grace: Duration) {
        let shared = self.shared();
        shared.shut_down(grace);
        let limit = grace.saturating_add(shared.linger).saturating_add(MARGIN);
        or(shared.over(), after(limit)).await;
        shared.end();
        // A handler that never yields cannot be stopped.
        or(shared.over(), after(MARGIN)).await;
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
    match ConnectionTask::join(&shared, kind, peer, streams, false) {
        Ok(connection) => drop(connection.await),
        Err(streams) => refuse(&shared, kind, streams).await,
    }
}

/// Says to a client that there is no room for it, if there is a way to say that, and waits a while until it was heard: whoever closes
/// earlier may take the words back (RFC 9112 section 9.6).
async fn refuse(shared: &Shared, kind: Kind, (mut reader, mut writer): (Reader, Writer)) {
    let Some(words) = refusal(kind) else { return };
    let before = shared.refusing.fetch_add(1, Ordering::Relaxed);
    let _place = Place(&shared.refusing);
    if before < REFUSING {
        let tell = async {
            writer.write_all(&words).await?;
            writer.close().await?;
            smol::io::copy(&mut reader, smol::io::sink()).await.map(drop)
        };
        // How it went is up to the client.
        let _ = or(tell, async {
            after(shared.linger).await;
            Ok(())
        })
        .await;
    }
}

/// One of the places for those who are told.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
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
