//! Rules by which parameters are stepped, clipping, and learning rates that follow the step: all on slices.

mod adam;
mod clip;
mod config;
mod schedule;
mod sgd;

pub use adam::{AdamRule, Moments};
pub use clip::{GradientNorm, clip_by_norm};
pub use config::{AdamConfig, WeightDecay, check_factor};
pub use schedule::Schedule;
pub use sgd::Sgd;
