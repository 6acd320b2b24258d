//! Remaining processes after the end of a host: a host runs as a real process and ends in some way,
//! and then every process that was started for it is checked by id.

mod groups;

pub use groups::{Group, groups};

use crate::adapters;
use mcp_proto::Program;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use std::fmt;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Maximum time of one step of a case.
const BOUND: Duration = Duration::from_secs(40);

/// Maximum time for the system to carry out a kill, and for the children of a dead host to notice
/// the end of their input.
const SOON: Duration = Duration::from_secs(20);

/// Time for which a process is watched that is expected to stay.
const WATCH: Duration = Duration::from_millis(500);

/// The driver of the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Adapter {
    /// That of an adapter.
    Of(adapters::Adapter),
    /// The bare loop.
    Loop,
}

impl Adapter {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::BLOCKING, Self::SMOL, Self::Loop];
    /// That of `mcp-blocking`.
    pub const BLOCKING: Self = Self::Of(adapters::Adapter::Blocking);
    /// That of `mcp-smol`.
    pub const SMOL: Self = Self::Of(adapters::Adapter::Smol);

    /// Returns its name in the arguments of the programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Of(adapter) => adapter.name(),
            Self::Loop => "loop",
        }
    }
}

/// A kind of program.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its behaviour.
    pub name: &'static str,
    /// The arguments of `misbehaving`.
    pub args: &'static [&'static str],
    /// Whether it is started by a shell, as `npx` does.
    pub shell: bool,
}

/// A host with its program and its end.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The driver.
    pub adapter: Adapter,
    /// The program.
    pub child: Kind,
    /// How the host ends, in the words of `host`.
    pub end: &'static str,
    /// Further flags of `host`.
    pub flags: &'static [&'static str],
    /// The signal that the host gets when it is ready.
    pub signal: Option<Signalled>,
}

/// A signal from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signalled {
    /// `SIGKILL` to the host.
    Kill,
    /// `SIGINT` to the process group of the host, as a terminal does on Ctrl-C.
    Interrupt,
}

/// The result of a case.
#[derive(Debug)]
pub struct Found {
    /// Number of started processes.
    pub started: usize,
    /// Number of processes that still run some time after the end of the host.
    pub left: usize,
    /// Number of zombies that the host did not reap while it lived.
    pub unreaped: usize,
    /// How the host ended.
    pub host: ExitStatus,
    /// Time of the end, from the signal or the last line of the host before it.
    pub took: Duration,
}

impl Case {
    /// Runs it. `host` is the program `mcp-tests`, and `child` the server. `stays` is the expected
    /// number of remaining processes, which are then ended.
    ///
    /// # Errors
    /// The condition that did not become true in time.
    pub fn run(&self, host: &Path, child: &Path, stays: usize) -> Result<Found, String> {
        // Orphans become children of this process, and not of the init process, which may not reap
        // them.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(|e| e.to_string())?;
        let pids = Pids::default();
        let lives_on = self.flags.contains(&"--stay");
        let mut running = Running::start(self.command(host, child, &pids))?;
        let mut began = Instant::now();
        let mut said = running.line()?;
        if said.as_deref() == Some("ready") {
            began = Instant::now();
            match self.signal {
                Some(Signalled::Kill) => running.signal(false, Signal::KILL)?,
                Some(Signalled::Interrupt) => running.signal(true, Signal::INT)?,
                None => {}
            }
            said = running.line()?;
        }
        if !lives_on {
            // Reads all of its output.
            while said.is_some() {
                said = running.line()?;
            }
            running.wait()?;
        }
        let took = began.elapsed();
        let unreaped = if lives_on {
            // Every process is gone while the host lives, including zombies of the host.
            let zombies = until(SOON, || pids.count(|state, parent| state != 'Z' || parent == running.pid()), 0);
            let left_alive = pids.count(|state, _| state != 'Z');
            zombies - left_alive
        } else {
            0
        };
        let host = running.end()?;
        let left = match stays {
            0 => until(SOON, || pids.count(|state, _| state != 'Z'), 0),
            n => {
                until(SOON, || pids.count(|state, _| state != 'Z'), n);
                until(WATCH, || pids.count(|state, _| state != 'Z'), 0)
            }
        };
        let started = pids.all().len();
        pids.kill();
        Ok(Found { started, left, unreaped, host, took })
    }

    fn command(&self, host: &Path, child: &Path, pids: &Pids) -> Command {
        // A shell that starts this in the background may ignore Ctrl-C, which is inherited.
        let mut command = Command::new("env");
        command
            .arg("--default-signal=INT")
            .arg(host)
            .args(["host", self.adapter.name()])
            .args(self.flags)
            .arg(self.end);
        if self.child.shell {
            command.args(["/bin/sh", "-c", r#"echo $$ >> "$PIDS"; "$0" "$@"; exit $?"#]);
        }
        command.arg(child).args(self.child.args).env("PIDS", &pids.file);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        command
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.signal {
            Some(Signalled::Kill) => "SIGKILL",
            Some(Signalled::Interrupt) => "Ctrl-C",
            None => self.end,
        };
        write!(f, "{:<9} {how:<14} {:<10} {}", self.adapter.name(), self.flags.join(" "), self.child.name)
    }
}

/// Waits until `count` is the wanted number, at most for `limit`. Returns the last number.
fn until(limit: Duration, count: impl Fn() -> usize, wanted: usize) -> usize {
    let end = Instant::now() + limit;
    loop {
        let seen = count();
        if seen == wanted || Instant::now() >= end {
            return seen;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// A running host.
struct Running {
    child: Child,
    lines: Receiver<String>,
    input: Option<ChildStdin>,
    status: Option<ExitStatus>,
}

impl Running {
    fn start(mut command: Command) -> Result<Self, String> {
        let mut child = command.spawn().map_err(|e| format!("the host does not start: {e}"))?;
        let (told, lines) = channel();
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                BufReader::new(output).lines().map_while(Result::ok).for_each(|line| drop(told.send(line)));
            });
        }
        let input = child.stdin.take();
        Ok(Self { child, lines, input, status: None })
    }

    fn pid(&self) -> i32 {
        Pid::from_child(&self.child).as_raw_pid()
    }

    /// Returns the next line. `None` at the end.
    fn line(&self) -> Result<Option<String>, String> {
        match self.lines.recv_timeout(BOUND) {
            Ok(line) => Ok(Some(line)),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => Ok(None),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => Err("the host hangs".into()),
        }
    }

    fn signal(&self, group: bool, signal: Signal) -> Result<(), String> {
        let pid = Pid::from_child(&self.child);
        let sent = match group {
            true => rustix::process::kill_process_group(pid, signal),
            false => rustix::process::kill_process(pid, signal),
        };
        sent.map_err(|e| e.to_string())
    }

    fn wait(&mut self) -> Result<(), String> {
        let end = Instant::now() + BOUND;
        while self.status.is_none() {
            self.status = self.child.try_wait().map_err(|e| e.to_string())?;
            if Instant::now() >= end {
                return Err("the host does not end".into());
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
        Ok(())
    }

    fn end(mut self) -> Result<ExitStatus, String> {
        drop(self.input.take());
        self.wait()?;
        self.status.ok_or_else(|| "the host does not end".into())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.status.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The processes of `misbehaving`, by the ids that they write to a file. Dropping it kills them.
#[derive(Debug)]
pub struct Pids {
    file: PathBuf,
}

impl Default for Pids {
    fn default() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("mcp-pids-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let file = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&file);
        Self { file }
    }
}

impl Pids {
    /// Returns a program that writes the ids of its processes.
    pub fn of(&self, program: Program) -> Program {
        program.env("PIDS", self.file.to_string_lossy())
    }

    /// Returns all ids.
    pub fn all(&self) -> Vec<i32> {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        let mut pids: Vec<i32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// Returns how many exist with a matching state and parent.
    pub fn count(&self, is_so: impl Fn(char, i32) -> bool) -> usize {
        self.all().into_iter().filter_map(state).filter(|(state, parent)| is_so(*state, *parent)).count()
    }

    fn kill(&self) {
        for pid in self.all().into_iter().filter(|pid| state(*pid).is_some()).filter_map(Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
            // It is a child of this process if it was orphaned.
            let _ = rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED);
        }
    }
}

impl Drop for Pids {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Returns the state and the parent of an existing process.
pub(crate) fn state(pid: i32) -> Option<(char, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}
