//! The printed table: a line for each scenario, followed by its faults.

use std::path::PathBuf;
use std::time::Instant;

use super::checks::{Expected, judge, written};
use super::setup::Installed;
use super::suite::Ended;

/// Maximum number of lines of a program's output that are shown.
const LINES: usize = 12;
/// Maximum length of a line that is shown.
const WIDTH: usize = 400;

/// The results of a run so far.
#[derive(Debug)]
pub struct Table {
    /// The installation.
    pub installed: Installed,
    /// Number of checks with their required result.
    pub passed: usize,
    /// Number of other checks.
    pub failed: usize,
    scratch: PathBuf,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    scenario: &'a str,
    revision: &'a str,
    adapter: &'a str,
    how: &'a str,
    began: Instant,
}

impl<'a> Row<'a> {
    /// Begins the line of a scenario.
    pub fn begin(scenario: &'a str, revision: &'a str, adapter: &'a str, how: &'a str) -> Self {
        Self { scenario, revision, adapter, how, began: Instant::now() }
    }

    /// Returns the number of checks with their required result, and a sentence for each of the
    /// others.
    pub fn judge(&self, listed: &[Expected], ended: Result<&Ended, &String>) -> (usize, Vec<String>) {
        let ended = ended.map_err(String::clone);
        match ended.and_then(|ended| ended.folder(self.scenario)).and_then(|folder| written(&folder)) {
            Ok(checks) => judge(listed, (self.scenario, self.revision), &checks),
            Err(why) => (0, vec![why]),
        }
    }
}

impl Table {
    /// Creates an empty table, and prints its header.
    pub fn new(installed: Installed) -> Self {
        println!("{:<46} {:<11} {:<9} {:<9} time    checks", "scenario", "revision", "adapter", "how");
        Self { scratch: installed.program.with_file_name("conformance-results"), installed, passed: 0, failed: 0 }
    }

    /// Returns the folder for the results of a line.
    pub fn folder(&self, row: &Row<'_>) -> PathBuf {
        let name = format!("{}-{}-{}-{}", row.scenario, row.revision, row.adapter, row.how);
        self.scratch.join(name.replace([' ', '/'], "-"))
    }

    /// Returns the log file of one of our programs.
    pub fn log(&self, name: &str) -> PathBuf {
        self.scratch.join(format!("{name}.log"))
    }

    /// Ends a line: prints the number of passed checks and the faults, and with faults the end of a
    /// program's output.
    pub fn show(&mut self, row: &Row<'_>, passed: usize, faults: &[String], said: &str) {
        let Row { scenario, revision, adapter, how, began } = row;
        let time = began.elapsed().as_secs_f64();
        let failed = if faults.is_empty() { String::new() } else { format!(", {} FAILED", faults.len()) };
        println!("{scenario:<46} {revision:<11} {adapter:<9} {how:<9} {time:4.1} s  {passed}{failed}");
        for fault in faults {
            println!("    FAIL {fault}");
        }
        if !faults.is_empty() {
            let lines: Vec<&str> = said.lines().collect();
            for line in &lines[lines.len().saturating_sub(LINES)..] {
                println!("    | {}", line.chars().take(WIDTH).collect::<String>());
            }
        }
        self.passed += passed;
        self.failed += faults.len();
    }
}

/// Returns the faults of a run of many scenarios as a whole.
pub fn discontent(ended: Result<&Ended, &String>) -> Vec<String> {
    match ended {
        Ok(ended) if ended.content => Vec::new(),
        Ok(ended) => vec![format!("the suite is not content:\n{}", summary(&ended.output))],
        Err(why) => vec![why.clone()],
    }
}

/// Returns the last output of the suite: in a run of many scenarios, those with an unexpected
/// result.
fn summary(output: &str) -> &str {
    let parts = ["Stale baseline entries", "Unexpected failures", "=== SUITE SUMMARY", "=== SUMMARY"];
    let at = parts.iter().find_map(|part| output.find(part));
    at.map_or(output, |at| &output[at..])
}
