//! Helpers of these tests: a time limit for everything, peers as shell scripts, and the process
//! table.

use mcp_proto::client::Policy;
use mcp_proto::exchange::Program;
use mcp_smol::{Client, ClientOptions, Stderr};
use smol::Timer;
use std::future::Future;
use std::time::Duration;

/// Runs a test, which fails if it exceeds the time limit.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let bound = async {
        Timer::after(Duration::from_secs(30)).await;
        panic!("the test takes too long")
    };
    smol::block_on(smol::future::or(test, bound))
}

/// Waits until `is_so`, within the time limit of [`run`].
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        Timer::after(Duration::from_millis(2)).await;
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

/// Returns a script that has completed the handshake.
pub(crate) fn server(script: &str) -> Program {
    sh(&format!("{HELLO}{script}"))
}

/// Returns a configuration for the servers above, which support only `initialize`.
pub(crate) fn legacy() -> ClientOptions {
    ClientOptions::new().stderr(Stderr::Discard).set(|config| {
        config.policy = Policy::Legacy;
        config.timeout = Some(Duration::from_secs(20));
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
    let in_group = |pid: &u32| {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let (state, _parent, of) = (fields.next(), fields.next(), fields.next());
        state != Some("Z") && of == Some(&group.to_string())
    };
    pids.filter(in_group).collect()
}
