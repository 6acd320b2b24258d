//! Directories that are held open: the system lets no other program rename or remove one meanwhile,
//! so that its path stays its own.

use super::{Entry, SkillFolderError, failed};
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use std::fs::{File, OpenOptions, read_dir};
use std::os::windows::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// `FILE_FLAG_OPEN_REPARSE_POINT` and `FILE_FLAG_BACKUP_SEMANTICS`: a link is opened itself, and a
/// directory too.
const NO_FOLLOW: u32 = 0x0220_0000;

/// `FILE_SHARE_READ`: others may not write, rename or remove it.
const SHARE: u32 = 1;

/// `FILE_ATTRIBUTE_REPARSE_POINT`.
const REPARSE_POINT: u32 = 0x400;

/// An open directory.
pub(super) struct Directory {
    path: PathBuf,
    #[expect(dead_code, reason = "it is held open")]
    held: File,
}

impl Directory {
    pub(super) fn root(path: &Path) -> Result<Entry, SkillFolderError> {
        open(path)
    }

    /// Opens what has this name in it now. What it is follows from what was opened.
    pub(super) fn open(&self, name: &str, _: &Path) -> Result<Entry, SkillFolderError> {
        open(&self.path.join(name))
    }

    /// Returns the names in it, without those that begin with a dot.
    pub(super) fn names(&self, path: &Path, max: usize) -> Result<Vec<String>, SkillFolderError> {
        let mut names = Vec::new();
        for entry in read_dir(&self.path).map_err(|e| failed(path, e))? {
            let name = entry.map_err(|e| failed(path, e))?.file_name();
            let name = name.into_string().map_err(|_| SkillFolderError::NoFile(path.to_owned()))?;
            if name.starts_with('.') {
                continue;
            }
            if names.len() == max {
                return Err(SkillFolderError::TooLarge(path.to_owned()));
            }
            names.push(name);
        }
        Ok(names)
    }
}

fn open(path: &Path) -> Result<Entry, SkillFolderError> {
    let opened = OpenOptions::new().read(true).share_mode(SHARE).custom_flags(NO_FOLLOW).open(path);
    let held = opened.map_err(|e| failed(path, e))?;
    let found = held.metadata().map_err(|e| failed(path, e))?;
    match (found.file_attributes() & REPARSE_POINT == 0, found.is_dir(), found.is_file()) {
        (true, true, _) => Ok(Entry::Directory(Directory { path: path.to_owned(), held })),
        (true, false, true) => Ok(Entry::File(held)),
        _ => Err(SkillFolderError::NoFile(path.to_owned())),
    }
}
