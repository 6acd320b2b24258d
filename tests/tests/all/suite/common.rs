//! Helpers of these tests: a time limit for everything, peers as shell scripts, and the process
//! table.

use super::*;
use mcp_proto::client::Policy;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};

/// Maximum time for any one condition.
pub(crate) const BOUND: Duration = Duration::from_secs(20);

/// Ends this program with an error unless the returned value is dropped within twice the time
/// limit: a test that waits forever would otherwise hold up all others.
#[must_use]
pub(crate) fn limit() -> Sender<()> {
    let (ends, ended) = mpsc::channel();
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    std::thread::spawn(move || {
        if ended.recv_timeout(2 * BOUND) == Err(RecvTimeoutError::Timeout) {
            // Not by `eprintln`, which the test harness would hold back.
            drop(writeln!(std::io::stderr(), "{name} takes too long"));
            std::process::exit(101);
        }
    });
    ends
}

/// Waits until `is_so`, at most for [`BOUND`].
#[track_caller]
pub(crate) fn until(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + BOUND;
    while !is_so() {
        assert!(Instant::now() < end, "the condition did not come true");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// Returns an unused path for this test.
pub(crate) fn temp(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("{}-{name}-{}", NAME, std::process::id()));
    drop(std::fs::remove_file(&path));
    path
}

/// Returns the process id in a file, and removes the file.
pub(crate) fn take_pid(file: &PathBuf) -> u32 {
    let text = std::fs::read_to_string(file).expect("a process id");
    std::fs::remove_file(file).expect("removed");
    text.trim().parse().expect("a number")
}

/// Returns the arguments with which this test program runs only one test, without a time limit.
/// `module` is the `module_path!()` of the test.
pub(crate) fn only(module: &str, test: &str) -> [String; 4] {
    let (_, module) = module.split_once("::").expect("a module of the program");
    [format!("{module}::{test}"), "--exact".into(), "--quiet".into(), "--nocapture".into()]
}

/// Returns this test program with a variable set, under a limit for open files.
pub(crate) fn limited_to(files: u32, module: &str, test: &str, set: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("ulimit -n {files}; exec \"$0\" \"$@\"")]);
    command.arg(std::env::current_exe().expect("a path")).args(only(module, test)).env(set, "1");
    command
}

/// A shell script as a server.
pub(crate) fn sh(script: &str) -> Program {
    Program::new("/bin/sh").args(["-c", script])
}

/// The beginning of a script: it responds to `initialize` with the process id as its name, and
/// reads the next notification.
pub(crate) const HELLO: &str = r#"
    read -r line
    echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"'$$'","version":"1"}}}'
    read -r line
"#;

/// The response of such a script to its first call.
pub(crate) const ANSWER: &str = r#"echo '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"3"}]}}'"#;

/// Returns a script that has completed the handshake.
pub(crate) fn server(script: &str) -> Program {
    sh(&format!("{HELLO}{script}"))
}

/// Returns a configuration for the servers above, which support only `initialize`.
pub(crate) fn legacy() -> ClientOptions {
    ClientOptions::new().stderr(Stderr::Discard).set(|config| {
        config.policy = Policy::Legacy;
        config.timeout = Some(BOUND);
    })
}

/// Adds a receiver of all events.
pub(crate) fn told(config: ClientOptions) -> (ClientOptions, Receiver<ClientEvent>) {
    let (tell, told) = mpsc::channel();
    (config.on_event(move |event| drop(tell.send(event))), told)
}

/// Returns everything that is sent until the sender is dropped.
pub(crate) fn all<T>(told: &Receiver<T>) -> Vec<T> {
    let mut all = Vec::new();
    loop {
        match told.recv_timeout(BOUND) {
            Ok(item) => all.push(item),
            Err(RecvTimeoutError::Disconnected) => return all,
            Err(RecvTimeoutError::Timeout) => panic!("the sender is kept"),
        }
    }
}

/// Closes a client, and returns the codes of all its diagnostics.
pub(crate) fn codes(client: Client, told: &Receiver<ClientEvent>) -> Vec<&'static str> {
    client.close().wait();
    drop(client);
    let code = |event| match event {
        ClientEvent::Diagnostic(diagnostic) => Some(diagnostic.kind.code()),
        _ => None,
    };
    all(told).into_iter().filter_map(code).collect()
}

/// Adds 1 and 2.
pub(crate) fn add(client: &Client) -> Result<String, CallError> {
    client.call(tools::call("add").arguments(&Add { a: 1, b: 2 })).wait().map(|sum| text(Ok(sum)))
}

/// Calls a tool without arguments.
pub(crate) fn call(client: &Client, tool: &str) -> Result<CallToolResult, CallError> {
    client.call(tools::call(tool)).wait()
}

pub(crate) fn text(result: Result<CallToolResult, CallError>) -> String {
    result.expect("a result").first_text().expect("a text").to_owned()
}

pub(crate) fn exited(code: i32) -> Closed {
    Closed::Exited(ExitStatus::exited(code))
}

pub(crate) fn killed(signal: i32) -> Closed {
    Closed::Exited(ExitStatus::killed(signal))
}

/// Sets short time limits for the steps of a shutdown.
pub(crate) fn quick(config: ClientOptions) -> ClientOptions {
    config.set(|config| {
        config.limits.frame.exit_timeout = Duration::from_millis(100);
        config.limits.frame.terminate_timeout = Duration::from_millis(100);
        config.limits.frame.linger_timeout = Duration::from_millis(100);
    })
}

/// Returns the process group of a server that has completed the handshake.
pub(crate) fn group(client: &Client) -> u32 {
    client.server().and_then(|server| server.implementation).expect("hello").name.parse().expect("a process id")
}

/// Returns the running processes of a group.
pub(crate) fn members(group: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| group_of(*pid) == Some(group)).collect()
}

/// Returns whether a process was awaited, or never was.
pub(crate) fn is_reaped(pid: u32) -> bool {
    !std::path::Path::new(&format!("/proc/{pid}")).exists()
}

/// Returns the group of a running process.
pub(crate) fn group_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    let (state, _parent, group) = (fields.next()?, fields.next()?, fields.next()?);
    if state == "Z" { None } else { group.parse().ok() }
}
