//! The linear kernel: each query in a scale of its own.

use super::prepare::{Parts, Scaling};
use super::{Call, slab};
use crate::engine::Score;
use bochner_numerics::operations::record;
use bochner_numerics::scaling::{largest as largest_of, log2_range};
use bochner_numerics::{Buffer, Mat, Operations, Real};

impl<T: Real> Call<'_, '_, T> {
    /// $(q_i \cdot k_j)^2$ up to a constant of the row.
    ///
    /// The weights of a row depend neither on the size of its query nor on that of all its keys.
    /// So each query is multiplied by the power of two that brings the largest product of its
    /// coordinates with those of a key near one; keys that the row does not keep have no say in it.
    /// Earlier keys than those of the call, which all rows keep, have `earlier` as the largest
    /// number of each coordinate.
    pub(super) fn linear(&self, h: usize, earlier: &[T]) -> Parts<T> {
        let queries = slab(self.q.view(), h);
        let score = Score::Squared {
            normaliser: 1.0,
            floor: 0.0,
            exponents: self.exponents(h),
        };
        let mut left = self.workspace.numbers.empty(queries.data().len());
        self.for_each_power(h, earlier, |i, power| {
            let row = queries.row(i).iter();
            left.extend(row.map(|x| T::of(libm::scalbn(x.as_f64(), power))));
        });
        ((Some(left), None), Scaling::default(), score)
    }

    /// Calls `f` with every query and its power of two.
    pub(super) fn for_each_power(&self, h: usize, earlier: &[T], mut f: impl FnMut(usize, i32)) {
        record(Operations::multiply_adds(self.queries * self.width));
        let (queries, keys) = (slab(self.q.view(), h), self.kept_keys(h));
        let mut largest = self.workspace.doubles.empty(self.width);
        largest.extend(earlier.iter().map(|x| x.as_f64()));
        largest.resize(self.width, 0.0);
        let mut columns = Columns {
            keys,
            largest,
            of_row: self.workspace.doubles.empty(self.width),
            seen: 0,
        };
        let rows = self.mask_rows(h);
        // With room for products with keys that the row does not keep.
        let most = log2_range::<T>() - 28.0;
        for i in 0..self.queries {
            let query = queries.row(i);
            let product = columns.log2_largest(query, rows.limit(i), rows.matrix(i));
            let power = (-product).min(most - largest_of(query).as_f64().log2());
            f(i, if power.is_finite() { power as i32 } else { 0 });
        }
    }
}

/// The largest coordinates of the keys that a row keeps.
struct Columns<'a, T> {
    keys: Mat<'a, T>,
    /// Of the first keys, as many as have been seen: limits never decrease.
    largest: Buffer<f64>,
    /// Of the keys that one row keeps.
    of_row: Buffer<f64>,
    seen: usize,
}

impl<T: Real> Columns<'_, T> {
    /// The logarithm of the largest product of one coordinate of `query` with that of a kept key.
    fn log2_largest(&mut self, query: &[T], limit: usize, kept: Option<&[bool]>) -> f64 {
        let of = |columns: &[f64]| {
            let pairs = query.iter().zip(columns).filter(|(q, _)| q.is_finite());
            let products = pairs.map(|(q, k)| q.as_f64().abs().log2() + k.log2());
            products.fold(f64::NEG_INFINITY, f64::max)
        };
        match kept {
            None => {
                let new = self.seen..limit.max(self.seen);
                self.seen = new.end;
                new.for_each(|j| raise(&mut self.largest, self.keys.row(j)));
                of(&self.largest)
            }
            Some(kept) => {
                self.of_row.clear();
                self.of_row.resize(query.len(), 0.0);
                (0..limit)
                    .filter(|&j| kept[j])
                    .for_each(|j| raise(&mut self.of_row, self.keys.row(j)));
                of(&self.of_row)
            }
        }
    }
}

fn raise<T: Real>(largest: &mut [f64], row: &[T]) {
    for (largest, x) in largest.iter_mut().zip(row) {
        if x.is_finite() {
            *largest = largest.max(x.as_f64().abs());
        }
    }
}
