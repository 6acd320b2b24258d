//! Logins in files: one file for each record, in a folder that only its user can read.

#[cfg(all(test, not(shuttle)))]
mod tests;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix::Folder;
#[cfg(windows)]
use windows::Folder;

use super::store::TokenStore;
use crate::os::environment_path;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::fmt::Write;
use core::time::Duration;
use mcp_proto::auth::{BadRecord, Purpose, Record, SaveFault, StoreFault, StoreKey, Stored, Version};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

/// Maximum length of a record, in bytes.
const MAX_RECORD: usize = 64 << 10;

/// Maximum time to wait for another process that replaces the same record.
const WRITE_TIME: Duration = Duration::from_secs(5);

/// Bounds of the pauses in which that is awaited.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// A store in a folder: one file for each record, named by 32 digits of a hash of the server and
/// the account. The folder and the files are for their owner alone (modes `0700` and `0600`). What
/// is not, what another user owns, and what is a link is refused, and the error names the command
/// that repairs it.
///
/// Processes share a folder: a record is replaced as a whole by a new file, and the leases are
/// locks of the operating system, which end with their process. A record that a newer version of
/// this crate wrote is refused and left as it is.
#[derive(Clone, Debug)]
pub struct FileStore {
    folder: PathBuf,
}

impl FileStore {
    /// Creates a store in this folder, which is created with the first record.
    pub fn at(folder: impl AsRef<Path>) -> Self {
        let folder = folder.as_ref();
        // The working directory may change.
        Self { folder: std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()) }
    }

    /// Creates the store of a program among the files of its user: `mcp/auth/PROGRAM` in
    /// `$XDG_STATE_HOME` (default `~/.local/state`), in `~/Library/Application Support` on macOS,
    /// or in `%LOCALAPPDATA%` on Windows. Each program has its own store, since its clients are
    /// registered under its name. Characters of the name that are no letters, digits, dots, hyphens
    /// or underscores are replaced.
    ///
    /// # Errors
    /// [`StoreFault`] if the environment names no such folder.
    pub fn user(program: &str) -> Result<Self, StoreFault> {
        let home = user_folder(environment_path)?;
        Ok(Self::at(home.join("mcp").join("auth").join(sanitized(program))))
    }

    /// Returns the path of the file of a record, which need not exist.
    pub fn path(&self, key: &StoreKey) -> PathBuf {
        self.folder.join(file_name(key))
    }

    fn stored(&self, folder: &Folder, name: &str) -> Result<Stored, StoreFault> {
        let Some(bytes) = folder.read(name, MAX_RECORD)? else { return Ok(Stored::default()) };
        let path = self.folder.join(name);
        let record = Record::read(&bytes).map_err(|why| match why {
            BadRecord::Form => refused(&path, "it is no record of a login", "rm"),
            BadRecord::Newer(version) => failed(&path, format!("a newer version wrote it (format {version})")),
        })?;
        Ok(Stored { record: Some(Box::new(record)), version: Version::of(&bytes) })
    }

    fn replace(&self, key: &StoreKey, expected: Version, record: Option<&Record>) -> Result<Version, SaveFault> {
        let (folder, name) = (Folder::create(&self.folder).map_err(SaveFault::Fault)?, file_name(key));
        let _write = self.write_lock(&folder, &format!("{name}.write")).map_err(SaveFault::Fault)?;
        let found = self.stored(&folder, &name).map_err(SaveFault::Fault)?;
        if found.version != expected {
            return Err(SaveFault::Conflict(found));
        }
        match record {
            Some(record) => {
                let bytes = record.to_json();
                folder.replace(&name, &bytes).map_err(SaveFault::Fault)?;
                Ok(Version::of(&bytes))
            }
            None => {
                folder.remove(&name).map_err(SaveFault::Fault)?;
                Ok(Version::ABSENT)
            }
        }
    }

    /// Waits for other processes, which hold the lock for a few milliseconds.
    fn write_lock(&self, folder: &Folder, name: &str) -> Result<impl Send + use<>, StoreFault> {
        let (begun, mut pause) = (Instant::now(), PAUSES.0);
        loop {
            match folder.lock(name)? {
                Some(lock) => return Ok(lock),
                None if begun.elapsed() > WRITE_TIME => {
                    return Err(failed(&self.folder.join(name), "another process does not release it"));
                }
                None => thread::sleep(pause),
            }
            pause = (pause * 2).min(PAUSES.1);
        }
    }
}

impl TokenStore for FileStore {
    fn load(&self, key: &StoreKey) -> Result<Stored, StoreFault> {
        let folder = Folder::open(&self.folder)?;
        folder.map_or_else(|| Ok(Stored::default()), |folder| self.stored(&folder, &file_name(key)))
    }

    fn save(&self, key: &StoreKey, expected: Version, record: Option<&Record>) -> Result<Version, SaveFault> {
        self.replace(key, expected, record)
    }

    fn lease(&self, key: &StoreKey, purpose: Purpose) -> Result<Option<Box<dyn Send>>, StoreFault> {
        let end = match purpose {
            Purpose::Login => "login",
            Purpose::Change => "lock",
        };
        let lock = Folder::create(&self.folder)?.lock(&format!("{}.{end}", file_name(key)))?;
        Ok(lock.map(|lock| Box::new(lock) as _))
    }
}

/// Returns the name of the file of a record.
fn file_name(key: &StoreKey) -> String {
    key.digest().iter().take(16).fold(String::new(), |mut name, byte| {
        // A string takes everything.
        let _ = write!(name, "{byte:02x}");
        name
    })
}

/// Returns the folder for the state of programs of this user. `path` returns a variable of the
/// environment that is an absolute path.
fn user_folder(path: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, StoreFault> {
    let (found, needed) = if cfg!(windows) {
        (path("LOCALAPPDATA"), "LOCALAPPDATA")
    } else if cfg!(target_vendor = "apple") {
        (path("HOME").map(|home| home.join("Library").join("Application Support")), "HOME")
    } else {
        let home = || path("HOME").map(|home| home.join(".local").join("state"));
        (path("XDG_STATE_HOME").or_else(home), "HOME")
    };
    found.ok_or_else(|| StoreFault(format!("the environment variable {needed} is no absolute path")))
}

/// Returns the name of a program as that of a folder.
fn sanitized(program: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
    let name: String = program.chars().take(64).map(|letter| if plain(letter) { letter } else { '_' }).collect();
    match name.trim_matches('.') {
        "" => "program".to_owned(),
        name => name.to_owned(),
    }
}

fn failed(path: &Path, why: impl fmt::Display) -> StoreFault {
    StoreFault(format!("{}: {why}", path.display()))
}

/// An error that names the command that repairs it.
fn refused(path: &Path, why: &str, command: &str) -> StoreFault {
    StoreFault(format!("{}: {why}; to repair it: {command} {}", path.display(), quoted(path)))
}

/// Returns a path as one word of a shell.
fn quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'-' | b'_' | b':' | b'\\');
    match path.bytes().all(plain) {
        true => path.into_owned(),
        false if cfg!(windows) => format!("\"{path}\""),
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}
