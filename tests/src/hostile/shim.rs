//! A running shim: commands to it, its results and events, and what it leaves behind.

use super::client::Seen;
use crate::orphans::state;
use crate::shim::{Command, Done, EventLine, Line, Options, Output, StderrTo, ToolCall, Tools};
use mcp_driver::ConnectError;
use mcp_proto::exchange::{Closed, Sent};
use mcp_proto::process::Stderr;
use mcp_proto::tools::CallTool;
use mcp_proto::{Call, CallError, CallToolResult, ClientConfig, Refusal};
use rustix::process::{self, Pid, Signal, WaitId, WaitIdOptions};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time of a command. Every call has a shorter timeout.
const BOUND: Duration = Duration::from_secs(90);

/// Maximum time from the end of its input to the exit of a shim and of all that it has started.
const END: Duration = Duration::from_secs(20);

/// Bytes of the standard error of a shim that are kept.
const TAIL: usize = 1 << 10;

/// The shim of this process, which runs one row.
static RUNNING: OnceLock<Arc<Shim>> = OnceLock::new();

/// Returns the shim of this process.
pub(super) fn running() -> Option<&'static Arc<Shim>> {
    RUNNING.get()
}

/// A running shim.
pub struct Shim {
    child: Mutex<Child>,
    pid: Pid,
    lines: Mutex<Option<Sender<String>>>,
    next: AtomicU64,
    shared: Arc<Shared>,
    /// Maximum time of a command.
    bound: Duration,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The results that are not taken yet, by their commands.
    results: BTreeMap<u64, Reply>,
    /// Who counts the events of a client.
    clients: BTreeMap<u64, (Seen, Stderr)>,
    /// What the shim has done wrong.
    fault: Option<String>,
    /// What the row needs and the shim does not have.
    not_offered: Option<String>,
    /// Its output has ended.
    ended: bool,
    /// The end of its standard error.
    stderr: Vec<u8>,
    /// Its standard error has ended.
    is_silent: bool,
}

/// The result of a command.
enum Reply {
    Done(Done),
    Failed(Value),
}

/// What becomes of a row that ran through a shim.
pub(super) enum Verdict {
    /// The peak of the memory of the shim, in KiB.
    Ran(u64),
    NotOffered(String),
}

impl fmt::Debug for Shim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shim").field("pid", &self.pid).finish_non_exhaustive()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    /// Reads the output of the shim to its end.
    fn listen(&self, output: ChildStdout) {
        for line in BufReader::new(output).split(b'\n') {
            let said = line.map_err(|e| e.to_string()).and_then(|line| {
                serde_json::from_slice(&line).map_err(|e| {
                    let text: String = String::from_utf8_lossy(&line).chars().take(200).collect();
                    format!("the shim wrote a line that is no result: {text:?}: {e}")
                })
            });
            self.change(|state| state.take(said));
        }
        self.change(|state| state.ended = true);
    }

    /// Reads the standard error of the shim, and keeps its end.
    fn listen_to_errors(&self, mut errors: ChildStderr) {
        let mut buffer = [0; 16 << 10];
        while let Ok(n) = errors.read(&mut buffer)
            && n > 0
        {
            self.change(|state| {
                state.stderr.extend_from_slice(&buffer[..n]);
                let excess = state.stderr.len().saturating_sub(TAIL);
                state.stderr.drain(..excess);
            });
        }
        self.change(|state| state.is_silent = true);
    }
}

impl State {
    fn take(&mut self, said: Result<Output, String>) {
        match said {
            Ok(Output::Done { id, done }) => drop(self.results.insert(id, Reply::Done(done))),
            Ok(Output::Failed { id, error }) => drop(self.results.insert(id, Reply::Failed(error))),
            Ok(Output::NotOffered { not_offered, .. }) => {
                self.not_offered.get_or_insert(not_offered);
            }
            Ok(Output::Event { client, event }) => match (self.clients.get(&client), event) {
                (Some((_, Stderr::Lines(told))), EventLine::Stderr(line)) => told(&line),
                (Some((seen, _)), event) => seen.told(event),
                (None, _) => self.fail(format!("the shim wrote an event of client {client}, which there is not")),
            },
            Err(why) => self.fail(why),
        }
    }

    /// Keeps the first fault.
    fn fail(&mut self, why: String) {
        self.fault.get_or_insert(why);
    }

    /// Whether there is no reason to wait for a result.
    fn is_over(&self) -> bool {
        self.fault.is_some() || self.not_offered.is_some() || self.ended
    }
}

impl Shim {
    /// Starts this command, for this process.
    pub(super) fn start(command: &str) -> Result<(), String> {
        // What the shim leaves behind becomes a child of this process.
        process::set_child_subreaper(Some(process::getpid())).map_err(|e| e.to_string())?;
        RUNNING.set(Arc::new(Self::spawn(command, BOUND)?)).map_err(|_| "a row has one shim".to_owned())
    }

    /// Starts a command, whose results are awaited for at most this time.
    ///
    /// # Errors
    /// It does not start.
    pub fn spawn(command: &str, bound: Duration) -> Result<Self, String> {
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", &format!("exec {command}")]).process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = shell.spawn().map_err(|e| format!("the shim does not start: {e}"))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = pipes else { unreachable!("all were asked to be pipes") };
        let shared = Arc::<Shared>::default();
        let [to_output, to_errors] = [(); 2].map(|()| Arc::clone(&shared));
        thread::spawn(move || to_output.listen(output));
        thread::spawn(move || to_errors.listen_to_errors(errors));
        let (lines, pid) = (Mutex::new(Some(writer(input))), Pid::from_child(&child));
        Ok(Self { child: Mutex::new(child), pid, lines, next: AtomicU64::new(1), shared, bound })
    }

    /// Returns a number that was never returned before.
    pub(super) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a command. Returns its id.
    fn send(&self, command: Command) -> u64 {
        let id = self.number();
        let line = serde_json::to_string(&Line { id, command });
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        match (line, &*lines) {
            // If the shim no longer reads, its output ends too.
            (Ok(line), Some(lines)) => drop(lines.send(line + "\n")),
            (Err(e), _) => self.not_offered(&e.to_string()),
            (_, None) => {}
        }
        id
    }

    /// Waits for the result of a command. `None` if the row cannot go on: the verdict says why.
    fn wait(&self, id: u64) -> Option<Reply> {
        let waits = |state: &mut State| !state.results.contains_key(&id) && !state.is_over();
        let waited = self.shared.changed.wait_timeout_while(self.shared.state(), self.bound, waits);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let reply = state.results.remove(&id);
        if reply.is_none() && !state.is_over() {
            state.fail(format!("the shim does not answer command {id} within {} s", self.bound.as_secs()));
        }
        if reply.is_none() && state.ended {
            state.fail("the shim ended before its input did".into());
        }
        reply
    }

    fn ask(&self, command: Command) -> Option<Reply> {
        self.wait(self.send(command))
    }

    /// Sends a command that always succeeds, with this result.
    fn does(&self, command: Command, is_so: fn(&Done) -> bool) {
        match self.ask(command) {
            Some(Reply::Done(done)) if is_so(&done) => {}
            other => drop(self.other(other)),
        }
    }

    fn fail(&self, why: String) {
        self.shared.change(|state| state.fail(why));
    }

    fn not_offered(&self, what: &str) {
        self.shared.change(|state| {
            state.not_offered.get_or_insert_with(|| what.into());
        });
    }

    /// A result of another kind.
    fn other(&self, reply: Option<Reply>) -> String {
        match reply {
            Some(Reply::Done(done)) => self.fail(format!("the shim returned {done:?} for another command")),
            Some(Reply::Failed(error)) => self.fail(format!("the shim returned an error of no known form: {error}")),
            None => {}
        }
        "the row cannot go on".into()
    }

    /// Connects a client, and waits for the end of negotiation. Returns its number.
    pub(super) fn connect(
        &self,
        config: ClientConfig,
        stderr: Stderr,
        seen: Option<&Seen>,
    ) -> Result<u64, ConnectError> {
        let client = self.number();
        let to = match &stderr {
            Stderr::Inherit => StderrTo::Inherit,
            Stderr::Discard => StderrTo::Discard,
            Stderr::Lines(_) => StderrTo::Lines,
        };
        self.shared.state().clients.insert(client, (seen.cloned().unwrap_or_default(), stderr));
        let connect = Command::Connect { client, config: Box::new(config), stderr: to, events: seen.is_some() };
        match self.ask(connect) {
            Some(Reply::Done(Done::Connected)) => Ok(client),
            Some(Reply::Failed(error)) => Err(serde_json::from_value(error.clone())
                .unwrap_or_else(|_| ConnectError::System(self.other(Some(Reply::Failed(error)))))),
            other => Err(ConnectError::System(self.other(other))),
        }
    }

    /// Begins a call. Returns the id of its command.
    pub(super) fn begin(&self, client: u64, call: Call<CallTool>) -> u64 {
        match ToolCall::of(call) {
            Some(call) => self.send(Command::Call { client, call: Box::new(call) }),
            None => {
                self.not_offered("such a call");
                self.number()
            }
        }
    }

    /// Waits for the end of a call.
    pub(super) fn end(&self, call: u64) -> Result<CallToolResult, CallError> {
        match self.wait(call) {
            Some(Reply::Done(Done::Result { text, is_error: true })) => {
                Ok(CallToolResult::error(text.unwrap_or_default()))
            }
            Some(Reply::Done(Done::Result { text, .. })) => {
                Ok(text.map_or_else(CallToolResult::default, CallToolResult::text))
            }
            Some(Reply::Failed(error)) => Err(self.failure(error)),
            other => Err(lost(self.other(other))),
        }
    }

    /// Returns the error of a call.
    fn failure(&self, error: Value) -> CallError {
        serde_json::from_value(error.clone()).unwrap_or_else(|_| lost(self.other(Some(Reply::Failed(error)))))
    }

    /// Cancels a call.
    pub(super) fn cancel(&self, client: u64, call: u64) {
        self.does(Command::Cancel { client, call }, |done| matches!(done, Done::Cancelled));
    }

    /// Sends a notification.
    pub(super) fn notify(&self, client: u64, method: &str) -> Result<(), Refusal> {
        match self.ask(Command::Notify { client, method: method.into() }) {
            Some(Reply::Done(Done::Notified)) => Ok(()),
            Some(Reply::Failed(error)) => match self.failure(error) {
                CallError::Refused(why) => Err(why),
                _ => Err(Refusal::Closed),
            },
            other => {
                self.other(other);
                Err(Refusal::Closed)
            }
        }
    }

    /// Closes a client, and waits for its end.
    pub(super) fn close(&self, client: u64) -> Result<(), String> {
        match self.ask(Command::Close { client }) {
            Some(Reply::Done(Done::Closed)) => Ok(()),
            other => Err(self.other(other)),
        }
    }

    /// The row needs what no shim has. Returns the error with which it ends.
    pub(super) fn lacks(&self, what: &str) -> String {
        self.not_offered(what);
        self.other(None)
    }

    /// Starts a server. Returns its number and its address.
    pub(super) fn serve(&self, options: Options) -> Result<(u64, SocketAddr), String> {
        let server = self.number();
        match self.ask(Command::Serve { server, options: Box::new(options) }) {
            Some(Reply::Done(Done::Listening(address))) => Ok((server, address)),
            Some(Reply::Failed(error)) => Err(format!("the server does not start: {error}")),
            other => Err(self.other(other)),
        }
    }

    /// Returns the numbers of connections and of running requests of a server.
    pub(super) fn stats(&self, server: u64) -> (usize, usize) {
        match self.ask(Command::Stats { server }) {
            Some(Reply::Done(Done::Stats { connections, running })) => (connections, running),
            other => {
                self.other(other);
                (0, 0)
            }
        }
    }

    /// Stops a server, and waits for its end.
    pub(super) fn stop(&self, server: u64) {
        self.does(Command::Stop { server }, |done| matches!(done, Done::Stopped));
    }

    /// Returns the state of the tools.
    pub fn tools(&self) -> Tools {
        match self.ask(Command::Tools) {
            Some(Reply::Done(Done::Tools(tools))) => tools,
            other => {
                self.other(other);
                Tools::default()
            }
        }
    }

    /// Releases a call of the tool `wait`.
    pub(super) fn free(&self, tag: &str) {
        self.does(Command::Free { tag: tag.into() }, |done| matches!(done, Done::Freed));
    }

    /// The row is over: reads the peak, ends the input of the shim, and waits for its end and for
    /// that of everything that it has started.
    pub(super) fn finish(&self) -> Result<Verdict, String> {
        let peak = super::peak(&format!("/proc/{}/status", self.pid.as_raw_nonzero()));
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).take();
        let exited = self.exited();
        // Its group, or the shim itself if it does not end.
        let left = left_behind();
        let _ = process::kill_process_group(self.pid, Signal::KILL);
        for pid in &left {
            let _ = process::kill_process(*pid, Signal::KILL);
        }
        let mut state = self.shared.state();
        if let Some(fault) = state.fault.take() {
            let how = exited.unwrap_or_else(|why| why);
            return Err(format!("{fault} ({how})"));
        }
        if let Some(what) = state.not_offered.take() {
            return Ok(Verdict::NotOffered(what));
        }
        let how = exited?;
        if how != "exit status: 0" {
            return Err(format!("the shim ended with {how}"));
        }
        if !left.is_empty() {
            return Err(format!("the shim has ended, but not all that it started: {} still run", left.len()));
        }
        peak.map(Verdict::Ran)
    }

    /// Returns the reason of a failure with the end of the standard error of a shim that has ended,
    /// which may have the panic that is the cause.
    pub fn explain(&self, why: &str) -> String {
        let waits = |state: &mut State| !state.is_silent;
        let waited = self.shared.changed.wait_timeout_while(self.shared.state(), Duration::from_secs(1), waits);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        match String::from_utf8_lossy(&state.stderr).trim() {
            "" => why.to_owned(),
            errors => format!("{why}; its standard error: {}", errors.replace('\n', " | ")),
        }
    }

    /// Returns whether the shim returns anything for a command.
    pub fn answers(&self) -> bool {
        self.ask(Command::Tools).is_some()
    }

    /// Returns the first fault of the shim, if it has one.
    pub fn fault(&self) -> Option<String> {
        self.shared.state().fault.clone()
    }

    /// Kills the shim and what it has started. Returns how it ended.
    ///
    /// # Errors
    /// It does not end.
    pub fn kill(&self) -> Result<String, String> {
        let _ = process::kill_process_group(self.pid, Signal::KILL);
        self.exited()
    }

    /// Waits for the end of the shim. Returns how it ended.
    fn exited(&self) -> Result<String, String> {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let end = Instant::now() + END;
        loop {
            if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
                return Ok(status.to_string());
            }
            if Instant::now() >= end {
                return Err(format!("the shim does not end within {} s of its input", END.as_secs()));
            }
            thread::park_timeout(Duration::from_millis(2));
        }
    }
}

/// Writes lines to a shim on a new thread, so that one that does not read blocks no row.
fn writer(mut input: ChildStdin) -> Sender<String> {
    let (lines, taken) = channel::<String>();
    thread::spawn(move || {
        for line in taken {
            if input.write_all(line.as_bytes()).is_err() {
                return;
            }
        }
    });
    lines
}

/// The error of a call whose result is missing. The verdict says why.
fn lost(why: String) -> CallError {
    CallError::Closed { sent: Sent::Maybe, why: Closed::Unreachable(why) }
}

/// Waits until this process has no children. Returns those that are left.
fn left_behind() -> Vec<Pid> {
    let end = Instant::now() + END / 2;
    loop {
        // Reaps what has ended.
        while let Ok(Some(_)) = process::waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {}
        let left = children();
        if left.is_empty() || Instant::now() >= end {
            return left;
        }
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// Returns the children of this process.
fn children() -> Vec<Pid> {
    let this = process::getpid().as_raw_pid();
    let names = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse().ok());
    pids.filter(|pid| state(*pid).is_some_and(|(_, parent)| parent == this)).filter_map(Pid::from_raw).collect()
}
