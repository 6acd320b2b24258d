//! Misbehaving servers and clients, and hostile bytes, with every driver: the outcome, the memory
//! and the time.
//!
//! Each row runs in its own process, so that the peak of the memory belongs to it.

mod beside;
mod client;
mod coding;
mod engine;
mod flow;
mod rows;
pub(crate) mod server;
pub mod shim;
mod web;

pub use rows::Row;
pub use server::SERVER;
pub use web::WEB;

/// The tables of rows with programs and with engines, in their order.
pub const PROGRAMS: &[&[Row]] = &[rows::ROWS, flow::ROWS];

/// The table of rows with several clients. The calls of one are measured.
pub const BESIDE: &[&[Row]] = &[beside::ROWS, server::STORM];

use crate::orphans::Adapter;
use shim::{Shim, Verdict};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time of one row.
const BOUND: Duration = Duration::from_secs(120);

/// Resident code of the program with all test tools, in MiB, on top of the maximum of a row.
const CODE: u64 = 16;

/// The result of one row.
#[derive(Clone, Debug)]
pub struct Shown {
    /// What the application received.
    pub outcome: String,
    /// Peak of the host's resident memory, in KiB.
    pub peak: u64,
    /// Time from the start of the host.
    pub took: Duration,
    /// Whether the shim has what the row needs. If not, nothing was checked.
    pub offered: bool,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.offered {
            return write!(f, "{:>7} {:>8.2}  not offered: {}", "", self.took.as_secs_f64(), self.outcome);
        }
        write!(f, "{:>7.1} {:>8.2}  {}", self.peak as f64 / 1024.0, self.took.as_secs_f64(), self.outcome)
    }
}

/// What runs a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Host {
    /// A driver with a real program.
    Driver(Adapter),
    /// An engine alone, in this process.
    Engine,
    /// A driver behind a shim.
    Shim,
}

impl Host {
    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Driver(adapter) => adapter.name(),
            Self::Engine => "engine",
            Self::Shim => "shim",
        }
    }
}

/// The input of a row.
#[derive(Clone, Debug)]
pub struct Bench {
    /// What runs it.
    pub host: Host,
    /// The misbehaving program.
    pub child: PathBuf,
    /// The size of "a gibibyte": less in a test that must be quick.
    pub size: u64,
}

impl Bench {
    /// Returns the part of `count` that [`size`](Self::size) is of a gibibyte.
    fn scaled(&self, count: u64) -> u64 {
        count.saturating_mul(self.size) >> 30
    }
}

impl Row {
    /// Runs it in a new process of the program `mcp-tests`.
    ///
    /// # Errors
    /// The fault: the outcome, the memory, or that it does not end.
    pub fn show(&self, hostile: &Path, host: Host, size: u64) -> Result<Shown, String> {
        self.show_in(hostile, host, size, None)
    }

    /// Runs it in a new process of the program `mcp-tests`, against the driver behind this shim.
    ///
    /// # Errors
    /// As [`show`](Self::show), and a shim that hangs, ends early or breaks the rules for its
    /// lines.
    pub fn show_shim(&self, hostile: &Path, command: &str, size: u64) -> Result<Shown, String> {
        self.show_in(hostile, Host::Shim, size, Some(command))
    }

    /// Whether it runs against a driver.
    pub fn is_for_drivers(&self) -> bool {
        self.hosts.iter().any(|host| matches!(host, Host::Driver(_)))
    }

    fn show_in(&self, hostile: &Path, host: Host, size: u64, shim: Option<&str>) -> Result<Shown, String> {
        let began = Instant::now();
        let mut command = Command::new(hostile);
        command.args(["hostile", "row", self.name, host.name(), &size.to_string()]).args(shim);
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
        if peak == NOT_OFFERED {
            return Ok(Shown { outcome: outcome.to_string(), peak: 0, took, offered: false });
        }
        let peak = peak.parse().map_err(|_| format!("{peak} is no number"))?;
        let most = self.peak + CODE;
        if peak > most << 10 {
            return Err(format!("{outcome}; but it took {peak} KiB, more than {most} MiB"));
        }
        Ok(Shown { outcome: outcome.to_string(), peak, took, offered: true })
    }

    /// Runs it in this process. Returns the text that [`show`](Self::show) reads.
    ///
    /// # Errors
    /// The fault.
    pub fn run(&self, bench: &Bench) -> Result<String, String> {
        let outcome = (self.run)(bench)?;
        Ok(format!("{}\t{}", peak("/proc/self/status")?, line(&outcome)))
    }

    /// Runs it in this process, through a shim. Returns the text that [`show`](Self::show) reads.
    ///
    /// # Errors
    /// The fault of the driver or of the shim.
    pub fn run_shim(&self, bench: &Bench, command: &str) -> Result<String, String> {
        Shim::start(command)?;
        let shim = shim::running().ok_or("there is no shim")?;
        let outcome = (self.run)(bench);
        let ran = match shim.finish() {
            Ok(Verdict::NotOffered(what)) => Ok(format!("{NOT_OFFERED}\t{}", line(&what))),
            Ok(Verdict::Ran(peak)) => outcome.map(|outcome| format!("{peak}\t{}", line(&outcome))),
            Err(why) => Err(why),
        };
        ran.map_err(|why| shim.explain(&why))
    }
}

/// Returns the rows of the tables from `first` to `last`.
///
/// # Panics
/// If these are not the names of two rows in this order.
pub fn range<'a>(tables: &[&'a [Row]], first: &str, last: &str) -> Vec<&'a Row> {
    let rows: Vec<&Row> = tables.iter().copied().flatten().collect();
    let place =
        |name| rows.iter().position(|row| row.name == name).unwrap_or_else(|| panic!("there is no row {name:?}"));
    rows[place(first)..=place(last)].to_vec()
}

/// Runs these rows for each of their hosts, `at_once` at a time, since most of them wait for a time
/// limit. `hostile` is the program. Returns a line for each fault.
pub fn failures(rows: &[&Row], hostile: &Path, size: u64, at_once: usize) -> Vec<String> {
    let cases: Vec<_> = rows.iter().flat_map(|row| row.hosts.iter().map(move |host| (*row, *host))).collect();
    each(&cases, at_once, |(row, host)| {
        let why = row.show(hostile, *host, size).err()?;
        Some(format!("{}, {}: {why}", row.name, host.name()))
    })
}

/// Runs these rows against the driver behind a shim, in the same way. A row that the shim does not
/// offer has a fault.
pub fn shim_failures(rows: &[&Row], hostile: &Path, shim: &str, size: u64, at_once: usize) -> Vec<String> {
    each(rows, at_once, |row| match row.show_shim(hostile, shim, size) {
        Ok(shown) if shown.offered => None,
        Ok(shown) => Some(format!("{}: not offered: {}", row.name, shown.outcome)),
        Err(why) => Some(format!("{}: {why}", row.name)),
    })
}

/// Checks cases, some at once. Returns the faults.
fn each<T: Sync>(cases: &[T], at_once: usize, check: impl Fn(&T) -> Option<String> + Sync) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut failed = Vec::new();
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            failed.extend(check(case));
        }
        failed
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no row panics in this process")).collect()
    })
}

/// In place of the peak of a row that was not run.
const NOT_OFFERED: &str = "not offered";

/// Returns a text as one field of a line.
fn line(text: &str) -> String {
    text.replace(['\n', '\t'], " ")
}

/// Returns the peak of a process's resident memory so far, in KiB. `status` is its file.
fn peak(status: &str) -> Result<u64, String> {
    let status = std::fs::read_to_string(status).map_err(|e| e.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    line.trim().trim_end_matches(" kB").parse().map_err(|_| format!("{line} is no size"))
}
