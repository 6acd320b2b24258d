#![forbid(unsafe_code)]
//! The programs whose heap is counted: `mcp-heap PROGRAM ARGUMENTS...`. They are apart from those
//! of `mcp-tests`, so that no time is measured with an allocator that counts.

mod cost;
mod load;
mod real_fleet;
mod soak;

use mcp_tests::heap::{COUNTED, Counted};
use std::process::ExitCode;

/// Counts the heap of this process.
#[global_allocator]
static HEAP: Counted = COUNTED;

fn main() -> ExitCode {
    mcp_tests::run_program(
        "mcp-heap",
        &[("cost", cost::main), ("load", load::main), ("real-fleet", real_fleet::main), ("soak", soak::main)],
    )
}
