//! Logins of several processes in virtual time. `cargo run --release -p mcp-tests -- replay --login
//! --steps 1000000` runs a million steps.

use crate::sized;
use mcp_tests::sim::Report;
use mcp_tests::sim::login::{GrantKind, Scenario, day};
use std::time::Duration;

// covers: B-238, B-242, B-249, B-250, B-257, DPOP-C-001, DPOP-C-002, DPOP-C-003, DPOP-C-009
// covers: WIF-C-003, CC-C-005, CC-C-006
#[test]
fn logins_keep_their_invariants_under_faults() {
    let mut all = Report::default();
    (0..sized(300)).for_each(|seed| Scenario::from_seed(seed).run(&mut all, false));
    assert!(all.calls > sized(3_000) && all.completed > sized(1_500), "{all:?}");
    assert!(all.pages > sized(300) && all.refreshes > sized(150), "{all:?}");
    assert!(all.grants > sized(300) && all.proofs > sized(1_500), "{all:?}");
    assert!(all.faults.len() >= 20, "{:?}", all.faults);
}

// covers: B-259
#[test]
fn a_day_of_hourly_tokens_costs_one_login() {
    let day = day(1, GrantKind::Code, 50, 3600, Duration::from_secs(24 * 3600));
    assert_eq!((day.pages, day.calls.0), (1, day.calls.1), "{day:?}");
    assert!(1000 * day.refreshes <= day.ideal * 102 / 100, "{day:?}");
    assert!(1000 * day.refreshes >= day.ideal * 98 / 100, "{day:?}");
}

// covers: CC-C-006
#[test]
fn a_day_of_programs_costs_a_token_an_hour() {
    let day = day(2, GrantKind::Program, 5, 3600, Duration::from_secs(24 * 3600));
    assert_eq!((day.pages, day.calls.0), (0, day.calls.1), "{day:?}");
    // The first token comes beside those that replace it.
    assert!(1000 * (day.refreshes - 1) <= day.ideal * 102 / 100, "{day:?}");
    assert!(1000 * day.refreshes >= day.ideal * 98 / 100, "{day:?}");
}
