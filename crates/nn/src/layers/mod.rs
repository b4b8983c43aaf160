//! Layers of which each forward pass is one operation on the tape.

mod dropout;
mod elu;
mod embedding;
mod feed_forward;
mod initial;
mod last_axis;
mod layer_norm;
mod linear;
mod mean;
mod mode;

pub use dropout::Dropout;
pub use elu::{elu, elu_in_place, elu_vjp, elu_with_slopes};
pub use embedding::Embedding;
pub use feed_forward::{Activation, FeedForward, FeedForwardConfig, HiddenLayer, TwoLayers};
pub use last_axis::EndsWith;
pub use layer_norm::{LayerNorm, Normalised, ResidualNorm};
pub use linear::Linear;
pub use mean::mean_over_time;
pub use mode::Mode;

/// Names for building layers of compile-time sizes with `dev.build_module::<..>()`.
pub mod builders {
    pub use super::feed_forward::builder::FeedForward;
    pub use super::layer_norm::builder::LayerNorm;
    pub use super::linear::builder::Linear;
}

use crate::{BoxError, Error};
use bochner_numerics::Real;
use dfdx::shapes::Dim;
use ndarray::{ArrayD, ArrayViewD};

/// The shape of an input, if it ends with the layer's own axis and has elements.
fn checked<I: Dim, S: EndsWith<I>>(shape: S, last: I) -> Result<S, Error> {
    let got: Vec<usize> = shape.concrete().into();
    let expected = with_last(&got, last.size());
    if got != expected {
        return Err(Error::ShapeMismatch {
            what: "the input",
            expected,
            got,
        });
    }
    if got.contains(&0) {
        let what = format!("the input, of shape {got:?},");
        return Err(Error::Empty { what });
    }
    Ok(shape)
}

/// `dims` with another last axis.
fn with_last(dims: &[usize], last: usize) -> Vec<usize> {
    let mut dims = dims.to_vec();
    *dims.last_mut().expect("at least one axis") = last;
    dims
}

/// The elements of the arrays the bridge hands out, which are row-major.
pub(crate) fn slices<'a, T: Real, const N: usize>(arrays: &'a [ArrayViewD<'_, T>]) -> [&'a [T]; N] {
    assert_eq!(arrays.len(), N, "number of arrays");
    std::array::from_fn(|i| arrays[i].as_slice().expect("a row-major array"))
}

/// The gradients of all inputs, in their shapes.
fn gradients<T: Real, const N: usize>(
    inputs: &[ArrayViewD<'_, T>],
    values: [Vec<T>; N],
) -> Result<Vec<Option<ArrayD<T>>>, BoxError> {
    let shaped = inputs
        .iter()
        .zip(values)
        .map(|(input, values)| ArrayD::from_shape_vec(input.raw_dim(), values).map(Some));
    Ok(shaped.collect::<Result<_, _>>()?)
}
