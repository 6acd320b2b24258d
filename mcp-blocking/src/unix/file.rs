//! The file of a Unix domain socket: private as soon as it exists, and removed with its server.

use crate::listen::Flag;
use rustix::fs::{AtFlags, CWD, Mode, chmodat};
#[cfg(any(target_os = "linux", target_os = "android"))]
use rustix::fs::{FileType, OFlags, fstat, open};
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketType};
use std::fs;
use std::io;
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::io::ErrorKind;
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Read and write for the owner: connecting requires write permission.
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// A socket with a new file that only this user may connect to. It does not listen yet, so
/// connections are refused.
#[derive(Debug)]
pub(super) struct Bound {
    socket: OwnedFd,
    file: File,
}

/// The socket in the file system. Dropping it removes the socket, unless another file has replaced
/// it.
#[derive(Debug)]
pub(super) struct File {
    path: PathBuf,
    /// Unique until the file is removed; the next file may get the same.
    identity: (u64, u64),
    removed: Flag,
}

impl Bound {
    /// Creates a socket and its file at this path. Fails if anything exists there, even a link.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        let address = SocketAddrUnix::new(path)?;
        let socket = stream_socket()?;
        // On these systems `bind` gives the file the mode of the socket, reduced by the umask. On
        // others the mode of a socket has no effect.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        rustix::fs::fchmod(&socket, PRIVATE)?;
        net::bind(&socket, &address)?;
        let file = File { identity: identity(path)?, path: path.to_owned(), removed: Flag::default() };
        Ok(Self { socket, file })
    }

    /// Listens. The mode of the file is set before the first connection is possible, with any
    /// umask.
    pub(super) fn listen(self) -> io::Result<(UnixListener, File)> {
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

impl File {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file, once.
    pub(super) fn remove(&self) {
        if !self.removed.set() && identity(&self.path).is_ok_and(|found| found == self.identity) {
            // Another process may have removed it at this moment.
            drop(fs::remove_file(&self.path));
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Returns the device of a file and its number there. A file that replaces it has different ones.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}

#[cfg(all(test, target_os = "linux", not(shuttle)))]
mod tests {
    use super::*;
    use rustix::process::umask;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixStream;
    use std::sync::{Mutex, PoisonError};

    /// The umask belongs to the process.
    static UMASK: Mutex<()> = Mutex::new(());

    /// Returns an unused path for this test.
    fn free(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("mcp-blocking-file-{}-{name}", std::process::id()));
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
            let socket = Bound::at(&path);
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
        assert_eq!(Bound::at(&link).expect_err("a link is there").kind(), ErrorKind::AddrInUse);
        fs::remove_file(&target).expect("removed");
        assert_eq!(Bound::at(&link).expect_err("a link to nothing is there").kind(), ErrorKind::AddrInUse);
        assert!(!target.exists());
        fs::remove_file(&link).expect("removed");
    }
}
