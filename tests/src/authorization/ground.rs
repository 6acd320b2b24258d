//! What the rows share, and what each has of its own.

use std::path::PathBuf;

use super::servers::Servers;
use super::user::User;
use crate::adapters::Adapter;
use crate::interop::setup::{self, copy, install_packages, node_of};
use crate::sources;

/// What the rows share: the installed packages, and a directory.
#[derive(Clone, Debug)]
pub struct Ground {
    /// The program that runs JavaScript.
    pub(super) node: PathBuf,
    /// Our program for it.
    pub(super) script: PathBuf,
    scratch: PathBuf,
}

impl Ground {
    /// Installs what is missing.
    ///
    /// # Errors
    /// The part that could not be installed, and the output of the installer.
    pub fn new() -> Result<Self, String> {
        let from = sources::root().join("tests/auth");
        let place = install_packages("auth", &from)?;
        copy(&from, &place, "op.mjs")?;
        let scratch = setup::place("auth-stores")?;
        setup::empty(&scratch).map_err(|why| format!("{}: {why}", scratch.display()))?;
        Ok(Self { node: node_of(&place), script: place.join("op.mjs"), scratch })
    }

    /// Starts the servers of one row, with a user who has never logged in.
    pub(super) fn row(&self, name: &str, adapter: Adapter) -> Result<(Servers, User), String> {
        let store = self.scratch.join(format!("{name}-{}", adapter.name()).replace(' ', "-"));
        Ok((Servers::start(self)?, User::new(adapter, store)))
    }
}
