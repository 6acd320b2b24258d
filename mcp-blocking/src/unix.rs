//! A server that listens on a Unix domain socket.

mod file;

use crate::listen::{Listening, WAKE};
use crate::server::{Router, Serving};
use crate::sync;
use file::{Bound, File};
use mcp_proto::driver::not_bound;
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

/// Serves `router` on a Unix domain socket at this path, to any number of clients, messages by line, on threads of its own: two for each
/// connection.
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
/// What the operating system says when it cannot listen there, with the path, or when it gives no random bytes or no thread.
pub fn serve_unix(router: Router, path: impl AsRef<Path>) -> io::Result<UnixServer> {
    serve_unix_with(router, Serving::new(), path)
}

/// As [`serve_unix`], with options.
///
/// # Errors
/// As [`serve_unix`].
pub fn serve_unix_with(router: Router, serving: Serving, path: impl AsRef<Path>) -> io::Result<UnixServer> {
    // The working directory may be another one when the file is to be removed.
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

/// A server that listens on a Unix domain socket. Dropping it stops it at once, and removes the socket.
#[must_use = "a server that is dropped stops"]
pub struct UnixServer {
    listening: Listening,
    /// The listening socket once more, to end the wait for a connection; absent once that is done.
    waker: sync::Mutex<Option<UnixStream>>,
    file: File,
}

impl UnixServer {
    /// Where it listens.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Tells every client that wants to know of a change. Never waits. A handler does the same with
    /// [`Cx::publish`](crate::Cx::publish).
    pub fn publish(&self, change: Change) {
        self.listening.publish(change);
    }

    /// Ends everything that was admitted as coming from this principal: see [`Server::revoke`](crate::Server::revoke). Never waits.
    pub fn revoke(&self, principal: &Principal) {
        self.listening.revoke(principal);
    }

    /// What the server holds at the moment and what it has done, in numbers.
    pub fn stats(&self) -> ServerStats {
        self.listening.stats()
    }

    /// Waits until it is stopped.
    pub fn wait(&self) {
        self.listening.wait();
    }

    /// Stops accepting, removes the socket, gives what runs so much time to end, and closes every connection. Returns when that is done.
    pub fn stop(&self, grace: Duration) {
        let waker = sync::lock(&self.waker).take();
        self.listening.close(|| {
            // Not every system ends a wait like this. A connection does it everywhere, while the path is still ours.
            if waker.as_ref().is_none_or(|waker| waker.shutdown(Shutdown::Both).is_err()) {
                // Whether it is heard is seen by the one who listens.
                let _ = try_connect(self.file.path());
            }
        });
        self.file.remove();
        // Until here it holds the number of the file, so that no other got it.
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
    // A server that is too busy to accept lets a client wait, or says so in another way.
    is_socket && try_connect(path).is_some_and(|e| e == ErrorKind::ConnectionRefused)
}

/// Connects, and says why that failed. It may wait for as long as a server that is stuck lets it, so it is given a thread and a limit.
fn try_connect(path: &Path) -> Option<ErrorKind> {
    let (told, failed) = mpsc::channel();
    let path = path.to_owned();
    let connect = move || {
        // Nobody waits for it any more, if it took too long.
        let _ = told.send(UnixStream::connect(path).err().map(|e| e.kind()));
    };
    sync::spawn("mcp-connect", connect).ok()?;
    failed.recv_timeout(WAKE).ok()?
}
