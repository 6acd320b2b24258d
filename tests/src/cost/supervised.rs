//! What a supervisor costs while its servers rest: heap and threads, and what it does meanwhile,
//! which must be nothing.

use super::{Goal, Row};
use crate::adapters::Adapter;
use crate::fleet::resting::Cost;
use crate::interop::setup::beside;
use crate::peer::Failure;
use std::process::Command;

/// Number of servers: programs over stdio.
const SERVERS: &str = "100";

/// The measured time at rest, in seconds.
const LENGTH: &str = "10";

/// Returns the rows of each adapter.
///
/// # Errors
/// A program fails.
pub fn rows() -> Result<Vec<Row>, Failure> {
    let (fleet, server) = (beside("mcp-heap")?, beside("mcp-tests")?);
    let mut rows = Vec::new();
    for adapter in Adapter::ALL {
        let mut program = Command::new(&fleet);
        program.args(["real-fleet", "rest", adapter.name()]).arg(&server).args([SERVERS, LENGTH]);
        let output = program.output()?;
        let printed = String::from_utf8(output.stdout)?;
        let told = String::from_utf8_lossy(&output.stderr);
        let cost = Cost::read(&printed).ok_or_else(|| format!("it prints {printed:?} {told}"))?;
        let row = |what: &str, value: f64, goal| {
            Row::new(format!("{what} of a supervisor of {SERVERS} servers at rest, {}", adapter.name()), value, goal)
        };
        let each = cost.heap as f64 / cost.servers as f64;
        let most = (adapter == Adapter::Smol).then_some(Goal::AtMost(0.0));
        rows.push(row("heap in bytes", cost.heap as f64, None));
        rows.push(row("heap of each server in bytes", each, Goal::AtMost(32768.0).into()));
        rows.push(row("threads", cost.threads as f64, most));
        let idle = || Goal::AtMost(0.0).into();
        rows.push(row(&format!("context switches in {LENGTH} s"), cost.switches as f64, idle()));
        rows.push(row(&format!("milliseconds of processor time in {LENGTH} s"), cost.time.as_millis() as f64, idle()));
    }
    Ok(rows)
}
