//! The rows of weights that belong to queries which count.

use crate::Error;
use bochner_numerics::{Real, argument};
use ndarray::{ArrayView1, ArrayView2, ArrayView4};

/// Refuses weights without elements, and another shape of `queries` than `[B, Tq]`.
pub(crate) fn check<T: Real>(
    weights: ArrayView4<T>,
    queries: ArrayView2<bool>,
) -> Result<(), Error> {
    let (batch, _, rows, _) = weights.dim();
    argument::not_empty("weights", weights.shape())?;
    argument::shape("queries", &[batch, rows], queries.shape())?;
    Ok(())
}

/// One row in double precision; a weight that is negative or not finite is refused.
pub(crate) fn read<T: Real>(row: ArrayView1<T>) -> Result<Vec<f64>, Error> {
    let read = |weight: &T| {
        argument::non_negative("weights of a kept query", *weight)?;
        Ok(weight.as_f64())
    };
    row.iter().map(read).collect()
}
