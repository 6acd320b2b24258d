//! The exact numbers of [`mcp_tests::cost`], which need an allocator that counts: a program of its
//! own, so that no time is measured with it.
#![forbid(unsafe_code)]

use mcp_tests::cost::{Heap, held, table};
use mcp_tests::heap::{COUNTED, Counted, bytes, made, used};

#[global_allocator]
static HEAP: Counted = COUNTED;

fn heap() -> Heap {
    Heap { count: made(), bytes: bytes() }
}

fn main() {
    print!("{}{}", table(heap), held(used));
}
