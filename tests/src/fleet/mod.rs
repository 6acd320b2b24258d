//! A real fleet: a supervisor of servers of other projects, which die all the time.
//!
//! One configuration file names programs and URLs. The command `mcp` tries each of them once. Then,
//! for some time, a random server is killed every few hundred milliseconds while callers use random
//! ones. Afterwards each server must be connected again, and nothing may be left of those that
//! died: no process, no memory, no descriptor, no thread.

mod callers;
mod command;
mod file;
mod kills;
mod processes;
pub mod resting;
mod tools;

use crate::adapters::{Adapter, Supervisor};
use crate::interop::listening::Listening;
use crate::interop::processes::Watch;
use crate::interop::setup::Installed;
use crate::sim::rng::Rng;
use crate::soak::Heap;
use crate::soak::meter::{Held, settle};
use callers::{Callers, Tally};
use file::{Entry, Listed};
use kills::Kills;
use mcp_driver::ClientOptions;
use mcp_proto::process::Stderr;
use mcp_proto::record::{Difference, Recorder, Redaction, Summary};
use mcp_supervisor::config_file::{ConfigFile, Trust};
use mcp_supervisor::front::SupervisorOptions;
use mcp_supervisor::record::SupervisorRecording;
use mcp_supervisor::{Counters, Event, Freshness, ListKind, ServerSpec, ServerState, Supervision, WhenDown};
use processes::{Lookout, Seen, marked};
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{fs, process, thread};

/// The time within which all servers are connected once nothing is killed any more: the longest
/// delay of [`supervision`], and the start of sixteen servers, most of them interpreters, on two
/// busy processors.
const REST: Duration = Duration::from_secs(40);
/// Interval of the looks at a server that is to be connected.
const LOOK: Duration = Duration::from_millis(50);
/// The most that the heap may grow in the storm, in bytes: tables and buffers that have grown once.
const SLACK: i64 = 64 << 10;
/// The descriptors and the threads that one more idle connection takes at most. A client over HTTP
/// keeps as many as it needed at once, so there may be one more for each URL. A leak for each
/// server that dies exceeds this at once.
const CONNECTION: (usize, u64) = (3, 2);
/// The shortest storm before the first measurement, after which everything that is created once
/// exists. Usually it is a quarter of the other one.
const WARM: Duration = Duration::from_secs(8);

/// Returns how the servers are treated. A server dies every few seconds, so all delays are shorter
/// than the defaults, and far more attempts are permitted: otherwise every server would be down
/// most of the time. One with a URL still becomes down, since its interpreter starts more slowly
/// than four attempts fail.
fn supervision() -> Supervision {
    let mut policy = Supervision::default();
    policy.waits = [100, 200, 400, 800].map(Duration::from_millis).to_vec();
    policy.max_attempts = 200;
    policy.when_down = WhenDown::Probe { first: Duration::from_millis(500), max: Duration::from_secs(2) };
    policy
}

/// A run.
#[derive(Clone, Copy, Debug)]
pub struct Fleet {
    /// The adapter of the supervisor.
    pub adapter: Adapter,
    /// How long servers are killed.
    pub length: Duration,
    /// Determines which.
    pub seed: u64,
    /// The heap of this process.
    pub heap: Heap,
}

/// The numbers of a run.
#[derive(Debug)]
pub struct Report {
    entries: usize,
    kills: Kills,
    counters: Counters,
    ups: u64,
    downs: u64,
    tally: Tally,
    programs: usize,
    rest: Duration,
    before: Held,
    after: Held,
    /// The replay of the recorded decisions.
    replayed: Summary,
}

/// The events of a supervisor, counted.
#[derive(Default)]
struct Events {
    ups: AtomicU64,
    downs: AtomicU64,
    lost: AtomicU64,
}

impl Fleet {
    /// Runs it.
    ///
    /// # Errors
    /// What is wrong, with the numbers so far.
    pub fn run(&self, installed: &Installed) -> Result<Report, String> {
        let name = format!("{}-{}", process::id(), self.adapter.name());
        let Listed { entries, text, listening } = file::list(installed, &name)?;
        let path = installed.scratch.join("fleet.json");
        fs::write(&path, &text).map_err(|why| format!("{}: {why}", path.display()))?;
        if self.adapter == Adapter::Blocking {
            // It is a program of that adapter.
            command::check(&entries, &path, &mut Rng::new(self.seed))?;
        }
        let events = Arc::new(Events::default());
        let recording = installed.scratch.join(format!("fleet-{}.jsonl", self.adapter.name()));
        let recorder = fs::File::create(&recording).map(|file| Recorder::to(Redaction::Raw, file));
        let recorder = recorder.map_err(|why| format!("{}: {why}", recording.display()))?;
        let supervisor = self.supervise(&events, recorder)?;
        add_all(&supervisor, &fs::read_to_string(&path).map_err(|why| why.to_string())?)?;
        let mut running = Running { fleet: *self, name, supervisor, entries, listening, rng: Rng::new(self.seed) };
        let mut report = running.storms(&events)?;
        running.end()?;
        report.replayed = replay(&recording)?;
        Ok(report)
    }

    fn supervise(&self, events: &Arc<Events>, recorder: Recorder) -> Result<Supervisor, String> {
        let events = Arc::clone(events);
        let told = move |event| {
            let count = match event {
                Event::Up { .. } => &events.ups,
                Event::Down { .. } => &events.downs,
                Event::Lost { .. } => &events.lost,
                _ => return,
            };
            count.fetch_add(1, Ordering::Relaxed);
        };
        let options = SupervisorOptions::new().policy(supervision()).on_event(told).record(recorder);
        // Programs that are killed complain, and say hello each time.
        let options = options.clients(|_| ClientOptions::new().stderr(Stderr::Discard));
        self.adapter.supervise(options).map_err(|why| why.to_string())
    }
}

/// Replays the decisions of the supervisor.
fn replay(file: &Path) -> Result<Summary, String> {
    let bytes = fs::read(file).map_err(|why| format!("{}: {why}", file.display()))?;
    let recording = SupervisorRecording::<String>::read(&bytes).map_err(|why| format!("{}: {why}", file.display()))?;
    let differs = |difference: Difference| format!("{}, line {}{difference}", file.display(), difference.line);
    recording.replay().map_err(differs)
}

/// Adds the servers of a configuration file.
fn add_all(supervisor: &Supervisor, text: &str) -> Result<(), String> {
    let file = ConfigFile::parse(text).map_err(|why| why.to_string())?;
    for (key, entry) in file.servers() {
        let entry = entry.map_err(|why| why.to_string())?;
        let config = entry.client_config(&|_| None, Trust::Trusted).map_err(|why| why.to_string())?;
        supervisor.add(key, ServerSpec::new(config)).map_err(|why| format!("{key}: {why}"))?;
    }
    Ok(())
}

/// A supervisor with its servers.
struct Running {
    fleet: Fleet,
    /// The mark of its programs.
    name: String,
    supervisor: Supervisor,
    entries: Arc<[Entry]>,
    listening: Vec<Listening>,
    rng: Rng,
}

impl Running {
    fn storms(&mut self, events: &Events) -> Result<Report, String> {
        self.rest().map_err(|why| format!("at first {why}"))?;
        self.storm(WARM.max(self.fleet.length / 4)).map_err(|why| format!("warming up, {why}"))?;
        self.rest()?;
        let before = self.held();
        let (counters, ups, downs) = (self.counters(), count(&events.ups), count(&events.downs));
        let (kills, tally, seen, ended) = self.storm(self.fleet.length)?;
        self.rest()?;
        let rest = ended.elapsed();
        let urls = self.listening.len();
        let most = Held {
            descriptors: before.descriptors + CONNECTION.0 * urls,
            threads: before.threads + CONNECTION.1 * urls as u64,
            ..before
        };
        let after = self.held();
        let report = Report {
            entries: self.entries.len(),
            kills,
            counters: less(self.counters(), counters),
            ups: count(&events.ups) - ups,
            downs: count(&events.downs) - downs,
            tally,
            programs: seen.programs,
            rest,
            before,
            after,
            replayed: Summary::default(),
        };
        let mut faults = [report.tally.faults.clone(), seen.doubled].concat();
        if report.tally.ended() + report.tally.faults.len() as u64 != report.tally.begun {
            faults.push("a call has not ended once".to_owned());
        }
        if count(&events.lost) > 0 {
            faults.push("events were lost".to_owned());
        }
        if after.exceeds(&most, SLACK) {
            faults.push("something has grown".to_owned());
        }
        if kills.programs == 0 || kills.urls == 0 || report.ups == 0 || report.tally.answered == 0 {
            faults.push("nothing was tested".to_owned());
        }
        match faults.is_empty() {
            true => Ok(report),
            false => Err(format!("{}\n{report}", faults.join("\n"))),
        }
    }

    /// Kills servers for this time while callers use them. Returns also when that ended.
    fn storm(&mut self, length: Duration) -> Result<(Kills, Tally, Seen, Instant), String> {
        let lookout = Lookout::start(&self.name);
        let callers = Callers::start(&self.supervisor, &self.entries, &mut self.rng);
        let kills = kills::kill(&self.name, &self.entries, &mut self.listening, length, &mut self.rng);
        let ended = Instant::now();
        let (tally, seen) = (callers.stop(), lookout.stop());
        Ok((kills?, tally?, seen?, ended))
    }

    /// Waits until each server is connected, its list of tools is fresh, and it answers a call.
    fn rest(&mut self) -> Result<(), String> {
        let (began, mut unlike) = (Instant::now(), String::new());
        for entry in self.entries.iter() {
            loop {
                // A client over HTTP may not know yet that its server was killed.
                let answer = callers::answers(&self.supervisor, entry, &mut self.rng);
                let state = self.supervisor.health(&entry.key).map(|health| health.state);
                let freshness = self.supervisor.freshness(&entry.key, ListKind::Tools);
                if answer.is_ok() && matches!(state, Some(ServerState::Ready { .. })) && freshness == Freshness::Fresh {
                    break;
                }
                if began.elapsed() > REST {
                    _ = write!(unlike, "{} is {state:?}, its tools are {freshness:?}, and it {answer:?}; ", entry.key);
                    break;
                }
                thread::sleep(LOOK);
            }
        }
        if unlike.is_empty() { Ok(()) } else { Err(format!("not connected: {unlike}")) }
    }

    /// Returns what is in use once that is stable: connections that a server closes when they are
    /// idle are closed then.
    fn held(&self) -> Held {
        self.listening.iter().for_each(Listening::forget_lines);
        settle(self.fleet.heap, None)
    }

    /// Returns the counters of all servers together.
    fn counters(&self) -> Counters {
        let all = self.entries.iter().filter_map(|entry| self.supervisor.health(&entry.key));
        all.fold(Counters::default(), |mut sum, health| {
            sum.attempts += health.counters.attempts;
            sum.failures += health.counters.failures;
            sum.losses += health.counters.losses;
            sum.calls += health.counters.calls;
            sum.retries += health.counters.retries;
            sum
        })
    }

    /// Closes everything. No process may be left.
    fn end(self) -> Result<(), String> {
        match self.supervisor.close() {
            0 => {}
            left => return Err(format!("{left} clients have not ended in time")),
        }
        // It has waited for them.
        let left = marked(&self.name);
        if !left.is_empty() {
            return Err(format!("after the close there are {left:?}"));
        }
        drop(self.listening);
        Watch::none().map_err(|left| format!("processes: {left}")).map(drop)
    }
}

fn count(of: &AtomicU64) -> u64 {
    of.load(Ordering::Relaxed)
}

fn less(mut now: Counters, then: Counters) -> Counters {
    now.attempts -= then.attempts;
    now.failures -= then.failures;
    now.losses -= then.losses;
    now.calls -= then.calls;
    now.retries -= then.retries;
    now
}

impl Report {
    /// Returns the number of things that were checked: the ends of calls, and connections.
    pub fn checked(&self) -> u64 {
        self.tally.ended() + self.ups
    }
}

/// A table.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kills, counters, tally, .. } = self;
        let kinds = |kinds: &BTreeMap<&str, u64>| {
            let all: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
            if all.is_empty() { "none".to_owned() } else { all.join(", ") }
        };
        let Kills { programs, urls, none } = kills;
        writeln!(f, "  servers        {} ({} programs were seen)", self.entries, self.programs)?;
        writeln!(f, "  kills          {programs} programs, {urls} with a URL; {none} had no process")?;
        writeln!(f, "  attempts       {}, {} failed", counters.attempts, counters.failures)?;
        writeln!(f, "  reconnections  {}, after {} losses; {} times down", self.ups, counters.losses, self.downs)?;
        writeln!(f, "  calls          {}, the slowest {} ms", tally.begun, tally.slowest.as_millis())?;
        writeln!(f, "  answered       {}, {} ran twice", tally.answered, counters.retries)?;
        writeln!(f, "  refused        {}", kinds(&tally.refused))?;
        writeln!(f, "  failed         {}", kinds(&tally.failed))?;
        writeln!(f, "  at rest again  after {} ms", self.rest.as_millis())?;
        writeln!(f, "  {:<15}{:>10}{:>10}", "", "before", "after")?;
        let (before, after) = (self.before, self.after);
        writeln!(f, "  {:<15}{:>10}{:>10}", "heap, bytes", before.heap, after.heap)?;
        writeln!(f, "  {:<15}{:>10}{:>10}", "descriptors", before.descriptors, after.descriptors)?;
        writeln!(f, "  {:<15}{:>10}{:>10}", "threads", before.threads, after.threads)?;
        write!(f, "  replayed       {} inputs, {} outputs", self.replayed.inputs, self.replayed.outputs)
    }
}
