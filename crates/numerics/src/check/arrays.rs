//! Arrays for tests: random ones, and gradients along them.

use super::{finite_difference, relative_error};
use crate::{Real, Seed, standard_normal};
use ndarray::{Array, ArrayView, Dimension, ShapeBuilder};

/// An array of standard normal draws, equal wherever shape and purpose are.
///
/// ```
/// use bochner_numerics::check::random;
/// use bochner_numerics::ndarray::Array2;
///
/// let x: Array2<f32> = random((3, 2), "x");
/// assert_eq!(x, random((3, 2), "x"));
/// assert_ne!(x, random((3, 2), "y"));
/// ```
pub fn random<T: Real, Sh: ShapeBuilder>(shape: Sh, purpose: &str) -> Array<T, Sh::Dim> {
    let mut stream = Seed::new(12).stream(purpose);
    Array::from_shape_simple_fn(shape, || standard_normal(&mut stream))
}

/// Checks that `got` is the gradient of `f` at `x`, by finite differences.
///
/// # Panics
/// If the shapes differ, or the relative error of the whole gradient is 1e-6 or more.
///
/// ```
/// use bochner_numerics::check::{assert_gradient, random};
///
/// let x = random((3, 2), "x");
/// assert_gradient(&(2.0 * &x), &x, |x| x.iter().map(|x| x * x).sum());
/// ```
#[track_caller]
pub fn assert_gradient<D: Dimension>(
    got: &Array<f64, D>,
    x: &Array<f64, D>,
    mut f: impl FnMut(ArrayView<f64, D>) -> f64,
) {
    assert_eq!(got.shape(), x.shape(), "shape of the gradient");
    let numbers = |array: &Array<f64, D>| array.iter().copied().collect::<Vec<_>>();
    let want = finite_difference(&numbers(x), |values| {
        f(ArrayView::from_shape(x.raw_dim(), values).expect("as many numbers"))
    });
    let error = relative_error(&numbers(got), &want);
    assert!(error < 1e-6, "relative error {error:e} of the gradient");
}
