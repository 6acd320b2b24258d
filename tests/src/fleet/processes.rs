//! The processes of the programs, by a mark in their environment, which every descendant inherits.

use rustix::process::{Pid, Signal, getpgid, kill_process};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The name of the mark. Its value is the name of the run, a slash, and the key of the server.
pub(super) const MARK: &str = "MCP_REAL_FLEET";

/// Interval of the looks. Two processes of one server may be seen in one look, while one of them
/// dies, and not in two.
const LOOK: Duration = Duration::from_millis(25);

/// A process that has not ended. One that is about to has no environment any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Marked {
    pub(super) pid: i32,
    /// Its process group: that of the program which the client has started.
    pub(super) group: i32,
    /// The key of its server.
    pub(super) key: String,
}

impl Marked {
    /// Kills it. Returns whether it existed.
    pub(super) fn kill(&self) -> bool {
        Pid::from_raw(self.pid).is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
    }
}

/// Returns the processes of a run.
pub(super) fn marked(run: &str) -> Vec<Marked> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let mut variables = environment.split(|byte| *byte == 0).filter_map(|one| std::str::from_utf8(one).ok());
        let mark = variables.find_map(|one| one.strip_prefix(MARK)?.strip_prefix('='))?;
        let key = mark.strip_prefix(run)?.strip_prefix('/')?.to_owned();
        let group = getpgid(Pid::from_raw(pid)).ok()?.as_raw_pid();
        Some(Marked { pid, group, key })
    })
    .collect()
}

/// What the looks have found so far.
#[derive(Default)]
struct Looks {
    /// The process groups.
    groups: BTreeSet<i32>,
    /// Pairs of one server that were seen in the latest look.
    pairs: BTreeSet<(i32, i32)>,
    doubled: Vec<String>,
}

impl Looks {
    fn look(&mut self, now: &[Marked]) {
        let mut of: BTreeMap<&str, BTreeSet<i32>> = BTreeMap::new();
        for process in now {
            of.entry(&process.key).or_default().insert(process.group);
        }
        let mut pairs = BTreeSet::new();
        for (key, groups) in of {
            self.groups.extend(&groups);
            for (one, other) in groups.iter().zip(groups.iter().skip(1)) {
                if self.pairs.contains(&(*one, *other)) {
                    self.doubled.push(format!("{key} had two programs at once, {one} and {other}"));
                }
                pairs.insert((*one, *other));
            }
        }
        self.pairs = pairs;
    }
}

/// What was seen of the programs.
pub(super) struct Seen {
    /// The number of those that were started.
    pub(super) programs: usize,
    /// The servers that had two at once, each with both.
    pub(super) doubled: Vec<String>,
}

/// Looks at short intervals.
pub(super) struct Lookout {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Looks>,
}

impl Lookout {
    pub(super) fn start(run: &str) -> Self {
        let (stop, run) = (Arc::new(AtomicBool::new(false)), run.to_owned());
        let stopped = Arc::clone(&stop);
        let looks = move || {
            let mut looks = Looks::default();
            while !stopped.load(Ordering::Relaxed) {
                looks.look(&marked(&run));
                thread::park_timeout(LOOK);
            }
            looks
        };
        Self { stop, thread: thread::spawn(looks) }
    }

    pub(super) fn stop(self) -> Result<Seen, String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        let looks = self.thread.join().map_err(|_| "the lookout panicked")?;
        Ok(Seen { programs: looks.groups.len(), doubled: looks.doubled })
    }
}
