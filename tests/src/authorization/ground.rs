//! What the rows share, and what each has of its own.

use std::path::PathBuf;

use super::user::User;
use crate::adapters::Adapter;
use crate::interop::setup::{self, copy, install_list, install_packages, node_of};
use crate::sources;

/// Our programs that import packages.
const SCRIPTS: [&str; 6] =
    ["op.mjs", "jose.mjs", "guarded_client.mjs", "guarded_server.mjs", "worker.mjs", "worker.capnp"];

/// What the rows share: the installed packages, and a directory.
#[derive(Clone, Debug)]
pub struct Ground {
    /// The program that runs JavaScript.
    pub(crate) node: PathBuf,
    /// The interpreter of Python, with its packages.
    pub(crate) python: PathBuf,
    /// The Workers runtime.
    pub(super) workerd: PathBuf,
    /// The directory of the packages for JavaScript, with our programs beside them.
    pub(crate) packages: PathBuf,
    /// The directory of our programs.
    pub(crate) programs: PathBuf,
    scratch: PathBuf,
}

impl Ground {
    /// Installs what is missing.
    ///
    /// # Errors
    /// The part that could not be installed, and the output of the installer.
    pub fn new() -> Result<Self, String> {
        let programs = sources::root().join("tests/auth");
        let packages = install_packages("auth", &programs)?;
        for file in SCRIPTS {
            copy(&programs, &packages, file)?;
        }
        let python = install_list("auth-python", &programs.join("requirements.txt"))?;
        let scratch = setup::place("auth-stores")?;
        setup::empty(&scratch).map_err(|why| format!("{}: {why}", scratch.display()))?;
        let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "64" };
        let workerd = packages.join(format!("node_modules/@cloudflare/workerd-linux-{machine}/bin/workerd"));
        Ok(Self { node: node_of(&packages), python, workerd, packages, programs, scratch })
    }

    /// Returns a user who has never logged in, for one row.
    pub(super) fn user(&self, name: &str, adapter: Adapter) -> User {
        User::new(adapter, self.scratch.join(format!("{name}-{}", adapter.name()).replace(' ', "-")))
    }
}
