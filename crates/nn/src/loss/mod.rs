//! Losses.

mod cross_entropy;
mod squared_error;

pub use cross_entropy::{cross_entropy, cross_entropy_of};
pub use squared_error::{Rows, mean_squared_error};
