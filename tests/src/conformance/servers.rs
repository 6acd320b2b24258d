//! Runs the suite with our servers.
//!
//! Each adapter's server is started once, and serves both revisions. Each scenario runs alone
//! (`alone`), then all scenarios of a revision run (`together`). Unlisted scenarios must be among
//! the expected failures, and fail. A server that refuses everything (`refusing`) must pass in none
//! of them.

use super::checks::{Expected, expected, scenarios, written};
use super::failures::Failures;
use super::refusing;
use super::setup::folder;
use super::started::Started;
use super::suite::{Ended, Tested, alone, together};
use super::table::{Row, Table, discontent};

const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Scenarios in which a server passes every check by refusing everything, each with the scenario
/// that rules this out: both make the same request, which must succeed.
pub const LEAN: [(&str, &str); 2] = [
    ("input-required-result-unsupported-methods", "tools-list"),
    ("input-required-result-validate-input", "input-required-result-basic-elicitation"),
];

/// Scenarios of extensions, which no revision requires: each runs alone only.
const EXTENSIONS: [&str; 3] = ["sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest"];

/// Returns the listed scenarios that a revision requires.
fn required<'a>(listed: &'a [Expected], revision: &str) -> Vec<&'a str> {
    let of_it =
        scenarios(listed).into_iter().filter(|(scenario, of)| *of == revision && !EXTENSIONS.contains(scenario));
    of_it.map(|(scenario, _)| scenario).collect()
}

/// Runs the scenarios whose name contains the word. The short form runs only all together.
///
/// # Errors
/// A list cannot be read, or a server does not start.
pub fn run(table: &mut Table, word: &str, short: bool) -> Result<(), String> {
    let listed = expected("server")?;
    let chosen: Vec<_> = scenarios(&listed).into_iter().filter(|(scenario, _)| is_chosen(scenario, word)).collect();
    if chosen.is_empty() {
        return Ok(());
    }
    for adapter in table.installed.adapters.clone() {
        let words = ["everything-server", adapter];
        let mut leg = Leg {
            server: Started::start(&table.installed.program, &words, table.log(adapter))?,
            adapter,
            listed: &listed,
        };
        if !short {
            leg.each_alone(table, &chosen);
        }
        if word.is_empty() {
            let failures = Failures::read(&folder().join("expected-failures.yml"))?;
            REVISIONS.iter().for_each(|revision| leg.together(table, revision, &failures));
        }
        let row = Row::begin("(the server as a whole)", "both", adapter, "process");
        let faults: Vec<String> = leg.server.fault().into_iter().collect();
        table.show(&row, usize::from(faults.is_empty()), &faults, &leg.server.said());
    }
    if word.is_empty() && !short {
        let refusing = refusing::serve().map_err(|why| why.to_string())?;
        REVISIONS.iter().for_each(|revision| refused(table, &listed, &refusing.url(), revision));
    }
    Ok(())
}

/// Returns whether a scenario runs: it is selected, or a selected one depends on it.
fn is_chosen(scenario: &str, word: &str) -> bool {
    scenario.contains(word) || LEAN.iter().any(|(leaning, on)| leaning.contains(word) && *on == scenario)
}

/// The server of an adapter, and its required results.
struct Leg<'a> {
    server: Started,
    adapter: &'a str,
    listed: &'a [Expected],
}

impl Leg<'_> {
    fn each_alone(&self, table: &mut Table, chosen: &[(&str, &str)]) {
        let url = self.server.url();
        let mut faulty = Vec::new();
        for (scenario, revision) in chosen {
            let row = Row::begin(scenario, revision, self.adapter, "alone");
            let before = self.server.said().len();
            let ended = alone(&table.installed, Tested::Server(&url), (scenario, revision), &table.folder(&row));
            let (passed, mut faults) = row.judge(self.listed, ended.as_ref());
            if ended.is_ok_and(|ended| !ended.content) {
                faults.push("the suite is not content".to_owned());
            }
            faults.extend(leaning(scenario, |on| faulty.contains(&(on, *revision))));
            if !faults.is_empty() {
                faulty.push((scenario, *revision));
            }
            table.show(&row, passed, &faults, self.server.said().get(before..).unwrap_or_default());
        }
    }

    fn together(&self, table: &mut Table, revision: &str, failures: &Failures) {
        let row = |scenario| Row::begin(scenario, revision, self.adapter, "together");
        let whole = row("(all that a server must)");
        let ended = together(&table.installed, Tested::Server(&self.server.url()), revision, &table.folder(&whole));
        let mut faults = discontent(ended.as_ref());
        if let Ok(ended) = &ended {
            faults.extend(self.others(ended, revision, failures).unwrap_or_else(|why| vec![why]));
        }
        table.show(&whole, usize::from(faults.is_empty()), &faults, "");
        for scenario in required(self.listed, revision) {
            let row = row(scenario);
            let (passed, faults) = judge(self.listed, revision, &row, scenario, ended.as_ref());
            table.show(&row, passed, &faults, "");
        }
    }

    /// Returns the faults of the unlisted scenarios. The suite itself only checks those that it
    /// scores.
    fn others(&self, ended: &Ended, revision: &str, failures: &Failures) -> Result<Vec<String>, String> {
        let mut faults = Vec::new();
        for (scenario, folder) in ended.folders()? {
            if !scenarios(self.listed).contains(&(&scenario, revision)) {
                faults.extend(failures.judge(&scenario, &written(&folder)?));
            }
        }
        Ok(faults)
    }
}

/// Runs a server that refuses everything, which must pass in no scenario.
fn refused(table: &mut Table, listed: &[Expected], url: &str, revision: &str) {
    let row = |scenario| Row::begin(scenario, revision, "none", "refusing");
    let ended =
        together(&table.installed, Tested::Server(url), revision, &table.folder(&row("(all that a server must)")));
    for scenario in required(listed, revision) {
        let row = row(scenario);
        let (_, faults) = judge(listed, revision, &row, scenario, ended.as_ref());
        let passes = faults.is_empty().then(|| "a server that refuses everything passes".to_owned());
        let unwritten = ended.as_ref().map_err(String::clone).and_then(|ended| ended.folder(scenario)).err();
        let wrong: Vec<String> = passes.into_iter().chain(unwritten).collect();
        table.show(&row, usize::from(wrong.is_empty()), &wrong, "");
    }
}

/// Checks one scenario of a run of many, and the one that it depends on.
fn judge(
    listed: &[Expected],
    revision: &str,
    row: &Row<'_>,
    scenario: &str,
    ended: Result<&Ended, &String>,
) -> (usize, Vec<String>) {
    let (passed, mut faults) = row.judge(listed, ended);
    faults.extend(leaning(scenario, |on| !Row::begin(on, revision, "", "").judge(listed, ended).1.is_empty()));
    (passed, faults)
}

/// Returns why a scenario does not count, if it depends on one that `failed`.
fn leaning(scenario: &str, failed: impl Fn(&str) -> bool) -> Option<String> {
    let (_, on) = LEAN.iter().find(|(leaning, on)| *leaning == scenario && failed(on))?;
    Some(format!("it proves nothing where {on} fails"))
}
