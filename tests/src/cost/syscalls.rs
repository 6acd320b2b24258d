//! System calls of a call, counted by strace in a program that serves or calls: the difference
//! between two runs of different lengths.
//!
//! strace makes a program slow, so that more arrives at once for it than otherwise, and a pause is
//! a longer one. The numbers vary a little, and bounds are kept instead.

use super::codec::median;
use super::{Goal, Kept, Row, raw};
use crate::adapters::Adapter;
use crate::interop::setup::beside;
use crate::peer::Failure;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::{env, fs, process};

/// Calls of the two runs: whole bursts of 64, the first no more than a start.
const RUNS: [usize; 2] = [64, 3200];

/// Differences that are measured; the median counts.
const ROUNDS: usize = 3;

/// What is counted.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    http: bool,
    inflight: usize,
    end: End,
    goal: Option<f64>,
}

/// The end that is counted, with its variables.
#[derive(Clone, Copy)]
enum End {
    Server(&'static str),
    Client(&'static [(&'static str, &'static str)]),
}

const fn case(name: &'static str, http: bool, inflight: usize, end: End, goal: Option<f64>) -> Case {
    Case { name, http, inflight, end, goal }
}

/// A client that does everything on the thread of the caller.
const ONE_THREAD: End = End::Client(&[("RT", "current"), ("CALLS", "window")]);

/// A client with a thread for each call.
const THREADS: End = End::Client(&[]);

/// A server whose handlers run where the request is read.
const INLINE: End = End::Server("inline");

/// A server whose handlers run on the pool.
const POOL: End = End::Server("pool");

const CASES: [Case; 12] = [
    case("stdio server, 1 in flight", false, 1, INLINE, Some(2.2)),
    case("stdio server, 64 in flight", false, 64, INLINE, Some(0.3)),
    case("stdio server on its pool, 1 in flight", false, 1, POOL, None),
    case("stdio client, 1 in flight", false, 1, ONE_THREAD, Some(2.2)),
    case("stdio client, 64 in flight", false, 64, ONE_THREAD, Some(0.3)),
    case("stdio client, 64 threads", false, 64, THREADS, Some(2.5)),
    case("HTTP server, 1 in flight", true, 1, INLINE, Some(3.2)),
    case("HTTP server, 64 in flight", true, 64, INLINE, None),
    case("HTTP server on its pool, 1 in flight", true, 1, POOL, None),
    case("HTTP client, 1 in flight", true, 1, ONE_THREAD, Some(3.2)),
    case("HTTP client, 64 in flight", true, 64, ONE_THREAD, None),
    case("HTTP client, 64 threads", true, 64, THREADS, Some(2.5)),
];

/// Returns a row for each case and adapter. `cost`: the program that serves standard input and
/// output when its argument is `answer`.
///
/// # Errors
/// There is no strace. A peer fails.
pub fn rows(cost: &Path) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for adapter in Adapter::ALL {
        let peer = beside(&format!("peer-{}", adapter.name()))?;
        for case in CASES.iter().filter(|case| case.has(adapter)) {
            let run = |calls| case.count(&peer, cost, calls).map_err(|why| format!("{}: {why}", case.name));
            let mut each = Vec::new();
            for _ in 0..ROUNDS {
                each.push((run(RUNS[1])? - run(RUNS[0])?) / (RUNS[1] - RUNS[0]) as f64);
            }
            let row = format!("system calls a call, {}, {}", adapter.name(), case.name);
            rows.push(Row::new(row, median(each), case.goal.map(Goal::AtMost)));
        }
    }
    Ok(rows)
}

/// Returns the kept table: half as much again where the goal is reached, and no less than the goal.
/// Otherwise threads wake each other, in another number of calls each time: then it is two and a
/// half times as much.
pub fn kept() -> Kept {
    Kept {
        file: "syscalls.txt",
        head: "# the most system calls of a call".into(),
        agrees: |now, kept| now <= kept * 1.05,
        keep: |row| match row.goal {
            Some(Goal::AtMost(bound)) if row.value <= bound => bound.max(tenths(row.value * 1.5)),
            _ => tenths(row.value * 2.5),
        },
    }
}

/// Rounds up to tenths.
fn tenths(value: f64) -> f64 {
    (value * 10.0).ceil() / 10.0
}

impl Case {
    /// Only threads have a thread for each call.
    fn has(&self, adapter: Adapter) -> bool {
        adapter == Adapter::Blocking || !matches!(self.end, End::Client(&[]))
    }

    /// Returns the system calls of a whole run.
    fn count(&self, peer: &Path, cost: &Path, calls: usize) -> Result<f64, Failure> {
        let file = env::temp_dir().join(format!("mcp-cost-{}.txt", process::id()));
        let mut strace = Command::new("strace");
        // All threads, but no program that the peer starts. A signal ends it at any time.
        strace.args(["-f", "-b", "execve", "-c", "-I", "2", "-o"]).arg(&file).arg(peer);
        match (self.end, self.http) {
            (End::Server(handler), false) => serve_stdio(strace.env("HANDLER", handler), self.inflight, calls)?,
            (End::Server(handler), true) => serve_http(strace.env("HANDLER", handler), self.inflight, calls)?,
            (End::Client(variables), http) => {
                strace.envs(variables.iter().copied());
                strace.args(["drive", if http { "http" } else { "stdio" }, "--era", "modern", "--client", "tuned"]);
                strace.args(["--inflight", &self.inflight.to_string(), "--calls", &calls.to_string()]);
                drive(strace, http, cost)?;
            }
        }
        let counted = fs::read_to_string(&file)?;
        fs::remove_file(&file)?;
        total(&counted).ok_or_else(|| format!("strace counts nothing: {counted}").into())
    }
}

/// Returns the number of calls in the last line of a count: share, seconds, microseconds each, and
/// calls, then perhaps errors.
pub fn total(counted: &str) -> Option<f64> {
    let line = counted.lines().find(|line| line.ends_with(" total"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

fn start(strace: &mut Command) -> Result<Child, Failure> {
    Ok(strace.spawn().map_err(|e| format!("strace: {e}"))?)
}

fn serve_stdio(strace: &mut Command, inflight: usize, calls: usize) -> Result<(), Failure> {
    let mut server = start(strace.args(["serve", "stdio"]).stdin(Stdio::piped()).stdout(Stdio::piped()))?;
    let (Some(mut to), Some(from)) = (server.stdin.take(), server.stdout.take()) else { return Err("no pipe".into()) };
    raw::drive_stdio(&mut to, from, inflight, calls)?;
    drop(to);
    server.wait()?;
    Ok(())
}

fn serve_http(strace: &mut Command, inflight: usize, calls: usize) -> Result<(), Failure> {
    let mut server = start(strace.args(["serve", "http"]).stdin(Stdio::null()).stdout(Stdio::piped()))?;
    let from = server.stdout.take().ok_or("no pipe")?;
    let mut line = String::new();
    BufReader::new(from).read_line(&mut line)?;
    let address = line.trim().strip_prefix("LISTENING ").ok_or("the server does not listen")?.parse()?;
    let driven = raw::drive_http(address, inflight, calls);
    // strace ends the server as well.
    kill_process(Pid::from_child(&server), Signal::TERM)?;
    server.wait()?;
    driven
}

fn drive(mut strace: Command, http: bool, cost: &Path) -> Result<(), Failure> {
    if http {
        strace.args(["--url", &format!("http://{}/mcp", raw::serve_http()?)]);
    } else {
        strace.arg("--").arg(cost).args(["cost", "answer"]);
    }
    match start(strace.stdout(Stdio::null()))?.wait()? {
        status if status.success() => Ok(()),
        status => Err(format!("the client ends with {status}").into()),
    }
}
