#![forbid(unsafe_code)]
//! Measures a source tree: `survey [ROOT]` prints a table about the checkout at ROOT, by default
//! this one.

use std::env;
use std::path::PathBuf;

use mcp_tests::{sources, survey};

fn main() {
    let root = env::args_os().nth(1).map_or_else(sources::root, PathBuf::from);
    print!("{}", survey::survey(&root));
}
