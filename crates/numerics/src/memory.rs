//! What becomes of freed memory.

/// Asks the allocator to keep freed memory of this process for its next use, instead of returning
/// it to the operating system.
///
/// A training step allocates and frees the same arrays as the one before; if their pages go back in
/// between, a fifth to a half of the time goes into fetching and clearing them again. Call it once at
/// the start of a program that trains. It costs at most 64 MiB of memory that would otherwise be
/// returned, for each arena of the allocator.
///
/// # Numerics
/// No setting is touched: glibc takes blocks up to the size of the largest one it has seen freed
/// (32 MiB at most) from memory that it keeps, and this function shows it such a block, which is
/// never written to and hence never occupied. Elsewhere it has no effect.
pub fn keep_freed_memory() {
    /// Just below glibc's limit, the block's own header included.
    const LARGEST: usize = (32 << 20) - (64 << 10);
    drop(std::hint::black_box(Vec::<u8>::with_capacity(LARGEST)));
}
