//! Installs and builds what is missing.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, io, thread};

use crate::sources;

/// The installation.
#[derive(Clone, Debug)]
pub struct Installed {
    /// The program that runs JavaScript.
    pub node: PathBuf,
    /// The directory of its packages.
    pub modules: PathBuf,
    /// The interpreter with `mcp` 2.x.
    pub python2: PathBuf,
    /// The interpreter with `mcp` 1.x.
    pub python1: PathBuf,
    /// The interpreter with `fastmcp`.
    pub fastmcp: PathBuf,
    /// Our programs with `rmcp`.
    pub rmcp: PathBuf,
    /// The program `mcp-tests`, which is our server if its first argument is [`SERVER`].
    pub server: PathBuf,
    /// An empty directory for the files of a run.
    pub scratch: PathBuf,
}

/// The word for our server.
pub const SERVER: &str = "interop-server";

/// Which peers are installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All.
    All,
    /// The newest ones for TypeScript and Python. The paths of the others are empty.
    Newest,
}

/// Installs what is missing.
///
/// # Errors
/// The part that could not be installed, and the output of the installer.
pub fn install(which: Which) -> Result<Installed, String> {
    let all = which == Which::All;
    let scratch = place("scratch")?;
    empty(&scratch).map_err(|why| format!("{}: {why}", scratch.display()))?;
    let server = beside("mcp-tests")?;
    let ended = |_| "an installer panicked".to_owned();
    thread::scope(|scope| {
        // They wait for the network and for each other's compilers, so they run at once.
        let rmcp = scope.spawn(move || if all { install_rmcp() } else { Ok(PathBuf::new()) });
        let node = scope.spawn(install_node);
        let python2 = scope.spawn(|| install_python("requirements.txt"));
        let python1 = scope.spawn(move || if all { install_python("requirements-1.txt") } else { Ok(PathBuf::new()) });
        let fastmcp =
            scope.spawn(move || if all { install_python("requirements-fastmcp.txt") } else { Ok(PathBuf::new()) });
        let (node, modules) = node.join().map_err(ended)??;
        let (python2, python1) = (python2.join().map_err(ended)??, python1.join().map_err(ended)??);
        let (fastmcp, rmcp) = (fastmcp.join().map_err(ended)??, rmcp.join().map_err(ended)??);
        Ok(Installed { node, modules, python2, python1, fastmcp, rmcp, server, scratch })
    })
}

/// Returns the directory of this project's programs for the SDKs.
pub fn programs() -> PathBuf {
    sources::root().join("tests/interop")
}

/// Our programs in JavaScript.
const SCRIPTS: [&str; 9] = [
    "areas.mjs",
    "client1.mjs",
    "client2.mjs",
    "heard.mjs",
    "offer.mjs",
    "server1.mjs",
    "server2.mjs",
    "steps.mjs",
    "web.mjs",
];

/// Returns the program that runs JavaScript, and the directory of the packages. A script must be
/// beside the packages to find them.
pub(crate) fn install_node() -> Result<(PathBuf, PathBuf), String> {
    let from = programs().join("node");
    let place = install_packages("node", &from)?;
    for file in SCRIPTS {
        copy(&from, &place, file)?;
    }
    Ok((node_of(&place), place))
}

/// Installs the packages of a lock file in this directory, and returns the directory of the
/// installation. `name` is that of the installation.
pub(crate) fn install_packages(name: &str, from: &Path) -> Result<PathBuf, String> {
    let place = place(name)?;
    install_once(&place, &from.join("package-lock.json"), || {
        for file in ["package.json", "package-lock.json", ".npmrc"] {
            copy(from, &place, file)?;
        }
        execute(Command::new("npm").args(["ci", "--ignore-scripts", "--loglevel=error"]).current_dir(&place))
    })?;
    Ok(place)
}

/// Returns the program that runs JavaScript for an installation: the one of its lock file, which
/// has none for some machines, or that of the system.
pub(crate) fn node_of(place: &Path) -> PathBuf {
    let own = place.join("node_modules/.bin/node");
    let system = || env::var_os("NODE").unwrap_or_else(|| "node".into()).into();
    if own.exists() { own } else { system() }
}

/// Returns the interpreter with the packages of a list. Each is checked against the hash in it.
pub(crate) fn install_python(list: &str) -> Result<PathBuf, String> {
    install_list(list.trim_end_matches(".txt"), &programs().join("python").join(list))
}

/// Does the same with any list. `name` is that of the installation.
pub(crate) fn install_list(name: &str, list: &Path) -> Result<PathBuf, String> {
    let system = env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let place = place(name)?;
    let python = place.join("venv/bin/python");
    install_once(&place, list, || {
        execute(Command::new(&system).args([OsStr::new("-m"), OsStr::new("venv"), place.join("venv").as_os_str()]))?;
        let options =
            ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"];
        execute(Command::new(&python).args(options).arg("-r").arg(list))
    })?;
    Ok(python)
}

/// Builds our programs with the other Rust SDK. They are not part of the workspace, which must not
/// depend on their dependencies.
pub(crate) fn install_rmcp() -> Result<PathBuf, String> {
    Ok(build_rmcp(&[])?.join("debug/interop-rmcp"))
}

/// Does the same in the profile for measurements, with HTTPS.
pub(crate) fn install_rmcp_https() -> Result<PathBuf, String> {
    Ok(build_rmcp(&["--release", "--features", "https"])?.join("release/interop-rmcp"))
}

fn build_rmcp(options: &[&str]) -> Result<PathBuf, String> {
    let place = place("rmcp")?;
    let manifest = programs().join("rmcp/Cargo.toml");
    let mut build = cargo();
    build.args(["build", "--quiet", "--manifest-path"]).arg(&manifest).args(options);
    execute(build.env("CARGO_TARGET_DIR", &place))?;
    Ok(place)
}

/// Returns the path of a program of this package, in the directory of this one.
pub fn beside(name: &str) -> Result<PathBuf, String> {
    let program = target()?.join(name);
    match program.is_file() {
        true => Ok(program),
        false => Err(format!("{} is not built: run `cargo build -p mcp-tests --bins`", program.display())),
    }
}

/// Returns the directory of this program: that of the target directory for its profile.
pub(crate) fn target() -> Result<PathBuf, String> {
    let me = env::current_exe().map_err(|why| format!("our own path: {why}"))?;
    me.parent().map(Path::to_path_buf).ok_or_else(|| "our own path has no folder".to_owned())
}

pub(crate) fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Returns the directory of an installation, below the target directory.
pub fn place(name: &str) -> Result<PathBuf, String> {
    Ok(target()?.with_file_name("interop").join(name))
}

pub(crate) fn copy(from: &Path, to: &Path, file: &str) -> Result<(), String> {
    fs::copy(from.join(file), to.join(file)).map(drop).map_err(|why| format!("{file}: {why}"))
}

/// Creates the directory again, empty.
///
/// # Errors
/// The error of the operating system.
pub fn empty(folder: &Path) -> io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)
}

/// Runs `steps` in a new directory unless this was done before for the same list. The mark is
/// written last, so an interrupted installation is repeated.
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

/// Runs a program to its end, and returns its last line.
pub(crate) fn last_line(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|why| format!("{command:?}: {why}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        return Err(format!("{}: {said}{}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    said.lines().last().map(str::to_owned).ok_or_else(|| "it says nothing".to_owned())
}
