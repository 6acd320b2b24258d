//! Repeats a run: `cargo run -p mcp-tests --bin replay FILE`, where the file is a recorded client or the scenario of a simulation, or
//! `replay [--web | --both] --steps N [--seed S]` to simulate many. It fails where a recorded client acts differently, or the file cannot be read.
#![forbid(unsafe_code)]

use mcp_proto::record::{self, Summary};
use mcp_tests::sim::{Report, Scenario, both, run, web};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1)?.parse::<u64>().ok()
    };
    if let Some(steps) = value("--steps") {
        if args.iter().any(|arg| arg == "--both") {
            return many_both(steps, value("--seed").unwrap_or(1));
        }
        if args.iter().any(|arg| arg == "--web") {
            return many_web(steps, value("--seed").unwrap_or(1));
        }
        return many(steps, value("--seed").unwrap_or(1));
    }
    let file = args.first().and_then(|file| std::fs::read(file).ok()).unwrap_or_default();
    if record::is_recording(&file) {
        return recorded(&file);
    }
    let text = std::str::from_utf8(&file).unwrap_or_default();
    if let Some(scenario) = web::Scenario::parse(text) {
        let mut report = web::Report::default();
        web::run(&scenario, &mut report, true);
        println!("{report:#?}");
        return ExitCode::SUCCESS;
    }
    if let Some(scenario) = both::Scenario::parse(text) {
        let mut report = both::Report::default();
        both::run(&scenario, &mut report, true);
        println!("{report:#?}");
        return ExitCode::SUCCESS;
    }
    let Some(scenario) = Some(text).filter(|text| !text.is_empty()).and_then(Scenario::parse) else {
        eprintln!("usage: replay FILE | replay [--web | --both] --steps N [--seed S]");
        return ExitCode::FAILURE;
    };
    let mut report = Report::default();
    run(&scenario, &mut report, true);
    println!("{report:#?}");
    ExitCode::SUCCESS
}

/// Tells a client of the same configuration and seed the same as the recorded one, and compares what it does.
fn recorded(file: &[u8]) -> ExitCode {
    let recording = match record::read(file) {
        Ok(recording) => recording,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::FAILURE;
        }
    };
    match recording.replay() {
        Ok(summary) => {
            let Summary { inputs, outputs, bytes_read, bytes_written, time, complete, .. } = summary;
            println!(
                "{inputs} inputs, {outputs} outputs, the same again; {bytes_read} bytes read, {bytes_written} written, in {time:?}"
            );
            if !complete {
                println!("the recording stops before the end of the client");
            }
            ExitCode::SUCCESS
        }
        Err(difference) => {
            eprintln!("line {}: the client acts differently{difference}", difference.line);
            if recording.version != env!("CARGO_PKG_VERSION") {
                eprintln!("it was recorded by version {}", recording.version);
            }
            ExitCode::FAILURE
        }
    }
}

/// Runs one scenario after another until so many steps counted, then says what occurred and what occurred too seldom.
fn many(steps: u64, first: u64) -> ExitCode {
    let (mut report, mut seed, begun) = (Report::default(), first, Instant::now());
    while report.steps < steps {
        run(&Scenario::from_seed(seed), &mut report, false);
        seed += 1;
    }
    println!(
        "seeds {first}..{seed}, {} steps, {} calls, {} completed, {} restarts, {} missed pings, {:?}",
        report.steps,
        report.calls,
        report.completed,
        report.restarts,
        report.pings_missed,
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

/// The same over HTTP.
fn many_web(steps: u64, first: u64) -> ExitCode {
    let (mut report, mut seed, begun) = (web::Report::default(), first, Instant::now());
    while report.steps < steps {
        web::run(&web::Scenario::from_seed(seed), &mut report, false);
        seed += 1;
    }
    println!(
        "seeds {first}..{seed}, {} steps, {} calls, {} completed, {} requests, {} resumed, {} handshakes, {} ended, {:?}",
        report.steps,
        report.calls,
        report.completed,
        report.requests,
        report.resumed,
        report.handshakes,
        report.ended,
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

/// The same with both engines over HTTP.
fn many_both(steps: u64, first: u64) -> ExitCode {
    let (mut report, mut seed, begun) = (both::Report::default(), first, Instant::now());
    while report.steps < steps {
        both::run(&both::Scenario::from_seed(seed), &mut report, false);
        seed += 1;
    }
    println!(
        "seeds {first}..{seed}, {} steps, {} calls, {} completed, {} of them resumed, {} handed out, {:?}",
        report.steps,
        report.calls,
        report.completed,
        report.resumed,
        report.handled,
        begun.elapsed()
    );
    println!(
        "{} sessions, {} of them forgotten, {} events kept, {} written again, {} questions answered, {} told of a change",
        report.sessions, report.idled, report.kept, report.replayed, report.answered, report.told
    );
    println!("statuses: {:?}", report.statuses);
    for (fault, n) in &report.faults {
        println!("{fault:?}: {n}");
    }
    let missing = report.missing(1000, 100);
    println!("pairs of state and input: {}; too seldom: {missing:?}", report.pairs.len() + report.server_pairs.len());
    println!("{} passed, {} failed", seed - first, missing.len());
    if missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
