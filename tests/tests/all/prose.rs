//! No file has a fault of the prose that can be counted.

use mcp_tests::{prose, sources};

#[test]
fn prose_has_no_faults() {
    let mut all = String::new();
    for (path, faults) in prose::faults(&sources::root()) {
        all.extend(faults.iter().map(|fault| format!("{path}:{}: {}\n", fault.line, fault.what)));
    }
    assert!(all.is_empty(), "reword:\n{all}");
}
