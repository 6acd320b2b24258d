#![forbid(unsafe_code)]
//! The server that the conformance suite meets, over `mcp-smol`. `everything-server-smol [--verbose] --http ADDR | --stdio`; over HTTP it
//! prints `LISTENING ADDR` once it listens, and its endpoint is `/mcp`. With `--verbose` it writes every message to standard error.

use std::process::ExitCode;

use mcp_tests::conformance::server::{run, smol};

fn main() -> ExitCode {
    run(smol::serve)
}
