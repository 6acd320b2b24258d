//! The table that a run prints: a line for each scenario, and below it what went wrong.

use std::path::PathBuf;
use std::time::Instant;

use super::checks::{Expected, judge, written};
use super::setup::Installed;
use super::suite::Ended;

/// How much is shown of what a program of ours said.
const LINES: usize = 12;
/// How much is shown of a line.
const WIDTH: usize = 400;

/// What a run has come to so far.
#[derive(Debug)]
pub struct Table {
    /// What the suite was installed as.
    pub installed: Installed,
    /// How many checks went as they must.
    pub passed: usize,
    /// How many did not.
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
    /// A scenario that begins now.
    pub fn begin(scenario: &'a str, revision: &'a str, adapter: &'a str, how: &'a str) -> Self {
        Self { scenario, revision, adapter, how, began: Instant::now() }
    }

    /// How many checks of it went as the list says, and a sentence for each that did not.
    pub fn judge(&self, listed: &[Expected], ended: Result<&Ended, &String>) -> (usize, Vec<String>) {
        let ended = ended.map_err(String::clone);
        match ended.and_then(|ended| ended.folder(self.scenario)).and_then(|folder| written(&folder)) {
            Ok(checks) => judge(listed, (self.scenario, self.revision), &checks),
            Err(why) => (0, vec![why]),
        }
    }
}

impl Table {
    /// An empty one; prints its head.
    pub fn new(installed: Installed) -> Self {
        println!("{:<46} {:<11} {:<9} {:<9} time    checks", "scenario", "revision", "adapter", "how");
        Self { scratch: installed.programs.join("conformance-results"), installed, passed: 0, failed: 0 }
    }

    /// Where the suite writes what comes of a line.
    pub fn folder(&self, row: &Row<'_>) -> PathBuf {
        self.scratch.join(format!("{}-{}-{}-{}", row.scenario, row.revision, row.adapter, row.how).replace(' ', "-"))
    }

    /// Where a program of ours writes what it says.
    pub fn log(&self, name: &str) -> PathBuf {
        self.scratch.join(format!("{name}.log"))
    }

    /// Ends a line: how many checks went as they must, what went wrong, and, if anything did, the end of what a program of ours said.
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

/// What is wrong with a run of many scenarios as a whole.
pub fn discontent(ended: Result<&Ended, &String>) -> Vec<String> {
    match ended {
        Ok(ended) if ended.content => Vec::new(),
        Ok(ended) => vec![format!("the suite is not content:\n{}", summary(&ended.output))],
        Err(why) => vec![why.clone()],
    }
}

/// What the suite printed last: of a run of many scenarios, those that passed or failed against what was expected.
fn summary(output: &str) -> &str {
    let parts = ["Stale baseline entries", "Unexpected failures", "=== SUITE SUMMARY", "=== SUMMARY"];
    let at = parts.iter().find_map(|part| output.find(part));
    at.map_or(output, |at| &output[at..])
}
