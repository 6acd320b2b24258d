//! The shim of both adapters for `hostile --driver`: `shim --adapter blocking` or `--adapter smol`.

use mcp_tests::adapters::Adapter;
use mcp_tests::exit_code;
use mcp_tests::shim::run;
use std::io;
use std::process::ExitCode;

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    let adapter = match args.as_slice() {
        [flag, name] if flag == "--adapter" => Adapter::named(name),
        _ => None,
    };
    let done = adapter.ok_or_else(|| io::Error::other("shim --adapter blocking|smol")).and_then(run);
    exit_code("shim", done.map(|()| true))
}
