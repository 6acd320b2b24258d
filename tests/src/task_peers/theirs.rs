//! The programs of others.

use std::path::PathBuf;
use std::process::Command;

use crate::interop::setup::{beside, copy, install_list, install_packages, install_rmcp, node_of};
use crate::sources;

/// What the rows share: the installed packages, and our programs.
#[derive(Clone, Debug)]
pub struct Ground {
    node: PathBuf,
    packages: PathBuf,
    python: PathBuf,
    rmcp: PathBuf,
    programs: PathBuf,
    pub(super) ours: PathBuf,
}

impl Ground {
    /// Installs what is missing.
    ///
    /// # Errors
    /// The part that could not be installed, and the output of the installer.
    pub fn new() -> Result<Self, String> {
        let programs = sources::root().join("tests/tasks");
        let packages = install_packages("tasks", &programs)?;
        copy(&programs, &packages, "ext.mjs")?;
        let python = install_list("tasks-python", &programs.join("requirements.txt"))?;
        let (rmcp, ours) = (install_rmcp()?, beside("mcp-tests")?);
        Ok(Self { node: node_of(&packages), packages, python, rmcp, programs, ours })
    }

    /// A client on `ext-tasks`, with these words before the program of the server.
    pub(super) fn ext(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(self.packages.join("ext.mjs")).args(words);
        command
    }

    /// A client on `rmcp`.
    pub(super) fn rmcp_client(&self) -> Command {
        let mut command = Command::new(&self.rmcp);
        command.arg("follow");
        command
    }

    /// A server on `rmcp`.
    pub(super) fn rmcp_server(&self) -> Command {
        let mut command = Command::new(&self.rmcp);
        command.args(["serve", "tasks"]);
        command
    }

    /// A server on FastMCP.
    pub(super) fn fastmcp_server(&self) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(self.programs.join("fastmcp_server.py"));
        command
    }
}
