//! Instructions of a call in each engine, counted by callgrind in this program: the difference
//! between two runs of different lengths, so that what happens once does not count.
//!
//! The engines take neither random numbers nor the time from elsewhere, so two runs differ by
//! nothing. Another compiler, another C library (memory and its copying) or another valgrind has
//! other numbers.

use super::{Era, Goal, Heap, Kept, Pair, Row, Transport, compiler};
use crate::peer::Failure;
use std::path::Path;
use std::process::Command;

/// Calls of the two runs.
const RUNS: [u64; 2] = [100, 300];

/// How far a number may be from the kept one, in parts.
const SLACK: f64 = 0.05;

/// Returns a row for each transport, era and side. `cost`: the program that makes the calls when
/// its arguments are `calls TRANSPORT ERA COUNT`.
///
/// # Errors
/// There is no valgrind.
pub fn rows(cost: &Path) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for transport in Transport::ALL {
        for era in Era::ALL {
            for side in ["client", "server"] {
                let run = |calls| collected(cost, transport, era, side, calls);
                let each = (run(RUNS[1])? - run(RUNS[0])?) as f64 / (RUNS[1] - RUNS[0]) as f64;
                let goal = match (transport, era) {
                    (Transport::Lines, Era::Modern) => Some(Goal::AtMost(22_000.0)),
                    (Transport::Http, Era::Modern) => Some(Goal::AtMost(45_000.0)),
                    (_, Era::Legacy) => None,
                };
                rows.push(Row::new(format!("instructions a call, {transport}, {era}, {side}"), each.round(), goal));
            }
        }
    }
    Ok(rows)
}

/// Returns the kept table.
///
/// # Errors
/// There is no valgrind.
pub fn kept() -> Result<Kept, Failure> {
    let version = |program: &str, argument: &str| -> Result<String, Failure> {
        let output = Command::new(program).arg(argument).output().map_err(|e| format!("{program}: {e}"))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let (library, valgrind) = (version("getconf", "GNU_LIBC_VERSION")?, version("valgrind", "--version")?);
    Ok(Kept {
        file: "instructions.txt",
        head: format!("{}, {library}, {valgrind}", compiler()),
        agrees: |now, kept| (now / kept - 1.0).abs() <= SLACK,
        keep: |row| row.value,
    })
}

/// Makes this number of calls: what is counted.
///
/// # Errors
/// The words are no transport and era.
pub fn calls(transport: &str, era: &str, count: &str) -> Result<(), Failure> {
    let transport = Transport::ALL.into_iter().find(|one| one.to_string() == transport).ok_or("no transport")?;
    let era = Era::ALL.into_iter().find(|one| one.to_string() == era).ok_or("no era")?;
    let mut pair = Pair::new(transport, era, Heap::default);
    for _ in 0..count.parse::<u64>()? {
        pair.call();
    }
    Ok(())
}

/// Returns the instructions inside of the functions for this side.
fn collected(cost: &Path, transport: Transport, era: Era, side: &str, calls: u64) -> Result<u64, Failure> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg(format!("--toggle-collect=*measured_{side}*")).arg(cost);
    valgrind.args(["cost", "calls", &transport.to_string(), &era.to_string(), &calls.to_string()]);
    let output = valgrind.output().map_err(|e| format!("valgrind: {e}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let number = text.lines().find_map(|line| line.split_once("Collected : ")).map(|(_, number)| number.trim());
    match number {
        Some(number) if output.status.success() => Ok(number.parse()?),
        _ => Err(format!("valgrind: {text}").into()),
    }
}
