//! Kernels of where two points lie, not only of their difference.

mod linear;

pub use linear::{Linear, LinearConfig};
