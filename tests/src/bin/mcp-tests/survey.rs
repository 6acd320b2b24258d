//! Measures a source tree: `survey [ROOT]` prints a table about the checkout at ROOT, by default
//! this one.

use std::path::PathBuf;
use std::process::ExitCode;

use mcp_tests::{sources, survey};

pub(crate) fn main(args: Vec<String>) -> ExitCode {
    let root = args.first().map_or_else(sources::root, PathBuf::from);
    print!("{}", survey::survey(&root));
    ExitCode::SUCCESS
}
