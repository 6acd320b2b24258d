//! The server for the conformance suite: `everything-server ADAPTER [--verbose] --http ADDR |
//! --stdio`. Over HTTP it prints `LISTENING ADDR` once it listens, and its endpoint is `/mcp`. With
//! `--verbose` it writes every message to standard error.

use mcp_tests::adapters::Adapter;
use mcp_tests::conformance::server;
use std::process::ExitCode;

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    match Adapter::first_of(args) {
        Some((adapter, rest)) => server::run(adapter, rest),
        None => {
            eprintln!("usage: everything-server blocking|smol [--verbose] --http ADDR | --stdio");
            ExitCode::from(2)
        }
    }
}
