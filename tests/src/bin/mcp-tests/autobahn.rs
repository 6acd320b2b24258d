//! Installs Autobahn|Testsuite and runs its cases against our codec of WebSocket, as a server and
//! as a client. A failed installation fails the run. `autobahn [CASES...]` runs only these, each by
//! its number or by the first parts of it (`6.4`).
//!
//! Every case must have the result that the suite wants, or the kept one of a known deviation.

use std::process::ExitCode;
use std::time::Instant;

use mcp_tests::autobahn::echo::Pace;
use mcp_tests::autobahn::setup::install;
use mcp_tests::autobahn::table::{Counts, DEVIATIONS, Outcome, Verdict};
use mcp_tests::autobahn::{FAMILIES, SMALL, as_client, as_server};
use mcp_tests::exit_code;

/// Number of cases of all families, and of those with small messages.
const CASES: usize = 301;
const SMALL_CASES: usize = 247;

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    exit_code("autobahn", run(args))
}

fn run(given: Vec<String>) -> Result<bool, String> {
    let began = Instant::now();
    let installed = install()?;
    println!("installed in {} s", began.elapsed().as_secs());
    let (mut passed, mut failed) = (0, 0);
    for (pace, families, cases) in [(Pace::Bytes, &SMALL[..], SMALL_CASES), (Pace::Reads, &FAMILIES[..], CASES)] {
        let all = families.iter().map(|family| (*family).to_owned()).collect();
        let patterns = if given.is_empty() { &all } else { &given };
        for side in ["server", "client"] {
            let run = if side == "server" { as_server } else { as_client };
            let verdicts = run(&installed, patterns, pace)?;
            if given.is_empty() && verdicts.len() != cases {
                return Err(format!("our {side}: {} cases of {cases}", verdicts.len()));
            }
            let counts = show(&format!("our {side}, polled after {pace:?}"), &verdicts, pace);
            passed += counts.total(Outcome::Passed);
            failed += counts.total(Outcome::Failed);
        }
    }
    for known in DEVIATIONS {
        println!("deviation in {}: {:?}: {}", known.cases.join(", "), known.result, known.why);
    }
    println!("took {} s", began.elapsed().as_secs());
    println!("autobahn: {passed} passed, {failed} failed");
    Ok(failed == 0 && passed > 0)
}

/// Prints the counts of a run, and each case that is not simply passed.
fn show(name: &str, verdicts: &[Verdict], pace: Pace) -> Counts {
    println!("\n{name}:");
    for verdict in verdicts {
        let word = match verdict.outcome(pace) {
            Outcome::Passed => continue,
            Outcome::Deviation if verdict.code == Some(1003) => continue,
            Outcome::Deviation => "deviation",
            Outcome::NonStrict => "non-strict",
            Outcome::Informational => "informational",
            Outcome::Failed => "FAIL",
        };
        let Verdict { case, behavior, close, result, close_result, code, received, .. } = verdict;
        let code = code.map_or("none".to_owned(), |code| code.to_string());
        println!("    {word} {case}: {behavior}, {close} with the code {code}. {result} {close_result}");
        if verdict.outcome(pace) != Outcome::Informational {
            println!("        received: {received:?}");
        }
    }
    let counts = Counts::of(verdicts, pace);
    counts.lines().iter().for_each(|line| println!("{line}"));
    counts
}
