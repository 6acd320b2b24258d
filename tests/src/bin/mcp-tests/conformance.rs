//! Installs the official conformance suite and runs it against our clients and our servers, in both
//! adapters. A failed installation fails the run. `conformance [--adapter NAME] [--short] [WORD]`
//! runs only the scenarios whose name contains the word, each alone. `--adapter` runs only one
//! adapter, `blocking` or `smol`. `--short` runs only all scenarios of a revision together.
//!
//! The suite must accept the run, and every listed check must have its required result. For faults,
//! the end of the traffic is shown.

use std::process::ExitCode;
use std::time::Instant;

use mcp_tests::conformance::setup::{ADAPTERS, install};
use mcp_tests::conformance::table::Table;
use mcp_tests::conformance::{clients, servers};
use mcp_tests::exit_code;

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    exit_code("conformance", run(args))
}

fn run(args: Vec<String>) -> Result<bool, String> {
    let began = Instant::now();
    let mut args = args.into_iter().peekable();
    let adapters = match args.next_if(|arg| arg == "--adapter").map(|_| args.next().unwrap_or_default()) {
        None => ADAPTERS.to_vec(),
        Some(name) => match ADAPTERS.iter().find(|known| **known == name) {
            Some(known) => vec![*known],
            None => return Err("--adapter takes blocking or smol".to_owned()),
        },
    };
    let short = args.next_if(|arg| arg == "--short").is_some();
    let word = args.collect::<String>();
    let installed = install(adapters)?;
    println!("installed in {} s", began.elapsed().as_secs());
    let mut table = Table::new(installed);
    clients::run(&mut table, &word, short)?;
    servers::run(&mut table, &word, short)?;
    println!("took {} s", began.elapsed().as_secs());
    println!("conformance: {} passed, {} failed", table.passed, table.failed);
    Ok(table.failed == 0 && table.passed > 0)
}
