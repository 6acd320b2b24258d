#![forbid(unsafe_code)]
//! Our server for other peoples' clients: `interop_server [--smol] [--legacy] [--report FILE]`, on standard input and output.
//! `--legacy`: it knows only the revisions with `initialize`.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use mcp_tests::interop::offer;

fn main() -> ExitCode {
    let (mut smol, mut legacy, mut report) = (false, false, None);
    let mut words = env::args_os().skip(1);
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--smol") => smol = true,
            Some("--legacy") => legacy = true,
            Some("--report") => report = words.next().map(PathBuf::from),
            _ => {
                eprintln!("interop_server: unknown argument {}", word.display());
                return ExitCode::from(2);
            }
        }
    }
    match offer::serve(smol, legacy, report.as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("interop_server: {why}");
            ExitCode::FAILURE
        }
    }
}
