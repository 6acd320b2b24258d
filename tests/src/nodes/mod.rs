//! Servers that share a store, as real processes: six servers behind nginx, and clients of several
//! SDKs that check each answer, while servers are killed, and the store goes back in time and fails
//! over.
//!
//! [`server`] is the program of a server.

mod callers;
mod checks;
mod cost;
mod crossed;
mod foreign;
mod ground;
mod monitor;
mod redis;
pub mod server;
mod tasks;

pub use cost::Row;
pub use redis::Shape;

use crate::interop::setup::{self, Which};
use crate::sim::rng::Rng;
use callers::{Callers, Tally};
use crossed::Crossed;
use foreign::Foreign;
use ground::Ground;
use mcp_driver::store;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fmt, thread};
use tasks::Tasks;

/// The interval of the kills.
const KILLS: Duration = Duration::from_secs(15);
/// The longest that a run takes, if tasks end late.
const LONGEST: Duration = Duration::from_secs(400);
/// The number of our clients.
const CLIENTS: usize = 80;
/// The time after which a lost node is noticed, and what has run there is settled.
const SETTLES: Duration = Duration::from_secs(25);

/// What a call may fail with, in the words of the servers, of nginx and of the SDKs.
const CAUSES: &[&str] = &[
    // Its server was killed.
    "the node that ran this request was lost",
    "502 Bad Gateway",
    "HTTP 502",
    "504 Gateway Time-out",
    // Its connection was one to that server.
    "Transport closed",
    "Connection closed",
    "ClosedResourceError",
    "SSE stream ended",
    "No response received for request ID",
    // The store was away.
    "the store does not reply",
    "the store of the sessions does not reply",
    "the store of the tasks does not reply",
    "503 Service Unavailable",
    "HTTP 503",
    // The store has lost what was written last: a task, a session, the event of a resumed stream.
    "the server does not know the task any more",
    "the session has ended",
    "HTTP 400, after attempt to resume",
    "HTTP 404",
    "404 Not Found",
    "Session not found",
    "Session terminated",
    // Python 2.x says the same of every status.
    "Server returned an error response",
];

/// The words for a timeout. Some SDKs do not tell a call that its stream has ended.
const TIMEOUTS: &[&str] = &["Request timed out", "TimeoutError", "no answer"];

/// The numbers of a run.
#[derive(Debug)]
pub struct Report {
    /// `None`: the servers are in one process, which has the store.
    shape: Option<Shape>,
    /// What was checked once.
    checked: usize,
    kills: u32,
    rollbacks: u32,
    failovers: u32,
    ours: Tally,
    foreign: Vec<Foreign>,
    tasks: (usize, usize),
    /// What has gone from one server to another, and the tasks that have run again.
    crossed: Crossed,
    reruns: usize,
}

/// Runs the suite of stores against a store of this shape, and once more after a failover. Returns
/// the number of replies that were compared.
///
/// # Errors
/// What is wrong.
pub fn check_store(shape: Shape) -> Result<usize, String> {
    let folder = setup::place("nodes-store")?;
    let mut servers = redis::Servers::start(shape, &folder)?;
    let words = servers.words();
    let driver = shape.store(&words[1..]).ok_or("no URL")?;
    let mut compared = store::check(&driver)?;
    servers.check_left()?;
    if shape == Shape::Sentinel {
        servers.fail_over()?;
        compared += store::check(&driver)?;
        servers.check_left()?;
    }
    Ok(compared)
}

/// Measures what a store costs.
///
/// # Errors
/// What cannot be measured.
pub fn cost() -> Result<Vec<Row>, String> {
    cost::measure()
}

/// Runs servers and clients for a time.
///
/// # Errors
/// What is wrong.
pub fn run(shape: Option<Shape>, length: Duration, seed: u64) -> Result<Report, String> {
    let installed = setup::install(Which::All)?;
    let mut ground = Ground::start(shape)?;
    let checked = checks::check(&ground.addresses())?;
    let mut rng = Rng::new(seed);
    let callers = Callers::start(ground.url(), CLIENTS)?;
    let foreign = foreign::start(&installed, &ground)?;
    let (mut kills, mut rollbacks, mut failovers) = (0, 0, 0);
    let tasks = Tasks::start(ground.url())?;
    let begun = Instant::now();
    let is_due = |rollbacks: u32, failovers: u32| {
        shape.is_some() && rollbacks == 0 || shape == Some(Shape::Sentinel) && failovers == 0
    };
    while begun.elapsed() < length || begun.elapsed() < LONGEST && is_due(rollbacks, failovers) {
        thread::sleep(KILLS.min(length));
        if ground.can_kill() {
            ground.kill(rng.below(ground::SERVERS as u64) as usize)?;
            kills += 1;
        }
        // What the store has lost could be a task.
        if shape.is_some() && rollbacks == 0 && begun.elapsed() >= length / 3 && tasks.have_ended() {
            ground.roll_back()?;
            rollbacks += 1;
        }
        if shape == Some(Shape::Sentinel) && failovers == 0 && begun.elapsed() >= length * 2 / 3 && rollbacks > 0 {
            ground.fail_over()?;
            failovers += 1;
        }
    }
    thread::sleep(SETTLES);
    let foreign = foreign::end(foreign);
    let ours = callers.end();
    let (tasks, crossed, reruns) = (tasks.end(), ground.crossed()?, ground.reruns());
    ground.keep_lines()?;
    Ok(Report { shape, checked, kills, rollbacks, failovers, ours, foreign, tasks, crossed, reruns })
}

impl Report {
    /// Returns the number of answers, and of single checks.
    pub fn answered(&self) -> u64 {
        let foreign: u64 = self.foreign.iter().map(|foreign| foreign.tally.answered).sum();
        self.ours.answered + foreign + self.checked as u64 + self.tasks.0 as u64
    }

    /// Returns what must not be.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = self.ours.faults.clone();
        if self.ours.alive != CLIENTS {
            faults.push(format!("{} of {CLIENTS} of our clients are answered at the end", self.ours.alive));
        }
        for Foreign { name, count, tally } in &self.foreign {
            faults.extend(tally.faults.iter().map(|fault| format!("{name}: {fault}")));
            // A client of HTTP+SSE whose stream has ended may wait for ever in its SDK.
            let may_hang = usize::from(name.ends_with("sse"));
            if tally.alive + may_hang < *count {
                faults.push(format!("{name}: {} of {count} clients are answered at the end", tally.alive));
            }
            if tally.slowest > callers::LONGEST.as_secs_f64() {
                faults.push(format!("{name}: a call took {:.1} s", tally.slowest));
            }
            if tally.answered * 10 < tally.begun * 8 {
                faults.push(format!("{name}: fewer than eight of ten calls are answered"));
            }
        }
        if self.shape.is_some() && self.rollbacks == 0 || self.shape == Some(Shape::Sentinel) && self.failovers == 0 {
            faults.push("the store has not failed".to_owned());
        }
        if self.ours.answered * 10 < self.ours.begun * 9 {
            faults.push("fewer than nine of ten calls are answered".to_owned());
        }
        let tallies = self.foreign.iter().map(|foreign| (foreign.name.as_str(), &foreign.tally));
        for (name, tally) in [("ours", &self.ours)].into_iter().chain(tallies) {
            if self.kills == 0 && !tally.failed.is_empty() {
                faults.push(format!("{name}: calls fail although nothing does: {:?}", tally.failed));
            }
            let is_one = |cause: &str, words: &[&str]| words.iter().any(|known| cause.contains(known));
            let timeouts = tally.failed.iter().filter(|(cause, _)| is_one(cause, TIMEOUTS)).map(|(_, count)| count);
            let timeouts: u64 = timeouts.sum();
            // On 2026-07-28 a call ends with its connection.
            if timeouts * 20 > tally.begun || timeouts > 0 && name.ends_with("modern") {
                faults.push(format!("{name}: {timeouts} calls have a timeout"));
            }
            let unknown = tally.failed.keys().filter(|cause| !is_one(cause, CAUSES) && !is_one(cause, TIMEOUTS));
            faults.extend(unknown.map(|cause| format!("{name}: a call fails without a known cause: {cause}")));
        }
        faults.extend(self.missing().map(|what| format!("{what} in the whole run")));
        let (ended, all) = self.tasks;
        if ended != all {
            faults.push(format!("{ended} of {all} tasks are complete"));
        }
        faults
    }
}

impl Report {
    /// Returns what was to happen, and has not.
    fn missing(&self) -> impl Iterator<Item = &'static str> {
        let Crossed { resumed, answered, repeated } = self.crossed;
        let has_kills = self.shape.is_some();
        let all = [
            (has_kills && resumed == 0, "no stream was resumed at another server"),
            (answered == 0, "no question of a session was answered through another server"),
            (repeated == 0, "no call was repeated with its answer at another server"),
            (has_kills && self.reruns == 0, "no server of a task was killed"),
        ];
        all.into_iter().filter_map(|(is_missing, what)| is_missing.then_some(what))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shape, checked, kills, rollbacks, failovers, ours, foreign, tasks, crossed, reruns } = self;
        let shape = shape.map_or("memory", Shape::name);
        writeln!(f, "{shape}: {kills} kills, {rollbacks} times back, {failovers} failovers, {checked} single checks")?;
        writeln!(f, "tasks that were to survive: {} of {}; {reruns} tasks have run again", tasks.0, tasks.1)?;
        writeln!(f, "{crossed}")?;
        write!(f, "{:<24} {CLIENTS:>3} clients  {ours}", "ours")?;
        for Foreign { name, count, tally } in foreign {
            write!(f, "\n{name:<24} {count:>3} clients  {tally}")?;
        }
        Ok(())
    }
}

/// Returns the folder of our programs for other SDKs.
fn programs() -> std::path::PathBuf {
    crate::sources::root().join(Path::new("tests/nodes"))
}
