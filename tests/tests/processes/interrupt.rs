//! Ctrl-C as the README forwards it, by a real `SIGINT` to the process group of a host. The host
//! exits with 130 and leaves no process, during connecting and during a call, and regardless of how
//! its `main` handles the error of that call.

use mcp_tests::orphans::{Adapter, Case, Kind, Signalled};
use std::path::Path;
use std::time::Duration;

/// The number of tries: a test with a race must not pass by luck.
const RUNS: usize = 5;

const STUBBORN: &[&str] = &["--ignore-eof", "--ignore-term"];
const MUTE: &[&str] = &["--mute"];
const MUTE_AND_STUBBORN: &[&str] = &["--mute", "--ignore-eof", "--ignore-term"];

/// Interrupts a host that ends like this, repeatedly.
#[track_caller]
fn interrupted(adapter: Adapter, end: &'static str, args: &'static [&'static str]) {
    let child = Kind { name: "a server", args, shell: false };
    let case = Case { adapter, child, end, flags: &["--forward"], signal: Some(Signalled::Interrupt) };
    let programs = (Path::new(env!("CARGO_BIN_EXE_mcp-tests")), Path::new(env!("CARGO_BIN_EXE_misbehaving")));
    let found: Vec<_> = (0..RUNS).map(|_| case.run(programs.0, programs.1, 0).expect("it ends")).collect();
    let ends: Vec<_> = found.iter().map(|found| found.host).collect();
    assert!(ends.iter().all(|host| host.code() == Some(130)), "{case}: {ends:?}");
    assert!(found.iter().all(|found| found.left == 0), "{case}: {found:?}");
    let slow = found.iter().find(|found| found.took > Duration::from_secs(20));
    assert!(slow.is_none(), "{case}: {slow:?}");
}

// covers: B-133
#[test]
fn host_interrupted_in_a_call_exits_with_130() {
    for adapter in [Adapter::BLOCKING, Adapter::SMOL] {
        for args in [&[], STUBBORN] {
            interrupted(adapter, "call", args);
        }
    }
}

// covers: B-133
#[test]
fn host_that_would_exit_at_once_on_an_error_exits_with_130() {
    for adapter in [Adapter::BLOCKING, Adapter::SMOL] {
        for args in [&[], STUBBORN] {
            interrupted(adapter, "call-exit", args);
        }
    }
}

// covers: B-133, B-135
#[test]
fn host_interrupted_while_it_connects_exits_with_130() {
    for adapter in [Adapter::BLOCKING, Adapter::SMOL] {
        for args in [MUTE, MUTE_AND_STUBBORN] {
            interrupted(adapter, "connect", args);
        }
    }
}
