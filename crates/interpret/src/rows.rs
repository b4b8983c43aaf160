//! The rows of weights that belong to queries which count.

use crate::Error;
use bochner_numerics::{Real, argument};
use ndarray::{Array2, ArrayView2, ArrayView4, s};

/// The queries that are kept of sequences of these lengths, which padding brings to `positions` positions: `queries`
/// of the other functions.
///
/// # Shapes
/// `lengths: [B]` to `[B, positions]`, where `true` keeps.
///
/// # Errors
/// [`Error::Argument`] for a length above `positions`.
///
/// ```
/// use bochner_interpret::kept_queries;
/// use bochner_interpret::ndarray::array;
///
/// let kept = kept_queries(&[2, 3], 3)?;
/// assert_eq!(kept, array![[true, true, false], [true, true, true]]);
/// # Ok::<(), bochner_interpret::Error>(())
/// ```
pub fn kept_queries(lengths: &[usize], positions: usize) -> Result<Array2<bool>, Error> {
    for (b, &length) in lengths.iter().enumerate() {
        let (name, allowed) = (format!("lengths[{b}]"), format!("at most {positions}"));
        argument::in_range(length <= positions, name, length as f64, allowed)?;
    }
    let shape = (lengths.len(), positions);
    Ok(Array2::from_shape_fn(shape, |(b, t)| t < lengths[b]))
}

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

/// The row of a query of a head of an example, in double precision; a weight that is negative or not finite is refused
/// by its place.
pub(crate) fn read<T: Real>(
    weights: ArrayView4<T>,
    [b, m, i]: [usize; 3],
) -> Result<Vec<f64>, Error> {
    let read = |(j, weight): (usize, &T)| {
        if weight.is_finite() && *weight >= T::zero() {
            return Ok(weight.as_f64());
        }
        Err(refused(format!("weights[[{b}, {m}, {i}, {j}]]"), *weight))
    };
    let row = weights.slice_move(s![b, m, i, ..]);
    row.iter().enumerate().map(read).collect()
}

/// Returns the error for a weight that is negative or not finite.
pub(crate) fn refused<T: Real>(place: String, weight: T) -> Error {
    argument::out_of_range(place, weight, "finite and at least 0").into()
}
