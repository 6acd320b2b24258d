//! Repeats a simulated run: `cargo run -p mcp-tests --bin replay FILE`, or `replay --steps N [--seed S]` to run many.
#![forbid(unsafe_code)]

use mcp_tests::sim::{Report, Scenario, run};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1)?.parse::<u64>().ok()
    };
    if let Some(steps) = value("--steps") {
        return many(steps, value("--seed").unwrap_or(1));
    }
    let Some(scenario) =
        args.first().and_then(|file| std::fs::read_to_string(file).ok()).and_then(|text| Scenario::parse(&text))
    else {
        eprintln!("usage: replay FILE | replay --steps N [--seed S]");
        return ExitCode::FAILURE;
    };
    let mut report = Report::default();
    run(&scenario, &mut report, true);
    println!("{report:#?}");
    ExitCode::SUCCESS
}

/// Runs one scenario after another until so many steps counted, then says what occurred and what occurred too seldom.
fn many(steps: u64, first: u64) -> ExitCode {
    let (mut report, mut seed, begun) = (Report::default(), first, Instant::now());
    while report.steps < steps {
        run(&Scenario::from_seed(seed), &mut report, false);
        seed += 1;
    }
    println!(
        "seeds {first}..{seed}, {} steps, {} calls, {} completed, {:?}",
        report.steps,
        report.calls,
        report.completed,
        begun.elapsed()
    );
    for (fault, n) in &report.faults {
        println!("{fault:?}: {n}");
    }
    let missing = report.missing(1000, 100);
    println!("pairs of state and input: {}; too seldom: {missing:?}", report.pairs.len());
    println!("{} passed, {} failed", seed - first, missing.len());
    if missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
