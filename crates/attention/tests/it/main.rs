//! The properties of attention, of its mechanisms and of its layer.

mod conformance;
#[cfg(feature = "dfdx")]
mod layer;
mod mechanisms_train_without_a_framework;
