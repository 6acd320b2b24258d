//! The heap of a program, which counts it if [`COUNTED`] is its allocator.

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;

/// An allocator that counts.
pub type Counted = &'static StatsAlloc<System>;

/// The one to set as the global allocator.
pub const COUNTED: Counted = &INSTRUMENTED_SYSTEM;

/// Returns the bytes in use.
pub fn used() -> usize {
    let stats = COUNTED.stats();
    stats.bytes_allocated.wrapping_sub(stats.bytes_deallocated)
}

/// Returns how often something was allocated.
pub fn made() -> usize {
    let stats = COUNTED.stats();
    stats.allocations + stats.reallocations
}

/// Returns the bytes that were allocated.
pub fn bytes() -> usize {
    COUNTED.stats().bytes_allocated
}
