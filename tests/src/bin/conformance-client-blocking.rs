#![forbid(unsafe_code)]
//! The client that the conformance suite starts, over `mcp-blocking`. `conformance-client-blocking [--fixed] URL`; the suite says the rest in the
//! environment. With `--fixed` it is told which revision the server speaks, in place of finding out.

use std::process::ExitCode;

use mcp_tests::conformance::{blocking, client};

fn main() -> ExitCode {
    client::run(blocking::connect)
}
