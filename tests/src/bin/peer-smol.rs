//! `mcp-smol` for measurements: `peer-smol serve stdio|http`, `peer-smol drive stdio|http`. See
//! [`mcp_tests::peer`].
#![forbid(unsafe_code)]

use mcp_tests::adapters::Adapter;
use mcp_tests::peer;
use std::process::ExitCode;

fn main() -> ExitCode {
    peer::main(Adapter::Smol)
}
