//! Calls that become tasks, with the clients and servers of others: `tasks [WORDS]` takes only the
//! rows whose name contains the words. A failed installation fails the run.

use std::process::ExitCode;

use mcp_tests::adapters::Adapter;
use mcp_tests::exit_code;
use mcp_tests::rows::run_all;
use mcp_tests::task_peers::{self, Ground, ROWS};

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    exit_code("tasks", Ground::new().map(|ground| run_all("tasks", &ground, ROWS, &args.join(" "))))
}

/// Our server, as a program of its own.
pub(crate) fn server(args: Vec<String>) -> ExitCode {
    match Adapter::first_of(args) {
        Some((adapter, _)) => task_peers::serve(adapter),
        None => ExitCode::from(2),
    }
}

/// A client of ours, as a program of its own.
pub(crate) fn client(args: Vec<String>) -> ExitCode {
    match Adapter::first_of(args) {
        Some((adapter, args)) => task_peers::client(adapter, &args),
        None => ExitCode::from(2),
    }
}
