//! Our clients and servers beside the programs of a real network: curl, OpenSSL, and reverse
//! proxies. Each program is a child process with a directory, a configuration and a port of its
//! own.
//!
//! A group of rows is a file of this module with a function `rows`, which [`rows`] calls.

mod commands;
mod nginx;
mod ours;
mod proxies;
mod quickstart;
mod redirects;
mod tls_clients;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::certificates::{Authority, Leaf};
use crate::interop::setup;

/// Maximum time of one step of a row, on a busy machine.
const BOUND: Duration = Duration::from_secs(20);

/// What the rows share.
pub struct Ground {
    folder: PathBuf,
    authority: Authority,
}

impl Ground {
    /// Creates its directory again, with a certificate for this machine (`cert.pem`, `key.pem`) and
    /// the authority of it (`root.pem`), which no system trusts.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn new() -> Result<Self, String> {
        let (folder, authority) = (setup::place("network")?, Authority::new("the tests of the network"));
        let made = setup::empty(&folder).and_then(|()| authority.write(&folder, &Leaf::default()));
        made.map_err(|why| format!("{}: {why}", folder.display()))?;
        Ok(Self { folder, authority })
    }

    /// Returns the path of a file or a directory in its directory.
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns an empty directory for the files of one row.
    fn scratch(&self, name: &str) -> Result<PathBuf, String> {
        let folder = self.path(name);
        setup::empty(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        Ok(folder)
    }

    /// Returns its directory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// The check of a row. Returns its result in words.
type Check = Box<dyn Fn(&Ground) -> Result<String, String>>;

/// One row.
pub struct Row {
    /// Its name.
    pub name: String,
    check: Check,
}

impl Row {
    fn new(name: impl Into<String>, check: impl Fn(&Ground) -> Result<String, String> + 'static) -> Self {
        Self { name: name.into(), check: Box::new(check) }
    }

    /// Runs it.
    ///
    /// # Errors
    /// The fault.
    pub fn run(&self, ground: &Ground) -> Result<String, String> {
        (self.check)(ground)
    }
}

/// Returns the rows of all groups.
pub fn rows() -> Vec<Row> {
    [tls_clients::rows(), nginx::rows(), redirects::rows(), proxies::rows(), quickstart::rows()]
        .into_iter()
        .flatten()
        .collect()
}

fn expect(is_so: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(why()) }
}
