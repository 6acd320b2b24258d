//! Servers for clients on the same machine: a Unix domain socket, a pair of streams, and standard
//! input and output.

use super::driver::{Io, accept_all, drive_connection, server};
use mcp_driver::{Server, Service, SocketFile, peer_credentials};
use mcp_proto::exchange::Peer;
use mcp_proto::wired::Kind;
use std::future::pending;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::task::Context;
use std::thread;
use std::time::Duration;
use tokio::net::{UnixListener, unix::pipe};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Maximum time for the last bytes to pass through standard output after the end of the server.
const LAST_BYTES: Duration = Duration::from_secs(5);

/// Listens on a Unix domain socket, whose file the end of the server removes.
///
/// # Errors
/// Those of the operating system.
pub(crate) fn listen_unix(server: &Server, path: &Path) -> io::Result<()> {
    let (listener, file) = SocketFile::listen(path)?;
    listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(listener)?;
    let accept = move |cx: &mut Context<'_>| {
        listener.poll_accept(cx).map_ok(|(stream, _)| {
            let peer = Peer::unix(peer_credentials(&stream));
            Io::socket(stream, peer)
        })
    };
    tokio::spawn(accept_all(server.listen(move || file.remove()), Kind::Lines, accept));
    Ok(())
}

/// Serves a pair of streams until the input ends and all requests are answered, or the connection
/// fails.
///
/// # Errors
/// The operating system provides no random bytes.
pub(crate) async fn serve(service: impl Into<Service>, io: Io) -> io::Result<()> {
    let server = server(service)?;
    let connection = server.accept(Kind::Lines, Peer::default(), true);
    drive_connection(connection, io, pending(), Arc::default()).await;
    Ok(())
}

/// Serves streams that block, such as standard input and output. Threads copy them to a pipe and
/// from a pipe: either may be a file, which cannot be polled, and the end of a runtime waits for a
/// read of tokio's own standard input.
///
/// # Errors
/// No descriptors are left, or as [`serve`].
pub(crate) async fn serve_blocking(
    service: impl Into<Service>,
    mut input: impl Read + Send + 'static,
    mut output: impl Write + Send + 'static,
) -> io::Result<()> {
    let ((reader, mut to), (mut from, writer)) = (io::pipe()?, io::pipe()?);
    let (reader, writer) = (pipe::Receiver::from_owned_fd(reader.into())?, pipe::Sender::from_owned_fd(writer.into())?);
    let io = Io::new(reader, writer, Peer::default());
    let (done, written) = oneshot::channel();
    thread::spawn(move || io::copy(&mut input, &mut to));
    thread::spawn(move || done.send(io::copy(&mut from, &mut output)));
    serve(service, io).await?;
    let _ = timeout(LAST_BYTES, written).await;
    Ok(())
}
