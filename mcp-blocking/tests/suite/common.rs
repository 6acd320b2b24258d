//! Helpers of these tests: a time limit for everything, peers as shell scripts, and the process
//! table.

use mcp_blocking::{Client, ClientOptions, Program, Stderr};
use mcp_proto::client::Policy;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Maximum time for any one condition.
pub(crate) const BOUND: Duration = Duration::from_secs(20);

/// Runs a test on its own thread. It fails if it exceeds twice the time limit.
pub(crate) fn bounded(test: impl FnOnce() + Send + 'static) {
    let (done, wait) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        done.send(()).expect("the test is waited for");
    });
    match wait.recv_timeout(BOUND * 2) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the test takes too long"),
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
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

/// Returns the group of a running process.
pub(crate) fn group_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    let (state, _parent, group) = (fields.next()?, fields.next()?, fields.next()?);
    if state == "Z" { None } else { group.parse().ok() }
}
