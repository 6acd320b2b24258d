#![forbid(unsafe_code)]
//! The client that the conformance suite starts, over `mcp-smol`: `conformance-client-smol
//! [--fixed] URL`. The suite passes the rest in the environment. With `--fixed` the client gets the
//! revision of the server instead of negotiating.

use std::process::ExitCode;

use mcp_tests::adapters::Adapter;
use mcp_tests::conformance::client;

fn main() -> ExitCode {
    client::run(Adapter::Smol)
}
