//! The scenes of `load` with small numbers: nothing is lost, and each scene runs.

use mcp_tests::adapters::Adapter;
use mcp_tests::load::{SCENES, Scale};
use mcp_tests::tests;
use std::path::Path;
use std::process::Command;

/// Runs one scene with every adapter.
#[track_caller]
fn scene(name: &str) {
    let scene = SCENES.iter().find(|scene| scene.name == name).expect("there is such a scene");
    for adapter in Adapter::ALL {
        let shown = scene.show(Path::new(env!("CARGO_BIN_EXE_mcp-heap")), adapter, &Scale::SMALL);
        shown.unwrap_or_else(|why| panic!("{name}, {}: {why}", adapter.name()));
    }
}

tests! {
    // covers: B-189
    fn incomplete_requests_time_out_and_others_are_served => scene("half-open connections");
    fn idle_connections_are_kept_and_usable => scene("resting connections");
    fn idle_sessions_begin_and_end_once => scene("resting sessions");
    fn session_streams_deliver_each_change_once => scene("streams of sessions");
    fn subscriptions_deliver_each_change_once => scene("subscriptions");
    // covers: B-074
    fn readers_that_never_read_delay_only_themselves => scene("callers beside slow readers");
}

/// A separate process, whose heap no other test uses.
#[test]
fn memory_of_the_engine_stays_within_its_limits() {
    let shown = Command::new(env!("CARGO_BIN_EXE_mcp-heap")).args(["load", "engine"]).output().expect("it runs");
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stdout));
}

#[test]
fn busy_connections_are_served_in_turn() {
    scene("connections without a pause");
}

#[test]
fn calls_of_one_busy_client_are_answered_in_turn() {
    scene("calls without a pause");
}
