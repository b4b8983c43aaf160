//! Optimisers whose state can be saved, clipping, and learning rates that follow the step.

mod adam;
mod clip;
mod config;
mod rule;
mod schedule;

pub use adam::{Adam, AdamState, Moments};
pub use clip::clip_by_norm;
pub use config::{AdamConfig, WeightDecay};
pub use schedule::Schedule;
