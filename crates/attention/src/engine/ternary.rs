//! Inner products of ternary numbers, 64 columns at a time.

use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::{Buffer, Buffers, Mat, Real};
use std::ops::Range;

/// Rows of the numbers -1, 0 and 1 as bits.
///
/// For rows a and b the product is the number of columns in which neither is 0, less twice the number of those in which
/// their signs differ: a few instructions for 64 columns, where a product of floating-point numbers takes one for 4 to 16.
/// No [`Operations`](bochner_numerics::Operations) are counted: nothing is multiplied.
#[derive(Clone, Debug)]
pub(super) struct TernaryRows {
    rows: usize,
    columns: usize,
    /// The first 64 columns of all rows, then the next: in which the numbers are not 0.
    counts: Buffer<u64>,
    /// In which they are negative.
    negative: Buffer<u64>,
}

impl TernaryRows {
    /// The rows of a matrix of the three numbers.
    pub(super) fn new<T: Real>(words: &Buffers<u64>, x: Mat<T>) -> Self {
        let (rows, columns) = x.shape();
        let size = columns.div_ceil(64) * rows;
        let (mut counts, mut negative) = (words.any(size), words.any(size));
        instructions::run(Pack {
            x,
            counts: &mut counts,
            negative: &mut negative,
        });
        Self {
            rows,
            columns,
            counts,
            negative,
        }
    }

    /// The products of some of these rows with some of others, `[rows, others]`; both have as many columns.
    pub(super) fn products<T: Real>(
        &self,
        rows: Range<usize>,
        (others, of_others): (&Self, &Range<usize>),
        out: &mut [T],
    ) {
        instructions::run_counting_bits(Products {
            left: (self, rows),
            right: (others, of_others),
            out,
        });
    }
}

struct Pack<'a, T> {
    x: Mat<'a, T>,
    counts: &'a mut [u64],
    negative: &'a mut [u64],
}

impl<T: Real> Task for Pack<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let rows = self.x.shape().0;
        for i in 0..rows {
            for (word, piece) in self.x.row(i).chunks(64).enumerate() {
                let (mut counts, mut negative) = (0, 0);
                for (&x, bit) in piece.iter().zip(0..) {
                    counts |= u64::from(x != T::zero()) << bit;
                    negative |= u64::from(x < T::zero()) << bit;
                }
                self.counts[word * rows + i] = counts;
                self.negative[word * rows + i] = negative;
            }
        }
    }
}

struct Products<'a, T> {
    left: (&'a TernaryRows, Range<usize>),
    right: (&'a TernaryRows, &'a Range<usize>),
    out: &'a mut [T],
}

impl<T: Real> Task for Products<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let ((left, rows), (right, keys)) = (self.left, self.right);
        let words = left.columns.div_ceil(64);
        for (i, out) in rows.zip(self.out.chunks_exact_mut(keys.len())) {
            out.fill(T::zero());
            for word in 0..words {
                let at = word * left.rows + i;
                let (counts, negative) = (left.counts[at], left.negative[at]);
                let own = word * right.rows + keys.start..word * right.rows + keys.end;
                let others = right.counts[own.clone()].iter().zip(&right.negative[own]);
                for (x, (&other_counts, &other_negative)) in out.iter_mut().zip(others) {
                    let both = counts & other_counts;
                    let unlike = both & (negative ^ other_negative);
                    let product = both.count_ones() as i32 - 2 * unlike.count_ones() as i32;
                    *x += T::of(product.into());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_numbers() {
        let words = Buffers::default();
        for columns in [1, 3, 63, 64, 65, 130] {
            let of = |seed: usize, rows: usize| -> Vec<f32> {
                let number = |n: usize| ((n * n * 7 + n / 3 + seed) % 3) as f32 - 1.0;
                (0..rows * columns).map(number).collect()
            };
            let (left, right) = (of(1, 5), of(2, 9));
            let left = Mat::new(&left, 5, columns);
            let right = Mat::new(&right, 9, columns);
            let (rows, keys) = (1..4, 2..9);
            let mut products = vec![f32::NAN; 3 * 7];
            let [a, b] = [left, right].map(|x| TernaryRows::new(&words, x));
            a.products(rows.clone(), (&b, &keys), &mut products);
            let expected = rows.flat_map(|i| {
                let product = move |j: usize| {
                    let pairs = left.row(i).iter().zip(right.row(j));
                    pairs.map(|(x, y)| x * y).sum::<f32>()
                };
                keys.clone().map(product)
            });
            assert_eq!(products, expected.collect::<Vec<_>>());
        }
    }
}
