//! A folder and its files, on Windows. The folder of a user is private there.

use super::{failed, refused};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::vec::Vec;
use mcp_proto::auth::StoreFault;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::windows::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// `FILE_FLAG_OPEN_REPARSE_POINT`: a link is opened itself.
const NO_FOLLOW: u32 = 0x0020_0000;

/// `ERROR_SHARING_VIOLATION`: the file is open elsewhere.
const SHARING_VIOLATION: i32 = 32;

/// A folder.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

/// A file that is open exclusively. The system closes it with the process.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "it is held open")] File);

impl Folder {
    /// Opens a folder. `None` if there is none.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, StoreFault> {
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_symlink() => Err(refused(path, "it is a link", "rmdir")),
            Ok(_) => Ok(Some(Self { path: path.to_owned() })),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(failed(path, e)),
        }
    }

    /// Opens a folder, and creates it if there is none.
    pub(super) fn create(path: &Path) -> Result<Self, StoreFault> {
        fs::create_dir_all(path).map_err(|e| failed(path, e))?;
        Self::open(path)?.ok_or_else(|| failed(path, "it was removed"))
    }

    /// Returns the content of a file. `None` if there is none.
    pub(super) fn read(&self, name: &str, max: usize) -> Result<Option<Vec<u8>>, StoreFault> {
        let path = self.path.join(name);
        let file = match OpenOptions::new().read(true).custom_flags(NO_FOLLOW).open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed(&path, e)),
        };
        if !file.metadata().map_err(|e| failed(&path, e))?.is_file() {
            return Err(refused(&path, "it is a link", "del"));
        }
        let (mut bytes, max) = (Vec::new(), max as u64);
        file.take(max + 1).read_to_end(&mut bytes).map_err(|e| failed(&path, e))?;
        if bytes.len() as u64 > max {
            return Err(refused(&path, "it is too long", "del"));
        }
        Ok(Some(bytes))
    }

    /// Locks a file, which is created if there is none. `None` if it is locked already, by this
    /// process or another one.
    pub(super) fn lock(&self, name: &str) -> Result<Option<Lock>, StoreFault> {
        let path = self.path.join(name);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).share_mode(0).custom_flags(NO_FOLLOW);
        match options.open(&path) {
            Ok(file) => Ok(Some(Lock(file))),
            Err(e) if e.raw_os_error() == Some(SHARING_VIOLATION) => Ok(None),
            Err(e) => Err(failed(&path, e)),
        }
    }

    /// Replaces a file as a whole: whatever happens meanwhile, it has the old or the new content.
    /// The caller holds a lock.
    pub(super) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), StoreFault> {
        let (path, new) = (self.path.join(name), self.path.join(format!("{name}.new")));
        let written = self.remove(&format!("{name}.new")).and_then(|()| {
            let file = OpenOptions::new().write(true).create_new(true).open(&new);
            let written = file.and_then(|mut file| {
                file.write_all(bytes)?;
                file.sync_all()
            });
            written.and_then(|()| fs::rename(&new, &path)).map_err(|e| failed(&path, e))
        });
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written
    }

    /// Removes a file, if there is one. The caller holds a lock.
    pub(super) fn remove(&self, name: &str) -> Result<(), StoreFault> {
        let path = self.path.join(name);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(failed(&path, e)),
            _ => Ok(()),
        }
    }
}
