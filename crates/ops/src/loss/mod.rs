//! Losses.

mod cross_entropy;
mod linear_cross_entropy;
mod squared_error;

pub use cross_entropy::CrossEntropy;
pub use linear_cross_entropy::LinearCrossEntropy;
pub use squared_error::{Rows, SquaredError};
