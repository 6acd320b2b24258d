//! Skills and MCP Apps with the clients and servers of others: `extensions [WORDS]` takes only the
//! rows whose name contains the words. A failed installation fails the run.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use mcp_tests::adapters::Adapter;
use mcp_tests::exit_code;
use mcp_tests::extension_peers::{self, Ground, ROWS};

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    exit_code("extensions", run(&args.join(" ")))
}

fn run(words: &str) -> Result<bool, String> {
    let ground = Ground::new()?;
    let (mut passed, mut failed) = (0, 0);
    for (row, adapter) in ROWS.iter().flat_map(|row| Adapter::ALL.map(|adapter| (row, adapter))) {
        if !row.name.contains(words) {
            continue;
        }
        let began = Instant::now();
        let result = (row.run)(&ground, adapter);
        let (mark, shown) = match &result {
            Ok(shown) => ("ok  ", shown),
            Err(why) => ("FAIL", why),
        };
        let took = began.elapsed().as_secs_f64();
        println!("{mark} {:<32} {:<9} {took:>5.1} s  {shown}", row.name, adapter.name());
        if result.is_ok() { passed += 1 } else { failed += 1 }
    }
    println!("extensions: {passed} passed, {failed} failed");
    Ok(failed == 0 && passed > 0)
}

/// Our server, as a program of its own.
pub(crate) fn server(args: Vec<String>) -> ExitCode {
    match Adapter::first_of(args) {
        Some((adapter, args)) if args.len() == 1 => extension_peers::serve(adapter, Path::new(&args[0])),
        _ => ExitCode::from(2),
    }
}
