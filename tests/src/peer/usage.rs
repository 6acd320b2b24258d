//! The resource usage of a process, from `/proc`. Without `/proc`, everything is zero.

use std::fs;
use std::time::Duration;

/// The unit of processor time in `/proc`, which is the same on every relevant machine, whatever the
/// kernel uses.
const TICK: Duration = Duration::from_millis(10);

/// The resource usage of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Resident memory, in KiB.
    pub resident: u64,
    /// Peak of the resident memory, in KiB.
    pub peak: u64,
    /// Threads.
    pub threads: u64,
    /// Processor time of all threads so far, in steps of 10 ms.
    pub time: Duration,
}

impl Usage {
    /// Returns the usage of this process.
    pub fn own() -> Self {
        Self::of(Some(std::process::id()))
    }

    /// Returns the usage of the process with this id. Zero if there is none.
    pub fn of(pid: Option<u32>) -> Self {
        let Some(pid) = pid else { return Self::default() };
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let field = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            value.and_then(|value| value.split_whitespace().next()?.parse().ok()).unwrap_or_default()
        };
        let ticks: u32 = stat(pid).map_or(0, |fields| {
            let field = |at: usize| fields.get(at).and_then(|field| field.parse::<u32>().ok()).unwrap_or_default();
            field(11) + field(12)
        });
        Self { resident: field("VmRSS"), peak: field("VmHWM"), threads: field("Threads"), time: TICK * ticks }
    }
}

/// Returns the process that this one has started, if there is exactly one.
pub fn child() -> Option<u32> {
    let own = std::process::id().to_string();
    let all = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut children = all.filter(|pid| stat(*pid).is_some_and(|fields| fields.get(1) == Some(&own)));
    children.next().filter(|_| children.next().is_none())
}

/// Returns the fields of `/proc/PID/stat` after the name, which may contain anything: the state,
/// the parent, and so on.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    Some(fields.split_whitespace().map(String::from).collect())
}
