//! The files of a skill in a directory.

#[cfg(all(test, not(shuttle)))]
mod tests;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix::Directory;
#[cfg(windows)]
use windows::Directory;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use mcp_proto::error::escaped;
use mcp_proto::skills::{BadSkill, MAX_BYTES, MAX_FILES};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Maximum number of directories within each other: each one is open until all in it are read.
const MAX_DEPTH: usize = 16;

/// Why a directory is no skill.
#[derive(Debug)]
#[non_exhaustive]
pub enum SkillFolderError {
    /// The operating system refused something.
    Io {
        /// What was opened or read.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// It has a link, a pipe, or another thing that is neither a file nor a directory, or a name
    /// that is not UTF-8.
    NoFile(PathBuf),
    /// It has more files, directories, levels or bytes than a skill may have.
    TooLarge(PathBuf),
    /// Its files are no skill.
    Skill(BadSkill),
}

impl fmt::Display for SkillFolderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |path: &Path| format!("{}", escaped(&path.to_string_lossy()));
        match self {
            Self::Io { path, error } => write!(f, "`{}`: {error}", shown(path)),
            Self::NoFile(path) => write!(f, "`{}` is neither a file nor a directory, or has no name", shown(path)),
            Self::TooLarge(path) => write!(f, "`{}` has more than a skill may have", shown(path)),
            Self::Skill(bad) => bad.fmt(f),
        }
    }
}

impl core::error::Error for SkillFolderError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            Self::Skill(bad) => Some(bad),
            Self::NoFile(_) | Self::TooLarge(_) => None,
        }
    }
}

/// What is found in a directory.
enum Entry {
    Directory(Directory),
    File(File),
}

/// Reads all files below a directory, each with its path in it.
///
/// # Errors
/// [`SkillFolderError`].
pub(crate) fn skill_files(directory: &Path) -> Result<Vec<(String, Vec<u8>)>, SkillFolderError> {
    let mut reader = Reader { files: Vec::new(), directories: 0, bytes: 0 };
    match Directory::root(directory)? {
        Entry::Directory(root) => reader.walk(&root, directory, "", MAX_DEPTH)?,
        Entry::File(_) => return Err(SkillFolderError::NoFile(directory.to_owned())),
    }
    Ok(reader.files)
}

/// Reads directories, and has what was read so far.
struct Reader {
    files: Vec<(String, Vec<u8>)>,
    directories: usize,
    bytes: u64,
}

impl Reader {
    fn walk(&mut self, directory: &Directory, at: &Path, prefix: &str, depth: usize) -> Result<(), SkillFolderError> {
        self.directories += 1;
        if depth == 0 || self.directories > MAX_FILES {
            return Err(SkillFolderError::TooLarge(at.to_owned()));
        }
        // One more than there may be is enough to know that there are too many.
        let names = directory.names(at, 2 * MAX_FILES)?;
        for name in names {
            let path = at.join(&name);
            let inner = format!("{prefix}{name}");
            match directory.open(&name, &path)? {
                Entry::Directory(inside) => self.walk(&inside, &path, &format!("{inner}/"), depth - 1)?,
                Entry::File(file) => self.read(inner, file, &path)?,
            }
        }
        Ok(())
    }

    fn read(&mut self, name: String, file: File, path: &Path) -> Result<(), SkillFolderError> {
        let (mut bytes, left) = (Vec::new(), MAX_BYTES.saturating_sub(self.bytes));
        file.take(left + 1).read_to_end(&mut bytes).map_err(|error| failed(path, error))?;
        self.bytes += bytes.len() as u64;
        if self.bytes > MAX_BYTES || self.files.len() == MAX_FILES {
            return Err(SkillFolderError::TooLarge(path.to_owned()));
        }
        self.files.push((name, bytes));
        Ok(())
    }
}

fn failed(path: &Path, error: impl Into<io::Error>) -> SkillFolderError {
    SkillFolderError::Io { path: path.to_owned(), error: error.into() }
}
