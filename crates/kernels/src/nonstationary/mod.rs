//! Kernels that see where two points lie, not only their difference.

mod linear;
mod polynomial;

pub use linear::{Linear, LinearConfig};
pub use polynomial::{Polynomial, PolynomialConfig};
