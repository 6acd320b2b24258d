#![forbid(unsafe_code)]
//! Each file has as many faults of the prose as `tests/prose.txt` keeps; that number only shrinks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use mcp_tests::prose::{self, Fault, KEPT, RULES};
use mcp_tests::sources;

/// Rewrites the kept numbers.
const UPDATE: &str = "cargo run -p mcp-tests --bin survey -- --prose";

/// The kept numbers of each file.
fn numbers(text: &str) -> BTreeMap<&str, Vec<usize>> {
    let lines = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(' '));
    let counted = lines.filter_map(|mut words| {
        let path = words.next()?;
        Some((path, words.map(|word| word.parse().expect("a number")).collect()))
    });
    counted.collect()
}

#[test]
fn prose_has_no_new_faults() {
    let kept = fs::read_to_string(sources::root().join(KEPT)).unwrap_or_default();
    let (faults, kept) = (prose::faults(&sources::root()), numbers(&kept));
    let (mut more, mut fewer) = (String::new(), String::new());
    let none: Vec<Fault> = Vec::new();
    let paths = kept.keys().copied().chain(faults.keys().map(String::as_str));
    for path in paths.collect::<BTreeSet<_>>() {
        for (rule, name) in RULES.iter().enumerate() {
            let found: Vec<_> = faults.get(path).unwrap_or(&none).iter().filter(|fault| fault.rule == rule).collect();
            let allowed = kept.get(path).and_then(|counts| counts.get(rule)).copied().unwrap_or(0);
            if found.len() > allowed {
                more += &format!("{path}: {name}: {} found, {allowed} kept\n", found.len());
                more.extend(found.iter().map(|fault| format!("    {path}:{}: {}\n", fault.line, fault.what)));
            } else if found.len() < allowed {
                fewer += &format!("{path}: {name}: {} found, {allowed} kept\n", found.len());
            }
        }
    }
    assert!(more.is_empty(), "prose has new faults; reword:\n{more}");
    assert!(fewer.is_empty(), "prose has fewer faults than {KEPT} keeps:\n{fewer}Keep the lower numbers: {UPDATE}");
}
