//! Calls of whole programs, beside a floor and another implementation: pairs of a client and a
//! server. One of them is the floor, so that what the other takes is known. Every pair runs once in
//! each round, and what counts is the median of the ratios in the rounds. All run on one core:
//! otherwise the time to wake another core is most of what is measured.

mod contenders;
mod table;

use super::Row;
use crate::interop::setup;
use crate::peer::Failure;
use contenders::{Contender, PAIRS, PATIENT, Pair, Program, TWIN};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fmt, fs, process};

/// What is measured, and for how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder of the built anchors.
    pub anchors: PathBuf,
    /// Rounds.
    pub rounds: usize,
    /// Seconds of each run.
    pub secs: String,
    /// Only setups whose name contains this.
    pub only: String,
}

/// How much is called, and over what.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Setup {
    is_http: bool,
    inflight: usize,
    payload: usize,
}

impl Setup {
    fn all() -> impl Iterator<Item = Self> {
        let payloads = [64, 16 << 10];
        let inflight = [1, 64].into_iter().flat_map(move |inflight| payloads.map(|payload| (inflight, payload)));
        [false, true].into_iter().flat_map(move |is_http| {
            inflight.clone().map(move |(inflight, payload)| Self { is_http, inflight, payload })
        })
    }

    /// Returns whether more is in flight than two pipes hold. The floor as a client writes all of
    /// it before it reads, and would wait for ever.
    const fn fills_pipes(self) -> bool {
        !self.is_http && self.inflight * self.payload > 64 << 10
    }

    const fn transport(self) -> &'static str {
        if self.is_http { "http" } else { "stdio" }
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let payload = if self.payload == 64 { "64 B" } else { "16 KiB" };
        let transport = if self.is_http { "HTTP" } else { "stdio" };
        write!(f, "{transport}, {} in flight, {payload}", self.inflight)
    }
}

/// What the client of a run reports.
#[derive(Clone, Copy, Default, Debug)]
pub struct Report {
    /// Calls per second.
    pub rate: f64,
    /// The median of the latency, in microseconds.
    pub p50: f64,
    /// The latency of the 99th of 100, in microseconds.
    pub p99: f64,
    /// Processor time of a call in the client, in microseconds.
    pub client: f64,
    /// Processor time of a call in the server, in microseconds.
    pub server: f64,
}

impl Report {
    /// Returns the processor time of a call in both, in microseconds.
    pub fn both(&self) -> f64 {
        self.client + self.server
    }
}

/// The reports of each pair, one for each round; `None` of a run that failed.
type Reports = BTreeMap<usize, Vec<Option<Report>>>;

/// Measures, and prints each row when its setup is done. Progress is on standard error.
///
/// # Errors
/// A program is missing.
pub fn print(this: &Path, options: &Options) -> Result<(), Failure> {
    let programs = Programs::find(this, &options.anchors)?;
    pin();
    let mut shares = Vec::new();
    for setup in Setup::all().filter(|setup| setup.to_string().contains(&options.only)) {
        let pairs: Vec<&Pair> = PAIRS.iter().filter(|pair| pair.is_in(setup.inflight)).collect();
        let mut reports = Reports::new();
        for round in 0..options.rounds {
            for turn in 0..pairs.len() {
                let at = (round + turn) % pairs.len();
                let report = programs.run(setup, pairs[at], &options.secs);
                if let Err(why) = &report {
                    eprintln!("{setup}, {}: {why}", pairs[at]);
                }
                reports.entry(at).or_default().push(report.ok());
            }
        }
        let rows = table::Table { setup, pairs: &pairs, reports: &reports }.rows(&mut shares);
        rows.iter().for_each(|row| println!("{row}"));
    }
    println!("{}", table::median_share(shares));
    fs::remove_file(programs.path(TWIN))?;
    Ok(())
}

/// Keeps this process, and what it starts, on the last core.
pub(super) fn pin() {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut last = CpuSet::new();
    last.set(cores - 1);
    if let Err(why) = sched_setaffinity(None, &last) {
        eprintln!("cost: not on one core: {why}");
    }
}

/// Where the programs are.
struct Programs {
    own: PathBuf,
    anchors: PathBuf,
    twin: PathBuf,
}

impl Programs {
    fn find(this: &Path, anchors: &Path) -> Result<Self, Failure> {
        for name in ["peer-smol", "peer-blocking"] {
            setup::beside(name)?;
        }
        let own = this.parent().ok_or("this program is nowhere")?.to_owned();
        let twin = env::temp_dir().join(format!("peer-twin-{}", process::id()));
        let found = Self { own, anchors: anchors.join("target/release"), twin };
        fs::copy(found.path(Program::Smol), &found.twin)?;
        for program in [Program::Floor, Program::Rmcp] {
            let path = found.path(program);
            if !path.exists() {
                return Err(format!("{} is missing: build the anchors with --release", path.display()).into());
            }
        }
        Ok(found)
    }

    fn path(&self, program: Program) -> PathBuf {
        match program {
            Program::Floor => self.anchors.join("floor-peer"),
            Program::Rmcp => self.anchors.join("rmcp-peer"),
            Program::Smol => self.own.join("peer-smol"),
            Program::Blocking => self.own.join("peer-blocking"),
            Program::Twin => self.twin.clone(),
        }
    }

    /// Returns the command of a contender. A run that hangs is stopped.
    fn command(&self, contender: &Contender) -> Command {
        let mut command = Command::new("timeout");
        command.arg("10").arg(self.path(contender.program)).envs(contender.variables.iter().copied());
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn run(&self, setup: Setup, pair: &Pair, secs: &str) -> Result<Report, Failure> {
        let neutral = setup.fills_pipes() && pair.client.program == Program::Floor;
        let mut client = self.command(if neutral { &PATIENT } else { &pair.client });
        let (inflight, payload) = (setup.inflight.to_string(), setup.payload.to_string());
        client.args(["drive", setup.transport(), "--era", "modern", "--inflight", &inflight]);
        client.args(["--secs", secs, "--payload", &payload]);
        let server = if setup.is_http {
            let mut server = Command::new(self.path(pair.server.program));
            server.envs(pair.server.variables.iter().copied());
            let server = Server::start(server, "http")?;
            client.args(["--url", &server.url, "--server-pid", &server.child.id().to_string(), "--client", "tuned"]);
            Some(server)
        } else {
            // The client starts it with its own variables.
            client.envs(pair.server.variables.iter().copied());
            client.arg("--").arg(self.path(pair.server.program)).args(["serve", "stdio"]);
            None
        };
        let output = client.output()?;
        drop(server);
        report(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| "no report".into())
    }
}

/// A server over HTTP, which ends when it is dropped.
pub(super) struct Server {
    pub(super) child: Child,
    pub(super) url: String,
}

impl Server {
    /// Starts a program with its environment, whose URL has this scheme.
    pub(super) fn start(mut command: Command, scheme: &str) -> Result<Self, Failure> {
        command.args(["serve", "http", "--style", "json"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = Self { child: command.spawn()?, url: String::new() };
        let mut line = String::new();
        BufReader::new(server.child.stdout.take().ok_or("no pipe")?).read_line(&mut line)?;
        let address = line.trim().strip_prefix("LISTENING ").ok_or("the server does not listen")?;
        server.url = format!("{scheme}://{address}/mcp");
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Parses the line that a client prints.
pub fn report(text: &str) -> Option<Report> {
    let line = text.lines().find_map(|line| line.strip_prefix("REPORT "))?;
    let cells: BTreeMap<&str, f64> = line
        .split(' ')
        .filter_map(|cell| cell.split_once('=').and_then(|(key, value)| Some((key, value.parse().ok()?))))
        .collect();
    let cell = |key| cells.get(key).copied();
    Some(Report {
        rate: cell("ops")? / cell("secs")?,
        p50: cell("p50_us")?,
        p99: cell("p99_us")?,
        client: cell("client_cpu_us")?,
        server: cell("server_cpu_us")?,
    })
}

/// Creates a row with the setup in its name.
fn row(setup: Setup, what: impl fmt::Display, value: f64, goal: Option<super::Goal>) -> Row {
    Row::new(format!("{setup}: {what}"), value, goal)
}
