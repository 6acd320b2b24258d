//! What the tests of this crate share: a bound for everything, peers made of shell, and a look at the process table.

use mcp_proto::client::Policy;
use mcp_proto::exchange::Program;
use mcp_smol::{Client, Config, Stderr};
use smol::Timer;
use std::future::Future;
use std::time::Duration;

/// Runs a test; one that takes longer than the bound has failed.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let bound = async {
        Timer::after(Duration::from_secs(30)).await;
        panic!("the test takes too long")
    };
    smol::block_on(smol::future::or(test, bound))
}

/// Waits until `is_so`; the bound of [`run`] applies.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        Timer::after(Duration::from_millis(2)).await;
    }
}

/// A shell script as a server.
pub(crate) fn sh(script: &str) -> Program {
    Program::new("/bin/sh").args(["-c", script])
}

/// The beginning of a script: answers `initialize`, with the process id as its name, and reads the notification after it.
pub(crate) const HELLO: &str = r#"
    read -r line
    echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"'$$'","version":"1"}}}'
    read -r line
"#;

/// A script that has said hello.
pub(crate) fn server(script: &str) -> Program {
    sh(&format!("{HELLO}{script}"))
}

/// A configuration for the servers above, which know `initialize` only.
pub(crate) fn legacy() -> Config {
    Config::new().stderr(Stderr::Discard).set(|config| {
        config.policy = Policy::Legacy;
        config.timeout = Some(Duration::from_secs(20));
    })
}

/// The process group of a server that has said hello.
pub(crate) fn group(client: &Client) -> u32 {
    client.server().and_then(|server| server.implementation).expect("hello").name.parse().expect("a process id")
}

/// The processes of a group that still run.
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
