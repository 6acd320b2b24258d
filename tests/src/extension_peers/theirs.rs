//! The programs of others.

use std::path::PathBuf;
use std::process::Command;

use super::ours::write;
use crate::interop::setup::{beside, copy, empty, install_packages, install_python, install_rmcp, node_of, place};
use crate::sources;

/// What the rows share: the installed packages, our programs, and the folder of the skill.
#[derive(Clone, Debug)]
pub struct Ground {
    node: PathBuf,
    packages: PathBuf,
    python: PathBuf,
    rmcp: PathBuf,
    programs: PathBuf,
    pub(super) ours: PathBuf,
    pub(super) folder: PathBuf,
}

impl Ground {
    /// Installs what is missing, and writes the skill.
    ///
    /// # Errors
    /// The part that could not be installed, and the output of the installer.
    pub fn new() -> Result<Self, String> {
        let programs = sources::root().join("tests/extensions");
        let packages = install_packages("extensions", &programs)?;
        for script in ["apps.mjs", "skills.mjs"] {
            copy(&programs, &packages, script)?;
        }
        let python = install_python("requirements-fastmcp.txt")?;
        let (rmcp, ours) = (install_rmcp()?, beside("mcp-tests")?);
        let folder = place("extensions-skills")?;
        empty(&folder).and_then(|()| write(&folder)).map_err(|why| format!("{}: {why}", folder.display()))?;
        Ok(Self { node: node_of(&packages), packages, python, rmcp, programs, ours, folder })
    }

    fn script(&self, name: &str, words: &[&str]) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(self.packages.join(name)).args(words);
        command
    }

    /// A client on the TypeScript SDK of this era, before the program of the server.
    pub(super) fn node_client(&self, era: &str) -> Command {
        self.script("skills.mjs", &[era])
    }

    /// A server on the TypeScript SDK.
    pub(super) fn node_server(&self) -> Command {
        let mut command = self.script("skills.mjs", &["serve"]);
        command.arg(&self.folder);
        command
    }

    /// A host on `ext-apps`.
    pub(super) fn host(&self, era: &str) -> Command {
        self.script("apps.mjs", &[era])
    }

    /// A client on `rmcp`.
    pub(super) fn rmcp_client(&self) -> Command {
        let mut command = Command::new(&self.rmcp);
        command.arg("skills");
        command
    }

    /// A server on `rmcp`.
    pub(super) fn rmcp_server(&self) -> Command {
        let mut command = Command::new(&self.rmcp);
        command.args(["serve", "skills"]).arg(&self.folder);
        command
    }

    /// A client on FastMCP.
    pub(super) fn fastmcp_client(&self) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(self.programs.join("fastmcp_skills.py")).arg("read");
        command
    }

    /// A server on FastMCP.
    pub(super) fn fastmcp_server(&self) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(self.programs.join("fastmcp_skills.py")).arg("serve").arg(&self.folder);
        command
    }
}
