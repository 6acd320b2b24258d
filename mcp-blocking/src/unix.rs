//! Servers on a Unix domain socket.

mod file;

use crate::handler::Router;
use crate::listen::{Listening, WAKE};
use crate::serving::Serving;
use crate::sync;
use file::{Bound, File};
use mcp_proto::adapter::not_bound;
use mcp_proto::exchange::{Credentials, Peer};
use mcp_proto::input::{Change, Principal};
use mcp_proto::stats::ServerStats;
use mcp_proto::wired::Kind;
use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc;
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
    serve_unix_with(router, Serving::new(), path)
}

/// Like [`serve_unix`], with options.
///
/// # Errors
/// As [`serve_unix`].
pub fn serve_unix_with(router: Router, serving: Serving, path: impl AsRef<Path>) -> io::Result<UnixServer> {
    // The working directory may have changed when the file is removed.
    let path = std::path::absolute(path)?;
    let (listener, file) = bind(&path).and_then(Bound::listen).map_err(|e| not_bound(&path.display(), &e))?;
    let waker = UnixStream::from(OwnedFd::from(listener.try_clone()?));
    let accept = move || {
        let (socket, _) = listener.accept()?;
        let peer = Peer::unix(credentials(&socket));
        Ok((socket.into(), peer))
    };
    let listening = Listening::start(router, serving, Kind::Lines, accept)?;
    Ok(UnixServer { listening, waker: sync::Mutex::new(Some(waker)), file })
}

/// A server on a Unix domain socket. Dropping it stops it at once, and removes the socket.
#[must_use = "a server that is dropped stops"]
pub struct UnixServer {
    listening: Listening,
    /// A second handle of the listening socket, to end the wait for a connection. Absent once it
    /// was used.
    waker: sync::Mutex<Option<UnixStream>>,
    file: File,
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
                // The accepting thread notices the effect.
                let _ = try_connect(self.file.path());
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

/// Returns the process that connected, if the system reports it.
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

/// Binds a socket at this path, replacing an abandoned one.
fn bind(path: &Path) -> io::Result<Bound> {
    match Bound::at(path) {
        Err(e) if e.kind() == ErrorKind::AddrInUse && is_abandoned(path) => {
            fs::remove_file(path)?;
            Bound::at(path)
        }
        bound => bound,
    }
}

fn is_abandoned(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    // A server that is too busy to accept delays a client, or fails with another error.
    is_socket && try_connect(path).is_some_and(|e| e == ErrorKind::ConnectionRefused)
}

/// Connects, and returns why that failed. A stuck server may delay it, so it runs on a thread with
/// a time limit.
fn try_connect(path: &Path) -> Option<ErrorKind> {
    let (told, failed) = mpsc::channel();
    let path = path.to_owned();
    let connect = move || {
        // There is no receiver any more if it took too long.
        let _ = told.send(UnixStream::connect(path).err().map(|e| e.kind()));
    };
    sync::spawn("mcp-connect", connect).ok()?;
    failed.recv_timeout(WAKE).ok()?
}
