//! Runs a supervisor of many servers in virtual time: `fleet [--servers N] [--hours N] [--seed N]`.
//! A tenth of the servers dies in each second. Default 200 servers, a day, seed 1.

use mcp_tests::sim::fleet::Fleet;
use std::process::ExitCode;
use std::time::{Duration, Instant};

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    mcp_tests::exit_code("fleet", run(&args))
}

fn run(args: &[String]) -> Result<bool, String> {
    let value = |flag: &str, default: u64| match args.iter().skip_while(|arg| *arg != flag).nth(1) {
        Some(value) => value.parse().map_err(|_| format!("{flag} takes a number")),
        None => Ok(default),
    };
    let servers = u32::try_from(value("--servers", 200)?).map_err(|_| "too many servers")?;
    let (hours, seed) = (value("--hours", 24)?, value("--seed", 1)?);
    let fleet = Fleet { servers, deaths: 100, length: Duration::from_secs(3600 * hours), seed };
    let began = Instant::now();
    let report = fleet.run().map_err(|why| format!("{fleet:?}: {why}"))?;
    println!("{fleet:?}, {:.1} s", began.elapsed().as_secs_f64());
    println!("{report:#?}");
    println!("fleet: {} passed, 0 failed", report.attempts);
    Ok(true)
}
