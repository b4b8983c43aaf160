//! One trainer for every model.
//!
//! A [`Task`] is what differs between models: how data are cut into batches, what a forward pass reads, and what is
//! to be made small. Everything else is the [`Trainer`]'s: steps of Adam with a schedule, clipping, an L2 norm and
//! accumulated gradients ([`TrainingConfig`]); a hook on the gradients of a step, for training on several machines
//! ([`Trainer::with_gradient_hook`]); training until a measure stops improving, with the best model kept
//! ([`Trainer::fit`]) and [`Observer`]s that show progress, record curves and write checkpoints; and runs that stop
//! anywhere and go on with the same bits.

mod config;
mod descent;
mod fit;
mod hook;
mod l2;
mod task;
mod trainer;

pub use bochner_ops::{Decayed, Schedule};
pub use config::TrainingConfig;
pub(crate) use descent::device_error;
pub use fit::{Best, Checkpoints, Curves, Epoch, FitConfig, Goal, Observer};
pub(crate) use task::cut;
pub use task::{EpochReport, Objective, Task};
pub use trainer::Trainer;
