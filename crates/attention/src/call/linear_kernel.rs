//! The linear kernel: each query in a scale of its own.

use super::prepare::{Parts, Scaling};
use super::units::log2_range;
use super::{Call, slab};
use crate::engine::{Score, largest};
use bochner_numerics::operations::record;
use bochner_numerics::{Mat, Operations, Real};
use ndarray::{Array2, Axis};

impl<T: Real> Call<'_, '_, T> {
    /// $(q_i \cdot k_j)^2$ up to a constant of the row.
    ///
    /// The weights of a row depend neither on the size of its query nor on that of all its keys.
    /// So each query is multiplied by the power of two that brings the largest product of its
    /// coordinates with those of a key near one; keys that the row does not keep have no say in it.
    /// Earlier keys than those of the call, which all rows keep, have `earlier` as the largest
    /// number of each coordinate.
    pub(super) fn linear(&self, h: usize, earlier: Vec<f64>) -> Parts<T> {
        let queries = self.rows(&self.q, h);
        let score = Score::Squared {
            normaliser: 1.0,
            floor: 0.0,
            exponents: self.exponents(h),
        };
        let left = self.by_powers(h, earlier, queries.mapv(|x| x.as_f64()));
        let operands = (Some(left.mapv(T::of)), None);
        (operands, Scaling::default(), score)
    }

    /// `x`, `[Tq, d]`, with each row multiplied by its query's power of two.
    pub(super) fn by_powers(&self, h: usize, earlier: Vec<f64>, mut x: Array2<f64>) -> Array2<f64> {
        record(Operations::multiply_adds(x.len()));
        for (mut row, power) in x.axis_iter_mut(Axis(0)).zip(self.powers(h, earlier)) {
            row.mapv_inplace(|x| libm::scalbn(x, power));
        }
        x
    }

    fn powers(&self, h: usize, earlier: Vec<f64>) -> Vec<i32> {
        let (queries, keys) = (slab(self.q.view(), h), self.kept_keys(h));
        let mut columns = Columns {
            keys,
            largest: earlier,
            seen: 0,
        };
        let rows = self.mask_rows(h);
        // With room for products with keys that the row does not keep.
        let most = log2_range::<T>() - 28.0;
        (0..self.queries)
            .map(|i| {
                let query = queries.row(i);
                let product = columns.largest_product(query, rows.limit(i), rows.matrix(i));
                let power = (-product.log2()).min(most - largest(query).as_f64().log2());
                if power.is_finite() { power as i32 } else { 0 }
            })
            .collect()
    }
}

/// The largest coordinates of the keys that a row keeps.
struct Columns<'a, T> {
    keys: Mat<'a, T>,
    /// Of the first keys, as many as have been seen: limits never decrease.
    largest: Vec<f64>,
    seen: usize,
}

impl<T: Real> Columns<'_, T> {
    /// The largest product of one coordinate of `query` with that of a kept key.
    fn largest_product(&mut self, query: &[T], limit: usize, kept: Option<&[bool]>) -> f64 {
        let of = |columns: &[f64]| {
            let pairs = query.iter().zip(columns);
            let products = pairs.map(|(q, &k)| q.as_f64().abs() * k);
            products.filter(|x| x.is_finite()).fold(0.0, f64::max)
        };
        match kept {
            None => {
                let new = self.seen..limit.max(self.seen);
                self.seen = new.end;
                new.for_each(|j| raise(&mut self.largest, self.keys.row(j)));
                of(&self.largest)
            }
            Some(kept) => {
                let mut largest = vec![0.0; query.len()];
                (0..limit)
                    .filter(|&j| kept[j])
                    .for_each(|j| raise(&mut largest, self.keys.row(j)));
                of(&largest)
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
