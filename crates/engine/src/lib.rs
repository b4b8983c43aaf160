//! Attention for any score, forward and backward, on plain arrays.

mod position;

pub use ndarray;
pub use position::{PositionCode, Rotary, RotaryPairing};
