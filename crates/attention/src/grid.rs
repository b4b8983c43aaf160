//! Data on a grid as a sequence, and back.

use crate::Error;
use bochner_numerics::argument;
use ndarray::{Array, Array3, ArrayD, Dimension, IntoDimension};

/// The positions of a grid as a sequence: `[B, h, w, .., c]` to `[B, h w .., c]`, the last axis of the grid
/// fastest.
///
/// # Errors
/// [`Error::Argument`] for fewer than two axes.
///
/// ```
/// use bochner_attention::grid::{fold, unfold};
/// use bochner_attention::ndarray::Array4;
///
/// let image = Array4::from_shape_fn((1, 2, 3, 4), |(_, y, x, c)| y * 100 + x * 10 + c);
/// let sequence = unfold(&image)?;
/// assert_eq!(sequence[[0, 1 * 3 + 2, 3]], 123);
/// assert_eq!(fold(&sequence, (2, 3))?, image.into_dyn());
/// # Ok::<(), bochner_attention::Error>(())
/// ```
pub fn unfold<A: Clone, D: Dimension>(x: &Array<A, D>) -> Result<Array3<A>, Error> {
    let shape = x.shape();
    let [batch, grid @ .., channels] = shape else {
        let (name, allowed) = ("the axes of a grid", "at least 2");
        return Err(argument::out_of_range(name, shape.len() as f64, allowed).into());
    };
    let shape = (*batch, grid.iter().product(), *channels);
    let values = x.iter().cloned().collect();
    Ok(Array3::from_shape_vec(shape, values).expect("as many positions"))
}

/// The sequence as a grid, the inverse of [`unfold`]. The grid of an output is that of the queries, which so
/// choose its size.
///
/// # Errors
/// [`Error::Argument`] if the grid has another number of positions than the sequence.
pub fn fold<A: Clone>(x: &Array3<A>, grid: impl IntoDimension) -> Result<ArrayD<A>, Error> {
    let (batch, _, channels) = x.dim();
    let grid = grid.into_dimension();
    let positions = grid.slice().iter().product();
    argument::shape(
        "the sequence of a grid",
        &[batch, positions, channels],
        x.shape(),
    )?;
    let shape = [&[batch], grid.slice(), &[channels]].concat();
    let values = x.iter().cloned().collect();
    Ok(ArrayD::from_shape_vec(shape, values).expect("as many positions"))
}
