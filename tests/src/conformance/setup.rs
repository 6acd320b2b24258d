//! Installs the suite and builds our clients and servers.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use crate::interop::setup::{cargo, copy, execute, install_once, place, target};
use crate::sources;

/// The adapters, by the ends of the names of their programs.
pub const ADAPTERS: [&str; 2] = ["blocking", "smol"];

/// What was installed.
#[derive(Clone, Debug)]
pub struct Installed {
    /// The program that runs JavaScript.
    pub node: PathBuf,
    /// The suite.
    pub suite: PathBuf,
    /// The folder of our clients and servers.
    pub programs: PathBuf,
}

/// Installs what is missing, and builds our programs anew.
///
/// # Errors
/// What could not be installed, and what the installer said.
pub fn install() -> Result<Installed, String> {
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
    Ok(Installed { node: node.unwrap_or_else(|| "node".into()), suite, programs: programs()? })
}

/// The folder of what is pinned and listed.
pub fn folder() -> PathBuf {
    sources::root().join("tests/conformance")
}

/// Our clients and servers, of the same profile as this program, beside which they lie.
fn programs() -> Result<PathBuf, String> {
    let folder = target()?;
    let mut build = cargo();
    build.args(["build", "--quiet", "-p", "mcp-tests"]).current_dir(sources::root());
    for adapter in ADAPTERS {
        build.args([
            "--bin",
            &format!("conformance-client-{adapter}"),
            "--bin",
            &format!("everything-server-{adapter}"),
        ]);
    }
    if folder.ends_with("release") {
        build.arg("--release");
    }
    execute(build.env("CARGO_TARGET_DIR", folder.with_file_name("")))?;
    Ok(folder)
}
