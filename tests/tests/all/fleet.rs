//! A supervisor of many servers in virtual time. `cargo run --release -p mcp-tests -- fleet`
//! runs a day of 200 servers.

use crate::sized;
use mcp_proto::record::{Recorder, Redaction};
use mcp_supervisor::Supervisor;
use mcp_supervisor::record::SupervisorRecording;
use mcp_tests::sim::fleet::Fleet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

// covers: S0-61, S0-62, R-29, R-33, B-025, B-084, B-136, B-227
#[test]
fn servers_that_die_without_end_leave_nothing_open_or_wrong() {
    let mut all = mcp_tests::sim::fleet::FleetReport::default();
    for seed in 0..sized(5) {
        let fleet = Fleet { servers: 20, deaths: 100, length: Duration::from_secs(600), seed };
        let report = fleet.run().unwrap_or_else(|why| panic!("{fleet:?}: {why}"));
        assert_eq!(fleet.run(), Ok(report.clone()), "a seed determines its run");
        all.attempts += report.attempts;
        all.deaths += report.deaths;
        all.downs += report.downs;
        all.retried += report.retried;
        all.answered += report.answered;
        all.loads += report.loads;
        all.requests += report.requests;
    }
    assert!(all.attempts > sized(3_000) && all.deaths > sized(800) && all.downs > sized(400), "{all:?}");
    assert!(all.retried > sized(250) && all.answered > sized(40_000), "{all:?}");
    assert!(all.loads > sized(1_600) && all.requests > sized(400), "{all:?}");
}

// covers: S0-61
#[test]
fn recorded_run_is_replayed() {
    for redaction in [Redaction::Raw, Redaction::Redacted] {
        let fleet = Fleet { servers: 10, deaths: 100, length: Duration::from_secs(sized(120)), seed: 1 };
        let file = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&file);
        let recorder = Recorder::new(redaction, move |line| {
            kept.lock().unwrap().extend_from_slice(line);
            Ok(())
        });
        let report = fleet.run_with(|policy, seed| Supervisor::recorded(policy, seed, recorder));
        assert_eq!(report, fleet.run(), "a recording changes nothing");
        let file = file.lock().unwrap();
        let recording = SupervisorRecording::<u32>::read(&file).unwrap();
        let summary = recording.replay().unwrap_or_else(|difference| panic!("{}{difference}", difference.line));
        assert!(summary.complete && summary.inputs > sized(10_000), "{summary:?}");
    }
}
