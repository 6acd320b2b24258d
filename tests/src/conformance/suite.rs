//! Runs the suite: all scenarios of a revision at once, or one alone.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::setup::{Installed, folder};

/// Maximum time of a run of one scenario. The suite stops a client by itself after 30 s.
const ALONE: Duration = Duration::from_secs(60);
/// Maximum time of a run of all scenarios of a revision: of clients at once, of a server one after
/// the other.
const TOGETHER: Duration = Duration::from_secs(240);
/// Interval of the checks for its end.
const LOOK: Duration = Duration::from_millis(5);
/// The suffix of the folders of results: the time, in this form.
const TIME: &str = "-2026-07-28T00-00-00-000Z";

/// The tested side.
#[derive(Clone, Copy, Debug)]
pub enum Tested<'a> {
    /// A client, by its command. The suite starts it once for each scenario.
    Client(&'a str),
    /// A server, by its URL. It is already running.
    Server(&'a str),
}

/// A completed run.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Whether the suite accepts it: no check failed, no check of a client warned, and the suite
    /// neither failed nor hung.
    pub content: bool,
    /// The output of the suite.
    pub output: String,
    into: PathBuf,
    /// The prefix of the folders of results.
    before: &'static str,
}

/// Runs one scenario, and writes its results below `into`, a new folder.
///
/// # Errors
/// The suite could not run, or did not end.
pub fn alone(
    installed: &Installed,
    tested: Tested<'_>,
    (scenario, revision): (&str, &str),
    into: &Path,
) -> Result<Ended, String> {
    let what = ["--scenario", scenario, "--spec-version", revision, "--force"];
    run(installed, tested, &what, into, ALONE)
}

/// Runs all scenarios that a revision requires. The failures in `expected-failures.yml` must occur,
/// and no others.
///
/// # Errors
/// As [`alone`].
pub fn together(installed: &Installed, tested: Tested<'_>, revision: &str, into: &Path) -> Result<Ended, String> {
    let expected = folder().join("expected-failures.yml");
    let expected = expected.to_string_lossy();
    run(installed, tested, &["--requirements", revision, "--expected-failures", &expected], into, TOGETHER)
}

fn run(
    installed: &Installed,
    tested: Tested<'_>,
    what: &[&str],
    into: &Path,
    limit: Duration,
) -> Result<Ended, String> {
    let told = |why: io::Error| format!("{}: {why}", into.display());
    crate::interop::setup::empty(into).map_err(told)?;
    let output = into.with_extension("log");
    let written = File::create(&output).map_err(told)?;
    let mut command = Command::new(&installed.node);
    let leg = match tested {
        Tested::Client(command) => ["client", "--command", command],
        Tested::Server(url) => ["server", "--url", url],
    };
    command.arg(&installed.suite).args(leg).args(what).arg("-o").arg(into);
    command.stdin(Stdio::null()).stdout(written.try_clone().map_err(told)?).stderr(written);
    let status = wait(&mut command, limit).map_err(|why| format!("{}: {why}", installed.node.display()))?;
    let output = fs::read(&output).map_err(told)?;
    let output = String::from_utf8_lossy(&output).into_owned();
    match status {
        Some(status) => {
            let before = if matches!(tested, Tested::Server(_)) { "server-" } else { "" };
            Ok(Ended { content: status.success(), output, into: into.to_owned(), before })
        }
        None => Err(format!("the suite did not end in {} s:\n{output}", limit.as_secs())),
    }
}

/// Waits for the end of a program. `None` if it was killed after the limit. Clients that it leaves
/// behind exit by themselves.
///
/// # Errors
/// It does not start, or its state cannot be read.
pub fn wait(command: &mut Command, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let mut child = command.spawn()?;
    let until = Instant::now() + limit;
    while Instant::now() < until {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(LOOK);
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

impl Ended {
    /// Returns the folder with the results of a scenario: its name and the time.
    ///
    /// # Errors
    /// There is none, or there are several.
    pub fn folder(&self, scenario: &str) -> Result<PathBuf, String> {
        let folders = self.folders()?.into_iter().filter(|(of, _)| of == scenario);
        match folders.map(|(_, folder)| folder).collect::<Vec<_>>().as_slice() {
            [one] => Ok(one.clone()),
            found => Err(format!("the suite left {} results of {scenario}", found.len())),
        }
    }

    /// Returns each scenario with the folder of its results.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn folders(&self) -> Result<Vec<(String, PathBuf)>, String> {
        results(&self.into, self.before).map_err(|why| format!("{}: {why}", self.into.display()))
    }
}

/// Returns each scenario with the folder of its results, from the folder of a run. `before` is what
/// the names of folders begin with. The results of a scenario whose name has a `/` are a folder
/// deeper.
///
/// # Errors
/// The error of the operating system.
pub fn results(into: &Path, before: &str) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    let mut folders = vec![(into.to_owned(), String::new())];
    while let Some((folder, above)) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = format!("{above}{}", path.file_name().unwrap_or_default().to_string_lossy());
            let at = name.len().checked_sub(TIME.len()).filter(|at| name.get(*at..).is_some_and(is_time));
            match at.and_then(|at| name.get(..at)) {
                Some(scenario) => found.push((scenario.strip_prefix(before).unwrap_or(scenario).to_owned(), path)),
                None if path.is_dir() => folders.push((path, name + "/")),
                None => {}
            }
        }
    }
    Ok(found)
}

/// Returns whether a text has the form of [`TIME`].
fn is_time(text: &str) -> bool {
    let alike = |(a, b): (u8, u8)| a == b || (a.is_ascii_digit() && b.is_ascii_digit());
    text.len() == TIME.len() && text.bytes().zip(TIME.bytes()).all(alike)
}
