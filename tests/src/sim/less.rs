//! The omissions of a run, which make a failing scenario smaller.

use std::collections::BTreeSet;
use std::fmt;

/// Faults and operations that a run leaves out, each by its number in the order of the run, from
/// zero.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Less {
    /// Random faults that are not injected.
    pub faults: BTreeSet<u64>,
    /// Operations of the applications that are not made.
    pub operations: BTreeSet<u64>,
}

impl Less {
    /// Reads one line of a scenario. `None` if it is not a line of this type, or not well-formed.
    pub(super) fn read(&mut self, key: &str, value: &str) -> Option<()> {
        let numbers = match key {
            "skip_faults" => &mut self.faults,
            "skip_operations" => &mut self.operations,
            _ => return None,
        };
        *numbers = value.split_whitespace().map(|number| number.parse().ok()).collect::<Option<_>>()?;
        Some(())
    }
}

/// One line for each set that is not empty.
impl fmt::Display for Less {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, numbers) in [("skip_faults", &self.faults), ("skip_operations", &self.operations)] {
            if !numbers.is_empty() {
                let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
                writeln!(f, "{key} = {}", numbers.join(" "))?;
            }
        }
        Ok(())
    }
}
