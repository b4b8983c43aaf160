//! Counting allocations: tests show with it that a computation takes no new memory, or no more than it says.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counting how often each thread asks it for memory, and for how much.
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

/// Runs `f` and counts its allocations on the calling thread, if [`Counting`] is the program's allocator. Returns the
/// result and the count. Memory that has to grow counts too.
pub fn count<R>(f: impl FnOnce() -> R) -> (R, u64) {
    let before = ALLOCATED.get();
    let result = f();
    (result, ALLOCATED.get() - before)
}

/// The most bytes that `f` holds at once of what the calling thread allocates meanwhile, if
/// [`Counting`] is the program's allocator, with what it returns.
///
/// ```
/// use bochner_numerics::allocations::{Counting, peak};
///
/// #[global_allocator]
/// static ALLOCATOR: Counting = Counting;
///
/// let (kept, bytes) = peak(|| {
///     drop(vec![0_u8; 3000]);
///     vec![0_u8; 1000]
/// });
/// assert_eq!((kept.len(), bytes), (1000, 3000));
/// ```
pub fn peak<R>(f: impl FnOnce() -> R) -> (R, usize) {
    let before = HELD.get();
    MOST_HELD.set(before);
    let result = f();
    (result, (MOST_HELD.get() - before) as usize)
}

thread_local! {
    // No code that could allocate makes or tears down these variables.
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
    // The number is below zero on a thread that frees what another one allocated.
    static HELD: Cell<i64> = const { Cell::new(0) };
    static MOST_HELD: Cell<i64> = const { Cell::new(0) };
}

fn note(freed: usize, taken: usize) {
    let held = HELD.get() - freed as i64 + taken as i64;
    HELD.set(held);
    MOST_HELD.set(MOST_HELD.get().max(held));
}

fn note_allocation(freed: usize, taken: usize) {
    ALLOCATED.set(ALLOCATED.get() + 1);
    note(freed, taken);
}

// SAFETY: everything is the system allocator's, called with the arguments that were given.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note_allocation(0, layout.size());
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note_allocation(0, layout.size());
        // SAFETY: the caller gives a layout of a size above zero, which the system's allocator asks for.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note_allocation(layout.size(), size);
        // SAFETY: the caller gives a block of this allocator, which is the system's, and its layout.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        note(layout.size(), 0);
        // SAFETY: the caller gives a block of this allocator, which is the system's, and its layout.
        unsafe { System.dealloc(block, layout) }
    }
}
