//! Runs our clients and servers beside curl, OpenSSL, nginx, tinyproxy, squid and FastMCP, and the
//! example `quickstart` over each transport. Prints a line for each row. `network [WORDS]` runs
//! only the rows whose name contains the words. The programs have to be installed, and the example
//! built.

use std::process::ExitCode;

use mcp_tests::network::{self, Ground};
use mcp_tests::{exit_code, rows};

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    exit_code("network", run(&args.join(" ")))
}

fn run(words: &str) -> Result<bool, String> {
    let ground = Ground::new()?;
    let all = network::rows();
    let chosen = all.iter().filter(|row| row.name.contains(words));
    Ok(rows::close("network", chosen.map(|row| rows::run_named(&format!("{:<84}", row.name), || row.run(&ground)))))
}
