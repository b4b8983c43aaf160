//! Optimisers whose state can be saved, clipping, and learning rates that follow the step.

mod adam;
mod clip;
mod rule;
mod schedule;

pub use adam::{Adam, AdamConfig, AdamState, Moments, WeightDecay};
pub use clip::clip_by_norm;
pub use schedule::Schedule;
