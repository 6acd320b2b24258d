//! Both engines over TLS and through forward proxies, in virtual time: the invariants over
//! simulated runs. `cargo run --release -p mcp-tests -- replay --secured --steps N` runs any
//! number of steps.

use mcp_tests::sim::Report;
use mcp_tests::sim::secured::SecuredScenario;

#[test]
fn runs_over_tls_and_proxies_keep_the_invariants() {
    let mut report = Report::default();
    for seed in 1.. {
        if report.steps >= 80_000 {
            break;
        }
        SecuredScenario::from_seed(seed).run(&mut report, false);
    }
    assert!(report.calls > 1000 && report.completed > 500 && report.resumed > 60, "{report:?}");
    assert!(report.secured > 1000 && report.tunnels > 400 && report.truncations > 50, "{report:?}");
    assert!(report.tls_failures > 50, "{report:?}");
    assert_eq!(SecuredScenario::missing(&report, 1, 0), Vec::<String>::new(), "every fault occurs");
}

/// rustls draws its own randomness, so this repeats lengths and decisions only.
#[test]
fn seed_determines_the_run() {
    for seed in 1..20 {
        let run = || {
            let mut report = Report::default();
            SecuredScenario::from_seed(seed).run(&mut report, false);
            report
        };
        assert_eq!(run(), run());
    }
}

#[test]
fn scenario_with_a_road_survives_writing_and_reading() {
    for seed in 0..50 {
        let scenario = SecuredScenario::from_seed(seed);
        assert_eq!(SecuredScenario::parse(&scenario.to_string()), Some(scenario));
    }
    for text in ["both = 1", "secured = 1\nroad = plain", "secured = 1\nclients = 0"] {
        assert_eq!(SecuredScenario::parse(text), None, "{text}");
    }
}
