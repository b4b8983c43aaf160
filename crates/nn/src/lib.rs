//! Placeholder.
mod bridge;
mod checkpoint;
mod element;
mod error;
pub mod layers;
mod parameters;
mod rows;

pub use bridge::{Inputs, Operation, Outputs, record, record_one};
pub use checkpoint::CheckpointError;
pub use element::Element;
pub use error::{BoxError, Error};
pub use layers::{EndsWith, Linear, builders};
pub use parameters::{
    Collection, Parameter, ParameterMut, Parameters, alloc_gradients, join, parameter_count,
    zero_gradients,
};
