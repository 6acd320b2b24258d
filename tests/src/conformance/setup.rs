//! Installs the suite.

use std::path::PathBuf;

use crate::interop::setup::{beside, install_packages, node_of};
use crate::sources;

/// The adapters, by their names in the arguments of programs.
pub const ADAPTERS: [&str; 2] = ["blocking", "smol"];

/// The installation.
#[derive(Clone, Debug)]
pub struct Installed {
    /// The program that runs JavaScript.
    pub node: PathBuf,
    /// The suite.
    pub suite: PathBuf,
    /// The program `mcp-tests`, which is our clients and servers.
    pub program: PathBuf,
    /// The selected [`ADAPTERS`].
    pub adapters: Vec<&'static str>,
}

/// Installs what is missing, for a run of these adapters.
///
/// # Errors
/// The part that could not be installed, and the output of the installer.
pub fn install(adapters: Vec<&'static str>) -> Result<Installed, String> {
    let place = install_packages("conformance", &folder())?;
    let suite = place.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    Ok(Installed { node: node_of(&place), suite, program: beside("mcp-tests")?, adapters })
}

/// Returns the directory of the pinned versions and the lists.
pub fn folder() -> PathBuf {
    sources::root().join("tests/conformance")
}
