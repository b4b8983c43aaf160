//! Optimisers of models, whose state can be saved, and clipping.

mod adam;
mod clip;

pub use adam::{Adam, AdamState};
pub use clip::clip_by_norm;
