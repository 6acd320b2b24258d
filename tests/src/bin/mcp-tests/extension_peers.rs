//! Skills and MCP Apps with the clients and servers of others: `extensions [WORDS]` takes only the
//! rows whose name contains the words. A failed installation fails the run.

use std::path::Path;
use std::process::ExitCode;

use mcp_tests::adapters::Adapter;
use mcp_tests::exit_code;
use mcp_tests::extension_peers::{self, Ground, ROWS};
use mcp_tests::rows::run_all;

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    exit_code("extensions", Ground::new().map(|ground| run_all("extensions", &ground, ROWS, &args.join(" "))))
}

/// Our server, as a program of its own.
pub(crate) fn server(args: Vec<String>) -> ExitCode {
    match Adapter::first_of(args) {
        Some((adapter, args)) if args.len() == 1 => extension_peers::serve(adapter, Path::new(&args[0])),
        _ => ExitCode::from(2),
    }
}
