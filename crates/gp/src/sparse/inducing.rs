//! Starts of inducing points.

use super::check_inputs;
use crate::Error;
use bochner_numerics::{Seed, argument};
use ndarray::{Array2, ArrayView2, Axis};
use rand::Rng;

/// Inducing points among the rows of `x: [n, d]`, spread over the data, `[count, d]`.
///
/// Each row is chosen with a probability in proportion to its squared distance from the nearest row chosen before,
/// where the columns are divided by their standard deviations (k-means++). No row is chosen twice.
///
/// # Errors
/// [`Error::Argument`] if `x` is not finite or `count` is zero; [`Error::InducingPoints`] if `count` exceeds the
/// number of distinct rows.
///
/// # Numerics
/// $O(n d)$ time for each point.
///
/// # Reference
/// Arthur, Vassilvitskii, *k-means++: the advantages of careful seeding*, SODA 2007.
pub fn inducing_points(x: ArrayView2<f64>, count: usize, seed: Seed) -> Result<Array2<f64>, Error> {
    argument::at_least_one("count", count)?;
    check_inputs(x)?;
    let scales = x.axis_iter(Axis(1)).map(|column| {
        let std = column.std(0.0);
        if std.is_normal() { std.recip() } else { 1.0 }
    });
    let scales: Vec<f64> = scales.collect();
    let rows = x.nrows();
    let mut stream = seed.stream("inducing points");
    let mut nearest = vec![1.0; rows];
    let mut chosen = Vec::with_capacity(count);
    while chosen.len() < count {
        let total: f64 = nearest.iter().sum();
        if total <= 0.0 || rows == 0 {
            let rows = chosen.len();
            return Err(Error::InducingPoints {
                inducing: count,
                rows,
            });
        }
        let mut left = stream.gen_range(0.0..total);
        let next = nearest.iter().position(|d| {
            left -= d;
            left < 0.0 && *d > 0.0
        });
        // Rounding can leave a little of the sum.
        let last = nearest.iter().rposition(|d| *d > 0.0);
        let next = next.or(last).expect("a distance above zero");
        let is_first = chosen.is_empty();
        for (row, nearest) in x.rows().into_iter().zip(&mut nearest) {
            let pairs = row.into_iter().zip(x.row(next)).zip(&scales);
            let distance: f64 = pairs.map(|((a, b), s)| ((a - b) * s).powi(2)).sum();
            *nearest = if is_first {
                distance
            } else {
                nearest.min(distance)
            };
        }
        chosen.push(next);
    }
    Ok(x.select(Axis(0), &chosen))
}
