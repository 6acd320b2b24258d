//! Compares the checks that the suite reports for a scenario with the list of required ones.
//!
//! The lists are `client-checks.tsv` and `server-checks.tsv` in `tests/conformance`: every check of
//! every scenario, with its result. A scenario that passes because nothing happened in it fails
//! here, as does one whose checks have changed.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::setup::folder;

/// One line of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The scenario.
    pub scenario: String,
    /// The revision used in it.
    pub revision: String,
    /// The required result of the check: `SUCCESS`, or `SKIPPED` if there is nothing to check.
    pub status: String,
    /// The id of the check. Several checks may share it.
    pub id: String,
    /// The name of the check.
    pub name: String,
}

/// One check, as reported by the suite.
#[derive(Clone, Debug, Deserialize)]
pub struct Check {
    id: String,
    name: String,
    status: String,
    #[serde(default, rename = "errorMessage")]
    message: Option<String>,
}

/// The status of information that is not a result.
const TOLD: &str = "INFO";

/// Reads the list for our clients or our servers.
///
/// # Errors
/// It cannot be read, or a line is malformed.
pub fn expected(leg: &str) -> Result<Vec<Expected>, String> {
    let path = folder().join(format!("{leg}-checks.tsv"));
    let text = fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()))?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| Expected::read(line).ok_or_else(|| format!("{}: no line of the list: {line}", path.display())))
        .collect()
}

/// Returns the scenarios of the list with each of their revisions, in order.
pub fn scenarios(expected: &[Expected]) -> Vec<(&str, &str)> {
    let mut scenarios: Vec<_> = expected.iter().map(|line| (line.scenario.as_str(), line.revision.as_str())).collect();
    scenarios.dedup();
    scenarios
}

impl Expected {
    fn read(line: &str) -> Option<Self> {
        let fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
        let [scenario, revision, status, id, name] = fields.try_into().ok()?;
        ["SUCCESS", "SKIPPED"].contains(&status.as_str()).then_some(Self { scenario, revision, status, id, name })
    }
}

/// Reads the report of the suite about a scenario from this folder.
///
/// # Errors
/// There is none, or it is malformed.
pub fn written(folder: &Path) -> Result<Vec<Check>, String> {
    let path = folder.join("checks.json");
    let text = fs::read(&path).map_err(|why| format!("{}: {why}", path.display()))?;
    serde_json::from_slice(&text).map_err(|why| format!("{}: {why}", path.display()))
}

/// Returns the number of checks with their required result, and a sentence for each of the others.
pub fn judge(expected: &[Expected], (scenario, revision): (&str, &str), checks: &[Check]) -> (usize, Vec<String>) {
    let of_it = |line: &&Expected| line.scenario == scenario && line.revision == revision;
    let mut awaited: Vec<&Expected> = expected.iter().filter(of_it).collect();
    let mut faults = Vec::new();
    let (mut passed, known) = (0, awaited.clone());
    for check in checks.iter().filter(|check| check.status != TOLD) {
        let is_it = |line: &&Expected| line.id == check.id && line.name == check.name;
        let Some(line) = known.iter().find(|line| is_it(line)) else {
            faults.push(format!("{} {} is not listed: {}", check.id, check.name, check.told()));
            continue;
        };
        awaited.retain(|line| !is_it(line));
        if line.status == check.status {
            passed += 1;
        } else {
            faults.push(format!("{} {}: {}", check.id, check.name, check.told()));
        }
    }
    faults.extend(awaited.iter().map(|line| format!("{} {} is missing", line.id, line.name)));
    if known.is_empty() {
        faults.push("nothing is listed of it".to_owned());
    }
    (passed, faults)
}

impl Check {
    /// Returns whether a server that lacks the checked feature fails it.
    pub fn is_failure(&self) -> bool {
        ["FAILURE", "WARNING"].contains(&self.status.as_str())
    }

    /// Returns whether it is a success.
    pub fn is_success(&self) -> bool {
        self.status == "SUCCESS"
    }

    /// Returns its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    fn told(&self) -> String {
        let message = self.message.as_deref().unwrap_or_default();
        format!("{} {message}", self.status).trim_end().to_owned()
    }
}
