//! Allocations of attention, in a process whose allocator counts.

mod decoding_allocates_nothing;
mod memory_grows_with_length;

use bochner_numerics::allocations::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;
