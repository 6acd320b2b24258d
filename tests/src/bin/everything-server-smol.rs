#![forbid(unsafe_code)]
//! The server for the conformance suite, over `mcp-smol`: `everything-server-smol [--verbose]
//! --http ADDR | --stdio`. Over HTTP it prints `LISTENING ADDR` once it listens, and its endpoint
//! is `/mcp`. With `--verbose` it writes every message to standard error.

use std::process::ExitCode;

use mcp_tests::adapters::Adapter;
use mcp_tests::conformance::server::run;

fn main() -> ExitCode {
    run(Adapter::Smol)
}
