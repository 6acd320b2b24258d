//! No process is left after any end of a host, for any child processes. The exceptions are tested
//! too.

use mcp_driver::{ChildProcess, SpawnedProgram};
use mcp_proto::exchange::{ExitStatus, Program};
use mcp_proto::process::Stderr;
use mcp_tests::orphans::{Case, Found, groups};
use mcp_tests::tests;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Runs the cases of one group, which check the remaining processes.
#[track_caller]
fn group(name: &str) -> Vec<(Case, Found)> {
    let groups = groups();
    let group = groups.iter().find(|group| group.name == name).expect("there is such a group");
    let found = group.run(Path::new(env!("CARGO_BIN_EXE_mcp-tests")), Path::new(env!("CARGO_BIN_EXE_misbehaving")));
    assert_eq!(found.len(), group.cases.len());
    found.into_iter().map(|(case, found)| (case, found.unwrap_or_else(|e| panic!("{case}: {e}")))).collect()
}

tests! {
    // covers: B-133, B-134, S2-08
    fn no_process_is_left_by_a_host_that_returns => {
        group("return");
        // The forwarding of Ctrl-C does not keep the client open.
        group("return, Ctrl-C forwarded");
    };
    // covers: B-133, B-134
    fn no_process_is_left_by_a_host_that_fails => group("error");
    // covers: B-133, B-134
    fn no_process_is_left_by_a_host_that_panics => group("panic");
    // covers: B-133, B-134, B-137, B-138, S0-26
    fn no_process_is_left_after_a_close => group("close");
    // covers: B-133, B-137, B-139
    fn no_process_is_left_after_a_drop_during_a_call => group("drop while a call waits");
    // covers: B-133, B-137, B-139
    fn no_process_is_left_after_the_driver_was_dropped => {
        group("drop of the driver");
        group("drop of the runtime");
    };
}

// covers: B-135, B-137, B-139
#[test]
fn no_process_is_left_by_a_failed_connection() {
    for (case, found) in group("failed connection") {
        assert!(!found.host.success(), "{case}: it was to fail: {found:?}");
    }
    group("dropped while connecting");
}

// covers: B-133, B-143
#[test]
fn killed_host_leaves_only_children_that_ignore_eof() {
    assert!(group("SIGKILL").iter().all(|(_, found)| found.host.signal() == Some(9)));
    // An exit without output, or a return while another thread waits, makes no difference.
    group("exit");
    group("return while a thread waits");
}

// covers: B-133
#[test]
fn ctrl_c_reaches_the_host_or_its_shared_group() {
    let signal = |(_, found): &(Case, Found)| found.host.signal();
    assert!(group("Ctrl-C").iter().all(|found| signal(found) == Some(2)));
    assert!(group("Ctrl-C, one group").iter().all(|found| signal(found) == Some(2)));
    assert!(group("Ctrl-C, forwarded").iter().all(|(_, found)| found.host.code() == Some(130)));
}

#[test]
fn grandchildren_in_the_group_of_the_host_are_not_ended() {
    group("close, one group");
}

// covers: B-133
#[test]
fn group_of_an_exited_program_ends_with_its_owner() {
    // The child of the shell holds the output open.
    let program = Program::new("sh").args(["-c", "sleep 60 & exit 7"]);
    let SpawnedProgram { process, mut stdout, .. } = ChildProcess::spawn(&program, &Stderr::Discard).unwrap();
    assert_eq!(process.wait_exited(), ExitStatus::exited(7));
    drop(process);
    let (sender, ended) = channel();
    thread::spawn(move || sender.send(stdout.read(&mut [0; 8])));
    assert_eq!(ended.recv_timeout(Duration::from_secs(20)).unwrap().unwrap(), 0);
}
