#![forbid(unsafe_code)]
//! No process is left, however a host ends and whatever it has started; and what is left where nothing can be done about it.

use mcp_tests::orphans::{Case, Found, groups};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

/// Runs the cases of one group, which check what is left.
#[track_caller]
fn group(name: &str) -> Vec<(Case, Found)> {
    let groups = groups();
    let group = groups.iter().find(|group| group.name == name).expect("there is such a group");
    let found = group.run(Path::new(env!("CARGO_BIN_EXE_host")), Path::new(env!("CARGO_BIN_EXE_misbehaving")));
    assert_eq!(found.len(), group.cases.len());
    found.into_iter().map(|(case, found)| (case, found.unwrap_or_else(|e| panic!("{case}: {e}")))).collect()
}

// covers: B-133, B-134, S2-08
#[test]
fn nothing_is_left_of_a_host_that_returns() {
    group("return");
    // What forwards Ctrl-C does not keep the client open.
    group("return, Ctrl-C forwarded");
}

// covers: B-133, B-134
#[test]
fn nothing_is_left_of_a_host_that_fails() {
    group("error");
}

// covers: B-133, B-134
#[test]
fn nothing_is_left_of_a_host_that_panics() {
    group("panic");
}

// covers: B-133, B-134, B-137, B-138, S0-26
#[test]
fn nothing_is_left_after_a_close_while_the_host_lives_on() {
    group("close");
}

// covers: B-133, B-137, B-139
#[test]
fn nothing_is_left_after_a_drop_while_a_call_waits() {
    group("drop while a call waits");
}

// covers: B-133, B-137, B-139
#[test]
fn nothing_is_left_after_the_driver_or_its_runtime_was_dropped() {
    group("drop of the driver");
    group("drop of the runtime");
}

// covers: B-135, B-137, B-139
#[test]
fn nothing_is_left_of_a_connection_that_never_came_to_be() {
    for (case, found) in group("failed connection") {
        assert!(!found.host.success(), "{case}: it was to fail: {found:?}");
    }
    group("dropped while connecting");
}

// covers: B-133, B-143
#[test]
fn a_host_that_is_killed_leaves_only_what_ignores_the_end_of_its_input() {
    assert!(group("SIGKILL").iter().all(|(_, found)| found.host.signal() == Some(9)));
    // To exit without a word, or to return while another thread waits, is no different.
    group("exit");
    group("return while a thread waits");
}

// covers: B-133
#[test]
fn ctrl_c_reaches_the_host_alone_and_all_of_its_group_where_it_is_shared() {
    let signal = |(_, found): &(Case, Found)| found.host.signal();
    assert!(group("Ctrl-C").iter().all(|found| signal(found) == Some(2)));
    assert!(group("Ctrl-C, one group").iter().all(|found| signal(found) == Some(2)));
    assert!(group("Ctrl-C, forwarded").iter().all(|(_, found)| found.host.code() == Some(130)));
}

#[test]
fn in_the_group_of_the_host_grandchildren_are_nobodys() {
    group("close, one group");
}
