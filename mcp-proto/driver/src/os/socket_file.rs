//! The file of a Unix domain socket: private as soon as it exists, and removed with its server.

use crate::connect::not_bound;
use alloc::borrow::ToOwned;
#[cfg(any(target_os = "linux", target_os = "android"))]
use alloc::format;
use mcp_proto::exchange::Credentials;
use rustix::fs::{AtFlags, CWD, Mode, chmodat};
#[cfg(any(target_os = "linux", target_os = "android"))]
use rustix::fs::{FileType, OFlags, fstat, open};
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketType};
use std::fs;
use std::io::{self, ErrorKind};
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::os::fd::AsRawFd;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Read and write for the owner: connecting requires write permission.
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// The file of a listening socket. Dropping it removes the file, unless another one has replaced
/// it.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Unique until the file is removed; the next file may get the same.
    identity: (u64, u64),
    removed: AtomicBool,
}

impl SocketFile {
    /// Listens at this path.
    ///
    /// Only this user can connect (mode `0600`), as soon as the socket exists and with any umask.
    /// Not every system checks that mode, but all of them check the directory. A socket at the path
    /// without a listener, left by an earlier server, is removed. Anything else there is an error:
    /// a socket in use, any other file, or a link, which is not followed. Of two servers that start
    /// at the same time at one path, one may lose its socket.
    ///
    /// Drop the listener after the file: until then, no other file gets its number.
    ///
    /// # Errors
    /// The error of the operating system, with the path.
    pub fn listen(path: &Path) -> io::Result<(UnixListener, Self)> {
        // The working directory may have changed when the file is removed.
        let path = std::path::absolute(path)?;
        bind(&path).and_then(BoundSocket::listen).map_err(|e| not_bound(&path.display(), &e))
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Connects to the socket and closes the connection, so that a thread that waits for one wakes
    /// up. Does not wait.
    pub fn wake(&self) {
        // An error means that no thread waits, or that the file is not ours any more.
        let _ = try_connect(&self.path);
    }

    /// Removes the file, once.
    pub fn remove(&self) {
        let is_ours = || identity(&self.path).is_ok_and(|found| found == self.identity);
        if !self.removed.swap(true, Ordering::Relaxed) && is_ours() {
            // Another process may have removed it at this moment.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Returns the process that connected to this Unix socket, if the system reports it: Linux and
/// Android do.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn peer_credentials(socket: impl AsFd) -> Option<Credentials> {
    let peer = net::sockopt::socket_peercred(socket).ok()?;
    // The system reports 0 for a process that this one cannot see.
    let pid = u32::try_from(peer.pid.as_raw_pid()).ok().filter(|pid| *pid != 0);
    Some(Credentials { pid, uid: peer.uid.as_raw(), gid: peer.gid.as_raw() })
}

/// Returns the process that connected to this Unix socket, if the system reports it: Linux and
/// Android do.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn peer_credentials(_: impl AsFd) -> Option<Credentials> {
    None
}

/// Binds a socket at this path, replacing an abandoned one.
fn bind(path: &Path) -> io::Result<BoundSocket> {
    match BoundSocket::at(path) {
        Err(e) if e.kind() == ErrorKind::AddrInUse && is_abandoned(path) => {
            fs::remove_file(path)?;
            BoundSocket::at(path)
        }
        bound => bound,
    }
}

fn is_abandoned(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    // A server that is too busy to accept is another error.
    is_socket && try_connect(path).is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused)
}

/// Connects without waiting: a server whose queue is full is an error.
fn try_connect(path: &Path) -> io::Result<()> {
    let (address, socket) = (SocketAddrUnix::new(path)?, stream_socket()?);
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok(net::connect(&socket, &address)?)
}

/// A socket with a new file that only this user may connect to. It does not listen yet, so
/// connections are refused.
#[derive(Debug)]
struct BoundSocket {
    socket: OwnedFd,
    file: SocketFile,
}

impl BoundSocket {
    /// Creates a socket and its file at this path. Fails if anything exists there, even a link.
    fn at(path: &Path) -> io::Result<Self> {
        let address = SocketAddrUnix::new(path)?;
        let socket = stream_socket()?;
        // On these systems `bind` gives the file the mode of the socket, reduced by the umask. On
        // others the mode of a socket has no effect.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        rustix::fs::fchmod(&socket, PRIVATE)?;
        net::bind(&socket, &address)?;
        let file = SocketFile { identity: identity(path)?, path: path.to_owned(), removed: AtomicBool::new(false) };
        Ok(Self { socket, file })
    }

    /// Listens. The mode of the file is set before the first connection is possible, with any
    /// umask.
    fn listen(self) -> io::Result<(UnixListener, SocketFile)> {
        restrict(&self.file.path)?;
        // With the longest queue that the system allows.
        net::listen(&self.socket, i32::MAX)?;
        Ok((self.socket.into(), self.file))
    }
}

/// Creates a socket that no program inherits.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn stream_socket() -> io::Result<OwnedFd> {
    Ok(net::socket_with(AddressFamily::UNIX, SocketType::STREAM, net::SocketFlags::CLOEXEC, None)?)
}

/// The same, for systems that need two steps.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn stream_socket() -> io::Result<OwnedFd> {
    let socket = net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    Ok(socket)
}

/// Makes the socket at this path private. Does not follow a link that has replaced it.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn restrict(path: &Path) -> io::Result<()> {
    // Linux has no call that changes the mode of a file without following a link, but a descriptor
    // identifies the file itself.
    let file = open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let mode = fstat(&file)?.st_mode;
    match FileType::from_raw_mode(mode) {
        FileType::Socket if Mode::from_raw_mode(mode) == PRIVATE => Ok(()),
        FileType::Socket => {
            let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
            Ok(chmodat(CWD, itself, PRIVATE, AtFlags::empty())?)
        }
        _ => Err(io::Error::new(ErrorKind::AddrInUse, "another file has taken the place of the socket")),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn restrict(path: &Path) -> io::Result<()> {
    Ok(chmodat(CWD, path, PRIVATE, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Returns the device of a file and its number there. A file that replaces it has different ones.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use rustix::process::umask;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixStream;
    use std::sync::{Mutex, PoisonError};

    /// The umask belongs to the process.
    static UMASK: Mutex<()> = Mutex::new(());

    /// Returns an unused path for this test.
    fn free(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("mcp-proto-file-{}-{name}", std::process::id()));
        drop(fs::remove_file(&path));
        path
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).expect("a file").permissions().mode() & 0o7777
    }

    fn refused(path: &Path) -> ErrorKind {
        UnixStream::connect(path).expect_err("nothing listens").kind()
    }

    // covers: S3-45
    #[test]
    fn socket_is_private_before_it_listens() {
        let path = free("private");
        let held = UMASK.lock().unwrap_or_else(PoisonError::into_inner);
        for (mask, bound) in [(0o000, 0o600), (0o077, 0o600), (0o200, 0o400)] {
            let before = umask(Mode::from_raw_mode(mask));
            let socket = BoundSocket::at(&path);
            umask(before);
            let socket = socket.expect("bound");
            assert_eq!(mode(&path), bound, "bound under {mask:03o}");
            assert_eq!(refused(&path), ErrorKind::ConnectionRefused, "under {mask:03o}");
            let (listener, file) = socket.listen().expect("listening");
            assert_eq!(mode(&path), 0o600, "listening under {mask:03o}");
            UnixStream::connect(&path).expect("connected");
            drop((listener, file));
            assert!(!path.exists());
        }
        drop(held);
    }

    #[test]
    fn mode_is_not_changed_through_a_link() {
        let (link, target) = (free("link"), free("target"));
        fs::write(&target, "a file of someone").expect("written");
        fs::set_permissions(&target, Permissions::from_mode(0o640)).expect("its owner's");
        symlink(&target, &link).expect("a link");
        assert!(restrict(&link).is_err() && restrict(&target).is_err());
        assert_eq!(mode(&target), 0o640);
        assert_eq!(BoundSocket::at(&link).expect_err("a link is there").kind(), ErrorKind::AddrInUse);
        fs::remove_file(&target).expect("removed");
        assert_eq!(BoundSocket::at(&link).expect_err("a link to nothing is there").kind(), ErrorKind::AddrInUse);
        assert!(!target.exists());
        fs::remove_file(&link).expect("removed");
    }

    // covers: S3-45
    #[test]
    fn abandoned_socket_is_replaced_and_nothing_else() {
        let path = free("abandoned");
        let (listener, file) = SocketFile::listen(&path).expect("listening");
        let used = SocketFile::listen(&path).expect_err("in use");
        assert_eq!(used.kind(), ErrorKind::AddrInUse);
        assert!(used.to_string().contains("abandoned"), "{used}");
        core::mem::forget(file);
        drop(listener);
        // A program that another test starts at this moment has a copy of the listener until it
        // executes its own code.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let (listener, file) = loop {
            match SocketFile::listen(&path) {
                Err(e) if e.kind() == ErrorKind::AddrInUse && std::time::Instant::now() < until => {}
                replaced => break replaced.expect("it replaces the socket"),
            }
        };
        file.wake();
        listener.accept().expect("woken");
        file.remove();
        fs::write(&path, "a file of someone").expect("written");
        assert_eq!(SocketFile::listen(&path).expect_err("a file is there").kind(), ErrorKind::AddrInUse);
        drop(file);
        assert!(path.exists(), "another file has replaced the socket");
        fs::remove_file(&path).expect("removed");
    }
}
