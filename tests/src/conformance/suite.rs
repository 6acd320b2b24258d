//! Runs the suite: all scenarios of a revision at once, or one alone.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::setup::{Installed, folder};

/// How long a run of one scenario may take; it stops a client by itself after 30 s.
const ALONE: Duration = Duration::from_secs(60);
/// How long a run of all scenarios of a revision may take: of clients at once, of a server one after the other.
const TOGETHER: Duration = Duration::from_secs(240);
/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(5);
/// What the names of the folders of results end with: the time, of this form.
const TIME: &str = "-2026-07-28T00-00-00-000Z";

/// Who is tested.
#[derive(Clone, Copy, Debug)]
pub enum Tested<'a> {
    /// A client, by its command: the suite starts it, one for each scenario.
    Client(&'a str),
    /// A server, by its URL: it runs already.
    Server(&'a str),
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Whether the suite is content: no check failed, and of a client no check warned, and it neither failed nor hung.
    pub content: bool,
    /// What the suite printed.
    pub output: String,
    into: PathBuf,
    /// What the names of the folders of results begin with.
    before: &'static str,
}

/// Runs one scenario, and writes what came of it below `into`, a folder that is made anew.
///
/// # Errors
/// The suite could not be run, or did not end.
pub fn alone(
    installed: &Installed,
    tested: Tested<'_>,
    (scenario, revision): (&str, &str),
    into: &Path,
) -> Result<Ended, String> {
    let what = ["--scenario", scenario, "--spec-version", revision, "--force"];
    run(installed, tested, &what, into, ALONE)
}

/// Runs all scenarios that a revision requires. The failures that `expected-failures.yml` lists must happen, and no others.
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

/// Waits for the end of a program; none: it was killed after the limit. Clients that it leaves end by themselves.
pub(super) fn wait(command: &mut Command, limit: Duration) -> io::Result<Option<ExitStatus>> {
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
    /// The folder in which the suite left what came of a scenario: its name and the time.
    ///
    /// # Errors
    /// There is none, or several.
    pub fn folder(&self, scenario: &str) -> Result<PathBuf, String> {
        let folders = self.folders()?.into_iter().filter(|(of, _)| of == scenario);
        match folders.map(|(_, folder)| folder).collect::<Vec<_>>().as_slice() {
            [one] => Ok(one.clone()),
            found => Err(format!("the suite left {} results of {scenario}", found.len())),
        }
    }

    /// What the suite left: each scenario, and its folder. Scenarios whose name has a `/` are not among them.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn folders(&self) -> Result<Vec<(String, PathBuf)>, String> {
        let told = |why: io::Error| format!("{}: {why}", self.into.display());
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.into).map_err(told)? {
            let path = entry.map_err(told)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let name = name.strip_prefix(self.before).unwrap_or(&name);
            let scenario = name.len().checked_sub(TIME.len()).and_then(|end| name.get(..end));
            found.extend(scenario.map(|scenario| (scenario.to_owned(), path)));
        }
        Ok(found)
    }
}
