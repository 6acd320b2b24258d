//! Installs and builds what is missing.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, io, thread};

use crate::sources;

/// What was installed.
#[derive(Clone, Debug)]
pub struct Installed {
    /// The program that runs JavaScript.
    pub node: PathBuf,
    /// The folder of the packages for it.
    pub modules: PathBuf,
    /// The interpreter that has `mcp` 2.x.
    pub python2: PathBuf,
    /// The interpreter that has `mcp` 1.x.
    pub python1: PathBuf,
    /// Our programs on `rmcp`.
    pub rmcp: PathBuf,
    /// Our server.
    pub server: PathBuf,
    /// An empty folder for what a run writes.
    pub scratch: PathBuf,
}

/// Which peers are installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All.
    All,
    /// The newest on TypeScript and Python. The paths of the others lead nowhere.
    Newest,
}

/// Installs what is missing.
///
/// # Errors
/// What could not be installed, and what the installer said.
pub fn install(which: Which) -> Result<Installed, String> {
    let all = which == Which::All;
    let scratch = place("scratch")?;
    empty(&scratch).map_err(|why| format!("{}: {why}", scratch.display()))?;
    let server = ours()?;
    let ended = |_| "an installer panicked".to_owned();
    thread::scope(|scope| {
        // They wait for the network and for each other's compilers, so they run at once.
        let rmcp = scope.spawn(move || if all { install_rmcp() } else { Ok(PathBuf::new()) });
        let node = scope.spawn(install_node);
        let python2 = scope.spawn(|| install_python("requirements.txt"));
        let python1 = scope.spawn(move || if all { install_python("requirements-1.txt") } else { Ok(PathBuf::new()) });
        let (node, modules) = node.join().map_err(ended)??;
        let (python2, python1) = (python2.join().map_err(ended)??, python1.join().map_err(ended)??);
        Ok(Installed { node, modules, python2, python1, rmcp: rmcp.join().map_err(ended)??, server, scratch })
    })
}

/// The folder of the programs of this project for the SDKs.
pub fn programs() -> PathBuf {
    sources::root().join("tests/interop")
}

/// The program that runs it, and the folder of the packages. What runs must lie beside the packages to find them.
fn install_node() -> Result<(PathBuf, PathBuf), String> {
    let node = env::var_os("NODE").unwrap_or_else(|| "node".into());
    let place = place("node")?;
    let from = programs().join("node");
    install_once(&place, &from.join("package-lock.json"), || {
        for file in ["package.json", "package-lock.json", ".npmrc"] {
            copy(&from, &place, file)?;
        }
        execute(Command::new("npm").args(["ci", "--ignore-scripts", "--loglevel=error"]).current_dir(&place))
    })?;
    for file in ["client1.mjs", "client2.mjs", "steps.mjs"] {
        copy(&from, &place, file)?;
    }
    Ok((node.into(), place))
}

/// The interpreter that has the packages of a list, each checked against the hash in it.
fn install_python(list: &str) -> Result<PathBuf, String> {
    let system = env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let place = place(list.trim_end_matches(".txt"))?;
    let python = place.join("venv/bin/python");
    let list = programs().join("python").join(list);
    install_once(&place, &list, || {
        execute(Command::new(&system).args([OsStr::new("-m"), OsStr::new("venv"), place.join("venv").as_os_str()]))?;
        let options =
            ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"];
        execute(Command::new(&python).args(options).arg("-r").arg(&list))
    })?;
    Ok(python)
}

/// Our programs on the other Rust SDK. They are no part of the workspace, so that it does not depend on what they depend on.
fn install_rmcp() -> Result<PathBuf, String> {
    let place = place("rmcp")?;
    let manifest = programs().join("rmcp/Cargo.toml");
    execute(cargo().args(["build", "--quiet", "--manifest-path"]).arg(&manifest).env("CARGO_TARGET_DIR", &place))?;
    Ok(place.join("debug/interop-rmcp"))
}

/// Our server.
fn ours() -> Result<PathBuf, String> {
    Ok(build(&["interop_server"])?.join("interop_server"))
}

/// Builds programs of this package, of the same profile as this program, and returns the folder that all of them lie in. With `PROGRAMS_BUILT`
/// in the environment they are there: built for themselves they would be compiled anew, since cargo then chooses other features of
/// the crates that they use.
pub(crate) fn build(programs: &[&str]) -> Result<PathBuf, String> {
    let folder = target()?;
    if env::var_os("PROGRAMS_BUILT").is_some() {
        return Ok(folder);
    }
    let mut build = cargo();
    build.args(["build", "--quiet", "-p", "mcp-tests"]).current_dir(sources::root());
    build.args(programs.iter().flat_map(|program| ["--bin", program]));
    if folder.ends_with("release") {
        build.arg("--release");
    }
    execute(build.env("CARGO_TARGET_DIR", folder.with_file_name("")))?;
    Ok(folder)
}

/// The folder that this program lies in: the target folder's, for its profile.
pub(crate) fn target() -> Result<PathBuf, String> {
    let me = env::current_exe().map_err(|why| format!("our own path: {why}"))?;
    me.parent().map(Path::to_path_buf).ok_or_else(|| "our own path has no folder".to_owned())
}

pub(crate) fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Where something is installed: below the target folder.
pub(crate) fn place(name: &str) -> Result<PathBuf, String> {
    Ok(target()?.with_file_name("interop").join(name))
}

pub(crate) fn copy(from: &Path, to: &Path, file: &str) -> Result<(), String> {
    fs::copy(from.join(file), to.join(file)).map(drop).map_err(|why| format!("{file}: {why}"))
}

/// Makes the folder anew.
///
/// # Errors
/// What the operating system says.
pub fn empty(folder: &Path) -> io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)
}

/// Runs `steps` in a fresh folder unless it was done before for the same list. The mark is written last, so what broke off is done again.
pub(crate) fn install_once(
    place: &Path,
    list: &Path,
    steps: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let told = |why: io::Error| format!("{}: {why}", place.display());
    let wanted = fs::read(list).map_err(|why| format!("{}: {why}", list.display()))?;
    let mark = place.join("installed");
    if fs::read(&mark).ok().as_ref() == Some(&wanted) {
        return Ok(());
    }
    empty(place).map_err(told)?;
    steps()?;
    fs::write(mark, wanted).map_err(told)
}

pub(crate) fn execute(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|why| format!("{name}: {why}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Err(format!("{command:?}: {}\n{}{}", output.status, text(&output.stdout), text(&output.stderr)))
}
