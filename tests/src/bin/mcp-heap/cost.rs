//! The exact numbers of [`mcp_tests::cost`].

use mcp_tests::cost::{Heap, held, table};
use mcp_tests::heap::{bytes, made, used};
use std::process::ExitCode;

fn heap() -> Heap {
    Heap { count: made(), bytes: bytes() }
}

pub(crate) fn main(_args: Vec<String>) -> ExitCode {
    print!("{}{}", table(heap), held(used));
    ExitCode::SUCCESS
}
