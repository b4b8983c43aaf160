//! What the unit tests share.

use bochner_numerics::{Real, Seed, finite_difference, standard_normal};
use ndarray::{Array, ArrayView, Dimension, ShapeBuilder};

/// An array of standard normal draws.
pub(crate) fn random<T: Real, Sh: ShapeBuilder>(shape: Sh, purpose: &str) -> Array<T, Sh::Dim> {
    let mut stream = Seed::new(8).stream(purpose);
    Array::from_shape_simple_fn(shape, || standard_normal(&mut stream))
}

/// The gradient of `f` at `x` by finite differences.
pub(crate) fn finite<D: Dimension>(
    x: &Array<f64, D>,
    mut f: impl FnMut(ArrayView<f64, D>) -> f64,
) -> Vec<f64> {
    finite_difference(x.as_slice().unwrap(), |values| {
        f(ArrayView::from_shape(x.raw_dim(), values).unwrap())
    })
}
