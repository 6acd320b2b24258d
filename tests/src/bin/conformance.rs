#![forbid(unsafe_code)]
//! Installs the official conformance suite and runs it against our clients and our servers, in both
//! adapters. A failed installation fails the run. `conformance [--adapter NAME] [WORD]` runs only
//! the scenarios whose name contains the word, each alone. `--adapter` runs only one adapter,
//! `blocking` or `smol`.
//!
//! The suite must accept the run, and every listed check must have its required result. For faults,
//! the end of the traffic is shown.

use std::env;
use std::process::ExitCode;
use std::time::Instant;

use mcp_tests::conformance::setup::{ADAPTERS, install};
use mcp_tests::conformance::table::Table;
use mcp_tests::conformance::{clients, servers};

fn main() -> ExitCode {
    let began = Instant::now();
    let mut args = env::args().skip(1).peekable();
    let adapters = match args.next_if(|arg| arg == "--adapter").map(|_| args.next().unwrap_or_default()) {
        None => Ok(ADAPTERS.to_vec()),
        Some(name) => match ADAPTERS.iter().find(|known| **known == name) {
            Some(known) => Ok(vec![*known]),
            None => Err("--adapter takes blocking or smol".to_owned()),
        },
    };
    let word = args.collect::<String>();
    match adapters.and_then(install).and_then(|installed| {
        println!("installed in {} s", began.elapsed().as_secs());
        let mut table = Table::new(installed);
        clients::run(&mut table, &word)?;
        servers::run(&mut table, &word)?;
        Ok(table)
    }) {
        Ok(table) => {
            println!("took {} s", began.elapsed().as_secs());
            println!("conformance: {} passed, {} failed", table.passed, table.failed);
            if table.failed == 0 && table.passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(why) => {
            eprintln!("conformance: {why}");
            ExitCode::FAILURE
        }
    }
}
