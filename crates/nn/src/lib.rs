//! Placeholder.
mod bridge;
mod checkpoint;
mod element;
mod error;
pub mod layers;
mod loss;
mod optim;
mod parameters;
mod rows;

pub use bridge::{Inputs, Operation, Outputs, record, record_one};
pub use checkpoint::{Checkpoint, CheckpointError, Progress};
pub use element::Element;
pub use error::{BoxError, Error};
pub use layers::{
    Activation, Dropout, EndsWith, FeedForward, FeedForwardConfig, LayerNorm, Linear, Mode,
    builders,
};
pub use loss::{Rows, mean_squared_error};
pub use optim::{Adam, AdamConfig, AdamState, Moments, WeightDecay, clip_by_norm};
pub use parameters::{
    Collection, Parameter, ParameterMut, Parameters, alloc_gradients, join, parameter_count,
    zero_gradients,
};
