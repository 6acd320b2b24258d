#![forbid(unsafe_code)]
//! The scenes of `load`, with few of everything: that nothing is lost, and that they can be played at all.
#![cfg(target_os = "linux")]

use mcp_tests::load::{Adapter, SCENES, Scale};
use std::path::Path;
use std::process::Command;

/// Plays one scene with every adapter.
#[track_caller]
fn scene(name: &str) {
    let scene = SCENES.iter().find(|scene| scene.name == name).expect("there is such a scene");
    for adapter in Adapter::ALL {
        let shown = scene.show(Path::new(env!("CARGO_BIN_EXE_load")), adapter, &Scale::SMALL);
        shown.unwrap_or_else(|why| panic!("{name}, {}: {why}", adapter.name()));
    }
}

// covers: B-189
#[test]
fn connections_that_finish_nothing_are_ended_and_others_served() {
    scene("half-open connections");
}

#[test]
fn connections_that_rest_are_kept_and_work_on() {
    scene("resting connections");
}

#[test]
fn sessions_that_rest_are_begun_and_ended_once() {
    scene("resting sessions");
}

#[test]
fn streams_of_sessions_bring_each_change_once() {
    scene("streams of sessions");
}

#[test]
fn subscriptions_bring_each_change_once() {
    scene("subscriptions");
}

// covers: B-074
#[test]
fn readers_that_never_read_delay_only_themselves() {
    scene("callers beside slow readers");
}

/// A process of its own, whose heap no other test uses.
#[test]
fn memory_of_the_engine_alone_stays_within_its_bounds() {
    let shown = Command::new(env!("CARGO_BIN_EXE_load")).arg("engine").output().expect("it runs");
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stdout));
}

#[test]
fn connections_without_a_pause_are_served_in_turn() {
    scene("connections without a pause");
}

#[test]
fn calls_of_one_client_without_a_pause_are_answered_in_turn() {
    scene("calls without a pause");
}
