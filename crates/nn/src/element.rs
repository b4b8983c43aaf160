//! The one bound on a tensor's elements.

use bochner_numerics::Real;
use dfdx::dtypes::Dtype;

/// An element of a trainable tensor: `f32` or `f64`.
///
/// The trait joins [`Real`], which operations ask for, and dfdx's [`Dtype`], which tensors ask for.
pub trait Element: Real + Dtype {}

impl<T: Real + Dtype> Element for T {}
