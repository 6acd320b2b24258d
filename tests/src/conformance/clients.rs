//! Runs the suite with our clients.
//!
//! Each scenario runs alone, with a client that negotiates (`auto`) and with one that gets the
//! revision (`fixed`). Then all scenarios of a revision run at once (`together`).

use std::fs;

use super::checks::{Expected, expected, scenarios};
use super::suite::{Ended, Tested, alone, together};
use super::table::{Row, Table, discontent};

/// A client that does nothing. The suite accepts it if there is nothing to check, but the list must
/// not.
const NOTHING: &str = "true";
/// Scenarios in which the suite accepts it.
const VACUOUS: [(&str, &str); 2] = [("initialize", "2025-11-25"), ("http-standard-headers", "2026-07-28")];

/// Scenarios of extensions, which no revision requires: each runs alone only.
const EXTENSIONS: [&str; 10] = [
    "auth/client-credentials-basic",
    "auth/client-credentials-jwt",
    "auth/dpop",
    "auth/dpop-nonce",
    "auth/enterprise-managed-authorization",
    "auth/wif-jwt-bearer",
    "sep-2640-client-no-prefetch",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-frontmatter",
    "sep-2640-client-verify-size",
];

/// Runs the scenarios whose name contains the word. The short form runs only all together.
///
/// # Errors
/// The list cannot be read.
pub fn run(table: &mut Table, word: &str, short: bool) -> Result<(), String> {
    let listed = expected("client")?;
    let all = scenarios(&listed);
    for adapter in table.installed.adapters.clone() {
        let program = format!("{} conformance-client {adapter}", table.installed.program.display());
        let told = format!("{program} --fixed");
        for (how, client) in [("auto", &program), ("fixed", &told)] {
            for (scenario, revision) in all.iter().filter(|(scenario, _)| !short && scenario.contains(word)) {
                one(table, &listed, Row::begin(scenario, revision, adapter, how), (scenario, revision), client);
            }
        }
        if word.is_empty() {
            for revision in ["2025-11-25", "2026-07-28"] {
                all_of(table, &listed, &program, adapter, revision);
            }
        }
    }
    for (scenario, revision) in VACUOUS.iter().filter(|(scenario, _)| !short && scenario.contains(word)) {
        nothing(table, &listed, (scenario, revision));
    }
    Ok(())
}

/// Runs one scenario alone.
fn one(table: &mut Table, listed: &[Expected], row: Row<'_>, scenario: (&str, &str), client: &str) {
    let ended = alone(&table.installed, Tested::Client(client), scenario, &table.folder(&row));
    let (passed, mut faults) = row.judge(listed, ended.as_ref());
    if ended.as_ref().is_ok_and(|ended| !ended.content) {
        faults.push("the suite is not content".to_owned());
    }
    table.show(&row, passed, &faults, &said(ended.as_ref(), scenario.0));
}

/// Runs all scenarios of a revision, and checks the overall result of the suite.
fn all_of(table: &mut Table, listed: &[Expected], client: &str, adapter: &str, revision: &str) {
    let row = |scenario| Row::begin(scenario, revision, adapter, "together");
    let whole = row("(all that a client must)");
    let ended = together(&table.installed, Tested::Client(client), revision, &table.folder(&whole));
    let faults = discontent(ended.as_ref());
    table.show(&whole, usize::from(faults.is_empty()), &faults, "");
    let all = scenarios(listed);
    for (scenario, _) in all.iter().filter(|(scenario, of)| *of == revision && !EXTENSIONS.contains(scenario)) {
        let row = row(scenario);
        let (passed, faults) = row.judge(listed, ended.as_ref());
        table.show(&row, passed, &faults, &said(ended.as_ref(), scenario));
    }
}

/// Runs a client that does nothing: the suite accepts it, and the list must not.
fn nothing(table: &mut Table, listed: &[Expected], (scenario, revision): (&str, &str)) {
    let row = Row::begin(scenario, revision, "none", "nothing");
    let ended = alone(&table.installed, Tested::Client(NOTHING), (scenario, revision), &table.folder(&row));
    let (_, faults) = row.judge(listed, ended.as_ref());
    let mut wrong = Vec::new();
    if faults.is_empty() {
        wrong.push("a client that does nothing passes".to_owned());
    }
    if !ended.is_ok_and(|ended| ended.content) {
        wrong.push("the suite is not content with a client that does nothing: it need not be listed here".to_owned());
    }
    table.show(&row, usize::from(wrong.is_empty()), &wrong, "");
}

/// Returns the standard error of a scenario's client, as kept by the suite.
fn said(ended: Result<&Ended, &String>, scenario: &str) -> String {
    let folder = ended.ok().and_then(|ended| ended.folder(scenario).ok());
    folder.and_then(|folder| fs::read_to_string(folder.join("stderr.txt")).ok()).unwrap_or_default()
}
