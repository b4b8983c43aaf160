//! What becomes of freed memory, and memory that is not cleared before it is written.

#![allow(unsafe_code)]

use crate::Real;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// Vectors of these lengths, written by `fill` alone.
///
/// A large array of zeros is cleared by the thread that asks for it, and fetched from memory again
/// when others write to it. Here each thread clears or writes its own piece right before it goes on
/// with it.
///
/// ```
/// use bochner_numerics::memory::{Unwritten, written_by};
///
/// let [squares] = written_by([5], |[all]: [Unwritten<f64>; 1]| {
///     for (i, piece) in all.chunks(2).enumerate() {
///         let piece = piece.zeros();
///         piece.iter_mut().zip(2 * i..).for_each(|(x, n)| *x = (n * n) as f64);
///     }
/// });
/// assert_eq!(squares, [0.0, 1.0, 4.0, 9.0, 16.0]);
/// ```
///
/// # Panics
/// If `fill` leaves a piece unwritten.
pub fn written_by<T: Real, const N: usize>(
    lengths: [usize; N],
    fill: impl FnOnce([Unwritten<'_, T>; N]),
) -> [Vec<T>; N] {
    let written = AtomicUsize::new(0);
    let mut vectors = lengths.map(Vec::with_capacity);
    let mut of = lengths.into_iter();
    fill(vectors.each_mut().map(|vector| {
        let n = of.next().expect("as many lengths as vectors");
        Unwritten {
            memory: &mut vector.spare_capacity_mut()[..n],
            written: &written,
        }
    }));
    let expected: usize = lengths.iter().sum();
    assert_eq!(written.into_inner(), expected, "numbers written");
    for (vector, n) in vectors.iter_mut().zip(lengths) {
        // SAFETY: no number belongs to two pieces, a piece is written once and as a whole, and as
        // many numbers have been written as there are.
        unsafe { vector.set_len(n) };
    }
    vectors
}

/// A piece of memory that nothing has been written to yet, see [`written_by`].
#[derive(Debug)]
pub struct Unwritten<'a, T> {
    memory: &'a mut [MaybeUninit<T>],
    written: &'a AtomicUsize,
}

impl<'a, T: Real> Unwritten<'a, T> {
    /// Zeros.
    pub fn zeros(self) -> &'a mut [T] {
        let Self { memory, written } = self;
        memory.fill(MaybeUninit::new(T::zero()));
        written.fetch_add(memory.len(), Ordering::Relaxed);
        let (first, n) = (memory.as_mut_ptr().cast(), memory.len());
        // SAFETY: the same memory, borrowed for as long, and all of it has been written.
        unsafe { std::slice::from_raw_parts_mut(first, n) }
    }

    /// Pieces of `size` numbers, the last of which may have fewer.
    ///
    /// # Panics
    /// If `size` is zero.
    pub fn chunks(self, size: usize) -> impl Iterator<Item = Self> {
        let written = self.written;
        let chunks = self.memory.chunks_mut(size);
        chunks.map(move |memory| Self { memory, written })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_up_the_whole() {
        for (n, size) in [(0, 3), (1, 3), (9, 3), (10, 3), (10, 20)] {
            let [ones, twos] = written_by([n, 2], |[ones, twos]| {
                for piece in ones.chunks(size).map(Unwritten::zeros) {
                    piece.iter_mut().for_each(|x| *x += 1.0);
                }
                twos.zeros().fill(2.0);
            });
            assert_eq!((ones, twos), (vec![1.0; n], vec![2.0; 2]));
        }
    }

    #[test]
    #[should_panic(expected = "numbers written")]
    fn an_unwritten_piece_is_noticed() {
        let _: [Vec<f32>; 1] = written_by([10], |[all]| {
            all.chunks(4).skip(1).for_each(|piece| {
                piece.zeros();
            });
        });
    }
}
