//! draft
mod attend;
mod engine;
mod error;
mod magnitude;
mod mask;
mod similarity;
pub use attend::{Attended, AttentionGradients, Magnitude, Settings, attend, attend_vjp, weights};
pub use error::Error;
pub use magnitude::{log_norm_sq, magnitude, magnitude_vjp};
pub use mask::Mask;
pub use similarity::{Points, PointsGradients, Similarity};
