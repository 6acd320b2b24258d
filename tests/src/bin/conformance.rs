#![forbid(unsafe_code)]
//! Installs the official conformance suite and runs it against our client, in both adapters. What cannot be installed fails.
//! `conformance [WORD]`: only the scenarios whose name contains the word, each alone.
//!
//! Each scenario runs alone, with a client that finds out what its server speaks (`auto`) and with one that is told (`fixed`); then all
//! scenarios of a revision run at once (`together`). The suite must be content with the run, and every check that is listed must have
//! ended as listed. Of what went wrong, the end of what was said on the wire is shown.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use mcp_tests::conformance::checks::{Expected, expected, judge, scenarios, written};
use mcp_tests::conformance::setup::{ADAPTERS, Installed, install};
use mcp_tests::conformance::suite::{Ended, alone, together};

/// A client that does nothing. The suite is content with it where it has nothing to check; the list must not be.
const NOTHING: &str = "true";
/// Scenarios with which the suite is content all the same.
const VACUOUS: [(&str, &str); 2] = [("initialize", "2025-11-25"), ("http-standard-headers", "2026-07-28")];
/// How much is shown of what a client said.
const LINES: usize = 12;
/// How much is shown of a line.
const WIDTH: usize = 400;

fn main() -> ExitCode {
    let word = env::args().skip(1).collect::<String>();
    let began = Instant::now();
    let (installed, listed) = match install().and_then(|installed| Ok((installed, expected()?))) {
        Ok(both) => both,
        Err(why) => {
            eprintln!("conformance: {why}");
            return ExitCode::FAILURE;
        }
    };
    println!("installed in {} s", began.elapsed().as_secs());
    println!("{:<36} {:<11} {:<9} {:<9} time    checks", "scenario", "revision", "adapter", "how");
    let mut table =
        Table { scratch: installed.clients.join("conformance-results"), installed, listed, passed: 0, failed: 0 };
    table.fill(&word);
    println!("took {} s", began.elapsed().as_secs());
    println!("conformance: {} passed, {} failed", table.passed, table.failed);
    if table.failed == 0 && table.passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

struct Table {
    installed: Installed,
    listed: Vec<Expected>,
    scratch: PathBuf,
    passed: usize,
    failed: usize,
}

/// One line of the table.
struct Row<'a> {
    scenario: &'a str,
    revision: &'a str,
    adapter: &'a str,
    how: &'a str,
    began: Instant,
}

impl Table {
    fn fill(&mut self, word: &str) {
        let listed = self.listed.clone();
        let all = scenarios(&listed);
        for adapter in ADAPTERS {
            let program = self.installed.clients.join(format!("conformance-client-{adapter}"));
            let told = format!("{} --fixed", program.display());
            let program = program.display().to_string();
            for (how, client) in [("auto", &program), ("fixed", &told)] {
                for (scenario, revision) in all.iter().filter(|(scenario, _)| scenario.contains(word)) {
                    let row = Row { scenario, revision, adapter, how, began: Instant::now() };
                    let ended = alone(&self.installed, client, (scenario, revision), &self.folder(&row));
                    self.one(row, ended.as_ref());
                }
            }
            if word.is_empty() {
                for revision in ["2025-11-25", "2026-07-28"] {
                    self.together(&program, adapter, revision, &all);
                }
            }
        }
        for (scenario, revision) in VACUOUS.iter().filter(|(scenario, _)| scenario.contains(word)) {
            self.nothing(Row { scenario, revision, adapter: "none", how: "nothing", began: Instant::now() });
        }
    }

    /// A scenario that ran alone.
    fn one(&mut self, row: Row<'_>, ended: Result<&Ended, &String>) {
        let (passed, mut faults) = self.judge(&row, ended);
        if ended.is_ok_and(|ended| !ended.content) {
            faults.push("the suite is not content".to_owned());
        }
        let folder = ended.ok().and_then(|ended| ended.folder(row.scenario).ok());
        self.show(row, passed, &faults, folder.as_deref());
    }

    /// All scenarios of a revision, and what the suite says of them as a whole.
    fn together(&mut self, client: &str, adapter: &str, revision: &str, all: &[(&str, &str)]) {
        let row = |scenario| Row { scenario, revision, adapter, how: "together", began: Instant::now() };
        let whole = row("(all that is required)");
        let ended = together(&self.installed, client, revision, &self.folder(&whole));
        let faults = match &ended {
            Ok(ended) if ended.content => Vec::new(),
            Ok(ended) => vec![format!("the suite is not content:\n{}", summary(&ended.output))],
            Err(why) => vec![why.clone()],
        };
        self.show(whole, usize::from(faults.is_empty()), &faults, None);
        for (scenario, _) in all.iter().filter(|(_, of)| *of == revision) {
            let row = row(*scenario);
            let (passed, faults) = self.judge(&row, ended.as_ref());
            let folder = ended.as_ref().ok().and_then(|ended| ended.folder(scenario).ok());
            self.show(row, passed, &faults, folder.as_deref());
        }
    }

    /// A client that does nothing: that the suite is content, and the list is not.
    fn nothing(&mut self, row: Row<'_>) {
        let ended = alone(&self.installed, NOTHING, (row.scenario, row.revision), &self.folder(&row));
        let (_, faults) = self.judge(&row, ended.as_ref());
        let mut wrong = Vec::new();
        if faults.is_empty() {
            wrong.push("a client that does nothing passes".to_owned());
        }
        if !ended.is_ok_and(|ended| ended.content) {
            wrong.push(
                "the suite is not content with a client that does nothing: it need not be listed here".to_owned(),
            );
        }
        self.show(row, usize::from(wrong.is_empty()), &wrong, None);
    }

    fn judge(&self, row: &Row<'_>, ended: Result<&Ended, &String>) -> (usize, Vec<String>) {
        let ended = ended.map_err(String::clone);
        match ended.and_then(|ended| ended.folder(row.scenario)).and_then(|folder| written(&folder)) {
            Ok(checks) => judge(&self.listed, (row.scenario, row.revision), &checks),
            Err(why) => (0, vec![why]),
        }
    }

    fn folder(&self, row: &Row<'_>) -> PathBuf {
        self.scratch.join(format!("{}-{}-{}-{}", row.scenario, row.revision, row.adapter, row.how).replace(' ', "-"))
    }

    fn show(&mut self, row: Row<'_>, passed: usize, faults: &[String], folder: Option<&Path>) {
        let Row { scenario, revision, adapter, how, began } = row;
        let time = began.elapsed().as_secs_f64();
        let failed = if faults.is_empty() { String::new() } else { format!(", {} FAILED", faults.len()) };
        println!("{scenario:<36} {revision:<11} {adapter:<9} {how:<9} {time:4.1} s  {passed}{failed}");
        for fault in faults {
            println!("    FAIL {fault}");
        }
        let said =
            folder.filter(|_| !faults.is_empty()).and_then(|folder| fs::read_to_string(folder.join("stderr.txt")).ok());
        let said = said.unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        for line in &lines[lines.len().saturating_sub(LINES)..] {
            println!("    | {}", line.chars().take(WIDTH).collect::<String>());
        }
        self.passed += passed;
        self.failed += faults.len();
    }
}

/// What the suite printed last: of a run of many scenarios, those that passed or failed against what was expected.
fn summary(output: &str) -> &str {
    let parts = ["Stale baseline entries", "Unexpected failures", "=== SUITE SUMMARY"];
    let at = parts.iter().find_map(|part| output.find(part));
    at.map_or(output, |at| &output[at..])
}
