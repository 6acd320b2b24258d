//! Divides the faults among runs.

use super::Fault;

/// The arguments that compile the test of most faults.
const CORE: [&str; 3] = ["-p", "mcp-proto", "--lib"];

/// Returns part `part` of `parts`, counted from 1. Every fault is in one part. Those whose test is
/// not one of the core without further features are all in the last part: other parts compile
/// nothing for them. With one part it has all.
pub fn share(faults: &[Fault], part: usize, parts: usize) -> Vec<&Fault> {
    let (core, others): (Vec<&Fault>, Vec<&Fault>) = faults.iter().partition(|fault| fault.build() == CORE);
    let own = core.into_iter().skip(part.saturating_sub(1)).step_by(parts.saturating_sub(1).max(1));
    match (part, parts) {
        (_, 0 | 1) => faults.iter().collect(),
        (part, parts) if part == parts => others,
        _ => own.collect(),
    }
}
