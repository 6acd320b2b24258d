//! Runs the suite, as the client of our server or as the server of our client.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::echo::{self, Pace};
use super::setup::{Installed, folder};
use super::table::Verdict;
use crate::interop::setup::execute;

/// Runs these cases against our server. Returns a verdict for each.
///
/// # Errors
/// The suite could not run, and its output.
pub fn as_server(installed: &Installed, patterns: &[String], pace: Pace) -> Result<Vec<Verdict>, String> {
    let port = echo::serve(pace).map_err(|why| format!("our server: {why}"))?;
    let report = installed.reports.join(format!("server-{pace:?}.json"));
    execute(command(installed, "client", &report).arg(port.to_string()).args(patterns))?;
    read(&report)
}

/// Runs these cases against our client. Returns a verdict for each.
///
/// # Errors
/// As [`as_server`].
pub fn as_client(installed: &Installed, patterns: &[String], pace: Pace) -> Result<Vec<Verdict>, String> {
    let report = installed.reports.join(format!("client-{pace:?}.json"));
    let log = report.with_extension("log");
    let told = |why| format!("{}: {why}", log.display());
    let mut suite = command(installed, "server", &report);
    suite.args(patterns).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&log).map_err(told)?);
    let mut child = suite.spawn().map_err(|why| format!("{}: {why}", installed.python.display()))?;
    let asked = ask_all(&mut child, pace);
    if asked.is_err() {
        // It may have ended by itself.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|why| format!("the suite: {why}"))?;
    let said = || fs::read_to_string(&log).unwrap_or_default();
    asked.map_err(|why| format!("{why}\n{}", said()))?;
    if !status.success() {
        return Err(format!("the suite: {status}\n{}", said()));
    }
    read(&report)
}

/// Connects once for each case that the suite serves, and then asks for the report.
fn ask_all(suite: &mut Child, pace: Pace) -> Result<(), String> {
    let mut line = String::new();
    let output = suite.stdout.take().ok_or("the suite has no output")?;
    BufReader::new(output).read_line(&mut line).map_err(|why| format!("the suite: {why}"))?;
    let numbers: Option<(u16, u32)> =
        line.trim_end().split_once(' ').and_then(|(port, count)| Some((port.parse().ok()?, count.parse().ok()?)));
    let (port, count) = numbers.ok_or_else(|| format!("not a port and a number of cases: {line:?}"))?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    for case in 1..=count {
        let mut seed = [0; 32];
        seed[..4].copy_from_slice(&case.to_be_bytes());
        // How a connection ends is for the suite to judge.
        let _ = echo::ask(address, &format!("/runCase?case={case}"), seed, pace);
    }
    echo::ask(address, "/updateReports", [0; 32], pace).or_else(|why| match why.kind() {
        // The suite ends at once.
        ErrorKind::ConnectionReset => Ok(()),
        _ => Err(format!("the request for the report: {why}")),
    })
}

fn command(installed: &Installed, mode: &str, report: &Path) -> Command {
    let mut command = Command::new(&installed.python);
    let program: PathBuf = folder().join("fuzz.py");
    // No compiled files beside the sources.
    command.arg("-B").arg(program).arg(mode).arg(&installed.suite).arg(report);
    command
}

fn read(report: &Path) -> Result<Vec<Verdict>, String> {
    let text = fs::read(report).map_err(|why| format!("{}: {why}", report.display()))?;
    serde_json::from_slice(&text).map_err(|why| format!("{}: {why}", report.display()))
}
