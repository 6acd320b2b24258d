//! Replay files: recorded clients and supervisors, and failed runs of the simulator.

use crate::sim::Report;
use crate::sim::duplex::{Scenario, Settings};
use crate::sim::scenario::Settings as _;
use mcp_proto::record::{self, Log, Replay};
use mcp_proto::wired::WiredClient;
use mcp_supervisor::Supervisor;

/// Any bytes are read as a replay file or refused. A valid file is written back unchanged, as a
/// scenario, and runs the same twice.
///
/// # Panics
/// If not, or if the run violates a standing property.
pub fn check(data: &[u8]) {
    match record::engine_of(data).as_deref() {
        Some("supervisor") => return repeat::<Supervisor<String>>(data),
        Some(_) => return repeat::<WiredClient>(data),
        None => {}
    }
    let Some(mut scenario) = std::str::from_utf8(data).ok().and_then(Scenario::parse) else { return };
    assert_eq!(Scenario::parse(&scenario.to_string()).as_ref(), Some(&scenario), "written down and read back");
    // Limits a run to milliseconds.
    scenario.settings.clients = scenario.settings.clients.min(2);
    scenario.operations = scenario.operations.min(12);
    scenario.faults = scenario.faults.min(100);
    assert_eq!(run(&scenario), run(&scenario), "a file repeats its run");
}

fn repeat<E: Replay>(data: &[u8]) {
    if let Ok(log) = Log::<E>::read(data) {
        assert_eq!(log.replay(), log.replay(), "a file repeats its run");
    }
}

fn run(scenario: &Scenario) -> Report {
    Settings::attempt(scenario, false).unwrap_or_else(|violation| panic!("{violation}"))
}
