//! Servers on a Unix socket: newline-delimited messages, as on standard input and output, for many
//! clients at once.

use crate::accept::{Listener, listen};
use crate::config::Service;
use crate::ends::{Reader, Writer};
use crate::serving::Server;
use async_io::Async;
use mcp_proto::adapter::{SocketFile, peer_credentials};
use mcp_proto::exchange::Peer;
use mcp_proto::input::{Change, Principal};
use mcp_proto::stats::ServerStats;
use mcp_proto::wired::Kind;
use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

/// Serves a Unix domain socket at this path, for any number of clients, with newline-delimited
/// messages. The tasks run on smol's global executor, or as
/// [`ServerOptions::on_executor`](crate::ServerOptions::on_executor) defines.
///
/// Only this user can connect (mode `0600`), as soon as the socket exists and with any umask. To
/// share the socket, change its mode after this has returned. Not every system checks that mode,
/// but all of them check the directory: put the socket in a directory that only its users can
/// enter.
///
/// A socket at the path without a listener, left by an earlier server, is removed. Anything else
/// there is an error: a socket in use, any other file, or a link, which is not followed. Of two
/// servers that start at the same time at one path, one may lose its socket.
///
/// # Errors
/// The error of the operating system with the path, if it cannot listen there, or if it provides no
/// random bytes.
pub async fn serve_unix(service: impl Into<Service>, path: impl AsRef<Path>) -> io::Result<UnixServer> {
    let (listener, file) = SocketFile::listen(path.as_ref())?;
    let server = Server::new(service)?;
    listen(&server, Async::new(listener)?);
    Ok(UnixServer { file, server })
}

/// A server on a Unix domain socket. Dropping it ends every connection at once, and removes the
/// socket.
#[derive(Debug)]
#[must_use = "dropping it stops the server"]
pub struct UnixServer {
    /// Dropped before the server, whose listener keeps the file number in use, so that no other
    /// file gets it.
    file: SocketFile,
    server: Server,
}

impl UnixServer {
    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Notifies the clients that subscribed to a change: see [`Server::publish`].
    pub fn publish(&self, change: Change) {
        self.server.publish(change);
    }

    /// Ends everything that was admitted for this principal: see [`Server::revoke`].
    pub fn revoke(&self, principal: &Principal) {
        self.server.revoke(principal);
    }

    /// Returns a snapshot of the server's numbers.
    pub fn stats(&self) -> ServerStats {
        self.server.stats()
    }

    /// Waits until the server was stopped and every connection has ended.
    pub async fn wait(&self) {
        self.server.wait().await;
    }

    /// Stops accepting, removes the socket, gives running requests `grace` to end, then ends every
    /// connection. Returns when all have ended.
    pub async fn stop(&self, grace: Duration) {
        self.file.remove();
        self.server.stop(grace).await;
    }
}

impl Listener for UnixListener {
    const KIND: Kind = Kind::Lines;

    fn accept(&self) -> io::Result<((Reader, Writer), Peer)> {
        let (stream, _) = Self::accept(self)?;
        let peer = Peer::unix(peer_credentials(&stream));
        let stream = smol::net::unix::UnixStream::from(Async::new(stream)?);
        Ok(((Box::new(stream.clone()), Box::new(stream)), peer))
    }
}
