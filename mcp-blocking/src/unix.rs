//! Servers on a Unix domain socket.

use crate::listen::Listening;
use crate::sync;
use mcp_proto::Router;
use mcp_proto::adapter::ServerOptions;
use mcp_proto::adapter::{SocketFile, peer_credentials};
use mcp_proto::exchange::Peer;
use mcp_proto::input::{Change, Principal};
use mcp_proto::stats::ServerStats;
use mcp_proto::wired::Kind;
use std::fmt;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Serves `router` on a Unix domain socket at this path, for any number of clients, with
/// newline-delimited messages. It has its own threads: two for each connection.
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
/// random bytes or no thread.
pub fn serve_unix(router: Router, path: impl AsRef<Path>) -> io::Result<UnixServer> {
    serve_unix_with(router, ServerOptions::new(), path)
}

/// Like [`serve_unix`], with options.
///
/// # Errors
/// As [`serve_unix`].
pub fn serve_unix_with(router: Router, options: ServerOptions, path: impl AsRef<Path>) -> io::Result<UnixServer> {
    let (listener, file) = SocketFile::listen(path.as_ref())?;
    let waker = UnixStream::from(OwnedFd::from(listener.try_clone()?));
    let accept = move || {
        let (socket, _) = listener.accept()?;
        let peer = Peer::unix(peer_credentials(&socket));
        Ok((socket.into(), peer))
    };
    let listening = Listening::start(router, options, Kind::Lines, accept)?;
    Ok(UnixServer { listening, waker: sync::Mutex::new(Some(waker)), file })
}

/// A server on a Unix domain socket. Dropping it stops it at once, and removes the socket.
#[must_use = "a server that is dropped stops"]
pub struct UnixServer {
    listening: Listening,
    /// A second handle of the listening socket, to end the wait for a connection. Absent once it
    /// was used.
    waker: sync::Mutex<Option<UnixStream>>,
    file: SocketFile,
}

impl UnixServer {
    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Notifies the clients that subscribed to a change. Never waits. In a handler,
    /// [`Cx::publish`](crate::Cx::publish) does the same.
    pub fn publish(&self, change: Change) {
        self.listening.publish(change);
    }

    /// Ends everything that was admitted for this principal: see
    /// [`Server::revoke`](crate::Server::revoke). Never waits.
    pub fn revoke(&self, principal: &Principal) {
        self.listening.revoke(principal);
    }

    /// Returns a snapshot of the server's numbers.
    pub fn stats(&self) -> ServerStats {
        self.listening.stats()
    }

    /// Waits until it is stopped.
    pub fn wait(&self) {
        self.listening.wait();
    }

    /// Stops accepting, removes the socket, gives running requests `grace` to end, and closes every
    /// connection. Returns when this is done.
    pub fn stop(&self, grace: Duration) {
        let waker = sync::lock(&self.waker).take();
        self.listening.close(|| {
            // Not every system ends a wait in this way. A connection does it on every system, while
            // the path still leads to this server.
            if waker.as_ref().is_none_or(|waker| waker.shutdown(Shutdown::Both).is_err()) {
                self.file.wake();
            }
        });
        self.file.remove();
        // Kept until here, so that no other file got the file number.
        drop(waker);
        self.listening.stop(grace);
    }
}

impl Drop for UnixServer {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
    }
}

impl fmt::Debug for UnixServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixServer").field("path", &self.file.path()).finish_non_exhaustive()
    }
}
