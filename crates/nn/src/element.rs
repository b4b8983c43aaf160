//! The one bound on a tensor's elements.

use bochner_numerics::Real;
use dfdx::dtypes::Dtype;

/// An element of a trainable tensor: `f32` or `f64`.
///
/// Both worlds in one name: [`Real`] for the analytic operations, dfdx's
/// [`Dtype`] for the tensors they are recorded on.
pub trait Element: Real + Dtype {}

impl<T: Real + Dtype> Element for T {}
