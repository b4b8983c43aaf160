//! Sums over positions, each feature's relative to a reference of its own.

use super::block::{Block, Shift};
use crate::lanes::{add, dot};
use crate::linear::RunningSums;
use crate::normaliser::Row;
use bochner_numerics::elementary::exp_in_place;
use bochner_numerics::instructions::{self, Arithmetic, Task};
use bochner_numerics::operations::record;
use bochner_numerics::{Buffer, Buffers, Mat, MatMut, Operations, Real, matmul_in};

/// $S_r = \sum_j e^{l_{jr} - c_r} y_j$ with $l_{jr} = \log \phi_r(k_j)$ and $y_j = [v_j | 1]$.
///
/// One reference $c$ for all features would not do: some features of a query are far above those that the
/// largest features of the keys meet. With one for each, the largest term of every sum is one.
///
/// In the backward pass the same is summed over queries, whose weights fall with the references.
#[derive(Clone, Debug)]
pub(crate) struct Sums<T> {
    /// $c_r$; minus infinity before the first position.
    pub(super) references: Buffer<T>,
    /// The columns of the values, `[features, dv]`.
    wide: Buffer<T>,
    /// The column of ones.
    pub(super) last: Buffer<T>,
}

impl<T: Real> Sums<T> {
    /// Sums over no positions.
    pub(super) fn zeros(features: usize, width: usize, numbers: &Buffers<T>) -> Self {
        Self {
            references: numbers.filled(features, T::neg_infinity()),
            wide: numbers.filled(features * width, T::zero()),
            last: numbers.filled(features, T::zero()),
        }
    }

    /// The number of numbers.
    pub(crate) fn size(&self) -> usize {
        self.references.len() + self.wide.len() + self.last.len()
    }

    /// The columns of the values.
    pub(super) fn matrix(&self) -> Mat<'_, T> {
        let features = self.last.len();
        Mat::new(&self.wide, features, self.wide.len() / features)
    }

    /// Adds keys with their values; the references rise to the largest of their features.
    pub(super) fn add_keys(&mut self, keys: &Block<T>, values: Mat<T>, numbers: &Buffers<T>) {
        if keys.rows == 0 {
            return;
        }
        let mut references = self.references.clone();
        keys.raise(&mut references);
        self.raise(references);
        let multiples = keys.relative(Shift::Minus(&self.references), &[], numbers);
        self.add(multiples.numbers(), values, None, numbers);
    }

    /// Adds multiples of the features of some rows, times their $y$; without a last column, it holds ones.
    pub(super) fn add(
        &mut self,
        multiples: &[T],
        y: Mat<T>,
        last: Option<&[T]>,
        numbers: &Buffers<T>,
    ) {
        let ((rows, width), features) = (y.shape(), self.last.len());
        record(Operations::multiply_adds(multiples.len()));
        instructions::run(AddRows {
            rows: multiples,
            weights: last,
            sums: &mut self.last,
        });
        let target = MatMut::new(&mut self.wide, features, width);
        let multiples = Mat::new(multiples, rows, features).t();
        matmul_in(numbers, T::one(), multiples, y, T::one(), target);
    }

    /// Writes the state of rows whose features relative to `levels` are `multiples`.
    pub(super) fn normalise(&self, multiples: &[T], levels: &[T], rows: &mut [Row<T>]) {
        instructions::run(Normalise {
            multiples,
            sums: &self.last,
            levels,
            rows,
        });
    }

    /// Writes the last column's sums into each row, times the row's factor if there are any.
    pub(super) fn multiply_last(&self, factors: Option<&[T]>, out: &mut [T]) {
        for (i, out) in out.chunks_exact_mut(self.last.len()).enumerate() {
            let factor = factors.map_or(T::one(), |factors| factors[i]);
            out.iter_mut()
                .zip(&self.last)
                .for_each(|(out, &x)| *out = x * factor);
        }
    }

    /// Makes sums over keys relative to references that are not below the present ones.
    fn raise(&mut self, references: Buffer<T>) {
        self.rescale(references, |old, new| old - new);
    }

    fn rescale(&mut self, references: Buffer<T>, exponent: impl Fn(T, T) -> T) {
        let width = self.wide.len() / self.last.len();
        let rows = self.wide.chunks_exact_mut(width).zip(self.last.iter_mut());
        let pairs = self.references.iter().zip(references.iter());
        for ((wide, last), (&old, &new)) in rows.zip(pairs) {
            if old != new && old != T::neg_infinity() {
                let mut factor = [exponent(old, new)];
                exp_in_place(&mut factor);
                wide.iter_mut().for_each(|x| *x *= factor[0]);
                *last *= factor[0];
            }
        }
        self.references = references;
    }
}

/// Adds rows, each times its weight, or as they are.
struct AddRows<'a, T> {
    rows: &'a [T],
    weights: Option<&'a [T]>,
    sums: &'a mut [T],
}

impl<T: Real> Task for AddRows<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        for (i, row) in self.rows.chunks_exact(self.sums.len()).enumerate() {
            match self.weights {
                None => add(self.sums, row),
                Some(weights) => {
                    let pairs = self.sums.iter_mut().zip(row);
                    pairs.for_each(|(sum, &x)| *sum += x * weights[i]);
                }
            }
        }
    }
}

/// Writes the levels and the normalisers of rows.
struct Normalise<'a, T> {
    multiples: &'a [T],
    /// The sums of the column of ones.
    sums: &'a [T],
    levels: &'a [T],
    rows: &'a mut [Row<T>],
}

impl<T: Real> Task for Normalise<'_, T> {
    #[inline(always)]
    fn run<A: Arithmetic>(self, _: A) {
        let multiples = self.multiples.chunks_exact(self.sums.len());
        let each = self.rows.iter_mut().zip(multiples).zip(self.levels);
        for ((row, multiples), &level) in each {
            (row.largest, row.sum) = (level, dot(multiples, self.sums));
        }
    }
}

impl<T: Real> RunningSums for Sums<T> {
    type Reference = Buffer<T>;

    fn is_empty(&self) -> bool {
        self.references.iter().all(|&c| c == T::neg_infinity())
    }

    fn reference(&self) -> Buffer<T> {
        self.references.clone()
    }

    fn follow(&mut self, later: &mut Self) {
        let mut references = self.references.clone();
        for (own, &other) in references.iter_mut().zip(later.references.iter()) {
            *own = own.max(other);
        }
        later.raise(references.clone());
        self.raise(references);
        self.join(later);
    }

    fn lower(&mut self, references: &Buffer<T>) {
        self.rescale(references.clone(), |old, new| new - old);
    }

    fn join(&mut self, other: &Self) {
        add(&mut self.wide, &other.wide);
        add(&mut self.last, &other.last);
    }
}
