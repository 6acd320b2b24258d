//! Directories by their handles: each is opened in the one that contains it, whatever becomes of
//! its path.

use super::{Entry, SkillFolderError, failed};
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use rustix::path::Arg;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// What everything is opened with. A pipe without a writer would block.
const SAFE: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// An open directory.
pub(super) struct Directory(OwnedFd);

impl Directory {
    pub(super) fn root(path: &Path) -> Result<Entry, SkillFolderError> {
        open_in(CWD, path, path)
    }

    /// Opens what has this name in it now. What it is follows from what was opened.
    pub(super) fn open(&self, name: &str, path: &Path) -> Result<Entry, SkillFolderError> {
        open_in(&self.0, name, path)
    }

    /// Returns the names in it, without those that begin with a dot.
    pub(super) fn names(&self, path: &Path, max: usize) -> Result<Vec<String>, SkillFolderError> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0).map_err(|e| failed(path, e))? {
            let entry = entry.map_err(|e| failed(path, e))?;
            let name = entry.file_name();
            if name.to_bytes().starts_with(b".") {
                continue;
            }
            let name = name.to_str().map_err(|_| SkillFolderError::NoFile(path.to_owned()))?;
            if names.len() == max {
                return Err(SkillFolderError::TooLarge(path.to_owned()));
            }
            names.push(name.to_owned());
        }
        Ok(names)
    }
}

fn open_in(at: impl AsFd, name: impl Arg, path: &Path) -> Result<Entry, SkillFolderError> {
    let opened = openat(at, name, OFlags::RDONLY | SAFE, Mode::empty()).map_err(|e| match e {
        // What the systems say of a link, and of a socket.
        Errno::LOOP | Errno::MLINK | Errno::NXIO | Errno::OPNOTSUPP => SkillFolderError::NoFile(path.to_owned()),
        e => failed(path, e),
    })?;
    match FileType::from_raw_mode(fstat(&opened).map_err(|e| failed(path, e))?.st_mode) {
        FileType::Directory => Ok(Entry::Directory(Directory(opened))),
        FileType::RegularFile => Ok(Entry::File(File::from(opened))),
        _ => Err(SkillFolderError::NoFile(path.to_owned())),
    }
}
