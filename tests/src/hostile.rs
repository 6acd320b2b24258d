//! Servers and clients that misbehave, and bytes that are hostile, against every driver: what comes of it, how much memory and how much time
//! it takes.
//!
//! Each row runs in a process of its own, so that the peak of its memory is its own.

mod client;
mod engine;
mod rows;
mod server;
mod web;

pub use rows::{ROWS, Row};
pub use server::SERVER;
pub use web::WEB;

use crate::orphans::Adapter;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long one row may take.
const BOUND: Duration = Duration::from_secs(120);

/// What one row showed.
#[derive(Clone, Debug)]
pub struct Shown {
    /// What the application saw.
    pub outcome: String,
    /// The peak of the host's resident memory, in KiB.
    pub peak: u64,
    /// How long it took, from the start of the host.
    pub took: Duration,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>7.1} {:>8.2}  {}", self.peak as f64 / 1024.0, self.took.as_secs_f64(), self.outcome)
    }
}

/// Who meets a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Host {
    /// A driver and a real program.
    Driver(Adapter),
    /// An engine alone, in this process.
    Engine,
}

impl Host {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Driver(adapter) => adapter.name(),
            Self::Engine => "engine",
        }
    }
}

/// What a row is given.
#[derive(Clone, Debug)]
pub struct Bench {
    /// Who meets it.
    pub host: Host,
    /// The program that misbehaves.
    pub child: PathBuf,
    /// What "a gibibyte" means: less of it in a test that must be quick.
    pub size: u64,
}

impl Bench {
    /// As many of `count` as [`size`](Self::size) is of a gibibyte.
    fn scaled(&self, count: u64) -> u64 {
        count.saturating_mul(self.size) >> 30
    }
}

impl Row {
    /// Runs it in a new process of the program `hostile`.
    ///
    /// # Errors
    /// What is not as it should be: the outcome, the memory, or that it does not end.
    pub fn show(&self, hostile: &Path, host: Host, size: u64) -> Result<Shown, String> {
        let began = Instant::now();
        let mut command = Command::new(hostile);
        command.args(["row", self.name, host.name(), &size.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut running = command.spawn().map_err(|e| e.to_string())?;
        let output = running.stdout.take();
        let (told, said) = channel();
        thread::spawn(move || told.send(output.map(std::io::read_to_string)));
        let said = match said.recv_timeout(BOUND) {
            Ok(Some(Ok(said))) => said,
            Err(RecvTimeoutError::Timeout) => {
                let _ = running.kill();
                let _ = running.wait();
                return Err("it does not end".into());
            }
            other => return Err(format!("{other:?}")),
        };
        let status = running.wait().map_err(|e| e.to_string())?;
        let took = began.elapsed();
        let Some((peak, outcome)) = said.trim_end().split_once('\t').filter(|_| status.success()) else {
            return Err(format!("{status}: {}", said.trim_end()));
        };
        let peak = peak.parse().map_err(|_| format!("{peak} is no number"))?;
        if peak > self.peak << 10 {
            return Err(format!("{outcome}; but it took {peak} KiB, more than {} MiB", self.peak));
        }
        Ok(Shown { outcome: outcome.to_string(), peak, took })
    }

    /// Runs it in this process and says what [`show`](Self::show) reads.
    ///
    /// # Errors
    /// What is not as it should be.
    pub fn run(&self, bench: &Bench) -> Result<String, String> {
        let outcome = (self.run)(bench)?;
        Ok(format!("{}\t{}", peak()?, outcome.replace(['\n', '\t'], " ")))
    }
}

/// Runs the rows of these names for every host that they are for, `at_once` at a time: most of them wait for one limit or another to pass.
/// `hostile` is the program. Returns a line for each that is not as it should be.
///
/// # Panics
/// There is no row of a name.
pub fn failures(tables: &[&[Row]], names: &[&str], hostile: &Path, size: u64, at_once: usize) -> Vec<String> {
    let find = |name: &&str| {
        let mut all = tables.iter().copied().flatten();
        all.find(|row| row.name == *name).unwrap_or_else(|| panic!("there is no row {name:?}"))
    };
    let cases: Vec<_> = names.iter().map(find).flat_map(|row| row.hosts.iter().map(move |host| (row, *host))).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut failed = Vec::new();
        while let Some((row, host)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(why) = row.show(hostile, *host, size) {
                failed.push(format!("{}, {}: {why}", row.name, host.name()));
            }
        }
        failed
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no row panics in this process")).collect()
    })
}

/// The peak of the resident memory of this process so far, in KiB.
fn peak() -> Result<u64, String> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|e| e.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    line.trim().trim_end_matches(" kB").parse().map_err(|_| format!("{line} is no size"))
}
