//! `mcp-blocking` for measurements: `peer-blocking serve stdio|http`, `peer-blocking drive
//! stdio|http`. See [`mcp_tests::peer`].
#![forbid(unsafe_code)]

use mcp_tests::adapters::Adapter;
use mcp_tests::peer;
use std::process::ExitCode;

fn main() -> ExitCode {
    peer::main(Adapter::Blocking)
}
