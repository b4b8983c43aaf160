//! Inner products of ternary numbers, 64 columns at a time.

use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::{Buffer, Buffers};
use std::ops::{AddAssign, Range};

/// Rows of the numbers -1, 0 and 1 as bits.
///
/// For rows a and b the product is the number of columns in which neither is 0, less twice the number of those in which
/// their signs differ: a few instructions for each 64 columns, of however few columns there are.
/// No [`Operations`](bochner_numerics::Operations) are counted: nothing is multiplied.
pub(crate) struct TernaryRows {
    rows: usize,
    columns: usize,
    /// The first 64 columns of all rows, then the next: in which the numbers are not 0.
    nonzero: Buffer<u64>,
    /// In which they are negative.
    negative: Buffer<u64>,
}

impl TernaryRows {
    /// Rows of so many columns, one behind the other.
    pub(crate) fn new<X>(words: &Buffers<u64>, x: &[X], columns: usize) -> Self
    where
        X: Copy + Default + PartialOrd,
    {
        assert_eq!(x.len() % columns, 0, "rows of {columns}");
        let rows = x.len() / columns;
        let size = columns.div_ceil(64) * rows;
        let (mut nonzero, mut negative) = (words.any(size), words.any(size));
        instructions::run(Pack {
            x,
            columns,
            nonzero: &mut nonzero,
            negative: &mut negative,
        });
        Self {
            rows,
            columns,
            nonzero,
            negative,
        }
    }

    /// The products of some of these rows with some of others, `[rows, others]`, each as `number` makes it of its parts,
    /// which it adds up; both have as many columns.
    pub(crate) fn products<X: Copy + AddAssign>(
        &self,
        rows: Range<usize>,
        others: &Self,
        range: Range<usize>,
        number: impl Fn(i32) -> X,
        out: &mut [X],
    ) {
        assert_eq!(self.columns, others.columns, "columns");
        assert_eq!(out.len(), rows.len() * range.len(), "products");
        instructions::run_counting_bits(Products {
            left: (self, rows),
            right: (others, range),
            number,
            out,
        });
    }
}

struct Pack<'a, X> {
    x: &'a [X],
    columns: usize,
    nonzero: &'a mut [u64],
    negative: &'a mut [u64],
}

impl<X: Copy + Default + PartialOrd> Task for Pack<'_, X> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let rows = self.x.len() / self.columns;
        for (i, row) in self.x.chunks_exact(self.columns).enumerate() {
            for (word, piece) in row.chunks(64).enumerate() {
                let (mut nonzero, mut negative) = (0, 0);
                for (&x, bit) in piece.iter().zip(0..) {
                    nonzero |= u64::from(x != X::default()) << bit;
                    negative |= u64::from(x < X::default()) << bit;
                }
                self.nonzero[word * rows + i] = nonzero;
                self.negative[word * rows + i] = negative;
            }
        }
    }
}

struct Products<'a, X, F> {
    left: (&'a TernaryRows, Range<usize>),
    right: (&'a TernaryRows, Range<usize>),
    number: F,
    out: &'a mut [X],
}

impl<X: Copy + AddAssign, F: Fn(i32) -> X> Task for Products<'_, X, F> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let ((left, rows), (right, others)) = (self.left, self.right);
        if others.is_empty() {
            return;
        }
        for (i, out) in rows.zip(self.out.chunks_exact_mut(others.len())) {
            for word in 0..left.columns.div_ceil(64) {
                let at = word * left.rows + i;
                let (nonzero, negative) = (left.nonzero[at], left.negative[at]);
                let range = word * right.rows + others.start..word * right.rows + others.end;
                let pairs = right.nonzero[range.clone()]
                    .iter()
                    .zip(&right.negative[range]);
                for (x, (&other, &other_negative)) in out.iter_mut().zip(pairs) {
                    let both = nonzero & other;
                    let unlike = both & (negative ^ other_negative);
                    let product = both.count_ones() as i32 - 2 * unlike.count_ones() as i32;
                    let product = (self.number)(product);
                    match word {
                        0 => *x = product,
                        _ => *x += product,
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner_numerics::{Mat, Real};

    fn products_are_those_of<T: Real>() {
        let words = Buffers::default();
        // So many keys are whole vectors and some more.
        let (queries, keys) = (5, 21);
        for columns in [1, 3, 63, 64, 65, 130] {
            let of = |seed: usize, rows: usize| -> Vec<T> {
                let number = |n: usize| T::of(((n * n * 7 + n / 3 + seed) % 3) as f64 - 1.0);
                (0..rows * columns).map(number).collect()
            };
            let (left, right) = (of(1, queries), of(2, keys));
            let (rows, range) = (1..4, 2..keys);
            let [a, b] = [&left, &right].map(|x| TernaryRows::new(&words, x, columns));
            let mut products = vec![T::nan(); 3 * (keys - 2)];
            let number = |x: i32| T::of(x.into());
            a.products(rows.clone(), &b, range.clone(), number, &mut products);
            let [a, b] = [(&left, queries), (&right, keys)].map(|(x, n)| Mat::new(x, n, columns));
            let expected = rows.flat_map(|i| {
                let product = move |j: usize| {
                    let pairs = a.row(i).iter().zip(b.row(j));
                    pairs.fold(T::zero(), |sum, (&x, &y)| sum + x * y)
                };
                range.clone().map(product)
            });
            assert_eq!(products, expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn products_are_those_of_the_numbers() {
        products_are_those_of::<f32>();
        products_are_those_of::<f64>();
    }
}
