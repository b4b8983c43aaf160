//! Optimisers whose state can be saved, and clipping.

mod adam;
mod clip;

pub use adam::{Adam, AdamConfig, AdamState, Moments, WeightDecay};
pub use clip::clip_by_norm;
