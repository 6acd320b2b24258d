//! The programs that `cost` starts.

use super::{Goal, Row};
use crate::peer::Failure;
use crate::sources;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Returns the crates that each adapter needs at least, itself and the core included.
///
/// # Errors
/// cargo fails.
pub fn crates() -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (name, most) in [("mcp-blocking", 20.0), ("mcp-smol", 45.0)] {
        let mut cargo = Command::new("cargo");
        cargo.args(["tree", "-p", name, "--no-default-features", "-e", "normal", "--prefix", "none"]);
        let output = cargo.current_dir(sources::root()).output()?;
        let tree = String::from_utf8(output.stdout)?;
        let crates: BTreeSet<&str> = tree.lines().map(|line| line.split(" (").next().unwrap_or(line)).collect();
        rows.push(Row::new(format!("crates of {name} without features"), crates.len() as f64, Goal::AtMost(most)));
    }
    Ok(rows)
}

/// Runs `mcp-heap cost`, and returns its numbers.
///
/// # Errors
/// It fails.
pub fn heap(program: &Path) -> Result<Vec<Row>, Failure> {
    let output = Command::new(program).arg("cost").output()?;
    if !output.status.success() {
        return Err(format!("{}: {}", program.display(), String::from_utf8_lossy(&output.stderr)).into());
    }
    let table = String::from_utf8(output.stdout)?;
    Ok(table.lines().flat_map(numbers).collect())
}

/// Returns the numbers of a line, which has a name, then numbers, each with its unit.
pub fn numbers(line: &str) -> Vec<Row> {
    let (name, numbers) = line.split_once("  ").unwrap_or((line, ""));
    let words: Vec<&str> = numbers.split_whitespace().collect();
    let number = |pair: &[&str]| {
        let value = pair.first()?.parse().ok()?;
        let unit = pair.get(1)?;
        Some(Row::new(format!("{name}, {unit}"), value, goal(name, unit)))
    };
    words.chunks(2).filter_map(number).collect()
}

fn goal(name: &str, unit: &str) -> Option<Goal> {
    let bound = match (name, unit) {
        (_, "allocations") if name.starts_with("call ") => 15.0,
        (_, "allocations") if name.starts_with("server-sent event") => 2.0,
        ("heap of a connection that says nothing" | "heap of a connection that has asked once", _) => 3072.0,
        ("heap of a session with its stream" | "heap of a subscription", _) => 4096.0,
        ("heap of a session" | "heap of each of 10000 calls in flight", _) => 1024.0,
        _ => return None,
    };
    Some(Goal::AtMost(bound))
}
