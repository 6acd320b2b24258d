//! What the suite writes of a scenario, against the list of what it must have written.
//!
//! The lists are `client-checks.tsv` and `server-checks.tsv` in `tests/conformance`: every check of every scenario, and how it ends. So a
//! scenario that passes because nothing happened in it does not pass here, nor does one whose checks have changed.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::setup::folder;

/// One line of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The scenario.
    pub scenario: String,
    /// The revision that is spoken in it.
    pub revision: String,
    /// How the check must end: `SUCCESS`, or `SKIPPED` for what there is nothing to check of.
    pub status: String,
    /// The id of the check. Several checks may have the same.
    pub id: String,
    /// The name of the check.
    pub name: String,
}

/// One check, as the suite writes it.
#[derive(Clone, Debug, Deserialize)]
pub struct Check {
    id: String,
    name: String,
    status: String,
    #[serde(default, rename = "errorMessage")]
    message: Option<String>,
}

/// What is told of what happened, and judges nothing.
const TOLD: &str = "INFO";

/// Reads a list: of what our clients are checked for, or our servers.
///
/// # Errors
/// It cannot be read, or a line of it is none.
pub fn expected(leg: &str) -> Result<Vec<Expected>, String> {
    let path = folder().join(format!("{leg}-checks.tsv"));
    let text = fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()))?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| Expected::read(line).ok_or_else(|| format!("{}: no line of the list: {line}", path.display())))
        .collect()
}

/// The scenarios of the list, each with each of its revisions, in their order.
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

/// Reads what the suite wrote of a scenario into this folder.
///
/// # Errors
/// It wrote nothing, or it is not of the shape.
pub fn written(folder: &Path) -> Result<Vec<Check>, String> {
    let path = folder.join("checks.json");
    let text = fs::read(&path).map_err(|why| format!("{}: {why}", path.display()))?;
    serde_json::from_slice(&text).map_err(|why| format!("{}: {why}", path.display()))
}

/// How many checks of a scenario went as they must, and a sentence for each that did not.
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
    /// Whether a server that does not do yet what is checked fails it.
    pub fn is_failure(&self) -> bool {
        ["FAILURE", "WARNING"].contains(&self.status.as_str())
    }

    /// Whether it says that something is as it must be.
    pub fn is_success(&self) -> bool {
        self.status == "SUCCESS"
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    fn told(&self) -> String {
        let message = self.message.as_deref().unwrap_or_default();
        format!("{} {message}", self.status).trim_end().to_owned()
    }
}
