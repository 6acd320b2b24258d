//! The invariants over simulated runs. `cargo run --release -p mcp-tests -- replay --steps N`
//! runs any number of steps.

use crate::sized;
use mcp_proto::client::State;
use mcp_proto::exchange::IoEvent;
use mcp_proto::input::{Input, WiredClientInput};
use mcp_tests::sim::Report;
use mcp_tests::sim::campaign::{Campaign, Until, Violation};
use mcp_tests::sim::duplex::{Scenario, Settings, World};
use mcp_tests::sim::rng::Rng;
use mcp_tests::sim::scenario::{self, Less};
use std::collections::BTreeSet;

/// Runs scenarios from `first` on until this number of steps counted.
fn runs(first: u64, steps: u64) -> Report {
    let mut report = Report::default();
    for seed in first.. {
        if report.steps >= steps {
            break;
        }
        Scenario::from_seed(seed).run(&mut report, false);
    }
    report
}

// covers: B-052, B-053, B-072, B-075, B-110, S0-27, CANC-B-013
#[test]
fn runs_under_faults_keep_the_invariants() {
    let report = runs(1, sized(100_000));
    assert!(report.calls > sized(1000) && report.completed > sized(300), "{report:?}");
    assert_eq!(
        Scenario::missing(&report, sized(20), sized(10) / 5),
        Vec::<String>::new(),
        "every fault and every pair of state and input occurs"
    );
}

/// Runs each of some scenarios, and replays the inputs of each client.
fn each(check: impl Fn(&World, usize)) {
    let mut said = 0;
    for seed in 100..160 {
        let mut world = World::recorded(&Scenario { capacity: 1 << 20, ..Scenario::from_seed(seed) });
        world.run();
        for client in 0..world.clients.len() {
            check(&world, client);
            said += world.refeed(client, true, |input| vec![input.clone()]).0.len();
        }
    }
    assert!(said > 1000, "the runs said something: {said}");
}

// covers: B-283
#[test]
fn same_inputs_give_the_same_outputs_to_every_client() {
    each(|world, client| {
        let (said, again) = world.refeed(client, true, |input| vec![input.clone()]);
        assert_eq!(said, again);
    });
}

// covers: B-116, B-117
#[test]
fn pieces_of_the_input_do_not_matter() {
    each(|world, client| {
        let mut rng = Rng::new(7);
        let (said, again) = world.refeed(client, true, |input| pieces(input, &mut rng));
        assert_eq!(said, again);
    });
}

#[test]
fn time_of_taking_outputs_does_not_matter() {
    each(|world, client| {
        let (said, again) = world.refeed(client, false, |input| vec![input.clone()]);
        assert_eq!(said, again);
    });
}

/// The bytes of an input in pieces of one to four bytes, or of any size.
fn pieces(input: &WiredClientInput, rng: &mut Rng) -> Vec<WiredClientInput> {
    let Input::Event(channel, IoEvent::Read(bytes)) = input else { return vec![input.clone()] };
    let most = if rng.per_mille(500) { 4 } else { bytes.len() as u64 };
    let (mut rest, mut pieces) = (bytes.clone(), Vec::new());
    while !rest.is_empty() {
        let n = (1 + rng.below(most)).min(rest.len() as u64) as usize;
        pieces.push(Input::Event(*channel, IoEvent::Read(rest.split_to(n))));
    }
    pieces
}

#[test]
fn scenario_survives_writing_and_reading() {
    for seed in 0..50 {
        let scenario = Scenario::from_seed(seed);
        assert_eq!(Scenario::parse(&scenario.to_string()), Some(scenario));
    }
    for text in ["nonsense", "seed = 1\nclients = 0", "seed = 1\nclients = 1001", "seed = 1\ncapacity = 0", "seed = -1"]
    {
        assert_eq!(Scenario::parse(text), None, "{text}");
    }
}

/// A simulation that fails with every tenth seed, if a certain fault and a certain operation are in
/// the run.
#[derive(Clone, PartialEq, Debug)]
struct Toy;

impl scenario::Settings for Toy {
    const NAME: &'static str = "toy";
    const STATES: &'static [State] = &[];

    fn from_seed(seed: u64) -> scenario::Scenario<Self> {
        scenario::Scenario { seed, operations: 40, faults: 0, capacity: 1, less: Less::default(), settings: Self }
    }

    fn attempt(scenario: &scenario::Scenario<Self>, _trace: bool) -> Result<Report, Violation> {
        let has = |skipped: &BTreeSet<u64>, number| !skipped.contains(&number);
        let scenario::Scenario { seed, operations, less, .. } = scenario;
        let fails = seed.is_multiple_of(10) && *operations > 7;
        if fails && has(&less.operations, 7) && has(&less.faults, 3) {
            let message = format!("call {seed} ended twice: Call {{ id: {operations} }}");
            return Err(Violation { message, place: "toy.rs:1".into(), faults: 20, operations: *operations });
        }
        Ok(Report { steps: 1, ..Report::default() })
    }
}

#[test]
fn campaign_with_violations_continues_and_shrinks_them() {
    let folder = std::env::temp_dir().join(format!("mcp-campaign-{}", std::process::id()));
    for threads in [1, 3] {
        let campaign = Campaign { first: 1, until: Until::Runs(55), threads, folder: folder.clone() };
        let summary = campaign.run::<Toy>(|_| {});
        assert_eq!((summary.runs, summary.report.steps), (55, 50));
        let kinds: Vec<_> =
            summary.found.iter().map(|(kind, found)| (kind.as_str(), found.count, found.seed)).collect();
        assert_eq!(kinds, [("call N ended twice: Call", 5, 10)]);
        campaign.shrink::<Toy>(&summary, 500);
        assert!(folder.join("toy-50.txt").exists());
        let small = std::fs::read_to_string(folder.join("toy-10-small.txt")).unwrap();
        let lines: Vec<&str> = small.lines().collect();
        assert_eq!(lines[..3], ["# toy.rs:1 call 10 ended twice: Call { id: 8 }", "toy = 10", "operations = 8"]);
        assert_eq!(lines[5], "skip_faults = 0 1 2 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19");
        assert_eq!(lines[6], "skip_operations = 0 1 2 3 4 5 6");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

#[test]
fn campaign_over_steps_ends_with_its_completing_run() {
    let folder = std::env::temp_dir();
    let steps = |threads| {
        let campaign = Campaign { first: 1, until: Until::Steps(2_000), threads, folder: folder.clone() };
        let summary = campaign.run::<Settings>(|_| {});
        (summary.runs, summary.report, summary.found.len())
    };
    let one = steps(1);
    assert!(one.1.steps >= 2_000 && one.2 == 0);
    assert_eq!(one, steps(2), "the runs that count do not depend on the threads");
}

#[test]
fn omissions_of_a_scenario_survive_writing_and_reading() {
    let mut scenario = Scenario::from_seed(1);
    scenario.less.faults.extend([3, 5]);
    scenario.less.operations.insert(7);
    let text = scenario.to_string();
    assert!(text.ends_with("skip_faults = 3 5\nskip_operations = 7\n"), "{text}");
    assert_eq!(Scenario::parse(&text), Some(scenario));
    assert_eq!(Scenario::parse("seed = 1\nskip_faults = 3 x"), None);
}
