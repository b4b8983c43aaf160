//! Attention for any score, forward and backward, on plain arrays.

pub use ndarray;
