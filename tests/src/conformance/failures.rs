//! The expected failures of a server, in the format of the suite: scenarios and single checks. The
//! suite ignores the entries of scenarios that it does not score. Here none is ignored.

use std::fs;
use std::path::Path;

use super::checks::Check;

/// The entries for servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures(Vec<String>);

impl Failures {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, or has no entries for servers.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|why| format!("{}: {why}", path.display()))?;
        let failures = Self::of(&text);
        if failures.0.is_empty() { Err(format!("{}: nothing of servers", path.display())) } else { Ok(failures) }
    }

    /// Reads the entries of a text: the lines that begin with `- ` after the line `server:`.
    pub fn of(text: &str) -> Self {
        let lines = text.lines().map(str::trim);
        let servers = lines.skip_while(|line| *line != "server:").skip(1).take_while(|line| *line != "client:");
        Self(servers.filter_map(|line| line.strip_prefix("- ")).map(str::to_owned).collect())
    }

    /// Returns the fault of a scenario with failing checks: an unexpected failure, or an expected
    /// one that does not occur.
    pub fn judge(&self, scenario: &str, checks: &[Check]) -> Option<String> {
        let failing: Vec<&str> = checks.iter().filter(|check| check.is_failure()).map(Check::id).collect();
        if self.0.iter().any(|entry| entry == scenario) {
            // For some features the suite checks nothing if they are absent.
            let succeeds = failing.is_empty() && checks.iter().any(Check::is_success);
            return succeeds.then(|| format!("{scenario} is expected to fail, and succeeds"));
        }
        let single = self.0.iter().filter_map(|entry| entry.split_once(':'));
        let single: Vec<&str> = single.filter(|(of, _)| *of == scenario).map(|(_, check)| check).collect();
        if single.is_empty() {
            return Some(format!("{scenario} is neither listed nor expected to fail"));
        }
        let new = failing.iter().find(|id| !single.contains(id)).map(|id| format!("{scenario}: {id} fails"));
        let over = single.iter().find(|id| !failing.contains(id));
        new.or_else(|| over.map(|id| format!("{scenario}: {id} is expected to fail, and does not")))
    }
}
