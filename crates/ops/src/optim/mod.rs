//! Rules by which parameters are stepped, clipping, learning rates that follow the step, and a minimiser: all on
//! slices.

mod adam;
mod clip;
mod config;
mod lbfgs;
mod schedule;
mod sgd;
mod stop;

pub use adam::{AdamRule, Moments};
pub use clip::{GradientNorm, clip_by_norm};
pub use config::{AdamConfig, Decayed, WeightDecay, check_factor};
pub use lbfgs::{LbfgsConfig, LbfgsReport, Objective, largest_projected, lbfgs};
pub use schedule::Schedule;
pub use sgd::Sgd;
pub use stop::Stop;
