//! Kernels that see where two points lie, not only their difference.

mod linear;

pub use linear::{Linear, LinearConfig};
