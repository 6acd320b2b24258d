//! A minimal heap that frees memory: size classes of powers of two, each with a list of free
//! blocks.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::null_mut;

/// The classes hold 16 bytes, 32, 64, … up to 1 GiB.
const CLASSES: usize = 27;

struct Heap(UnsafeCell<State>);

struct State {
    free: [*mut u8; CLASSES],
    /// Fresh memory: from here up to `end`.
    next: usize,
    end: usize,
}

#[global_allocator]
static HEAP: Heap = Heap(UnsafeCell::new(State { free: [null_mut(); CLASSES], next: 0, end: 0 }));

// SAFETY: the module has one thread: it is built without atomics, and no memory is shared.
unsafe impl Sync for Heap {}

fn class(layout: Layout) -> usize {
    let size = layout.size().max(layout.align()).max(16).next_power_of_two();
    (size.trailing_zeros() - 4) as usize
}

// SAFETY: a block has the length of its class, is aligned to its length up to a page, and is on no
// list while in use.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: one thread, and nothing below calls back into the heap.
        let state = unsafe { &mut *self.0.get() };
        let class = class(layout);
        if class >= CLASSES {
            return null_mut();
        }
        let head = state.free[class];
        if head.is_null() {
            return fresh(state, 16 << class);
        }
        // SAFETY: a free block begins with the address of the next one.
        state.free[class] = unsafe { head.cast::<*mut u8>().read() };
        head
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above; the block holds at least 16 bytes, aligned to as many.
        unsafe {
            let state = &mut *self.0.get();
            block.cast::<*mut u8>().write(state.free[class(layout)]);
            state.free[class(layout)] = block;
        }
    }
}

/// A block of memory that was never used.
fn fresh(state: &mut State, size: usize) -> *mut u8 {
    const PAGE: usize = 64 << 10;
    let mut start = state.next.next_multiple_of(size.min(PAGE));
    if start.checked_add(size).is_none_or(|end| end > state.end) {
        // What is left of the page is lost; it is less than the block.
        let pages = size.div_ceil(PAGE);
        let before = core::arch::wasm32::memory_grow(0, pages);
        if before == usize::MAX {
            return null_mut();
        }
        start = before * PAGE;
        state.end = start.saturating_add(pages * PAGE);
    }
    state.next = start.saturating_add(size);
    start as *mut u8
}
