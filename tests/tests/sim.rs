//! The standing properties, over simulated runs. `cargo run --release -p mcp-tests --bin replay -- --steps N` runs as many as one likes.

use mcp_proto::input::{Input, Wire, WiredClientInput};
use mcp_tests::sim::rng::Rng;
use mcp_tests::sim::{Report, Scenario, World, run};

/// Runs scenarios from `first` on until so many steps counted.
fn runs(first: u64, steps: u64) -> Report {
    let mut report = Report::default();
    for seed in first.. {
        if report.steps >= steps {
            break;
        }
        run(&Scenario::from_seed(seed), &mut report, false);
    }
    report
}

// covers: B-052, B-053, B-072, B-075, B-110, S0-27, CANC-B-013
#[test]
fn many_runs_under_faults_violate_nothing_and_leave_nothing_behind() {
    let report = runs(1, 60_000);
    assert!(report.calls > 1000 && report.completed > 300, "{report:?}");
    assert_eq!(report.missing(20, 2), Vec::<String>::new(), "every fault and every pair of state and input occurs");
}

/// Runs each of some scenarios, and has what each client was told fed again.
fn each(check: impl Fn(&World, usize)) {
    let mut said = 0;
    for seed in 100..160 {
        let mut world = World::recorded(&Scenario { capacity: 1 << 20, ..Scenario::from_seed(seed) });
        world.run();
        for client in 0..world.clients() {
            check(&world, client);
            said += world.refeed(client, true, |input| vec![input.clone()]).0.len();
        }
    }
    assert!(said > 1000, "the runs said something: {said}");
}

// covers: B-283
#[test]
fn the_same_inputs_give_the_same_outputs() {
    each(|world, client| {
        let (said, again) = world.refeed(client, true, |input| vec![input.clone()]);
        assert_eq!(said, again);
    });
}

// covers: B-116, B-117
#[test]
fn where_bytes_are_cut_changes_nothing() {
    each(|world, client| {
        let mut rng = Rng::new(7);
        let (said, again) = world.refeed(client, true, |input| pieces(input, &mut rng));
        assert_eq!(said, again);
    });
}

#[test]
fn when_the_queue_is_drained_changes_nothing() {
    each(|world, client| {
        let (said, again) = world.refeed(client, false, |input| vec![input.clone()]);
        assert_eq!(said, again);
    });
}

/// The bytes of an input in pieces of one to four bytes, or of any size.
fn pieces(input: &WiredClientInput, rng: &mut Rng) -> Vec<WiredClientInput> {
    let Input::Fact(channel, Wire::Bytes(bytes)) = input else { return vec![input.clone()] };
    let most = if rng.per_mille(500) { 4 } else { bytes.len() as u64 };
    let (mut rest, mut pieces) = (bytes.clone(), Vec::new());
    while !rest.is_empty() {
        let n = (1 + rng.below(most)).min(rest.len() as u64) as usize;
        pieces.push(Input::Fact(*channel, Wire::Bytes(rest.split_to(n))));
    }
    pieces
}

#[test]
fn a_scenario_written_down_is_read_back() {
    for seed in 0..50 {
        let scenario = Scenario::from_seed(seed);
        assert_eq!(Scenario::parse(&scenario.to_string()), Some(scenario));
    }
    for text in ["nonsense", "clients = 0", "clients = 1001", "capacity = 0", "seed = -1"] {
        assert_eq!(Scenario::parse(text), None, "{text}");
    }
}
