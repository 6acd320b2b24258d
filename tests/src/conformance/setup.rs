//! Installs the suite.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use crate::interop::setup::{beside, copy, execute, install_once, place};
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
    let place = place("conformance")?;
    let from = folder();
    install_once(&place, &from.join("package-lock.json"), || {
        for file in ["package.json", "package-lock.json", ".npmrc"] {
            copy(&from, &place, file)?;
        }
        execute(Command::new("npm").args(["ci", "--ignore-scripts", "--loglevel=error"]).current_dir(&place))
    })?;
    let modules = place.join("node_modules");
    let suite = modules.join("@modelcontextprotocol/conformance/dist/index.js");
    // The one of the lock file, which has none for some machines.
    let node = Some(modules.join(".bin/node")).filter(|node| node.exists());
    let node = node.or_else(|| env::var_os("NODE").map(PathBuf::from));
    Ok(Installed { node: node.unwrap_or_else(|| "node".into()), suite, program: beside("mcp-tests")?, adapters })
}

/// Returns the directory of the pinned versions and the lists.
pub fn folder() -> PathBuf {
    sources::root().join("tests/conformance")
}
