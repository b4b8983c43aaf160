//! Memory: keeping what is freed, large pages, and arrays that are not cleared before they are written.

#![allow(unsafe_code)]

use crate::product::{Right, multiply_into};
use crate::{Mat, Real};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Asks the allocator to keep freed memory of this process for its next use, instead of returning
/// it to the operating system, and says whether it does from now on.
///
/// A training step allocates and frees the same arrays as the one before; if their pages go back in
/// between, a fifth to a half of the time goes into fetching and clearing them again. A program that
/// trains calls the function once at its start: beside other threads the function does nothing and
/// returns `false`, since the allocator's settings may not change while another thread allocates. From
/// then on the process holds as much as it ever held at once.
///
/// # Numerics
/// The function tells glibc to serve arrays of any size from its heap (`M_MMAP_MAX`) and never to shrink
/// that (`M_TRIM_THRESHOLD`). Threads other than the first may still give back arrays of more than 64 MiB,
/// and heaps of theirs that have become empty. Without glibc on Linux, or without `/proc`, the function
/// does nothing and returns `false`.
pub fn keep_freed_memory() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    if is_alone() {
        // SAFETY: two settings of the allocator, which touch no memory that has been handed out. glibc
        // reads them without a lock when a thread allocates, but there is no other thread: the calling
        // one is the only one that could start another, and does not do so here.
        return unsafe {
            libc::mallopt(libc::M_MMAP_MAX, 0) == 1
                && libc::mallopt(libc::M_TRIM_THRESHOLD, -1) == 1
        };
    }
    false
}

/// Whether the calling thread is the only one of the process.
#[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
fn is_alone() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

/// `n` zeros, in large pages where there are many.
///
/// The vector is `vec![0.0; n]`, and on Linux the system is advised to back it by pages of 2 MiB: each first
/// touch of a page of 4 KiB costs microseconds on a virtual machine, and a large array has thousands.
///
/// ```
/// assert_eq!(bochner_numerics::memory::zeros::<f32>(3), [0.0; 3]);
/// ```
pub fn zeros<T: Real>(n: usize) -> Vec<T> {
    // Zeros that come from the operating system need not be written.
    in_large_pages(vec![T::zero(); n])
}

/// `vector`, with the advice to use pages of 2 MiB for all that it has room for.
pub(crate) fn in_large_pages<T>(vector: Vec<T>) -> Vec<T> {
    let first = vector.as_ptr().cast::<u8>();
    let pages = whole_pages(first.addr(), vector.capacity() * size_of::<T>());
    #[cfg(all(target_os = "linux", not(miri)))]
    if !pages.is_empty() {
        // SAFETY: advice about memory of the vector's own, which changes neither what it holds nor
        // who may use it. Where it is not followed nothing is lost.
        unsafe {
            let start = first.add(pages.start).cast_mut().cast();
            libc::madvise(start, pages.len(), libc::MADV_HUGEPAGE);
        }
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = pages;
    vector
}

/// Returns the range of whole pages of 2 MiB within some bytes. Memory outside this range gets no advice.
fn whole_pages(address: usize, bytes: usize) -> Range<usize> {
    const PAGE: usize = 2 << 20;
    let start = address.next_multiple_of(PAGE) - address;
    start..start + bytes.saturating_sub(start) / PAGE * PAGE
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
    let mut vectors = lengths.map(|n| in_large_pages(Vec::with_capacity(n)));
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

/// Makes an empty vector one of `n` numbers, which `fill` writes: in its own memory, if that is enough.
///
/// # Panics
/// If the vector is not empty, or `fill` leaves a piece unwritten.
pub fn written_into<T: Real>(vector: &mut Vec<T>, n: usize, fill: impl FnOnce(Unwritten<'_, T>)) {
    assert!(vector.is_empty(), "an empty vector to write into");
    if vector.capacity() < n {
        *vector = in_large_pages(Vec::with_capacity(n));
    }
    let written = AtomicUsize::new(0);
    fill(Unwritten {
        memory: &mut vector.spare_capacity_mut()[..n],
        written: &written,
    });
    assert_eq!(written.into_inner(), n, "numbers written");
    // SAFETY: no number belongs to two pieces, a piece is written once and as a whole, and as many
    // numbers have been written as there are.
    unsafe { vector.set_len(n) };
}

/// [`written_by`] in memory that is there already: `fill` writes over what the memory holds.
///
/// # Panics
/// If `fill` leaves a piece unwritten.
pub fn overwritten_by<T: Real, R>(
    numbers: &mut [T],
    fill: impl FnOnce(Unwritten<'_, T>) -> R,
) -> R {
    let (written, expected) = (AtomicUsize::new(0), numbers.len());
    let first = numbers.as_mut_ptr().cast::<MaybeUninit<T>>();
    // SAFETY: the same numbers, borrowed for as long; nothing but numbers is ever written to a piece.
    let memory = unsafe { std::slice::from_raw_parts_mut(first, expected) };
    let result = fill(Unwritten {
        memory,
        written: &written,
    });
    assert_eq!(written.into_inner(), expected, "numbers written");
    result
}

/// A piece of memory that is to be written, see [`written_by`] and [`overwritten_by`]: what it held before is
/// never read.
#[derive(Debug)]
pub struct Unwritten<'a, T> {
    memory: &'a mut [MaybeUninit<T>],
    written: &'a AtomicUsize,
}

impl<'a, T: Real> Unwritten<'a, T> {
    /// The number of elements that it has room for.
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Whether it has room for none.
    pub fn is_empty(&self) -> bool {
        self.memory.is_empty()
    }

    /// Writes zeros.
    pub fn zeros(self) -> &'a mut [T] {
        self.memory.fill(MaybeUninit::new(T::zero()));
        // SAFETY: all of it has been written.
        unsafe { self.finish() }
    }

    /// Writes a copy of as many numbers.
    ///
    /// # Panics
    /// If there is another number of them.
    pub fn copy_of(self, numbers: &[T]) -> &'a mut [T] {
        assert_eq!(self.memory.len(), numbers.len(), "numbers to copy");
        copy(numbers, self.memory);
        // SAFETY: all of it has been written, since both are as long.
        unsafe { self.finish() }
    }

    /// Writes copies of some slices, one after the other; slices for which there is no more room are not taken.
    ///
    /// # Panics
    /// If they do not fill the memory, the last one goes beyond it, or one has no numbers.
    pub fn copies_of<'r>(self, slices: impl IntoIterator<Item = &'r [T]>) -> &'a mut [T] {
        let mut slices = slices.into_iter();
        let mut rest = &mut *self.memory;
        while !rest.is_empty() {
            let numbers = slices.next().unwrap_or_default();
            assert!(!numbers.is_empty(), "numbers to copy");
            let (place, more) = rest.split_at_mut(numbers.len());
            copy(numbers, place);
            rest = more;
        }
        // SAFETY: all of it has been written, since nothing is left.
        unsafe { self.finish() }
    }

    /// Writes the product of two matrices, row-major.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn product<'b>(self, a: Mat<T>, b: impl Into<Right<'b, T>>) -> &'a mut [T] {
        multiply_into(a, b.into(), self.memory);
        // SAFETY: the product has as many numbers as there are, and all of them are written.
        unsafe { self.finish() }
    }

    /// The numbers that have been written.
    ///
    /// # Safety
    /// All of the memory has been written.
    unsafe fn finish(self) -> &'a mut [T] {
        let Self { memory, written } = self;
        written.fetch_add(memory.len(), Ordering::Relaxed);
        let (first, n) = (memory.as_mut_ptr().cast(), memory.len());
        // SAFETY: the same memory, borrowed for as long, and all of it has been written.
        unsafe { std::slice::from_raw_parts_mut(first, n) }
    }

    /// The first `n` numbers, and those after them.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn split_at(self, n: usize) -> (Self, Self) {
        let written = self.written;
        let (first, rest) = self.memory.split_at_mut(n);
        let [first, rest] = [first, rest].map(|memory| Self { memory, written });
        (first, rest)
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

/// Copies numbers to memory of the same length.
fn copy<T: Real>(numbers: &[T], place: &mut [MaybeUninit<T>]) {
    for (place, &x) in place.iter_mut().zip(numbers) {
        place.write(x);
    }
}
