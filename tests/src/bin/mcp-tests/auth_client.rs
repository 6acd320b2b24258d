//! A client that logs in, for `auth`: `auth-client ADAPTER URL FOLDER`.

use mcp_tests::adapters::Adapter;
use mcp_tests::authorization::program;
use std::process::ExitCode;

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    match Adapter::first_of(args) {
        Some((adapter, rest)) => program::run(adapter, &rest),
        None => {
            eprintln!("usage: auth-client blocking|smol URL FOLDER");
            ExitCode::from(2)
        }
    }
}
