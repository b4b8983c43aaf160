//! Losses.

mod cross_entropy;
mod squared_error;

pub use cross_entropy::CrossEntropy;
pub use squared_error::{Rows, SquaredError};
