//! A private folder and its files, on Unix.

use super::{failed, refused};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::vec::Vec;
use core::fmt::Display;
use mcp_proto::auth::StoreFault;
use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat, flock, fstat, fsync, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{DirBuilder, File};
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// What every file is opened with. A pipe without a writer would block.
const SAFE: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

/// Read and write for the owner.
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// A folder that only its owner can use. Its files are opened in it, whatever becomes of its path.
#[derive(Debug)]
pub(super) struct Folder {
    fd: OwnedFd,
    path: PathBuf,
}

/// A lock of a file. The system releases it with the process.
#[derive(Debug)]
pub(super) struct Lock(OwnedFd);

/// What a path should be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Folder,
    File,
}

impl Folder {
    /// Opens a folder. `None` if there is none.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, StoreFault> {
        let found = open_in(CWD, path, path, Kind::Folder, OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(found.map(|fd| Self { fd, path: path.to_owned() }))
    }

    /// Opens a folder, and creates it if there is none.
    pub(super) fn create(path: &Path) -> Result<Self, StoreFault> {
        if let Some(found) = Self::open(path)? {
            return Ok(found);
        }
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|e| failed(path, e))?;
        Self::open(path)?.ok_or_else(|| failed(path, "it was removed"))
    }

    /// Returns the content of a file. `None` if there is none.
    pub(super) fn read(&self, name: &str, max: usize) -> Result<Option<Vec<u8>>, StoreFault> {
        let Some(fd) = self.open_file(name, OFlags::RDONLY)? else { return Ok(None) };
        let (mut bytes, max) = (Vec::new(), max as u64);
        File::from(fd).take(max + 1).read_to_end(&mut bytes).map_err(|e| failed(&self.path.join(name), e))?;
        if bytes.len() as u64 > max {
            return Err(refused(&self.path.join(name), "it is too long", "rm"));
        }
        Ok(Some(bytes))
    }

    /// Locks a file, which is created if there is none. `None` if it is locked already, by this
    /// process or another one.
    pub(super) fn lock(&self, name: &str) -> Result<Option<Lock>, StoreFault> {
        let absent = || failed(&self.path.join(name), "it was removed");
        let fd = self.open_file(name, OFlags::RDWR | OFlags::CREATE)?.ok_or_else(absent)?;
        match rustix::io::retry_on_intr(|| flock(&fd, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => Ok(Some(Lock(fd))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(e) => Err(failed(&self.path.join(name), e)),
        }
    }

    /// Replaces a file as a whole: whatever happens meanwhile, it has the old or the new content.
    /// The caller holds a lock.
    pub(super) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), StoreFault> {
        let new = format!("{name}.new");
        let replaced = self
            .write_new(&new, bytes)
            .and_then(|()| renameat(&self.fd, &new, &self.fd, name).map_err(|e| failed(&self.path.join(name), e)));
        match replaced {
            Ok(()) => self.sync(),
            Err(_) => drop(unlinkat(&self.fd, &new, AtFlags::empty())),
        }
        replaced
    }

    /// Removes a file, if there is one. The caller holds a lock.
    pub(super) fn remove(&self, name: &str) -> Result<(), StoreFault> {
        match unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) => self.sync(),
            Err(Errno::NOENT) => {}
            Err(e) => return Err(failed(&self.path.join(name), e)),
        }
        Ok(())
    }

    fn write_new(&self, name: &str, bytes: &[u8]) -> Result<(), StoreFault> {
        let failed = |e: &dyn Display| failed(&self.path.join(name), e);
        match unlinkat(&self.fd, name, AtFlags::empty()) {
            // One that a process left when it died.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(e) => return Err(failed(&e)),
        }
        let flags = SAFE | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mut file: File = openat(&self.fd, name, flags, PRIVATE).map_err(|e| failed(&e))?.into();
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(|e| failed(&e))
    }

    /// Makes changes of names durable, where the system can.
    fn sync(&self) {
        let _ = fsync(&self.fd);
    }

    fn open_file(&self, name: &str, flags: OFlags) -> Result<Option<OwnedFd>, StoreFault> {
        open_in(self.fd.as_fd(), Path::new(name), &self.path.join(name), Kind::File, flags)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing it is not enough while a program that this process has just forked has it open.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Opens a folder or a file that only its owner can use. `None` if there is none.
fn open_in(at: impl AsFd, name: &Path, path: &Path, kind: Kind, flags: OFlags) -> Result<Option<OwnedFd>, StoreFault> {
    let fd = match openat(&at, name, SAFE | flags, PRIVATE) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(None),
        Err(e) => {
            let is_link = |stat: Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
            return Err(match statat(&at, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if is_link(stat) => refused(path, "it is a link", "rm"),
                _ => failed(path, e),
            });
        }
    };
    let stat = fstat(&fd).map_err(|e| failed(path, e))?;
    let (wanted, repair) = match kind {
        Kind::Folder => (FileType::Directory, "chmod 700"),
        Kind::File => (FileType::RegularFile, "chmod 600"),
    };
    if FileType::from_raw_mode(stat.st_mode) != wanted {
        return Err(failed(path, "it is neither a file nor a folder"));
    }
    let user = geteuid().as_raw();
    if stat.st_uid != user {
        return Err(refused(path, "it belongs to another user", &format!("sudo chown {user}")));
    }
    if Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO) {
        return Err(refused(path, "other users have access to it", repair));
    }
    Ok(Some(fd))
}
