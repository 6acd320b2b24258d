//! Serving over a Unix socket: messages by line, as over standard input and output, for many clients at once.

mod file;

use crate::accept::{Listener, listen};
use crate::channel::{Reader, Writer};
use crate::config::Service;
use crate::serving::Server;
use async_io::Async;
use file::{Bound, File};
use mcp_proto::driver::not_bound;
use mcp_proto::exchange::{Credentials, Peer};
use mcp_proto::input::{Change, Principal};
use mcp_proto::stats::ServerStats;
use mcp_proto::wired::Kind;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

/// Serves on a Unix domain socket at this path, to any number of clients, messages by line. The tasks run on smol's global executor,
/// or where [`Service::on_executor`] says.
///
/// The socket may be used by this user only (mode `0600`), from the moment it exists and whatever the umask is. An application that
/// shares it changes the mode once this has returned. Systems differ in whether they look at it, and all look at the directory, so put the socket in
/// one that only its users may enter.
///
/// A socket that an earlier server left at the path is removed: one that nobody listens on. Anything else there is an error: a socket
/// that is in use, any other file, and a link, which is not followed. Of two servers that begin at the same moment at one path, one may be
/// left without it.
///
/// # Errors
/// What the operating system says when it cannot listen there, with the path, or when it gives no random bytes.
pub async fn serve_unix(service: impl Into<Service>, path: impl AsRef<Path>) -> io::Result<UnixServer> {
    // The working directory may be another one when the file is to be removed.
    let path = std::path::absolute(path)?;
    let bound = bind(&path).await.and_then(Bound::listen).map_err(|e| not_bound(&path.display(), &e))?;
    let ((listener, file), server) = (bound, Server::new(service)?);
    listen(&server, Async::new(listener)?);
    Ok(UnixServer { file, server })
}

/// A server that listens on a Unix domain socket. Dropping it ends every connection at once, and removes the socket.
#[derive(Debug)]
#[must_use = "dropping it stops the server"]
pub struct UnixServer {
    /// Dropped before the server, which holds the number of the file so that no other gets it.
    file: File,
    server: Server,
}

impl UnixServer {
    /// Where it listens.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Tells every client that wants to know of a change: see [`Server::publish`].
    pub fn publish(&self, change: Change) {
        self.server.publish(change);
    }

    /// Ends everything that was admitted as coming from this principal: see [`Server::revoke`].
    pub fn revoke(&self, principal: &Principal) {
        self.server.revoke(principal);
    }

    /// What the server holds at the moment and what it has done, in numbers.
    pub fn stats(&self) -> ServerStats {
        self.server.stats()
    }

    /// Waits until it has been stopped and every connection has ended.
    pub async fn wait(&self) {
        self.server.wait().await;
    }

    /// Accepts no more, removes the socket, gives running requests so long to end, then ends every connection. Returns when all have ended.
    pub async fn stop(&self, grace: Duration) {
        self.file.remove();
        self.server.stop(grace).await;
    }
}

impl Listener for UnixListener {
    const KIND: Kind = Kind::Lines;

    fn accept(&self) -> io::Result<((Reader, Writer), Peer)> {
        let (stream, _) = Self::accept(self)?;
        let peer = Peer::unix(credentials(&stream));
        let stream = smol::net::unix::UnixStream::from(Async::new(stream)?);
        Ok(((Box::new(stream.clone()), Box::new(stream)), peer))
    }
}

/// The process that connected, where the system reports it.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn credentials(socket: &UnixStream) -> Option<Credentials> {
    let peer = rustix::net::sockopt::socket_peercred(socket).ok()?;
    // The system reports 0 for a process that this one cannot see.
    let pid = u32::try_from(peer.pid.as_raw_pid()).ok().filter(|pid| *pid != 0);
    Some(Credentials { pid, uid: peer.uid.as_raw(), gid: peer.gid.as_raw() })
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn credentials(_: &UnixStream) -> Option<Credentials> {
    None
}

/// A socket at this path; in place of an abandoned one, if there is one.
async fn bind(path: &Path) -> io::Result<Bound> {
    match Bound::at(path) {
        Err(e) if e.kind() == ErrorKind::AddrInUse && is_abandoned(path).await => {
            fs::remove_file(path)?;
            Bound::at(path)
        }
        bound => bound,
    }
}

async fn is_abandoned(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    // A server that is too busy to accept lets a client wait, or says so in another way.
    is_socket && Async::<UnixStream>::connect(path).await.is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused)
}
