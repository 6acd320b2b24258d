#![forbid(unsafe_code)]
//! Measures a source tree.
//!
//! * `survey [ROOT]`: prints a table about the checkout at ROOT, by default this one.
//! * `survey --prose`: writes `tests/prose.txt` from what this tree has.

use std::env;
use std::path::Path;

use mcp_tests::{prose, sources, survey};

fn main() {
    match env::args().nth(1).as_deref() {
        Some("--prose") => prose::keep(&sources::root()),
        Some(root) => print!("{}", survey::survey(Path::new(root))),
        None => print!("{}", survey::survey(&sources::root())),
    }
}
