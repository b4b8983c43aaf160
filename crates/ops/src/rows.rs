//! Work over the rows of a matrix, split by the matrix's shape alone.
//!
//! The pieces and their order do not depend on the number of threads, so results do not either, to the
//! bit.

use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::memory::{Unwritten, written_by};
use bochner_numerics::{Real, parallel};
use std::ops::Range;

/// Rows handed to one matrix product, at most.
const BLOCK: usize = 256;
/// Below this many multiplications threads cost more than they save.
pub(crate) const LARGE: usize = 1 << 20;
/// Elements handed to one thread at a time where rows do not matter.
pub(crate) const PIECE: usize = 1 << 13;
/// Partial sums of a reduction over the rows, at most: each takes the memory of a result.
const PARTS: usize = 8;

/// `rows` rows of each of these widths, which `f(rows, pieces)` writes block by block.
///
/// `work` is the number of multiplications in all.
pub fn by_blocks<T: Real, const N: usize>(
    rows: usize,
    widths: [usize; N],
    work: usize,
    f: impl Fn(Range<usize>, [Unwritten<'_, T>; N]) + Send + Sync,
) -> [Vec<T>; N] {
    let block = block_rows(rows);
    written_by(widths.map(|width| rows * width), |outs| {
        let mut widths = widths.into_iter();
        let mut chunks = outs.map(|out| {
            let width = widths.next().expect("as many widths as outputs");
            out.chunks(block * width)
        });
        let pieces = (0..rows).step_by(block).map(|start| {
            let pieces = chunks.each_mut().map(|chunks| chunks.next());
            let pieces = pieces.map(|piece| piece.expect("as many rows"));
            (start..(start + block).min(rows), pieces)
        });
        for_each_piece(pieces, work, |(range, pieces)| f(range, pieces));
    })
}

/// Calls `f` with every piece, on several threads if the work is worth it.
pub fn for_each_piece<P: Send>(
    pieces: impl Iterator<Item = P>,
    work: usize,
    f: impl Fn(P) + Send + Sync,
) {
    if work < LARGE {
        pieces.for_each(f);
    } else {
        let mut pieces: Vec<_> = pieces.map(Some).collect();
        parallel::for_each_chunk(&mut pieces, 1, |_, piece| {
            f(piece[0].take().expect("taken once"));
        });
    }
}

/// The sum of `f(rows)` over consecutive ranges of `rows` rows, added in order.
///
/// `f` returns vectors of one length each; `work` is the number of multiplications in all.
pub fn sum_over<T: Real, const N: usize>(
    rows: usize,
    work: usize,
    f: impl Fn(Range<usize>) -> [Vec<T>; N] + Send + Sync,
) -> [Vec<T>; N] {
    let parts = rows.div_ceil(BLOCK).clamp(1, PARTS);
    let part = |i: usize| f(i * rows / parts..(i + 1) * rows / parts);
    let sums: Vec<_> = if work < LARGE {
        (0..parts).map(part).collect()
    } else {
        parallel::map(parts, part)
    };
    let mut sums = sums.into_iter();
    let first = sums.next().expect("at least one part");
    sums.fold(first, |mut totals, sum| {
        for (total, part) in totals.iter_mut().zip(&sum) {
            add(total, part);
        }
        totals
    })
}

/// Adds `more` to `total`, which is as long, on several threads if that is worth it.
pub fn add_to<T: Real>(total: &mut [T], more: &[T]) {
    /// Elements one thread takes at a time.
    const PIECE: usize = 1 << 14;
    /// Multiplications that take as long as one element.
    const WORK: usize = 8;
    assert_eq!(total.len(), more.len(), "lengths of two summands");
    let pieces = total.chunks_mut(PIECE).zip(more.chunks(PIECE));
    for_each_piece(pieces, WORK * more.len(), |(total, more)| add(total, more));
}

/// Adds each row of `rows`, one after the other, to `total`, which is as long as one.
pub fn add<T: Real>(total: &mut [T], rows: &[T]) {
    instructions::run(Add { total, rows });
}

struct Add<'a, T> {
    total: &'a mut [T],
    rows: &'a [T],
}

impl<T: Real> Task for Add<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        for row in self.rows.chunks_exact(self.total.len().max(1)) {
            for (t, &p) in self.total.iter_mut().zip(row) {
                *t += p;
            }
        }
    }
}

/// The sum of `f(0) + ... + f(n - 1)` in eight lanes, which the compiler can vectorise.
#[inline(always)]
pub fn sum<T: Real>(n: usize, f: impl Fn(usize) -> T) -> T {
    let mut lanes = [T::zero(); 8];
    let whole = n - n % 8;
    for start in (0..whole).step_by(8) {
        for (j, lane) in lanes.iter_mut().enumerate() {
            *lane += f(start + j);
        }
    }
    let rest = (whole..n).fold(T::zero(), |total, i| total + f(i));
    lanes.into_iter().fold(rest, |total, lane| total + lane)
}

/// The place of the first element that is NaN or infinite.
pub fn first_not_finite<T: Real>(values: &[T]) -> Option<usize> {
    // A norm is taken in whole registers, a search is not, and there is hardly ever an element to find.
    if parallel::max_norm(values).is_finite() {
        return None;
    }
    values.iter().position(|x| !x.is_finite())
}

/// Rows of a block: few rows still fill eight threads, and a block of many rows stays in the cache.
pub(crate) fn block_rows(rows: usize) -> usize {
    rows.div_ceil(PARTS).max(1).next_multiple_of(32).min(BLOCK)
}
