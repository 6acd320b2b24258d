//! The exact numbers of [`mcp_tests::cost`], which need an allocator that counts: a program of its
//! own, so that no time is measured with it.
#![forbid(unsafe_code)]

use mcp_tests::cost::{Heap, held, table};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn heap() -> Heap {
    let stats = HEAP.stats();
    Heap { count: stats.allocations + stats.reallocations, bytes: stats.bytes_allocated }
}

fn used() -> usize {
    let stats = HEAP.stats();
    stats.bytes_allocated.wrapping_sub(stats.bytes_deallocated)
}

fn main() {
    print!("{}{}", table(heap), held(used));
}
