//! Runs real servers that share a store: `nodes [SECONDS] [SEED]`. See `mcp_tests::nodes`.

use mcp_tests::nodes;
use std::process::ExitCode;
use std::time::Duration;

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    let number = |nth: usize, default: u64| args.get(nth).map_or(Some(default), |arg| arg.parse().ok());
    let (Some(seconds), Some(seed)) = (number(0, 300), number(1, 1)) else {
        eprintln!("usage: nodes [SECONDS] [SEED]");
        return ExitCode::FAILURE;
    };
    let ran = nodes::run(Duration::from_secs(seconds), seed).map(|report| {
        let faults = report.faults();
        faults.iter().take(20).for_each(|fault| println!("FAULT {fault}"));
        println!("{report}\nnodes: {} passed, {} failed", report.answered(), faults.len());
        faults.is_empty()
    });
    mcp_tests::exit_code("nodes", ran)
}
