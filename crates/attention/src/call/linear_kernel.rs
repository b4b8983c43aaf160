//! The linear kernel: each query in a scale of its own.

use super::prepare::{Parts, Scaling};
use super::units::{log2_largest, log2_range};
use super::{Call, slab};
use crate::engine::{Rows, Score};
use bochner_numerics::operations::record;
use bochner_numerics::{Operations, Real};
use ndarray::{Array2, Axis};

impl<T: Real> Call<'_, '_, T> {
    /// $(q_i \cdot k_j)^2$ up to a constant of the row.
    ///
    /// The weights of a row depend neither on the size of its query nor on that of all its keys.
    /// So each query is multiplied by the power of two that brings its largest product near one;
    /// keys that the row does not keep have no say in it.
    pub(super) fn linear(&self, h: usize) -> Parts<T> {
        let queries = self.rows(&self.q, h);
        let score = Score::Squared {
            normaliser: 1.0,
            floor: 0.0,
            exponents: self.exponents(h),
        };
        let left = self.by_powers(h, queries.mapv(|x| x.as_f64()));
        let operands = (Some(left.mapv(T::of)), None);
        (operands, Scaling::default(), score)
    }

    /// `x`, `[Tq, d]`, with each row multiplied by its query's power of two.
    pub(super) fn by_powers(&self, h: usize, mut x: Array2<f64>) -> Array2<f64> {
        record(Operations::multiply_adds(x.len()));
        for (mut row, power) in x.axis_iter_mut(Axis(0)).zip(self.powers(h)) {
            row.mapv_inplace(|x| libm::scalbn(x, power));
        }
        x
    }

    fn powers(&self, h: usize) -> Vec<i32> {
        let (queries, keys) = (slab(self.q.view(), h), self.kept_keys(h));
        let sizes: Vec<f64> = (0..keys.shape().0)
            .map(|j| log2_largest(keys.row(j)))
            .collect();
        let largest = largest_kept(&self.mask_rows(h), &sizes);
        // Within the type's range, with room for products of what lies just beyond.
        let range = log2_range::<T>() - 28.0;
        (0..self.queries)
            .zip(largest)
            .map(|(i, keys)| {
                let power = -keys.clamp(-range, range) - log2_largest(queries.row(i));
                if power.is_finite() { power as i32 } else { 0 }
            })
            .collect()
    }
}

/// The largest of the keys' sizes that each row keeps.
fn largest_kept(rows: &Rows, sizes: &[f64]) -> Vec<f64> {
    let max = |a: f64, b: f64| a.max(b);
    let running: Vec<f64> = std::iter::once(f64::NEG_INFINITY)
        .chain(sizes.iter().copied())
        .scan(f64::NEG_INFINITY, |largest, size| {
            *largest = largest.max(size);
            Some(*largest)
        })
        .collect();
    (0..rows.queries)
        .map(|i| match rows.matrix(i) {
            None => running[rows.limit(i)],
            Some(kept) => sizes[..rows.limit(i)]
                .iter()
                .zip(kept)
                .filter_map(|(&size, &kept)| kept.then_some(size))
                .fold(f64::NEG_INFINITY, max),
        })
        .collect()
}
