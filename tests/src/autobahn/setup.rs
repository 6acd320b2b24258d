//! Installs the suite.

use std::path::PathBuf;
use std::process::Command;

use crate::interop::setup::{execute, install_list, install_once, place};
use crate::sources;

/// The installation.
#[derive(Clone, Debug)]
pub struct Installed {
    /// The interpreter with the library of the suite.
    pub python: PathBuf,
    /// The directory with the sources of the suite.
    pub suite: PathBuf,
    /// The directory for reports.
    pub reports: PathBuf,
}

/// Installs what is missing.
///
/// # Errors
/// The part that could not be installed, and the output of the installer.
pub fn install() -> Result<Installed, String> {
    let python = install_list("autobahn", &folder().join("requirements.txt"))?;
    let suite = place("autobahn-suite")?;
    let list = folder().join("requirements-suite.txt");
    install_once(&suite, &list, || {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"]);
        // Its sources are built with what is installed and pinned, and no Python compiles them.
        pip.args(["--no-build-isolation", "--no-compile", "--target"]).arg(&suite).arg("-r").arg(&list);
        execute(&mut pip)
    })?;
    let reports = place("autobahn-reports")?;
    crate::interop::setup::empty(&reports).map_err(|why| format!("{}: {why}", reports.display()))?;
    Ok(Installed { python, suite, reports })
}

/// Returns the directory of the lists and of our program for the suite.
pub fn folder() -> PathBuf {
    sources::root().join("tests/autobahn")
}
