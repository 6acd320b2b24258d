//! The client that the conformance suite starts: `conformance-client ADAPTER [--fixed] URL`. The
//! suite passes the rest in the environment. With `--fixed` the client gets the revision of the
//! server instead of negotiating.

use mcp_tests::adapters::Adapter;
use mcp_tests::conformance::client;
use std::process::ExitCode;

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    match Adapter::first_of(args) {
        Some((adapter, rest)) => client::run(adapter, rest),
        None => {
            eprintln!("usage: conformance-client blocking|smol [--fixed] URL");
            ExitCode::from(2)
        }
    }
}
