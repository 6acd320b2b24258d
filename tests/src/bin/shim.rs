//! The shim of both adapters for `hostile --driver`: `shim --adapter blocking` or `--adapter smol`.
#![forbid(unsafe_code)]

use mcp_tests::adapters::Adapter;
use mcp_tests::shim::run;
use std::{env, io};

fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let adapter = match args.as_slice() {
        [flag, name] if flag == "--adapter" => Adapter::named(name),
        _ => None,
    };
    run(adapter.ok_or_else(|| io::Error::other("shim --adapter blocking|smol"))?)
}
