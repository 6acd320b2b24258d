//! A supervisor of servers of other projects, which are killed all the time, and what is left of
//! them: `real-fleet [--adapter NAME] [--secs N] [--seed N]`. Default both adapters, 120 s, seed 1.
//!
//! `real-fleet rest ADAPTER PROGRAM SERVERS SECS` prints the costs of a supervisor whose servers
//! rest.

use mcp_tests::adapters::Adapter;
use mcp_tests::fleet::{Fleet, resting};
use mcp_tests::heap::used;
use mcp_tests::interop::setup::{self, Which};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const USAGE: &str = "real-fleet [--adapter blocking|smol] [--secs N] [--seed N]";

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["rest", adapter, program, servers, secs] => rest(adapter, program, servers, secs).map(|()| true),
        _ => run(&words),
    };
    mcp_tests::exit_code("real-fleet", done)
}

fn run(words: &[&str]) -> Result<bool, String> {
    let (mut adapters, mut secs, mut seed) = (Adapter::ALL.to_vec(), 120, 1);
    for option in words.chunks(2) {
        match *option {
            ["--adapter", name] => adapters = vec![Adapter::named(name).ok_or(USAGE)?],
            ["--secs", number] => secs = number.parse().map_err(|_| USAGE)?,
            ["--seed", number] => seed = number.parse().map_err(|_| USAGE)?,
            _ => return Err(USAGE.into()),
        }
    }
    let began = Instant::now();
    let installed = setup::install(Which::All)?;
    println!("installed in {} s", began.elapsed().as_secs());
    let (mut passed, mut failed) = (0, 0);
    for adapter in adapters {
        let began = Instant::now();
        let fleet = Fleet { adapter, length: Duration::from_secs(secs), seed, heap: used };
        match fleet.run(&installed) {
            Ok(report) => {
                passed += 1;
                println!("{}, {secs} s, seed {seed}: took {} s", adapter.package(), began.elapsed().as_secs());
                println!("{report}\nchecked: {}", report.checked());
            }
            Err(why) => {
                failed += 1;
                println!("{}, {secs} s, seed {seed}: FAILED: {why}", adapter.package());
            }
        }
    }
    println!("real-fleet: {passed} passed, {failed} failed");
    Ok(failed == 0 && passed > 0)
}

fn rest(adapter: &str, program: &str, servers: &str, secs: &str) -> Result<(), String> {
    let adapter = Adapter::named(adapter).ok_or(USAGE)?;
    let servers = servers.parse().map_err(|_| "that is no number of servers")?;
    let secs = secs.parse().map_err(|_| "that is no number of seconds")?;
    println!("{}", resting::cost(adapter, Path::new(program), servers, Duration::from_secs(secs), used)?);
    Ok(())
}
