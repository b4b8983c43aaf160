//! Counting allocations: for tests that a computation takes no new memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counting how often each thread asks it for memory.
///
/// ```
/// use bochner_numerics::allocations::{Counting, count};
///
/// #[global_allocator]
/// static ALLOCATOR: Counting = Counting;
///
/// let (mut numbers, allocated) = count(|| Vec::with_capacity(2));
/// assert_eq!(allocated, 1);
/// assert_eq!(count(|| numbers.extend([1, 2])).1, 0);
/// assert_eq!(count(|| numbers.push(3)).1, 1);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting;

/// How often `f` allocates on the calling thread, if [`Counting`] is the program's allocator, with
/// what it returns. Memory that has to grow counts too.
pub fn count<R>(f: impl FnOnce() -> R) -> (R, u64) {
    let before = ALLOCATED.get();
    let result = f();
    (result, ALLOCATED.get() - before)
}

thread_local! {
    // Neither made nor torn down by code that could allocate.
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

fn note() {
    ALLOCATED.set(ALLOCATED.get() + 1);
}

// SAFETY: everything is the system allocator's, called with the arguments that were given.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}
